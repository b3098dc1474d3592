"""One sub-command: a frozen configuration, and a function that is called with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from worldloom._errors import WorldloomError

C = TypeVar("C")


class UsageError(WorldloomError, ValueError):
    """A command line that asks for something that does not exist."""


@dataclasses.dataclass(frozen=True)
class Command(Generic[C]):
    """A sub-command made from a configuration class of the Python API.

    Flags, a YAML file (`--config FILE`) and `key=value` words all fill the same frozen dataclass.

    **Arguments:**

    - `name`: the word on the command line.
    - `summary`: one line for the list of commands.
    - `config`: a frozen dataclass, as for [`worldloom.config.load`][]. The docstrings under its
        fields are the help of the flags.
    - `run`: called with the configuration. What it returns is the exit code; `None` is 0.
        Import what is heavy inside it: `--help` should answer at once.
    - `examples`: command lines and what each does.
    - `details`: more lines for `--help`.
    - `rest`: the field that takes the words after `--`, if the command has one.

    ```python
    from dataclasses import dataclass
    from worldloom.cli import Command

    @dataclass(frozen=True)
    class Greeting:
        name: str = "world"
        \"\"\"Whom to greet.\"\"\"

    greet = Command("greet", "Say hello.", Greeting, lambda config: print("Hello", config.name))
    assert greet.parse(["--name", "you"], "greet") == greet.parse(["name=you"], "greet")
    ```
    """

    name: str
    summary: str
    config: type[C]
    run: Callable[[C], int | None]
    examples: tuple[tuple[str, str], ...] = ()
    details: str = ""
    rest: str = ""

    def parse(self, words: Sequence[str], prog: str) -> C:
        """The configuration that a command line asks for. `--help` prints and exits.

        **Arguments:**

        - `words`: what follows the name of the command.
        - `prog`: what comes before, for messages: `"worldloom doctor"`.
        """
        import tyro

        from worldloom.config import ConfigError
        from worldloom.config._load import draft

        before, after = split_rest(words)
        flags, path, overrides = _settings(self.config, before)
        try:
            default = draft(self.config, path, overrides, missing=tyro.MISSING_NONPROP)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        config = tyro.cli(
            self.config,
            args=flags,
            prog=prog,
            default=default if path or overrides else tyro.MISSING_NONPROP,
            description=self._description(prog),
        )
        if after and not self.rest:
            raise UsageError(f"{prog} takes nothing after `--`, but was given {' '.join(after)!r}")
        if self.rest:
            if stray := getattr(config, self.rest):
                raise UsageError(f"write `--` before the command: {prog} -- {' '.join(stray)}")
            config = dataclasses.replace(config, **{self.rest: tuple(after)})  # pyright: ignore[reportArgumentType]
        return config

    @property
    def flags(self) -> frozenset[str]:
        """Every flag that the command has, as it is written: `"--out"`, `"--seeds.count"`."""
        return frozenset(_flags(self.config, ""))

    def _description(self, prog: str) -> str:
        parts = [self.summary]
        if self.details:
            parts.append(self.details.strip())
        if self.examples:
            width = max(len(line) for line, _ in self.examples)
            lines = [f"  {line:<{width}}  {what}" for line, what in self.examples]
            parts.append("Examples:\n" + "\n".join(lines))
        if len(dataclasses.fields(self.config)):  # pyright: ignore[reportArgumentType]
            parts.append(
                "Values may also come from a YAML file (--config FILE) and as key=value words."
            )
        return "\n\n".join(parts)


def split_rest(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before the first `--`, and those after it."""
    if "--" not in words:
        return list(words), []
    cut = words.index("--")
    return list(words[:cut]), list(words[cut + 1 :])


def _settings(cls: type, words: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """Flags for tyro, the path after `--config`, and the `key=value` words."""
    from worldloom.config._source import looks_like_override

    switches = set(_switches(cls, ""))
    flags: list[str] = []
    overrides: list[str] = []
    path = None
    waiting = iter(words)
    for word in waiting:
        if word == "--config":
            path = next(waiting, None)
            if path is None:
                raise UsageError("--config needs the name of a YAML file after it")
        elif word.startswith("--config="):
            path = word.partition("=")[2]
        elif looks_like_override(word) and not _takes_value(flags[-1] if flags else "", switches):
            overrides.append(word)
        else:
            flags.append(word)
    return flags, path, overrides


def _takes_value(previous: str, switches: set[str]) -> bool:
    """Whether a word right after `previous` is the value of that flag: `--label a=b`."""
    return previous.startswith("-") and "=" not in previous and previous not in switches


def _switches(cls: type, prefix: str) -> Iterator[str]:
    """The flags that stand alone: those of the `bool` fields."""
    from worldloom.config._schema import entries, nested_config

    for name, entry in entries(cls).items():
        inner: Any = nested_config(entry.kind)
        if inner is not None:
            yield from _switches(inner, f"{prefix}{name}.")
        elif entry.kind is bool:
            for spelled in (name, name.replace("_", "-")):
                dashed = prefix.replace("_", "-") if spelled != name else prefix
                yield f"--{dashed}{spelled}"
                yield f"--{dashed}no-{spelled}"


def _flags(cls: type, prefix: str) -> Iterator[str]:
    from worldloom.config._schema import entries, nested_config

    for name, entry in entries(cls).items():
        yield f"--{prefix}{name}".replace("_", "-")
        if (inner := nested_config(entry.kind)) is not None:
            yield from _flags(inner, f"{prefix}{name}.")


class FileCommand(Command[C]):
    """A command whose first word may be a YAML file with all of its values."""

    def parse(self, words: Sequence[str], prog: str) -> C:
        """See `Command.parse`; `run flow.yaml` is short for `run --config flow.yaml`."""
        if words and words[0].endswith((".yaml", ".yml")):
            words = ["--config", *words]
        return super().parse(words, prog)
