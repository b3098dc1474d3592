"""Ends the processes of a launcher that died before it could do so itself.

Run as a program of its own by the launcher: reads one process group a line, then `done`. If the
input ends without it, the launcher is gone, and every group is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read groups until the launcher says that all is done, or dies."""
    groups = []
    for line in sys.stdin:
        if line.strip() == "done":
            return
        groups.append(int(line))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
