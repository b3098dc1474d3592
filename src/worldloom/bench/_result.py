"""What a comparison found: times, ratios with their spread, and how it looks and is kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from worldloom._errors import WorldloomError
from worldloom._reading import reading
from worldloom.bench._machine import Machine
from worldloom.store._files import write_whole

if TYPE_CHECKING:
    from rich.console import Group

_FORMAT = "worldloom.bench/1"


class BenchmarkError(WorldloomError, RuntimeError):
    """A figure was asked for that was not measured, because its variant failed."""


class ComparisonFileError(WorldloomError, ValueError):
    """A file is not a comparison that was written by `Comparison.to_json`."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times as fast as the baseline, with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As in `12.3x (11.9-12.6)`."""
        return f"{figure(self.value)}x ({figure(self.low)}-{figure(self.high)})"


@dataclasses.dataclass(frozen=True)
class Timing:
    """The times of one variant."""

    name: str

    items: float | None
    """Work of one call, in the comparison's unit."""

    repeats: int
    """Calls in one sample."""

    wall: tuple[float, ...]
    """Seconds a call, one number a round."""

    cpu: tuple[float, ...]
    """Seconds a call that all threads together kept a processor busy, one number a round."""

    first: float | None
    """Seconds of the very first call, compilation included."""

    compiling: float | None
    """Seconds of `first` that JAX spent compiling; `None` for rivals."""

    recompiled: int = 0
    """Programs built while the clock ran. Anything but 0 spoils the figures."""

    error: str = ""
    """Why there are no times: the traceback, or what became of the rival."""

    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Versions in the environment of a rival."""

    @property
    def best(self) -> float:
        """Seconds a call in the best round."""
        self._require()
        return min(self.wall)

    @property
    def median(self) -> float:
        """Seconds a call in the median round."""
        self._require()
        return float(np.median(self.wall))

    @property
    def busy(self) -> float:
        """Processor seconds a call in the median round."""
        self._require()
        return float(np.median(self.cpu))

    @property
    def rate(self) -> float | None:
        """Items a second in the median round, where the work is known."""
        return None if self.items is None else self.items / self.median

    def _require(self) -> None:
        if self.error:
            raise BenchmarkError(f"{self.name!r} has no times, it failed:\n{self.error}")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Variants of the same work, timed in turn: see [`worldloom.bench.compare`][].

    Printing it shows a table. A variant that failed is a row with its error.
    """

    title: str
    baseline: str
    """The variant that all ratios refer to."""

    unit: str
    """What `items` counts."""

    timings: tuple[Timing, ...]
    machine: Machine
    created: str
    """Start of the measurement, UTC."""

    def __getitem__(self, name: str) -> Timing:
        """The times of one variant."""
        for timing in self.timings:
            if timing.name == name:
                return timing
        raise KeyError(f"no variant {name!r}; there are {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """All variants, in the order they were given."""
        return tuple(timing.name for timing in self.timings)

    @property
    def failures(self) -> dict[str, str]:
        """The error of every variant that failed."""
        return {timing.name: timing.error for timing in self.timings if timing.error}

    def ratio(self, name: str) -> Ratio:
        """Speed of a variant in units of the baseline's: above 1 is faster.

        The median over rounds of baseline time / variant time. Both times of a quotient come from
        the same round, moments apart, so that a busy moment of the machine cancels. The interval is
        a 95 % bootstrap over rounds. Where the work of a call is known, speed is work / time.
        """
        ours, base = self[name], self[self.baseline]
        ours._require()
        base._require()
        quotients = np.asarray(base.wall) / np.asarray(ours.wall)
        if ours.items is not None and base.items is not None:
            quotients = quotients * (ours.items / base.items)
        return median_interval(quotients)

    def to_json(self, path: str | Path) -> Path:
        """Write everything that was measured, every round of it, and return the path."""
        return write_json(path, {"format": _FORMAT, **dataclasses.asdict(self)})

    @classmethod
    def from_json(cls, path: str | Path) -> Comparison:
        """Read what `to_json` wrote."""
        document = read_json(path, _FORMAT, "a comparison")
        try:
            return comparison_of(document)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ComparisonFileError(f"{path}: a damaged comparison ({error})") from error

    def plot(self, path: str | Path) -> Path:
        """Draw the speed of every variant as a bar, write it as a PNG, and return the path."""
        from worldloom.bench._draw import draw_bars

        return draw_bars(self, Path(path))

    def __rich__(self) -> Group:
        from worldloom.bench._draw import draw_table

        return draw_table(self)

    def __str__(self) -> str:
        """The table as plain text."""
        from worldloom.bench._draw import as_text

        return as_text(self.__rich__())


def write_json(path: str | Path, document: Mapping[str, Any]) -> Path:
    """Write a document so that a reader never sees half of it, and return the path."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    return write_whole(path, text.encode())


def read_json(path: str | Path, form: str, what: str) -> dict[str, Any]:
    """Read a document of the given format, without the word that names it."""
    with reading(path, "a JSON file", ComparisonFileError):
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.pop("format", None) != form:
        raise ComparisonFileError(f'{path}: not {what} (no "format": "{form}")')
    return document


def comparison_of(document: Mapping[str, Any]) -> Comparison:
    """The comparison that `dataclasses.asdict` took apart."""
    timings = tuple(_timing(entry) for entry in document["timings"])
    parts = {**document, "timings": timings, "machine": Machine(**document["machine"])}
    comparison = Comparison(**parts)
    comparison[comparison.baseline]
    return comparison


def median_interval(values: np.ndarray, *, resamples: int = 4000) -> Ratio:
    """Median of some ratios and its 95 % bootstrap interval; the same answer every time."""
    if len(values) == 1:
        return Ratio(float(values[0]), float(values[0]), float(values[0]))
    drawn = np.random.default_rng(0).integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(np.median(values[drawn], axis=1), [0.025, 0.975])
    return Ratio(float(np.median(values)), float(low), float(high))


def figure(value: float | int) -> str:
    """Three significant digits, without an exponent where people would not write one."""
    if value >= 1e15 or 0 < abs(value) < 1e-3:
        return f"{value:.2e}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def _timing(entry: dict[str, Any]) -> Timing:
    timing = Timing(**{**entry, "wall": tuple(entry["wall"]), "cpu": tuple(entry["cpu"])})
    if not timing.error:
        good = all(isinstance(t, float | int) and t > 0 for t in timing.wall)
        if not good or not timing.wall or len(timing.cpu) != len(timing.wall):
            raise ValueError(f"times of {timing.name!r} are missing or not positive")
    return timing
