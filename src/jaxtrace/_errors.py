"""What goes wrong with fields, seeds and runs."""

from __future__ import annotations

from worldloom._errors import WorldloomError


class TraceError(WorldloomError, ValueError):
    """Base of the errors about data that JAXTrace was given."""


class FieldError(TraceError):
    """The arrays of a field do not describe a flow."""


class SeedError(TraceError):
    """Seeds cannot be where they are said to be."""


class SlotOverflowError(TraceError):
    """More particles than slots. `needed` is the number that is needed."""

    def __init__(self, message: str, needed: int):
        super().__init__(message)
        self.needed = needed


class BoundaryError(TraceError):
    """A boundary is not well defined."""


class TrackError(TraceError):
    """A run is not well defined: its times, its steps, what it keeps."""


class TraceWarning(UserWarning):
    """Something was decided that the user may want to know; the message has the numbers."""
