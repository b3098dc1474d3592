"""Reading the networks of the package."""

from __future__ import annotations

import functools
from importlib import resources

import equinox as eqx
import jax

from acbo.policy import PolicyNetwork
from acbo.pretrained._recipe import SURROGATE
from acbo.surrogate import Surrogate
from worldloom import store


@functools.cache
def pretrained_surrogate() -> Surrogate:
    """The network that `acbo.discover` uses: up to 20 variables, linear and smooth mechanisms.

    ```python
    import acbo

    assert acbo.pretrained_surrogate().config.hidden == 64
    ```
    """
    template = eqx.filter_eval_shape(lambda: Surrogate(SURROGATE, key=jax.random.key(0)))
    return _read("surrogate.loom", template)


@functools.cache
def pretrained_policy() -> PolicyNetwork:
    """The network that chooses interventions; it looks through `pretrained_surrogate`.

    ```python
    import acbo
    from acbo.policy import LearnedPolicy

    policy = LearnedPolicy(acbo.pretrained_policy(), acbo.pretrained_surrogate())
    ```
    """
    tokens = 2 * SURROGATE.hidden
    template = eqx.filter_eval_shape(lambda: PolicyNetwork(tokens, key=jax.random.key(0)))
    return _read("policy.loom", template)


def _read(name, template):
    with resources.as_file(resources.files("acbo.pretrained") / name) as path:
        return store.load(path, template)
