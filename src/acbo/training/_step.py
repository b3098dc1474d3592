"""Training steps. One function is the whole computation; compiled or not, it is the same."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.special import entr
from jaxtyping import Array, Float

from acbo._errors import AcboError, AcboWarning, DataError
from acbo.training._batch import TrainingBatch, TrainingBatchJAX, convert_to_jax_batch
from acbo.training._by_example import LostGradientError, pull_back, slope_of_loss
from acbo.training._config import SurrogateTrainingConfig
from acbo.training._learning_rate import learning_rate
from acbo.training._losses import kl_divergence_loss, kl_divergence_loss_jax
from acbo.training._model import AnyKey, ParentSetModel, create_parent_set_model
from acbo.training._static import Tables
from worldloom.compile import compiled

CONFIG = SurrogateTrainingConfig()
METRICS: tuple[str, ...] = (
    "total_loss",
    "kl_loss",
    "gradient_norm",
    "learning_rate",
    "mean_expert_accuracy",
    "predicted_entropy",
    "expert_entropy",
)
UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.UnexpectedTracerError,
    NotImplementedError,
)
_CALL = (
    "step(params, opt_state, batch, key) or step(params, opt_state, parent_sets, variable_orders, "
    "target_variables, observational_data, expert_probs, expert_accuracies, key)"
)


class TrainStepError(AcboError, TypeError):
    """A training step cannot be compiled as it is, or was called with the wrong arguments."""


class Problem(NamedTuple):
    """A batch as a program takes it: arrays only."""

    data: Float[Array, "B N d 3"]
    probs: Float[Array, "B k"]
    accuracies: Float[Array, " B"]
    tables: Tables


class Means(NamedTuple):
    """What a training step says of its batch: means over the examples."""

    loss: Float[Array, ""]
    kl: Float[Array, ""]
    accuracy: Float[Array, ""]
    entropy: Float[Array, ""]
    expert_entropy: Float[Array, ""]


class SurrogateTrainStep:
    """One update of a surrogate. Made by the three `create_..._train_step` functions.

    Call it as `step(params, opt_state, batch, key)`, with a `TrainingBatch` or a
    `TrainingBatchJAX`, or with the batch's parts: `step(params, opt_state, parent_sets,
    variable_orders, target_variables, observational_data, expert_probs, expert_accuracies, key)`.
    It gives new `params`, a new `opt_state`, and metrics as numbers: `total_loss`, `kl_loss`,
    `gradient_norm`, `learning_rate`, `mean_expert_accuracy`, `predicted_entropy`,
    `expert_entropy` and `step_time`, in seconds. `learning_rate` is the one that the optimizer
    used in this update; NaN if it is none of Optax's and does not tell.

    Targets and parent sets are data of the compiled program. It is built once for each size of
    batch; names never build it again. `key` is for losses and models that draw numbers; ours do
    not.
    """

    def __init__(
        self,
        model: ParentSetModel | None = None,
        optimizer: optax.GradientTransformation | None = None,
        loss_fn: Callable[..., Array] = kl_divergence_loss,
        config: SurrogateTrainingConfig = CONFIG,
        *,
        use_jax_compilation: bool = True,
        may_fall_back: bool = False,
    ):
        if model is None:
            model = create_parent_set_model(config.model_kwargs, config.max_parent_size)
        self.model = model
        self.optimizer = config.optimizer() if optimizer is None else optimizer
        self.loss_fn = loss_fn
        self.config = config
        self.use_jax_compilation = use_jax_compilation
        self.fallback_reason: str | None = None
        """Why the step runs uncompiled although it should not; `None` if it does not."""
        self._may_fall_back = may_fall_back
        self._looks_at_values = False
        self._compiled = compiled(self.update)

    def init(self, key: AnyKey) -> tuple[Any, Any]:
        """New parameters, and the state of the optimizer for them."""
        params: Any = self.model.init(key)
        return params, self.optimizer.init(params)

    def __call__(
        self, params: Any, opt_state: Any, *batch_and_key: Any
    ) -> tuple[Any, Any, dict[str, float]]:
        """See the class."""
        problem, key = self.problem(*batch_and_key)
        began = time.perf_counter()
        params, opt_state, numbers = self._run(params, opt_state, problem, key)
        # Reading the numbers waits for them, and for the parameters that the same program made.
        metrics = dict(zip(METRICS, np.asarray(numbers).tolist(), strict=True))
        jax.block_until_ready(params)
        metrics["step_time"] = time.perf_counter() - began
        return params, opt_state, metrics

    @property
    def uncompiled(self) -> SurrogateTrainStep:
        """The same step, operation by operation."""
        return self._twin(False)

    @property
    def compiled(self) -> SurrogateTrainStep:
        """The same step, compiled; where that fails it raises."""
        return self._twin(True)

    def lower(self, params: Any, opt_state: Any, *batch_and_key: Any) -> jax.stages.Lowered:
        """The program for these arguments, as `jax.jit(...).lower` gives it."""
        problem, key = self.problem(*batch_and_key)
        return self._compiled.lower(params, opt_state, problem, key)

    def problem(self, *batch_and_key: Any) -> tuple[Problem, AnyKey]:
        """The arrays of a batch, however it was given, and the key."""
        if len(batch_and_key) == 7:
            *names, data, probs, accuracies, key = batch_and_key
            batch = TrainingBatchJAX(data, probs, accuracies, *names)
        elif len(batch_and_key) == 2:
            batch, key = batch_and_key
        else:
            raise TrainStepError(f"{len(batch_and_key) + 2} arguments; call {_CALL}")
        if isinstance(batch, TrainingBatch):
            batch = convert_to_jax_batch(batch)
        if not isinstance(batch, TrainingBatchJAX):
            raise DataError(f"batch is a {type(batch).__name__}; call {_CALL}")
        return (
            Problem(
                batch.observational_data, batch.expert_probs, batch.expert_accuracies, batch.tables
            ),
            key,
        )

    def update(
        self, params: Any, opt_state: Any, problem: Problem, key: AnyKey
    ) -> tuple[Any, Any, Float[Array, " 7"]]:
        """The whole computation, a pure function of arrays. `METRICS` names its numbers."""
        return self.follow(params, opt_state, *self.gradient(params, problem))

    def gradient(self, params: Any, problem: Problem) -> tuple[Any, Means]:
        """The gradient of a batch's loss, and means over the batch.

        Those of a batch are the means of those of its parts, if the parts are equally large.
        """
        data, probs, accuracies, tables = problem

        def loss(params: Any) -> tuple[Array, tuple[Array, Array]]:
            def one(x, probs, table: Tables):
                sets, real, target, variables = table
                logits = self.model.logits(params, x, variables, target, sets, real)
                total = self.loss_fn(logits, probs, sets)
                kl = kl_divergence_loss_jax(logits, probs, sets)
                return total, kl, entr(jnp.exp(logits)).sum()

            total, kl, entropy = jax.vmap(one)(data, probs, tables)
            return total.mean(), (kl.mean(), entropy.mean())

        (total, (kl, entropy)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        means = Means(total, kl, accuracies.mean(), entropy, entr(probs).sum(axis=1).mean())
        return gradient, means

    def follow(
        self, params: Any, opt_state: Any, gradient: Any, means: Means
    ) -> tuple[Any, Any, Float[Array, " 7"]]:
        """One update along a gradient; and all metrics, in the order of `METRICS`."""
        # Optimizers of optax mix integers and floats, which strict users forbid.
        before = opt_state
        with jax.numpy_dtype_promotion("standard"):
            updates, opt_state = self.optimizer.update(gradient, opt_state, params)
        rate = learning_rate(self.optimizer, before, opt_state)
        numbers = [
            means.loss,
            means.kl,
            optax.tree.norm(gradient),
            jnp.asarray(rate, jnp.float32),
            means.accuracy,
            means.entropy,
            means.expert_entropy,
        ]
        return optax.apply_updates(params, updates), opt_state, jnp.stack(numbers)

    def gradient_by_example(self, params: Any, problem: Problem) -> tuple[Any, Means]:
        """What `gradient` gives, for losses and models that look at values: never traced."""
        gradients, means = [], []
        for data, probs, accuracy, table in (
            jax.tree.map(lambda leaf, b=b: leaf[b], problem) for b in range(len(problem.data))
        ):
            sets = table.sets

            def model(params, data=data, table=table):
                sets, real, target, variables = table
                return self.model.logits(params, data, variables, target, sets, real)

            def loss(logits, probs=probs, sets=sets):
                return self.loss_fn(logits, probs, sets)

            logits, back = pull_back(model, params)
            total, slope = slope_of_loss(loss, logits)
            gradients.append(back(slope))
            kl = kl_divergence_loss_jax(logits, probs, sets)
            entropies = entr(jnp.exp(logits)).sum(), entr(probs).sum()
            means.append(Means(total, kl, accuracy, *entropies))
        return tuple(
            jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *each)
            for each in (gradients, means)
        )

    @property
    def runs_compiled(self) -> bool:
        """Whether the next call is compiled, as far as is known."""
        return self.use_jax_compilation and self.fallback_reason is None

    def _run(self, *args: Any) -> Any:
        if not self.runs_compiled:
            return self.run_uncompiled(*args)
        try:
            return self._compiled(*args)
        except UNTRACEABLE as error:
            self.fall_back(error, stacklevel=4)
        return self.run_uncompiled(*args)

    def run_uncompiled(self, params: Any, opt_state: Any, problem: Problem, key: AnyKey) -> Any:
        """As `update`, operation by operation."""
        # Without this, JAX would build each loop again at every call.
        with jax.disable_jit():
            if not self._looks_at_values:
                try:
                    return self.update(params, opt_state, problem, key)
                except UNTRACEABLE:
                    self._looks_at_values = True
            try:
                found = self.gradient_by_example(params, problem)
            except (*UNTRACEABLE, LostGradientError) as error:
                raise TrainStepError(
                    f"the step cannot be computed, not even uncompiled: {_first_line(error)}"
                ) from error
            return self.follow(params, opt_state, *found)

    def fall_back(self, error: Exception, *, stacklevel: int) -> None:
        """Run uncompiled from now on and say why; or refuse, if the step must be compiled."""
        if not self._may_fall_back:
            self.refuse(error, ". `create_adaptive_train_step` would run it uncompiled")
        self.fallback_reason = _first_line(error)
        warnings.warn(
            "the training step cannot be compiled and runs uncompiled, far slower: "
            f"{self.fallback_reason}",
            AcboWarning,
            stacklevel=stacklevel,
        )

    def refuse(self, error: Exception, but: str) -> NoReturn:
        """Say why the step cannot be compiled."""
        raise TrainStepError(
            f"the step cannot be compiled: {_first_line(error)} Its loss, model or optimizer looks "
            "at a value that is not known yet (`if`, `float`, `int`, NumPy): use `jnp.where` and "
            f"keep arrays{but}"
        ) from error

    def _twin(self, use_jax_compilation: bool) -> SurrogateTrainStep:
        return SurrogateTrainStep(
            self.model,
            self.optimizer,
            self.loss_fn,
            self.config,
            use_jax_compilation=use_jax_compilation,
        )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def create_jax_surrogate_train_step(
    model: ParentSetModel | None = None,
    optimizer: optax.GradientTransformation | None = None,
    loss_fn: Callable[..., Array] = kl_divergence_loss,
    config: SurrogateTrainingConfig = CONFIG,
) -> SurrogateTrainStep:
    """A compiled training step: see `SurrogateTrainStep`.

    **Arguments:**

    - `model`, `optimizer`: by default as `config` says. The model is a `ParentSetModel`, or a class
      of yours on top of it with another `init` and `logits`.
    - `loss_fn`: `loss_fn(logits [k], probabilities [k], sets [k, d])`, for one example.
    - `config`: what to use where no model or no optimizer is given.

    ```python
    import jax
    from acbo.training import (
        ParentSetPosterior, SurrogateTrainingConfig, TrainingBatch, TrainingExample,
        create_jax_surrogate_train_step,
    )

    config = SurrogateTrainingConfig(model_hidden_dim=8, model_n_layers=2)
    step = create_jax_surrogate_train_step(config=config)
    params, opt_state = step.init(jax.random.key(0))
    posterior = ParentSetPosterior("Y", [set(), {"X"}], [0.2, 0.8])
    table = jax.random.normal(jax.random.key(1), (10, 2, 3))
    batch = TrainingBatch([TrainingExample(table, posterior, "Y", ["X", "Y"])])
    params, opt_state, metrics = step(params, opt_state, batch, jax.random.key(2))
    assert metrics["total_loss"] >= 0
    ```
    """
    return SurrogateTrainStep(model, optimizer, loss_fn, config)


def create_surrogate_train_step(
    model: ParentSetModel | None = None,
    optimizer: optax.GradientTransformation | None = None,
    loss_fn: Callable[..., Array] = kl_divergence_loss,
    config: SurrogateTrainingConfig = CONFIG,
) -> SurrogateTrainStep:
    """The same step uncompiled, one operation after the other, to compare with and to debug.

    It runs under `jax.disable_jit()`, so that nothing is compiled once it is warm. Plain eager JAX
    builds the loop over layers anew at every call; `benchmarks/acbo_speedup.py --eager` times it.
    """
    return SurrogateTrainStep(model, optimizer, loss_fn, config, use_jax_compilation=False)


def create_adaptive_train_step(
    model: ParentSetModel | None = None,
    optimizer: optax.GradientTransformation | None = None,
    loss_fn: Callable[..., Array] = kl_divergence_loss,
    config: SurrogateTrainingConfig = CONFIG,
    use_jax_compilation: bool = True,
) -> SurrogateTrainStep:
    """A step that is compiled if it can be.

    Where it cannot, because something looks at values while it is traced, an `AcboWarning` says
    why, once; the step then runs uncompiled, with the same results. `step.fallback_reason` tells.

    A loss may then use `if`, `float` and NumPy as it likes: where JAX cannot differentiate it,
    differences do. A model may decide by values that it reads; if it computes with what has left
    JAX, its gradient would be wrong, and a `TrainStepError` says so.
    """
    return SurrogateTrainStep(
        model,
        optimizer,
        loss_fn,
        config,
        use_jax_compilation=use_jax_compilation,
        may_fall_back=True,
    )
