"""What the commands share: files of networks, checks of flags, tables as text."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acbo._errors import DataError
from worldloom.cli import UsageError, as_command, seed_or_fresh

if TYPE_CHECKING:
    from acbo.policy import PolicyNetwork
    from acbo.surrogate import Surrogate
    from worldloom.report import Report


@contextlib.contextmanager
def told_by_flags() -> Iterator[None]:
    """What a configuration refuses is a wrong command line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def with_seed(config: Any) -> Any:
    """The configuration with a fresh seed, where none was given."""
    return dataclasses.replace(config, seed=seed_or_fresh(config.seed))


def key_of(config: Any) -> Any:
    """The key of a configuration with a seed."""
    import jax

    return jax.random.key(config.seed)


def add_command(page: Report, prog: str, config: Any) -> None:
    """End a page with the command that makes it."""
    from worldloom import report

    page.section("Make this page again")
    page.add(report.Commands([(as_command(prog, config), "")]))


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


def load_surrogate(path: Path | None) -> Surrogate | None:
    """A surrogate that `acbo train surrogate` wrote; `None` stands for the one in the package."""
    return None if path is None else _load("surrogate", "surrogate", path)


def load_policy(path: Path | None) -> PolicyNetwork | None:
    """A policy that `acbo train policy` wrote; `None` stands for the one in the package."""
    return None if path is None else _load("network", "policy", path)


def _load(flag: str, kind: str, path: Path) -> Any:
    from acbo import _files

    try:
        return getattr(_files, f"load_{kind}")(path)
    except DataError as error:
        raise UsageError(f"--{flag} {error}; `worldloom acbo train {kind}` makes one") from error
