"""Issue 24, 4.5: the command printed on a page makes that page, with all its options."""

from __future__ import annotations

import dataclasses
import enum
import html
import re
import shlex
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import tyro
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import acbo.cli
import jaxarc.cli
import jaxtrace.cli
from worldloom import report
from worldloom.cli import Command, UsageError, as_command, main
from worldloom.cli._bench import COMMAND as BENCH
from worldloom.cli._demo import COMMAND as DEMO
from worldloom.config._schema import entries, is_config, members, plain
from worldloom.demo._page import commands_of

COMMANDS = {
    "worldloom bench": BENCH,
    "worldloom demo": DEMO,
    **{
        f"worldloom {name} {command.name}": command
        for name, package in (("acbo", acbo.cli), ("arc", jaxarc.cli), ("trace", jaxtrace.cli))
        for command in package.COMMANDS
    },
}


class Shade(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Inner:
    low: tuple[float, ...] = (1.0,)
    name: str = "inner"
    flag: bool = True


@dataclasses.dataclass(frozen=True)
class All:
    """Every kind of option at once."""

    place: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    number: int = 3
    rate: float = 0.5
    text: str = "a"
    path: Path = Path("out")
    switch: bool = False
    shade: Shade = Shade.RED
    kind: Literal["one", "two words"] = "one"
    many_words: tuple[str, ...] = ("x",)
    pair: tuple[float, int] | None = None
    maybe: int | None = 7
    perhaps: bool | None = None
    inner: Inner = dataclasses.field(default_factory=lambda: Inner(name="other"))


EVERY = Command("all", "", All, lambda config: None)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8) | (
    st.sampled_from(
        ["-x", "--out", "a=b", "", "run.yaml", "a b", "$HOME", "${x}", "'", '"', "None"]
    )
)


def values(kind: Any) -> st.SearchStrategy:
    """Values of the type of an option."""
    kind = plain(kind)
    options = []
    for one in members(kind):
        if one is type(None):
            options.append(st.none())
        elif one is bool:
            options.append(st.booleans())
        elif one is int:
            options.append(st.integers(-(10**6), 10**6))
        elif one is float:
            options.append(st.floats(allow_nan=False))
        elif one is str:
            options.append(WORDS)
        elif one is Path:
            endings = st.sampled_from([".html", ".svg", ".png"])
            options.append(st.builds(lambda a, b: Path(a.replace("/", "") + b), WORDS, endings))
        elif typing.get_origin(one) is Literal:
            options.append(st.sampled_from(typing.get_args(one)))
        elif isinstance(one, type) and issubclass(one, enum.Enum):
            options.append(st.sampled_from(list(one)))
        elif is_config(one):
            options.append(configurations(one))
        elif typing.get_origin(one) is tuple:
            args = typing.get_args(one)
            if args[-1] is Ellipsis:
                options.append(st.lists(values(args[0]), max_size=3).map(tuple))
            else:
                options.append(st.tuples(*map(values, args)))
        else:
            raise AssertionError(one)
    return st.one_of(options)


def configurations(cls: type) -> st.SearchStrategy:
    """Some options changed, others not: a class and its values, for `built`."""
    known = {name: values(entry.kind) for name, entry in entries(cls).items()}
    needed = [n for n, e in entries(cls).items() if e.default is dataclasses.MISSING]
    required = {name: known.pop(name) for name in needed}
    return st.tuples(st.just(cls), st.fixed_dictionaries(required, optional=known))


def built(told: Any) -> Any:
    """The configuration; `None` if it refuses its values. beartype draws numbers meanwhile, which
    strategies must not."""
    if not (isinstance(told, tuple) and len(told) == 2 and isinstance(told[1], dict)):
        return told
    cls, given = told
    try:
        return cls(**{name: built(value) for name, value in given.items()})
    except UsageError:
        return None


def again(command: Command, prog: str, line: str) -> Any:
    words = shlex.split(line)
    assert words[: len(prog.split())] == prog.split()
    return command.parse(words[len(prog.split()) :], prog)


@given(configurations(All))
@settings(max_examples=60, deadline=None)
def test_every_kind_of_option_comes_back(config: Any):
    config = built(config)
    assert again(EVERY, "worldloom all", as_command("worldloom all", config)) == config


@pytest.mark.parametrize("prog", COMMANDS)
@given(data=st.data())
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_every_command_comes_back(prog, data):
    command = COMMANDS[prog]
    config = built(data.draw(configurations(command.config)))
    assume(config is not None)
    assert again(command, prog, as_command(prog, config)) == config


def test_defaults_are_not_written():
    assert as_command("worldloom all", All()) == "worldloom all"
    line = as_command("worldloom all", All(switch=True, rate=-2.5, pair=(1.0, 2), text="a b"))
    assert line == "worldloom all --rate -2.5 --text 'a b' --switch --pair 1.0 2"


def printed(page: Path) -> list[str]:
    """The commands on a page, as its reader copies them."""
    found = re.findall(r'<span class="command"><code>(.*?)</code>', page.read_text("utf-8"))
    return [html.unescape(re.sub(r"<[^>]+>", "", one)) for one in found]


def test_an_optimisation_is_made_again_by_its_page(tmp_path, monkeypatch, capsys):
    """Without `--seed`: what was drawn is on the page."""
    monkeypatch.chdir(tmp_path)
    words = ["--problem", "fork", "--policy", "linear-ucb", "--budget", "2", "--observed", "5"]
    assert main(["acbo", "optimise", *words, "-o", "a page.html"]) == 0
    first = capsys.readouterr().out
    page = tmp_path / "a page.html"
    before = page.read_bytes()
    (command,) = printed(page)
    page.unlink()
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == first
    assert page.read_bytes() == before


def test_a_graph_is_made_again_by_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.savetxt("two words.csv", rows, delimiter=",", header="a,b", comments="")
    assert main(["acbo", "discover", "two words.csv", "--smallest", "0.3", "-o", "g.html"]) == 0
    first = capsys.readouterr().out
    (command,) = printed(tmp_path / "g.html")
    before = (tmp_path / "g.html").read_bytes()
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "g.html").read_bytes() == before


def test_the_page_of_benchmarks_has_all_options(tmp_path, monkeypatch):
    """It is shown again from its record, which is what `--read` takes."""
    monkeypatch.chdir(tmp_path)
    config = BENCH.parse(["arc", "--quick", "--out", "my folder"], "worldloom bench")
    line = as_command("worldloom bench", config)
    assert line == "worldloom bench arc --quick --out 'my folder'"
    assert again(BENCH, "worldloom bench", line) == config


@pytest.mark.parametrize("place", ["out", "a/my tour", "it's", "/somewhere/else"])
def test_the_demo_prints_its_folder(place):
    page = report.Report("demo")
    page.add(report.Commands(commands_of(Path(place))))
    command, about, _ = [
        html.unescape(re.sub(r"<[^>]+>", "", one))
        for one in re.findall(r'<span class="command"><code>(.*?)</code>', page.html())
    ]
    assert again(DEMO, "worldloom demo", command).out == Path(place)
    assert shlex.split(about)[-1] == f"{place}/speed.json"
