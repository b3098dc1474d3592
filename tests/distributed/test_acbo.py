"""Training a surrogate on two processes: what one learns, a worker killed, another number."""

from __future__ import annotations

import contextlib
import io
import signal

import acbo_run
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
    acbo_run.go(str(folder), one_device())
    records = wl.load_records(folder / "records")
    assert len(set(records["loss"].tolist())) == acbo_run.STEPS, "it learns"
    return records


def assert_same(folder, whole):
    found = wl.load_records(folder / "records")
    assert set(found) == set(whole)
    for name, rows in whole.items():
        assert len(rows) == acbo_run.STEPS
        np.testing.assert_allclose(found[name], rows, rtol=1e-4, err_msg=name)


def test_two_processes_learn_what_one_does(whole, tmp_path):
    assert launch("acbo_run.py", str(tmp_path)) == 0
    assert_same(tmp_path, whole)


def test_one_process_finishes_what_two_began(whole, tmp_path):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert launch("acbo_run.py", str(tmp_path), "3") == 128 + signal.SIGKILL
    assert "launch: process 1 of 2 was killed by SIGKILL (signal 9)" in said.getvalue()
    counted = [len(rows) for rows in wl.load_records(tmp_path / "records").values()]
    assert 0 < min(counted) <= max(counted) < acbo_run.STEPS, "it died in the middle"
    acbo_run.go(str(tmp_path), one_device())
    assert_same(tmp_path, whole)


def test_two_processes_finish_what_one_began(whole, tmp_path):
    with pytest.raises(RuntimeError, match="in the middle"):
        acbo_run.go(str(tmp_path), one_device(), StopAt(3, die=False))
    assert launch("acbo_run.py", str(tmp_path)) == 0
    assert_same(tmp_path, whole)
