"""`with open_dataset(...)` closes the file; a dataset that nobody has any more does too."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from specimens import SPECIMENS

import jaxtrace as jt
from jaxtrace.io import DataError

KINDS = ["hdf.nc", "classic.nc", "cdf5.nc", "two.zarr", "three.zarr"]


def held(path: Path) -> int:
    """How many descriptors of this process are open on a file, or on files in a folder."""
    found = 0
    for entry in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{entry}").startswith(str(path))
        except FileNotFoundError:
            continue
    return found


@pytest.fixture(params=KINDS)
def flow(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    SPECIMENS[request.param].make(tmp_path / request.param)
    return tmp_path / request.param


def test_the_end_of_the_block_closes(flow: Path):
    with jt.open_dataset(flow) as dataset:
        velocity = dataset.slice(1).velocity
        field = dataset.field()
    assert held(flow) == 0
    assert np.allclose(velocity, 0.25)
    assert np.allclose(field.sample([[0.5, 0.5]], t=0.5), 0.25)
    with pytest.raises(DataError, match="slice 0: the dataset is closed"):
        dataset.slice(0)
    dataset.close()  # again: nothing happens


def test_a_dataset_that_nobody_has_any_more_closes(flow: Path):
    dataset = jt.open_dataset(flow)
    dataset.slice(0)
    del dataset
    gc.collect()
    assert held(flow) == 0


def test_the_file_can_be_written_again(tmp_path: Path):
    flow = tmp_path / "hdf.nc"
    SPECIMENS["hdf.nc"].make(flow)
    for _ in range(2):
        with jt.open_dataset(flow) as dataset:
            dataset.slice(0)
        SPECIMENS["hdf.nc"].make(flow)
    jt.load_optimized_dataset(flow)
    assert held(flow) == 0


def test_an_error_at_the_opening_closes(tmp_path: Path):
    SPECIMENS["hdf.nc"].make(tmp_path / "hdf.nc")
    with pytest.raises(DataError):
        jt.open_dataset(tmp_path / "hdf.nc", velocity=("no", "such"))
    gc.collect()
    assert held(tmp_path / "hdf.nc") == 0


def test_a_streamed_field_keeps_its_files_open(tmp_path: Path):
    SPECIMENS["hdf.nc"].make(tmp_path / "hdf.nc")
    field = jt.open_dataset(tmp_path / "hdf.nc").field(window=2)
    gc.collect()
    assert held(tmp_path / "hdf.nc") > 0
    del field
    gc.collect()
    assert held(tmp_path / "hdf.nc") == 0


def test_the_dataset_of_somebody_else_stays_open(tmp_path: Path):
    import xarray

    SPECIMENS["hdf.nc"].make(tmp_path / "hdf.nc")
    with xarray.open_dataset(tmp_path / "hdf.nc", decode_times=False) as theirs:
        with jt.open_dataset(theirs) as dataset:
            dataset.slice(0)
        assert float(theirs["u"][0, 0, 0]) == 0.25


@pytest.mark.parametrize("kind", ["mesh.vtk", "ascii.vtu", "mesh.vtkhdf", "flow.pvd"])
def test_other_formats_close_too(kind: str, tmp_path: Path):
    SPECIMENS[kind].make(tmp_path / kind)
    with jt.open_dataset(tmp_path / kind) as dataset:
        dataset.slice(0)
    assert held(tmp_path) == 0
    with pytest.raises(DataError, match="closed"):
        dataset.slice(0)
