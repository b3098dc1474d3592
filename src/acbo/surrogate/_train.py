"""The training of the surrogate: data, gradients and updates in one compiled loop."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray

import worldloom as wl
from acbo._descent import follow, mean_over_devices, warm_cosine
from acbo.surrogate._curriculum import Curriculum, Lesson, Part, part_of
from acbo.surrogate._loss import (
    Metrics,
    acyclicity_penalty,
    edge_loss,
    parent_set_loss,
)
from acbo.surrogate._network import Surrogate, SurrogateConfig
from acbo.surrogate._parent_sets import candidate_sets
from worldloom import mesh


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    **Arguments:**

    - `steps`: how many updates.
    - `learning_rate`: its highest value, after a warm-up of a fiftieth of the steps; it then falls
      along a cosine to a hundredth.
    - `weight_decay`, `clip`: of AdamW, and the largest norm of a gradient.
    - `parent_sets`: weight of the loss of whole sets of causes, of up to `max_parent_size`.
    - `acyclicity`: weight of the penalty on cycles; 0 leaves it out.
    - `average`: how much of the running average of the parameters is kept each step.
    """

    steps: int = 10_000
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip: float = 1.0
    parent_sets: float = 0.1
    max_parent_size: int = 3
    acyclicity: float = 0.0
    average: float = 0.998

    def __post_init__(self):
        if self.steps < 1:
            raise ValueError(f"steps={self.steps}; expected at least 1")
        if not 0 <= self.average < 1:
            raise ValueError(f"average={self.average}; expected a share, 0 <= average < 1")

    def optimiser(self) -> optax.GradientTransformation:
        """AdamW with a warm-up, a cosine and clipping, on all parameters as one row.

        Each array by itself would be a dozen kernels of a few numbers.
        """
        rate = warm_cosine(self.learning_rate, self.steps, warm_up=self.steps // 50)
        clip = optax.clip_by_global_norm(self.clip)
        return optax.flatten(optax.chain(clip, optax.adamw(rate, weight_decay=self.weight_decay)))


class TrainState(eqx.Module):
    """All that training carries. `average` is what one should use in the end."""

    network: Surrogate
    optimiser: optax.OptState
    average: Surrogate
    key: PRNGKeyArray


class TrainStep(eqx.Module):
    """One update: draw a lesson, draw its data, follow the gradient.

    With `devices`, each draws and learns from its part of the batch; nothing but losses and
    gradients goes between them.
    """

    curriculum: Curriculum = eqx.field(static=True)
    config: TrainingConfig = eqx.field(static=True)
    devices: Mesh | None = eqx.field(static=True, default=None)

    def __call__(self, state: TrainState, t: Int[Array, ""]) -> tuple[TrainState, Metrics]:
        """A step of `worldloom.run`."""
        key = jax.random.fold_in(state.key, t)
        pick, draw = jax.random.split(key)
        which = self.curriculum.pick_lesson(pick)
        learn = self._learn
        if self.devices is not None:
            learn = mesh.each_device(learn, self.devices, in_axes=None, out_axes=None)
        (loss, (edges, sets)), gradient = learn(state.network, draw, which)

        network, memory = follow(self.config.optimiser(), gradient, state.optimiser, state.network)
        # The average follows quickly at first, when it has nothing to remember.
        done = t.astype(jnp.float32)
        keep = jnp.minimum(self.config.average, (1 + done) / (10 + done))
        average = jax.tree.map(lambda a, b: keep * a + (1 - keep) * b, state.average, network)
        metrics = Metrics(loss, edges, sets, optax.tree.norm(gradient), which.astype(jnp.int32))
        return TrainState(network, memory, average, state.key), metrics

    def _learn(self, network: Surrogate, key: PRNGKeyArray, which: Int[Array, ""]):
        """Losses and their gradient, the mean over all devices; a device draws its part alone."""
        part = None
        if self.devices is not None:
            part = lax.axis_index(mesh.AXIS), self.devices.size
        branches = [
            lambda network, lesson=lesson: self._study(network, key, lesson, part)
            for lesson in self.curriculum.lessons
        ]
        found = lax.switch(which, branches, network)
        return found if part is None else mean_over_devices(found)

    def _study(self, network: Surrogate, key: PRNGKeyArray, lesson: Lesson, part: Part | None):
        data, choose = jax.random.split(key)
        graphs, samples = self.curriculum.studies(data, lesson, part=part)
        size = graphs.variables.sum(axis=1)
        u = part_of(jax.random.uniform(choose, (lesson.batch,)), part)
        targets = jnp.floor(u * size.astype(jnp.float32)).astype(jnp.int32)
        sets = candidate_sets(lesson.variables[1], self.config.max_parent_size)

        def loss(network: Surrogate) -> tuple[Float[Array, ""], tuple[Array, Array]]:
            predictions = network.many(samples)
            edges = jax.vmap(edge_loss)(predictions, graphs).mean()
            whole = jax.vmap(parent_set_loss, in_axes=(0, 0, 0, None))(
                predictions, graphs, targets, jnp.asarray(sets)
            ).mean()
            total = edges + self.config.parent_sets * whole
            if self.config.acyclicity:
                cycles = jax.vmap(acyclicity_penalty)(predictions.edge_logits).mean()
                total = total + self.config.acyclicity * cycles
            return total, (edges, whole)

        return eqx.filter_value_and_grad(loss, has_aux=True)(network)


def begin_training(
    key: PRNGKeyArray,
    *,
    surrogate: SurrogateConfig | Surrogate = SurrogateConfig(),
    config: TrainingConfig = TrainingConfig(),
) -> TrainState:
    """A new network, or one to go on from, and everything that training it needs."""
    first, second = jax.random.split(key)
    new = isinstance(surrogate, SurrogateConfig)
    network = Surrogate(surrogate, key=first) if new else surrogate
    memory = config.optimiser().init(eqx.filter(network, eqx.is_array))
    return TrainState(network, memory, network, second)


def train_surrogate(
    key: PRNGKeyArray,
    curriculum: Curriculum,
    *,
    surrogate: SurrogateConfig | Surrogate = SurrogateConfig(),
    config: TrainingConfig = TrainingConfig(),
    save: object = None,
    checkpoint: wl.Checkpoint | str | Path | None = None,
    resume: bool = False,
    progress: bool | str | wl.Progress = "training",
    devices: Mesh | None = None,
    chunk_steps: int | None = None,
) -> wl.RunResult:
    """Train a surrogate. The result's `state.average` is the trained network.

    Everything, the drawing of models and data too, is one program on `worldloom.run`.

    **Arguments:**

    - `surrogate`: the sizes of a new network, or a network to go on from. The largest number of
      variables of a lesson is kept with it, as `config.trained_for`.
    - `save`: what to record; by default the `Metrics` of every step.
    - `checkpoint`, `resume`, `progress`, `chunk_steps`: as in `worldloom.run`. A resumed run is bit
      for bit the same.
    - `devices`: a `worldloom.mesh.worlds_mesh()` to spread each batch over. The losses are those
      of one device, within float error; a run may go on with another number of devices or
      processes.
    """
    uneven = (
        []
        if devices is None
        else [lesson.batch for lesson in curriculum.lessons if lesson.batch % devices.size]
    )
    if devices is not None and uneven:
        raise ValueError(
            f"a lesson has batch={uneven[0]}, which {devices.size} devices do not divide"
        )
    largest = max(lesson.variables[1] for lesson in curriculum.lessons)
    if isinstance(surrogate, SurrogateConfig):
        surrogate = dataclasses.replace(surrogate, trained_for=largest)
    else:
        surrogate = surrogate.now_trained_for(largest)
    state = begin_training(key, surrogate=surrogate, config=config)
    if devices is not None:
        state = mesh.replicate(state, devices)
    return wl.run(
        TrainStep(curriculum, config, devices),
        state,
        length=config.steps,
        save=wl.Every() if save is None else save,
        checkpoint=checkpoint,
        chunk_steps=chunk_steps,
        resume=resume,
        progress=progress,
    )
