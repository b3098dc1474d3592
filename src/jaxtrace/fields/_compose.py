"""Fields made of fields."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError, TraceWarning
from jaxtrace._status import Status
from jaxtrace.fields._field import Field, Hint, Sample, Time
from jaxtrace.fields._frame import PER_COORDINATE, PER_METRE, Frame, merged, seconds_between


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
        frame = merged([field.frame for field in fields], "the fields of a sum")
        fields, units = _alike(fields, frame)
        timed = [field for field in fields if field.time_span is not None]
        dated = [field for field in timed if field.frame.epoch]
        clock = (dated or timed or list(fields))[0]
        self.fields = tuple(on_clock_of(field, clock) for field in fields)
        self.frame = dataclasses.replace(frame, units=units, epoch=clock.frame.epoch or frame.epoch)

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
        fields = tuple(field.rebase(origin) for field in self.fields)
        return eqx.tree_at(lambda s: s.fields, self, fields)

    def later(self, seconds: float) -> SumField:
        """See `Field.later`."""
        fields = tuple(field.later(seconds) for field in self.fields)
        return eqx.tree_at(lambda s: s.fields, self, fields)

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

    def rebase(self, origin: float) -> Field:
        """The same field with its clock counting from another time."""
        return eqx.tree_at(lambda f: f.field, self, self.field.rebase(origin))

    def later(self, seconds: float) -> Field:
        """See `Field.later`."""
        return eqx.tree_at(lambda f: f.field, self, self.field.later(seconds))


class ScaledField(_Around):
    """A field times a number, or times one number a component. The number is data."""

    factor: Float[Array, ""] | Float[Array, " components"]

    def __init__(self, field: Field, factor: Any):
        self.field, self.frame = field, field.frame
        self.factor = factor if isinstance(factor, jax.Array) else as_float(factor)
        if self.factor.shape not in ((), (field.components,)):
            raise FieldError(
                f"factor has shape {list(self.factor.shape)}; expected one number, or "
                f"{field.components}"
            )

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
        self.field, self.frame = field, field.frame
        self.mask = mask

    def later(self, seconds: float) -> Field:
        """Refused: the mask has a clock of its own."""
        return Field.later(self, seconds)

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


class EarthField(_Around):
    """A velocity in m/s as one in coordinates a second: degrees along longitude and latitude."""

    def __init__(self, field: Field, frame: Frame):
        self.field = field
        self.frame = dataclasses.replace(frame, units=PER_COORDINATE, epoch=field.frame.epoch)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        value, status, hint = self.field.evaluate(x, t, hint, active)
        return Sample(value / self.frame.metres(x), status, hint)


def in_coordinates(field: Field, frame: Frame) -> Field:
    """A velocity in coordinates a second of the axes of `frame`, or an error that says why not."""
    units = field.frame.units
    if units not in ("", PER_METRE, PER_COORDINATE):
        raise FieldError(
            f"a {type(field).__name__} is in {units!r}; a velocity must be in {PER_METRE!r} or "
            f"{PER_COORDINATE!r}: multiply the field, and say its units with frame=Frame(units=...)"
        )
    if frame.flat or units == PER_COORDINATE:
        return field
    if not units:
        raise FieldError(
            f"the units of a {type(field).__name__} are not known, and the axes are {frame.axes}: "
            f"1 m/s is not 1 degree a second. Make it with frame=Frame(units={PER_METRE!r}), which "
            f"is converted, or with frame=Frame(units={PER_COORDINATE!r})"
        )
    if "pascals" in frame.axes:
        raise FieldError(
            f"a {type(field).__name__} is in m/s, but an axis measures pascals: along it "
            f"a velocity must be in Pa/s; give all components in {PER_COORDINATE!r}"
        )
    return EarthField(field, frame)


def _alike(fields: Sequence[Field], frame: Frame) -> tuple[Sequence[Field], str]:
    """Fields in the same units, and those units."""
    units = sorted({field.frame.units for field in fields})
    if len(units) == 1:
        return fields, units[0]
    if PER_METRE not in units and PER_COORDINATE not in units:
        raise FieldError(f"the fields of a sum are in different units: {units}")
    if not frame.axes and PER_METRE in units:
        raise FieldError(
            f"of the fields of a sum one is in {PER_METRE!r}, another in "
            f"{units[0] or 'units that are not known'!r}, and their axes are not known; say all of "
            "it with frame=Frame(axes=..., units=...)"
        )
    return [in_coordinates(field, frame) for field in fields], PER_COORDINATE


def with_frame(field: Field, frame: Frame) -> Field:
    """The same field; its numbers mean something else."""
    copy = object.__new__(type(field))
    for name, value in {**vars(field), "frame": frame}.items():
        object.__setattr__(copy, name, value)
    return copy


def on_clock_of(other: Field, field: Field) -> Field:
    """`other` on the clock of `field`: dates agree, and times count from the same origin.

    A field with times and no date beside one with a date is taken to be on the same clock, with a
    warning. Fields that have no time in common are an error.
    """
    epoch, own = field.frame.epoch, other.frame.epoch
    if own and epoch and own != epoch and other.time_span:
        frame = dataclasses.replace(other.frame, epoch=epoch)
        other = with_frame(other.later(seconds_between(epoch, own)), frame)
    elif bool(own) != bool(epoch) and other.time_span and field.time_span:
        dated, plain = (other, field) if own else (field, other)
        warnings.warn(
            f"a {type(plain).__name__} has times without a date, beside a {type(dated).__name__} "
            f"with times in {own or epoch!r}: they are taken to be the same. Say it with "
            "frame=Frame(epoch=...)",
            TraceWarning,
            stacklevel=4,
        )
    if other.time_span and field.time_span:
        (a, b), (c, d) = field.time_span, other.time_span
        if d < a or b < c:
            raise FieldError(
                f"a {type(other).__name__} has data from {c:g} to {d:g}, and the field that it is "
                f"used with from {a:g} to {b:g}"
                + (f" ({epoch})" if epoch else "")
                + ": they have no time in common"
            )
    return other if other.origin == field.origin else other.rebase(float(field.origin))
