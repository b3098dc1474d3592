"""Issue 24, line 1.3: killed at any file event, the same command ends with the same bits."""

from __future__ import annotations

from pathlib import Path

import killing
import pytest

QUICK = {
    "npy": [*range(1, 12), *range(12, 99, 16)],
    "zarr": [*range(1, 14), *range(14, 165, 30)],
    "real-zarr": [9, 70],
}


@pytest.mark.parametrize("run", QUICK)
def test_a_sink_killed_at_a_file_event_goes_on(run: str, tmp_path: Path):
    total, complaints = killing.survivors(run, tmp_path, QUICK[run])
    assert total > 60
    assert not complaints


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("run", ["npy", "zarr", "real-own", "real-npy", "real-zarr"])
def test_a_sink_killed_at_each_of_the_first_file_events_goes_on(run: str, tmp_path: Path):
    _, complaints = killing.survivors(run, tmp_path, range(1, 91))
    assert not complaints


def test_a_folder_that_a_sink_did_not_make_is_left_alone(tmp_path: Path):
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "thesis.txt").write_text("three years")
    with pytest.raises(killing.wl.SinkError, match="not a group of records; give another path"):
        killing.drive(killing.zarr(tmp_path), tmp_path)
    assert (tmp_path / "records" / "thesis.txt").read_text() == "three years"
