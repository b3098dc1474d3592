"""How many steps the next chunk takes."""

from __future__ import annotations

import time

from worldloom._processes import agree
from worldloom.loop._setup import Setup

# Rare enough that the host costs nothing, often enough that progress is seen to move.
_CHUNK_SECONDS = 0.25


class Pace:
    """Chooses chunks of about a quarter of a second, from the time that chunks before took.

    **Arguments:**

    - `setup`: the run; its buffers limit a chunk.
    - `length`: number of steps of the run.
    - `steps`: a fixed number of steps in a chunk, if the user wants one.
    """

    def __init__(self, setup: Setup, length: int, steps: int | None):
        if steps is not None and steps < 1:
            raise ValueError(f"chunk_steps={steps}: expected at least 1")
        self.length = length
        self._setup = setup
        self._fixed = steps
        self._steps = steps or 1
        self._chunks = 0
        self._began = 0.0

    @property
    def known(self) -> bool:
        """Whether the time of a step is known well enough to send chunks ahead."""
        return self._fixed is not None or self._chunks >= 2

    def next(self, done: int) -> int:
        """The step at which a chunk that begins at `done` should end."""
        (steps,) = agree(self._steps)
        furthest = self._setup.furthest(done, self.length)
        block = self._setup.program.block
        stop = (done + max(steps, block)) // block * block if self._fixed is None else done + steps
        return min(stop, furthest)

    def sent(self) -> None:
        """A chunk has been sent to an idle device, or queued behind another."""
        if not self.known:
            self._began = time.perf_counter()

    def received(self, steps: int) -> None:
        """A chunk of so many steps is complete."""
        now = time.perf_counter()
        self._chunks += 1
        if self._fixed is None and steps:
            second = max((now - self._began) / steps, 1e-9)
            self._steps = max(1, min(int(_CHUNK_SECONDS / second), 2**31 - 1 - self.length))
        self._began = now
