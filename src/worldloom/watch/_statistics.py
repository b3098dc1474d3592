"""How often each callback was called, how long it took, how often it failed."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading

from worldloom.watch._tables import print_table

_log = logging.getLogger("worldloom.watch")
_lock = threading.Lock()


@dataclasses.dataclass
class _Record:
    calls: int = 0
    errors: int = 0
    skipped: int = 0
    total: float = 0.0
    shortest: float = math.inf
    longest: float = 0.0


_records: dict[str, _Record] = {}


def note_call(name: str, seconds: float) -> None:
    """Count a call of the callback `name` that took `seconds`."""
    with _lock:
        record = _records.setdefault(name, _Record())
        record.calls += 1
        record.total += seconds
        record.shortest = min(record.shortest, seconds)
        record.longest = max(record.longest, seconds)


def note_error(name: str) -> None:
    """Count the exception being handled, and log it if it is the first of the callback `name`."""
    with _lock:
        record = _records.setdefault(name, _Record())
        record.errors += 1
        first = record.errors == 1
    if first:
        _log.error(
            "the callback %r failed; the program goes on. Further failures are counted in "
            "watch.statistics() and not logged",
            name,
            exc_info=True,
        )


def note_skip(name: str) -> None:
    """Count a call that the rate of the callback `name` turned away."""
    with _lock:
        _records.setdefault(name, _Record()).skipped += 1


def statistics() -> dict[str, dict[str, int | float]]:
    """Statistics of every callback since the last `reset_statistics`, by name.

    Each has `total_calls`, `error_count`, `skipped`, `avg_time_ms`, `min_time_ms`,
    `max_time_ms` and `total_time_ms`. `skipped` counts the calls that a `Rate` turned away on
    the host; steps that were skipped on the device never get here.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import watch

    @jax.jit
    def step(x):
        watch.callback(lambda x: None, x, name="look")
        return x + 1

    step(jnp.zeros(3)).block_until_ready()
    assert watch.statistics()["look"]["total_calls"] == 1
    ```
    """
    with _lock:
        return {
            name: {
                "total_calls": record.calls,
                "error_count": record.errors,
                "skipped": record.skipped,
                "avg_time_ms": 1e3 * record.total / record.calls if record.calls else 0.0,
                "min_time_ms": 1e3 * record.shortest if record.calls else 0.0,
                "max_time_ms": 1e3 * record.longest,
                "total_time_ms": 1e3 * record.total,
            }
            for name, record in _records.items()
        }


def reset_statistics() -> None:
    """Forget all statistics. The next failure of each callback is logged again."""
    with _lock:
        _records.clear()


def print_statistics() -> None:
    """Print the statistics as a table, the costliest callback first."""
    counts = ("total_calls", "error_count", "skipped")
    times = ("avg_time_ms", "min_time_ms", "max_time_ms", "total_time_ms")
    ranked = sorted(statistics().items(), key=lambda row: -row[1]["total_time_ms"])
    rows = [
        (name, *(str(row[key]) for key in counts), *(f"{row[key]:.3f}" for key in times))
        for name, row in ranked
    ]
    columns = ("name", "calls", "errors", "skipped", "avg ms", "min ms", "max ms", "total ms")
    print_table("Callbacks", columns, rows)
