"""The largest batch whose bytes fit: a secant search with few, costly evaluations."""

from __future__ import annotations

from collections.abc import Callable

_FIRST = (64, 128)
_LARGEST = 2**31 - 1
_CLOSE = 0.01
_MOST_EVALUATIONS = 12


def find_largest(
    bytes_of: Callable[[int], int], usable: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """A batch size that fits, within 1 % of the largest, and all sizes evaluated with their bytes.

    `bytes_of` grows with the batch, as a rule along a straight line, but with kinks where XLA
    chooses another way to compute. The size returned was evaluated and found to fit; it is 0
    if one item does not.
    """
    known = {size: bytes_of(size) for size in _FIRST}
    while len(known) < _MOST_EVALUATIONS:
        fits = max((size for size in known if known[size] <= usable), default=0)
        over = min((size for size in known if known[size] > usable), default=_LARGEST + 1)
        if over - fits <= 1:
            break
        low, high = _neighbours(known, fits, over)
        slope = (known[high] - known[low]) / (high - low)
        if slope <= 0:
            candidate = (fits + over) // 2
        else:
            close = known[fits] + max(slope, _CLOSE * usable) > usable if fits else False
            if close:
                break
            # Having once missed by a hair, aim for the middle of what is close enough.
            target = usable if over > _LARGEST else usable * (1 - _CLOSE / 2)
            candidate = int(low + (target - known[low]) / slope)
        candidate = min(max(candidate, fits + 1), over - 1)
        known[candidate] = bytes_of(candidate)
    if min(known.values()) > usable and 1 not in known:
        known[1] = bytes_of(1)
    fits = max((size for size in known if known[size] <= usable), default=0)
    return fits, tuple(sorted(known.items()))


def _neighbours(known: dict[int, int], fits: int, over: int) -> tuple[int, int]:
    """The two sizes on either side of the limit, or the two nearest to it on one side."""
    sizes = sorted(known)
    if fits and over in known:
        return fits, over
    if fits:
        return sizes[-2], sizes[-1]
    return sizes[0], sizes[1]
