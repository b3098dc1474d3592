"""The network: sees the grid beside the task, says what to do where, and what that is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from jaxarc.envs import ArcObservation, BboxAction, ConfigError, JaxArcConfig, PointAction

COLOURS = 11  # ten, and -1 outside of a grid

Pick = Callable[[int, Float32[Array, "batch choices"]], Int32[Array, " batch"]]
"""`pick(part, logits)`: a choice for each world; `part` counts the choices of one action."""


class Decision(NamedTuple):
    """What a network decided: choices, how likely they were, and what it expects to come.

    `choices` holds the number of the operation among the allowed ones, then one cell for a point or
    two for a box, as `row * width + column`. `entropy` is that of each choice given those before.
    """

    choices: Int32[Array, "batch parts"]
    log_probability: Float32[Array, " batch"]
    entropy: Float32[Array, " batch"]
    value: Float32[Array, " batch"]


class ActorCritic(eqx.Module):
    """A small convolutional network with three heads: operation, cells, value.

    The planes of an observation (the grid; the input, the clipboard and the demonstrations, where
    the environment shows them) are laid over each other cell by cell. Layers of 3 x 3 convolutions
    follow, each also told the mean over all cells. Operation and value are read off mean and
    maximum; a cell is chosen by how well its features agree with those of the chosen operation, and
    the second corner of a box likewise, given the first.

    ```python
    import jax
    from jaxarc import training

    env = training.environment_for(training.tiny_tasks())
    network = training.ActorCritic(env.config, width=8, layers=1, key=jax.random.key(0))
    _, seen = env.reset(jax.random.key(1), worlds=4)
    decision = network(seen, lambda part, logits: logits.argmax(axis=-1))
    assert decision.value.shape == (4,)
    ```
    """

    embed: Float32[Array, "planes*11 width"]
    rows: Float32[Array, "height 1 width"]
    columns: Float32[Array, "1 columns width"]
    kernels: Float32[Array, "layers 3 3 width width"]
    contexts: Float32[Array, "layers width width"]
    summary: Float32[Array, "width*2 width*2"]
    operation: Float32[Array, "width*2 operations"]
    value: Float32[Array, " width*2"]
    wishes: Float32[Array, "operations width"]
    second: Float32[Array, "width width"] | None
    operations: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, config: JaxArcConfig, *, width: int, layers: int, key: PRNGKeyArray):
        if config.action.selection_format == "mask":
            raise ConfigError(
                "selection_format='mask': this network chooses points or boxes; use "
                "UnifiedActionConfig(selection_format='point') or 'bbox'"
            )
        height, columns = config.canvas
        asked = config.observation
        planes = 1 + asked.input + asked.clipboard + 2 * asked.demos
        self.operations = config.operations
        count = len(self.operations)
        most = width * (planes * COLOURS + height + columns + 2 + 2 * count + count)
        most += width**2 * (10 * layers + 4 + 1)
        drawn = jax.random.normal(key, (most,))
        used = 0

        def normal(*shape: int, fan_in: int, gain: float = 1.0) -> Array:
            # One draw for all: each would be a program of its own to compile.
            nonlocal used
            first, used = used, used + math.prod(shape)
            return gain / math.sqrt(fan_in) * drawn[first:used].reshape(shape)

        self.embed = normal(planes * COLOURS, width, fan_in=planes)
        self.rows = normal(height, 1, width, fan_in=4)
        self.columns = normal(1, columns, width, fan_in=4)
        self.kernels = normal(layers, 3, 3, width, width, fan_in=9 * width)
        self.contexts = normal(layers, width, width, fan_in=width)
        self.summary = normal(2 * width, 2 * width, fan_in=2 * width, gain=math.sqrt(2))
        # A policy that begins with no opinion explores.
        self.operation = normal(2 * width, count, fan_in=2 * width, gain=0.01)
        self.value = normal(2 * width, fan_in=2 * width)
        self.wishes = normal(count, width, fan_in=width, gain=0.1)
        box = config.action.selection_format == "bbox"
        self.second = normal(width, width, fan_in=width) if box else None

    def __call__(self, seen: ArcObservation, pick: Pick) -> Decision:
        """Decide for a batch of observations; `pick` draws, or names what was drawn before."""
        cells = self._features(seen)
        mean, most = cells.mean(axis=1), cells.max(axis=1)
        told = jax.nn.relu(jnp.concatenate([mean, most], axis=1) @ self.summary)
        choices, logs, spreads = [], [], []

        def choose(logits: Float32[Array, "batch choices"]) -> Float32[Array, "batch choices"]:
            """Take the next choice; returns it as ones and zeros."""
            log = jax.nn.log_softmax(logits)
            choice = pick(len(choices), logits)
            taken = jax.nn.one_hot(choice, logits.shape[1])
            choices.append(choice)
            logs.append((taken * log).sum(axis=1))
            spreads.append(-(jnp.exp(log) * log).sum(axis=1))
            return taken

        wish = choose(told @ self.operation) @ self.wishes
        taken = choose(_agreement(cells, wish))
        if self.second is not None:
            first = (cells * taken[:, :, None]).sum(axis=1)
            choose(_agreement(cells, wish + first @ self.second))
        log, spread = jnp.stack(logs).sum(axis=0), jnp.stack(spreads).sum(axis=0)
        return Decision(jnp.stack(choices, axis=1), log, spread, told @ self.value)

    def action(self, choices: Int32[Array, "batch parts"]) -> PointAction | BboxAction:
        """Choices as an action of the environment."""
        operation = jnp.array(self.operations, jnp.int32)[choices[:, 0]]
        row, column = jnp.divmod(choices[:, 1:].T, self.columns.shape[1])
        if self.second is None:
            return PointAction(operation, row[0], column[0])
        return BboxAction(operation, row[0], column[0], row[1], column[1])

    def _features(self, seen: ArcObservation) -> Float32[Array, "batch cells width"]:
        one = [plane for plane in (seen.grid, seen.input, seen.clipboard) if plane is not None]
        many = [plane for plane in (seen.demo_inputs, seen.demo_outputs) if plane is not None]
        planes = jnp.concatenate([jnp.stack(one, axis=1), *many], axis=1)
        ones = jax.nn.one_hot(jnp.moveaxis(planes, 1, -1).astype(jnp.int32) + 1, COLOURS)
        batch, height, width = ones.shape[:3]
        x = ones.reshape(batch, height, width, -1) @ self.embed
        x = x + (self.rows + self.columns)[None]
        for kernel, context in zip(self.kernels, self.contexts, strict=True):
            around = _convolve(x, kernel)
            mean = x.mean(axis=(1, 2), keepdims=True) @ context
            x = x + jax.nn.relu(around + jnp.broadcast_to(mean, around.shape))
        return x.reshape(batch, height * width, -1)


def _convolve(
    x: Float32[Array, "batch height width channels"], kernel: Float32[Array, "3 3 channels out"]
) -> Float32[Array, "batch height width out"]:
    """A 3 x 3 convolution as one product: XLA's own is slow on a processor inside a loop."""
    height, width = x.shape[1:3]
    wide = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    near = [wide[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(near, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def _agreement(
    cells: Float32[Array, "batch cells width"], wish: Float32[Array, "batch width"]
) -> Float32[Array, "batch cells"]:
    return jnp.einsum("bcw,bw->bc", cells, wish)
