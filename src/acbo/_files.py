"""Networks in files: arrays, and beside them what is needed to read them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acbo._errors import DataError
from worldloom._reading import reading

if TYPE_CHECKING:
    from acbo.policy import PolicyNetwork
    from acbo.surrogate import Surrogate


def save_network(path: Path, network: Surrogate | PolicyNetwork, *, level: int = 9) -> None:
    """Write the arrays of a network in one file, with its kind and sizes."""
    import equinox as eqx

    from worldloom import store
    from worldloom.store._files import disk_errors

    with disk_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    store.save(path, eqx.filter(network, eqx.is_array), meta=_about(network), level=level)


def load_surrogate(path: Path) -> Surrogate:
    """A surrogate that `save_network` wrote."""
    from acbo.surrogate import Surrogate, SurrogateConfig

    return _load(path, "surrogate", lambda sizes, key: Surrogate(SurrogateConfig(**sizes), key=key))


def load_policy(path: Path) -> PolicyNetwork:
    """A policy that `save_network` wrote."""
    from acbo.policy import PolicyNetwork

    return _load(path, "policy", lambda sizes, key: PolicyNetwork(**sizes, key=key))


def _about(network: Surrogate | PolicyNetwork) -> dict[str, Any]:
    from acbo.policy._features import NUMBERS
    from acbo.surrogate import Surrogate

    if isinstance(network, Surrogate):
        return {"network": "surrogate", "sizes": dataclasses.asdict(network.config)}
    hidden, seen = network.look.weight.shape
    return {"network": "policy", "sizes": {"tokens": seen - NUMBERS, "hidden": hidden}}


def _load(path: Path, kind: str, make: Any) -> Any:
    import equinox as eqx
    import jax

    from worldloom import store

    if not path.is_file():
        raise DataError(f"{str(path)!r}: there is no such file")
    about = store.read_meta(path)
    if about.get("network") != kind:
        found = about.get("network", "something else")
        raise DataError(f"{str(path)!r}: expected the file of a {kind}, found {found}")
    with reading(path, f"a {kind}", DataError):
        template = eqx.filter_eval_shape(lambda: make(about["sizes"], jax.random.key(0)))
    return store.load(path, template)
