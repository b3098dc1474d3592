"""Warnings of a system, as a command shows them."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def plain_warnings(ours: type[Warning]) -> Iterator[None]:
    """Warnings of the class `ours` as one line on stderr, without a place in our code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def line(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if issubclass(category, ours):
                print(f"worldloom: warning: {message}", file=sys.stderr)
            else:
                show(message, category, *place, **more)

        warnings.showwarning = line
        warnings.simplefilter("always", ours)
        yield
