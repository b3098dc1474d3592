"""Play and learn, in one compiled loop: rollouts and updates on the device, worlds on many."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh
from jaxtyping import Array, Float32, Int, Int32, Key, PRNGKeyArray

import worldloom as wl
from jaxarc.bitgrid import from_lanes, lanes_for
from jaxarc.data import TaskBuffer
from jaxarc.envs import ArcState, ConfigError, Environment, JaxArcConfig
from jaxarc.envs._episode import begin
from jaxarc.envs._observation import observe
from jaxarc.envs._state import typed_key
from jaxarc.envs.functional import lane_step, worlds_of
from jaxarc.training._config import PPOConfig
from jaxarc.training._network import ActorCritic, Pick
from jaxarc.training._objective import Experience, Losses, advantages, ppo_loss
from worldloom import mesh


class Metrics(eqx.Module):
    """What an update reports, over all devices: how it was played, and what was learned."""

    reward: Float32[Array, "*updates"]
    """The mean reward of a step."""
    episodes: Float32[Array, "*updates"]
    """How many episodes ended."""
    solved: Float32[Array, "*updates"]
    """How many of them were solved."""
    gradient: Float32[Array, "*updates"]
    """The mean norm of gradients, before the clip."""
    losses: Losses
    """Means over all minibatches, each before its own step."""


class TrainState(eqx.Module):
    """All that training carries. Worlds are whole and come first, however they are spread."""

    network: ActorCritic
    optimiser: optax.OptState
    worlds: ArcState
    key: PRNGKeyArray


class TrainStep(eqx.Module):
    """One update: every world plays `steps` steps, then the network learns from that.

    Each device plays and learns with its own worlds; gradients are averaged over all of them.
    """

    tasks: TaskBuffer
    env: JaxArcConfig = eqx.field(static=True)
    config: PPOConfig = eqx.field(static=True)
    devices: Mesh = eqx.field(static=True)

    def __identity__(self) -> dict[str, Any]:
        """All but the devices, and how many updates there are: more may follow."""
        config = dataclasses.replace(self.config, updates=1)
        return {"tasks": self.tasks, "env": self.env, "config": config}

    def __call__(self, state: TrainState, t: Int[Array, ""]) -> tuple[TrainState, Metrics]:
        """A step of `worldloom.run`."""
        spread = mesh.each_device(
            self._one_device,
            self.devices,
            in_axes=(None, None, 0, None, None),
            out_axes=(None, None, 0, None),
        )
        key = jax.random.fold_in(state.key, t)
        parts = (state.network, state.optimiser, state.worlds)
        network, memory, worlds, metrics = spread(*parts, key, self.tasks)
        return TrainState(network, memory, worlds, state.key), metrics

    def _one_device(
        self,
        network: ActorCritic,
        memory: optax.OptState,
        worlds: ArcState,
        key: PRNGKeyArray,
        tasks: TaskBuffer,
    ) -> tuple[ActorCritic, optax.OptState, ArcState, Metrics]:
        worlds, played, (reward, episodes, solved) = self._play(network, worlds, key, tasks)
        network, memory, losses, norm = self._learn(network, memory, played)
        metrics = Metrics(
            reward=lax.pmean(reward, mesh.AXIS),
            episodes=lax.psum(episodes, mesh.AXIS),
            solved=lax.psum(solved, mesh.AXIS),
            gradient=norm,
            losses=losses,
        )
        return network, memory, worlds, metrics

    def _play(
        self, network: ActorCritic, worlds: ArcState, key: PRNGKeyArray, tasks: TaskBuffer
    ) -> tuple[ArcState, Experience, tuple[Array, Array, Array]]:
        """The worlds after `steps` steps, what was played, and how it went."""
        count = worlds.done.shape[0]
        number = lax.axis_index(mesh.AXIS) * count + jnp.arange(count)
        lanes = worlds.lanes(lanes_for(count))
        value_of = lambda seen: network(seen, _first).value  # noqa: E731

        def step(carry, i):
            lanes, seen = carry
            # A world's chances are its own, so they do not depend on where it is.
            keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(key, i), number)
            decision = network(seen, _draw(keys))
            action = network.action(decision.choices)
            lanes, shown, reward, done, info = lane_step(lanes, action, self.env, tasks)
            # An episode that was cut off would have gone on; few are, and most steps have none.
            beyond = lax.cond(
                info.truncated.any(),
                value_of,
                lambda seen: jnp.zeros(count),
                info.final_observation,
            )
            worth = reward + self.config.discount * jnp.where(info.truncated, beyond, 0.0)
            kept = (seen, decision, worth, done)
            return (lanes, shown), (kept, reward, info.success)

        (lanes, last), (kept, reward, success) = lax.scan(
            step, (lanes, observe(worlds.world, self.env, tasks)), jnp.arange(self.config.steps)
        )
        seen, decision, worth, done = kept
        found = advantages(
            worth,
            decision.value,
            value_of(last),
            done,
            discount=self.config.discount,
            decay=self.config.decay,
        )
        played = Experience(
            seen=seen,
            choices=decision.choices,
            log_probability=decision.log_probability,
            value=decision.value,
            advantage=_even(found),
            returns=found + decision.value,
        )
        told = reward.mean(), done.astype(jnp.float32).sum(), success.astype(jnp.float32).sum()
        return worlds_of(lanes, count).packed(), played, told

    def _learn(
        self, network: ActorCritic, memory: optax.OptState, played: Experience
    ) -> tuple[ActorCritic, optax.OptState, Losses, Float32[Array, ""]]:
        """Epochs of minibatches, and the means of what each of them said."""
        parts = self.config.minibatches
        batches = jax.tree.map(lambda leaf: _in_parts(leaf, parts), played)

        def loss(network: ActorCritic, part: Experience) -> tuple[Array, Losses]:
            losses = ppo_loss(network, part, self.config)
            return losses.loss, losses

        def update(carry, part):
            network, memory = carry
            gradient, losses = eqx.filter_grad(loss, has_aux=True)(network, part)
            # As one row of numbers: between hosts every message costs, however short it is.
            row, whole = ravel_pytree((gradient, losses))
            gradient, losses = whole(lax.pmean(row, mesh.AXIS))
            # Optax raises its decay rates to integer powers, which strict promotion would refuse.
            with jax.numpy_dtype_promotion("standard"):
                change, memory = self.config.optimiser().update(gradient, memory)
            network = eqx.apply_updates(network, change)
            return (network, memory), (losses, optax.tree.norm(gradient))

        def epoch(carry, _):
            return lax.scan(update, carry, batches)

        (network, memory), told = lax.scan(
            epoch, (network, memory), None, length=self.config.epochs
        )
        losses, norm = jax.tree.map(jnp.mean, told)
        return network, memory, losses, norm


def begin_training(
    env: Environment, key: PRNGKeyArray, *, config: PPOConfig, devices: Mesh
) -> TrainState:
    """A new network, fresh worlds on all devices, and everything that training needs."""
    network, memory, worlds, acting = _begin(
        typed_key(key), env.buffer, env=env.config, config=config
    )
    network, memory, acting = mesh.replicate((network, memory, acting), devices)
    return TrainState(network, memory, mesh.shard(worlds, devices), acting)


def train(
    env: Environment,
    key: PRNGKeyArray,
    *,
    config: PPOConfig | None = None,
    devices: Mesh | None = None,
    checkpoint: wl.Checkpoint | str | Path | None = None,
    resume: bool = False,
    progress: bool | str | wl.Progress = "training",
    **options: Any,
) -> wl.RunResult:
    """Train a policy. The result's `state.network` is it; `records` holds the `Metrics`.

    Playing and learning are one program on `worldloom.run`.

    **Arguments:**

    - `env`: see `environment_for`. It must be in train mode, with point or box actions.
    - `devices`: a `worldloom.mesh.worlds_mesh()` to spread the worlds over; by default every device
      of every process. Chances belong to worlds, not to devices: losses are those of one device,
      within float error, as long as no action is so near a boundary that the error decides it.
    - `checkpoint`, `resume`, `progress`, `options`: as in `worldloom.run`. A resumed run is bit for
      bit the same on the same number of devices, and may go on with another.

    ```python
    import jax
    from jaxarc import training

    env = training.environment_for(training.tiny_tasks(), operations=(1, 2, 3, 4))
    config = training.PPOConfig(
        worlds=16, steps=4, updates=2, epochs=1, minibatches=2, width=4, layers=1
    )
    result = training.train(env, jax.random.key(0), config=config)
    assert result.records.reward.shape == (2,)
    ```
    """
    config = PPOConfig() if config is None else config
    if env.config.environment.episode_mode != "train":
        raise ConfigError("episode_mode='test' tells no reward to learn from; train in train mode")
    devices = mesh.worlds_mesh() if devices is None else devices
    config.check_devices(devices.size)
    state = begin_training(env, key, config=config, devices=devices)
    tasks = mesh.replicate(env.buffer, devices)
    return wl.run(
        TrainStep(tasks, env.config, config, devices),
        state,
        length=config.updates,
        save=wl.Every(),
        checkpoint=checkpoint,
        resume=resume,
        progress=_once(progress),
        **options,
    )


def _once(progress: bool | str | wl.Progress) -> bool | str | wl.Progress:
    """A bar is drawn by the first process only; another meter is the caller's business."""
    return progress if jax.process_index() == 0 or isinstance(progress, wl.Progress) else False


@partial(jax.jit, static_argnames=("env", "config"))
def _begin(key: Array, tasks: TaskBuffer, *, env: JaxArcConfig, config: PPOConfig) -> Any:
    """All at once: one by one, the small things would take as long to compile as the loop."""
    of_network, of_worlds, acting = jax.random.split(key, 3)
    network = ActorCritic(env, width=config.width, layers=config.layers, key=of_network)
    memory = config.optimiser().init(eqx.filter(network, eqx.is_array))
    worlds = from_lanes(begin(jax.random.split(of_worlds, config.worlds), env, tasks)).packed()
    return network, memory, worlds, acting


def _first(part: int, logits: Float32[Array, "batch choices"]) -> Int32[Array, " batch"]:
    """Any choice: only the value is asked for."""
    return jnp.zeros(logits.shape[0], jnp.int32)


def _draw(keys: Key[Array, " batch"]) -> Pick:
    """A `Pick` that draws by one uniform number a choice: where it falls among summed shares."""

    def pick(part: int, logits: Float32[Array, "batch choices"]) -> Int32[Array, " batch"]:
        u = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, part)))(keys)
        sums = jnp.cumsum(jax.nn.softmax(logits), axis=1)
        below = sums <= (u * sums[:, -1])[:, None]
        return jnp.minimum(below.sum(axis=1, dtype=jnp.int32), logits.shape[1] - 1)

    return pick


def _even(x: Float32[Array, "steps worlds"]) -> Float32[Array, "steps worlds"]:
    """Mean 0 and deviation 1 over the worlds of all devices."""
    x = x - lax.pmean(x.mean(), mesh.AXIS)
    return x / (jnp.sqrt(lax.pmean((x * x).mean(), mesh.AXIS)) + 1e-6)


def _in_parts(leaf: Array, parts: int) -> Array:
    """`[steps, worlds, ...]` to `[parts, steps * worlds / parts, ...]`, every so many worlds."""
    steps, worlds = leaf.shape[:2]
    leaf = leaf.reshape(steps, worlds // parts, parts, *leaf.shape[2:])
    return jnp.moveaxis(leaf, 2, 0).reshape(parts, steps * (worlds // parts), *leaf.shape[3:])
