"""Settings are composed by Hydra, and checked before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxarc.utils import visualization as viz
from worldloom.config import ConfigError


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("off", "off"),
        ("minimal", "minimal"),
        ("debug_standard", "standard"),
        ("debug_full", "full"),
    ],
)
def test_each_file_is_valid(name, level):
    assert viz.load_settings(name).debug.level == level


def test_the_standard_file_is_that_of_the_guide():
    debug = viz.load_settings("debug_standard").debug
    assert debug == viz.DebugSettings(
        level="standard",
        async_logging=True,
        performance_monitoring=True,
        memory_management=viz.MemorySettings(
            max_cache_mb=100.0, max_total_mb=500.0, lazy_loading=True, compression=True
        ),
    )
    hash(debug)


def test_overrides_win():
    chosen = viz.load_settings("debug_full", overrides=["debug.memory_management.max_cache_mb=7"])
    assert chosen.debug.memory_management.max_cache_mb == 7.0
    assert chosen.debug.level == "full"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("debug.levle=full", "levle"),
        ("debug.level=loud", "loud"),
        ("debug.async_logging=3", "async_logging"),
        ("debug.memory_management.max_cache_mb=900", "max_cache_mb is 900"),
    ],
)
def test_a_mistake_is_named(override, words):
    with pytest.raises(ConfigError, match=words):
        viz.load_settings("debug_standard", overrides=[override])


def test_a_name_that_does_not_exist():
    with pytest.raises(viz.SettingsError, match="debug_full, debug_standard, minimal, off"):
        viz.load_settings("loud")


def test_a_folder_of_ones_own(tmp_path: Path):
    (tmp_path / "visualization").mkdir()
    (tmp_path / "visualization.yaml").write_text("defaults:\n  - visualization: mine\n  - _self_\n")
    (tmp_path / "visualization" / "mine.yaml").write_text("debug:\n  level: standard\n")
    assert viz.load_settings("mine", folder=tmp_path).debug.level == "standard"
