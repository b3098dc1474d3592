"""`gate` and `guard`: no variant may lose more speed than noise explains."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from worldloom._errors import WorldloomError
from worldloom.bench._result import Comparison, Ratio

if TYPE_CHECKING:
    from rich.console import Group


class RegressionError(WorldloomError, AssertionError):
    """A ratio fell, a variant failed, or one vanished. `result` has every check."""

    def __init__(self, message: str, result: GateResult):
        super().__init__(message)
        self.result = result


@dataclasses.dataclass(frozen=True)
class Check:
    """The verdict on one variant."""

    name: str
    verdict: Literal["kept", "slower", "failed", "vanished", "new"]
    current: Ratio | None
    """What was measured now."""

    expected: Ratio | None
    """What the kept comparison says."""

    limit: float | None
    """The lowest ratio that passes."""

    @property
    def passed(self) -> bool:
        """Whether this variant is as it should be. A new one is."""
        return self.verdict in ("kept", "new")

    def __str__(self) -> str:
        """A sentence with the numbers."""
        match self.verdict:
            case "new":
                return f"{self.name}: new, {self.current}; keep a new baseline to guard it"
            case "vanished":
                return f"{self.name}: vanished; it was {self.expected}"
            case "failed":
                return f"{self.name}: failed, no ratio; it was {self.expected}"
        limit = f"limit {self.limit:.3g}x"
        return f"{self.name}: {self.verdict}, {self.current}; it was {self.expected}, {limit}"


@dataclasses.dataclass(frozen=True)
class GateResult:
    """The verdict on every variant of a comparison."""

    title: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """What makes the two comparisons less comparable, such as another processor."""

    @property
    def passed(self) -> bool:
        """Whether every variant passed."""
        return all(check.passed for check in self.checks)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        colours = {"kept": "green", "new": "cyan"}
        lines = [Text(str(c), colours.get(c.verdict, "bold red")) for c in self.checks]
        return Group(*lines, *(Text(note, "dim") for note in self.notes))

    def __str__(self) -> str:
        """One line a variant."""
        return "\n".join([*map(str, self.checks), *self.notes])


def gate(
    current: Comparison, expected: Comparison | str | Path, *, tolerance: float | int = 0.1
) -> GateResult:
    """Fail if a ratio fell more than noise explains.

    A ratio passes while `current >= expected * (1 - tolerance) / noise`, where `noise` is what the
    two 95 % intervals allow together (their widths added in quadrature, on a log scale). Ratios
    are compared, never seconds: a slower machine slows the baseline too.

    **Arguments:**

    - `current`: the comparison measured now.
    - `expected`: the one to hold it against, or the file it was written to.
    - `tolerance`: loss that is accepted beside the noise, as a fraction. Two runs on a machine
        differ more than rounds of one run: the default is a tenth.

    **Returns:**

    A [`worldloom.bench.GateResult`][], if everything passed. New variants pass and are named.
    Otherwise raises [`worldloom.bench.RegressionError`][], which has it as `result`.
    """
    if not 0 <= tolerance < 1:
        raise ValueError(f"gate: tolerance={tolerance}; expected a fraction, 0 <= tolerance < 1")
    if not isinstance(expected, Comparison):
        expected = Comparison.from_json(expected)
    if current.baseline != expected.baseline:
        raise ValueError(
            f"gate: ratios against {current.baseline!r} cannot be held against ratios to "
            f"{expected.baseline!r}; measure with baseline={expected.baseline!r}"
        )
    names = dict.fromkeys((*expected.names, *current.names))
    checks = [_check(name, current, expected, tolerance) for name in names]
    notes = []
    if current.machine.cpu != expected.machine.cpu:
        notes.append(f"measured on {current.machine.cpu}, expected on {expected.machine.cpu}")
    result = GateResult(current.title, tuple(filter(None, checks)), tuple(notes))
    if not result.passed:
        bad = "\n".join(f"  {check}" for check in result.checks if not check.passed)
        title = f"{current.title}: " if current.title else ""
        raise RegressionError(f"{title}slower than expected\n{bad}", result)
    return result


def guard(
    measure: Callable[[int], Comparison],
    expected: Comparison | str | Path,
    *,
    rounds: int = 9,
    tolerance: float | int = 0.1,
    tries: int = 3,
) -> GateResult:
    """Measure and [`worldloom.bench.gate`][]; measure again what looks slower before saying so.

    A slow-down of the code is there every time; one of the machine comes and goes. So a variant is
    called slower only where every try says so, each with twice the rounds of the one before.

    **Arguments:**

    - `measure`: called with a number of rounds; returns the comparison.
    - `expected`: what to hold it against, or the file it was written to.
    - `rounds`: those of the first try.
    - `tolerance`: as for `gate`.
    - `tries`: how often a suspicion is looked into, the first time included.

    **Returns:**

    The first [`worldloom.bench.GateResult`][] that passed. Otherwise raises the
    [`worldloom.bench.RegressionError`][] of the last try, which had the most rounds.

    ```python
    from worldloom import bench

    def measure(rounds):
        variants = {"naive": lambda: sum([1] * 9999), "ours": lambda: 9999}
        return bench.compare(variants, rounds=rounds, seconds=1e-4, title="a sum")

    assert bench.guard(measure, measure(5), rounds=5, tolerance=0.9).passed
    ```
    """
    if tries < 1:
        raise ValueError(f"guard: tries={tries}; expected at least one")
    while True:
        try:
            return gate(measure(rounds), expected, tolerance=tolerance)
        except RegressionError as error:
            tries, rounds = tries - 1, 2 * rounds
            noise = {"kept", "new", "slower"}  # what failed or vanished will not come back
            if not tries or {check.verdict for check in error.result.checks} - noise:
                raise


def _check(
    name: str, current: Comparison, expected: Comparison, tolerance: float | int
) -> Check | None:
    now, then = _ratio(current, name), _ratio(expected, name)
    if name not in current.names:
        return Check(name, "vanished", None, then, None)
    if now is None and name in current.failures:
        return Check(name, "failed", None, then, None)
    if now is None or name == current.baseline:
        return None  # the baseline is 1 by definition; its failure is a check of its own
    if then is None:
        return Check(name, "new", now, None, None)
    noise = math.hypot(math.log(then.value / then.low), math.log(now.high / now.value))
    limit = then.value * (1 - tolerance) * math.exp(-noise)
    verdict = "kept" if now.value >= limit else "slower"
    return Check(name, verdict, now, then, limit)


def _ratio(comparison: Comparison, name: str) -> Ratio | None:
    """The ratio, if there is one: the variant and the baseline both ran."""
    known = set(comparison.names) - set(comparison.failures)
    return comparison.ratio(name) if {name, comparison.baseline} <= known else None
