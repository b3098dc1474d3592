"""What goes wrong with files."""

from __future__ import annotations

from jaxtrace._errors import TraceError


class DataError(TraceError):
    """Files do not hold a flow that can be followed; the message names the file and the slice."""
