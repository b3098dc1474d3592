"""The learning rate that an optimizer of Optax used in an update."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


def learning_rate(
    optimizer: optax.GradientTransformation, before: Any, after: Any
) -> Float[Array, ""]:
    """By what an optimizer multiplied its direction, sign apart.

    Optax keeps a constant or a schedule in a function, not in the state: it is read there, and the
    schedule asked for the count of the update. Stages of a chain multiply. NaN where no stage
    tells, as in an optimizer of one's own.

    **Arguments:**

    - `before`, `after`: the state of the optimizer before and after the update.
    """
    rate = None
    for factor in _factors(optimizer.update, before, after):
        rate = factor if rate is None else rate * factor
    return jnp.abs(jnp.asarray(jnp.nan if rate is None else rate, jnp.float32))


def _factors(update: Callable[..., Any], before: Any, after: Any) -> Iterator[Any]:
    """What each stage multiplies by, from the closure of its function or from its state."""
    stage = getattr(update, "__qualname__", "").partition(".")[0]
    owner = getattr(update, "__self__", None)
    inside = {} if owner is not None else dict(inspect.getclosurevars(update).nonlocals)
    hyperparams = getattr(after, "hyperparams", {})
    if "learning_rate" in hyperparams:
        yield hyperparams["learning_rate"]
    elif stage == "scale" and "step_size" in inside:
        yield inside["step_size"]
    elif stage == "scale_by_schedule" and "step_size_fn" in inside:
        yield inside["step_size_fn"](before.count)
    elif stage == "reduce_on_plateau":
        yield after.scale
    elif stage == "chain":
        for inner, *states in zip(inside["update_fns"], before, after, strict=True):
            yield from _factors(inner, *states)
    elif stage == "named_chain":
        for name, one in inside["transforms"]:
            yield from _factors(one.update, before[name], after[name])
    else:
        inner = getattr(owner, "inner_opt", None)  # of `optax.MultiSteps`
        for one in [inner, *inside.values()]:
            if isinstance(one, optax.GradientTransformation):
                yield from _factors(one.update, _inner(before), _inner(after))


def _inner(state: Any) -> Any:
    """The state of what a wrapper wraps; the state itself where it adds nothing."""
    for name in ("inner_state", "inner_opt_state", "base_optimizer_state"):
        if hasattr(state, name):
            return getattr(state, name)
    return state
