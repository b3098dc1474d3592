"""What stays fixed while an environment runs: frozen, hashable, checked."""

from __future__ import annotations

import inspect

from jaxarc.bitgrid import WORD
from jaxarc.envs._options import (
    ConfigError,
    check_bool,
    check_choice,
    check_kind,
    check_range,
    config_class,
    refuse,
)
from jaxarc.envs._reward import Reward, SimilarityReward
from jaxarc.operations import NUM_EDITS, NUM_OPERATIONS


@config_class
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
        check_range(self, "max_episode_steps", 1, 65_535)
        check_choice(self, "episode_mode", ("train", "test"))
        check_range(self, "max_attempts", 1, 15)
        check_bool(self, "pair_controls")
        check_bool(self, "record_history")
        check_range(self, "debug_level", 0, 1)


@config_class
class UnifiedDatasetConfig:
    """The canvas that every grid is padded to."""

    max_grid_height: int = 30
    max_grid_width: int = 30

    def __post_init__(self):
        check_range(self, "max_grid_height", 1, WORD)
        check_range(self, "max_grid_width", 1, WORD)


@config_class
class UnifiedActionConfig:
    """Which actions there are.

    - `selection_format`: `"point"`, `"bbox"` or `"mask"`.
    - `allowed_operations`: ids of the operations that may be used; `None` for all.
    """

    selection_format: str = "point"
    allowed_operations: tuple[int, ...] | None = None

    def __post_init__(self):
        check_choice(self, "selection_format", ("point", "bbox", "mask"))
        given = self.allowed_operations
        if given is None:
            return
        ids = range(NUM_OPERATIONS)
        if (
            not isinstance(given, tuple)
            or not given
            or len(set(given)) < len(given)
            or not all(type(one) is int and one in ids for one in given)
        ):
            expected = f"a tuple of one or more different ids 0 to {NUM_OPERATIONS - 1}, or None"
            refuse(self, "allowed_operations", expected)
        object.__setattr__(self, "allowed_operations", tuple(sorted(given)))


@config_class
class ObservationConfig:
    """What an observation holds next to the working grid; each part is off by default."""

    input: bool = False
    clipboard: bool = False
    demos: int = 0
    step: bool = False
    allowed_operations: bool = False

    def __post_init__(self):
        for name in ("input", "clipboard", "step", "allowed_operations"):
            check_bool(self, name)
        check_range(self, "demos", 0, 10)


@config_class
class VisualizationConfig:
    """Whether a run is drawn.

    - `enabled`: print the grid of the first world on the terminal after every step, or as often
      as 5 ms a step allow. It changes nothing else. `watch_rollout` shows and records more.
    """

    enabled: bool = False

    def __post_init__(self):
        check_bool(self, "enabled")


@config_class
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

    def __post_init__(self):
        check_kind(self, "environment", EnvironmentConfig)
        check_kind(self, "dataset", UnifiedDatasetConfig)
        check_kind(self, "action", UnifiedActionConfig)
        check_kind(self, "observation", ObservationConfig)
        check_kind(self, "visualization", VisualizationConfig)
        if isinstance(self.reward, type) or not isinstance(self.reward, Reward):
            refuse(self, "reward", "an object that takes a Transition, as SimilarityReward() does")
        try:
            inspect.signature(self.reward).bind(None)
        except TypeError:
            refuse(self, "reward", "an object that is called with one Transition")
        controls = [k for k in self.action.allowed_operations or () if k >= NUM_EDITS]
        if controls and not self.environment.pair_controls:
            which = f"{self.action.allowed_operations}: {', '.join(map(str, controls))} go from "
            which += "pair to pair, which is switched off"
            error = ConfigError(
                f"UnifiedActionConfig(allowed_operations={which}: leave them out, or set "
                "EnvironmentConfig(pair_controls=True)"
            )
            error.option = "allowed_operations"
            error.reason = f"{which}; ids 0 to {NUM_EDITS - 1} edit the grid"
            raise error

    @property
    def operations(self) -> tuple[int, ...]:
        """The ids of the operations that may be used."""
        controls = self.environment.pair_controls
        exist = range(NUM_OPERATIONS if controls else NUM_EDITS)
        return self.action.allowed_operations or tuple(exist)

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
