"""What the surrogate is taught: which models, how large, how many samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from acbo.scm import Family, Graph, Samples
from acbo.scm._random import uniforms

Part = tuple[Array, int]
"""The number of a part, and how many equal parts there are."""


@dataclass(frozen=True)
class Lesson:
    """Tables of one padded size.

    **Arguments:**

    - `variables`, `rows`: smallest and largest number; tables are padded to the largest. Numbers
      of rows are drawn evenly on a logarithmic scale.
    - `batch`: how many tables a step sees.
    - `weight`: how often the lesson comes, relative to the others.
    """

    variables: tuple[int, int]
    rows: tuple[int, int]
    batch: int
    weight: float = 1.0

    def __post_init__(self):
        if not 2 <= self.variables[0] <= self.variables[1]:
            raise ValueError(f"variables={self.variables}; expected 2 <= smallest <= largest")
        if not 2 <= self.rows[0] <= self.rows[1]:
            raise ValueError(f"rows={self.rows}; expected 2 <= smallest <= largest")
        if self.batch < 1 or self.weight <= 0:
            raise ValueError(f"batch={self.batch}, weight={self.weight}; expected positive numbers")


@dataclass(frozen=True)
class Curriculum:
    """Lessons and families. A step takes one of each, by their weights.

    **Arguments:**

    - `lessons`: sizes; the step compiles once for each.
    - `families`: what models are drawn, with weights.
    - `observational`: the share of tables without any intervention. In the others a share between
      `interventional[0]` and `interventional[1]` of the rows sets something.
    """

    lessons: tuple[Lesson, ...]
    families: tuple[tuple[Family, float], ...]
    observational: float = 0.4
    interventional: tuple[float, float] = (0.1, 0.9)

    def __post_init__(self):
        if not self.lessons or not self.families:
            raise ValueError("a curriculum needs at least one lesson and one family")

    def studies(
        self, key: PRNGKeyArray, lesson: Lesson, *, part: Part | None = None
    ) -> tuple[Graph, Samples]:
        """A batch of graphs with data of one lesson, all of one family; or a part of it.

        The parts of a batch are together what the whole would be.
        """
        pick, sizes, draw = jax.random.split(key, 3)
        logits = jnp.log(jnp.asarray([weight for _, weight in self.families]))
        which = jax.random.categorical(pick, logits)
        u, v, w, x = uniforms(sizes, *[(lesson.batch,)] * 4)
        size = _integer(u, lesson.variables)
        low, high = (jnp.log(jnp.float32(rows)) for rows in lesson.rows)
        rows = jnp.exp(low + (high - low) * v).astype(jnp.int32)
        rows = jnp.clip(rows, *lesson.rows)  # exp(log(37)) is less than 37
        share = self.interventional[0] + w * (self.interventional[1] - self.interventional[0])
        share = jnp.where(x < self.observational, 0.0, share)
        keys = jax.random.split(draw, lesson.batch)
        keys, size, rows, share = part_of((keys, size, rows, share), part)

        def of_family(family: Family):
            def one(key, size, rows, share):
                study = family.study(
                    key,
                    lesson.variables[1],
                    lesson.rows[1],
                    size=size,
                    rows=rows,
                    interventional=share,
                )
                return study.scm.graph, study.samples

            return lambda: jax.vmap(one)(keys, size, rows, share)

        return lax.switch(which, [of_family(family) for family, _ in self.families])

    def pick_lesson(self, key: PRNGKeyArray) -> Array:
        """The number of the lesson of a step."""
        logits = jnp.log(jnp.asarray([lesson.weight for lesson in self.lessons]))
        return jax.random.categorical(key, logits)


def part_of(batch: Any, part: Part | None) -> Any:
    """The part of a batch, of every leaf along its first axis; without `part`, all of it."""
    if part is None:
        return batch
    number, parts = part

    def take(leaf: Array) -> Array:
        size = leaf.shape[0] // parts
        return lax.dynamic_slice_in_dim(leaf, number * size, size)

    return jax.tree.map(take, batch)


def _integer(u: Array, limits: tuple[int, int]) -> Array:
    """Uniform integers, both limits among them."""
    low, high = limits
    return low + jnp.floor(u * (high - low + 1)).astype(jnp.int32)
