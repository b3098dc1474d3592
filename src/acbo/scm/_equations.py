"""Models that are written down instead of drawn: one equation a variable."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from acbo.scm._mechanisms import Mechanism


class Equations(Mechanism):
    """One function a variable, in units of its own.

    A variable that is `u` in the model is `centre + scale * u` to the equations, and what they
    give is brought back. So models of any units can share limits between which values are set.

    **Attributes:**

    - `equations`: functions of all variables `[d, n]`; each gives its variable `[n]` without noise,
      or a number. They are part of the program: use functions of a module, not new ones each time.
    - `centre`, `scale`: the units. A negative scale turns a variable around.

    ```python
    import jax.numpy as jnp
    from acbo.scm import SCM, Equations, Graph

    def cause(x):
        return 0.0

    def effect(x):
        return jnp.exp(-x[0])

    edges = jnp.array([[False, True], [False, False]])
    graph = Graph(edges, jnp.arange(2), jnp.ones(2, bool))
    scm = SCM(graph, Equations((cause, effect), jnp.zeros(2), jnp.ones(2)), jnp.ones(2))
    assert scm.mean(jnp.array([True, False]), jnp.array([1.0, 0.0]))[1] == jnp.exp(-1.0)
    ```
    """

    equations: tuple[Callable[[Array], Array | float], ...] = eqx.field(static=True)
    centre: Float[Array, " d"]
    scale: Float[Array, " d"]

    def __call__(self, j, values):
        """See `Mechanism`."""
        x = self.centre[:, None] + self.scale[:, None] * values

        def branch(equation: Callable[[Array], Array | float]) -> Callable[[Array], Array]:
            return lambda x: jnp.broadcast_to(jnp.asarray(equation(x), x.dtype), x.shape[1:])

        own = lax.switch(jnp.asarray(j), [branch(equation) for equation in self.equations], x)
        return (own - self.centre[j]) / self.scale[j]
