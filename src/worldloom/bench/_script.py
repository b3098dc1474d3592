"""What a benchmark script needs around its measurements: options, a place for results."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from worldloom.bench._machine import Machine, is_quiet, load
from worldloom.bench._record import Case, Figure, Findings, Growth, Record
from worldloom.bench._result import Comparison, figure


class Script:
    """A benchmark script: its options, and what it has found so far.

    `worldloom bench` runs every script of the folder `benchmarks` and gathers what it wrote with
    `--record`. A script says in a constant `GROUP` which group it belongs to. All of them take
    `--quick` (few rounds, small sizes), `--alone` (nothing that needs an environment of its own),
    `--rounds` and `--record FILE`.

    **Arguments:**

    - `doc`: what the script says of itself; the first line is its help.
    - `group`: its group.
    - `rounds`: how many, where none are asked for: in full, and in a hurry.

    ```python
    from worldloom import bench

    script = bench.Script("Two ways to add.", group="arithmetic", rounds=(9, 3))
    options = script.start(["--quick"])
    found = bench.compare(
        {"loop": lambda: [x + 1 for x in range(99)], "map": lambda: list(map(int, range(99)))},
        rounds=options.rounds, seconds=1e-4, title="a list of 99 numbers",
    )
    script.case(found, ours="map", naive="loop", show=False)
    record = script.finish()
    assert record.findings[0].cases[0].ratio("loop").value > 0
    ```
    """

    def __init__(self, doc: str | None, *, group: str, rounds: tuple[int, int] = (9, 3)):
        self.parser = argparse.ArgumentParser(description=(doc or "").strip().partition("\n")[0])
        add = self.parser.add_argument
        add("--quick", action="store_true", help="few rounds and small sizes")
        add("--alone", action="store_true", help="nothing that needs an environment of its own")
        add("--rounds", type=int, help=f"samples a variant; {rounds[0]}, quick {rounds[1]}")
        add("--record", type=Path, metavar="FILE", help="write everything that was measured")
        self._group, self._rounds = group, rounds
        self._cases: list[Case] = []
        self._growths: list[Growth] = []
        self._figures: list[Figure] = []
        self._uncached = contextlib.ExitStack()

    def start(self, words: Sequence[str] | None = None) -> argparse.Namespace:
        """Read the options (more may be added to `parser` before), and start the clock.

        Until `finish`, every program is compiled and none is found on disk, so that compile times
        are true.
        """
        self._options = self.parser.parse_args(words)
        if self._options.rounds is None:
            self._options.rounds = self._rounds[self._options.quick]
        # The machine is described at the end: it asks for JAX's devices, and which there are is
        # decided by what the script does first.
        self._load = load()
        self._uncached.enter_context(no_cache())
        self._began = time.perf_counter()
        self._created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return self._options

    @property
    def quiet(self) -> bool:
        """Whether the machine was quiet at the start: only then is a promise judged."""
        return is_quiet(self._load)

    def case(
        self,
        comparison: Comparison,
        *,
        ours: str,
        naive: str | None = None,
        compiling: Mapping[str, float | int] | None = None,
        memory: Mapping[str, float | int] | None = None,
        memory_of: str = "",
        show: bool = True,
    ) -> Case:
        """Keep a comparison and print its table: see [`worldloom.bench.Case`][]."""
        made = Case(comparison, ours, naive, compiling or {}, memory or {}, memory_of)
        self._cases.append(made)
        if show:
            print(comparison, flush=True)
        return made

    def growth(
        self,
        comparison: Comparison,
        *,
        axis: str,
        sizes: Mapping[str, float | int],
        memory: Mapping[str, float | int] | None = None,
        memory_of: str = "",
    ) -> Growth:
        """Keep how cost grows with a size, and print it: see [`worldloom.bench.Growth`][]."""
        made = Growth(comparison, axis, sizes, memory or {}, memory_of)
        self._growths.append(made)
        print(comparison, flush=True)
        return made

    def figure(
        self, name: str, value: float | int, unit: str = "", *, limit: float | int | None = None
    ) -> Figure:
        """Keep one number and print it."""
        made = Figure(name, value, unit, limit)
        self._figures.append(made)
        held = "" if limit is None else f"  (limit {limit:g}{'' if value <= limit else ': BROKEN'})"
        print(f"{name}: {figure(value)} {unit}{held}", flush=True)
        return made

    def finish(self) -> Record:
        """Write the file that was asked for, and return everything."""
        found = Findings(
            script=Path(sys.argv[0]).stem,
            group=self._group,
            quick=self._options.quick,
            alone=self._options.alone,
            created=self._created,
            took=round(time.perf_counter() - self._began, 1),
            machine=dataclasses.replace(Machine.here(), load=self._load),
            cases=tuple(self._cases),
            growths=tuple(self._growths),
            figures=tuple(self._figures),
        )
        self._uncached.close()
        record = Record((found,))
        if self._options.record is not None:
            record.to_json(self._options.record)
        return record


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled function, with what it took to compile it and what it needs."""

    call: Callable[..., Any]
    seconds: float
    """To trace and compile it; nothing comes from a cache."""

    temporaries: int
    """Bytes beside arguments and results, as XLA says."""

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        return self.call(*args)


def build(fn: Callable[..., Any], *args: Any) -> Program:
    """Compile a function for some arguments, and say what that took and what it needs.

    ```python
    import jax.numpy as jnp
    from worldloom import bench

    program = bench.build(lambda x: (x @ x).sum(), jnp.ones((8, 8)))
    assert program(jnp.ones((8, 8))) == 512
    assert program.seconds > 0
    ```
    """
    import jax

    with no_cache():
        began = time.perf_counter()
        compiled = jax.jit(fn).lower(*args).compile()
        seconds = time.perf_counter() - began
    memory = compiled.memory_analysis()
    return Program(compiled, seconds, 0 if memory is None else memory.temp_size_in_bytes)


@contextlib.contextmanager
def no_cache() -> Iterator[None]:
    """Inside, every program is compiled and none is found on disk: its compile time is true.

    ```python
    import jax
    from worldloom import bench

    with bench.no_cache():
        jax.jit(lambda x: x + 1)(1.0)
    ```
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    before = jax.config.jax_enable_compilation_cache  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX looks at the setting once, and remembers
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()
