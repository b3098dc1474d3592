"""Fields given by a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace._config import as_float, float_dtype
from jaxtrace._errors import FieldError
from jaxtrace.fields._field import (
    Field,
    Hint,
    Sample,
    Time,
    apply_outside,
    check_outside,
)
from jaxtrace.fields._frame import Frame


class AnalyticField(Field):
    """A field given by a function of one place and a time.

    **Arguments:**

    - `fn`: `fn(position, t)`, of `[dim]` and one number, gives `[C]` or one number. Written with
        `jax.numpy`. Bind parameters as arrays of a `jax.tree_util.Partial` or an `eqx.Module`: they
        are then arguments of the compiled program and can be differentiated.
    - `dim`: 2 or 3.
    - `bounds`: `[2, dim]`, if the field has an outside.
    - `outside`: what holds there, as in [`jaxtrace.StructuredField`][].
    - `frame`: what coordinates and values mean, a [`jaxtrace.Frame`][].

    ```python
    import jax.numpy as jnp
    import numpy as np
    import jaxtrace as jt

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    assert np.allclose(field.sample([[0.5, 0.25]], t=0.0), [[-0.25, 0.5]])
    ```
    """

    fn: Callable
    low: Float[Array, " dim"] | None
    high: Float[Array, " dim"] | None
    origin: Any
    dim: int = eqx.field(static=True)
    components: int = eqx.field(static=True)
    outside: str = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable,
        *,
        dim: int = 3,
        bounds: Any = None,
        outside: str = "status",
        frame: Frame | None = None,
    ):
        check_outside(outside)
        if dim not in (2, 3):
            raise FieldError(f"dim={dim}: expected 2 or 3")
        self.fn = fn
        self.dim = dim
        self.origin = 0.0
        self.frame = frame or Frame()
        self.outside = outside
        self.low = self.high = None
        if bounds is not None:
            corners = check_bounds(bounds, dim)
            self.low, self.high = as_float(corners[0]), as_float(corners[1])
        kind = float_dtype()
        shape = jax.eval_shape(
            fn, jax.ShapeDtypeStruct((dim,), kind), jax.ShapeDtypeStruct((), kind)
        )
        if not hasattr(shape, "shape") or len(shape.shape) > 1:
            raise FieldError(
                f"fn must return one array of one axis, or one number; it returns {shape}"
            )
        self.components = shape.shape[0] if shape.shape else 1

    @property
    def bounds(self) -> np.ndarray | None:
        """`[2, dim]`, the corners of the domain, if there is a limit."""
        if self.low is None or self.high is None:
            return None
        return np.stack([self.low, self.high])

    def rebase(self, origin: float) -> AnalyticField:
        """The same field with its clock counting from another time."""
        return eqx.tree_at(lambda f: f.origin, self, float(origin))

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        place, inside = x, jnp.ones(x.shape[1], bool)
        if self.low is not None and self.high is not None:
            place = jnp.clip(x, self.low[:, None], self.high[:, None])
            slack = 1e-6 * (self.high - self.low)[:, None]
            inside = jnp.all(jnp.abs(place - x) <= slack, axis=0)

        def one(x, t):
            return jnp.atleast_1d(jnp.asarray(self.fn(x, t + self.origin)).astype(x.dtype))

        value = jax.vmap(one, in_axes=(1, None if t.ndim == 0 else 0), out_axes=1)(place, t)
        value, status = apply_outside(value, inside, self.outside)
        return Sample(value, status, None)


def check_bounds(bounds: Any, dim: int | None = None) -> np.ndarray:
    """`[2, dim]` as float64, or an error that says what is wrong."""
    corners = np.asarray(bounds, np.float64)
    if corners.ndim != 2 or len(corners) != 2 or corners.shape[1] not in (2, 3):
        raise FieldError(
            f"bounds has shape {list(corners.shape)}; expected [min, max], each with 2 or 3 numbers"
        )
    if dim is not None and corners.shape[1] != dim:
        raise FieldError(f"bounds has {corners.shape[1]} coordinates; expected {dim}")
    if not (corners[0] < corners[1]).all():
        i = int(np.argmin(corners[0] < corners[1]))
        raise FieldError(
            f"bounds: the least coordinate along axis {i}, {corners[0, i]:g}, is not below the "
            f"greatest, {corners[1, i]:g}"
        )
    return corners
