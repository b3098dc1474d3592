from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from acbo import metrics
from acbo._errors import DataError, OptionError

KEY = jax.random.key(0)


VALUES = np.random.default_rng(0).exponential(size=60).astype(np.float32)


def test_scipy_finds_the_same_interval():
    ours = metrics.bootstrap(jnp.asarray(VALUES), key=KEY, resamples=4000)
    theirs = stats.bootstrap(
        (VALUES,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.estimate == pytest.approx(VALUES.mean(), rel=1e-5)
    width = float(theirs.high - theirs.low)
    assert ours.low == pytest.approx(theirs.low, abs=0.08 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.08 * width)


def test_a_lower_level_is_narrower():
    wide, narrow = (
        metrics.bootstrap(jnp.asarray(VALUES), key=KEY, resamples=4000, level=level)
        for level in (0.95, 0.5)
    )
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high


def test_cases_are_drawn_whole_and_statistics_may_be_several_numbers():
    pairs = {"x": jnp.arange(30.0), "y": 2 * jnp.arange(30.0)}

    def both(cases: dict[str, jax.Array]) -> jax.Array:
        return jnp.stack([cases["y"].sum() / cases["x"].sum(), cases["x"].mean()])

    found = metrics.bootstrap(pairs, both, key=KEY, resamples=200)
    assert (found.low[0], found.high[0]) == (2.0, 2.0)
    assert found.low[1] < 14.5 < found.high[1]


def test_graphs_without_edges_can_be_left_out():
    values = jnp.array([0.5, jnp.nan, 0.75, 1.0])
    interval = metrics.bootstrap(values, jnp.nanmean, key=KEY, resamples=200)
    assert interval.estimate == pytest.approx(0.75)
    assert 0.5 <= interval.low < interval.high <= 1.0


def test_how_it_is_written():
    interval = metrics.Interval(jnp.array(0.98712), jnp.array(0.97), jnp.array(0.9949))
    assert str(interval) == "0.987 [0.970, 0.995]"


def test_bad_input():
    with pytest.raises(DataError, match="no cases"):
        metrics.bootstrap(jnp.zeros(0), key=KEY)
    with pytest.raises(DataError, match="different lengths"):
        metrics.bootstrap((jnp.zeros(2), jnp.zeros(3)), key=KEY)
    with pytest.raises(OptionError, match="level is 95"):
        metrics.bootstrap(jnp.zeros(3), key=KEY, level=95.0)
    with pytest.raises(OptionError, match="resamples is 0"):
        metrics.bootstrap(jnp.zeros(3), key=KEY, resamples=0)
