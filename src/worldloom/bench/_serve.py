"""Runs inside the environment of a rival, where nothing of ours is installed.

Called as `python serve.py SCRIPT OPTIONS`, where SCRIPT defines `setup(**options)` that returns a
function without arguments, and OPTIONS is a JSON object. It speaks lines:

    -> ready {"packages": {...}}       the script is set up
    <- run N                           call it N times
    -> seconds WALL CPU                how long that took
    -> error "TRACEBACK"               instead of either; the process ends
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import traceback


def main() -> int:
    """Set up the script and answer until the other side closes the pipe."""
    # What the script prints must not be mistaken for an answer: it goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(*words: object) -> None:
        print(*words, file=answers, flush=True)

    script, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        run = load(script)["setup"](**options)
        packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        say("ready", json.dumps({"packages": packages}))
        for line in sys.stdin:
            command, repeats = line.split()
            assert command == "run", line
            say("seconds", *clock(run, int(repeats)))
    except BaseException:
        say("error", json.dumps(traceback.format_exc().strip()))
        return 1
    return 0


def load(path: str) -> dict:
    """The names that the script defines, its own folder being importable."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    names = {"__name__": "rival", "__file__": path}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)
    if not callable(names.get("setup")):
        raise TypeError(path + " does not define setup(**options)")
    return names


def clock(run, repeats: int) -> tuple:
    """Seconds on the wall and of all cores; arrays of JAX are waited for."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeats):
        result = run()
        if "jax" in sys.modules:
            sys.modules["jax"].block_until_ready(result)
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    sys.exit(main())
