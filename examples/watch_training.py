"""Train an agent on four puzzles, record it, and leave a page on which its episodes are replayed.

All four are solved by mirrors: left-right, top-bottom, or both. The agent does not know that. It
chooses among 35 operations on the whole grid and learns by REINFORCE which of them pay.

    python examples/watch_training.py      writes report.html and training.loom
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxarc
from jaxarc.envs import (
    BboxAction,
    EnvironmentConfig,
    JaxArcConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)
from jaxarc.operations import OPERATIONS
from jaxarc.utils.visualization import Replays, watch_rollout
from worldloom import report

PUZZLES = ["67a3c6ac", "68b16354", "3c9b0459", "6150a2bd"]
WORLDS, STEPS, UPDATES, DISCOUNT, SIDE = 256, 24, 40, 0.8, 10

env = jaxarc.make(
    "AGI1-train",
    ids=PUZZLES,
    config=JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=8, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=SIDE, max_grid_width=SIDE),
        action=UnifiedActionConfig(selection_format="bbox"),
    ),
)


def policy(logits, observation, key):
    """An operation drawn from the logits, on the whole grid of each world."""
    exist = observation.grid >= 0
    height, width = (exist.any(axis=axis).sum(axis=1, dtype=jnp.int32) for axis in (2, 1))
    operation = jax.random.categorical(key, logits, shape=(WORLDS,)).astype(jnp.int32)
    zero = jnp.zeros(WORLDS, jnp.int32)
    return BboxAction(operation, zero, zero, height - 1, width - 1)


optimizer = optax.adam(0.15)


@jax.jit
def update(logits, state, operation, reward, over):
    """One step of REINFORCE: more of what was followed by more reward than usual."""

    def back(later, step):
        reward, over = step
        value = reward + DISCOUNT * jnp.where(over, 0.0, later)
        return value, value

    _, value = jax.lax.scan(back, jnp.zeros(WORLDS), (reward, over), reverse=True)
    advantage = (value - value.mean()) / (value.std() + 1e-6)

    def loss(logits):
        chances = jax.nn.log_softmax(logits)
        surprise = -(jnp.exp(chances) * chances).sum()
        return -(chances[operation] * advantage).mean() - 0.01 * surprise

    change, state = optimizer.update(jax.grad(loss)(logits), state)
    return optax.apply_updates(logits, change), state


logits = jnp.zeros(35)
state = optimizer.init(logits)
recordings, solved = [], []
for number in range(UPDATES):
    key = jax.random.fold_in(jax.random.key(0), number)
    _, rollout, recording = watch_rollout(env, policy, logits, key, STEPS, worlds=WORLDS)
    over = rollout.terminated | rollout.truncated
    recordings.append(recording)
    solved.append(float(rollout.success.sum() / over.sum()))
    logits, state = update(logits, state, rollout.action.operation, rollout.reward, over)
    if number % 10 == 9:
        print(f"update {number + 1}: {solved[-1]:.0%} of the episodes solved")

recordings[-1].save("training.loom")
chances = np.asarray(jax.nn.softmax(logits))
best = np.argsort(-chances)[:3]
words = ", ".join(f"*{OPERATIONS[k].name.replace('_', ' ')}* {chances[k]:.0%}" for k in best)

page = report.Report(
    "Learning to mirror",
    subtitle="Four ARC puzzles, 35 operations, and an agent that finds out which of them pay.",
)
page.headline(f"{solved[0]:.0%}", "of the episodes solved at first")
page.headline(f"{solved[-1]:.0%}", f"after {UPDATES} updates", command="python watch_training.py")
page.section("Training", f"What it does in the end: {words}.")
page.add(report.LineChart({"solved": solved}, title="Share of episodes solved", x_label="update"))
page.section("After training", "Space plays, the arrow keys step, `n` is the next episode.")
page.add(Replays(recordings[-1], recordings[-1].episodes[:300]))
page.section("Before training").add(Replays(recordings[0], recordings[0].episodes[:300]))
print(page.save("report.html"))
