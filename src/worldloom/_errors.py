"""The root of every exception that Worldloom raises on purpose."""

from __future__ import annotations


class WorldloomError(Exception):
    """Base of all errors raised by Worldloom and the systems on it.

    Subclasses also derive from the built-in exception that fits (`ValueError`, `OSError`, ...),
    so that code which does not know Worldloom can catch them.
    """
