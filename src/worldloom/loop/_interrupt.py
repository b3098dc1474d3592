"""Signals during a run: the first ends it after the running chunk, a second Ctrl-C at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from worldloom._signals import ending_signals


class Interrupt:
    """Whether somebody has asked the run to end, and by which signal."""

    def __init__(self):
        self.signal = 0
        """The number of the signal; 0 if there was none."""
        self._before: dict[int, Any] = {}

    def pass_on(self) -> None:
        """Give the signal to the handler that the program itself has for it, if it has one.

        A handler of the program's own often tells a scheduler to start it again. Call this when
        all is saved.
        """
        own = self._before.get(self.signal)
        if callable(own) and own is not signal.default_int_handler:
            own(self.signal, None)


@contextlib.contextmanager
def catch_interrupt() -> Iterator[Interrupt]:
    """Turn a signal that asks the run to end into a flag.

    These are SIGINT, SIGTERM, SIGHUP, and what `WORLDLOOM_SAVE_SIGNALS` names. A second SIGINT is
    handled as before the run: by default it raises `KeyboardInterrupt`. The others may come as
    often as they like, as they do when a scheduler signals a whole group of processes.

    The flag is never set outside the main thread, which alone can handle signals, nor by a signal
    that whoever started the process wants ignored, as `nohup` does with SIGHUP.
    """
    interrupt = Interrupt()
    signals = ending_signals()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def ask(number, frame):
        interrupt.signal = interrupt.signal or number
        if number == signal.SIGINT:
            signal.signal(number, interrupt._before[number])

    try:
        for number in signals:
            before = signal.getsignal(number)
            # None: a handler that is not Python's, and could not be put back.
            if before is not signal.SIG_IGN and before is not None:
                interrupt._before[number] = before
                signal.signal(number, ask)
        yield interrupt
    finally:
        for number, before in interrupt._before.items():
            signal.signal(number, before)
