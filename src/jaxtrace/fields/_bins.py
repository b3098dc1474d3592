"""A box cut into equal bins, each with a list of what may be found in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields._field import gather

MOST_ENTRIES = 2**28


class Bins(eqx.Module):
    """Equal bins over a box; `entries[starts[b]:starts[b + 1]]` is the list of bin `b`."""

    low: Float[Array, " dim"]
    per_bin: Float[Array, " dim"]
    starts: Int[Array, " bins_and_one"]
    entries: Int[Array, " entries"]
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        low: np.ndarray,
        high: np.ndarray,
        shape: tuple[int, ...],
        counts: np.ndarray,
        entries: np.ndarray,
    ):
        self.low = as_float(low)
        self.per_bin = as_float(np.asarray(shape) / (high - low))
        starts = np.concatenate([[0], np.cumsum(counts)])
        self.starts = jnp.asarray(starts, jnp.int32)
        # One more, so that an empty list has an entry to look at.
        self.entries = jnp.asarray(np.append(entries, 0), jnp.int32)
        self.shape = shape

    def find(
        self, x: Float[Array, "dim n"]
    ) -> tuple[Int[Array, " n"], Int[Array, " n"], list[Float[Array, " n"]]]:
        """Start and length of the list at each place, and the centre of its bin.

        A place outside the box has the list of the nearest bin.
        """
        flat = jnp.zeros(x.shape[1:], jnp.int32)
        centre = []
        for i, size in enumerate(self.shape):
            f = (x[i] - self.low[i]) * self.per_bin[i]
            f = jnp.where(f >= 0, jnp.minimum(f, size - 1.0), 0.0)
            at = f.astype(jnp.int32)
            flat = flat * size + at
            centre.append(self.low[i] + (at.astype(x.dtype) + 0.5) / self.per_bin[i])
        start = gather(self.starts, flat)
        return start, gather(self.starts, flat + 1) - start, centre


def bin_shape(low: np.ndarray, high: np.ndarray, count: float | int) -> tuple[int, ...]:
    """About `count` bins that are as close to cubes as the box allows."""
    extent = np.maximum(high - low, 1e-12 * (high - low).max())
    size = (np.prod(extent) / max(count, 1.0)) ** (1 / len(extent))
    for _ in range(3):  # a flat box has one layer of bins, and more of them along the others
        thick = extent > size
        if thick.all() or not thick.any():
            break
        size = (np.prod(extent[thick]) / count) ** (1 / thick.sum())
    return tuple(int(max(1, min(4096, math.ceil(e / size)))) for e in extent)


def bins_of_boxes(box_low: np.ndarray, box_high: np.ndarray, count: float | int) -> Bins:
    """Bins that list every box (a row of `box_low` and `box_high`) that touches them."""
    low, high = box_low.min(axis=0), box_high.max(axis=0)
    pad = 1e-4 * (high - low).max()
    low, high = low - pad, high + pad
    shape = bin_shape(low, high, count)
    while True:
        per = np.asarray(shape) / (high - low)
        # Rounding on the device may move a place into the next bin.
        first = np.clip(np.floor((box_low - low) * per - 1e-3), 0, np.asarray(shape) - 1)
        last = np.clip(np.floor((box_high - low) * per + 1e-3), 0, np.asarray(shape) - 1)
        first, last = first.astype(np.int64), last.astype(np.int64)
        spans = last - first + 1
        total = int(spans.prod(axis=1).sum())
        if total <= MOST_ENTRIES or max(shape) == 1:
            break
        shape = tuple(max(1, n // 2) for n in shape)
    if total >= 2**31:
        raise FieldError(f"{len(box_low)} cells are more than a mesh may have")
    # Bin and box in one integer: sorting numbers is several times faster than sorting places.
    keys = np.sort(np.concatenate(list(_touched(first, spans, shape))))
    per_bin = np.bincount(keys >> 32, minlength=math.prod(shape))
    return Bins(low, high, shape, per_bin, keys & 0xFFFFFFFF)


def _touched(first: np.ndarray, spans: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Keys `bin << 32 | box` of boxes that reach over `spans` bins from `first` along each axis."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    base = (first @ np.asarray(strides)) << 32 | np.arange(len(first))
    wide = (spans > 3).any(axis=1)
    narrow = np.flatnonzero(~wide)
    columns = np.ascontiguousarray(spans[narrow].T)
    for offset in itertools.product(range(3), repeat=len(shape)):
        reach = np.logical_and.reduce([n > k for n, k in zip(columns, offset, strict=True)])
        ahead = sum(s * k for s, k in zip(strides, offset, strict=True))
        yield base[narrow[reach]] + (ahead << 32)
    rest = np.flatnonzero(wide)
    counts = spans[rest].prod(axis=1)
    owner = np.repeat(rest, counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    key = base[owner]
    for i in reversed(range(len(shape))):
        number, step = np.divmod(number, spans[owner, i])
        key += (step * strides[i]) << 32
    yield key
