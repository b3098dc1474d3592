from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest

from worldloom import config
from worldloom.config import ConfigError


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@dataclass(frozen=True)
class Optimizer:
    rate: float = 1e-3
    name: str = "adam"
    betas: tuple[float, float] = (0.9, 0.999)


@dataclass(frozen=True)
class Layer:
    width: int
    activation: Literal["relu", "tanh"] = "relu"


@dataclass(frozen=True)
class Train:
    steps: int = 100
    seed: int = 0
    verbose: bool = False
    out: Path = Path("out")
    colour: Colour = Colour.RED
    mode: Literal["on", "off", 3] = "on"
    batch: int | Literal["auto"] = "auto"
    layers: tuple[Layer, ...] = ()
    widths: tuple[int, ...] = (64, 64)
    limit: float | None = None
    label: Annotated[str, "anything"] = ""
    optimizer: Optimizer = field(default_factory=Optimizer)
    second: Optimizer | None = None


@dataclass(frozen=True)
class Task:
    file: Path
    steps: int = 3


def written(folder: Path, text: str) -> Path:
    path = folder / "train.yaml"
    path.write_text(text)
    return path


def problems(cls: type, path: Path | None = None, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config.load(cls, path, overrides=overrides)
    return caught.value.problems


def test_without_file_and_overrides_it_is_the_defaults():
    assert config.load(Train) == Train()


def test_a_file_wins_over_defaults_and_an_override_over_the_file(tmp_path: Path):
    path = written(tmp_path, "steps: 5\nseed: 6\noptimizer:\n  rate: 0.5\n")
    found = config.load(Train, path, overrides=["seed=7"])
    assert (found.steps, found.seed) == (5, 7)
    assert found.optimizer == Optimizer(rate=0.5)  # the rest of it stays


def test_every_kind_of_field_is_read_from_a_file(tmp_path: Path):
    path = written(
        tmp_path,
        """
        steps: 1e6
        verbose: true
        out: runs/a
        colour: GREEN
        mode: off
        batch: 32
        layers: [{width: 3}, {width: 4, activation: tanh}]
        widths: [1, 2, 3]
        limit: 2
        label: 1.10
        optimizer: {betas: [0, 1]}
        second: {name: sgd}
        """,
    )
    found = config.load(Train, path)
    assert found == Train(
        steps=1_000_000,
        verbose=True,
        out=Path("runs/a"),
        colour=Colour.GREEN,
        mode="off",
        batch=32,
        layers=(Layer(3), Layer(4, "tanh")),
        widths=(1, 2, 3),
        limit=2.0,
        label="1.10",
        optimizer=Optimizer(betas=(0.0, 1.0)),
        second=Optimizer(name="sgd"),
    )
    assert type(found.steps) is int
    assert type(found.limit) is float
    assert hash(found) == hash(config.load(Train, path))


@pytest.mark.parametrize(
    ("override", "name", "value"),
    [
        ("steps=1e3", "steps", 1000),
        ("label=007", "label", "007"),
        ("label=", "label", ""),
        ("label=a=b", "label", "a=b"),
        ("label='x: y'", "label", "x: y"),
        ("limit=null", "limit", None),
        ("limit=1", "limit", 1.0),
        ("mode=off", "mode", "off"),
        ("mode=3", "mode", 3),
        ("batch=auto", "batch", "auto"),
        ("widths=[1,2]", "widths", (1, 2)),
        ("widths[1]=5", "widths", (64, 5)),
        ("widths.0=5", "widths", (5, 64)),
        ("widths=[]", "widths", ()),
        ("optimizer.rate=1", "optimizer", Optimizer(rate=1.0)),
        ("optimizer={rate: 1}", "optimizer", Optimizer(rate=1.0)),
        ("second.rate=1", "second", Optimizer(rate=1.0)),
        ("second={}", "second", Optimizer()),
        ("colour=GREEN", "colour", Colour.GREEN),
        ("steps=${seed}", "steps", 0),
        ("label=run-${steps}", "label", "run-100"),
    ],
)
def test_an_override_is_read_as_the_type_of_its_field(override: str, name: str, value: object):
    found = getattr(config.load(Train, overrides=[override]), name)
    assert found == value
    assert type(found) is type(value)


def test_an_interpolation_reaches_values_that_only_the_defaults_give(tmp_path: Path):
    path = written(
        tmp_path, "steps: ${optimizer.betas[0]}\noptimizer: {betas: [4, 5]}\nseed: ${steps}"
    )
    found = config.load(Train, path)
    assert (found.steps, found.seed) == (4, 4)
    assert config.load(Train, overrides=["limit=${optimizer.rate}"]).limit == 1e-3


def test_an_unknown_key_is_refused_with_the_nearest_one_and_its_line(tmp_path: Path):
    path = written(tmp_path, "steps: 3\noptimizer:\n  name: sgd\n  rat: 0.5\n")
    (problem,) = problems(Train, path)
    assert problem == (
        f"{path}, line 4: unknown key 'optimizer.rat'. Did you mean 'optimizer.rate'? "
        "Valid keys of 'optimizer': rate, name, betas."
    )


def test_an_unknown_override_is_refused_with_a_key_from_another_level():
    (problem,) = problems(Train, None, "rate=3")
    assert problem.startswith(
        "override 'rate=3': unknown key 'rate'. Did you mean 'optimizer.rate'?"
    )
    assert "Valid keys here: steps, seed, verbose" in problem


def test_every_problem_is_told_at_once(tmp_path: Path):
    path = written(tmp_path, "steps: many\nsed: 1\nwidths: [1, x]\n")
    found = problems(Train, path)
    assert [problem.partition(":")[0] for problem in found] == [
        f"{path}, line {line}" for line in (2, 1, 3)
    ]
    assert "steps is 'many' (a str); expected an int." in found[1]
    assert "widths[1] is 'x'" in found[2]
    with pytest.raises(ConfigError, match="3 problems"):
        config.load(Train, path)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("steps=1.5", "steps is 1.5 (a float); expected an int"),
        ("steps=true", "steps is True (a bool); expected an int"),
        ("steps=.inf", "expected an int"),
        ("verbose=1", "verbose is 1 (a int); expected true or false"),
        ("colour=GREN", "expected one of RED, GREEN. Did you mean 'GREEN'?"),
        ("mode=onn", "expected one of 'on', 'off', 3. Did you mean 'on'?"),
        ("batch=some", "expected an int or one of 'auto'"),
        ("optimizer.betas=[1]", "expected a list of 2: a float, a float"),
        ("optimizer=3", "expected the keys of Optimizer (rate, name, betas)"),
        ("limit=x", "expected a float or null"),
        ("second.rate=x", "second.rate is 'x' (a str); expected a float"),
        ("out=", "expected a path"),
        ("steps=null", "steps is null; expected an int"),
        ("label=[1]", "label is [1] (a list); expected a str"),
        ("steps.x=3", "'steps' has no parts"),
        ("widths[9]=3", "'widths' has 2 elements, so there is no [9]"),
        ("widths.x=3", "'widths' is a list; use widths[0]"),
        ("layers=[{}]", "layers[0].width is required"),
        ("layers=[{width: 1, activaton: relu}]", "Did you mean 'layers[0].activation'?"),
        ("steps=${nothing}", "nothing"),
        ("steps=${", "cannot be read"),
        ("steps=[1", "cannot be read"),
        ("steps", "not of the form key=value"),
        ("=3", "not of the form key=value"),
        ("steps=${seed", "cannot be read"),
    ],
)
def test_a_wrong_override_is_named_with_what_was_expected(override: str, said: str):
    (problem,) = problems(Train, None, override)
    assert said in problem
    assert f"{override!r}" in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: 1\nsteps: 2\n", "line 2: not valid YAML: found duplicate key steps"),
        ("steps: [1\nx: }", "line 2: not valid YAML"),
        ("just words", "expected `key: value` lines at the top"),
        ("steps: ${nothing}", "line 1: steps: "),
        ("x: &a [*a]", "line 1: an alias contains itself"),
        ("1: 2", "unknown key '1'"),
        ("steps: ???", "steps is required"),
        ("seed: 1\nsteps: ${seed", "train.yaml"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, text: str, said: str):
    path = written(tmp_path, text)
    (problem,) = problems(Train, path)
    assert said in problem


def test_a_missing_file_names_the_files_that_are_there(tmp_path: Path):
    written(tmp_path, "steps: 1")
    (problem,) = problems(Train, tmp_path / "tain.yaml")
    assert "no configuration file" in problem
    assert "train.yaml" in problem
    (problem,) = problems(Train, tmp_path)
    assert "cannot be read" in problem


def test_an_empty_file_is_the_defaults(tmp_path: Path):
    assert config.load(Train, written(tmp_path, "# nothing\n")) == Train()


def test_a_required_value_is_asked_for(tmp_path: Path):
    (problem,) = problems(Task)
    assert problem == (
        "file is required and has no default; give it in the file or as file=VALUE (a path)"
    )
    assert config.load(Task, overrides=["file=a.vtk"]) == Task(Path("a.vtk"))


def test_an_override_hides_the_text_that_the_file_had_for_it(tmp_path: Path):
    path = written(tmp_path, "optimizer:\n  name: 007\n")
    assert config.load(Train, path).optimizer.name == "007"
    # The text of the mapping is not the text of its keys: `5` is an int here, and is refused.
    (problem,) = problems(Train, path, "optimizer={name: 5}")
    assert "optimizer.name is 5 (a int); expected a str. Put it in quotes." in problem
    assert problem.startswith("override")


def test_the_checks_of_the_class_itself_are_told_with_their_place(tmp_path: Path):
    (problem,) = problems(Positive, None, "inner.value=-1")
    assert problem == "override 'inner.value=-1': Checked: value must be positive, not -1"


@dataclass(frozen=True)
class Checked:
    value: int = 1

    def __post_init__(self):
        if self.value < 0:
            raise ValueError(f"value must be positive, not {self.value}")


@dataclass(frozen=True)
class Positive:
    inner: Checked = Checked()


@dataclass
class Thawed:
    x: int = 1


@dataclass(frozen=True)
class WithList:
    x: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TwoConfigs:
    x: Optimizer | Checked = Checked()


@dataclass(frozen=True)
class Special(Optimizer):
    extra: int = 1


@dataclass(frozen=True)
class Hidden:
    x: Optimizer = Special()


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Thawed, "must be frozen"),
        (WithList, "WithList.x: the type list is not supported; use tuple"),
        (TwoConfigs, "cannot be told apart"),
        (Hidden, "Hidden.x: the default is a Special"),
        (int, "must be a frozen dataclass"),
    ],
)
def test_a_class_that_cannot_be_a_configuration_is_refused(cls: type, said: str):
    (problem,) = problems(cls)
    assert said in problem


def test_one_string_of_overrides_is_refused():
    with pytest.raises(ConfigError, match="list of strings"):
        config.load(Train, overrides="seed=3")
