"""What stays fixed while an environment runs: frozen, hashable, checked."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

from jaxarc.bitgrid import WORD
from jaxarc.envs._reward import Reward, SimilarityReward
from jaxarc.operations import NUM_EDITS, NUM_OPERATIONS
from worldloom._errors import WorldloomError

T = TypeVar("T")


class ConfigError(WorldloomError, ValueError, TypeError):
    """An option that does not exist, or a value that it cannot have."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _config(cls: type[T]) -> type[T]:
    """A frozen dataclass of keywords that names its options when it is given another one."""
    made: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fill = made.__init__
    names = [field.name for field in dataclasses.fields(made)]

    def __init__(self, **options):
        for name in options:
            if name not in names:
                known = ", ".join(names)
                raise ConfigError(f"{cls.__name__} has no option {name!r}; it has: {known}")
        fill(self, **options)

    made.__init__ = __init__
    return made


def _refuse(config: Any, name: str, expected: str) -> None:
    value = getattr(config, name)
    raise ConfigError(f"{type(config).__name__}({name}={value!r}): expected {expected}")


def _check_choice(config: Any, name: str, choices: tuple) -> None:
    if getattr(config, name) not in choices:
        _refuse(config, name, "one of " + ", ".join(map(repr, choices)))


def _check_range(config: Any, name: str, low: int, high: int) -> None:
    value = getattr(config, name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        _refuse(config, name, f"an integer {low} to {high}")


@_config
class EnvironmentConfig:
    """How an episode goes.

    - `max_episode_steps`: an episode is truncated after this many steps.
    - `episode_mode`: `"train"` plays one demonstration pair; `"test"` plays every test pair of
      a task as the official protocol has it.
    - `max_attempts`: how often a test pair may be handed in.
    - `pair_controls`: allow operations 35-41, which go from pair to pair.
    - `record_history`: keep every action of the episode in the state.
    - `debug_level`: 1 checks every action inside the step and raises for a bad one; 0 does not.
    """

    max_episode_steps: int = 100
    episode_mode: str = "train"
    max_attempts: int = 2
    pair_controls: bool = False
    record_history: bool = True
    debug_level: int = 0

    def __post_init__(self):
        _check_range(self, "max_episode_steps", 1, 65_535)
        _check_choice(self, "episode_mode", ("train", "test"))
        _check_range(self, "max_attempts", 1, 255)
        _check_choice(self, "debug_level", (0, 1))


@_config
class UnifiedDatasetConfig:
    """The canvas that every grid is padded to."""

    max_grid_height: int = 30
    max_grid_width: int = 30

    def __post_init__(self):
        _check_range(self, "max_grid_height", 1, WORD)
        _check_range(self, "max_grid_width", 1, WORD)


@_config
class UnifiedActionConfig:
    """Which actions there are.

    - `selection_format`: `"point"`, `"bbox"` or `"mask"`.
    - `allowed_operations`: ids of the operations that may be used; `None` for all.
    """

    selection_format: str = "point"
    allowed_operations: tuple[int, ...] | None = None

    def __post_init__(self):
        _check_choice(self, "selection_format", ("point", "bbox", "mask"))
        if self.allowed_operations is not None:
            object.__setattr__(self, "allowed_operations", tuple(sorted(self.allowed_operations)))
            if not set(self.allowed_operations) <= set(range(NUM_OPERATIONS)):
                _refuse(self, "allowed_operations", f"ids 0 to {NUM_OPERATIONS - 1}")


@_config
class ObservationConfig:
    """What an observation holds next to the working grid; each part is off by default."""

    input: bool = False
    clipboard: bool = False
    demos: int = 0
    step: bool = False
    allowed_operations: bool = False

    def __post_init__(self):
        _check_range(self, "demos", 0, 10)


@_config
class VisualizationConfig:
    """Whether a run is drawn."""

    enabled: bool = False


@_config
class JaxArcConfig:
    """Everything that is fixed about an environment.

    ```python
    from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedActionConfig

    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=50),
        action=UnifiedActionConfig(selection_format="bbox"),
    )
    assert config == JaxArcConfig(environment=config.environment, action=config.action)
    hash(config)
    ```
    """

    environment: EnvironmentConfig = EnvironmentConfig()
    dataset: UnifiedDatasetConfig = UnifiedDatasetConfig()
    action: UnifiedActionConfig = UnifiedActionConfig()
    observation: ObservationConfig = ObservationConfig()
    reward: Reward = SimilarityReward()
    visualization: VisualizationConfig = VisualizationConfig()

    @property
    def operations(self) -> tuple[int, ...]:
        """The ids of the operations that may be used."""
        controls = self.environment.pair_controls
        exist = range(NUM_OPERATIONS if controls else NUM_EDITS)
        allowed = self.action.allowed_operations
        return tuple(exist) if allowed is None else tuple(k for k in allowed if k in exist)

    @property
    def canvas(self) -> tuple[int, int]:
        """Height and width of the canvas."""
        return self.dataset.max_grid_height, self.dataset.max_grid_width

    @property
    def rows(self) -> int:
        """Words of a bit mask: the longer side of the canvas."""
        return max(self.canvas)


def create_test_config() -> JaxArcConfig:
    """A configuration to play with: point actions, 100 steps, 30 x 30."""
    return JaxArcConfig()


def create_memory_optimized_config(
    max_episode_steps: int = 50, grid_size: int = 15, action_format: str = "point"
) -> JaxArcConfig:
    """A configuration whose states are small: short episodes, small canvas, point actions."""
    return JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=max_episode_steps, debug_level=0),
        dataset=UnifiedDatasetConfig(max_grid_height=grid_size, max_grid_width=grid_size),
        action=UnifiedActionConfig(selection_format=action_format),
        visualization=VisualizationConfig(enabled=False),
    )
