"""A sound small file of each kind that a command reads, and the command that reads it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent / "jaxtrace" / "io"))  # for its module `files`

SAMPLES = np.random.default_rng(0).normal(size=(24, 3))


@dataclasses.dataclass(frozen=True)
class Specimen:
    """How a kind of file is made, and the words that have a command read it (`{}`: the file)."""

    name: str
    make: Callable[[Path], None]
    words: tuple[str, ...]

    def command(self, place: Path) -> list[str]:
        """The words for a file at `place`."""
        return [word.replace("{}", str(place)) for word in self.words]


_INFO = ("trace", "info", "{}")
_FOLLOW = ("trace", "run", "flow.nc", "--dt", "9", "--time-span", "0", "1e-30", "--seeds.file")
_READ = ("read", "{}")


def _csv(path: Path) -> None:
    rows = ["alpha,beta,gamma", *(",".join(f"{x:.4f}" for x in row) for row in SAMPLES)]
    path.write_text("\n".join(rows))


def _parquet(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({f"v{j}": SAMPLES[:, j] for j in range(3)}), path)


def _flow():
    import xarray

    x = np.linspace(0.0, 1.0, 5)
    uv = np.full((3, 5, 5), 0.25, np.float32)
    axes = {"time": [0.0, 1.0, 2.0], "y": x, "x": x}
    return xarray.Dataset({n: (("time", "y", "x"), uv, {"units": "m/s"}) for n in "uv"}, axes)


def _netcdf(form: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _flow().to_netcdf(path, format=form, engine="netcdf4", unlimited_dims=["time"])

    return make


def _packed(path: Path) -> None:
    coding = {
        n: {"zlib": True, "shuffle": True, "fletcher32": True, "chunksizes": (1, 5, 5)}
        for n in "uv"
    }
    _flow().to_netcdf(path, engine="netcdf4", encoding=coding, unlimited_dims=["time"])


def _zarr(version: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _flow().to_zarr(path, zarr_format=version, consolidated=version == 2)

    return make


def _tracks(path: Path) -> None:
    import jaxtrace as jt
    from jaxtrace.export import write

    status = np.ones((4, 3), np.int8)
    positions = np.linspace(0, 1, 24).reshape(4, 3, 2)
    write(jt.Trajectory(positions, np.arange(4.0), status, np.zeros((4, 3))), path)


def _vtk(kind: str, mode: str | None = None, binary: bool = False) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import files

        points, cells = files.hex_block()
        data = {
            "image": files.image,
            "rectilinear": files.rectilinear,
            "curvilinear": lambda: files.curvilinear([len(a) for a in files.AXES], points),
            "mesh": lambda: files.unstructured(points, [(12, cells)]),
        }[kind]()
        files.fill(data, files.nodes(files.AXES), 0.5)
        if path.suffix == ".vtk":
            import vtk

            writer = vtk.vtkGenericDataObjectWriter()
            writer.SetFileName(str(path))
            writer.SetInputData(data)
            (writer.SetFileTypeToBinary if binary else writer.SetFileTypeToASCII)()
            assert writer.Write() == 1
        else:
            files.write(data, path, mode)

    return make


def _pvd(path: Path) -> None:
    import files

    names = []
    for i in range(2):
        piece = path.parent / f"piece{i}.vtu"
        _vtk("mesh")(piece)
        names.append((float(i), piece.name))
    files.write_pvd(path, names)


def _pvtu(path: Path) -> None:
    import files

    _pvd(path)
    points, cells = files.hex_block()
    data = files.fill(files.unstructured(points, [(12, cells)]), points, 0.5)
    files.write(data, path)


def _series(path: Path) -> None:
    _vtk("mesh")(path.parent / "only.vtu")
    path.write_text(json.dumps({"files": [{"name": "only.vtu", "time": 1.0}]}))


def _task(path: Path) -> None:
    pair = {"input": [[0, 1], [2, 3]], "output": [[3, 2], [1, 0]]}
    path.write_text(json.dumps({"train": [pair, pair], "test": [pair]}))


def _comparison(path: Path) -> None:
    from worldloom import bench

    bench.compare({"a": lambda: 1, "b": lambda: 2}, rounds=2, seconds=1e-4).to_json(path)


def _record(path: Path) -> None:
    from worldloom import bench

    found = bench.compare({"a": lambda: 1, "b": lambda: 2}, rounds=2, seconds=1e-4)
    findings = bench.Findings(
        "script",
        "engine",
        True,
        True,
        found.created,
        1.0,
        found.machine,
        (bench.Case(found, "b"),),
        (),
        (bench.Figure("f", 1.0),),
    )
    bench.Record((findings,)).to_json(path)


def _config(path: Path) -> None:
    path.write_text("problem: toy\npolicy: random\nbudget: 2\nobserved: 4\nseed: ${budget}\n")


def _recording(path: Path) -> None:
    import jax

    import jaxarc
    from jaxarc.utils.visualization import watch_rollout

    env = jaxarc.make("AGI1-train", ids=["007bbfb7"])
    policy = lambda params, observation, key: env.random_action(key, worlds=2)  # noqa: E731
    watch_rollout(env, policy, None, jax.random.key(0), 4, worlds=2)[2].save(path)


def _seeds(path: Path) -> None:
    if path.suffix == ".npy":
        np.save(path, np.full((3, 2), 0.5))
    else:
        path.write_text("0.5,0.5\n0.25,0.75\n")


_DISCOVER = ("acbo", "discover", "{}")
SPECIMENS = {
    one.name: one
    for one in (
        Specimen("samples.csv", _csv, (*_DISCOVER, "--interventions", "mask.csv")),
        Specimen("samples.parquet", _parquet, (*_DISCOVER, "--interventions", "mask.csv")),
        Specimen("classic.nc", _netcdf("NETCDF3_CLASSIC"), _READ),
        Specimen("offset.nc", _netcdf("NETCDF3_64BIT_OFFSET"), _READ),
        Specimen("cdf5.nc", _netcdf("NETCDF3_64BIT_DATA"), _READ),
        Specimen("hdf.nc", _netcdf("NETCDF4"), _READ),
        Specimen("packed.nc", _packed, _READ),
        Specimen("tracks.nc", _tracks, _INFO),
        Specimen("two.zarr", _zarr(2), _READ),
        Specimen("three.zarr", _zarr(3), _READ),
        Specimen("tracks.zarr", _tracks, _INFO),
        Specimen("image.vtk", _vtk("image"), _READ),
        Specimen("rectilinear.vtk", _vtk("rectilinear"), _READ),
        Specimen("curvilinear.vtk", _vtk("curvilinear"), _READ),
        Specimen("mesh.vtk", _vtk("mesh"), _READ),
        Specimen("binary.vtk", _vtk("mesh", binary=True), _READ),
        Specimen("ascii.vtu", _vtk("mesh", "Ascii"), _READ),
        Specimen("binary.vtu", _vtk("mesh", "Binary"), _READ),
        Specimen("appended.vtu", _vtk("mesh", "Appended"), _READ),
        Specimen("image.vti", _vtk("image"), _READ),
        Specimen("rectilinear.vtr", _vtk("rectilinear"), _READ),
        Specimen("curvilinear.vts", _vtk("curvilinear"), _READ),
        Specimen("mesh.vtkhdf", _vtk("mesh"), _READ),
        Specimen("flow.pvd", _pvd, _READ),
        Specimen("flow.pvtu", _pvtu, _READ),
        Specimen("flow.vtu.series", _series, _INFO),
        Specimen("task.json", _task, ("arc", "view", "{}")),
        Specimen("speed.json", _comparison, ("report", "{}", "--out", "out.html")),
        Specimen("record.json", _record, ("bench", "--read", "{}", "--out", "bench")),
        Specimen("config.yaml", _config, ("acbo", "optimise", "{}", "--budget", "0")),
        Specimen("recording.loom", _recording, ("arc", "replay", "{}", "--out", "out.html")),
        Specimen(
            "seeds.npy",
            _seeds,
            ("trace", "run", "flow.nc", "--seeds.file", "{}", "--save-every", "no"),
        ),
        Specimen("seeds.csv", _seeds, ("trace", "run", "flow.nc", "--seeds.file", "{}")),
    )
}
