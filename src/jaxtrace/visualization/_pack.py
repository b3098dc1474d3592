"""Tracks as few bytes: which of them a page shows, and how they are packed."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator

import numpy as np

from jaxtrace._status import Status
from jaxtrace.export._columns import BLOCK_BYTES, take
from jaxtrace.tracking import Trajectory

JUMP = 16
"""A flag beside the status: the particle did not come here on a straight line."""

_MOST_FRAMES = 300
_FEW_FRAMES = 30
_SAMPLE = 1000
_MOST_BYTES = 64_000_000  # unpacked, in the memory of a phone


@dataclasses.dataclass(frozen=True)
class Choice:
    """The records and particles that are shown."""

    rows: np.ndarray
    particles: np.ndarray


@dataclasses.dataclass(frozen=True)
class Packed:
    """Bytes for the page, and what it needs to read them."""

    data: bytes
    low: np.ndarray
    high: np.ndarray
    ranges: dict[str, tuple[float, float]]
    """The colours to choose from, each with the values at its ends."""


Tables = dict[str, np.ndarray]
"""Positions, status, generations and colours of a choice, `[records, particles, ...]` each."""


def choose(trajectory: Trajectory, names: list[str], max_bytes: int) -> Choice:
    """As many records and particles as fit into `max_bytes`, measured on a few of them.

    Records are thinned out first, down to 30, which the page draws a smooth way through; then
    particles. They come in a random order, so that the first of them are a sample.
    """
    order = np.random.default_rng(0).permutation(trajectory.N)
    every = _evenly(trajectory.T, _MOST_FRAMES)
    sample = gather(trajectory, Choice(every, order[:_SAMPLE]), names)
    count = sample["positions"].shape[1]

    def room(frames: int) -> int:
        """How many particles fit, if so many records of each are kept."""
        some = _evenly(len(every), frames)
        size = len(pack({name: table[some] for name, table in sample.items()}, names).data)
        unpacked = len(some) * (2 * trajectory.dim + 1 + len(names))
        return min(int(max_bytes * count / size), _MOST_BYTES // unpacked)

    frames = len(every)
    while (fit := room(frames)) < trajectory.N and frames > _FEW_FRAMES:
        frames = max(_FEW_FRAMES, min(frames - 1, int(frames * fit / trajectory.N)))
    return Choice(every[_evenly(len(every), frames)], order[: max(1, fit)])


def _evenly(count: int, wanted: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(int))


def gather(trajectory: Trajectory, choice: Choice, names: list[str]) -> Tables:
    """The numbers of a choice, read in blocks of records that are next to each other."""
    wanted = ["positions", "status", *names]
    if trajectory.generations is not None:
        wanted.append("generation")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    each = trajectory.N * trajectory.dim * trajectory.positions.dtype.itemsize
    for rows in _groups(choice.rows, max(1, BLOCK_BYTES // each)):
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        for name, found in parts.items():
            found.append(take(trajectory, name, span, choice.particles)[rows - rows[0]])
    return {name: np.concatenate(found) for name, found in parts.items()}


def _groups(rows: np.ndarray, reach: int) -> Iterator[np.ndarray]:
    """Neighbours together, no more than `reach` from the first of them to the last."""
    first = 0
    while first < len(rows):
        last = int(np.searchsorted(rows, rows[first] + reach))
        yield rows[first:last]
        first = last


def pack(tables: Tables, names: list[str]) -> Packed:
    """Positions in 16 bits an axis, status, and 8 bits for each colour, deflated.

    All arrays are `[records, particles]`: the low bytes and the high bytes of each axis, flags, and
    one array a colour. A position is kept as how far it is from where the last two led to, even
    numbers for forth and odd ones for back; a colour as its change.
    """
    positions = tables["positions"]
    low, high = _box(positions.min(axis=(0, 1)), positions.max(axis=(0, 1)))
    packer = zlib.compressobj(6)
    data = []
    for i in range(positions.shape[2]):
        share = (positions[..., i].astype(np.float64) - low[i]) / (high[i] - low[i])
        steps = _signs(_differences(_differences(np.round(65535 * share).astype(np.uint16))))
        data.append(packer.compress((steps & 255).astype(np.uint8).tobytes()))
        data.append(packer.compress((steps >> 8).astype(np.uint8).tobytes()))
    data.append(packer.compress(_flags(tables, high - low).tobytes()))
    ranges = {}
    for name in names:
        values = tables[name].astype(np.float64)
        finite = values[np.isfinite(values)]
        # The fastest few in a thousand do not decide the colours of all.
        least, most = np.percentile(finite, [0.2, 99.8]) if finite.size else (0.0, 1.0)
        ranges[name] = (float(least), float(most) if most > least else float(least) + 1.0)
        share = (np.nan_to_num(values, nan=least) - least) / (ranges[name][1] - least)
        plane = _differences(np.round(255 * np.clip(share, 0, 1)).astype(np.uint8))
        data.append(packer.compress(plane.tobytes()))
    data.append(packer.flush())
    return Packed(b"".join(data), low, high, ranges)


def _box(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the box to draw: round numbers, where those are near."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    flat = high <= low
    low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
    step = 10.0 ** np.floor(np.log10(high - low)) / 2
    below, above = np.floor(low / step) * step, np.ceil(high / step) * step
    slack = 0.04 * (high - low)
    return np.where(low - below < slack, below, low), np.where(above - high < slack, above, high)


def _flags(tables: Tables, extent: np.ndarray) -> np.ndarray:
    """The status, and whether a particle jumped: to an inlet, or to the other side of the box."""
    flags = tables["status"].astype(np.uint8)
    jumped = (np.abs(np.diff(tables["positions"], axis=0)) > 0.5 * extent).any(axis=2)
    if "generation" in tables:
        jumped |= np.diff(tables["generation"], axis=0) > 0
    flags[1:] |= np.where(jumped, JUMP, 0).astype(np.uint8)
    return flags


def _differences(table: np.ndarray) -> np.ndarray:
    """Each record less the one before; unsigned numbers wrap around."""
    result = table.copy()
    result[1:] -= table[:-1]
    return result


def _signs(steps: np.ndarray) -> np.ndarray:
    """Small steps, forth or back, as small numbers: 0, -1, 1, -2 as 0, 1, 2, 3."""
    signed = steps.view(np.int16)
    return (signed.view(np.uint16) << 1) ^ (signed >> 15).view(np.uint16)


def alive_counts(trajectory: Trajectory, rows: np.ndarray) -> list[int]:
    """How many of all particles are alive at each record."""
    return [int((np.asarray(trajectory.status[row]) == Status.ALIVE).sum()) for row in rows]
