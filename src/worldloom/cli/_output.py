"""What a command writes, checked before it does anything else.

One rule for all commands: what is named is made or replaced, and the folder that it goes into must
be there; a name with a typo makes no folder. Where a command chose the place itself (the default of
an option), and for checkpoints, it makes the folders on the way.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worldloom._errors import WorldloomError

_MIB = 2**20


class OutputError(WorldloomError, OSError):
    """What a command is to write cannot be written there."""


@dataclasses.dataclass(frozen=True)
class OutputFile:
    """Marks an option that names a file to write: `out: Annotated[Path, OutputFile()]`.

    **Arguments:**

    - `room`: bytes that must be free, where no better guess is made later.

    ```python
    from dataclasses import dataclass
    from pathlib import Path
    from typing import Annotated
    from worldloom.cli import OutputFile

    @dataclass(frozen=True)
    class Draw:
        out: Annotated[Path, OutputFile()] = Path("picture.png")
        \"\"\"The picture to write.\"\"\"
    ```
    """

    room: int = _MIB

    def check(self, path: Path) -> None:
        """Refuse a path that no file could be written to."""
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise OutputError(f"{str(path)!r} is a folder; name a file, in it or elsewhere")
        if place.exists() and not place.is_file():
            raise OutputError(f"{str(path)!r} is a device or a pipe; name a file")
        check_room(path, self.room)


@dataclasses.dataclass(frozen=True)
class OutputFolder:
    """Marks an option that names a folder to write into: it is made if it is not there.

    **Arguments:**

    - `room`: as for `OutputFile`.
    - `parents`: make the folders on the way too, for what belongs to the program: a checkpoint.
    """

    room: int = _MIB
    parents: bool = False

    def check(self, path: Path) -> None:
        """Refuse a path at which there could be no such folder."""
        if path.exists() and not path.is_dir():
            raise OutputError(f"{str(path)!r} is a file; name a folder")
        check_room(path / "inside" if path.exists() else path, self.room)


def check_room(path: Path, room: float | int) -> None:
    """Refuse a path where fewer bytes are free than a file or folder there will take, about."""
    folder = _standing(path)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise OutputError(f"{str(path)!r}: {error.strerror or error}") from error
    if free < room:
        from worldloom.batch import format_bytes

        raise OutputError(
            f"too little room for {str(path)!r}: about {format_bytes(room)} are needed, and "
            f"{format_bytes(free)} are free"
        )


def check_outputs(config: Any) -> None:
    """Refuse a configuration whose outputs cannot be written, by the name of the option.

    Folders that a default needs are not made here, only tried.
    """
    read = {os.path.realpath(path) for path in _inputs(config) if path.exists()}
    for name, mark, path, chosen in _outputs(config, ""):
        try:
            if os.path.realpath(path) in read:
                raise OutputError(f"{str(path)!r} is also what is read; name another file")
            strict = chosen and not getattr(mark, "parents", False)
            if strict and not path.parent.is_dir():
                raise OutputError(
                    f"there is no folder {str(path.parent)!r} for {path.name!r}; make it first, or "
                    "correct its name"
                )
            mark.check(path)
            _try(path)
        except (OSError, WorldloomError) as error:
            why = str(error) if isinstance(error, WorldloomError) else _reason(error, path)
            raise OutputError(f"--{name.replace('_', '-')}: {why}") from error


def outputs_of(cls: type, prefix: str = "") -> Iterator[tuple[str, Any, dataclasses.Field[Any]]]:
    """The options of a configuration that name outputs: name, mark, field."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        marks = [m for m in getattr(hints[field.name], "__metadata__", ()) if hasattr(m, "check")]
        for mark in marks:
            yield f"{prefix}{field.name}", mark, field


def _outputs(config: Any, prefix: str) -> Iterator[tuple[str, Any, Path, bool]]:
    """Name, mark and path of each output, and whether it is another than the default."""
    for name, mark, field in outputs_of(type(config), prefix):
        value = getattr(config, field.name)
        for path in value if isinstance(value, tuple) else (value,):
            if path is not None:
                yield name, mark, path, value != field.default


def _inputs(config: Any) -> Iterator[Path]:
    """What may be the name of a file that is read."""
    marked = {field.name for _, _, field in outputs_of(type(config))}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in marked:
            continue
        if dataclasses.is_dataclass(value):
            yield from _inputs(value)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Path) or (isinstance(one, str) and 0 < len(one) < 255):
                yield Path(one)


def _standing(path: Path) -> Path:
    """The nearest folder above a path that exists."""
    found = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not found.is_dir():
        raise OutputError(f"{str(found)!r} is a file, and a folder is needed there")
    return found


def _try(path: Path) -> None:
    """Make a file as a writer would make it until it is whole, and remove it."""
    inside = path.is_dir()
    folder = path if inside else _standing(Path(os.path.realpath(path)))
    name = "trial" if inside else path.name
    hidden = folder / f".{name}.{os.getpid()}.unfinished"
    with hidden.open("xb"):
        pass
    hidden.unlink()


def _reason(error: OSError, path: Path) -> str:
    return f"{str(path)!r} cannot be written: {error.strerror or error}"
