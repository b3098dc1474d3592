"""When slices are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxtrace.io._errors import DataError
from worldloom._way import way


def settle(given: Any, found: Sequence[float | None], names: Sequence[str]) -> np.ndarray:
    """The times of slices: those the user gave, or those in the files.

    **Arguments:**

    - `given`: the user's times, or `None`.
    - `found`: for each slice the time in its file; `None` where there is none.
    - `names`: for each slice its file.
    """
    if given is not None:
        times = np.asarray(given, np.float64)
        if times.shape != (len(names),):
            raise DataError(
                f"times has shape {list(times.shape)}, but there are {len(names)} slices"
            )
    elif len(names) == 1:
        times = np.array([0.0 if found[0] is None else found[0]])
    else:
        for i, time in enumerate(found):
            if time is None:
                raise DataError(
                    f"{names[i]} (slice {i} of {len(names)}) does not say its time"
                    + way("; give times=[...]", "; give --times 0 1 ...")
                    + ", one for each slice. The number in a file's name is not a time"
                )
        times = np.array([float(t) for t in found if t is not None])
    _increasing(times, names)
    return times


def _increasing(times: np.ndarray, names: Sequence[str]) -> None:
    bad = ~np.isfinite(times)
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(f"{names[i]} (slice {i}): its time is {times[i]}")
    wrong = np.diff(times) <= 0
    if wrong.any():
        i = int(np.argmax(wrong)) + 1
        what = "the same time as" if times[i] == times[i - 1] else "an earlier time than"
        raise DataError(
            f"{names[i]} (slice {i}) has {what} slice {i - 1} ({names[i - 1]}): {times[i]:.12g} "
            f"after {times[i - 1]:.12g}. Times must increase: leave files out or order the list"
        )
