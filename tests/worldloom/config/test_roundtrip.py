from __future__ import annotations

import enum
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldloom import config
from worldloom.config import ConfigError


class Shape(enum.Enum):
    ROUND = "o"
    SQUARE = "x"


@dataclass(frozen=True)
class Inner:
    weight: float
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Outer:
    count: int
    flag: bool
    text: str
    where: Path
    shape: Shape
    mode: Literal["on", "off", "1e3"]
    either: int | str | None
    pair: tuple[int, str]
    many: tuple[Inner, ...]
    maybe: Inner | None


# YAML holds no lone surrogates, and "???" means "missing".
texts = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != "???")
tricky = texts | st.sampled_from(
    [
        "${x}",
        "\\${x}",
        "\\\\${x}",
        "${",
        "a${b}c",
        "off",
        "1e3",
        "null",
        "\\",
        "007",
        "\x85",
        "\u2028",
        "nan",
        "inf",
        "~",
        "=",
        "<<",
        "a: b",
        "- a",
        " a ",
    ]
)
inners = st.builds(
    Inner, weight=st.floats(allow_nan=False), tags=st.lists(tricky, max_size=3).map(tuple)
)
paths = tricky.filter(lambda text: "\0" not in text).map(Path).filter(lambda p: str(p) != "???")
outers = st.builds(
    Outer,
    count=st.integers(),
    flag=st.booleans(),
    text=tricky,
    where=paths,
    shape=st.sampled_from(Shape),
    mode=st.sampled_from(["on", "off", "1e3"]),
    either=st.none() | st.integers() | tricky,
    pair=st.tuples(st.integers(), tricky),
    many=st.lists(inners, max_size=2).map(tuple),
    maybe=st.none() | inners,
)


@given(outers)
def test_what_is_written_is_what_is_read(value: Outer):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.yaml")
        path.write_text(config.to_yaml(value), encoding="utf-8")
        found = config.load(Outer, path)
    assert found == value
    assert hash(found) == hash(value)
    assert type(found.either) is type(value.either)


@given(st.text(alphabet="count: flagtexwhrsp[]{}&*!|>'\"\n -#${}.?0123e") | st.binary(max_size=80))
def test_any_file_is_a_configuration_or_a_named_error(text: str | bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.yaml")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:  # `Outer` has required keys: never valid
            config.load(Outer, path)
    assert caught.value.problems


@given(st.text(alphabet="countflagtexwhrspm[]{}=.0123 ${}'\"", max_size=30))
def test_any_override_is_taken_or_a_named_error(text: str):
    try:
        found = config.load(Inner, overrides=["weight=1", "tags=[a]", text])
    except ConfigError as error:
        assert "override" in str(error)  # noqa: PT017
    else:
        assert isinstance(found, Inner)


def test_only_a_configuration_can_be_written():
    with pytest.raises(ConfigError, match="dataclass instance"):
        config.to_yaml(Inner)
    with pytest.raises(ConfigError, match="missing value"):
        config.to_yaml(Inner(1.0, ("???",)))


@dataclass(frozen=True)
class Words:
    text: str
    number: int | str | None
    real: float | str


@pytest.mark.parametrize("text", ["1e3", "-1e-3", "12e03", "007", "nan", "off", "1:30", "a: b"])
def test_text_that_looks_like_something_else_stays_text(text: str, tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml(Words(text, text, text)), encoding="utf-8")
    assert config.load(Words, path) == Words(text, text, text)
