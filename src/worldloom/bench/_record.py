"""What benchmark scripts found, in one form: cases, growths and single figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worldloom.bench._machine import Machine
from worldloom.bench._result import (
    Comparison,
    ComparisonFileError,
    Ratio,
    comparison_of,
    read_json,
    write_json,
)

if TYPE_CHECKING:
    from rich.console import Group

_FORMAT = "worldloom.bench.record/1"


@dataclasses.dataclass(frozen=True)
class Case:
    """Our way to do some work against other ways to do the same.

    **Arguments:**

    - `comparison`: all of them, timed in turn.
    - `ours`: the variant that is ours.
    - `naive`: the variant that is the same code written without care; none, where all the others
        are somebody else's.
    - `compiling`: seconds to trace and compile, by variant, where the comparison cannot know them.
    - `memory`: bytes by variant: of what is said in `memory_of`.
    - `memory_of`: such as `"temporaries a world"`.
    """

    comparison: Comparison
    ours: str
    naive: str | None = None
    compiling: Mapping[str, float | int] = dataclasses.field(default_factory=dict)
    memory: Mapping[str, float | int] = dataclasses.field(default_factory=dict)
    memory_of: str = ""

    def __post_init__(self) -> None:
        for name in filter(None, (self.ours, self.naive, *self.compiling, *self.memory)):
            self.comparison[name]

    @property
    def title(self) -> str:
        """That of the comparison."""
        return self.comparison.title

    @property
    def others(self) -> tuple[str, ...]:
        """Everybody else, the naive version first."""
        rest = [name for name in self.comparison.names if name not in (self.ours, self.naive)]
        return ((self.naive,) if self.naive else ()) + tuple(rest)

    def ratio(self, other: str) -> Ratio | None:
        """How many times as fast ours is as another variant; none, where one of them failed."""
        if {self.ours, other} & set(self.comparison.failures):
            return None
        return dataclasses.replace(self.comparison, baseline=other).ratio(self.ours)

    def cpu_ratio(self, other: str) -> float | None:
        """The same for a second of processor time, which a busy machine disturbs less."""
        if {self.ours, other} & set(self.comparison.failures):
            return None
        ours, theirs = self.comparison[self.ours], self.comparison[other]
        if not ours.busy or not theirs.busy:
            return None
        return (ours.items or 1) / ours.busy / ((theirs.items or 1) / theirs.busy)

    def compile_seconds(self, name: str) -> float | None:
        """Seconds that a variant took to compile, where that is known."""
        known = self.compiling.get(name) or self.comparison[name].compiling
        return None if not known else float(known)


@dataclasses.dataclass(frozen=True)
class Growth:
    """How the cost of one item changes with a size: each variant is the same work at one size.

    **Arguments:**

    - `comparison`: all sizes, timed in turn; the first one is the baseline.
    - `axis`: what grows: worlds, particles, variables, devices.
    - `sizes`: the size of each variant.
    - `memory`: bytes by variant: of what is said in `memory_of`.
    """

    comparison: Comparison
    axis: str
    sizes: Mapping[str, float | int]
    memory: Mapping[str, float | int] = dataclasses.field(default_factory=dict)
    memory_of: str = ""

    def __post_init__(self) -> None:
        if set(self.sizes) != set(self.comparison.names):
            raise ValueError(
                f"Growth: sizes={dict(self.sizes)} names other variants than the comparison, "
                f"which has {', '.join(self.comparison.names)}"
            )


@dataclasses.dataclass(frozen=True)
class Figure:
    """One number that is no ratio of times: bytes, seconds, an error, a count.

    **Arguments:**

    - `name`: what was measured.
    - `value`: the number.
    - `unit`: its unit.
    - `limit`: what it must not exceed, where that is promised.
    """

    name: str
    value: float | int
    unit: str = ""
    limit: float | int | None = None


@dataclasses.dataclass(frozen=True)
class Findings:
    """Everything that one benchmark script found."""

    script: str
    """Its file name, without the ending."""

    group: str
    quick: bool
    """Measured in a hurry: few rounds, small sizes."""

    alone: bool
    """Without what is installed into environments of its own."""

    created: str
    """When it began, UTC."""

    took: float
    """Seconds it ran."""

    machine: Machine
    """What it ran on; its load is that before the script began."""

    cases: tuple[Case, ...] = ()
    growths: tuple[Growth, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether the machine was quiet when the script began."""
        return self.machine.quiet


@dataclasses.dataclass(frozen=True)
class Record:
    """What several benchmark scripts found. Printing it shows tables.

    **Arguments:**

    - `findings`: one for each script that ran.
    - `failed`: why there are none, for each script that failed.
    """

    findings: tuple[Findings, ...]
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def groups(self) -> dict[str, list[Findings]]:
        """The findings by group, both in the order of the alphabet."""
        ordered = sorted(self.findings, key=lambda found: (found.group, found.script))
        return {
            group: [found for found in ordered if found.group == group]
            for group in dict.fromkeys(found.group for found in ordered)
        }

    def case(self, script: str, title: str) -> Case:
        """One case by the name of its script and its title."""
        return self._entry(script, "cases", title)

    def growth(self, script: str, title: str) -> Growth:
        """One growth by the name of its script and the title of its comparison."""
        return self._entry(script, "growths", title)

    def figure(self, script: str, name: str) -> Figure:
        """One figure by the name of its script and its own."""
        return self._entry(script, "figures", name)

    def _entry(self, script: str, kind: str, name: str) -> Any:
        entries = {
            entry.name if isinstance(entry, Figure) else entry.comparison.title: entry
            for found in self.findings
            if found.script == script
            for entry in getattr(found, kind)
        }
        if name not in entries:
            known = ", ".join(map(repr, entries)) or "none"
            raise KeyError(f"{script!r} has no {name!r} among its {kind}; it has {known}")
        return entries[name]

    def joined(self, others: Iterable[Record]) -> Record:
        """This record and others; of a script that ran twice, the last one counts."""
        records = (self, *others)
        findings = {found.script: found for record in records for found in record.findings}
        failed = {name: why for record in records for name, why in record.failed.items()}
        return Record(tuple(findings.values()), failed)

    def to_json(self, path: str | Path) -> Path:
        """Write everything that was measured, every round of it, and return the path."""
        return write_json(path, {"format": _FORMAT, **dataclasses.asdict(self)})

    @classmethod
    def from_json(cls, path: str | Path) -> Record:
        """Read what `to_json` wrote."""
        document = read_json(path, _FORMAT, "a record of benchmarks")
        try:
            findings = tuple(_findings(entry) for entry in document["findings"])
            return cls(findings, dict(document["failed"]))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ComparisonFileError(f"{path}: a damaged record ({error})") from error

    def markdown(self) -> str:
        """The record as a page: hardware, ratios, growth, figures, and the commands."""
        from worldloom.bench._markdown import page

        return page(self)

    def plot(self, path: str | Path) -> Path:
        """Draw every ratio as a bar and every growth as a line, write a PNG, return the path."""
        from worldloom.bench._overview import draw_overview

        return draw_overview(self, Path(path))

    def __rich__(self) -> Group:
        from worldloom.bench._overview import tables

        return tables(self)

    def __str__(self) -> str:
        """The tables as plain text."""
        from worldloom.bench._draw import as_text

        return as_text(self.__rich__(), width=150)


def _findings(entry: Mapping[str, Any]) -> Findings:
    parts = dict(entry)
    parts["machine"] = Machine(**parts["machine"])
    parts["cases"] = tuple(Case(**_with_comparison(case)) for case in parts["cases"])
    parts["growths"] = tuple(Growth(**_with_comparison(growth)) for growth in parts["growths"])
    parts["figures"] = tuple(Figure(**figure) for figure in parts["figures"])
    return Findings(**parts)


def _with_comparison(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "comparison": comparison_of(entry["comparison"])}
