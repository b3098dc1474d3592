"""Pytrees on disk: archives, snapshots, compressed storage, caches, lazy and mapped arrays.

Nothing here ever uses pickle, and nothing is ever half written.
"""

from __future__ import annotations

from worldloom.store._archive import LeafInfo as LeafInfo
from worldloom.store._archive import inspect as inspect
from worldloom.store._archive import load as load
from worldloom.store._archive import read_meta as read_meta
from worldloom.store._archive import save as save
from worldloom.store._cache import CacheStats as CacheStats
from worldloom.store._cache import LRUCache as LRUCache
from worldloom.store._errors import ArgumentError as ArgumentError
from worldloom.store._errors import DamagedError as DamagedError
from worldloom.store._errors import DiskError as DiskError
from worldloom.store._errors import ForeignFileError as ForeignFileError
from worldloom.store._errors import InUseError as InUseError
from worldloom.store._errors import InvalidNameError as InvalidNameError
from worldloom.store._errors import MismatchError as MismatchError
from worldloom.store._errors import MissingError as MissingError
from worldloom.store._errors import StoreError as StoreError
from worldloom.store._errors import TooLargeError as TooLargeError
from worldloom.store._errors import UnstorableError as UnstorableError
from worldloom.store._errors import VersionError as VersionError
from worldloom.store._lazy import LazyLoader as LazyLoader
from worldloom.store._lock import locked as locked
from worldloom.store._mapped import create_mapped as create_mapped
from worldloom.store._mapped import open_mapped as open_mapped
from worldloom.store._mapped import resize_mapped as resize_mapped
from worldloom.store._smallest import smallest_dtype as smallest_dtype
from worldloom.store._snapshots import Snapshots as Snapshots
from worldloom.store._storage import CompressedStorage as CompressedStorage

__all__ = [
    "ArgumentError",
    "CacheStats",
    "CompressedStorage",
    "DamagedError",
    "DiskError",
    "ForeignFileError",
    "InUseError",
    "InvalidNameError",
    "LRUCache",
    "LazyLoader",
    "LeafInfo",
    "MismatchError",
    "MissingError",
    "Snapshots",
    "StoreError",
    "TooLargeError",
    "UnstorableError",
    "VersionError",
    "create_mapped",
    "inspect",
    "load",
    "locked",
    "open_mapped",
    "read_meta",
    "resize_mapped",
    "save",
    "smallest_dtype",
]
