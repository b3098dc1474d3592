"""The gradient of losses and models that look at values: one example after the other, untraced.

Under `vmap` nothing has a value. One example at a time everything has: `if` and `int` work under
JAX's own gradient. What does not is made to work here: a loss that leaves JAX (`float`, NumPy) is
differentiated by differences, of which it needs few: it sees one number a parent set. A model has
too many parameters for that. It may read values; what it computes with them has no gradient, and
where that is missed it is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

_UNREADABLE = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
_STEP = 2.0**-8  # what float32 rounds off and what a slope bends weigh alike
_MISSED = 0.1


class LostGradientError(Exception):
    """A model computes with values that it took out of JAX."""


def slope_of_loss(
    loss: Callable[[Array], Any], logits: Float[Array, " k"]
) -> tuple[Float[Array, ""], Float[Array, " k"]]:
    """The loss, and its gradient: JAX's where it has one, else by differences."""
    try:
        return jax.value_and_grad(loss)(logits)
    except _UNREADABLE:
        at = np.asarray(logits, np.float32)
        slopes = np.zeros_like(at)
        for k in range(len(at)):
            step = np.zeros_like(at)
            step[k] = _STEP
            there, back = at + step, at - step
            change = float(loss(jnp.asarray(there))) - float(loss(jnp.asarray(back)))
            slopes[k] = change / (there[k] - back[k])  # not quite two steps where logits are huge
        return jnp.asarray(loss(logits), jnp.float32), jnp.asarray(slopes)


def pull_back(model: Callable[[Any], Array], params: Any) -> tuple[Array, Callable[[Array], Any]]:
    """What a model gives for parameters, and the way back from a slope of it to theirs."""
    try:
        out, back = jax.vjp(model, params)
        return out, lambda slope: back(slope)[0]
    except _UNREADABLE:
        with _readable():
            out, back = jax.vjp(model, params)
        return out, lambda slope: _checked(model, params, slope, back(slope)[0])


def _checked(model: Callable[[Any], Array], params: Any, slope: Array, gradient: Any) -> Any:
    """The gradient, if what the model gives does change along it as it says."""
    leaves, treedef = jax.tree.flatten(gradient)
    length = float(np.sqrt(sum(float((leaf**2).sum()) for leaf in leaves)))
    rng = np.random.default_rng(0)
    # All of the gradient may be lost: then some direction.
    along = leaves if length > 0 else [rng.normal(size=leaf.shape) for leaf in leaves]
    size = float(np.sqrt(sum(float((leaf**2).sum()) for leaf in along)))
    promised = length**2 / max(size, 1e-30)

    def at(step: float) -> float:
        moved = [
            jnp.asarray(np.asarray(p) + step / size * np.asarray(a), p.dtype)
            for p, a in zip(jax.tree.leaves(params), along, strict=True)
        ]
        return float((model(jax.tree.unflatten(treedef, moved)) * slope).sum())

    # Two steps: an `if` may lie within the longer one, rounding may hide the shorter.
    found = [(at(step) - at(-step)) / (2 * step) for step in (1e-2, 1e-3)]
    if all(abs(one - promised) > _MISSED * (abs(promised) + 0.01) for one in found):
        raise LostGradientError(
            f"along its gradient the model's logits change by {found[0]:.3g}, the gradient says "
            f"{promised:.3g}: the model computes with values that left JAX (`float`, NumPy). They "
            "may decide something; what is computed with them must stay an array"
        )
    return gradient


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Let `float` and NumPy read traced arrays that have a value, as `if` and `int` can."""

    def value_of(traced: Any) -> np.ndarray:
        value = traced.to_concrete_value()
        if value is None:
            raise jax.errors.TracerArrayConversionError(traced)
        return np.asarray(value)

    def as_array(traced: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(value_of(traced), dtype)

    read = {
        "__float__": lambda traced: float(value_of(traced)),
        "__array__": as_array,
        "item": lambda traced, *args: value_of(traced).item(*args),
        "tolist": lambda traced: value_of(traced).tolist(),
    }
    before = {name: getattr(Tracer, name) for name in read}
    try:
        for name, function in read.items():
            setattr(Tracer, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(Tracer, name, function)
