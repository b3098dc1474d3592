"""Named entries in a folder."""

from __future__ import annotations

import os
import re
from errno import ENOENT
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from worldloom.store._archive import load, save
from worldloom.store._errors import InvalidNameError, MissingError, UnstorableError
from worldloom.store._files import disk_errors, sync_folder
from worldloom.store._leaves import describe
from worldloom.store._tree import take_apart

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_SUFFIX = ".loom"


class CompressedStorage:
    """A folder of compressed pytrees, each under a name.

    Entries are files of `store.save`: no pickle, checksummed, replaced atomically. They come
    back plain, as from `store.load` without a template. A name has 1 to 200 of the characters
    `A-Z a-z 0-9 _ - .` and does not begin with `-` or `.`, so it cannot point out of the folder.

    ```python
    import numpy as np
    from worldloom import store

    storage = store.CompressedStorage("cache")
    storage.save({"grids": [np.zeros((30, 30), np.int32)], "episode": 1}, "episode_001")
    assert storage.load("episode_001")["episode"] == 1
    assert storage.names() == ["episode_001"]
    ```
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def save(self, data: PyTree, name: str) -> None:
        """Store a pytree of arrays and plain values under `name`, instead of what is there."""
        path = self._path(name)
        for where, leaf in take_apart(data)[1]:
            if describe(where, leaf).kind == "static":
                raise UnstorableError(
                    f"Leaf {where} is a {type(leaf).__name__}, which cannot be stored. Stored are "
                    "arrays, random keys, bool, int, float, complex, str and None."
                )
        with disk_errors("prepare", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        save(path, data)

    def load(self, name: str) -> Any:
        """The pytree stored under `name`."""
        path = self._path(name)
        if not path.exists():
            raise MissingError(
                ENOENT, f"There is no entry {name!r}; there are {self.names()}", str(path)
            )
        return load(path)

    def names(self) -> list[str]:
        """Names of all entries, sorted."""
        with disk_errors("list", self.folder):
            files = os.listdir(self.folder) if self.folder.exists() else []
        names = (file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX))
        return sorted(name for name in names if _NAME.fullmatch(name))

    def delete(self, name: str) -> None:
        """Remove the entry of that name; it is an error if there is none."""
        path = self._path(name)
        with disk_errors("delete", path):
            path.unlink()
            sync_folder(self.folder)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InvalidNameError(
                f"name is {name!r}; it must have 1 to 200 of the characters A-Z a-z 0-9 _ - . "
                "and not begin with - or a dot."
            )
        return self.folder / (name + _SUFFIX)
