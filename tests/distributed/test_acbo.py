"""Training a surrogate on two processes: the losses of one."""

from __future__ import annotations

import acbo_run
import jax
import numpy as np
import pytest
from launching import launch

from worldloom import mesh


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_processes_have_the_losses_of_one(tmp_path):
    assert launch("acbo_run.py", str(tmp_path / "losses.npy")) == 0
    one = acbo_run.losses(mesh.worlds_mesh(jax.devices()[:1]))
    assert one.shape == (4,)
    assert len(set(one.tolist())) == 4
    np.testing.assert_allclose(np.load(tmp_path / "losses.npy"), one, rtol=1e-4)
