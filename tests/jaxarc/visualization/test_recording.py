"""What is recorded is what happened, and replays to the last cell."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from visualization.watching import KEY, LENGTH, WORLDS, bits, environment, random_policy

from jaxarc.utils import visualization as viz
from jaxarc.utils.visualization import _rollout
from worldloom import store


def test_off_is_the_same_program(env, policy, no_recompile):
    key = jax.random.key(KEY)
    plain = env.rollout(policy, None, key, LENGTH, worlds=WORLDS, observations=True)
    with no_recompile():
        *off, recording = viz.watch_rollout(
            env, policy, None, key, LENGTH, worlds=WORLDS, observations=True, settings="off"
        )
    assert recording is None
    assert bits(off) == bits(plain)


def test_watching_changes_no_bit(env, policy, watched):
    key = jax.random.key(KEY)
    plain = env.rollout(policy, None, key, LENGTH, worlds=WORLDS, observations=True)
    assert bits(watched[:2]) == bits(plain)


def test_callbacks_that_fail_change_no_bit(env, policy, watched, monkeypatch, capfd):
    def broken(*_):
        raise RuntimeError("always")

    broken.__name__ = "broken"
    monkeypatch.setattr(_rollout, "_show_grid", broken)
    monkeypatch.setattr(_rollout, "print_summary", broken)
    viz.reset_callback_performance_stats()
    key = jax.random.key(KEY)
    options = {"worlds": WORLDS, "observations": True}
    full = viz.watch_rollout(env, policy, None, key, LENGTH, settings="debug_full", **options)
    assert bits(full[:2]) == bits(watched[:2])
    stats = viz.get_callback_performance_stats()
    row = stats["broken, in the background"]
    assert row["error_count"] == row["total_calls"] > 0
    assert stats["grid"]["error_count"] == 0
    assert "broken" in capfd.readouterr().out  # the report at the end

    monkeypatch.undo()
    viz.watch_rollout(env, policy, None, key, LENGTH, settings="debug_full", **options)
    out = capfd.readouterr().out
    assert "world 0, step " in out
    ended = [e for e in watched[2].episodes if e.world == 0 and e.outcome != "unfinished"]
    assert out.count("similarity ") == len(ended) > 0
    assert f"episode 0  not solved  {ended[0].length} steps" in out


def test_episodes_tell_what_happened(watched):
    _, rollout, recording = watched
    over = np.asarray(rollout.terminated | rollout.truncated)
    ended = [e for e in recording.episodes if e.outcome != "unfinished"]
    assert len(ended) == over.sum()
    assert sum(e.length for e in recording.episodes) == LENGTH * WORLDS
    assert [e.number for e in recording.episodes] == list(range(len(recording.episodes)))
    assert {e.outcome for e in recording.episodes} >= {"wrong", "cut off", "unfinished"}
    for episode in recording.episodes[::17]:
        rows = slice(episode.start, episode.start + episode.length)
        assert episode.reward == pytest.approx(
            float(np.asarray(rollout.reward)[rows, episode.world].sum()), abs=1e-4
        )
        assert episode.task_id == recording.tasks.ids[episode.task]
        assert (recording.task[rows, episode.world] == episode.task).all()
    solved = [e for e in recording.episodes if e.outcome == "solved"]
    assert len(solved) == int(np.asarray(rollout.success).sum())
    assert all(e.similarity == 1.0 for e in solved)


def test_rebuilt_grids_are_those_that_the_policy_saw(watched):
    _, rollout, recording = watched
    seen = np.asarray(rollout.observation.grid)
    count = 0
    for frames in viz.rebuild(recording):
        episode = frames.episode
        rows = slice(episode.start, episode.start + episode.length)
        assert np.array_equal(frames.grids[:-1], seen[rows, episode.world])
        assert np.array_equal(frames.similarities[1:], recording.similarity[rows, episode.world])
        assert frames.operations[0] == -1
        assert not frames.selections[0].any()
        assert (frames.selections[1:].sum(axis=(1, 2)) == 1).all()  # points on the canvas
        count += 1
    assert count == len(recording.episodes)


def test_a_recording_comes_back_from_disk(recording, tmp_path: Path):
    path = recording.save(tmp_path / "new" / "run.loom")
    back = viz.Recording.load(path)
    for name in ("task", "pair", "operation", "selection", "reward", "similarity", "ends"):
        one, other = getattr(recording, name), getattr(back, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert back.config == recording.config
    assert back.episodes == recording.episodes
    wanted = recording.episodes[:3]
    for one, other in zip(viz.rebuild(recording, wanted), viz.rebuild(back, wanted), strict=True):
        assert np.array_equal(one.grids, other.grids)
    assert path.stat().st_size < 12 * LENGTH * WORLDS


def test_it_holds_few_bytes_a_step(recording):
    arrays = (recording.pair, recording.operation, recording.selection, recording.ends)
    small = sum(array.nbytes for array in arrays)
    floats = recording.reward.nbytes + recording.similarity.nbytes + recording.task.nbytes
    assert (small + floats) / recording.task.size == 17


@pytest.mark.slow
def test_some_worlds_are_enough(env, policy, recording):
    _, _, some = viz.watch_rollout(
        env, policy, None, jax.random.key(KEY), LENGTH, worlds=WORLDS, recorded=5
    )
    assert some.worlds == 5
    assert np.array_equal(some.reward, recording.reward[:, :5])
    with pytest.raises(ValueError, match="recorded is 0"):
        viz.watch_rollout(env, policy, None, jax.random.key(KEY), 3, worlds=WORLDS, recorded=0)


class TestBadFiles:
    """A file that is not what it should be is a named error."""

    def test_damaged(self, recording, tmp_path: Path):
        path = recording.save(tmp_path / "run.loom")
        whole = path.read_bytes()
        for content in (whole[:-20], whole[:1000] + b"x" + whole[1001:]):
            path.write_bytes(content)
            with pytest.raises(store.DamagedError, match=r"run\.loom"):
                viz.Recording.load(path)

    def test_missing_and_foreign(self, tmp_path: Path):
        with pytest.raises(store.MissingError):
            viz.Recording.load(tmp_path / "none.loom")
        (tmp_path / "text.loom").write_text("hello")
        with pytest.raises(store.ForeignFileError):
            viz.Recording.load(tmp_path / "text.loom")
        store.save(tmp_path / "state.loom", {"x": np.zeros(3)})
        with pytest.raises(viz.RecordingError, match="no recording"):
            viz.Recording.load(tmp_path / "state.loom")

    def test_another_version(self, recording, tmp_path: Path):
        path = recording.save(tmp_path / "run.loom")
        meta = store.read_meta(path)
        store.save(path, {}, meta=meta | {"version": 99})
        with pytest.raises(viz.RecordingError, match="version 99"):
            viz.Recording.load(path)

    def test_changed(self, recording):
        episode = next(e for e in recording.episodes if e.length > 5)
        similarity = recording.similarity.copy()
        similarity[episode.start + 2, episode.world] += 0.25
        changed = dataclasses.replace(recording, similarity=similarity)
        with pytest.raises(viz.RecordingError, match="step 3 similarity"):
            list(viz.rebuild(changed, [episode]))

    @pytest.mark.skipif(
        not Path("/dev/full").exists(),
        reason="needs /dev/full, a disk that is always full: run it on Linux",
    )
    def test_a_full_disk(self, recording, tmp_path: Path):
        """A file of a few kilobytes is all that the process may write."""
        path = recording.save(tmp_path / "run.loom")
        script = """
import resource, signal, sys
from jaxarc.utils import visualization as viz
from worldloom import store
recording = viz.Recording.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
for write in (recording.save, viz.draw_mosaic([[[1, 2]]] * 99).save):
    name = sys.argv[2] + (".loom" if write == recording.save else ".svg")
    try:
        write(name)
    except store.DiskError as error:
        print("named:", error)
print(len(recording.episodes), "still here")
"""
        done = subprocess.run(
            [sys.executable, "-c", script, str(path), str(tmp_path / "other")],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout.count("named:") == 2, done.stdout + done.stderr
        assert f"{len(recording.episodes)} still here" in done.stdout
        assert [file.name for file in tmp_path.iterdir()] == ["run.loom"]


def test_selections_outside_of_the_canvas_keep_their_meaning(env):
    from jaxarc.envs import BboxAction, PointAction

    far = jnp.array([[-40, 3, 500]])
    near = _rollout._selection(PointAction(far, far, far), (slice(None), slice(3)))
    assert near.dtype == np.int8
    again = PointAction(far[0], *(jnp.asarray(near[0, :, k], jnp.int32) for k in range(2)))
    kept = PointAction(far[0], far[0], far[0]).to_selection_mask((32, 32))
    assert np.array_equal(again.to_selection_mask((32, 32)), kept)
    box = BboxAction(far, far, far, far[:, ::-1], far[:, ::-1])
    near = _rollout._selection(box, (slice(None), slice(3)))
    again = BboxAction(far[0], *(jnp.asarray(near[0, :, k], jnp.int32) for k in range(4)))
    kept = BboxAction(far[0], far[0], far[0], far[0, ::-1], far[0, ::-1])
    assert np.array_equal(again.to_selection_mask((32, 32)), kept.to_selection_mask((32, 32)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("bbox", {}),
        ("mask", {}),
        ("point", {"episode_mode": "test"}),
        ("bbox", {"pair_controls": True}),
    ],
)
def test_every_kind_of_episode_replays(form, options, tmp_path: Path):
    env = environment(form, **options)
    _, rollout, recording = viz.watch_rollout(
        env, random_policy(env), None, jax.random.key(1), 60, worlds=WORLDS, observations=True
    )
    recording = viz.Recording.load(recording.save(tmp_path / "run.loom"))
    seen = np.asarray(rollout.observation.grid)
    for frames in viz.rebuild(recording):
        episode = frames.episode
        rows = slice(episode.start, episode.start + episode.length)
        assert np.array_equal(frames.grids[:-1], seen[rows, episode.world])
        assert np.array_equal(frames.pairs[:-1], recording.pair[rows, episode.world])


def test_an_episode_as_a_strip_and_as_a_film(recording, tmp_path: Path):
    episode = next(e for e in recording.episodes if e.outcome == "wrong" and 3 < e.length < 15)
    (frames,) = viz.rebuild(recording, [episode])
    strip = viz.draw_episode(frames)
    assert len(strip.grids) == episode.length + 1
    words = [text.text for text in strip.texts]
    assert "start" in words
    assert f"{episode.length}: submit" in words
    viz.animate_episode(frames).save(tmp_path / "episode.gif")


def test_a_replayer_keeps_what_it_has_room_for(recording):
    room = viz.MemorySettings(max_cache_mb=0.02, max_total_mb=0.02)
    player = viz.Replayer(recording, room)
    assert len(player) == len(recording.episodes)
    first = player[0]
    assert player[0] is first
    for number in range(1, 8):
        assert player[number].episode == recording.episodes[number]
    assert player.manager.cache.bytes <= 20_000
    assert player[0] is not first  # it had to go
    assert np.array_equal(player[0].grids, first.grids)
    with pytest.raises(IndexError, match="no episode 9999"):
        player[9999]


def test_a_replayer_may_load_at_once(recording):
    at_once = viz.Replayer(recording, viz.MemorySettings(lazy_loading=False))
    assert len(at_once.manager.cache) == len(recording.episodes)
    assert len(viz.Replayer(recording).manager.cache) == 0


def test_a_rollout_saves_its_recording(env, policy, recording, tmp_path: Path):
    sizes = []
    for compression in (True, False):
        memory = viz.MemorySettings(compression=compression)
        path = tmp_path / f"{compression}.loom"
        viz.watch_rollout(
            env,
            policy,
            None,
            jax.random.key(KEY),
            LENGTH,
            worlds=WORLDS,
            observations=True,
            settings=viz.WatchSettings(viz.DebugSettings(memory_management=memory)),
            save_to=path,
        )
        assert viz.Recording.load(path).episodes == recording.episodes
        sizes.append(path.stat().st_size)
    assert sizes[0] < sizes[1]
