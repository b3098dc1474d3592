"""What a run keeps, as values: `Every`, `At`, `Final`, or a pytree of them."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

Observe: TypeAlias = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Every:
    """Keep a record after every `n`-th step.

    **Arguments:**

    - `n`: the period, in steps.
    - `of`: what to keep, a function of the state; left out, the step's output is kept.
        Recording a statistic instead of the state is one argument: `of=lambda s: s.x.mean()`.
        Define the function once: a new lambda for each run is a new program for each run.
    - `initial`: also keep a record of the state before the first step. Needs `of`.
    - `last`: also keep a record of the state after the last step that is done, where `n` does not
        divide it. Needs `of`.
    """

    n: int = 1
    of: Observe | None = None
    initial: bool = False
    last: bool = False

    def __post_init__(self):
        if self.n < 1:
            raise ValueError(f"Every(n={self.n}): n must be at least 1")
        for name in ("initial", "last"):
            if getattr(self, name) and self.of is None:
                raise ValueError(
                    f"Every({name}=True) needs `of`: outside the loop there is no output of a step"
                )

    def period(self) -> int:
        """A number of steps that every due step is a multiple of."""
        return self.n

    def rows(self, done: int) -> int:
        """How many records exist after `done` steps."""
        return done // self.n + self.initial

    def after(self, done: int) -> int:
        """How many records are added when the run has ended after `done` steps."""
        return int(self.last and done % self.n != 0)

    def reach(self, rows: int) -> int:
        """The most steps after which there are still no more than `rows` records."""
        return (rows - self.initial + 1) * self.n - 1

    def due(self, done: Int[Array, ""]) -> Bool[Array, ""] | bool:
        """Whether a record is due now that `done` steps are done."""
        return True if self.n == 1 else done % self.n == 0

    def row(self, done: Int[Array, ""]) -> Int[Array, ""]:
        """The row of that record."""
        return done // self.n - 1 + int(self.initial)


@dataclasses.dataclass(frozen=True)
class At:
    """Keep a record after exactly these numbers of steps.

    **Arguments:**

    - `steps`: increasing numbers of steps done; 0 is the state before the first step.
    - `of`: what to keep, as in [`worldloom.Every`][].
    """

    steps: tuple[int, ...]
    of: Observe | None = None

    def __init__(self, steps: Sequence[int], of: Observe | None = None):
        steps = tuple(int(step) for step in steps)
        if any(b <= a for a, b in itertools.pairwise(steps)) or (steps and steps[0] < 0):
            raise ValueError(f"At(steps={steps}): steps must increase and not be negative")
        if steps[:1] == (0,) and of is None:
            raise ValueError(
                "At(steps=(0, ...)) needs `of`: no output exists before the first step"
            )
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "of", of)

    @property
    def initial(self) -> bool:
        """Whether the state before the first step is kept."""
        return self.steps[:1] == (0,)

    def period(self) -> int:
        """A number of steps that every due step is a multiple of; 0 if none is due."""
        return math.gcd(*self.steps)

    def rows(self, done: int) -> int:
        """How many records exist after `done` steps."""
        return bisect.bisect_right(self.steps, done)

    def after(self, done: int) -> int:
        """Nothing is kept when the run has ended."""
        return 0

    def reach(self, rows: int) -> int:
        """The most steps after which there are still no more than `rows` records."""
        return self.steps[rows] - 1 if rows < len(self.steps) else 2**31 - 1

    def due(self, done: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether a record is due now that `done` steps are done."""
        return jnp.any(jnp.asarray(self.steps, jnp.int32) == done)

    def row(self, done: Int[Array, ""]) -> Int[Array, ""]:
        """The row of that record."""
        return jnp.sum(jnp.asarray(self.steps, jnp.int32) < done, dtype=jnp.int32)


@dataclasses.dataclass(frozen=True)
class Final:
    """Keep one record of the last state, after the last step that is done.

    **Arguments:**

    - `of`: what to keep, as in [`worldloom.Every`][].
    """

    of: Observe

    initial = False

    def period(self) -> int:
        """No step is due."""
        return 0

    def rows(self, done: int) -> int:
        """Nothing is kept while the loop runs."""
        return 0

    def after(self, done: int) -> int:
        """One record is kept when the run has ended."""
        return 1

    def reach(self, rows: int) -> int:
        """Nothing limits how far the loop may go."""
        return 2**31 - 1


Save: TypeAlias = Every | At | Final


def is_save(value: Any) -> bool:
    """Whether `value` is one of the kinds of record, rather than a pytree of them."""
    return isinstance(value, Save)
