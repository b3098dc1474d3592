"""A run of two processes, of which one is killed, goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shutil
import signal
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import worldloom as wl
from worldloom import mesh

HERE = Path(__file__).parent
PROGRAM = HERE / "long_run.py"


def load_program():
    spec = importlib.util.spec_from_file_location("long_run", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(*arguments: str) -> int:
    path = [str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        return mesh.launch([sys.executable, str(PROGRAM), *arguments], processes=2, timeout=240)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run on one device, never interrupted: its folder and last state."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, load_program().go(str(folder), mesh.worlds_mesh(jax.devices()[:1]))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run of two processes of which one was killed at step 60 of 120."""
    folder = tmp_path_factory.mktemp("killed")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert launch(str(folder), "60") == 128 + signal.SIGKILL
    assert "launch: process 1 of 2 was killed by SIGKILL (signal 9)" in said.getvalue()
    assert "start it again to resume from the last one" in said.getvalue()
    # It had begun, was saved, and was not finished.
    assert all(0 < len(rows) < 30 for rows in wl.load_records(folder / "records").values())
    return folder


def assert_same_run(folder: Path, whole_folder: Path):
    found = wl.load_records(folder / "records")
    expected = wl.load_records(whole_folder / "records")
    assert set(found) == set(expected)
    assert sorted(len(rows) for rows in expected.values()) == [15, 40]
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows, err_msg=name)


@pytest.mark.parametrize("devices", [1, 2])
def test_one_process_finishes_what_two_began(whole, killed, tmp_path, devices):
    shutil.copytree(killed, tmp_path / "run")
    state = load_program().go(str(tmp_path / "run"), mesh.worlds_mesh(jax.devices()[:devices]))
    np.testing.assert_array_equal(state.position, whole[1].position)
    found, expected = (jax.random.key_data(s.key) for s in (state, whole[1]))
    np.testing.assert_array_equal(found, expected)
    assert_same_run(tmp_path / "run", whole[0])


def test_two_processes_finish_what_two_began(whole, killed, tmp_path, capfd):
    shutil.copytree(killed, tmp_path / "run")
    assert launch(str(tmp_path / "run")) == 0
    assert capfd.readouterr().out.count("finished") == 2
    assert_same_run(tmp_path / "run", whole[0])
    # The last checkpoint is the end: one more run does nothing but hand out the last state.
    state = load_program().go(str(tmp_path / "run"), mesh.worlds_mesh())
    np.testing.assert_array_equal(state.position, whole[1].position)
