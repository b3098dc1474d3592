"""Training on two processes: what one learns, a worker killed, another number of processes."""

from __future__ import annotations

import contextlib
import io
import signal

import arc_run
import numpy as np
import pytest
from launching import launch, one_device
from stopping import StopAt

import worldloom as wl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run on one device of one process, never interrupted: its records."""
    folder = tmp_path_factory.mktemp("whole")
    arc_run.go(str(folder), one_device())
    return wl.load_records(folder / "records")


def assert_same(folder, whole):
    found = wl.load_records(folder / "records")
    assert set(found) == set(whole)
    assert len(whole) == 10
    for name, rows in whole.items():
        assert len(rows) == arc_run.OPTIONS["updates"]
        np.testing.assert_allclose(found[name], rows, rtol=1e-3, atol=1e-5, err_msg=name)


def test_one_process_finishes_what_two_began(whole, tmp_path):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert launch("arc_run.py", str(tmp_path), "4") == 128 + signal.SIGKILL
    assert "launch: process 1 of 2 was killed by SIGKILL (signal 9)" in said.getvalue()
    assert "start it again to resume from the last one" in said.getvalue()
    counted = [len(rows) for rows in wl.load_records(tmp_path / "records").values()]
    assert 0 < min(counted) <= max(counted) < arc_run.OPTIONS["updates"], "it died in the middle"
    arc_run.go(str(tmp_path), one_device())
    assert_same(tmp_path, whole)


def test_two_processes_finish_what_one_began_and_print_once(whole, tmp_path, capfd):
    with pytest.raises(RuntimeError, match="in the middle"):
        arc_run.go(str(tmp_path), one_device(), StopAt(4, die=False))
    words = [*arc_run.WORDS, "--checkpoint", str(tmp_path), "--out", str(tmp_path / "net.loom")]
    assert launch("arc", "train", *words) == 0
    assert_same(tmp_path, whole)
    out = capfd.readouterr().out
    assert out.count("16 worlds x 6 steps x 8 updates") == 1
    assert "2 devices of 2 processes" in out
    assert (tmp_path / "net.loom").exists()
