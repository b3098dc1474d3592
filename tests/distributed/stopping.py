"""How a run of the tests ends in the middle."""

from __future__ import annotations

import os
import signal

import worldloom as wl


class StopAt(wl.NoProgress):
    """Ends a run when so many steps are done: dies, or raises."""

    def __init__(self, steps: int, *, die: bool):
        self.steps, self.die = steps, die

    def update(self, done: int) -> None:
        if done >= self.steps:
            if self.die:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("stopped in the middle")
