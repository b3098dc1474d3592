"""Zarr stores whose chunks are looked at before they are decompressed.

Blosc believes the sizes in front of a chunk: where they are wrong it reads beyond its end, and may
end the process.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jaxtrace.io._errors import DataError
from worldloom._extras import import_extra

_HEADER = 16
_METADATA = (".zarray", "zarr.json")


def checked_store(path: Path) -> Any:
    """A Zarr store in a folder, to be read."""
    return _store_class()(path, read_only=True)


def check_chunk(chunk: bytes, where: str) -> None:
    """Refuse a chunk of Blosc that is not as long as it says."""
    sizes = [int.from_bytes(chunk[at : at + 4], "little") for at in (4, 8, 12)]
    unpacked, block, packed = sizes
    if len(chunk) < _HEADER or packed != len(chunk) or block > max(unpacked, 1):
        raise DataError(
            f"{where}: the chunk is damaged: it has {len(chunk)} bytes, and says that it is "
            f"{packed} bytes which unpack to {unpacked} in blocks of {block}"
        )


@functools.cache
def _store_class() -> Any:
    zarr = import_extra("zarr.storage", extra="trace", purpose="reading Zarr")

    class CheckedStore(zarr.LocalStore):
        """A folder of chunks; those of Blosc are checked when they are read whole."""

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            """See `zarr.abc.store.Store.get`."""
            found = await super().get(key, prototype, byte_range)
            if found is None or byte_range is not None:
                return found
            metadata = key.rpartition("/")[2].startswith((".z", "zarr."))
            if not metadata and self._ends_in_blosc(key):
                check_chunk(found.to_bytes(), f"{self.root}, {key}")
            return found

        @functools.cached_property
        def _known(self) -> dict[str, bool]:
            return {}

        def _ends_in_blosc(self, key: str) -> bool:
            folder = key.rpartition("/")[0]
            if folder not in self._known:
                array = folder
                while array and not any((self.root / array / m).is_file() for m in _METADATA):
                    array = array.rpartition("/")[0]
                self._known[folder] = _ends_in_blosc(self.root / array)
            return self._known[folder]

    return CheckedStore


def _ends_in_blosc(array: Path) -> bool:
    """Whether what is stored of an array is what Blosc wrote, as its metadata say."""
    for name in _METADATA:
        try:
            about = json.loads((array / name).read_bytes())
            last = about["compressor"] if name == ".zarray" else about["codecs"][-1]
            return (last["id"] if name == ".zarray" else last["name"]) == "blosc"
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
    return False
