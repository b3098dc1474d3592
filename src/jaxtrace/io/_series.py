"""Which files make up a series, and in which order."""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jaxtrace.io._errors import DataError
from worldloom._reading import reading

PARALLEL = (".pvtu", ".pvti", ".pvtr", ".pvts")
NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")
ZARR = (".zarr",)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One moment of a series: the files of its pieces, and its time where the series knows it."""

    files: Sequence[Path]
    time: float | None = None

    @property
    def name(self) -> str:
        """The first file, as a user would call it."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"


def find(source: Any) -> list[Path]:
    """The files that a path, a pattern or a list of these names.

    Files of a pattern are ordered by the numbers in their names: `flow_10` comes after `flow_9`.
    """
    if not isinstance(source, str | os.PathLike):
        found = [path for one in source for path in find(one)]
        if not found:
            raise DataError("source is an empty list; expected at least one file")
        return found
    text = os.fspath(source)
    if Path(text).exists():
        return [Path(text)]
    if not glob.has_magic(text):
        raise DataError(f"{text}: there is no such file")
    found = sorted((Path(name) for name in glob.glob(text, recursive=True)), key=_natural)
    if not found:
        raise DataError(
            f"source={text!r}: no file matches this pattern; it is looked for from "
            f"{Path.cwd().name!r}, the current folder"
        )
    return found


def entries(files: Sequence[Path], known: Sequence[str]) -> tuple[str, list[Entry]]:
    """The format of VTK files, and their moments: lists of files are opened, pieces found.

    **Arguments:**

    - `files`: files of one format.
    - `known`: endings of files with data.
    """
    suffixes = {path.suffix.lower() for path in files}
    if len(suffixes) > 1:
        raise DataError(f"the files are of several formats, {sorted(suffixes)}; expected one")
    suffix = suffixes.pop()
    if suffix not in (".pvd", ".series", *PARALLEL, *known):
        formats = sorted((".pvd", ".series", *PARALLEL, *known, *NETCDF, *ZARR))
        raise DataError(f"{files[0]}: unknown ending {suffix!r}; known are {', '.join(formats)}")
    if suffix in (".pvd", ".series"):
        if len(files) > 1:
            raise DataError(f"{len(files)} files that end in {suffix}; expected one of them")
        listed = _pvd(files[0]) if suffix == ".pvd" else _json(files[0])
        inner = {path.suffix.lower() for entry in listed for path in entry.files}
        if len(inner) > 1 or not inner <= {*PARALLEL, *known}:
            raise DataError(f"{files[0]}: lists files that end in {sorted(inner)}")
        form = f"{suffix[1:].upper()} of {inner.pop()[1:].upper()}"
    else:
        listed = [Entry((path,)) for path in files]
        form = suffix[1:].upper()
    for i, entry in enumerate(listed):
        for path in entry.files:
            if not path.is_file():
                raise DataError(f"{files[0]}: slice {i} is in {path}, and there is no such file")
    return form, [_with_pieces(entry) for entry in listed]


def _natural(path: Path) -> list[Any]:
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _parse(path: Path) -> ElementTree.Element:
    with reading(path, "XML", DataError):
        return ElementTree.parse(path).getroot()


def _pvd(path: Path) -> list[Entry]:
    """Entries with the same time are pieces of one moment, where their parts differ."""
    moments: list[tuple[float, dict[str, Path]]] = []
    for i, item in enumerate(_parse(path).iter("DataSet")):
        name = item.get("file")
        try:
            time = float(item.get("timestep", ""))
        except ValueError:
            time = float("nan")
        if name is None or time != time:
            raise DataError(f"{path}: DataSet {i} lacks its file or a timestep that is a number")
        part = f"{item.get('group', '')}/{item.get('part', '0')}"
        if moments and moments[-1][0] == time and part not in moments[-1][1]:
            moments[-1][1][part] = path.parent / name
        else:
            moments.append((time, {part: path.parent / name}))
    if not moments:
        raise DataError(f"{path}: lists no files")
    return [Entry(tuple(parts.values()), time) for time, parts in moments]


def _json(path: Path) -> list[Entry]:
    with reading(path, "a list of files and times", DataError):
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        return [Entry((path.parent / one["name"],), float(one["time"])) for one in files]


def _with_pieces(entry: Entry) -> Entry:
    """The same moment, with files that list pieces replaced by the pieces."""
    files: list[Path] = []
    for path in entry.files:
        if path.suffix.lower() not in PARALLEL:
            files.append(path)
            continue
        pieces = [path.parent / (p.get("Source") or "") for p in _parse(path).iter("Piece")]
        if not pieces:
            raise DataError(f"{path}: lists no pieces")
        for piece in pieces:
            if not piece.is_file():
                raise DataError(f"{path}: a piece is in {piece}, and there is no such file")
        files.extend(pieces)
    return dataclasses.replace(entry, files=tuple(files))
