"""Arrays in the smallest type that still says the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def smallest_dtype(array: Any) -> np.ndarray:
    """The same numbers in the smallest dtype of their kind.

    - Signed integers: the smallest signed dtype that holds every value. Nothing is lost.
    - Unsigned integers: the same among the unsigned dtypes.
    - `float64`: `float32`, **rounded to 24 bits of mantissa** (relative error at most 6e-8). If
      any value is too large for `float32`, or so small that it would lose more bits or become
      zero, the array stays `float64`.
    - Everything else stays as it is.

    ```python
    import numpy as np
    from worldloom import store

    assert store.smallest_dtype(np.array([1000, 2000, 3000])).dtype == np.int16
    ```
    """
    array = np.asarray(array)
    if array.dtype.kind in "iu":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        for size in (1, 2, 4, 8):
            dtype = np.dtype(f"{array.dtype.kind}{size}")
            limits = np.iinfo(dtype)
            if limits.min <= low and high <= limits.max:
                return array.astype(dtype, copy=False)
    if array.dtype == np.float64 and _fits_float32(array):
        return array.astype(np.float32)
    return array


def _fits_float32(array: np.ndarray) -> bool:
    limits = np.finfo(np.float32)
    size = np.abs(array[np.isfinite(array) & (array != 0)])
    return not size.size or bool(size.min() >= limits.tiny and size.max() <= limits.max)
