"""Reading the networks of the package."""

from __future__ import annotations

import contextlib
import functools
from importlib import resources
from pathlib import Path

from acbo._files import load_policy, load_surrogate
from acbo.policy import PolicyNetwork
from acbo.surrogate import Surrogate


@functools.cache
def pretrained_surrogate() -> Surrogate:
    """The network that `acbo.discover` uses: up to 20 variables, linear and smooth mechanisms.

    ```python
    import acbo

    assert acbo.pretrained_surrogate().config.hidden == 64
    ```
    """
    with _file("surrogate.loom") as path:
        return load_surrogate(path)


@functools.cache
def pretrained_policy() -> PolicyNetwork:
    """The network that chooses interventions; it looks through `pretrained_surrogate`.

    ```python
    import acbo
    from acbo.policy import LearnedPolicy

    policy = LearnedPolicy(acbo.pretrained_policy(), acbo.pretrained_surrogate())
    ```
    """
    with _file("policy.loom") as path:
        return load_policy(path)


def _file(name: str) -> contextlib.AbstractContextManager[Path]:
    return resources.as_file(resources.files("acbo.pretrained") / name)
