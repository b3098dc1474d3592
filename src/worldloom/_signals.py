"""The signals that ask a run to save and end, and how a process that got one ends."""

from __future__ import annotations

import os
import signal
import sys
from types import TracebackType
from typing import Any

from worldloom._errors import WorldloomError

SAVE_SIGNALS = "WORLDLOOM_SAVE_SIGNALS"
"""Names more of them, for schedulers that announce the end in a way of their own."""

_ALWAYS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# No handler can be had for the first two; Python or the system itself needs the others.
_NEVER = ("SIGKILL", "SIGSTOP", "SIGCHLD", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")


class SignalError(WorldloomError, ValueError):
    """`WORLDLOOM_SAVE_SIGNALS` does not name signals that a run can be told to end by."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGINT, SIGTERM, SIGHUP, and those that `WORLDLOOM_SAVE_SIGNALS` names: `USR1, USR2`."""
    found: list[signal.Signals] = list(_ALWAYS)
    for word in os.environ.get(SAVE_SIGNALS, "").replace(",", " ").split():
        name = "SIG" + word.upper().removeprefix("SIG")
        if name in _NEVER or name not in signal.Signals.__members__:
            raise SignalError(
                f"{SAVE_SIGNALS}={os.environ[SAVE_SIGNALS]!r}: {word!r} is no signal that can ask "
                "a run to end; expected names such as USR1 or SIGUSR2, separated by commas"
            )
        if signal.Signals[name] not in found:
            found.append(signal.Signals[name])
    return tuple(found)


def exit_code(stop: BaseException) -> int:
    """The exit code of a process that `stop`, a `KeyboardInterrupt`, ends: 128 + the signal."""
    return 128 + getattr(stop, "signal", signal.SIGINT)


def exit_with_signal(kind: type[BaseException]) -> None:
    """From now on a process that an exception of this kind ends, uncaught, exits with its code.

    Python exits with 1 for all but a plain `KeyboardInterrupt`. A process must not send itself the
    signal instead: as the first process of a container it would survive that.
    """
    before = sys.excepthook
    if getattr(before, "exits_with_signal", False):
        return

    def hook(raised: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        before(raised, error, trace)
        if issubclass(raised, kind):
            raise SystemExit(exit_code(error))

    hook.exits_with_signal = True  # pyright: ignore[reportFunctionMemberAccess]
    sys.excepthook = hook
