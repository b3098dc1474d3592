"""Figures of discovery, computed again by scikit-learn, by enumeration, and by hand."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from acbo import exact
from acbo._errors import OptionError
from acbo.evaluation import CELLS, DiscoveryCell, discovery_table, evaluate_discovery
from acbo.evaluation import _discovery as inside
from acbo.scm import Family

CELL = DiscoveryCell(Family(), d=4, n=30, interventional=0.5, goal=0.9)
GRAPHS, KEY = 12, jax.random.key(5)


@pytest.fixture(scope="module")
def scores(quick):
    return evaluate_discovery(CELL, quick, graphs=GRAPHS, batch=4, key=KEY, compare_exact=False)


@pytest.fixture(scope="module")
def data():
    """What was judged: true graphs, tables, and probabilities, possible edges in a row."""
    first, _ = jax.random.split(KEY)
    truth, samples = inside._draw(CELL, jax.random.split(first, GRAPHS))
    apart = ~np.eye(4, dtype=bool)
    said = [said_of_correlations(np.asarray(table, float))[apart] for table in samples.values]
    return np.asarray(truth)[:, apart], samples, np.stack(said)


def said_of_correlations(x: np.ndarray) -> np.ndarray:
    """What the network `Correlations` says of a table, in NumPy."""
    logits = 6 * np.abs(x.T @ x / len(x)) - 2 + (x**2).T @ x / len(x)
    return 1 / (1 + np.exp(-logits))


def calibration_error(said, truth) -> float:
    said, truth = said.ravel(), truth.ravel().astype(float)
    place = np.minimum((said * 10).astype(int), 9)
    gaps = [
        abs(said[place == b].mean() - truth[place == b].mean()) * (place == b).mean()
        for b in np.unique(place)
    ]
    return float(sum(gaps))


def test_the_figures_are_those_of_scikit_learn(scores, data):
    truth, _, said = data
    both = [t.any() and not t.all() for t in truth]
    each = [roc_auc_score(t, s) for t, s, ok in zip(truth, said, both, strict=True) if ok]
    assert float(scores.auroc.estimate) == pytest.approx(np.mean(each), abs=1e-5)
    assert float(scores.log_loss.estimate) == pytest.approx(
        log_loss(truth.ravel(), said.ravel().astype(float)), abs=1e-4
    )
    assert float(scores.calibration_error.estimate) == pytest.approx(
        calibration_error(said, truth), abs=1e-5
    )
    assert float(scores.reliability.error) == pytest.approx(
        float(scores.calibration_error.estimate), abs=1e-5
    )
    # An edge turned around counts one.
    wrong = np.zeros((GRAPHS, 4, 4), bool)
    wrong[:, ~np.eye(4, dtype=bool)] = (said > 0.5) != truth
    assert float(scores.shd.estimate) == pytest.approx(
        np.triu(wrong | wrong.transpose(0, 2, 1)).sum() / GRAPHS
    )


def test_intervals_hold_the_estimate(scores):
    for name in ("auroc", "f1", "shd", "log_loss"):
        interval = getattr(scores, name)
        assert interval.low <= interval.estimate <= interval.high
        assert interval.low < interval.high


@pytest.mark.slow
def test_the_exact_posterior_is_that_of_enumeration(quick, scores, data):
    truth, samples, said = data
    again = evaluate_discovery(CELL, quick, graphs=GRAPHS, batch=4, key=KEY)
    assert float(again.auroc.estimate) == float(scores.auroc.estimate)
    assert scores.exact is None
    posterior = jax.jit(
        jax.vmap(
            lambda x, m: (
                exact.graph_posterior(
                    x, m, prior="orders", edge_probability=2 / 3
                ).edge_probabilities
            )
        )
    )
    right = np.asarray(posterior(samples.values, samples.intervened))[:, ~np.eye(4, dtype=bool)]
    both = [t.any() and not t.all() for t in truth]
    each = [roc_auc_score(t, s) for t, s, ok in zip(truth, right, both, strict=True) if ok]
    found = again.exact
    assert found is not None
    assert float(found.auroc.estimate) == pytest.approx(np.mean(each), abs=1e-4)
    assert float(found.gap.estimate) == pytest.approx(np.abs(right - said).mean(), abs=1e-4)
    assert float(found.calibration_error.estimate) == pytest.approx(
        calibration_error(said, right), abs=1e-4
    )
    assert found.log_loss.estimate < scores.log_loss.estimate, "a guess knows less"


def test_the_prior_of_the_exact_posterior_is_that_of_the_family():
    edges = {d: float(inside._edge_probability(DiscoveryCell(Family(), d, 100))) for d in (5, 10)}
    assert edges == pytest.approx({5: 0.5, 10: 2 / 9})


def test_a_row_of_the_table(scores):
    columns, rows = discovery_table([scores])
    assert len(columns) == len(rows[0])
    row = dict(zip(columns, rows[0], strict=True))
    assert row["cell"] == "linear, d=4, n=30, half interventional"
    assert row["goal"] == "0.90"
    assert row["AUROC"].startswith(f"{float(scores.auroc.estimate):.3f} (")
    assert scores.milliseconds > 0


def test_the_cells_are_those_of_the_goals():
    told = [(c.family.mechanism, c.d, c.n, c.interventional, c.goal) for c in CELLS]
    assert told == [
        ("linear", 5, 100, 0.5, 0.97),
        ("linear", 5, 100, 0.0, 0.86),
        ("linear", 10, 100, 0.5, 0.95),
        ("linear", 10, 1000, 0.5, 0.97),
        ("linear", 20, 1000, 0.5, 0.94),
        ("fourier", 5, 100, 0.5, 0.97),
        ("fourier", 5, 100, 0.0, 0.93),
    ]
    assert str(CELLS[-1]) == "fourier, d=5, n=100, observational"


@pytest.mark.slow
def test_the_network_is_asked(surrogate):
    cell = DiscoveryCell(Family(mechanism="fourier"), d=3, n=20)
    scores = evaluate_discovery(cell, surrogate, graphs=8, batch=8)
    assert np.isfinite(float(scores.log_loss.estimate))
    assert "exact AUROC" in discovery_table([scores])[0]


def test_what_is_no_cell(quick):
    with pytest.raises(OptionError, match="d is 1"):
        DiscoveryCell(Family(), 1, 100)
    with pytest.raises(OptionError, match=r"interventional is 1\.5"):
        DiscoveryCell(Family(), 3, 100, 1.5)
    with pytest.raises(OptionError, match="graphs is 10 and batch is 4"):
        evaluate_discovery(CELL, quick, graphs=10, batch=4)
