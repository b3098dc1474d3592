"""How much of a run is watched: settings that Hydra composes and `worldloom.config` checks."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from jaxarc.envs._options import check_bool, check_choice, check_kind, check_number
from worldloom import config
from worldloom._errors import WorldloomError

LEVELS = ("off", "minimal", "debug_standard", "debug_full")
Level = Literal["off", "minimal", "standard", "full"]


class SettingsError(WorldloomError, ValueError):
    """Settings of that name do not exist."""


@dataclass(frozen=True)
class MemorySettings:
    """Limits for what is kept for looking at."""

    max_cache_mb: float = 100.0
    """Room for cached pictures."""
    max_total_mb: float = 500.0
    """Room for everything, the cache included."""
    lazy_loading: bool = True
    """Rebuild the grids of a recording when they are first looked at, not at once."""
    compression: bool = True
    """Write recordings small. Without it they are written in less time."""

    def __post_init__(self) -> None:
        for name in ("max_cache_mb", "max_total_mb"):
            check_number(self, name, low=0.0)
        check_bool(self, "lazy_loading")
        check_bool(self, "compression")
        if self.max_cache_mb > self.max_total_mb:
            raise SettingsError(
                f"max_cache_mb is {self.max_cache_mb}; expected 0 to max_total_mb, "
                f"which is {self.max_total_mb}"
            )


@dataclass(frozen=True)
class DebugSettings:
    """What is shown while a rollout runs, and how."""

    level: Level = "minimal"
    """`off`: nothing at all, the program is that of `rollout`. `minimal`: episodes are
    recorded. `standard`: the first world is also shown on the terminal, its grid every
    hundredth step and a line at the end of each episode. `full`: its grid at every step."""
    async_logging: bool = True
    """Print from a thread of its own, so that the program never waits for the terminal."""
    performance_monitoring: bool = True
    """Print what the callbacks cost, at the end."""
    memory_management: MemorySettings = MemorySettings()

    def __post_init__(self) -> None:
        check_choice(self, "level", get_args(Level))
        check_bool(self, "async_logging")
        check_bool(self, "performance_monitoring")
        check_kind(self, "memory_management", MemorySettings)

    @property
    def period(self) -> int:
        """The grid of the first world is due every so many steps; 0 for never."""
        return {"off": 0, "minimal": 0, "standard": 100, "full": 1}[self.level]


@dataclass(frozen=True)
class WatchSettings:
    """Everything about watching, as in `conf/visualization/*.yaml`."""

    debug: DebugSettings = DebugSettings()

    def __post_init__(self) -> None:
        check_kind(self, "debug", DebugSettings)


@dataclass(frozen=True)
class _Root:
    visualization: WatchSettings = WatchSettings()


def load_settings(
    name: str = "minimal",
    *,
    overrides: Sequence[str] = (),
    folder: str | Path | None = None,
) -> WatchSettings:
    """Settings by name, composed by Hydra (extra `hydra`) and checked.

    **Arguments:**

    - `name`: `"off"`, `"minimal"`, `"debug_standard"`, `"debug_full"`, or a file of your own.
    - `overrides`: such as `"debug.memory_management.max_cache_mb=50"`.
    - `folder`: a folder of your own with a `visualization.yaml` and a folder `visualization`.

    ```python
    from jaxarc.utils.visualization import load_settings

    settings = load_settings("debug_standard", overrides=["debug.async_logging=false"])
    assert settings.debug.level == "standard"
    assert settings.debug.memory_management.max_total_mb == 500.0
    ```
    """
    place = Path(folder) if folder is not None else _own_folder()
    known = sorted(file.stem for file in (place / "visualization").glob("*.yaml"))
    if name not in known:
        raise SettingsError(f"name is {name!r}; expected one of: {', '.join(known)}")
    chosen = [f"visualization={name}", *(f"visualization.{text}" for text in overrides)]
    return config.load(_Root, place / "visualization.yaml", overrides=chosen).visualization


def _own_folder() -> Path:
    return Path(str(importlib.resources.files("jaxarc"))) / "conf"


def find_settings(settings: WatchSettings | str) -> WatchSettings:
    """Settings, or those of that name."""
    return settings if isinstance(settings, WatchSettings) else _named(settings)


@functools.cache  # composing takes a tenth of a second
def _named(name: str) -> WatchSettings:
    return load_settings(name)
