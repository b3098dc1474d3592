"""From pair to pair: the controls 35-41, and the official protocol for test pairs.

In test mode every test pair is played, in order. A pair is finished when it is solved, or handed
in `max_attempts` times; then the world goes on to the first pair that is still open. When none
is open the episode has ended, and the score is the share of test pairs that were solved.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from jaxarc.bitgrid._masks import columns_below, lowest_bit
from jaxarc.data import TaskBuffer
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._state import World
from jaxarc.operations import operation_id

MAX_TESTS = 8  # pairs that `World.attempts` has room for, four bits each
MAX_DEMOS = 32  # pairs that `World.solved_demos` has room for


def attempts_at(state: World) -> UInt32[Array, " lanes"]:
    """One attempt at the pair on the board, to be added to `attempts`."""
    return jnp.uint32(1) << (4 * state.pair_index.astype(jnp.uint32))


def finished(state: World, max_attempts: int) -> UInt32[Array, " lanes"]:
    """The test pairs that are solved or out of attempts, as bits."""
    result = state.solved_tests
    for pair in range(MAX_TESTS):
        used = (state.attempts >> (4 * pair)) & 15
        result = result | jnp.where(used >= max_attempts, jnp.uint32(1 << pair), 0)
    return result


def is_open(state: World, max_attempts: int) -> Bool[Array, " lanes"]:
    """Whether the test pair on the board may still be handed in."""
    here = state.pair_index.astype(jnp.uint32)
    used = (state.attempts >> (4 * here)) & 15
    return (used < max_attempts) & (((state.solved_tests >> here) & 1) == 0)


class PairControl(eqx.Module):
    """Where each world goes after a step, and whether its episode has ended."""

    goes: Bool[Array, " lanes"]
    pair: Int32[Array, " lanes"]
    test: Bool[Array, " lanes"]
    ended: Bool[Array, " lanes"]
    score: Float32[Array, " lanes"]

    @classmethod
    def after(
        cls,
        state: World,
        operation: Int32[Array, " lanes"],
        config: JaxArcConfig,
        tasks: TaskBuffer,
    ) -> PairControl:
        """Read the controls, and apply the protocol in test mode."""
        demos, tests = tasks.num_demos[state.task_index], tasks.num_tests[state.task_index]
        every_demo, every_test = columns_below(demos), columns_below(tests)
        closed = finished(state, config.environment.max_attempts)
        open_demos = every_demo & ~state.solved_demos
        open_tests = every_test & ~closed
        is_ = lambda name: operation == operation_id(name)  # noqa: E731

        goes, pair, test = is_("reset_pair"), state.pair_index, state.on_test_pair
        for name, number, count, among_tests in (
            ("next_demo", jnp.where(test, 0, pair + 1), demos, False),
            ("previous_demo", jnp.where(test, demos, pair) - 1, demos, False),
            ("next_test", jnp.where(test, pair + 1, 0), tests, True),
            ("previous_test", jnp.where(test, pair, tests) - 1, tests, True),
            ("first_unsolved_demo", lowest_bit(open_demos), demos, False),
            ("first_open_test", lowest_bit(open_tests), tests, True),
        ):
            exists = (open_tests if among_tests else open_demos) != 0
            here = is_(name) & (exists if name.startswith("first") else True)
            pair = jnp.where(here, number % count, pair)
            test = jnp.where(here, among_tests, test)
            goes = goes | here

        if config.environment.episode_mode == "test":
            ended = open_tests == 0
            moves_on = ((closed >> state.pair_index.astype(jnp.uint32)) & 1) == 1
            moves_on = moves_on & state.on_test_pair & (operation == operation_id("submit"))
            pair = jnp.where(moves_on, lowest_bit(open_tests), pair)
            goes = (goes | moves_on) & ~ended
        else:
            ended = open_demos == 0
        solved = jax.lax.population_count(state.solved_tests).astype(jnp.float32)
        return cls(goes, pair, test, ended, solved / tests.astype(jnp.float32))


def go_to_pair(state: World, control: PairControl) -> World:
    """The state with the new pair's number; the pair is yet to be placed."""
    return dataclasses.replace(state, pair_index=control.pair, on_test_pair=control.test)
