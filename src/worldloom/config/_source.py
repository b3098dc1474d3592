"""Where each value of a configuration was written: file and line, or override."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from worldloom.config._errors import ConfigError

Key = tuple[str | int, ...]
MOST_VALUES = 100_000
_OVERRIDE = re.compile(r"([A-Za-z_]\w*(?:\.\w+|\[\d+\])*)=(.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Source:
    """A place where a value was written, and its text there if it was a plain scalar."""

    where: str
    text: str | None = None


@dataclasses.dataclass(frozen=True)
class Override:
    """`key=value` from a command line."""

    key: Key
    value: Any
    source: Source


def dotted(key: Key) -> str:
    """The key as people write it: `optimizer.betas[0]`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def looks_like_override(token: str) -> bool:
    """Whether a word of a command line is `key=value`."""
    return _OVERRIDE.fullmatch(token) is not None


def parse_override(text: str) -> Override:
    """Read `key=value`; the value is YAML, as in a file."""
    match = _OVERRIDE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"override {text!r} is not of the form key=value, as in seed=3 or net.width=64"
        )
    where = f"override {text!r}"
    try:
        # Only the value goes through OmegaConf: the key is ours to check.
        value = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={match[2]}"]))
    except Exception as error:  # OmegaConf, YAML and ANTLR each raise their own
        raise ConfigError(
            f"{where}: the value cannot be read as YAML ({_first_line(error)})"
        ) from error
    assert isinstance(value, dict)
    parts = re.findall(r"\w+", match[1])
    key: Key = tuple(int(part) if part.isdecimal() else part for part in parts)
    return Override(key, value["value"], Source(where, match[2]))


def read_yaml(path: Path) -> tuple[dict[Any, Any], dict[Key, Source]]:
    """The mapping in a YAML file, interpolations unresolved, and where each key of it stands."""
    text = read_text(path)
    sources: dict[Key, Source] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            return {}, {}
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{path}: expected `key: value` lines at the top, not a single value")
        for key, source in _places(node, str(path), (), ()):
            sources[key] = source
            if len(sources) > MOST_VALUES:
                raise ConfigError(f"{path}: more than {MOST_VALUES:,} values, aliases written out")
        value = OmegaConf.to_container(OmegaConf.create(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {_first_line(error)}") from error
    except ConfigError:
        raise
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid YAML: it is nested too deeply") from error
    except Exception as error:  # OmegaConf and ANTLR raise their own on a broken `${...}`
        raise ConfigError(explain(error, sources, str(path))) from error
    assert isinstance(value, dict)
    return value, sources


def read_text(path: Path) -> str:
    """The text of a configuration file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        here = sorted(other.name for other in path.parent.glob("*.y*ml"))
        hint = f" In that folder: {', '.join(here)}." if here else ""
        raise ConfigError(f"there is no configuration file {str(path)!r}.{hint}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the configuration file {str(path)!r} cannot be read: {error}"
        ) from error


def explain(error: Exception, sources: dict[Key, Source], otherwise: str) -> str:
    """One sentence for an error of OmegaConf, with the place of the key it is about."""
    name = getattr(error, "full_key", None)
    if not name:
        return f"{otherwise}: {_first_line(error)}"
    key: Key = tuple(int(part) if part.isdecimal() else part for part in re.findall(r"\w+", name))
    return f"{locate(key, sources, otherwise).where}: {name}: {_first_line(error)}"


def locate(key: Key, sources: dict[Key, Source], otherwise: str) -> Source:
    """The place of `key`, or of the nearest key around it."""
    for length in range(len(key), 0, -1):
        if found := sources.get(key[:length]):
            return found if length == len(key) else Source(found.where)
    return Source(otherwise)


def _places(
    node: yaml.Node, file: str, key: Key, above: Sequence[yaml.Node]
) -> Iterator[tuple[Key, Source]]:
    if any(node is other for other in above):
        raise ConfigError(f"{file}, line {node.start_mark.line + 1}: an alias contains itself")
    inside = (*above, node)
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            inner = (*key, name.value) if isinstance(name, yaml.ScalarNode) else key
            yield inner, _source(name, value, file)
            yield from _places(value, file, inner, inside)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = (*key, index)
            yield inner, _source(value, value, file)
            yield from _places(value, file, inner, inside)


def _source(name: yaml.Node, value: yaml.Node, file: str) -> Source:
    unquoted = isinstance(value, yaml.ScalarNode) and value.style is None
    return Source(f"{file}, line {name.start_mark.line + 1}", value.value if unquoted else None)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
