"""From a recording back to grids: the operations are applied again, by the environment itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int8, Int16, UInt8

from jaxarc.bitgrid import from_lanes
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, batch_step
from jaxarc.envs._episode import begin
from jaxarc.envs._observation import observe
from jaxarc.utils.visualization._memory import MemoryManager
from jaxarc.utils.visualization._recording import Episode, Recording, RecordingError
from jaxarc.utils.visualization._settings import MemorySettings

BLOCK = 128  # episodes at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Frames:
    """An episode to look at: frame 0 is its start, frame `t` is what step `t` left.

    - `grids`: 0 to 9, -1 outside of the grid.
    - `operations`: -1 at the start.
    - `selections`: the cells that were chosen; none at the start.
    - `pairs`: as in the recording.
    """

    episode: Episode
    grids: Int8[np.ndarray, "frames height width"]
    operations: Int16[np.ndarray, " frames"]
    selections: Bool[np.ndarray, "frames height width"]
    rewards: Float32[np.ndarray, " frames"]
    similarities: Float32[np.ndarray, " frames"]
    pairs: UInt8[np.ndarray, " frames"]


def rebuild(recording: Recording, episodes: Sequence[Episode] | None = None) -> Iterator[Frames]:
    """The frames of episodes, in order; of all of them by default.

    What is computed is compared with what was recorded: a recording that does not fit its own
    tasks is a `RecordingError`.

    ```python
    import jax
    import jaxarc
    from jaxarc.utils.visualization import rebuild, watch_rollout

    env = jaxarc.make("AGI1-train", ids=["007bbfb7"])

    def policy(params, observation, key):
        return env.random_action(key, worlds=2)

    _, _, recording = watch_rollout(env, policy, None, jax.random.key(0), 10, worlds=2)
    frames = next(rebuild(recording))
    assert frames.grids.shape == (frames.episode.length + 1, 30, 30)
    ```
    """
    wanted = list(recording.episodes if episodes is None else episodes)
    recording.own(wanted)
    for k in range(0, len(wanted), BLOCK):
        yield from _rebuild_block(recording, wanted[k : k + BLOCK])


class Replayer:
    """Frames of episodes by number: rebuilt when first asked for, kept while there is room.

    **Arguments:**

    - `settings`: the room, and whether to rebuild lazily or everything that fits at once.

    ```python
    import jax
    import jaxarc
    from jaxarc.utils.visualization import Replayer, watch_rollout

    env = jaxarc.make("AGI1-train", ids=["007bbfb7"])

    def policy(params, observation, key):
        return env.random_action(key, worlds=2)

    _, _, recording = watch_rollout(env, policy, None, jax.random.key(0), 10, worlds=2)
    player = Replayer(recording)
    assert player[0] is player[0]
    ```
    """

    def __init__(self, recording: Recording, settings: MemorySettings | None = None):
        settings = MemorySettings() if settings is None else settings
        self.recording = recording
        self.manager = MemoryManager.of(settings)
        if not settings.lazy_loading:
            self._fill()

    def __len__(self) -> int:
        return len(self.recording.episodes)

    def __getitem__(self, number: int) -> Frames:
        if not 0 <= number < len(self):
            raise IndexError(f"there are episodes 0 to {len(self) - 1}, no episode {number}")
        found = self.manager.cache.get(number)
        if found is not None:
            return found
        (frames,) = rebuild(self.recording, [self.recording.episodes[number]])
        self._keep(frames)
        return frames

    def _fill(self) -> None:
        for frames in rebuild(self.recording):
            self._keep(frames)
            if self.manager.cache.stats().evictions:  # it is full
                return

    def _keep(self, frames: Frames) -> None:
        arrays = (getattr(frames, field.name) for field in dataclasses.fields(frames)[1:])
        size = sum(array.nbytes for array in arrays)
        self.manager.cache.put(frames.episode.number, frames, nbytes=size)


def _rebuild_block(recording: Recording, episodes: list[Episode]) -> Iterator[Frames]:
    count = _rounded(len(episodes))
    longest = _rounded(max(episode.length for episode in episodes))
    # What is beyond the end of an episode is computed and not looked at.
    filled = episodes + [episodes[0]] * (count - len(episodes))
    worlds = np.array([episode.world for episode in filled])
    steps = np.array([episode.start for episode in filled]) + np.arange(longest)[:, None]
    steps = np.minimum(steps, recording.steps - 1)
    actions = recording.action(steps, np.broadcast_to(worlds, steps.shape))
    tasks = np.array([episode.task for episode in filled], np.int32)
    pairs = np.array([episode.pair for episode in filled], np.int32)
    height, width = recording.config.canvas
    buffer = recording.tasks.buffer(height=height, width=width)
    config = _plain(recording.config)
    first, then = jax.device_get(_replay(tasks, pairs, actions, buffer, config=config))
    for k, episode in enumerate(episodes):
        rows = slice(episode.start, episode.start + episode.length)
        recorded = recording.similarity[rows, episode.world]
        again = then["similarity"][: episode.length, k]
        if not np.allclose(recorded, again, atol=1e-5):
            step = int(np.flatnonzero(~np.isclose(recorded, again, atol=1e-5))[0])
            raise RecordingError(
                f"episode {episode.number} (task {episode.task_id!r}) does not replay: after its "
                f"step {step + 1} similarity was {recorded[step]:.4f}, and is {again[step]:.4f} "
                "now. The recording was changed, or made by another version of JaxARC"
            )
        yield Frames(
            episode,
            _join(first["grid"][k], then["grid"][: episode.length, k]),
            _join(np.int16(-1), recording.operation[rows, episode.world].astype(np.int16)),
            _join(np.zeros((height, width), bool), then["selection"][: episode.length, k]),
            _join(np.float32(0), recording.reward[rows, episode.world]),
            _join(first["similarity"][k], recorded),
            _join(recording.pair[episode.start, episode.world], then["pair"][: episode.length, k]),
        )


def _rounded(count: int) -> int:
    """The next power of two, so that few programs serve all numbers."""
    return 1 << (count - 1).bit_length()


def _join(first: Any, then: np.ndarray) -> np.ndarray:
    return np.concatenate([np.asarray(first, then.dtype)[None], then])


def _plain(config: JaxArcConfig) -> JaxArcConfig:
    """The configuration less what does not change the grid."""
    setting = dataclasses.asdict(config.environment)
    setting.update(record_history=False, debug_level=0)
    return JaxArcConfig(
        environment=EnvironmentConfig(**setting), dataset=config.dataset, action=config.action
    )


@partial(jax.jit, static_argnames="config")
def _replay(tasks, pairs, actions, buffer, *, config):
    # The keys decide nothing: tasks and pairs are given, and no episode begins by itself.
    keys = jax.random.split(jax.random.key(0), pairs.shape[0])
    worlds = from_lanes(begin(keys, config, buffer, task=tasks, pair=pairs))
    states, shown = worlds.packed(), observe(worlds, config, buffer)

    def step(states, action):
        states, shown, _, _, info = batch_step(states, action, config, tasks=buffer)
        test = jnp.where(states.on_test_pair, jnp.uint8(128), jnp.uint8(0))
        kept = {
            "grid": shown.grid,
            "similarity": info.similarity,
            "selection": action.to_selection_mask(config.canvas),
            "pair": states.pair_index.astype(jnp.uint8) | test,
        }
        return states, kept

    _, then = jax.lax.scan(step, states, actions)
    return {"grid": shown.grid, "similarity": states.similarity}, then
