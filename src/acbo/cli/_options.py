"""What the commands share: files of networks, checks of flags, tables as text."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worldloom._reading import reading
from worldloom.cli import UsageError

if TYPE_CHECKING:
    from acbo.policy import PolicyNetwork
    from acbo.surrogate import Surrogate


@contextlib.contextmanager
def told_by_flags() -> Iterator[None]:
    """What a configuration refuses is a wrong command line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def check_page(out: Path | None) -> None:
    """Refuse a page that could not be written, before anything runs."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--out {str(out)!r}: expected .html at its end")


def check_at_least(config: Any, **least: int) -> None:
    """Refuse numbers that are too small, by the name of their flag."""
    for name, smallest in least.items():
        value = getattr(config, name)
        if value < smallest:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} {value}: expected {smallest} or more")


def as_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal; what begins like a number is set flush right."""
    table = [list(columns), *map(list, rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(columns))]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def save_network(path: Path, network: Any, about: dict[str, Any]) -> None:
    """Arrays of a network in one file, and its sizes beside them."""
    import equinox as eqx

    from worldloom import store
    from worldloom.store._files import disk_errors

    with disk_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    store.save(path, eqx.filter(network, eqx.is_array), meta=about, level=9)


def load_surrogate(path: Path | None) -> Surrogate | None:
    """A surrogate that `acbo train surrogate` wrote; `None` stands for the one in the package."""
    if path is None:
        return None
    import equinox as eqx
    import jax

    from acbo.surrogate import Surrogate, SurrogateConfig
    from worldloom import store

    given = _sizes(path, "surrogate")
    with reading(path, "a surrogate", UsageError):
        sizes = SurrogateConfig(**given)
        template = eqx.filter_eval_shape(lambda: Surrogate(sizes, key=jax.random.key(0)))
    return store.load(path, template)


def load_policy(path: Path | None) -> PolicyNetwork | None:
    """A policy that `acbo train policy` wrote; `None` stands for the one in the package."""
    if path is None:
        return None
    import equinox as eqx
    import jax

    from acbo.policy import PolicyNetwork
    from worldloom import store

    sizes = _sizes(path, "policy")
    with reading(path, "a policy", UsageError):
        template = eqx.filter_eval_shape(
            lambda: PolicyNetwork(sizes["tokens"], hidden=sizes["hidden"], key=jax.random.key(0))
        )
    return store.load(path, template)


def surrogate_sizes(network: Surrogate) -> dict[str, Any]:
    """What `load_surrogate` needs to know."""
    return {"network": "surrogate", "sizes": dataclasses.asdict(network.config)}


def _sizes(path: Path, kind: str) -> dict[str, Any]:
    from worldloom import store

    flag = {"surrogate": "--surrogate", "policy": "--network"}[kind]
    made = f"`worldloom acbo train {kind}` makes one"
    if not path.is_file():
        raise UsageError(f"{flag} {str(path)!r}: there is no such file; {made}")
    about = store.read_meta(path)
    if about.get("network") != kind:
        raise UsageError(f"{flag} {str(path)!r}: expected the file of a {kind}; {made}")
    if not isinstance(about.get("sizes"), dict):
        raise UsageError(f"{flag} {str(path)!r}: the file does not say the sizes of its {kind}")
    return about["sizes"]
