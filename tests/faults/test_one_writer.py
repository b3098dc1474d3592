"""One way to write files and folders: it never removes what it did not write."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import export
from worldloom import WorldloomError, bench, report, store
from worldloom.store._files import replacing, replacing_folder, write_whole

SOURCE = Path(__file__).parents[2] / "src"


def tracks(t: int = 4) -> jt.Trajectory:
    status = np.ones((t, 3), np.int8)
    positions = np.linspace(0, 1, t * 6).reshape(t, 3, 2)
    return jt.Trajectory(positions, np.arange(float(t)), status, np.zeros((t, 3)))


def comparison() -> bench.Comparison:
    return bench.compare({"a": lambda: 1, "b": lambda: 2}, rounds=2, seconds=1e-4)


def drawing():
    from jaxarc.utils.visualization import draw_grid

    return draw_grid(np.eye(3, dtype=int))


WRITERS = {
    **{
        f"x{e}": lambda p: export.write(tracks(), p)
        for e in (".nc", ".vtp", ".pvd", ".html", ".zarr")
    },
    "page.html": lambda p: report.Report("A page").save(p),
    "speed.json": lambda p: comparison().to_json(p),
    "speed.png": lambda p: comparison().plot(p),
    "record.json": lambda p: bench.Record(()).to_json(p),
    "tree.loom": lambda p: store.save(p, {"a": np.ones(3)}),
    "task.svg": lambda p: drawing().save(p),
    "task.png": lambda p: drawing().save(p),
    "task.gif": lambda p: drawing().save(p),
    "any": lambda p: write_whole(p, b"text"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_in_the_place_of_a_file_stays(name: str, tmp_path: Path):
    place = tmp_path / name
    (place / "deep").mkdir(parents=True)
    (place / "deep" / "notes.txt").write_text("precious")
    (place / "empty").mkdir()
    with pytest.raises(WorldloomError, match=re.escape(name)):
        WRITERS[name](place)
    assert (place / "deep" / "notes.txt").read_text() == "precious"
    assert (place / "empty").is_dir()
    assert sorted(os.listdir(tmp_path)) == [name]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "x.zarr"])
def test_a_link_is_followed_and_a_device_is_left_alone(name: str, tmp_path: Path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / name).write_text("old")
    (tmp_path / name).symlink_to(tmp_path / "far" / name)
    WRITERS[name](tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "far" / name).read_bytes() != b"old"
    os.mkfifo(tmp_path / f"pipe-{name}")
    with pytest.raises(WorldloomError):
        WRITERS[name](tmp_path / f"pipe-{name}")
    assert (tmp_path / f"pipe-{name}").is_fifo()


def test_older_tracks_of_ours_are_replaced(tmp_path: Path):
    for name in ("x.zarr", "x.pvd"):
        export.write(tracks(6), tmp_path / name)
        export.write(tracks(3), tmp_path / name)
    assert export.read(tmp_path / "x.zarr").T == 3
    assert len(list((tmp_path / "x").glob("*.vtp"))) == 3
    assert sorted(os.listdir(tmp_path)) == ["x", "x.pvd", "x.zarr"]


@pytest.mark.parametrize("foreign", ["notes.txt", "x/9.9", "more/deep.txt", "empty/", "x_0099.vtp"])
@pytest.mark.parametrize("name", ["x.zarr", "x.pvd"])
def test_what_a_stranger_put_into_our_folder_stays(name: str, foreign: str, tmp_path: Path):
    export.write(tracks(), tmp_path / name)
    folder = tmp_path / ("x" if name == "x.pvd" else name)
    place = folder / foreign
    if foreign.endswith("/"):
        place.mkdir()
    else:
        place.parent.mkdir(exist_ok=True)
        place.write_text("precious")
    with pytest.raises(export.ExportError, match=re.escape(foreign.strip("/"))):
        export.write(tracks(), tmp_path / name)
    assert place.exists()


def test_a_store_or_a_series_of_others_stays(tmp_path: Path):
    import xarray

    flow = xarray.Dataset({"u": ("x", [1.0, 2.0])}, attrs={"source": "JAXTrace"})
    flow.to_zarr(tmp_path / "flow.zarr", zarr_format=2)
    with pytest.raises(export.ExportError):
        export.write(tracks(), tmp_path / "flow.zarr")
    assert xarray.open_zarr(tmp_path / "flow.zarr")["u"].values.tolist() == [1.0, 2.0]
    (tmp_path / "drift").mkdir()
    (tmp_path / "drift" / "drift_0000.vtp").write_text("measured")
    with pytest.raises(export.ExportError):
        export.write(tracks(), tmp_path / "drift.pvd")
    assert (tmp_path / "drift" / "drift_0000.vtp").read_text() == "measured"


@pytest.mark.parametrize("writer", [replacing, replacing_folder])
def test_a_writer_that_fails_leaves_what_was_there(writer, tmp_path: Path):
    place = tmp_path / "place"
    with writer(place) as hidden:
        (hidden / "a" if writer is replacing_folder else hidden).write_text("old")
    with pytest.raises(ZeroDivisionError), writer(place) as hidden:  # noqa: PT012
        (hidden / "a" if writer is replacing_folder else hidden).write_text("half")
        raise ZeroDivisionError
    assert (place / "a" if writer is replacing_folder else place).read_text() == "old"
    assert os.listdir(tmp_path) == ["place"]


def test_what_comes_into_a_folder_while_it_is_replaced_stays(tmp_path: Path):
    place = tmp_path / "place"
    with replacing_folder(place) as hidden:
        (hidden / "a").write_text("old")
    with pytest.raises(store.ForeignFileError, match="late"), replacing_folder(place) as hidden:
        (place / "late").write_text("precious")
    assert (place / "late").read_text() == "precious"
    assert (place / "a").read_text() == "old"


def test_nothing_else_renames_or_removes():
    """The calls that replace or delete stand in the rooms that keep files, and nowhere else."""
    calls = re.compile(r"os\.(replace|rename|remove|unlink)\(|rmtree\(|\.(rename|unlink|rmdir)\(")
    keepers = ("worldloom/store/", "worldloom/loop/", "worldloom/bench/_environment.py")
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if calls.search(file.read_text(encoding="utf-8"))
    }
    assert {f for f in found if not f.startswith(keepers)} <= {"worldloom/cli/_output.py"}
