"""The conformance test passes good environments and refuses each kind of bad one."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import jaxarc
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedDatasetConfig
from jaxarc.testing import ConformanceError, check_environment

KEY = jax.random.key(3)


class State(eqx.Module):
    place: Any
    steps: Any
    key: Any


class Action(eqx.Module):
    operation: Any


class Info(eqx.Module):
    terminated: Any
    truncated: Any
    valid: Any
    final_observation: Any


@dataclasses.dataclass
class Walk:
    """Worlds on a line: left, right, stay, or (forbidden) jump to the goal at 4."""

    @property
    def action_mask(self):
        return jnp.array([True, True, True, False])

    def begin(self, keys):
        own, of_place = jax.vmap(jax.random.split, out_axes=1)(keys)
        place = jax.vmap(lambda key: jax.random.randint(key, (), -3, 3))(of_place)
        return State(place, jnp.zeros(keys.shape, jnp.int32), own)

    def reset(self, key, *, worlds):
        state = self.begin(jax.random.split(key, worlds))
        return state, self.see(state)

    def see(self, state):
        return {"place": state.place}

    def moved(self, states, operation):
        return states.place + jnp.array([-1, 1, 0, 0])[operation]

    def fresh(self, states):
        return self.begin(states.key)

    def step(self, states, actions):
        return _step(self, states, actions)

    def ends(self, place, steps):
        terminated = place >= 4
        return terminated, (steps >= 6) & ~terminated

    def valid(self, operation):
        return self.action_mask[operation]

    def last(self, after, shown):
        return self.see(after)

    def reward(self, place):
        return place.astype(jnp.float32)

    def random_action(self, key, *, worlds):
        return Action(jax.random.randint(key, (worlds,), 0, 3))

    def __hash__(self):
        return hash(type(self))

    def __eq__(self, other):
        return type(self) is type(other)


def whole_step(env, states, actions):
    place = env.moved(states, actions.operation)
    after = State(place, states.steps + 1, states.key)
    terminated, truncated = env.ends(place, after.steps)
    done = terminated | truncated
    fresh = env.fresh(after)
    new = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, after)
    shown = env.see(new)
    info = Info(terminated, truncated, env.valid(actions.operation), env.last(after, shown))
    return new, shown, env.reward(place), done, info


_step = jax.jit(whole_step, static_argnums=0)


def test_a_good_environment_keeps_every_rule():
    assert set(check_environment(Walk(), key=KEY)) >= {"shapes", "purity", "scan", "vmap", "mask"}


def test_the_arc_environment_keeps_every_rule():
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=12, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=10, max_grid_width=10),
    )
    tasks = jaxarc.data.load("AGI1-train").subset("up-to-10x10")
    check_environment(jaxarc.make(tasks, config=config), key=KEY, worlds=8, steps=30)


class BothEnds(Walk):
    def ends(self, place, steps):
        return place >= 4, (place >= 4) | (steps >= 6)


class NeverEnds(Walk):
    def ends(self, place, steps):
        return place > 1000, place > 1000


class GrowingState(Walk):
    def step(self, states, actions):
        state, *rest = _step(self, states, actions)
        return dataclasses.replace(state, place=state.place.astype(jnp.int16)), *rest

    def moved(self, states, operation):
        return states.place.astype(jnp.int32) + jnp.array([-1, 1, 0, 0])[operation]


class IntegerReward(Walk):
    def reward(self, place):
        return place


class Impure(Walk):
    def step(self, states, actions):
        object.__setattr__(self, "calls", getattr(self, "calls", 0) + 1)
        state, shown, reward, done, info = _step(self, states, actions)
        return state, shown, reward + self.calls, done, info


class LosesTheLastObservation(Walk):
    def last(self, after, shown):
        return shown


class WrongLastObservation(Walk):
    def last(self, after, shown):
        return {"place": after.place + 1}


class StaysDone(Walk):
    def fresh(self, states):
        return dataclasses.replace(self.begin(states.key), place=states.place, steps=states.steps)

    def last(self, after, shown):
        ended = (after.place >= 4) | (after.steps >= 6)
        return {"place": jnp.where(ended, shown["place"] + 1, shown["place"])}


class SameKey(Walk):
    def fresh(self, states):
        return dataclasses.replace(self.begin(states.key), key=states.key)


class DeafToKeys(Walk):
    def reset(self, key, *, worlds):
        return super().reset(jax.random.key(0), worlds=worlds)


class LetsThemJump(Walk):
    def moved(self, states, operation):
        return jnp.where(operation == 3, 3, super().moved(states, operation))


class CallsThemValid(Walk):
    def valid(self, operation):
        return operation >= 0


class DrawsForbidden(Walk):
    def random_action(self, key, *, worlds):
        return Action(jax.random.randint(key, (worlds,), 0, 4))


class Recompiles(Walk):
    def step(self, states, actions):
        return jax.jit(lambda *args: whole_step(self, *args))(states, actions)


class KnowsNeighbours(Walk):
    def reward(self, place):
        return jnp.sum(place).astype(jnp.float32) + place.astype(jnp.float32)


class HostRandom(Walk):
    """Equal from call to call, but not inside a scan: it looks at how it is called."""

    def step(self, states, actions):
        state, shown, reward, done, info = _step(self, states, actions)
        traced = isinstance(states.place, jax.core.Tracer)
        return state, shown, reward + (1.0 if traced else 0.0), done, info


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (BothEnds, "ends: .* both terminated and truncated"),
        (NeverEnds, "ends: no episode ended in 64 steps"),
        (GrowingState, "shapes: state.place was int32"),
        (IntegerReward, "shapes: reward is int32"),
        (Impure, "purity: a second step"),
        (LosesTheLastObservation, "last observation: wherever an episode ended"),
        (WrongLastObservation, "last observation: .* no episode ended"),
        (StaysDone, "new episodes: a world .* done for ever"),
        (SameKey, "keys: .* the key of the old one"),
        (DeafToKeys, "keys: a reset with another key"),
        (LetsThemJump, "mask: a forbidden operation changed"),
        (CallsThemValid, "mask: a forbidden operation is called valid"),
        (DrawsForbidden, "mask: random_action draws"),
        (Recompiles, "compilation: "),
        (KnowsNeighbours, "vmap: "),
        (HostRandom, "scan: "),
    ],
)
def test_a_broken_environment_is_refused_by_its_rule(broken, rule):
    with pytest.raises(ConformanceError, match=rule):
        check_environment(broken(), key=KEY)


def test_what_it_needs_is_asked_for():
    with pytest.raises(ValueError, match="worlds must be even"):
        check_environment(Walk(), key=KEY, worlds=3)
