"""Parcels 3.1.4 with its C kernels, timed in an environment of its own. It keeps no output."""

# pyright: reportMissingImports=none
# because Parcels is installed in the environment of this script alone.
from __future__ import annotations

import numpy as np
import workload


def setup(*, steps: int, folder: str, name: str):
    """One call carries all particles through `steps` steps."""
    from parcels import AdvectionRK4_3D, FieldSet, JITParticle, ParticleSet

    axis, times, data = workload.grid()
    # Parcels has time, depth, latitude, longitude. Its clock has no fractions of 1e-6, so that a
    # step is one second here.
    data = data.transpose(0, 3, 2, 1, 4) * np.float32(workload.STEP)
    fieldset = FieldSet.from_data(
        {key: np.ascontiguousarray(data[..., i]) for i, key in enumerate("UVW")},
        {"lon": axis, "lat": axis, "depth": axis, "time": times / workload.STEP},
        mesh="flat",
    )
    x, y, z = workload.seeds().T
    particles = ParticleSet(fieldset, JITParticle, lon=x, lat=y, depth=z, time=np.zeros(len(x)))
    kernel = particles.Kernel(AdvectionRK4_3D)
    kept = {key: np.array(value) for key, value in particles.particledata.data.items()}

    def run():
        for key, value in kept.items():
            particles.particledata.data[key][:] = value
        particles.execute(kernel, runtime=steps, dt=1.0, verbose_progress=False)
        return particles.lon

    run()
    # What the last step has computed is copied to `lon`, `lat` and `depth` when a next one begins.
    last = [particles.particledata.data[f"{key}_nextloop"] for key in ("lon", "lat", "depth")]
    workload.leave(folder, name, np.stack(last, axis=1))
    return run
