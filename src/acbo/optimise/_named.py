"""Named problems with known optima: of the literature of causal Bayesian optimisation, and small
linear ones with a trap each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo._errors import OptionError
from acbo.optimise._environment import Action
from acbo.optimise._problem import Problem
from acbo.scm import SCM, Equations, Graph

LIMIT = 3.0
_FUTURES = 512


class NamedProblem(Problem):
    """A problem that is written down, whose optimum is known.

    It is a `Problem` and is played like any other. Its variables have units in which every range
    is from `-limit` to `limit`, and a target that is to be small is turned around; `natural` and
    `reading` give the numbers of the publication.

    **Attributes:**

    - `settable`: which variables may be set.
    - `low`, `high`: the range of each variable in its own units.
    - `optimum`: the best intervention on one variable.
    - `names`: of the variables.
    - `about`: where the problem comes from, and what is different here.
    - `minimise`: whether the target, in its own units, is to be small.
    """

    settable: Bool[Array, " d"]
    low: Float[Array, " d"]
    high: Float[Array, " d"]
    optimum: Action
    names: tuple[str, ...] = eqx.field(static=True)
    about: str = eqx.field(static=True)
    minimise: bool = eqx.field(static=True)

    @property
    def allowed(self) -> Bool[Array, " d"]:
        """Which variables may be set."""
        return self.settable

    def natural(
        self, variable: Int[Array, "*k"] | int, value: Float[Array, "*k"] | float
    ) -> Float[Array, "*k"]:
        """A value of a variable in the units of the publication."""
        share = (jnp.asarray(value) + self.limit) / (2 * self.limit)
        return self.low[variable] + share * (self.high[variable] - self.low[variable])

    def reading(self, target: Float[Array, "*k"] | float) -> Float[Array, "*k"]:
        """A value of the target in the units of the publication."""
        return -jnp.asarray(target) if self.minimise else jnp.asarray(target)


@dataclass(frozen=True)
class _Recipe:
    """Equations in causal order, the target last.

    `optimum`, and the expected target when nothing is set (`calm`) and at the optimum (`best`), are
    in the units of the equations. Tests compute them again.
    """

    about: str
    equations: Mapping[str, Callable[[Array], Array | float]]
    causes: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float | int, float | int]]
    optimum: tuple[str, float]
    calm: float
    best: float
    noise: Mapping[str, float] = field(default_factory=dict)
    centres: Mapping[str, float] = field(default_factory=dict)
    minimise: bool = True
    linear: bool = False


def named_problem(name: str) -> NamedProblem:
    """A problem by its name: one of `PROBLEMS`.

    ```python
    import jax
    from acbo.optimise import linear_ucb, named_problem, play

    problem = named_problem("fork")
    assert problem.names == ("Z", "X", "Y")
    _, steps = play(jax.random.key(0), problem, linear_ucb, observed=10, budget=4)
    assert steps.best[-1] <= 1.0
    ```
    """
    if name not in _RECIPES:
        raise OptionError(f"name is {name!r}; the named problems are {', '.join(PROBLEMS)}")
    return _build(name)


@functools.cache
def _build(name: str) -> NamedProblem:
    recipe = _RECIPES[name]
    names = tuple(recipe.equations)
    d = len(names)
    edges = np.array([[cause in recipe.causes.get(own, ()) for own in names] for cause in names])
    around = [recipe.centres.get(name, 0.0) for name in names]
    default = [(centre - LIMIT, centre + LIMIT) for centre in around]
    ranges = np.array([recipe.ranges.get(own, default[j]) for j, own in enumerate(names)])
    low, high = ranges.astype(np.float32).T
    centre, scale = (high + low) / 2, (high - low) / (2 * LIMIT)
    centre[-1], scale[-1] = 0.0, -1.0 if recipe.minimise else 1.0
    noise = np.array([recipe.noise.get(own, 1.0) for own in names]) / np.abs(scale)
    variable, value = recipe.optimum
    best = names.index(variable)
    futures = np.zeros((d, 1)) if recipe.linear else _even_normals(d) * noise[:, None]
    with jax.ensure_compile_time_eval():
        return NamedProblem(
            scm=SCM(
                Graph(jnp.asarray(edges), jnp.arange(d, dtype=jnp.int32), jnp.ones(d, bool)),
                Equations(
                    tuple(recipe.equations.values()), jnp.asarray(centre), jnp.asarray(scale)
                ),
                jnp.asarray(noise, jnp.float32),
            ),
            target=jnp.int32(d - 1),
            limit=jnp.float32(LIMIT),
            cost=jnp.zeros(d),
            noise=jnp.asarray(futures, jnp.float32),
            calm=jnp.float32(recipe.calm * scale[-1]),
            best=jnp.float32(recipe.best * scale[-1]),
            settable=jnp.asarray([own in recipe.ranges for own in names]),
            low=jnp.asarray(low),
            high=jnp.asarray(high),
            optimum=Action(jnp.int32(best), jnp.float32((value - centre[best]) / scale[best])),
            names=names,
            about=recipe.about,
            minimise=recipe.minimise,
        )


def _even_normals(d: int) -> Float[np.ndarray, "d futures"]:
    """Normal numbers from points that fill the cube evenly: a mean over them is close to the
    expectation."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(d, scramble=False).random_base2(_FUTURES.bit_length() - 1)
    return ndtri(points + 0.5 / _FUTURES).T


def _nothing(x: Array) -> float:
    return 0.0


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + jnp.exp(-x))


_LINEAR = "A small linear model, made for this package. "

_RECIPES: dict[str, _Recipe] = {
    "chain": _Recipe(
        _LINEAR + "Effects grow along the chain but for the last step: the first variable, not the "
        "cause of the target, is the one to set.",
        equations={
            "A": _nothing,
            "B": lambda x: 1.5 * x[0],
            "C": lambda x: -1.2 * x[1],
            "Y": lambda x: 0.8 * x[2],
        },
        causes={"B": ("A",), "C": ("B",), "Y": ("C",)},
        ranges={"A": (-3, 3), "B": (-3, 3), "C": (-3, 3)},
        optimum=("A", -3.0),
        calm=0.0,
        best=4.32,
        minimise=False,
        linear=True,
    ),
    "fork": _Recipe(
        _LINEAR + "X goes with Y and does nothing to it: both are effects of Z.",
        equations={"Z": _nothing, "X": lambda x: 2.0 * x[0], "Y": lambda x: 1.0 * x[0]},
        causes={"X": ("Z",), "Y": ("Z",)},
        ranges={"Z": (-3, 3), "X": (-3, 3)},
        optimum=("Z", 3.0),
        calm=0.0,
        best=3.0,
        noise={"X": 0.3},
        minimise=False,
        linear=True,
    ),
    "collider": _Recipe(
        _LINEAR + "A and B both cause Y, and both cause S. S goes with Y and does nothing to it.",
        equations={
            "A": _nothing,
            "B": _nothing,
            "S": lambda x: 1.5 * x[0] - 1.8 * x[1],
            "Y": lambda x: 0.8 * x[0] - 1.2 * x[1],
        },
        causes={"S": ("A", "B"), "Y": ("A", "B")},
        ranges={"A": (-3, 3), "B": (-3, 3), "S": (-3, 3)},
        optimum=("B", -3.0),
        calm=0.0,
        best=3.6,
        noise={"S": 0.5},
        minimise=False,
        linear=True,
    ),
    "toy": _Recipe(
        "The toy chain of Aglietti et al., Causal Bayesian Optimization (2020): Z = exp(-X), Y = "
        "cos Z - exp(-Z / 20), noise of deviation 1, Y to be small.",
        equations={
            "X": _nothing,
            "Z": lambda x: jnp.exp(-x[0]),
            "Y": lambda x: jnp.cos(x[1]) - jnp.exp(-x[1] / 20),
        },
        causes={"Z": ("X",), "Y": ("Z",)},
        ranges={"X": (-5, 5), "Z": (-5, 20)},
        optimum=("Z", -3.2003),
        calm=-0.725241,
        best=-2.171806,
    ),
    "complete": _Recipe(
        "The synthetic graph of Aglietti et al. (2020), Y to be small. There U1 and U2 are hidden; "
        "here they are seen and cannot be set.",
        equations={
            "U1": _nothing,
            "U2": _nothing,
            "F": _nothing,
            "A": lambda x: x[2] ** 2 + x[0],
            "B": lambda x: x[1],
            "C": lambda x: jnp.exp(-x[4]),
            "D": lambda x: jnp.exp(-x[5]) / 10,
            "E": lambda x: jnp.cos(x[3]) + x[5] / 10,
            "Y": lambda x: (
                jnp.cos(x[6]) - x[6] / 5 + jnp.sin(x[7]) - x[7] / 4 + x[0] + jnp.exp(-x[1])
            ),
        },
        causes={
            "A": ("U1", "F"),
            "B": ("U2",),
            "C": ("B",),
            "D": ("C",),
            "E": ("A", "C"),
            "Y": ("U1", "U2", "D", "E"),
        },
        ranges={"B": (-5, 4), "D": (-5, 5), "E": (-6, 3)},
        optimum=("B", -5.0),
        calm=2.287579,
        best=-1.236924,
    ),
    "health": _Recipe(
        "Aspirin, statin, cancer and prostate-specific antigen (PSA), after Ferro et al. (2015) as "
        "used by Aglietti et al. (2020); PSA to be small. Age is normal here, with the mean and "
        "the variance of the uniform distribution from 55 to 75; doses are shares, as there.",
        equations={
            "age": lambda x: 65.0,
            "BMI": lambda x: 27 - 0.01 * x[0],
            "aspirin": lambda x: _sigmoid(-8 + 0.10 * x[0] + 0.03 * x[1]),
            "statin": lambda x: _sigmoid(-13 + 0.10 * x[0] + 0.20 * x[1]),
            "cancer": lambda x: _sigmoid(
                2.2 - 0.05 * x[0] + 0.01 * x[1] - 0.04 * x[3] + 0.02 * x[2]
            ),
            "PSA": lambda x: 6.8 + 0.04 * x[0] - 0.15 * x[1] - 0.60 * x[3] + 0.55 * x[2] + x[4],
        },
        causes={
            "BMI": ("age",),
            "aspirin": ("age", "BMI"),
            "statin": ("age", "BMI"),
            "cancer": ("age", "BMI", "aspirin", "statin"),
            "PSA": ("age", "BMI", "aspirin", "statin", "cancer"),
        },
        ranges={"aspirin": (0, 1), "statin": (0, 1)},
        optimum=("statin", 1.0),
        calm=5.805881,
        best=5.344015,
        noise={
            "age": 20 / 12**0.5,
            "BMI": 0.7,
            "aspirin": 0.0,
            "statin": 0.0,
            "cancer": 0.0,
            "PSA": 0.4,
        },
        centres={"age": 65.0, "BMI": 26.0},
    ),
}
PROBLEMS = tuple(_RECIPES)
