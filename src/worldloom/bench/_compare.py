"""`compare`: variants of the same work timed in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from worldloom.bench._local import LocalSubject, Sample, Subject
from worldloom.bench._machine import Machine
from worldloom.bench._result import Comparison, Timing
from worldloom.bench._rival import Rival

_REPEATS_LIMIT = 10_000_000


def compare(
    variants: Mapping[str, Callable[..., Any] | Rival],
    *,
    baseline: str | None = None,
    rounds: int = 15,
    seconds: float | int = 0.1,
    items: float | int | Mapping[str, float | int] | None = None,
    unit: str = "items",
    setup: Mapping[str, Callable[[], Any]] | None = None,
    title: str = "",
    progress: bool = False,
) -> Comparison:
    """Time variants of the same work against each other.

    Every variant is called once (that is its `first` time, compilation included) and warmed up
    until a sample of about `seconds` is planned. Then each round takes one sample of every
    variant, in an order that is shuffled anew, so that a slow minute of the machine meets all of
    them. Every call is waited for with `jax.block_until_ready`, so a variant must return what it
    computed.

    A variant that raises does not stop the others: its row says so, and asking for its figures
    raises [`worldloom.bench.BenchmarkError`][].

    **Arguments:**

    - `variants`: functions without arguments, or [`worldloom.bench.Rival`][]s, by name.
    - `baseline`: the variant that ratios refer to; the first one by default.
    - `rounds`: samples of each variant.
    - `seconds`: length of a sample. A call that takes longer is a sample of its own.
    - `items`: work of one call, for rates and for ratios between variants that do not do the same
        amount: one number, or one for each variant.
    - `unit`: what `items` counts, in the plural.
    - `setup`: for some variants, a function that runs before every call, outside the clock. Its
        value is the argument of the call: a fresh state for a function that donates it.
    - `title`: heading of the table and the plot.
    - `progress`: show a progress bar.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import bench

    x = jnp.ones(1000)
    double = jax.jit(lambda x: x + x)
    result = bench.compare(
        {"eager": lambda: x + x, "jit": lambda: double(x)}, rounds=3, seconds=0.005, items=1000
    )
    print(result)
    assert result["jit"].best > 0
    assert result.ratio("eager").value == 1.0
    ```
    """
    baseline = _check(variants, baseline, rounds, seconds, items, setup)
    plans = []
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    machine = Machine.here()
    with contextlib.ExitStack() as stack:
        tick = stack.enter_context(_meter(progress, title, len(variants) * (rounds + 1)))
        for name, variant in variants.items():
            if isinstance(variant, Rival):
                subject = variant.subject()
            else:
                subject = LocalSubject(variant, (setup or {}).get(name))
            stack.callback(subject.close)
            plan = _Plan(name, subject, items.get(name) if isinstance(items, Mapping) else items)
            plan.attempt(lambda plan=plan: plan.prepare(seconds))
            plans.append(plan)
            tick()
        shuffle = random.Random(0).shuffle
        for _ in range(rounds):
            order = list(plans)
            shuffle(order)
            for plan in order:
                plan.attempt(plan.measure)
                tick()
    return Comparison(
        title=title,
        baseline=baseline,
        unit=unit,
        timings=tuple(plan.timing() for plan in plans),
        machine=machine,
        created=created,
    )


@dataclasses.dataclass
class _Plan:
    """One variant on its way through the rounds."""

    name: str
    subject: Subject
    items: float | int | None
    repeats: int = 1
    samples: list[Sample] = dataclasses.field(default_factory=list)
    first: float | None = None
    compiling: float | None = None
    error: str = ""

    def attempt(self, action: Callable[[], None]) -> None:
        """Do it, unless this variant has failed; if it fails now, remember why."""
        if self.error:
            return
        try:
            action()
        except Exception:
            self.error = traceback.format_exc().strip()

    def prepare(self, seconds: float | int) -> None:
        """First call, then growing samples until one is long enough to extrapolate from."""
        self.first, self.compiling = self.subject.first()
        while True:
            sample = self.subject.sample(self.repeats)
            if sample.wall >= 0.3 * seconds:
                break
            growth = 0.5 * seconds / max(sample.wall, 1e-9)
            self.repeats = min(math.ceil(self.repeats * min(growth, 10)), _REPEATS_LIMIT)
            if self.repeats == _REPEATS_LIMIT:
                break
        wanted = self.repeats * seconds / max(sample.wall, 1e-9)
        self.repeats = max(1, min(round(wanted), _REPEATS_LIMIT))

    def measure(self) -> None:
        """One sample of a round."""
        self.samples.append(self.subject.sample(self.repeats))

    def timing(self) -> Timing:
        """Everything about this variant, as a value."""
        samples = [] if self.error else self.samples
        return Timing(
            name=self.name,
            items=None if self.items is None else float(self.items),
            repeats=self.repeats,
            wall=tuple(sample.wall / self.repeats for sample in samples),
            cpu=tuple(sample.cpu / self.repeats for sample in samples),
            first=self.first,
            compiling=self.compiling,
            recompiled=sum(sample.built for sample in samples),
            error=self.error,
            packages=self.subject.packages,
        )


def _check(
    variants: Mapping[str, Any],
    baseline: str | None,
    rounds: int,
    seconds: float | int,
    items: float | int | Mapping[str, float | int] | None,
    setup: Mapping[str, Any] | None,
) -> str:
    """Refuse arguments that do not fit together; return the baseline."""
    if not variants:
        raise ValueError("compare: variants is empty; give at least one function")
    if rounds < 1:
        raise ValueError(f"compare: rounds={rounds}; at least one round is needed")
    if not seconds > 0:
        raise ValueError(f"compare: seconds={seconds}; a sample needs a positive length")
    names = ", ".join(variants)
    for argument, given in (("items", items), ("setup", setup)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in variants:
                raise ValueError(f"compare: {argument} names {name!r}; the variants are {names}")
    for name in setup or {}:
        if isinstance(variants[name], Rival):
            raise ValueError(f"compare: setup names {name!r}, a rival; its script sets it up")
    work = list(items.values()) if isinstance(items, Mapping) else [items]
    if isinstance(items, Mapping) and set(items) != set(variants):
        missing = ", ".join(sorted(set(variants) - set(items)))
        raise ValueError(f"compare: items lacks {missing}; give it for all variants or none")
    if any(amount is not None and not amount > 0 for amount in work):
        raise ValueError(f"compare: items={items}; work must be positive")
    if baseline is None:
        return next(iter(variants))
    if baseline not in variants:
        raise ValueError(f"compare: baseline={baseline!r}; the variants are {names}")
    return baseline


@contextlib.contextmanager
def _meter(shown: bool, title: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar that is moved by calling the value, or nothing."""
    if not shown:
        yield lambda: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Redrawn between samples only: a refresh thread would run while the clock does.
    with Progress(*columns, auto_refresh=False, transient=True) as bar:
        task = bar.add_task(title or "timing", total=total)

        def tick() -> None:
            bar.advance(task)
            bar.refresh()

        yield tick
