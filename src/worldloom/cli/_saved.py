"""Runs that a command saves, finds again, and goes on with."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from worldloom.cli._command import UsageError


def options_of(config: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The options of a command by name, those of a group after its name and a dot.

    **Arguments:**

    - `config`: the frozen dataclass of the command.
    - `without`: names to leave out: what may differ when a run goes on.
    """
    options: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in without:
            continue
        if dataclasses.is_dataclass(value):
            options |= {f"{field.name}.{name}": v for name, v in options_of(value).items()}
        else:
            options[field.name] = value
    return options


def recorded_options(folder: Path | None) -> dict[str, Any]:
    """The options that the run in a checkpoint folder was given; none if there is no run."""
    from worldloom import loop

    try:
        return {} if folder is None else loop.read_run(folder).config
    except loop.ResumeError:
        return {}


def seed_or_fresh(seed: int | None, recorded: Any = None) -> int:
    """The seed of a run: as given, or that of the run which goes on, or a fresh one for all.

    **Raises:** `UsageError` for a seed that JAX would take for another one.
    """
    from worldloom import loop
    from worldloom._processes import agree

    if seed is None:
        drawn = agree(loop.fresh_seed())[0]
        return recorded if isinstance(recorded, int) else drawn
    if not 0 <= seed < 2**32:
        raise UsageError(f"seed {seed}: expected a whole number from 0 to 2**32 - 1")
    return seed


@contextlib.contextmanager
def naming_options(spelled: Mapping[str, str] | None = None) -> Iterator[None]:
    """A block in which a run that is not the one in its folder is refused in words of the shell.

    **Arguments:**

    - `spelled`: what the engine calls otherwise than the command: `{"length": "steps"}`.
    """
    from worldloom import loop

    def flag(name: str) -> str:
        return "--" + (spelled or {}).get(name, name).replace("_", "-")

    try:
        yield
    except loop.ResumeError as error:
        clauses = [
            f"{flag(name)} is {_word(mine)}, but the run in {error.folder} has {_word(theirs)}"
            for name, theirs, mine in error.differences
            if error.options or name in (spelled or {})
        ]
        if not clauses:
            raise
        raise loop.ResumeError(f"{'; '.join(clauses)}. {error.advice}") from error


def _word(value: Any) -> str:
    if value is None:
        return "left out"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
