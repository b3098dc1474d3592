from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from acbo._descent import warm_cosine


def test_up_then_down_to_the_last_share():
    rate = warm_cosine(2.0, 100, warm_up=10, last=0.1)
    values = [float(rate(jnp.int32(t))) for t in range(130)]
    assert values[0] == pytest.approx(2.0 / 11)
    assert int(np.argmax(values)) == 10
    assert max(values) == pytest.approx(2.0)
    assert (np.diff(values[:11]) > 0).all()
    assert (np.diff(values[10:101]) < 0).all()
    assert values[55] == pytest.approx(2.0 * 0.55, rel=1e-5)
    assert values[100] == values[129] == pytest.approx(0.2)
