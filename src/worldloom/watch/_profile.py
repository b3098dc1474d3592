"""Where the time of compiled programs goes: a trace on disk, and its top kernels as a table."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax

from worldloom._errors import WorldloomError
from worldloom.watch._tables import print_table


class ProfileError(WorldloomError, RuntimeError):
    """There is no profile to look at."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One operation of one compiled program.

    **Attributes:**

    - `name`, `program`: what XLA calls it, and the program it is part of.
    - `total_ms`: time spent in it, without the operations inside it (of a loop, say).
    - `calls`: how often the trace has it.
    - `share`: its part of the time of all kernels, between 0 and 1.
    """

    name: str
    program: str
    total_ms: float
    calls: int
    share: float


class Profile:
    """What `profile` recorded. Complete after the `with` block."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._table: tuple[Kernel, ...] | None = None
        self._file: Path | None = None

    @property
    def table(self) -> tuple[Kernel, ...]:
        """All kernels, the costliest first."""
        if self._table is None:
            raise ProfileError(
                "the profile is not complete; its table exists after the `with watch.profile(...)` "
                "block has ended"
            )
        return self._table

    @property
    def file(self) -> Path:
        """The trace, to open in XProf or TensorBoard."""
        if self._file is None:
            raise ProfileError("the profile is not complete; its file exists after the block")
        return self._file

    def print(self, top: int = 20) -> None:
        """Print the `top` costliest kernels."""
        rows = [
            (k.name, k.program, f"{k.total_ms:.3f}", str(k.calls), f"{100 * k.share:.1f} %")
            for k in self.table[:top]
        ]
        print_table(f"Top {len(rows)} of {len(self.table)} kernels", COLUMNS, rows, left=2)


COLUMNS = ("kernel", "program", "total ms", "calls", "share")


@contextlib.contextmanager
def profile(folder: str | os.PathLike[str]) -> Iterator[Profile]:
    """Record what runs inside the `with` block to `folder`, and parse it.

    Waits for arrays still being computed when the block ends, so that they are in it. Compile
    before the block, or the table also shows what compilation runs.

    ```python
    import tempfile
    import jax
    import jax.numpy as jnp
    from worldloom import watch

    program = jax.jit(lambda x: jnp.sort(x @ x))
    x = program(jnp.ones((64, 64)))
    with tempfile.TemporaryDirectory() as folder:
        with watch.profile(folder) as profile:
            x = program(x)
        profile.print()
    ```
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise ProfileError(f"the folder {str(target)!r} cannot be made: {reason}") from error
    before = _traces(target)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # frames of Python are many, and none is a kernel
    result = Profile(target)
    with jax.profiler.trace(str(target), profiler_options=options):
        yield result
        jax.block_until_ready([x for x in jax.live_arrays() if not x.is_deleted()])
    written = [file for file, time in _traces(target).items() if before.get(file) != time]
    if not written:
        raise ProfileError(f"the profiler wrote no trace to {target}; is the disk full?")
    result._file = max(written, key=lambda file: file.stat().st_mtime_ns)
    result._table = read_kernels(result._file)


def _traces(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.glob("plugins/profile/*/*.xplane.pb")}


def read_kernels(file: str | os.PathLike[str]) -> tuple[Kernel, ...]:
    """The kernels in a trace (`.xplane.pb`), the costliest first."""
    time: dict[tuple[str, str], float] = collections.defaultdict(float)
    calls: collections.Counter[tuple[str, str]] = collections.Counter()
    with warnings.catch_warnings():
        # On Python 3.12+ jaxlib makes types that are warned about, and aborts if that raises.
        warnings.simplefilter("ignore", DeprecationWarning)
        data = jax.profiler.ProfileData.from_file(os.fspath(file))
        for plane in data.planes:
            for line in plane.lines:
                for kernel, own_ns in _own_times(line.events):
                    time[kernel] += own_ns
                    calls[kernel] += 1
    total = sum(time.values())
    if not total:
        raise ProfileError(
            f"{os.fspath(file)} has no kernels: no compiled program ran inside the block, or it "
            "had not finished when the block ended"
        )
    return tuple(
        Kernel(name, program, ns / 1e6, calls[program, name], ns / total)
        for (program, name), ns in sorted(time.items(), key=lambda item: -item[1])
    )


def _own_times(events: Iterable[Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """Kernels among the events of one thread, with their time less that of kernels inside."""
    spans = []
    for event in events:
        stats = dict(event.stats)
        if "hlo_op" in stats:
            kernel = (str(stats.get("hlo_module", "")), str(stats["hlo_op"]))
            spans.append((event.start_ns, -event.duration_ns, kernel))
    open_spans: list[list[Any]] = []  # [end, kernel, own time], outermost first
    for start, negative_duration, kernel in sorted(spans):
        while open_spans and open_spans[-1][0] <= start:
            _, outer, own = open_spans.pop()
            yield outer, own
        if open_spans:
            open_spans[-1][2] += negative_duration
        open_spans.append([start - negative_duration, kernel, -negative_duration])
    for _, kernel, own in open_spans:
        yield kernel, own
