"""Drawings, curves and replays: what they say is what they were given."""

from __future__ import annotations

import json
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from browser import launched, reading
from hypothesis import given, settings
from hypothesis import strategies as st
from surrogates import random_surrogate

from acbo._errors import DataError
from acbo.evaluation import Contest, DiscoveryCell, DiscoveryScores, PolicyScores
from acbo.metrics import Interval, reliability
from acbo.optimise import ProblemPrior, begin, named_problem
from acbo.policy import GRPOMetrics
from acbo.report import (
    GraphDrawing,
    OptimisationReplay,
    Recording,
    add_discovery_scores,
    add_graph,
    add_optimisation,
    add_policy_scores,
    learning_curves,
    record_optimisation,
    regret_curves,
    steps_table,
)
from acbo.report._layout import layout
from acbo.scm import Family, standardise
from acbo.surrogate import Metrics
from worldloom import report

TRUTH = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]], bool)


def recording() -> Recording:
    rng = np.random.default_rng(0)
    worth = np.array([-0.4, 0.2, 0.7, -0.1, 1.0])
    beliefs = rng.uniform(size=(6, 4, 4)) * ~np.eye(4, dtype=bool)
    return Recording(
        "learned",
        ("A", "B", "<S>", "Y"),
        3,
        np.array([0, 1, 0, 2, 1]),
        np.array([1.0, -2.0, 3.0, 0.5, -3.0]),
        np.array([0.1, 0.2, 0.3, 0.4, 3.5]),
        worth,
        np.maximum.accumulate(worth),
        beliefs,
        TRUTH,
    )


@given(seed=st.integers(0, 10**6), d=st.integers(1, 20), most=st.integers(2, 7))
@settings(max_examples=40)
def test_likely_edges_lead_to_later_layers(seed, d, most):
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)
    edges = np.triu(rng.random((d, d)) < 0.3, 1)[order][:, order]
    chances = np.where(edges, 0.9, 0.05)
    found = layout(chances, most=most)
    variables = [[i for i in layer if i < d] for layer in found.layers]
    assert sorted(i for layer in variables for i in layer) == list(range(d))
    assert max(map(len, variables)) <= most
    depth = {i: k for k, layer in enumerate(found.layers) for i in layer}
    for i, j in np.argwhere(edges).tolist():
        assert depth[i] < depth[j]
        passed = [depth[lane] for lane in found.routes[i, j]]
        assert passed == list(range(depth[i] + 1, depth[j])), "one lane in each layer between"
    centres, width, height = found.places(along=50.0, across=80.0, upright=True)
    assert len(set(centres.values())) == len(centres)
    assert all(0 < x < width and 0 < y < height for x, y in centres.values())


def test_a_circle_is_drawn_too():
    chances = np.array([[0, 0.9, 0], [0, 0, 0.8], [0.6, 0, 0]])
    html = GraphDrawing(chances, ["a", "b", "c"]).render().html
    assert html.count('data-edge="2-0"') == 2, "in the wide and in the narrow drawing"


def test_arrows_tell_their_probability():
    chances = np.array([[0.0, 0.93, 0.05], [0.3, 0.0, 0.0], [0.0, 0.0, 0.0]])
    html = GraphDrawing(chances, ["rain", "<river>", "sea"], target=1).render().html
    assert "<title>rain → &lt;river&gt;: 0.93</title>" in html
    assert 'data-edge="0-1" style="--p: 0.930"' in html
    assert '<g class="edge unsure" data-edge="1-0" style="--p: 0.300">' in html
    assert 'data-edge="0-2"' not in html, "below 0.1"
    assert html.count('class="node target" data-node="1"') == 2
    assert "<river>" not in html


def test_with_the_truth_edges_are_found_wrong_or_missed():
    chances = np.array([[0.0, 0.9, 0.05], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]])
    truth = np.zeros((3, 3), bool)
    truth[0, 1] = truth[0, 2] = True
    html = GraphDrawing(chances, ["a", "b", "c"], truth=truth).render().html
    kinds = dict(re.findall(r'<g class="edge (\w+)[^"]*" data-edge="(\d-\d)"', html))
    assert kinds == {"found": "0-1", "wrong": "1-2", "missed": "0-2"}
    assert "1 found</li>" in html
    assert "1 missed</li>" in html


def test_what_cannot_be_drawn():
    with pytest.raises(DataError, match=r"probabilities is \[2, 2\] for 3 names"):
        GraphDrawing(np.zeros((2, 2)), ["a", "b", "c"])
    with pytest.raises(DataError, match="not between 0 and 1"):
        GraphDrawing(np.full((2, 2), 1.5), ["a", "b"])


def test_a_chapter_has_the_likely_edges_as_a_table():
    chances = np.array([[0.0, 0.93], [0.02, 0.0]])
    html = add_graph(report.Report("x"), chances, ["rain", "river"]).html()
    assert ">rain</td><td>river</td>" in html.replace(' class="number"', "")
    assert "0.930" in html
    assert "0.020" not in html


def stacked(kind, leaves):
    """Records as a run leaves them: the steps along the first axis."""
    one = kind(*(jnp.zeros((), leaf.dtype) for leaf in leaves))
    return jax.tree.unflatten(jax.tree.structure(one), leaves)


def test_learning_curves_are_running_means():
    rng = np.random.default_rng(0)
    loss = rng.random(200)
    lesson = jnp.asarray(rng.integers(0, 2, 200), jnp.int32)
    other = jnp.zeros(200)
    chart = learning_curves(stacked(Metrics, [other, jnp.asarray(loss), other, other, lesson]))
    assert list(chart.series) == ["all lessons", "lesson 1", "lesson 2"]
    steps, values = chart.series["all lessons"]
    np.testing.assert_allclose(values, np.convolve(loss, np.full(4, 0.25), "valid"), atol=1e-6)
    assert steps[0] == 3
    worth = jnp.linspace(0.0, 1.0, 10)
    chart = learning_curves(stacked(GRPOMetrics, [worth, worth, worth + 1, worth, worth]))
    np.testing.assert_allclose(chart.series["best of the budget"][1], np.linspace(1, 2, 10))
    with pytest.raises(DataError, match="records is a dict"):
        learning_curves({})


def exactly(value) -> Interval:
    value = jnp.asarray(value, jnp.float32)
    return Interval(value, value - 0.1, value + 0.1)


def policy_scores(name: str, mean: float) -> PolicyScores:
    contest = Contest("in family", ProblemPrior(), budget=3)
    regret = exactly(jnp.array([0.9, 0.5, 1 - mean]))
    one = exactly(mean)
    return PolicyScores(name, contest, 90, 10, one, one, regret, one, one, 0.25)


def test_regret_has_six_lines_at_most_and_the_learned_one_among_them():
    scores = [policy_scores(f"p{k}", 0.5 + k / 20) for k in range(8)]
    scores.append(policy_scores("learned", 0.1))
    chart = regret_curves(scores)
    assert list(chart.series) == ["learned", "p7", "p6", "p5", "p4", "p3"]
    assert "Not drawn: p2, p1, p0." in chart.caption
    np.testing.assert_allclose(chart.series["p7"][1], [0.9, 0.5, 0.15], atol=1e-6)
    page = add_policy_scores(report.Report("x"), scores).html()
    assert "10 more had nothing to gain" in page
    with pytest.raises(DataError, match="scores is empty"):
        regret_curves([])


def test_a_chapter_of_discovery_has_its_reliability():
    table = reliability(jnp.array([0.1, 0.9]), jnp.array([False, True]))
    one = exactly(0.75)
    cell = DiscoveryCell(Family(), 5, 100, 0.5, goal=0.97)
    scores = DiscoveryScores(cell, 96, one, one, one, one, one, table, 1.5, 16, None)
    html = add_discovery_scores(report.Report("x"), [scores]).html()
    assert "0.750 (0.650-0.850)" in html
    assert "Reliability: linear, d=5, n=100, half interventional" in html


def test_the_replay_holds_the_recording():
    told = recording()
    html = OptimisationReplay(told).render().html
    about = json.loads(re.search(r'class="about">(.*?)</script>', html)[1])
    np.testing.assert_allclose(about["beliefs"], told.beliefs, atol=5e-4)
    assert about["variables"] == [0, 1, 0, 2, 1]
    assert "number 5: B set to -3.00, Y seen at 3.50; 100 % of what" in html
    assert "<S>" not in html
    columns, rows = steps_table(told)
    assert columns == ["set", "Y seen", "worth", "best"]
    assert rows[-1] == ["5. B = -3.00", "3.500", "1.000", "1.000"]


def test_a_browser_steps_through(chromium, tmp_path):
    told = recording()
    path = add_optimisation(report.Report("A replay"), told).save(tmp_path / "page.html")
    ready = "figure.acbo-replay[data-state=ready]"
    with (
        launched(chromium) as browser,
        reading(browser, path, width=390, height=800, ready=ready) as visit,
    ):
        page = visit()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.inner_text(".acbo-now").startswith("Before any intervention")
        page.evaluate(f"document.querySelector('{ready}').player.seek(2)")
        assert page.inner_text(".acbo-now") == (
            "Step 2: B set to \u22122.00; Y was 0.20. Worth 0.20, best so far 0.20."
        )
        drawn = page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('svg.narrow [data-edge]')]"
            ".map((g) => [g.dataset.edge, g.style.getPropertyValue('--p')]))"
        )
        expected = {f"{i}-{j}": told.beliefs[2, i, j] for i in range(4) for j in range(4) if i != j}
        assert {k: float(v) for k, v in drawn.items()} == pytest.approx(
            {k: expected[k] for k in drawn}, abs=1e-3
        )
        marked = page.evaluate("document.querySelector('svg.narrow .node.now').dataset.node")
        assert marked == "1"
        page.keyboard.press("Tab")
        page.locator(".transport .forth").click()
        assert page.inner_text(".acbo-now").startswith("Step 3: A set to 3.00")
        assert page.inner_text("[data-cause='0'] b") == f"{told.beliefs[3, 0, 3]:.2f}"


@pytest.mark.slow
def test_a_recording_is_what_was_played():
    network = random_surrogate()
    problem = named_problem("toy")
    told = record_optimisation(
        problem, "linear-ucb", key=jax.random.key(3), surrogate=network, observed=6, budget=3
    )
    assert told.names == ("X", "Z", "Y")
    assert told.minimise
    assert told.beliefs.shape == (4, 3, 3)
    # At its limits, in the units of the publication.
    limits = {0: (-5.0, 5.0), 1: (-5.0, 20.0)}
    for variable, value in zip(told.variables.tolist(), told.values, strict=True):
        assert min(abs(value - limit) for limit in limits[variable]) < 1e-3
    # What is believed before the first step is what the first samples say.
    game = begin(jax.random.key(3), problem, observed=6, budget=3)
    first = jax.nn.sigmoid(eqx.filter_jit(network)(standardise(game.samples)).edge_logits)
    np.testing.assert_allclose(told.beliefs[0], first, atol=1e-5)
    assert np.abs(told.beliefs[1] - told.beliefs[0]).max() > 1e-4
    assert OptimisationReplay(told).render().html
