"""Issue 24, 4.2: what a network can take it tells itself, and every file of one is read."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import jax
import numpy as np
import pytest

import acbo
from acbo._errors import OptionError, SizeError
from acbo._files import load_policy, load_surrogate, save_network
from acbo.policy import LearnedPolicy, PolicyNetwork
from acbo.scm import Family
from acbo.surrogate import (
    Curriculum,
    Lesson,
    Surrogate,
    SurrogateConfig,
    TrainingConfig,
    train_surrogate,
)
from worldloom import store
from worldloom.cli import main

KEY = jax.random.key(0)
SIZES = {"hidden": 4, "blocks": 2, "heads": 2, "moments": 2}


def network(**options: int | None) -> Surrogate:
    return Surrogate(SurrogateConfig(**SIZES, **options), key=KEY)  # pyright: ignore[reportArgumentType]


def table(d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, d))


def test_a_network_of_ones_own_has_its_own_limit():
    with pytest.raises(
        SizeError, match="7 variables; discover takes at most 5, for which your network"
    ):
        acbo.discover(table(7), network=network(trained_for=5))
    with pytest.raises(
        SizeError, match="21 variables; discover takes at most 20, for which the network in"
    ):
        acbo.discover(table(21))


def test_a_network_without_a_limit_takes_more_than_that_of_the_package():
    found = acbo.discover(table(22), network=network())
    assert found.edge_probabilities.shape == (22, 22)
    with pytest.raises(SizeError, match="sums over their subsets take at most 20"):
        acbo.discover(table(22), network=network(), acyclic=True)


def test_training_tells_the_network_what_it_was_trained_for():
    """The limit is that of the largest lesson, of all trainings that came one after the other."""
    first = network(trained_for=3).now_trained_for(5)
    assert first.config.trained_for == 5
    assert first.now_trained_for(4).config.trained_for == 5
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(network()), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_the_limit_follows_from_the_lessons():
    lessons = Curriculum((Lesson((2, 4), (8, 16), 2),), ((Family(), 1.0),))
    result = train_surrogate(
        KEY,
        lessons,
        surrogate=SurrogateConfig(**SIZES),
        config=TrainingConfig(steps=1),
        progress=False,
    )
    assert result.state.average.config.trained_for == 4


def test_the_files_of_the_package_are_files_like_all_others():
    folder = Path(str(resources.files("acbo.pretrained")))
    assert load_surrogate(folder / "surrogate.loom").config.trained_for == 20
    policy = load_policy(folder / "policy.loom")
    for a, b in zip(
        jax.tree.leaves(policy), jax.tree.leaves(acbo.pretrained_policy()), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_what_is_written_is_read_again(tmp_path):
    save_network(tmp_path / "own.loom", network(trained_for=7))
    again = load_surrogate(tmp_path / "own.loom")
    assert again.config == SurrogateConfig(**SIZES, trained_for=7)


@pytest.mark.parametrize("kind", ["policy", "sizes", "nothing"])
def test_files_of_something_else_are_refused_in_a_sentence(kind, tmp_path, capsys):
    path = tmp_path / "x.loom"
    if kind == "policy":
        save_network(path, PolicyNetwork(8, hidden=4, key=KEY))
    else:
        meta = {"network": "surrogate", "sizes": {"wings": 2}} if kind == "sizes" else {}
        store.save(path, {"a": np.ones(3)}, meta=meta)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert main(["acbo", "discover", str(tmp_path / "t.csv"), "--surrogate", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("worldloom: error: --surrogate")
    assert "acbo train surrogate" in said


def test_a_policy_for_another_surrogate_is_refused():
    with pytest.raises(OptionError, match="hidden=64, this one has hidden=4"):
        LearnedPolicy(PolicyNetwork(128, key=KEY), network())
