"""What `worldloom demo` shows of ARC: real puzzles in a thousand worlds, and replays of some."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

import jaxarc
from jaxarc.envs import ArcObservation, BboxAction, EnvironmentConfig, JaxArcConfig
from jaxarc.envs import UnifiedActionConfig as ActionConfig
from jaxarc.utils.visualization import Replays, watch_rollout
from worldloom import report

SHOWN = 200  # episodes on the page
PATIENCE = 30  # steps of an episode


def add_to(page: report.Report, *, worlds: int = 1024, steps: int = 120) -> str:
    """Play ARC-AGI-1 in many worlds at once, add a chapter about it, and say how it went.

    Each world is dealt a training task at random. It is edited by chance: half of the edits take
    the whole grid, the others any box, so that a mirror or a turn is found now and then.
    """
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=PATIENCE, record_history=False),
        action=ActionConfig(selection_format="bbox"),
    )
    env = jaxarc.make("AGI1-train", config=config)

    def play(seed: int) -> tuple[Any, float]:
        began = time.perf_counter()
        played = watch_rollout(env, _by_chance, None, jax.random.key(seed), steps, worlds=worlds)
        return jax.block_until_ready(played), time.perf_counter() - began

    play(0)
    (_, rollout, recording), seconds = play(1)
    assert recording is not None
    rate = worlds * steps / seconds
    ended = int(jnp.sum(rollout.terminated | rollout.truncated))
    solved = int(jnp.sum(rollout.success))
    page.section(
        "ARC: a thousand puzzles at once",
        f"{worlds:,} worlds played the {env.buffer.num_tasks} training tasks of ARC-AGI-1 by "
        f"chance: {worlds * steps:,} edits, of 34 kinds, in **{seconds:.1f} seconds**, which is "
        f"**{rate:,.0f} a second**, recorded for replay. {ended:,} episodes ended, and {solved:,} "
        "of them found the answer. Below are those with the highest rewards.",
    )
    best = sorted(recording.episodes, key=lambda e: (-e.reward, -e.length))[:SHOWN]
    page.add(
        Replays(
            recording,
            best,
            caption="Space plays and pauses, the arrow keys step, n is the next episode.",
        )
    )
    return f"{worlds:,} ARC worlds: {rate:,.0f} steps/s, {solved:,} of {ended:,} episodes solved"


def _by_chance(params: Any, seen: ArcObservation, key: Array) -> BboxAction:
    """Any operation but submit, on the whole grid or on a box in it."""
    exists: Bool[Array, "worlds height width"] = seen.grid >= 0
    height, width = (exists.any(axis=axis).sum(axis=1, dtype=jnp.int32) for axis in (2, 1))
    worlds = height.shape[0]
    for_operation, for_whole, *for_box = jax.random.split(key, 6)
    operation = jax.random.randint(for_operation, (worlds,), 0, 34, jnp.int32)
    whole = jax.random.bernoulli(for_whole, 0.5, (worlds,))
    sides = (height, width, height, width)
    drawn = [
        (jax.random.uniform(key, (worlds,)) * side.astype(jnp.float32)).astype(jnp.int32)
        for key, side in zip(for_box, sides, strict=True)
    ]
    zero = jnp.zeros_like(height)
    corners = (zero, zero, height - 1, width - 1)
    return BboxAction(
        operation, *(jnp.where(whole, c, d) for c, d in zip(corners, drawn, strict=True))
    )
