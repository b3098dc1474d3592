"""Ten million particles in bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

_SCRIPT = """
import json, resource
import numpy as np
import jaxtrace as jt

x = np.linspace(0.0, 1.0, 33)
X, Y = np.meshgrid(x, x, indexing="ij")
field = jt.StructuredField(np.stack([0.5 - Y, X - 0.5], -1)[None], (x, x))
seeds = np.random.default_rng(0).uniform(0.3, 0.7, (10**7, 2)).astype(np.float32)
tracker = jt.create_tracker(field=field, batch_size=2**19)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tracks = tracker.track_particles(seeds, (0.0, 0.3), 3, save_positions=False)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
some = np.arange(0, len(seeds), 99_991)
few = jt.create_tracker(field=field).track_particles(seeds[some], (0.0, 0.3), 3)
same = np.array_equal(few.positions[-1], tracks.positions[-1][some])
print(json.dumps({"rise": (after - before) * 1024, "same": same, "n": tracks.N}))
"""


@pytest.mark.slow
def test_ten_million_particles_take_little_more_than_their_own_numbers():
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["n"] == 10**7
    assert said["same"]
    # First and last positions, status and ages are 16 + 2 + 16 bytes a particle, some twice.
    assert said["rise"] < 120 * 10**7
