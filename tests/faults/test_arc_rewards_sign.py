"""Issue 24, ARC 5: no option of a reward pays for what it is meant to cost, or the other way."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.envs import ConfigError, JaxArcConfig, SimilarityReward
from jaxarc.envs._reward import Transition

FIELDS = [field.name for field in dataclasses.fields(SimilarityReward)]


def one(before, after, success=False, submitted=False):
    return Transition(
        jnp.float32([before]), jnp.float32([after]), jnp.array([success]), jnp.array([submitted])
    )


def test_the_penalty_of_the_issue_is_refused_with_the_hint():
    with pytest.raises(ConfigError, match=r"step_penalty=-0\.01.*taken off.*step_penalty=0\.01"):
        SimilarityReward(step_penalty=-0.01)
    with pytest.raises(ConfigError, match=r"submit_penalty=-2.*taken off.*submit_penalty=2"):
        SimilarityReward(submit_penalty=-2)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, "1", None, True, 1j, [1]])
def test_every_option_is_a_number_that_is_not_negative(name, value):
    with pytest.raises(ConfigError, match=name):
        SimilarityReward(**{name: value})


@given(st.fixed_dictionaries({name: st.floats(0, 100, width=32) for name in FIELDS}))
def test_progress_never_costs_and_penalties_never_pay(options):
    reward = SimilarityReward(**options)
    same, worse, better = (float(reward(one(0.5, x))[0]) for x in (0.5, 0.25, 0.75))
    solved = float(reward(one(0.5, 1.0, success=True, submitted=True))[0])
    missed = float(reward(one(0.5, 0.5, submitted=True))[0])
    assert worse <= same <= better <= solved + 1e-4
    assert missed <= same <= 0


def test_a_reward_of_the_wrong_form_is_refused_before_it_is_used():
    for bad in (3, None, "similarity", SimilarityReward, lambda: 0.0):
        with pytest.raises(ConfigError, match="reward"):
            JaxArcConfig(reward=bad)

    @dataclasses.dataclass
    class NoHash:
        def __call__(self, transition):
            return transition.similarity_after

    from jaxarc import arc_reset, create_mock_task, make
    from jaxarc.training import tiny_tasks

    config = JaxArcConfig(reward=NoHash())
    with pytest.raises(ConfigError, match=r"reward.*hash"):
        make(tiny_tasks(), config=config)
    with pytest.raises(ConfigError, match=r"reward.*hash"):
        arc_reset(jax.random.key(0), config, create_mock_task())


@pytest.mark.parametrize(
    "what", [lambda t: jnp.float32(1), lambda t: t.success, lambda t: 1.0, lambda t: None]
)
def test_a_reward_that_is_not_one_number_a_world_is_refused(what):
    from jaxarc import arc_reset, arc_step, create_mock_task
    from jaxarc.envs import PointAction

    config = JaxArcConfig(reward=what)
    state, _ = arc_reset(jax.random.key(0), config, create_mock_task())
    with pytest.raises(ConfigError, match="reward"):
        arc_step(state, PointAction(0, 0, 0), config)


def test_what_is_right_stays_right():
    reward = SimilarityReward(similarity_weight=2, success_bonus=0, step_penalty=0)
    np.testing.assert_allclose(reward(one(0.25, 0.5)), 0.5)
