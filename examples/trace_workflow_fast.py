"""The fast workflow, from files to files: 7,500 particles, 1,500 steps.

    python examples/trace_workflow_fast.py            a flow of 33 x 33 x 33 nodes at 12 times
    python examples/trace_workflow_fast.py --full     57 x 57 x 57 nodes at 40 times

It writes a series of VTK files as a solver would, tracks particles through it, and leaves
`tracks/`: a page to look at, lines for ParaView, and a NetCDF file for xarray.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyvista

import jaxtrace as jt
from jaxtrace import export
from jaxtrace.tracking.boundary import reflective_boundary

FULL = "--full" in sys.argv
NODES, SLICES = (57, 40) if FULL else (33, 12)
SPAN = (0.0, 7.5)


def write_series(folder: Path) -> str:
    """A convection cell that rocks to and fro, as VTI files with their times."""
    axis = np.linspace(0.0, 1.0, NODES)
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    folder.mkdir(parents=True, exist_ok=True)
    for i, t in enumerate(np.linspace(*SPAN, SLICES)):
        px, py, pz = (np.pi * (c + 0.08 * np.sin(t + 3 * k)) for k, c in enumerate((x, y, z)))
        u = 0.30 * np.sin(px) * np.cos(pz) + 0.15 * np.sin(px) * np.cos(py)
        v = 0.15 * np.sin(py) * (np.cos(pz) - np.cos(px))
        w = -0.30 * np.cos(px) * np.sin(pz) - 0.15 * np.cos(py) * np.sin(pz)
        image = pyvista.ImageData(dimensions=x.shape, spacing=(axis[1],) * 3)
        image["velocity"] = np.stack([u, v, w], -1).reshape(-1, 3).astype(np.float32)
        image.field_data["TimeValue"] = [t]
        image.save(folder / f"flow_{i:03d}.vti")
    return str(folder / "flow_*.vti")


def main() -> None:
    jt.configure(dtype="float32", device="auto", memory_limit_gb=3.0)
    out = Path("tracks")
    pattern = write_series(out / "flow")

    field = jt.load_optimized_dataset(pattern, max_time_steps=40, dtype="float32")
    seeds = jt.uniform_grid_seeds(resolution=(30, 25, 10), bounds=field.bounds)
    tracker = jt.create_tracker(
        integrator_name="rk4", field=field, boundary_condition=reflective_boundary(field.bounds)
    )
    tracks = tracker.track_particles(seeds, time_span=SPAN, n_timesteps=1500, save_every=10)

    report = tracks.report
    print(f"{tracks.N:,} particles x 1,500 steps in {report.run_seconds:.1f} s on {report.device}")
    print(f"{report.particle_steps_per_second:,.0f} particle-steps/s, compiled in", end=" ")
    print(f"{report.compile_seconds:.1f} s")
    print("at the end:", {status.name: n for status, n in tracks.counts().items()})

    print(export.write(tracks, out / "tracks.html"))
    print(export.write(tracks.subsample(particles=500), out / "lines.vtp"))
    print(export.write(tracks, out / "tracks.nc"))


if __name__ == "__main__":
    main()
