"""Issue 24, ARC 4: a page that shows a part of the episodes does not count it as all of them."""

from __future__ import annotations

import dataclasses
import html
import json
import re

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxarc
from jaxarc import training
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedDatasetConfig
from jaxarc.utils import visualization as viz
from jaxarc.utils.visualization import _replays
from worldloom import report

WORLDS, STEPS = 3, 12


@pytest.fixture(scope="module")
def recording():
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=3, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=3, max_grid_width=3),
    )
    env = jaxarc.make(training.tiny_tasks(pairs=2), config=config)
    act = lambda params, seen, key: env.random_action(key, worlds=WORLDS)  # noqa: E731
    _, _, recording = viz.watch_rollout(env, act, None, jax.random.key(0), STEPS, worlds=WORLDS)
    # By chance hardly any is solved: say that some are.
    ends = recording.ends.copy()
    ended = np.argwhere(ends != 0)
    for step, world in ended[::3]:
        ends[step, world] = 1 | 4
    return dataclasses.replace(recording, ends=ends)


def facts(recording):
    solved = [e for e in recording.episodes if e.outcome == "solved"]
    return len(recording.episodes), len(solved)


def text_of(path):
    return html.unescape(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8")))


@settings(max_examples=25)
@given(data=st.data())
def test_the_page_says_how_many_of_how_many(recording, data):
    every, solved = facts(recording)
    assert 0 < solved < every
    places = data.draw(st.sets(st.integers(0, every - 1), min_size=1))
    some = [recording.episodes[place] for place in sorted(places)]
    summary = viz.Replays(recording, some).summary()
    assert f"{every} episodes" in summary
    assert f"{solved} of them solved ({solved / every:.1%})" in summary
    if len(some) < every:
        shown = sum(episode.outcome == "solved" for episode in some)
        assert f"{len(some)} are shown" in summary
        assert f"{shown} of these solved" in summary


def test_a_page_that_is_cut_says_so_in_every_place(recording, tmp_path, monkeypatch):
    every, solved = facts(recording)
    monkeypatch.setattr(_replays, "MOST", 4)
    page = viz.save_replay(recording, tmp_path / "replay.html")
    assert f"{every} episodes were recorded; {solved} of them solved" in text_of(page)
    assert "4 are shown" in text_of(page)
    about = json.loads(
        re.search(r'class="about">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)[1]
    )
    assert about["recorded"] == every
    own = report.Report("Mine").add(viz.Replays(recording, caption="Look."))
    path = own.save(tmp_path / "own.html")
    assert f"Look. {every} episodes were recorded" in text_of(path)


def test_a_page_of_all_says_it_once(recording, tmp_path):
    every, _ = facts(recording)
    text = text_of(viz.save_replay(recording, tmp_path / "replay.html"))
    assert text.count(f"{every} episodes of") == 1
    assert "are shown" not in text


def test_episodes_of_another_recording_are_refused(recording):
    """They would be replayed with the actions of this one."""
    other = dataclasses.replace(recording, reward=recording.reward + 1)
    for episodes in (
        other.episodes[:2],
        [dataclasses.replace(recording.episodes[0], number=-1)],
        [dataclasses.replace(recording.episodes[0], number=10**6)],
        [dataclasses.replace(recording.episodes[1], length=99)],
    ):
        with pytest.raises(viz.RecordingError, match="not one of the"):
            viz.Replays(recording, episodes).render()
        with pytest.raises(viz.RecordingError, match="not one of the"):
            next(viz.rebuild(recording, episodes))


def test_a_file_that_names_pairs_its_tasks_do_not_have_is_refused(recording, tmp_path):
    for pair in (2, 127, 128 + 1, 255):
        bad = recording.pair.copy()
        bad[0, 0] = pair
        dataclasses.replace(recording, pair=bad).save(tmp_path / "bad.loom")
        with pytest.raises(viz.RecordingError, match="pairs that its tasks do not have"):
            viz.Recording.load(tmp_path / "bad.loom")
