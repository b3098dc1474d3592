"""Which cell of a mesh is a place in? Walk from a cell nearby, or look into a hash of bins."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields._bins import Bins
from jaxtrace.fields._field import gather

# Barycentric coordinates that are this negative still count as inside: float32 rounds.
TOLERANCE = 1e-5
BLOCK = 64


class Mesh(eqx.Module):
    """Cells of a mesh as flat tables: a table of rows would be gathered row by row."""

    geometry: Float[Array, " cells_times_rows"]
    neighbour: Int[Array, " cells_times_corners"]
    corner: Int[Array, " cells_times_corners"]
    bins: Bins
    dim: int = eqx.field(static=True)

    def barycentric(
        self, x: Float[Array, "dim n"], cell: Int[Array, " n"]
    ) -> list[Float[Array, " n"]]:
        """The `dim + 1` barycentric coordinates of places in cells."""
        dim = self.dim
        base = cell * (dim * dim + dim)
        away = [x[i] - gather(self.geometry, base + (dim * dim + i)) for i in range(dim)]
        rest = []
        for j in range(dim):
            row = [gather(self.geometry, base + (dim * j + i)) for i in range(dim)]
            rest.append(
                sum(r * a for r, a in zip(row[1:], away[1:], strict=True)) + row[0] * away[0]
            )
        return [1.0 - sum(rest[1:], rest[0]), *rest]

    def corners(self, cell: Int[Array, " n"]) -> list[Int[Array, " n"]]:
        """The points at the corners of cells."""
        count = self.dim + 1
        return [gather(self.corner, cell * count + j) for j in range(count)]


class Found(NamedTuple):
    """Cells, places in them, and whether the places are in them indeed."""

    cell: Int[Array, " n"]
    barycentric: Float[Array, "corners n"]
    inside: Bool[Array, " n"]


class _Walk(NamedTuple):
    cell: Int[Array, " n"]
    barycentric: Float[Array, "corners n"]
    walking: Bool[Array, " n"]
    anchor: Int[Array, " n"]
    hops: Int[Array, ""]


def locate(
    mesh: Mesh, x: Float[Array, "dim n"], hint: Int[Array, " n"], active: Bool[Array, " n"]
) -> Found:
    """The cells of places. Without derivatives: `place` adds them.

    **Arguments:**

    - `x`: places.
    - `hint`: a cell to start from; -1 if none is known.
    - `active`: false for places that need not be found.
    """
    walked = _walk(mesh, x, jnp.maximum(hint, 0), active & (hint >= 0))
    cell, barycentric = walked.cell, walked.barycentric
    inside = jnp.min(barycentric, axis=0) >= -TOLERANCE
    lost = active & ~inside
    found = Found(cell, barycentric, inside)
    return lax.cond(jnp.any(lost), lambda: _search_lost(mesh, x, found, lost), lambda: found)


def _walk(mesh: Mesh, x: Array, cell: Array, walking: Array) -> _Walk:
    """Go through the face with the most negative coordinate until there is none.

    A walk depends on the cell alone, so one that comes back to a cell runs in a circle for ever.
    The anchor, moved at hops that are powers of two, meets any circle (Brent).
    """
    corners = mesh.dim + 1

    def hop(walk: _Walk) -> _Walk:
        b = mesh.barycentric(x, walk.cell)
        least = b[0]
        for other in b[1:]:
            least = jnp.minimum(least, other)
        face = jnp.full(least.shape, corners - 1, jnp.int32)
        for j in reversed(range(corners - 1)):
            face = jnp.where(b[j] == least, j, face)
        beyond = gather(mesh.neighbour, walk.cell * corners + face)
        go = walk.walking & (least < -TOLERANCE) & (beyond >= 0) & (beyond != walk.anchor)
        # At a power of two (hops & (hops - 1) == 0) the anchor is dropped here.
        drop = (walk.hops & (walk.hops - 1)) == 0
        anchor = jnp.where(drop, walk.cell, walk.anchor)
        return _Walk(jnp.where(go, beyond, walk.cell), jnp.stack(b), go, anchor, walk.hops + 1)

    blank = jnp.zeros((corners, x.shape[1]), x.dtype)
    start = _Walk(cell, blank, walking, jnp.full_like(cell, -1), jnp.int32(1))
    # The first round runs even if nobody walks, for the coordinates.
    return lax.while_loop(lambda walk: jnp.any(walk.walking), hop, hop(start))


def _search_lost(mesh: Mesh, x: Array, found: Found, lost: Array) -> Found:
    """Look up who is lost in the bins, a block at a time."""
    n = x.shape[1]
    size = min(BLOCK, n)

    def block(loop):
        found, lost = loop
        (which,) = jnp.nonzero(lost, size=size, fill_value=n)
        cell, b, inside = search(mesh, x[:, jnp.minimum(which, n - 1)])
        # Who is nowhere keeps the cell it walked to, the edge of the mesh, unless it did not walk.
        least = jnp.min(found.barycentric, axis=0)[jnp.minimum(which, n - 1)]
        which_found = jnp.where(inside | (jnp.min(b, axis=0) > least), which, n)
        after = Found(
            found.cell.at[which_found].set(cell, mode="drop"),
            found.barycentric.at[:, which_found].set(b, mode="drop"),
            found.inside.at[which].set(inside, mode="drop"),
        )
        return after, lost.at[which].set(False, mode="drop")

    return lax.while_loop(lambda loop: jnp.any(loop[1]), block, (found, lost))[0]


def search(mesh: Mesh, x: Float[Array, "dim n"]) -> Found:
    """The cells of places, by trying every cell of their bins. Exact for any mesh.

    Who is in none gets the cell of its bin that it is least far outside of.
    """
    start, count, _ = mesh.bins.find(x)
    corners = mesh.dim + 1

    def attempt(loop):
        j, cell, best, least = loop
        tried = gather(mesh.bins.entries, start + jnp.minimum(j, jnp.maximum(count - 1, 0)))
        b = jnp.stack(mesh.barycentric(x, tried))
        margin = jnp.min(b, axis=0)
        better = (j < count) & (least < -TOLERANCE) & (margin > least)
        return (
            j + 1,
            jnp.where(better, tried, cell),
            jnp.where(better[None], b, best),
            jnp.where(better, margin, least),
        )

    n = x.shape[1]
    first = (
        jnp.int32(0),
        jnp.zeros(n, jnp.int32),
        jnp.zeros((corners, n), x.dtype),
        jnp.full(n, -jnp.inf, x.dtype),
    )
    _, cell, b, least = lax.while_loop(
        lambda loop: jnp.any((loop[3] < -TOLERANCE) & (loop[0] < count)), attempt, first
    )
    inside = least >= -TOLERANCE
    return Found(cell, b, inside)


@jax.custom_jvp
def place(
    mesh: Mesh, x: Float[Array, "dim n"], cell: Int[Array, " n"], b: Float[Array, "corners n"]
) -> Float[Array, "corners n"]:
    """`b`, the barycentric coordinates of `x` in `cell`, as a differentiable function of `x`.

    The walk has computed them already; this only adds their derivative.
    """
    return b


@place.defjvp
def _place_jvp(primals, tangents):
    mesh, _, cell, b = primals
    moved = tangents[1]
    dim = mesh.dim
    base = cell * (dim * dim + dim)
    rest = []
    for j in range(dim):
        row = [gather(mesh.geometry, base + (dim * j + i)) * moved[i] for i in range(dim)]
        rest.append(sum(row[1:], row[0]))
    return b, jnp.stack([-sum(rest[1:], rest[0]), *rest])
