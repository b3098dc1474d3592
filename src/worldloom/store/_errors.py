"""What can go wrong between a pytree and a disk, each with a name."""

from __future__ import annotations

from worldloom._errors import WorldloomError


class StoreError(WorldloomError):
    """Base of all errors raised by `worldloom.store`."""


class DamagedError(StoreError, ValueError):
    """A file of ours is incomplete or changed: truncated, flipped bits, a manifest that lies."""


class Flaw(Exception):
    """Why some file is damaged. Stays inside: the reader adds which file, as `DamagedError`."""


class VersionError(StoreError, ValueError):
    """A file of ours in a format version that this Worldloom cannot read."""


class ForeignFileError(StoreError, ValueError):
    """A file that was not written by this room, or holds what it never writes."""


class MismatchError(StoreError, ValueError):
    """A sound file that does not fit the template it is loaded into."""


class UnstorableError(StoreError, TypeError):
    """A value that cannot be stored without pickle or without losing something."""


class ArgumentError(StoreError, ValueError):
    """An argument outside of its range."""


class InvalidNameError(StoreError, ValueError):
    """A name that is not a plain file name."""


class TooLargeError(StoreError, ValueError):
    """More bytes than the limit; refused before anything is allocated."""


class MissingError(StoreError, FileNotFoundError):
    """There is no such file, snapshot or entry."""


class DiskError(StoreError, OSError):
    """The operating system refused: disk full, no permission, input/output error."""


class InUseError(StoreError, RuntimeError):
    """Another program works in this folder."""
