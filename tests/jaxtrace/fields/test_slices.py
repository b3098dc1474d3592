"""How many slices an interpolation in time needs."""

from __future__ import annotations

import numpy as np
import pytest

from jaxtrace.fields import FieldError
from jaxtrace.fields._time import Slices


@pytest.mark.parametrize("count", [2, 3])
def test_a_cubic_in_time_needs_four_slices(count):
    with pytest.raises(FieldError, match=f"needs 4 slices or more, there are {count}"):
        Slices(np.arange(float(count)), "cubic")


@pytest.mark.parametrize(("method", "count"), [("cubic", 1), ("cubic", 4), ("linear", 2)])
def test_what_there_is_enough_of_is_taken(method, count):
    slices = Slices(np.arange(float(count)), method)
    assert slices.count == count
    assert (slices.cubic is not None) == (method == "cubic" and count > 1)
    assert slices.span == (None if count == 1 else (0.0, count - 1.0))
