"""A family of models to draw from: graph prior, mechanism, noise, and how data are taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.scm._graphs import check_graph, graph_from, numbers_of_graph
from acbo.scm._mechanisms import check_mechanism, mechanism_from, numbers_of_mechanism
from acbo.scm._random import between, signed, uniforms
from acbo.scm._scm import SCM, Samples, check_noise, standardise


class Study(NamedTuple):
    """A model and a standardised table of samples of it."""

    scm: SCM
    samples: Samples


@dataclass(frozen=True)
class Family:
    """A distribution over models, and over the data that are taken from one.

    **Arguments:**

    - `graph`, `mechanism`, `noise`: the kinds to draw; see `sample_graph` and `sample_mechanism`.
    - `edges_per_variable`: smallest and largest expected number of edges for each variable.
    - `noise_scale`: smallest and largest standard deviation of noise.
    - `do_size`: smallest and largest size of a value that is set; its sign is random.
    - `targets`: how many variables one intervention sets at most.
    - `reach`: smallest and largest share of the variables that interventions can set at all.

    ```python
    import jax
    from acbo.scm import Family

    study = Family(mechanism="fourier").study(jax.random.key(0), 5, 100, interventional=0.5)
    assert study.samples.values.shape == (100, 5)
    ```
    """

    graph: str = "erdos_renyi"
    mechanism: str = "linear"
    noise: str = "gaussian"
    edges_per_variable: tuple[float, float] = (1.0, 1.0)
    noise_scale: tuple[float, float] = (0.5, 1.5)
    do_size: tuple[float, float] = (1.0, 3.0)
    targets: int = 1
    reach: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self):
        check_graph(self.graph)
        check_mechanism(self.mechanism)
        check_noise(self.noise)
        for name in ("edges_per_variable", "noise_scale", "do_size", "reach"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ValueError(f"{name}=({low}, {high}); expected 0 <= smallest <= largest")
        if self.targets < 1:
            raise ValueError(f"targets={self.targets}; an intervention sets at least one variable")

    def scm(self, key: PRNGKeyArray, d: int, *, size: int | Int[Array, ""] | None = None) -> SCM:
        """Draw a model of `size` variables, padded to `d`."""
        size = jnp.asarray(d if size is None else size, jnp.int32)
        return self._scm_from(uniforms(key, *self._numbers_of_scm(d)), size)

    def interventions(
        self,
        key: PRNGKeyArray,
        n: int,
        variables: Bool[Array, " d"],
        interventional: float | Float[Array, ""],
    ) -> tuple[Bool[Array, "n d"], Float[Array, "n d"]]:
        """Which variables are set in each of `n` samples, and to what.

        A share of `interventional` rows sets variables, each row its own. Where `reach` is below 1,
        rows that would set a variable out of reach set nothing.
        """
        u = uniforms(key, *self._numbers_of_interventions(variables.shape[0], n))
        share = jnp.asarray(interventional, jnp.float32)
        intervened, do = self._interventions_from(u, variables, share)
        return intervened.T, do.T

    def study(
        self,
        key: PRNGKeyArray,
        d: int,
        n: int,
        *,
        interventional: float | Float[Array, ""] = 0.0,
        size: int | Int[Array, ""] | None = None,
        rows: int | Int[Array, ""] | None = None,
    ) -> Study:
        """Draw a model and a table of `rows` samples, padded to `n`, standardised."""
        of_scm, of_interventions = self._numbers_of_scm(d), self._numbers_of_interventions(d, n)
        u = uniforms(key, *of_scm, *of_interventions, (d, n))
        scm = self._scm_from(u[:3], jnp.asarray(d if size is None else size, jnp.int32))
        variables = scm.graph.variables
        share = jnp.asarray(interventional, jnp.float32)
        intervened, do = self._interventions_from(u[3:6], variables, share)
        values = scm.push(scm.noise_from(u[6]), intervened, do)
        exists = jnp.arange(n) < jnp.asarray(n if rows is None else rows, jnp.int32)
        intervened = intervened.T & exists[:, None]
        return Study(scm, standardise(Samples(values.T, intervened, exists, variables)))

    def _numbers_of_scm(self, d: int) -> list[tuple[int, ...]]:
        return [numbers_of_graph(d), numbers_of_mechanism(d, self.mechanism), (d + 1,)]

    def _scm_from(self, u: list[Array], size: Int[Array, ""]) -> SCM:
        of_graph, of_mechanism, rest = u
        density = between(rest[0], self.edges_per_variable)
        graph = graph_from(of_graph, self.graph, size, density)
        mechanism = mechanism_from(of_mechanism, graph.edges, self.mechanism)
        return SCM(graph, mechanism, between(rest[1:], self.noise_scale), self.noise)

    def _numbers_of_interventions(self, d: int, n: int) -> list[tuple[int, ...]]:
        return [(2 if self.targets == 1 else d + 2, n), (d, n), (d + 1,)]

    def _interventions_from(
        self, u: list[Array], variables: Bool[Array, " d"], share: Float[Array, ""]
    ) -> tuple[Bool[Array, "d n"], Float[Array, "d n"]]:
        which, size, reachable = u
        d = variables.shape[0]
        chosen, first = which[0] < share, which[1]
        if self.targets == 1:
            # Existing variables are the first ones.
            target = jnp.floor(first * variables.sum().astype(jnp.float32)).astype(jnp.int32)
            targets = jnp.arange(d)[:, None] == target[None, :]
        else:
            score = jnp.where(variables[:, None], which[2:], -1.0)
            count = 1 + jnp.floor(first * self.targets).astype(jnp.int32)
            targets = jnp.argsort(jnp.argsort(-score, axis=0), axis=0) < count[None, :]
        allowed = variables & (reachable[1:] < between(reachable[0], self.reach))
        return targets & chosen[None, :] & allowed[:, None], signed(size, self.do_size)
