"""Parcels 4.0.2, timed in an environment of its own. It keeps no output."""

# pyright: reportMissingImports=none
# because Parcels is installed in the environment of this script alone.
from __future__ import annotations

import numpy as np
import workload


def setup(*, steps: int, folder: str, name: str):
    """One call carries all particles through `steps` steps."""
    import xarray as xr
    from parcels import FieldSet, ParticleSet, convert
    from parcels.kernels import AdvectionRK4_3D

    axis, times, data = workload.grid()
    # Time, depth, latitude, longitude. The clock counts in seconds, so that a step is one second.
    data = data.transpose(0, 3, 2, 1, 4) * np.float32(workload.STEP)
    seconds = (times / workload.STEP * 1e9).round().astype("timedelta64[ns]")
    coordinates = {
        "time": ("time", seconds, {"axis": "T"}),
        "depth": ("depth", axis, {"axis": "Z"}),
        "lat": ("lat", axis, {"axis": "Y"}),
        "lon": ("lon", axis, {"axis": "X"}),
    }
    turned = (1, 1, -1)  # its converter takes W to point upwards, and turns it round
    fields = {
        key: xr.DataArray(
            np.ascontiguousarray(data[..., i]) * np.float32(turned[i]),
            dims=tuple(coordinates),
            coords=coordinates,
        )
        for i, key in enumerate("UVW")
    }
    dataset = convert.copernicusmarine_to_sgrid(fields=fields)
    fieldset = FieldSet.from_sgrid_conventions(dataset, mesh="flat")
    x, y, z = workload.seeds().T

    def run():
        start = np.zeros(len(x), "timedelta64[ns]")
        particles = ParticleSet(fieldset, x=x, y=y, z=z, t=start)
        particles.execute(
            AdvectionRK4_3D,
            runtime=np.timedelta64(steps, "s"),
            dt=np.timedelta64(1, "s"),
            verbose_progress=False,
        )
        return particles

    particles = run()
    places = [np.asarray(getattr(particles, key)) for key in "xyz"]
    workload.leave(folder, name, np.stack(places, axis=1))
    return run
