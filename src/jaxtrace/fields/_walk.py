"""Which cell of a mesh is a place in? Walk from a cell nearby, or look into a hash of bins."""

from __future__ import annotations

from collections.abc import Callable
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
    barycentric: tuple[Float[Array, " n"], ...]
    inside: Bool[Array, " n"]


class _Walk(NamedTuple):
    cell: Int[Array, " n"]
    barycentric: tuple[Float[Array, " n"], ...]
    walking: Bool[Array, " n"]
    anchor: Int[Array, " n"]
    hops: Int[Array, ""]


def locate(
    mesh: Mesh,
    x: Float[Array, "dim n"],
    hint: Int[Array, " n"] | None,
    active: Bool[Array, " n"],
) -> Found:
    """The cells of places. Without derivatives: `place` adds them.

    Three passes, each over those that the one before leaves: one hop for all, walks for who is
    still on the way, a search for who is lost.

    **Arguments:**

    - `x`: places.
    - `hint`: a cell to start from; -1 if none is known. `None` if none is known to anybody.
    - `active`: false for places that need not be found.
    """
    if hint is None:
        return search(mesh, x)
    first = _hop(mesh, x, _begin(x, jnp.maximum(hint, 0), active & (hint >= 0)))
    found = Found(first.cell, first.barycentric, ~first.walking)
    found = _for_some(mesh, x, found, first.walking, _walk, parts=8)
    inside = _least(found.barycentric) >= -TOLERANCE
    found = Found(found.cell, found.barycentric, inside)
    return _for_some(mesh, x, found, active & ~inside, _search_from, parts=64)


def _for_some(
    mesh: Mesh,
    x: Array,
    found: Found,
    needed: Bool[Array, " n"],
    look: Callable[[Mesh, Array, Found], Found],
    parts: int,
) -> Found:
    """`look` for those who need it, in blocks of `1 / parts` of all."""
    n = x.shape[1]
    size = min(n, max(BLOCK, n // parts))

    def block(loop):
        found, needed = loop
        # The j-th of them is where their number up to there comes to j.
        upto = jnp.cumsum(needed, dtype=jnp.int32)
        which = jnp.searchsorted(upto, jnp.arange(1, size + 1, dtype=jnp.int32), method="scan")
        at = jnp.minimum(which, n - 1)
        taken = jax.tree.map(lambda leaf: gather(leaf, at), found)
        looked = look(mesh, jnp.stack([gather(row, at) for row in x]), taken)
        put = lambda old, new: old.at[which].set(new, mode="drop")  # noqa: E731
        return jax.tree.map(put, found, looked), put(needed, False)

    return lax.while_loop(lambda loop: jnp.any(loop[1]), block, (found, needed))[0]


def _least(barycentric: tuple[Array, ...]) -> Array:
    least = barycentric[0]
    for other in barycentric[1:]:
        least = jnp.minimum(least, other)
    return least


def _begin(x: Array, cell: Array, walking: Array) -> _Walk:
    blank = tuple(jnp.zeros_like(x[0]) for _ in range(x.shape[0] + 1))
    return _Walk(cell, blank, walking, jnp.full_like(cell, -1), jnp.int32(1))


def _hop(mesh: Mesh, x: Array, walk: _Walk) -> _Walk:
    """Coordinates in the cell, and a step through the face where they are most negative.

    A walk depends on the cell alone, so one that comes back to a cell runs in a circle for ever.
    The anchor, moved at hops that are powers of two, meets any circle (Brent).
    """
    corners = mesh.dim + 1
    b = tuple(mesh.barycentric(x, walk.cell))
    least = _least(b)
    face = jnp.full(least.shape, corners - 1, jnp.int32)
    for j in reversed(range(corners - 1)):
        face = jnp.where(b[j] == least, j, face)
    beyond = gather(mesh.neighbour, walk.cell * corners + face)
    go = walk.walking & (least < -TOLERANCE) & (beyond >= 0) & (beyond != walk.anchor)
    # At a power of two (hops & (hops - 1) == 0) the anchor is dropped here.
    drop = (walk.hops & (walk.hops - 1)) == 0
    anchor = jnp.where(drop, walk.cell, walk.anchor)
    return _Walk(jnp.where(go, beyond, walk.cell), b, go, anchor, walk.hops + 1)


def _walk(mesh: Mesh, x: Array, found: Found) -> Found:
    """Walk on, from cells that were entered, until no coordinate is negative.

    `inside` is true for those who are there already.
    """
    start = _begin(x, found.cell, ~found.inside)
    walk = lax.while_loop(lambda w: jnp.any(w.walking), lambda w: _hop(mesh, x, w), start)
    return Found(walk.cell, walk.barycentric, found.inside)


def _search_from(mesh: Mesh, x: Array, found: Found) -> Found:
    """Look in the bins. Who is nowhere keeps the cell it walked to, the edge of the mesh, unless
    the bins have a cell that is nearer."""
    looked = search(mesh, x)
    better = looked.inside | (_least(looked.barycentric) > _least(found.barycentric))
    pick = lambda new, old: jnp.where(better, new, old)  # noqa: E731
    return Found(
        pick(looked.cell, found.cell),
        jax.tree.map(pick, looked.barycentric, found.barycentric),
        looked.inside,
    )


def search(mesh: Mesh, x: Float[Array, "dim n"]) -> Found:
    """The cells of places, by trying every cell of their bins. Exact for any mesh.

    Who is in none gets the cell of its bin that it is least far outside of.
    """
    start, count, _ = mesh.bins.find(x)

    def attempt(loop):
        j, cell, best, least = loop
        tried = gather(mesh.bins.entries, start + jnp.minimum(j, jnp.maximum(count - 1, 0)))
        b = tuple(mesh.barycentric(x, tried))
        margin = _least(b)
        better = (j < count) & (least < -TOLERANCE) & (margin > least)
        pick = lambda new, old: jnp.where(better, new, old)  # noqa: E731
        return j + 1, pick(tried, cell), jax.tree.map(pick, b, best), pick(margin, least)

    n = x.shape[1]
    blank = tuple(jnp.zeros(n, x.dtype) for _ in range(mesh.dim + 1))
    first = (jnp.int32(0), jnp.zeros(n, jnp.int32), blank, jnp.full(n, -jnp.inf, x.dtype))
    _, cell, b, least = lax.while_loop(
        lambda loop: jnp.any((loop[3] < -TOLERANCE) & (loop[0] < count)), attempt, first
    )
    return Found(cell, b, least >= -TOLERANCE)


@jax.custom_jvp
def place(
    mesh: Mesh, x: Float[Array, "dim n"], cell: Int[Array, " n"], b: tuple[Array, ...]
) -> tuple[Float[Array, " n"], ...]:
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
    return b, (-sum(rest[1:], rest[0]), *rest)
