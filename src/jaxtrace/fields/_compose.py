"""Fields made of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace._status import Status
from jaxtrace.fields._field import Field, Hint, Sample, Time


class SumField(Field):
    """The sum of fields: currents, wind and waves. A place outside one of them is outside.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt

    wind = jt.AnalyticField(lambda x, t: jnp.array([1.0, 0.0]), dim=2)
    current = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    total = current + 0.03 * wind
    assert total.sample([[0.0, 1.0]], t=0.0)[0, 0] == -0.97
    ```
    """

    fields: tuple[Field, ...]

    def __init__(self, fields: Sequence[Field]):
        if not fields:
            raise FieldError("fields is empty: a sum needs at least one")
        kinds = {(field.dim, field.components) for field in fields}
        if len(kinds) > 1:
            raise FieldError(f"the fields of a sum have different (dim, components): {kinds}")
        origin = next((f.origin for f in fields if f.time_span is not None), fields[0].origin)
        self.fields = tuple(f if f.origin == origin else f.rebase(origin) for f in fields)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 or 3."""
        return self.fields[0].dim

    @property
    def components(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How many numbers there are at a place."""
        return self.fields[0].components

    @property
    def origin(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time that clocks count from."""
        return self.fields[0].origin

    @property
    def time_span(self) -> tuple[float, float] | None:
        """The times that all fields cover."""
        spans = [field.time_span for field in self.fields]
        spans = [span for span in spans if span is not None]
        return (max(a for a, _ in spans), min(b for _, b in spans)) if spans else None

    @property
    def bounds(self) -> np.ndarray | None:
        """The box that all fields cover."""
        boxes = [box for box in (field.bounds for field in self.fields) if box is not None]
        if not boxes:
            return None
        return np.stack([np.max([b[0] for b in boxes], 0), np.min([b[1] for b in boxes], 0)])

    def rebase(self, origin: float) -> SumField:
        """The same field with its clock counting from another time."""
        return SumField([field.rebase(origin) for field in self.fields])

    def first_hint(self, n: int, *, values: bool = True) -> Hint:
        """Those of the fields."""
        return tuple(field.first_hint(n, values=values) for field in self.fields)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        hints = (None,) * len(self.fields) if hint is None else hint
        samples = [f.evaluate(x, t, h, active) for f, h in zip(self.fields, hints, strict=True)]
        value, status = samples[0].value, samples[0].status
        for other in samples[1:]:
            value = value + other.value
            status = jnp.where(status == int(Status.ALIVE), other.status, status)
        return Sample(value, status, tuple(sample.hint for sample in samples))


class _Around(Field):
    """What a field around another one takes from it: all but the values."""

    field: Field

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 or 3."""
        return self.field.dim

    @property
    def components(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How many numbers there are at a place."""
        return self.field.components

    @property
    def origin(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time that clocks count from."""
        return self.field.origin

    @property
    def time_span(self) -> tuple[float, float] | None:
        """That of the field."""
        return self.field.time_span

    @property
    def bounds(self) -> np.ndarray | None:
        """That of the field."""
        return self.field.bounds

    def first_hint(self, n: int, *, values: bool = True) -> Hint:
        """That of the field."""
        return self.field.first_hint(n, values=values)


class ScaledField(_Around):
    """A field times a number, or times one number a component. The number is data."""

    factor: Float[Array, ""] | Float[Array, " components"]

    def __init__(self, field: Field, factor: Any):
        self.field = field
        self.factor = factor if isinstance(factor, jax.Array) else as_float(factor)
        if self.factor.shape not in ((), (field.components,)):
            raise FieldError(
                f"factor has shape {list(self.factor.shape)}; expected one number, or "
                f"{field.components}"
            )

    def rebase(self, origin: float) -> ScaledField:
        """The same field with its clock counting from another time."""
        return ScaledField(self.field.rebase(origin), self.factor)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        value, status, hint = self.field.evaluate(x, t, hint, active)
        factor = self.factor if self.factor.ndim == 0 else self.factor[:, None]
        return Sample(value * factor, status, hint)


class MaskedField(_Around):
    """A field where `mask(position, t)` is true, and land elsewhere: particles beach there."""

    mask: Callable

    def __init__(self, field: Field, mask: Callable):
        self.field = field
        self.mask = mask

    def rebase(self, origin: float) -> MaskedField:
        """The same field with its clock counting from another time."""
        return MaskedField(self.field.rebase(origin), self.mask)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        value, status, hint = self.field.evaluate(x, t, hint, active)
        axis = None if t.ndim == 0 else 0
        water = jax.vmap(self.mask, in_axes=(1, axis))(x, t + self.origin)
        ashore = ~water & (status == int(Status.ALIVE))
        value = jnp.where(water[None], value, 0.0)
        return Sample(value, jnp.where(ashore, jnp.int8(Status.BEACHED), status), hint)
