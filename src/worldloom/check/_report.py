"""The host's half of a check: runs only when one failed, and only then asks for the mode."""

from __future__ import annotations

import bdb
import dataclasses
import logging
import os
import sys
import threading
import traceback
from types import FrameType
from typing import Any

import jax
import numpy as np

from worldloom.check._errors import CheckError, CheckUsageError, remember
from worldloom.check._mode import mode

_log = logging.getLogger("worldloom.check")
_debugger = threading.Lock()  # every device of a program comes here, each on its own thread
_logged: set[tuple[str, tuple[str, ...]]] = set()

# Frames of these packages stand between `require` and the line that a user wrote.
_MACHINERY = ("jax.", "equinox.", "worldloom.check", "jaxtyping.", "beartype.", "contextlib")

_WORLDS_SHOWN = 10
_LEAVES_SHOWN = 4


@dataclasses.dataclass(frozen=True)
class Report:
    """One `require` in a program: its words, its place, and the names of what it guards."""

    message: str
    where: tuple[str, ...]
    pred_ndim: int
    structure: Any  # of the guarded arrays
    names: tuple[str, ...]

    def __call__(self, failed: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Act on a failure. Returns which worlds to poison, and a zero.

        Under `vmap` every argument has one leading axis a level, of size one where it is the
        same for all worlds.
        """
        levels = failed.ndim - self.pred_ndim
        batch = np.broadcast_shapes(*(array.shape[:levels] for array in (failed, *arrays)))
        failed = np.broadcast_to(failed, batch + failed.shape[levels:])
        zero = np.zeros(batch, np.int32)
        match mode():
            case "raise":
                raise remember(self.error(failed, arrays))
            case "breakpoint":
                self._debug(failed, arrays)
                return failed, zero
            case "nan":
                self._log(failed, arrays)
                return failed, zero
            case _:
                return np.zeros_like(failed), zero

    def error(self, failed: np.ndarray, arrays: tuple[np.ndarray, ...]) -> CheckError:
        """The exception for these worlds, with the values of the first of them."""
        indices = np.argwhere(failed)
        shown = [tuple(index) for index in indices[:_WORLDS_SHOWN].tolist()]
        first = shown[0]
        lines = [self.message]
        if failed.ndim:
            more = len(indices) - len(shown)
            listed = ", ".join(map(_index, shown)) + (f" and {more} more" if more else "")
            lines.append(f"  in {len(indices)} of {failed.size} worlds: {listed}")
        for name, array in list(zip(self.names, arrays, strict=True))[:_LEAVES_SHOWN]:
            lines.append(f"  value{name}{_there(first)} = {_at(array, first)}")
        lines.append(f"  required at {self.where[0]}")
        return CheckError(self.message, indices, "\n".join(lines))

    def _log(self, failed: np.ndarray, arrays: tuple[np.ndarray, ...]) -> None:
        if (self.message, self.where) not in _logged:
            _logged.add((self.message, self.where))
            _log.warning(
                "%s\n  goes on with NaN in the floating-point values of these worlds (logged once)",
                self.error(failed, arrays),
            )

    def _debug(self, failed: np.ndarray, arrays: tuple[np.ndarray, ...]) -> None:
        error = self.error(failed, arrays)
        value = jax.tree.unflatten(self.structure, arrays)
        frames = "\n".join(f"  {place}" for place in self.where)
        prompt = (
            f"\nCheckError: {error}\n\nCalled from:\n{frames}\n"
            "Debugger: `value` and `failed` hold all worlds; `c` goes on with NaN, `q` stops."
        )
        with _debugger:
            print(prompt, file=sys.stderr)
            try:
                _open_debugger(error=error, value=value, failed=failed)
            except bdb.BdbQuit:
                raise remember(error) from None


def _open_debugger(*, error: CheckError, value: Any, failed: np.ndarray) -> None:
    """A frame that holds nothing but what there is to look at."""
    breakpoint()


def _index(world: tuple[int, ...]) -> str:
    return str(world[0]) if len(world) == 1 else str(world)


def _there(world: tuple[int, ...]) -> str:
    return f" in world {_index(world)}" if world else ""


def _at(array: np.ndarray, world: tuple[int, ...]) -> str:
    # An axis of size one is shared by all worlds; an array may have fewer axes than the index.
    index = tuple(min(i, n - 1) for i, n in zip(world, array.shape, strict=False))
    options: dict[str, Any] = {"threshold": 8, "edgeitems": 3, "precision": 6}
    return np.array2string(array[index], separator=", ", **options).replace("\n", " ")


def user_frames() -> tuple[str, ...]:
    """The lines that led to `require`, innermost first: one, or as many as the user asked for."""
    name = "EQX_ON_ERROR_BREAKPOINT_FRAMES"
    text = os.environ.get(name, "1")
    if not text.isdecimal() or int(text) < 1:
        raise CheckUsageError(
            f"environment variable {name} is {text!r}; expected how many frames to show, 1 or more"
        )
    places: list[str] = []
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        if not _is_machinery(frame):
            code = frame.f_code
            places.append(f"{code.co_filename}:{line} in {code.co_name}")
        if len(places) == int(text):
            break
    return tuple(places) or ("<unknown>",)


def _is_machinery(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return f"{name}.".startswith(_MACHINERY) or frame.f_code.co_filename.startswith("<@beartype")
