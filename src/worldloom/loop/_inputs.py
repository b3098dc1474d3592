"""The inputs of a run, handed to the device in windows of bounded size."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from worldloom.compile._frame import take_apart
from worldloom.loop._program import StepError


class Inputs:
    """Inputs for `length` steps: arrays whose leading axis is the step.

    Arrays that are on the device stay where they are. Host arrays, memory-mapped ones included,
    are sent window by window, so that inputs larger than memory can be run through.
    """

    def __init__(self, inputs: Any, length: int, budget: int):
        self._arrays, self.frame = take_apart(inputs)
        self._offset = 0
        self._stop = 0
        self._window: list[Any] = []
        for name, array in zip(self.frame.names("inputs"), self._arrays, strict=True):
            if np.ndim(array) == 0 or len(array) != length:
                raise StepError(
                    f"{name} has shape {list(np.shape(array))}; its leading axis must have one "
                    f"entry for each of the {length} steps"
                )
        if all(isinstance(array, jax.Array) for array in self._arrays):
            self.limit = length
            self._window, self._stop = self._arrays, length
        else:
            row = sum(array.nbytes // max(len(array), 1) for array in self._arrays)
            self.limit = max(1, min(length, budget // max(row, 1)))

    @property
    def present(self) -> bool:
        """Whether there are inputs at all."""
        return bool(self._arrays)

    def window(self, start: int, stop: int, sharding: Any) -> tuple[list[Any], int]:
        """Arrays that hold the inputs of steps `start` to `stop`, and the step they begin at."""
        if not (self._window and self._offset <= start and stop <= self._stop):
            end = start + self.limit
            self._window = [jax.device_put(self._pad(a[start:end]), sharding) for a in self._arrays]
            self._offset, self._stop = start, end
        return self._window, self._offset

    def _pad(self, rows: Any) -> np.ndarray:
        """All windows have one shape, so that one program takes them all."""
        window = np.zeros((self.limit, *rows.shape[1:]), rows.dtype)
        window[: len(rows)] = rows
        return window
