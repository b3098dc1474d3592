from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from worldloom import config
from worldloom._extras import MissingExtraError
from worldloom.config import ConfigError


@dataclass(frozen=True)
class Optimizer:
    name: str = "none"
    rate: float = 0.0
    nesterov: bool = False


@dataclass(frozen=True)
class Train:
    steps: int = 10
    size: Literal["small", "large"] = "small"
    optimizer: Optimizer = Optimizer()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "optimizer").mkdir()
    (tmp_path / "optimizer" / "adam.yaml").write_text("name: adam\nrate: 0.1\n")
    (tmp_path / "optimizer" / "sgd.yaml").write_text("name: sgd\nrate: 0.2\nnesterov: true\n")
    (tmp_path / "train.yaml").write_text("defaults:\n  - optimizer: adam\n  - _self_\n\nsteps: 7\n")
    return tmp_path


def test_a_defaults_list_pulls_in_the_files_of_a_group(folder: Path):
    found = config.load(Train, folder / "train.yaml")
    assert found == Train(steps=7, optimizer=Optimizer("adam", 0.1))


def test_an_override_chooses_another_file_and_further_ones_change_values_in_it(folder: Path):
    found = config.load(
        Train,
        folder / "train.yaml",
        # `size` is in no file: a default of the class can be overridden all the same.
        overrides=["optimizer=sgd", "optimizer.rate=1e-3", "size=large"],
    )
    assert found == Train(7, "large", Optimizer("sgd", 1e-3, nesterov=True))


def test_a_file_that_does_not_exist_is_named_with_those_that_do(folder: Path):
    with pytest.raises(ConfigError, match=r"optimizer/lion.*adam.*sgd"):
        config.load(Train, folder / "train.yaml", overrides=["optimizer=lion"])


def test_a_wrong_key_is_found_in_the_file_of_its_group(folder: Path):
    path = folder / "optimizer" / "adam.yaml"
    path.write_text("name: adam\nrat: 0.1\n")
    with pytest.raises(ConfigError) as caught:
        config.load(Train, folder / "train.yaml")
    assert str(caught.value).startswith(f"{path}, line 2: unknown key 'optimizer.rat'.")


def test_composing_leaves_a_running_hydra_alone(folder: Path):
    hydra = pytest.importorskip("hydra")
    with hydra.initialize_config_dir(str(folder), version_base="1.3"):
        assert config.load(Train, folder / "train.yaml").steps == 7
        assert hydra.compose("train").steps == 7


def test_without_hydra_the_error_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "hydra"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hydra", None)
    with pytest.raises(MissingExtraError, match=r"worldloom\[hydra\]"):
        config.load(Train, folder / "train.yaml")


@dataclass(frozen=True)
class WithDefaults:
    defaults: tuple[int, ...] = ()


def test_a_field_called_defaults_is_only_a_field(tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text("defaults: [1, 2]\n")
    assert config.load(WithDefaults, path) == WithDefaults((1, 2))
