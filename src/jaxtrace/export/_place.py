"""Where tracks go: the ending of a file, and what may be replaced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxtrace._errors import TraceError
from worldloom.store import ForeignFileError
from worldloom.store._files import check_folder_is_ours, real_place

# In an array, where readers of Zarr look for chunks only; in the group it would be no array.
ZARR_MARK = "trajectory/.written"


class ExportError(TraceError):
    """Tracks cannot be written there, or read from there."""


def ending(path: Path, known: Sequence[str]) -> str:
    """The ending of `path`, one of those that are known."""
    found = path.suffix.lower()
    if found not in known:
        raise ExportError(
            f"path {str(path)!r} ends in {found or 'nothing'!r}; expected one of {', '.join(known)}"
        )
    return found


def check_place(path: Path) -> None:
    """Refuse a place where tracks cannot be written, before there are any.

    A folder is replaced only where nothing but older tracks of ours is in it.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".zarr":
            if path.exists() and not any((path / n).exists() for n in (".zgroup", "zarr.json")):
                raise ExportError(
                    f"{str(path)!r} is there and is no Zarr group; choose another name"
                )
            check_folder_is_ours(path, mark=ZARR_MARK)
        else:
            real_place(path)
        if kind == ".pvd":
            check_folder_is_ours(path.with_suffix(""))
    except ForeignFileError as error:
        raise ExportError(str(error)) from error
