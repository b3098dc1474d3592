"""Whole training loops as one compiled program: difficulty after difficulty, and on given data."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

import worldloom as wl
from acbo._descent import mean_over_devices
from acbo._errors import DataError, OptionError
from acbo._keys import key_and_seed
from acbo.scm import SCM, Family, Graph, Samples
from acbo.training._batch import TrainingBatch, TrainingBatchJAX
from acbo.training._config import SurrogateTrainingConfig
from acbo.training._model import AnyKey, sets_of_others
from acbo.training._problems import DIFFICULTIES, FAMILY, check_difficulty, draw_samples
from acbo.training._static import Tables
from acbo.training._step import (
    CONFIG,
    METRICS,
    UNTRACEABLE,
    Means,
    Problem,
    SurrogateTrainStep,
)
from worldloom import mesh

_log = logging.getLogger("acbo.training")
SCMs = Mapping[str, SCM | Sequence[SCM]] | Sequence[SCM] | None


@dataclass(frozen=True)
class ProgressiveResult:
    """What `optimized_progressive_learning` leaves.

    **Attributes:**

    - `params`, `opt_state`: the trained network, and the state of its optimizer.
    - `metrics`: for each difficulty, each metric as an array with one number a step.
    - `seconds`: for each difficulty, the time that training took, compilation included.
    - `compile_seconds`: how much of that was compilation.
    - `seed`: of the key that was drawn because none was given.
    """

    params: Any
    opt_state: Any
    metrics: Mapping[str, Mapping[str, np.ndarray]]
    seconds: Mapping[str, float]
    compile_seconds: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None


class _Learner(eqx.Module):
    params: Any
    opt_state: Any
    key: PRNGKeyArray


def optimized_progressive_learning(
    scms: SCMs = None,
    config: SurrogateTrainingConfig = CONFIG,
    *,
    step: SurrogateTrainStep | None = None,
    params: Any = None,
    difficulties: Sequence[str] = tuple(DIFFICULTIES),
    family: Family = FAMILY,
    key: PRNGKeyArray | None = None,
    devices: Mesh | None = None,
) -> ProgressiveResult:
    """Train on easy, then medium, then hard models, each difficulty one loop on `worldloom.run`.

    A step draws a batch of models and tables on the device and learns their true sets of causes.
    The expected loss of that is least for the exact posterior, so no expert is needed. Models with
    more than `config.max_parent_size` causes of the target teach nothing.

    **Arguments:**

    - `scms`: the models: by difficulty, or a list (its models are told apart by their padded
      size). `None` or nothing for a difficulty: new ones of `family` at every step.
    - `config`: sizes; `config.max_epochs` is the number of steps for each difficulty.
    - `step`: whose model, optimizer and loss to use; by default as `config` says.
    - `params`: where to start; by default a new network.
    - `key`: of the network, the models and their data; a fresh one by default.
    - `devices`: a `worldloom.mesh.worlds_mesh()` to spread each batch over. The losses are those
      of one device, within float error.

    The seconds of each difficulty are logged to `acbo.training`.
    """
    step = SurrogateTrainStep(config=config) if step is None else step
    if devices is not None and config.batch_size % devices.size:
        raise OptionError(
            f"batch_size is {config.batch_size}, which {devices.size} devices do not divide"
        )
    given = _by_difficulty(scms)
    for difficulty in (*difficulties, *given):
        check_difficulty(difficulty)
    own, seed = key_and_seed(key, "optimized_progressive_learning")
    fresh, rest = jax.random.split(own)
    learned: Any = step.model.init(fresh) if params is None else params
    opt_state = step.optimizer.init(learned)
    metrics, seconds, compile_seconds = {}, {}, {}
    for number, difficulty in enumerate(difficulties):
        lesson = _Lesson(
            step,
            family,
            difficulty,
            _stack(given.get(difficulty, []), difficulty),
            config.batch_size,
            config.samples,
            config.interventional,
            devices,
        )
        state = _Learner(learned, opt_state, jax.random.fold_in(rest, number))
        if devices is not None:
            lesson, state = mesh.replicate((lesson, state), devices)
        try:
            done = wl.run(lesson, state, length=config.max_epochs, save=wl.Every())
        except UNTRACEABLE as error:
            step.refuse(error, "; here all steps are one compiled loop")
        learned, opt_state = done.state.params, done.state.opt_state
        records = np.asarray(done.records)
        metrics[difficulty] = {name: records[:, i] for i, name in enumerate(METRICS)}
        seconds[difficulty] = done.compile_seconds + done.run_seconds
        compile_seconds[difficulty] = done.compile_seconds
        _log.info("Difficulty %s: %.2fs", difficulty, seconds[difficulty])
    return ProgressiveResult(learned, opt_state, metrics, seconds, compile_seconds, seed)


class _Lesson(eqx.Module):
    """One step of a difficulty: draw models and data, learn."""

    step: SurrogateTrainStep = eqx.field(static=True)
    family: Family = eqx.field(static=True)
    difficulty: str = eqx.field(static=True)
    scms: SCM | None
    # Of the configuration only what the program is made of: its length is not.
    batch_size: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    interventional: float = eqx.field(static=True)
    devices: Mesh | None = eqx.field(static=True, default=None)

    def __call__(self, state: _Learner, t: Int[Array, ""]) -> tuple[_Learner, Float[Array, " 7"]]:
        """A step of `worldloom.run`."""
        keys = jax.random.split(jax.random.fold_in(state.key, t), self.batch_size)
        learn = self._learn
        if self.devices is not None:
            learn = mesh.each_device(learn, self.devices, in_axes=(None, 0), out_axes=None)
        params, opt_state, numbers = self.step.follow(
            state.params, state.opt_state, *learn(state.params, keys)
        )
        return _Learner(params, opt_state, state.key), numbers

    def _learn(self, params: Any, keys: Key[Array, " n"]) -> tuple[Any, Means]:
        """The gradient of models drawn with these keys, and means; of all devices' together."""
        found = self.step.gradient(params, jax.vmap(self._draw)(keys))
        return found if self.devices is None else mean_over_devices(found)

    def _draw(self, key: PRNGKeyArray) -> Problem:
        draw, choose = jax.random.split(key)
        pick, aim = jax.random.uniform(choose, (2,))
        graph, samples = self._study(draw, pick)
        size = graph.variables.sum().astype(jnp.float32)
        target = jnp.floor(aim * size).astype(jnp.int32)
        d = graph.edges.shape[0]
        flags = jnp.broadcast_to((jnp.arange(d) == target)[None, :], samples.values.shape)
        data = jnp.stack(
            [samples.values, samples.intervened.astype(jnp.float32), flags.astype(jnp.float32)], -1
        )
        sets = sets_of_others(d, self.step.model.max_parent_size, target)
        truth = (sets == graph.edges[:, target][None, :]).all(axis=1).astype(jnp.float32)
        real = jnp.ones(sets.shape[0], bool)
        return Problem(data, truth, truth.sum(), Tables(sets, real, target, graph.variables))

    def _study(self, key: PRNGKeyArray, pick: Float[Array, ""]) -> tuple[Graph, Samples]:
        n, share = self.samples, self.interventional
        if self.scms is None:
            low, high = DIFFICULTIES[self.difficulty]
            size = low + jnp.floor(pick * (high - low + 1)).astype(jnp.int32)
            study = self.family.study(key, high, n, interventional=share, size=size)
            return study.scm.graph, study.samples
        count = self.scms.noise_scale.shape[0]
        which = jnp.floor(pick * count).astype(jnp.int32)
        scm = jax.tree.map(lambda leaf: leaf[which], self.scms)
        return scm.graph, draw_samples(scm, key, share, n)


def _by_difficulty(scms: SCMs) -> dict[str, list[SCM]]:
    if scms is None:
        return {}
    if isinstance(scms, Mapping):
        return {
            name: [some] if isinstance(some, SCM) else list(some) for name, some in scms.items()
        }
    found: dict[str, list[SCM]] = {}
    for scm in scms:
        fitting = [name for name, (_, largest) in DIFFICULTIES.items() if scm.d <= largest]
        if not fitting:
            raise DataError(f"a model has {scm.d} variables; the hardest have 20")
        found.setdefault(fitting[0], []).append(scm)
    return found


def _stack(scms: Sequence[SCM], difficulty: str) -> SCM | None:
    if not scms:
        return None
    shapes = {(jax.tree.structure(scm), *map(jnp.shape, jax.tree.leaves(scm))) for scm in scms}
    if len(shapes) > 1:
        raise DataError(
            f"the {difficulty} models differ in padded size, mechanism or noise: models of one "
            "difficulty are one array (`generate_scm_for_difficulty` pads them)"
        )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *scms)


def update_surrogate_jax(
    step: SurrogateTrainStep,
    data: TrainingBatch | TrainingBatchJAX,
    params: Any = None,
    *,
    epochs: int = 10,
    key: AnyKey | None = None,
) -> Any:
    """Fit a surrogate to one batch: `epochs` updates in one compiled loop; gives new parameters.

    It goes on from `params`, or from a new network, and begins with a new state of the optimizer.
    An adaptive step that cannot be compiled takes its updates one by one. `key` makes a new
    network; by default it is a fresh one.
    """
    if epochs < 1:
        raise DataError(f"epochs is {epochs}; give 1 or more")
    key, _ = key_and_seed(key, "update_surrogate_jax")
    problem, key = step.problem(data, key)
    params = step.model.init(key) if params is None else params
    state = params, step.optimizer.init(params)
    if step.runs_compiled:
        again = jax.tree_util.Partial(_again(step), problem, key)
        try:
            return wl.run(again, state, length=epochs).state[0]
        except UNTRACEABLE as error:
            step.fall_back(error, stacklevel=3)
    params, opt_state = state
    for t in range(epochs):
        fresh = jax.random.fold_in(key, t)
        params, opt_state, _ = step.run_uncompiled(params, opt_state, problem, fresh)
    return params


@functools.lru_cache(maxsize=16)
def _again(step: SurrogateTrainStep):
    """The step on the same data. One function a step, so that its loop is compiled once."""

    def again(problem: Problem, key: AnyKey, state: tuple, t: Int[Array, ""]) -> tuple[tuple, None]:
        params, opt_state = state
        params, opt_state, _ = step.update(params, opt_state, problem, jax.random.fold_in(key, t))
        return (params, opt_state), None

    return again
