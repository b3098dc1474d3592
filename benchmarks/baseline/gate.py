"""The gate: no ratio to naive code may fall below what `gate.json` kept, noise allowed for.

Ours and the naive version of the same code are timed in the same run, in turn. A ratio passes
while it is within the tolerance and the intervals of both runs; one that does not is measured
again, twice, with more rounds, before it is called slower. On a busy machine, seconds of the
processor are compared instead of seconds on the wall. Exits with 1 on a slow-down.

    python benchmarks/baseline/gate.py                     # or: make bench-gate
    python benchmarks/baseline/gate.py store loop          # some cases
    python benchmarks/baseline/gate.py --slow loop=2       # plant a slow-down: the gate must fail
    python benchmarks/baseline/gate.py --keep              # write gate.json anew: quiet machine
"""

from __future__ import annotations

import argparse
import atexit
import dataclasses
import functools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "trace")]

from worldloom import bench, mesh  # noqa: E402

NAIVE, OURS = "naive", "ours"
KEPT = HERE / "gate.json"


@functools.cache
def scratch() -> Path:
    """A folder that is gone when this process is."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclasses.dataclass(frozen=True)
class Work:
    """The two ways to do some work, and how much of it a call of each does."""

    naive: Callable[[], Any]
    ours: Callable[[], Any]
    items: tuple[float, float] = (1, 1)


def arc() -> Work:
    """Edits of ARC grids: bits with compaction; a vmapped switch over cells."""
    import arc_step  # pyright: ignore[reportMissingImports]

    few, many = 4, 64
    sides = arc_step.programs(many, few)
    (naive, their_args), (ours, our_args) = sides[arc_step.NAIVE], sides[arc_step.OURS]
    return Work(lambda: naive(*their_args), lambda: ours(*our_args), (few * many, few * many))


def trace() -> Work:
    """Particles on a grid: one compiled loop; the same arithmetic in vectorised NumPy."""
    import rival_numpy  # pyright: ignore[reportMissingImports]
    import workload  # pyright: ignore[reportMissingImports]

    import jaxtrace as jt
    from jaxtrace.tracking.boundary import reflective_boundary

    few, many = 4, 60
    axis, times, data = workload.grid()
    field = jt.StructuredField(data, (axis, axis, axis), times)
    tracker = jt.create_tracker("rk4", field, reflective_boundary([[0.0] * 3, [1.0] * 3]))
    seeds, span = workload.seeds(), (0.0, many * workload.STEP)
    naive = rival_numpy.setup(steps=few, folder=str(scratch()), name=NAIVE, scipy=False)
    return Work(
        naive, lambda: tracker.track_particles(seeds, span, many).positions[-1], (few, many)
    )


def causal_models() -> Work:
    """Random causal models with their data: drawn on the device; in loops of Python."""
    import acbo_speedup  # pyright: ignore[reportMissingImports]
    import jax

    from acbo.scm import Family

    family, rng, many = Family(), random.Random(0), 256
    draw = jax.jit(jax.vmap(lambda key: family.study(key, 5, 100, interventional=0.5)))
    keys = jax.random.split(jax.random.key(0), many)
    plain = acbo_speedup.plain_mechanism(rng)
    naive = lambda: acbo_speedup.python_scm(rng, 5, 100, plain)  # noqa: E731
    return Work(naive, lambda: draw(keys), (1, many))


def loop() -> Work:
    """10,000 steps with records: `worldloom.run`; a Python loop around a compiled step."""
    import engine_overhead  # pyright: ignore[reportMissingImports]
    import jax
    import jax.numpy as jnp

    import worldloom as wl

    few, many = 100, 10_000
    start, step = jnp.ones((64, 16)), jax.jit(engine_overhead.step)

    def naive() -> Any:
        x, kept = start, []
        for t in range(few):
            x, y = step(x, t)
            kept.append(y)
        return x, kept

    def ours() -> Any:
        result = wl.run(engine_overhead.step, start, length=many, save=wl.Every(), progress=False)
        return result.state, result.records

    return Work(naive, ours, (few, many))


def call() -> Work:
    """One call with a module of ten arrays: `compiled`; `eqx.filter_jit`."""
    import engine_overhead  # pyright: ignore[reportMissingImports]
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import worldloom as wl

    module = engine_overhead.Leaves([jnp.zeros(4) for _ in range(10)])
    increment = lambda module: jax.tree.map(lambda x: x + 1, module)  # noqa: E731
    filtered, compiled = eqx.filter_jit(increment), wl.compiled(increment)
    return Work(lambda: filtered(module), lambda: compiled(module))


def store() -> Work:
    """Files of grid states: `store.save`; `np.savez_compressed`."""
    import store_formats  # pyright: ignore[reportMissingImports]

    from worldloom import store

    arrays = store_formats.grid_states(1024)
    return Work(
        lambda: store_formats.write_npz(scratch() / "naive.npz", arrays),
        lambda: store.save(scratch() / "ours.loom", arrays),
    )


def worlds() -> Work:
    """Reaction-diffusion worlds: all in one program; one by one in NumPy."""
    import jax

    import worldloom as wl
    from worldloom.demo._naive import numpy_loop
    from worldloom.demo._world import SUBSTEPS, advance, begin

    few, start = 8, begin(jax.random.key(0), 16)
    step = jax.tree_util.Partial(advance)
    ours = lambda: wl.run(step, start, length=1).state  # noqa: E731
    return Work(numpy_loop(start, few), ours, (few, 256 * SUBSTEPS))


CASES: dict[str, Callable[[], Work]] = {
    made.__name__: made for made in (call, store, loop, worlds, causal_models, trace, arc)
}


def slowed(fn: Callable[[], Any], factor: float) -> Callable[[], Any]:
    """The same, keeping a core busy until the call has taken `factor` times its time."""
    import jax

    clocks = (time.perf_counter, time.process_time)

    def run() -> Any:
        began = [(clock, clock()) for clock in clocks]
        result = jax.block_until_ready(fn())
        until = [(clock, start + factor * (clock() - start)) for clock, start in began]
        while any(clock() < end for clock, end in until):
            pass
        return result

    return run


def measure(title: str, work: Work, rounds: int) -> bench.Comparison:
    """Both ways in turn."""
    items: dict[str, float] = dict(zip((NAIVE, OURS), work.items, strict=True))
    variants = {NAIVE: work.naive, OURS: work.ours}
    return bench.compare(variants, rounds=rounds, seconds=0.1, items=items, title=title)


def by_processor(comparison: bench.Comparison) -> bench.Comparison:
    """The same comparison of processor seconds."""
    timings = [dataclasses.replace(t, wall=t.cpu) for t in comparison.timings]
    return dataclasses.replace(comparison, timings=tuple(timings))


def check(
    cases: Mapping[str, Callable[[], Work]],
    kept: bench.Record,
    *,
    busy: bool,
    tolerance: float,
    rounds: int,
    slow: Mapping[str, float],
) -> list[str]:
    """Measure every case; the names of those that are slower than they were."""
    failed = []
    judged = by_processor if busy else lambda comparison: comparison
    for name, make in cases.items():
        began = time.perf_counter()
        work = make()
        if name in slow:
            work = dataclasses.replace(work, ours=slowed(work.ours, slow[name]))
        again = lambda count, name=name, work=work: judged(measure(name, work, count))  # noqa: E731
        expected = judged(kept.case("gate", name).comparison)
        try:
            result = bench.guard(again, expected, rounds=rounds, tolerance=tolerance)
        except bench.RegressionError as error:
            failed.append(name)
            result = error.result
        for line in str(result).splitlines():
            print(f"{name}: {line}  [{time.perf_counter() - began:.0f} s]", flush=True)
    return failed


def keep(cases: Mapping[str, Callable[[], Work]], path: Path, rounds: int) -> None:
    """Measure every case and write the file; cases that are not measured stay in it."""
    machine = bench.Machine.here()
    began, made = time.perf_counter(), {}
    if path.exists():
        made = {case.title: case for case in bench.Record.from_json(path).findings[0].cases}
    for name, make in cases.items():
        made[name] = bench.Case(measure(name, make(), rounds), OURS, NAIVE)
        print(f"{name}: {made[name].ratio(NAIVE)}", flush=True)
    created = next(iter(made.values())).comparison.created
    took = round(time.perf_counter() - began, 1)
    found = bench.Findings(
        "gate", "gate", False, True, created, took, machine, tuple(made.values())
    )
    print(bench.Record((found,)).to_json(path))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--keep", action="store_true", help="write the file anew")
    parser.add_argument("--baseline", type=Path, default=KEPT, help="the file; gate.json here")
    parser.add_argument("--tolerance", type=float, default=0.25, help="loss that is accepted")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--busy", action="store_true", help="go by processor seconds in any case")
    parser.add_argument("--slow", action="append", default=[], metavar="CASE=FACTOR")
    options = parser.parse_args(words)
    slow = {name: float(factor) for name, _, factor in (s.partition("=") for s in options.slow)}
    if unknown := [name for name in (*options.cases, *slow) if name not in CASES]:
        parser.error(f"no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    mesh.use_every_core()
    cases = {name: CASES[name] for name in options.cases or CASES}
    if options.keep:
        keep(cases, options.baseline, 3 * options.rounds)
        return 0
    kept = bench.Record.from_json(options.baseline)
    machine = bench.Machine.here()
    busy = options.busy or not machine.quiet
    seconds = "processor seconds, because the machine is busy" if busy else "seconds on the wall"
    print(f"load {machine.load}: going by {seconds}")
    given = {"tolerance": options.tolerance, "rounds": options.rounds, "slow": slow}
    failed = check(cases, kept, busy=busy, **given)
    if failed:
        print(f"bench-gate: slower than {options.baseline.name} says: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
