"""The loops that drawing on the device is compared with draw the same models."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

from acbo.scm import Family
from worldloom import mesh

FILE = Path(__file__).parents[2] / "benchmarks" / "acbo_speedup.py"
VARIABLES, SAMPLES = 5, 100


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_acbo_speedup", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh, "use_every_core", lambda: None)  # JAX has begun long ago
        spec.loader.exec_module(module)
    return module


def mean_squared_correlation(tables: np.ndarray) -> float:
    found = np.einsum("bni,bnj->bij", tables, tables) / tables.shape[1]
    return float((found[:, ~np.eye(tables.shape[2], dtype=bool)] ** 2).mean())


def test_loops_of_python_draw_what_the_device_draws(script: ModuleType):
    rng = random.Random(0)
    pairs = [
        script.python_scm(rng, VARIABLES, SAMPLES, script.plain_mechanism(rng)) for _ in range(400)
    ]
    tables, flags = (np.stack(part) for part in zip(*pairs, strict=True))
    draw = jax.vmap(lambda key: Family().study(key, VARIABLES, SAMPLES, interventional=0.5).samples)
    samples = jax.jit(draw)(jax.random.split(jax.random.key(0), 400))

    assert np.allclose(tables.mean(axis=1), 0, atol=1e-5)
    assert np.allclose(tables.std(axis=1), 1, atol=1e-4)
    assert flags.sum(axis=2).max() == 1
    assert abs(flags.sum(axis=2).mean() - 0.5) < 0.02
    ours = mean_squared_correlation(np.asarray(samples.values))
    assert abs(mean_squared_correlation(tables) - ours) < 0.1 * ours
    # How large a value that is set is, after standardising, is how variances compare with it.
    set_, seen = np.abs(tables[flags]).mean(), np.abs(np.asarray(samples.values))
    assert abs(set_ - seen[np.asarray(samples.intervened)].mean()) < 0.05 * set_


def test_values_by_jax_have_the_same_models(script: ModuleType):
    weights, scale, causes = {0: 2.0, 3: -1.0}, 0.5, [1.0, 9.0, 9.0, 4.0]
    for kind in (script.plain_mechanism, script.jax_mechanism):
        value = kind(random.Random(1))(weights, scale)
        drawn = np.array([value(causes) for _ in range(400)])
        assert abs(drawn.mean() + 2.0) < 4 * scale / 20
        assert abs(drawn.std() - scale) < 0.15 * scale


def test_tables_by_numpy_and_by_jax_are_equal(script: ModuleType):
    rows, chosen = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [None, 1, 0]
    fast, slow = script.numpy_table(rows, chosen), script.jax_table(rows, chosen)
    assert np.array_equal(fast[0], slow[0])
    assert np.array_equal(fast[1], np.asarray(slow[1]) > 0)
    assert fast[1].tolist() == [[False, False], [False, True], [True, False]]
