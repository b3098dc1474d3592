"""One axis of a grid: which cell a coordinate lies in, and where in it."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields._cubic import cubic_table
from jaxtrace.fields._field import gather


class Axis(eqx.Module):
    """Increasing nodes, equally spaced or not. Coordinates beyond the ends count as the ends."""

    first: Float[Array, ""]
    last: Float[Array, ""]
    per_cell: Float[Array, ""]
    nodes: Float[Array, " nodes"] | None
    cubic: Float[Array, " entries"] | None
    period: Float[Array, ""] | None
    size: int = eqx.field(static=True)

    def __init__(self, nodes: np.ndarray, *, cubic: bool, period: float | None):
        self.size = len(nodes)
        self.first, self.last = as_float(nodes[0]), as_float(nodes[-1])
        self.per_cell = as_float((self.size - 1) / (float(nodes[-1]) - float(nodes[0])))
        self.nodes = None if is_uniform(nodes) else as_float(nodes)
        self.cubic = as_float(cubic_table(nodes.astype(np.float64)).reshape(-1)) if cubic else None
        self.period = None if period is None else as_float(period)

    @property
    def coordinates(self) -> Float[Array, " nodes"]:
        """Where the nodes are."""
        if self.nodes is not None:
            return self.nodes
        return jnp.linspace(self.first, self.last, self.size, dtype=self.first.dtype)

    def wrap(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """`x` brought into one period, if there is one."""
        if self.period is None:
            return x
        return x - self.period * jnp.floor((x - self.first) / self.period)

    def inside(self, x: Float[Array, " n"]) -> Bool[Array, " n"]:
        """Whether `x` is on the axis, but for rounding."""
        slack = 1e-6 * (self.last - self.first)
        return (x >= self.first - slack) & (x <= self.last + slack)

    def cell(self, x: Float[Array, " n"]) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
        """The cell of each coordinate, and where in it, from 0 to 1."""
        if self.nodes is None:
            f = jnp.clip((x - self.first) * self.per_cell, 0.0, self.size - 1.0)
            # A NaN becomes some integer: keep it in bounds.
            i = jnp.clip(f.astype(jnp.int32), 0, self.size - 2)
            return i, f - i.astype(x.dtype)
        x = jnp.clip(x, self.first, self.last)
        i = jnp.zeros(x.shape, jnp.int32)
        for power in reversed(range(math.ceil(math.log2(self.size)))):
            there = jnp.minimum(i + 2**power, self.size - 2)
            i = jnp.where(gather(self.nodes, there) <= x, there, i)
        left, right = gather(self.nodes, i), gather(self.nodes, i + 1)
        return i, (x - left) / (right - left)

    def cubic_weights(
        self, i: Int[Array, " n"], s: Float[Array, " n"]
    ) -> tuple[Int[Array, " n"], list[Float[Array, " n"]]]:
        """The first of four nodes around each coordinate, and the weights of the four."""
        assert self.cubic is not None
        weights = []
        for tap in range(4):
            c = [gather(self.cubic, i * 16 + (4 * tap + power)) for power in range(4)]
            weights.append(c[0] + s * (c[1] + s * (c[2] + s * c[3])))
        return jnp.clip(i - 1, 0, self.size - 4), weights


def is_uniform(nodes: np.ndarray) -> bool:
    """Whether nodes are equally spaced, but for the rounding of their own type."""
    exact = np.linspace(float(nodes[0]), float(nodes[-1]), len(nodes))
    kind = nodes.dtype if np.issubdtype(nodes.dtype, np.floating) else np.dtype(np.float64)
    slack = 2 * np.finfo(kind).eps * np.abs(exact).max() + 1e-9 * abs(exact[1] - exact[0])
    return bool(np.abs(nodes.astype(np.float64) - exact).max() <= slack)


def check_axis(nodes: Any, name: str, least: int) -> np.ndarray:
    """The nodes of an axis as a NumPy array, or an error that says what is wrong with them."""
    nodes = np.asarray(nodes)
    if nodes.ndim != 1:
        raise FieldError(f"{name} has shape {list(nodes.shape)}; expected one row of coordinates")
    if len(nodes) < least:
        hint = (
            " Leave this axis out to make a field of fewer dimensions." if len(nodes) == 1 else ""
        )
        raise FieldError(f"{name} has {len(nodes)} nodes; expected {least} or more.{hint}")
    if not np.isfinite(nodes).all():
        raise FieldError(f"{name}[{int(np.argmin(np.isfinite(nodes)))}] is not finite")
    steps = np.diff(nodes)
    if not ((steps > 0).all() or (steps < 0).all()):
        wrong = steps <= 0 if steps[0] > 0 else steps >= 0
        i = int(np.argmax(wrong))
        raise FieldError(
            f"{name} must increase or decrease all along: {name}[{i}] = {nodes[i]:g}, "
            f"{name}[{i + 1}] = {nodes[i + 1]:g}"
        )
    return nodes
