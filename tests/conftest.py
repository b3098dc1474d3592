"""Strict JAX for every test: no silent promotion, no silent broadcasting, two devices."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

# Tests, and the processes that they start, keep compiled programs away from the user's own. One
# folder a worker: JAX does not write entries atomically.
_ROOT = Path(__file__).resolve().parent.parent
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["WORLDLOOM_CACHE_DIR"] = str(_ROOT / ".pytest_cache" / f"jax-{_WORKER}")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their children too.
signal.signal(signal.SIGINT, signal.default_int_handler)

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# CI machines are slow and shared: a deadline would only find that out.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium to look at pages with. Missing: a skip here, a failure in CI."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    message = "no Chromium on PATH: `apt-get install chromium` to run the browser tests"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def no_recompile() -> Callable:
    """A context manager under which any compilation fails the test."""
    from worldloom import no_compiles

    return no_compiles


@pytest.fixture(autouse=True)
def same_settings() -> Iterator[None]:
    """What a test, an example or a guide tells `jaxtrace.configure` ends with it."""
    config = sys.modules.get("jaxtrace._config")
    before = config and config._settings
    yield
    if config := sys.modules.get("jaxtrace._config"):
        config._settings = before or config.Settings()


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Forget compiled programs between modules, before there is no room for more.

    Each takes a few mappings of memory, and Linux lets a process have 65,530. One that has no more
    of them dies while it compiles.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """At the end: which tests were skipped, and what to install for them. One line a reason."""
    rooms: dict[str, Counter[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        # `(file, line, reason)`, or the text of an exception.
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        reason = reason.strip().removeprefix("Skipped: ")
        # A missing module that a test imports says nothing of how to install it.
        if missing := re.match(r"could not import '(\w+)", reason):
            reason = (
                f"no module {missing[1]}: `make test` installs it, `pip install -e '.[dev]'` too"
            )
        room = report.nodeid.partition("::")[0].rpartition("/")[0]
        rooms.setdefault(reason, Counter())[room] += 1
    if not rooms:
        return
    terminalreporter.section("Not tested")
    for reason, counts in sorted(rooms.items()):
        number = sum(counts.values())
        terminalreporter.write_line(f"{number} test{'s' * (number > 1)}: {reason}")
        for room, times in sorted(counts.items()):
            terminalreporter.write_line(f"    {times:4} in {room}")
