"""The surrogate as a model with `init` and `apply`."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from acbo._errors import DataError, OptionError
from acbo.scm import Samples
from acbo.surrogate import Surrogate, SurrogateConfig, candidate_sets, parent_set_logits
from acbo.training._config import network_of
from acbo.training._static import place_of

# The log probability of a set that only pads: finite, so that gradients stay numbers.
NEVER = -1e4
_SIZES = ("hidden_dim", "layers", "heads", "moments", "compute_dtype")
AnyKey = PRNGKeyArray | UInt[Array, " 2"]


@dataclass(frozen=True)
class ParentSetModel:
    """A network that gives a posterior over the causes of a target. See `create_parent_set_model`.

    Its parameters are an `acbo.surrogate.Surrogate`: a pytree of arrays. `x` is a table of samples
    `[N, d, 3]`: value, whether it was set, whether the variable is the target. A row without any
    target flag is padding, if other rows have one. Values should be standardised.
    """

    config: SurrogateConfig
    max_parent_size: int

    def init(
        self,
        key: AnyKey,
        x: Float[Array, "N d 3"] | None = None,
        variable_order: Sequence[Hashable] | Bool[Array, " d"] | None = None,
        target_variable: Hashable | Int[Array, ""] = None,
        is_training: bool = True,
    ) -> Surrogate:
        """New parameters. Only `key` counts: the network takes tables of any size."""
        return _new(key, self.config)

    def apply(
        self,
        params: Any,
        key: AnyKey | None,
        x: Float[Array, "N d 3"],
        variable_order: Sequence[Hashable] | Bool[Array, " d"],
        target_variable: Hashable | Int[Array, ""],
        is_training: bool = False,
    ) -> dict[str, Array]:
        """The posterior over the causes of a target, as arrays.

        **Arguments:**

        - `variable_order`: names of the first variables of `x` (others are padding), or a mask.
        - `target_variable`: one of the names, or a number. A number may be traced.
        - `key`, `is_training`: change nothing. The network draws no random numbers.

        **Returns:**

        `parent_set_logits` `[k]`, normalised log probabilities, and `parent_sets` `[k, d]`, which
        variables are in which set: all sets of up to `max_parent_size` of the others.
        """
        d = x.shape[1]
        if isinstance(variable_order, Array):
            variables, target = variable_order, jnp.asarray(target_variable, jnp.int32)
        else:
            if not 1 <= len(variable_order) <= d:
                raise DataError(
                    f"variable_order has {len(variable_order)} names; x has {d} variables"
                )
            variables = jnp.arange(d) < len(variable_order)
            traced = isinstance(target_variable, Array)
            target = target_variable if traced else place_of(target_variable, variable_order)
            target = jnp.asarray(target, jnp.int32)
        return _apply(self, params, x, variables, target)

    def logits(
        self,
        params: Any,
        x: Float[Array, "N d 3"],
        variables: Bool[Array, " d"],
        target: Int[Array, ""],
        sets: Bool[Array, "k d"],
        real: Bool[Array, " k"],
    ) -> Float[Array, " k"]:
        """Normalised log probabilities of given sets; those that are not `real` have none."""
        prediction = params(as_samples(x, variables))
        logits = parent_set_logits(prediction, target, sets)
        return jnp.where(real, jax.nn.log_softmax(jnp.where(real, logits, NEVER)), NEVER)


def create_parent_set_model(
    model_kwargs: Mapping[str, Any] | None = None, max_parent_size: int = 3
) -> ParentSetModel:
    """The surrogate network with a posterior over whole sets of causes.

    **Arguments:**

    - `model_kwargs`: any of `hidden_dim` (64), `layers` (4), `heads` (4), `moments` (half of
      `hidden_dim`) and `compute_dtype` (`"float32"`, or `"bfloat16"`).
    - `max_parent_size`: the largest set that has a probability.

    ```python
    import jax
    from acbo.training import create_parent_set_model

    model = create_parent_set_model({"hidden_dim": 8, "layers": 2}, max_parent_size=2)
    x = jax.random.normal(jax.random.key(0), (20, 3, 3))
    params = model.init(jax.random.key(1), x, ["X", "Y", "Z"], "Y")
    output = model.apply(params, jax.random.key(2), x, ["X", "Y", "Z"], "Y", False)
    assert output["parent_sets"].tolist() == [
        [False, False, False], [True, False, False], [False, False, True], [True, False, True]
    ]
    assert abs(jax.numpy.exp(output["parent_set_logits"]).sum() - 1) < 1e-5
    ```
    """
    given = dict(model_kwargs or {})
    unknown = [name for name in given if name not in _SIZES]
    if unknown:
        raise OptionError(
            f"model_kwargs has {', '.join(map(repr, unknown))}; it takes {', '.join(_SIZES)}"
        )
    if max_parent_size < 0:
        raise OptionError(f"max_parent_size is {max_parent_size}; give 0 or more")
    try:
        config = network_of(given)
    except OptionError as error:
        raise OptionError(f"model_kwargs={given}: {error}") from error
    return ParentSetModel(config, max_parent_size)


@functools.partial(jax.jit, static_argnames="config")
def _new(key: AnyKey, config: SurrogateConfig) -> Surrogate:
    return Surrogate(config, key=key)


@functools.partial(jax.jit, static_argnames="model")
def _apply(
    model: ParentSetModel,
    params: Any,
    x: Float[Array, "N d 3"],
    variables: Bool[Array, " d"],
    target: Int[Array, ""],
) -> dict[str, Array]:
    sets = sets_of_others(x.shape[1], model.max_parent_size, target)
    real = jnp.ones(sets.shape[0], bool)
    logits = model.logits(params, x, variables, target, sets, real)
    return {"parent_set_logits": logits, "parent_sets": sets}


def as_samples(x: Float[Array, "N d 3"], variables: Bool[Array, " d"]) -> Samples:
    """The table that the network reads."""
    flagged = (x[..., 2] > 0.5).any(axis=1)
    rows = flagged | ~flagged.any()
    here = rows[:, None] & variables[None, :]
    return Samples(jnp.where(here, x[..., 0], 0.0), (x[..., 1] > 0.5) & here, rows, variables)


def sets_of_others(
    d: int, max_parent_size: int, target: Int[Array, ""] | int
) -> Bool[Array, "k {d}"]:
    """All sets of at most so many of the variables that are not the target, which may be traced."""
    table = jnp.asarray(candidate_sets(d - 1, max_parent_size))
    # A last column for the target itself, which is in no set.
    table = jnp.concatenate([table, jnp.zeros((table.shape[0], 1), bool)], axis=1)
    places = jnp.arange(d)
    column = jnp.where(places > target, places - 1, places)
    return table[:, jnp.where(places == target, d - 1, column)]
