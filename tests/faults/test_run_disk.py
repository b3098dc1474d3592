"""Disks that fail a run: our error, with the path; and with room again, the same run goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import worldloom as wl


def step(x, t):
    return x + 1, x


class Once:
    """Something that happens when so many steps are done."""

    def __init__(self, at, action):
        self.at, self.action = at, action

    def start(self, done, length):
        pass

    def update(self, done):
        if done >= self.at and self.action:
            action, self.action = self.action, None
            action()

    def stop(self):
        pass


def go(folder, sink=None, at=None, action=None):
    return wl.run(
        step,
        np.zeros(1000, np.float32),
        length=40,
        save=wl.Every(),
        chunk_steps=10,
        sink=sink,
        progress=Once(at, action) if action else False,
        checkpoint=wl.Checkpoint(folder, chunks=1),
        resume=True,
    )


@pytest.mark.parametrize("sink", [None, wl.NpySink, wl.ZarrSink])
def test_a_folder_that_is_removed_while_the_run_goes_on(sink, tmp_path):
    made = sink and sink(tmp_path / "records")

    def remove():
        for path in filter(os.path.isdir, tmp_path.iterdir()):
            shutil.rmtree(path)

    with pytest.raises(wl.WorldloomError, match=str(tmp_path)) as caught:
        go(tmp_path / "run", made, 20, remove)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("sink", [None, wl.NpySink, wl.ZarrSink])
def test_a_place_below_a_file_or_a_link_to_nothing(sink, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nothing" / "there")
    for place in (tmp_path / "file" / "run", tmp_path / "file", tmp_path / "link"):
        where = (place,) if sink is None else (tmp_path / "run", sink(place))
        with pytest.raises(wl.WorldloomError, match=str(tmp_path)):
            go(*where)
    assert (tmp_path / "file").read_text() == "mine"


FULL = """
    import resource, signal, sys
    sys.path.insert(0, {here!r})
    import worldloom as wl
    from test_run_disk import go

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    try:
        go({folder!r}, {sink}, 20, fill)
    except wl.WorldloomError as error:
        print("named", type(error).__name__, error)
"""


@pytest.mark.parametrize("sink", ["None", "wl.NpySink", "wl.ZarrSink"])
def test_a_disk_that_is_full_and_then_has_room(sink, tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the middle."""
    place = str(tmp_path / "records")
    code = textwrap.dedent(FULL).format(
        here=os.path.dirname(__file__),
        folder=str(tmp_path / "run"),
        sink="None" if sink == "None" else f"{sink}({place!r})",
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("named ")
    assert str(tmp_path) in done.stdout
    made = None if sink == "None" else getattr(wl, sink[3:])(place)
    result = go(tmp_path / "run", made)
    assert np.array_equal(result.records[:, 0], np.arange(40))
