"""What `worldloom demo` shows of ARC: real puzzles in a thousand worlds, and replays of some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

import jaxarc
from jaxarc.envs import ArcObservation, BboxAction, EnvironmentConfig, JaxArcConfig
from jaxarc.envs import UnifiedActionConfig as ActionConfig
from jaxarc.utils.visualization import Replays, watch_rollout
from worldloom import bench, report
from worldloom.demo import Line

SHOWN = 200  # episodes on the page
PATIENCE = 30  # steps of an episode
ALONE = 60  # steps of the one world that is played from Python


def add_to(page: report.Report, *, worlds: int = 1024, steps: int = 120, rounds: int = 3) -> Line:
    """Play ARC-AGI-1 in many worlds at once, add a chapter about it, and say how it went.

    Each world is dealt a training task at random. It is edited by chance: half of the edits take
    the whole grid, the others any box, so that a mirror or a turn is found now and then. The
    chances are always the same, so that what two machines show can be compared.
    """
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=PATIENCE, record_history=False),
        action=ActionConfig(selection_format="bbox"),
    )
    env = jaxarc.make("AGI1-train", config=config)

    def play() -> Any:
        return watch_rollout(env, _by_chance, None, jax.random.key(1), steps, worlds=worlds)

    _, rollout, recording = play()
    assert recording is not None
    compared = bench.compare(
        {"one world from Python": one_world(env, ALONE), "JaxARC": play},
        items={"one world from Python": ALONE, "JaxARC": worlds * steps},
        rounds=rounds,
        seconds=0.05,
        unit="steps",
        title="ARC",
    )
    rate, ratio = compared["JaxARC"].rate or 0.0, compared.ratio("JaxARC").value
    ended = int(jnp.sum(rollout.terminated | rollout.truncated))
    solved = int(jnp.sum(rollout.success))
    page.section(
        "ARC: a thousand puzzles at once",
        f"{worlds:,} worlds played the {env.buffer.num_tasks} training tasks of ARC-AGI-1 by "
        f"chance: {worlds * steps:,} edits, of 34 kinds, in **{worlds * steps / rate:.1f} "
        f"seconds**, which is **{rate:,.0f} a second**, recorded for replay: **{ratio:,.0f} "
        "times** a Python loop that calls the same step, compiled for one world, measured in "
        f"this run. {ended:,} episodes ended, and {solved:,} of them found the answer. Below are "
        "those with the highest rewards.",
    )
    best = sorted(recording.episodes, key=lambda e: (-e.reward, -e.length))[:SHOWN]
    page.add(
        Replays(
            recording,
            best,
            caption="Space plays and pauses, the arrow keys step, n is the next episode.",
        )
    )
    return Line(
        "jaxarc",
        f"{worlds:,} worlds x {steps:,} steps, real tasks",
        compared,
        "JaxARC",
        f"{solved:,} of {ended:,} episodes solved by chance",
    )


def one_world(env: jaxarc.Environment, steps: int) -> Callable[[], Any]:
    """A function that plays one world for so many steps, each a call from Python."""
    key = jax.random.key(0)
    state, seen = env.reset(key, worlds=1)
    choose = jax.jit(_by_chance)
    keys = [jax.random.fold_in(key, t) for t in range(steps)]

    def run() -> Any:
        at, shown = state, seen
        for key in keys:
            at, shown, *_ = env.step(at, choose(None, shown, key))
        return at

    return run


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
