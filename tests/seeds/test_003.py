"""Seed 003, the guide to fast tracking with JAXTrace: every block of it."""

from __future__ import annotations

import copy
import re
import shutil
import textwrap

import numpy as np
import pytest
from seeds.harness import FOLDER, Defect, Seed, execute

from jaxtrace import Status, TraceError, TraceWarning, _config

# A series of VTK files with velocities at scattered points, as the seed's field has them; and the
# names that the seed uses without an import, or before it defines them.
PRELUDE = """
import atexit, shutil, tempfile
from pathlib import Path
import numpy as np
import pyvista
import jaxtrace as jt
from jaxtrace import TimeSeriesField, create_tracker, uniform_grid_seeds
from jaxtrace.io import load_optimized_dataset
from jaxtrace.tracking.boundary import (
    clamping_boundary, continuous_inlet_boundary_factory, periodic_boundary,
)

folder = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, folder)
axis = np.linspace(0.0, 1.0, 8)
points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
turning = np.stack([0.5 - points[:, 1], points[:, 0] - 0.5, 0 * points[:, 2]], axis=-1)
for step in range(5):
    cloud = pyvista.PolyData(points)
    cloud["velocity"] = (turning * (1 + 0.1 * step)).astype(np.float32)
    cloud.field_data["TimeValue"] = [2.0 * step]
    cloud.save(folder / f"flow_{step}.vtp")
pattern = str(folder / "flow_*.vtp")

bounds_min, bounds_max = [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]
bounds = [bounds_min, bounds_max]
seeds = uniform_grid_seeds(resolution=(6, 5, 4), bounds=bounds)
numpy_data = np.stack([turning, turning]).astype(np.float32)
"""

NO_GPU = {
    2: Defect(
        "this machine has no GPU",
        [('device="gpu"', 'device="auto"')],
        TraceError,
        "JAX finds none here",
    )
}
ELLIPSIS = [(", ...)", ", positions=points, times=[0.0, 1.0])")]
SEED = Seed(
    "003",
    package="jaxtrace",
    prelude=PRELUDE,
    smaller={6: [("(30, 25, 10)", "(6, 5, 4)")], 7: [("1500", "60")]},
    defects={
        **(NO_GPU if shutil.which("nvidia-smi") is None else {}),
        7: Defect(
            "1500 steps of 0.005 end at 7.5 and not at 4; a user is warned, which fails a test",
            [("dt=0.005", "dt=4.0 / 60")],
            TraceWarning,
            "contradict each other: 60 steps of 0.005 end at 0.3, not at 4",
        ),
        12: Defect(
            "an ellipsis for arguments, after a named one", ELLIPSIS, SyntaxError, "positional"
        ),
        13: Defect(
            "an ellipsis for arguments, after a named one", ELLIPSIS, SyntaxError, "positional"
        ),
        14: Defect("an ellipsis for arguments", [("(...)", "(bounds)")], TypeError, "ellipsis"),
    },
)


@pytest.fixture(autouse=True)
def _same_settings():
    """The seed configures the package; other tests should not notice."""
    before = _config._settings
    yield
    _config._settings = before


@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs(number: int):
    SEED.run(number)


@pytest.mark.parametrize("number", SEED.defects)
def test_the_defect_is_real(number: int):
    SEED.check_defect(number)


def indented() -> list[str]:
    """The blocks inside lists, which the harness does not number."""
    (path,) = FOLDER.glob("003_*")
    fence = re.compile(r"^(?P<in> +)```python\n(?P<code>.*?)^(?P=in)```", re.DOTALL | re.MULTILINE)
    text = path.read_text(encoding="utf-8")
    return [textwrap.dedent(match["code"]) for match in fence.finditer(text)]


@pytest.mark.parametrize("number", range(6))
def test_the_block_in_a_list_runs(number: int):
    made = dict(SEED.run(len(SEED.numbers)))
    made["field"] = made["tracker"].field  # the last blocks make another
    execute(indented()[number], f"<seed 003, list block {number}>", made)


def test_there_are_no_other_blocks_in_lists():
    assert len(indented()) == 6


def test_what_the_blocks_computed():
    made = SEED.run(7)
    field, trajectory = made["tracker"].field, made["trajectory"]
    assert field.times.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert made["seeds"].shape == (120, 3)
    assert trajectory.positions.shape == (61, 120, 3)
    assert trajectory.times[-1] == pytest.approx(4.0)
    assert trajectory.counts() == {Status.ALIVE: 120}
    moved = trajectory.displacement()
    assert np.abs(moved[:, :2]).max() > 0.1
    assert np.abs(moved[:, 2]).max() < 1e-5
    assert made["tracker"]._compiled_step is not None


def test_assigning_data_changes_the_flow():
    made = SEED.run(13)
    field = copy.copy(made["field"])
    place = np.array([[0.2, 0.2, 0.2]])
    before = np.asarray(field.sample(place, 0.0))
    field.data = 2 * field.data
    np.testing.assert_allclose(field.sample(place, 0.0), 2 * before, rtol=1e-6)
    np.testing.assert_array_equal(field._data_dev, field.data)
