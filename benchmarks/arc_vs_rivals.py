"""ARC worlds against public JaxARC 1.0.3, ARCLE 0.2.6, and the same step written in C.

All sides do the same work: ARC-AGI-1 training tasks on a canvas of 30 x 30, all 35 operations at
random on random points, boxes or masks, a reward and an observation every step, and a new episode
where one ends. The rivals come from PyPI into environments of their own, run in processes of their
own, and take turns with us, round by round; a ratio is the median over rounds, with its 95 %
interval. The C code is the ceiling: what the processor could do.

    python benchmarks/arc_vs_rivals.py [--quick] [--kinds bbox] [--batches 256 1024] [--rounds 9]
    python benchmarks/arc_vs_rivals.py --alone          # us and the C code, nothing to install
    python benchmarks/arc_vs_rivals.py --loop compile   # the time to compile a step, in turn
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from arc.actions import draw
from arc.ceiling import Ceiling, compare_with_library
from rich import box
from rich.console import Console
from rich.table import Table

import jaxarc
from jaxarc.data import TaskSet, load
from jaxarc.envs import (
    BboxAction,
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    PointAction,
    UnifiedActionConfig,
)
from jaxarc.envs._environment import _step as stepping  # the program under `env.step`
from worldloom import bench

GROUP = "arc"
HERE = Path(__file__).parent / "arc"
OURS, JAXARC, ARCLE = "ours", "jaxarc 1.0.3", "ARCLE 0.2.6"
ALONE = "jaxarc, no vmap"
ACTIONS = {"point": PointAction, "bbox": BboxAction, "mask": MaskAction}
THREADS = (1, 2)

# Steps of one call by batch, so that a call takes some tenths of a second on two quiet cores.
OUR_STEPS = {1: 5000, 256: 512, 1024: 256, 4096: 64}
OUR_DISPATCHES = {1: 512, 256: 128, 1024: 64, 4096: 32}
THEIR_STEPS = {1: 1000, 256: 16, 1024: 4, 4096: 2}
ARCLE_STEPS = 5000
ARCLE_BATCH = 1024  # the batch of ours that ARCLE is compared with
COMPILED_WORLDS = 1024


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the result: the kind of action, the worlds, and who drives the loop."""

    kind: str
    batch: int
    dispatch: bool

    @property
    def title(self) -> str:
        """As in `bbox, 1024 worlds, rollout`."""
        how = "step by step from Python" if self.dispatch else "rollout"
        return f"{self.kind}, {self.batch} worlds, {how}"

    @property
    def target(self) -> float:
        """Times the speed of public JaxARC that we promise."""
        return 5 if self.dispatch else 10 if self.batch == 1 else 60


@dataclasses.dataclass(frozen=True)
class Program:
    """What building a side's program took, and what it needs."""

    compiling: float
    """Seconds to trace and compile it."""

    compiling_busy: float
    """Processor seconds of that, which a busy machine disturbs less."""

    temporaries: float | None
    """Temporary bytes a world, as XLA says."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was found for one case."""

    case: Case
    comparison: bench.Comparison
    programs: dict[str, Program]


@dataclasses.dataclass(frozen=True)
class Bench:
    """What all cases share."""

    tasks: TaskSet
    folder: Path
    ceiling: Ceiling | None
    rounds: int
    devices: int
    alone: bool = False

    def measure(self, case: Case) -> Measured:
        """Time all sides of a case in turn."""
        reports = {
            name: self.folder / f"{place}.json"
            for place, name in enumerate((JAXARC, ALONE) if case.batch == 1 else (JAXARC,))
            if not self.alone
        }
        variants: dict[str, Callable[[], Any] | bench.Rival] = {}
        for name, report in reports.items():
            report.unlink(missing_ok=True)
            variants[name] = self._jaxarc(case, name == ALONE, report)
        items = dict.fromkeys(reports, case.batch * THEIR_STEPS[case.batch])
        env = _environment(self.tasks, case.kind)
        ours = _our_steps if case.dispatch else _our_rollout
        variants[OURS], ours_built = ours(env, case)
        items[OURS] = case.batch * (OUR_DISPATCHES if case.dispatch else OUR_STEPS)[case.batch]
        if not case.dispatch and case.batch == ARCLE_BATCH and not self.alone:
            variants[ARCLE] = self._arcle(case)
            items[ARCLE] = ARCLE_STEPS
        if not case.dispatch and self.ceiling is not None:
            for threads in THREADS:
                variants[in_c(threads)] = self.ceiling.program(
                    case.kind, batch=case.batch, length=OUR_STEPS[case.batch], threads=threads
                )
                items[in_c(threads)] = items[OURS]
        comparison = bench.compare(
            variants,
            baseline=OURS if self.alone else JAXARC,
            rounds=self.rounds,
            seconds=0.2,
            items=items,
            unit="steps",
            title=case.title,
        )
        programs = {OURS: ours_built}
        for name, report in reports.items():
            if report.exists():
                programs[name] = Program(**json.loads(report.read_text(encoding="utf-8")))
        return Measured(case, comparison, programs)

    def compile_step(self, kind: str) -> bench.Comparison:
        """Trace and compile the batched step of both sides in turn, from nothing."""
        case = Case(kind, COMPILED_WORLDS, True)
        env = _environment(self.tasks, kind)
        state, actions = _first_step(env, case, 1)

        def compiled():
            jax.clear_caches()
            return stepping.lower(state, actions[0], env.buffer, config=env.config).compile()

        report = self.folder / "compiling.json"
        return bench.compare(
            {JAXARC: self._jaxarc(case, False, report, compiling=True), OURS: compiled},
            baseline=JAXARC,
            rounds=self.rounds,
            seconds=0.2,
            title=f"compiling the step, {kind}, {COMPILED_WORLDS} worlds",
        )

    def _jaxarc(
        self, case: Case, alone: bool, report: Path, *, compiling: bool = False
    ) -> bench.Rival:
        return bench.Rival(
            HERE / "rival_jaxarc.py",
            requirements=("jaxarc==1.0.3", f"jax=={jax.__version__}"),
            options={
                "tasks": str(self.folder / "tasks"),
                "kind": case.kind,
                "batch": case.batch,
                "length": THEIR_STEPS[case.batch],
                "dispatch": case.dispatch,
                "alone": alone,
                "devices": self.devices if case.batch > 1 else 1,
                "report": str(report),
                "compiling": compiling,
            },
            environ={"JAX_PLATFORMS": "cpu"},
            timeout=1800,
        )

    def _arcle(self, case: Case) -> bench.Rival:
        return bench.Rival(
            HERE / "rival_arcle.py",
            requirements=("arcle==0.2.6",),
            options={"kind": case.kind, "length": ARCLE_STEPS},
        )


def in_c(threads: int) -> str:
    return f"C, {threads} thread{'s' if threads > 1 else ''}"


def _environment(tasks: TaskSet, kind: str) -> jaxarc.Environment:
    """No history, because the rivals keep none."""
    return jaxarc.make(
        tasks,
        config=JaxArcConfig(
            environment=EnvironmentConfig(record_history=False),
            action=UnifiedActionConfig(selection_format=kind),
        ),
    )


def _our_rollout(env: jaxarc.Environment, case: Case) -> tuple[Callable[[], Any], Program]:
    """Calls of `env.rollout`, its resets and all it keeps of every step included."""

    def policy(params, observation, key):
        return ACTIONS[case.kind](**draw(key, case.kind, observation.grid.shape[0]))

    keys = [jax.random.key(seed) for seed in range(256)]
    calls = 0

    def run():
        nonlocal calls
        calls += 1
        key = keys[calls % len(keys)]
        return env.rollout(policy, None, key, OUR_STEPS[case.batch], worlds=case.batch)

    first = _timed(lambda: jax.block_until_ready(run()))
    again = _timed(lambda: jax.block_until_ready(run()))
    return run, Program(first[0] - again[0], first[1] - again[1], None)


def _our_steps(env: jaxarc.Environment, case: Case) -> tuple[Callable[[], Any], Program]:
    """Calls of `env.step`, which also begins new episodes."""
    state, actions = _first_step(env, case, OUR_DISPATCHES[case.batch])
    built = []
    trace = lambda: stepping.lower(state, actions[0], env.buffer, config=env.config)  # noqa: E731
    times = _timed(lambda: built.append(trace().compile()))
    memory = built[0].memory_analysis()

    def run():
        nonlocal state
        shown = None
        for action in actions:
            state, *shown = env.step(state, action)
        return state, shown

    return run, Program(*times, memory.temp_size_in_bytes / case.batch)


def _first_step(env: jaxarc.Environment, case: Case, count: int) -> tuple[Any, list[Any]]:
    """A fresh state and so many actions."""
    state, _ = env.reset(jax.random.key(0), worlds=case.batch)
    draws = jax.jit(lambda key: ACTIONS[case.kind](**draw(key, case.kind, case.batch)))
    return state, [draws(jax.random.key(seed)) for seed in range(count)]


def _timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the wall and of all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def write_tasks(tasks: TaskSet, folder: Path) -> None:
    """The tasks in the official form, laid out as in the official repository."""
    target = folder / "data" / "training"
    target.mkdir(parents=True)
    for task in tasks.tasks:
        document = {
            part: [
                {"input": pair.input.tolist(), "output": pair.output.tolist()}
                for pair in pairs
                if pair.output is not None
            ]
            for part, pairs in (("train", task.demos), ("test", task.tests))
        }
        (target / f"{task.id}.json").write_text(json.dumps(document), encoding="utf-8")


def table(results: list[Measured], *, quiet: bool) -> Table:
    """One line a case; promises are judged on a quiet machine only."""
    shown = Table(box=box.SIMPLE_HEAD, title="ARC, thousand steps a second", title_justify="left")
    headings = ["actions", "worlds", "loop", OURS, JAXARC, "ratio (95 %)", "a CPU second", "wanted"]
    headings += [ARCLE, "ratio", "C, 1 / 2 threads", "of C's best"]
    headings += ["compile s (CPU s)", "temp. KB a world"]
    for heading in headings:
        shown.add_column(heading, justify="right", overflow="fold")
    for measured in results:
        rivals = [name for name in (JAXARC, ALONE) if name in measured.comparison.names]
        for rival in rivals or [JAXARC]:
            shown.add_row(*_row(measured, rival, quiet))
    return shown


def _row(measured: Measured, rival: str, quiet: bool) -> list[str]:
    case, comparison = measured.case, measured.comparison

    def rate(name: str) -> str:
        if name not in comparison.names:
            return ""
        if name in comparison.failures:
            return "failed"
        return f"{(comparison[name].rate or 0) / 1000:,.1f}"

    def ratio(to: str) -> bench.Ratio | None:
        if {OURS, to} & set(comparison.failures) or to not in comparison.names:
            return None
        return dataclasses.replace(comparison, baseline=to).ratio(OURS)

    def both(show: Callable[[Program], str]) -> str:
        built = [measured.programs.get(name) for name in (OURS, rival)]
        return " / ".join("-" if program is None else show(program) for program in built)

    to_rival, to_arcle = ratio(rival), ratio(ARCLE)
    best_c = max(
        (name for name in map(in_c, THREADS) if name in comparison.names),
        key=lambda name: comparison[name].rate or 0,
        default="",
    )
    to_c = ratio(best_c)
    met = "?"
    if quiet and to_rival is not None:
        met = "met" if to_rival.value >= case.target else "MISSED"
    return [
        case.kind,
        f"{case.batch}" if rival == JAXARC else "1, no vmap",
        "Python" if case.dispatch else "rollout",
        rate(OURS),
        rate(rival),
        str(to_rival or ""),
        "" if to_rival is None else f"{_work_a_cpu_second(comparison, rival):.1f}x",
        f"{case.target:g}x {met}" if rival == JAXARC else "",
        rate(ARCLE),
        str(to_arcle or ""),
        " / ".join(rate(in_c(threads)) for threads in THREADS) if best_c else "",
        "" if to_c is None else f"{to_c.value:.2f}",
        both(lambda program: f"{program.compiling:.1f} ({program.compiling_busy:.1f})"),
        both(lambda program: _kilobytes(program.temporaries)),
    ]


def _kilobytes(count: float | None) -> str:
    return "?" if count is None else f"{count / 1000:.1f}"


def _work_a_cpu_second(comparison: bench.Comparison, rival: str) -> float:
    """Ratio of steps a second of processor time, which a busy machine disturbs less."""
    ours, theirs = comparison[OURS], comparison[rival]
    assert ours.items is not None
    assert theirs.items is not None
    return (ours.items / ours.busy) / (theirs.items / theirs.busy)


def growth(tasks: TaskSet, script: bench.Script, options: argparse.Namespace) -> None:
    """Our rate over the number of worlds, all in turn."""
    env = _environment(tasks, "bbox")
    sides = {f"{batch} worlds": Case("bbox", batch, False) for batch in OUR_STEPS}
    found = bench.compare(
        {name: _our_rollout(env, case)[0] for name, case in sides.items()},
        rounds=options.rounds,
        seconds=0.2,
        items={name: case.batch * OUR_STEPS[case.batch] for name, case in sides.items()},
        unit="steps",
        title="ARC rollouts of boxes over worlds",
    )
    sizes = {name: case.batch for name, case in sides.items()}
    script.growth(found, axis="worlds", sizes=sizes)


def keep(script: bench.Script, measured: Measured) -> None:
    """What was found, in the form that all scripts share."""
    built = measured.programs
    script.case(
        measured.comparison,
        ours=OURS,
        compiling={name: max(program.compiling, 0) for name, program in built.items()},
        memory={name: p.temporaries for name, p in built.items() if p.temporaries is not None},
        memory_of="temporaries a world",
    )


def main() -> None:
    script, options = _options()
    tasks = load("AGI1-train")
    console = Console(width=max(Console().width, 230))
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_tasks(tasks, folder / "tasks")
        ceiling = None
        if not options.no_ceiling and options.loop != "compile":
            ceiling = Ceiling(tasks, folder)
            compare_with_library(ceiling, tasks)
        devices, alone = options.jaxarc_devices, options.alone
        shared = Bench(tasks, folder, ceiling, options.rounds, devices, alone)
        for case in cases(options):
            measured = shared.measure(case)
            results.append(measured)
            keep(script, measured)
        if options.loop != "rollout":
            for kind in options.kinds:
                script.case(shared.compile_step(kind), ours=OURS)
    if results:
        growth(tasks, script, options)
        console.print(table(results, quiet=script.quiet))
    script.finish()
    if not script.quiet:
        console.print(
            "The machine was busy with something else, which slows a program of many threads more "
            "than one of few: compare the ratios of a CPU second, and measure again."
        )


def cases(options: argparse.Namespace) -> list[Case]:
    """All cases that were asked for."""
    loops = {"rollout": (False,), "python": (True,), "both": (False, True), "compile": ()}[
        options.loop
    ]
    return [
        Case(kind, batch, dispatch)
        for dispatch in loops
        for kind in options.kinds
        for batch in options.batches
    ]


def _options() -> tuple[bench.Script, argparse.Namespace]:
    script = bench.Script(__doc__, group=GROUP, rounds=(9, 3))
    add = script.parser.add_argument
    add("--kinds", nargs="+", choices=list(ACTIONS), default=list(ACTIONS))
    add("--batches", nargs="+", type=int, choices=list(OUR_STEPS))
    add("--loop", choices=["rollout", "python", "both", "compile"], default="both")
    add("--no-ceiling", action="store_true", help="leave the C code out")
    add("--jaxarc-devices", type=int, default=1, help="CPU devices of public JaxARC, under pmap")
    options = script.start()
    if options.quick:
        options.kinds, options.batches = ["bbox"], [1024]
    if options.alone:
        options.loop = "rollout"  # step by step there is nobody to compare with
        options.no_ceiling = options.no_ceiling or shutil.which("cc") is None
    options.batches = options.batches or list(OUR_STEPS)
    return script, options


if __name__ == "__main__":
    main()
