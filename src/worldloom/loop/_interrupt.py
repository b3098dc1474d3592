"""Ctrl-C during a run: the first ends it after the running chunk, the second at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interrupt:
    """Whether the user has asked the run to end."""

    def __init__(self):
        self.asked = False


@contextlib.contextmanager
def catch_interrupt() -> Iterator[Interrupt]:
    """Turn the first SIGINT into a flag; the second raises `KeyboardInterrupt` as usual.

    The flag is never set outside the main thread, which alone can handle signals, and where
    whoever started the process wants SIGINT ignored, as `nohup` does.
    """
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield interrupt
        return

    def ask(signum, frame):
        interrupt.asked = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
