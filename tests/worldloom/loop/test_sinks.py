from __future__ import annotations

import json

import numpy as np
import pytest
import worlds

import worldloom as wl
from worldloom.loop import _setup
from worldloom.loop._ledger import Entry, Part, Sums, to_plain
from worldloom.loop._records import Column


def square(n, t):
    return n + 1, {"square": n * n, "pair": n * np.arange(2, dtype=np.int32)}


def keep_all(n):
    return n


SAVE = {"out": wl.Every(2), "n": wl.Every(5, of=keep_all, initial=True), "end": wl.Final(keep_all)}


def sinks(folder):
    return [
        wl.MemorySink(),
        wl.NpySink(folder / "npy"),
        wl.ZarrSink(folder / "z", rows_per_chunk=7),
    ]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["memory", "npy", "zarr"])
@pytest.mark.parametrize("length", [0, 3, 53])
def test_all_sinks_keep_the_same_records(which, length, tmp_path, monkeypatch):
    monkeypatch.setattr(_setup, "BUFFER_BYTES", 100)
    records = wl.run(square, 0, length=length, save=SAVE, sink=sinks(tmp_path)[which]).records
    n = np.arange(length)
    np.testing.assert_array_equal(records["out"]["square"][:], (n * n)[1::2])
    np.testing.assert_array_equal(records["out"]["pair"][:], np.outer(n, [0, 1])[1::2])
    np.testing.assert_array_equal(records["n"][:], np.arange(0, length + 1, 5))
    np.testing.assert_array_equal(records["end"][:], [length])


def test_npy_files_open_without_us(tmp_path):
    wl.run(square, 0, length=10, save=SAVE, sink=wl.NpySink(tmp_path / "r"))
    names = sorted(path.name for path in (tmp_path / "r").glob("*.npy"))
    assert names == ["end.npy", "n.npy", "out.pair.npy", "out.square.npy"]
    assert np.load(tmp_path / "r" / "n.npy").tolist() == [0, 5, 10]
    assert isinstance(wl.load_records(tmp_path / "r")["n"], np.memmap)


def test_zarr_opens_without_us(tmp_path):
    import zarr

    wl.run(square, 0, length=10, save=SAVE, sink=wl.ZarrSink(tmp_path / "z"))
    assert zarr.open_group(tmp_path / "z", mode="r")["n"][:].tolist() == [0, 5, 10]


@pytest.mark.parametrize("which", [1, 2], ids=["npy", "zarr"])
def test_records_of_another_run_are_not_overwritten(which, tmp_path):
    wl.run(square, 0, length=4, save=SAVE, sink=sinks(tmp_path)[which])
    with pytest.raises(wl.SinkError, match="already"):
        wl.run(square, 0, length=4, save=SAVE, sink=sinks(tmp_path)[which])


def test_records_cut_short_by_a_fault_are_valid_files(tmp_path):
    with pytest.raises(wl.FaultError) as caught:
        wl.run(
            square,
            0,
            length=1000,
            save=SAVE,
            sink=wl.NpySink(tmp_path / "r"),
            checks={"ten": lambda n: n == 10},
        )
    assert np.load(tmp_path / "r" / "out.square.npy").tolist() == [1, 9, 25, 49, 81]
    assert caught.value.result.records["end"].tolist() == [10]


def test_parts_of_many_processes_are_joined(tmp_path):
    """Rows 0-3 written by two processes, rows 3-5 by one, as after a resume on fewer."""
    halves = [[[0, 2]], [[2, 4]]]
    whole = np.arange(20, dtype=np.int32).reshape(5, 4)
    parts = [Part(0, halves, ["x.0.npy", "x.1.npy"], 4), Part(3, [[[0, 4]]], ["x.3.npy"], 2)]
    # The first process had begun a fourth row, which counts no more.
    left, right = np.vstack([whole[:3, :2], np.full((1, 2), -1, np.int32)]), whole[:4, 2:]
    for part, boxes in zip(parts, ([left, right], [whole[3:]]), strict=True):
        for file, rows in zip(part.files, boxes, strict=True):
            np.save(tmp_path / file, rows)
            sums = Sums()
            sums.add(rows)
            part.sums.append(sums.blocks)
    index = to_plain({"x": Entry("<i4", [4], parts)})
    (tmp_path / "index.json").write_text(json.dumps(index))
    np.testing.assert_array_equal(wl.load_records(tmp_path)["x"], whole)
    left[1, 1] += 1
    np.save(tmp_path / "x.0.npy", left)
    with pytest.raises(wl.SinkError, match=r"x\.0\.npy: records 'x' are damaged: rows 0 to 2"):
        wl.load_records(tmp_path)


def test_zarr_chunks_are_never_shared_by_processes(tmp_path):
    sink = wl.ZarrSink(tmp_path / "z")
    column = Column("x", np.dtype("i4"), (4,), 10, (((0, 4),),))
    sink.open([column], None)
    half = Column("x", np.dtype("i4"), (4,), 10, (((0, 2),),))
    with pytest.raises(wl.SinkError, match="more than one process would write the chunk at 0:2"):
        sink.open([half], {"x": 0})


def test_a_folder_without_records_is_named(tmp_path):
    with pytest.raises(wl.SinkError, match=r"holds no records: it has no index\.json"):
        wl.load_records(tmp_path)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(wl.SinkError, match="is damaged"):
        wl.load_records(tmp_path)


def test_a_sink_that_fails_ends_the_run_with_its_own_error():
    class Full(wl.MemorySink):
        def write(self, column, start, rows):
            raise OSError(28, "No space left on device")

    world = worlds.grid_world()
    with pytest.raises(OSError, match="No space left"):
        wl.run(world.step, world.state, world.inputs, length=40, save=wl.Every(), sink=Full())


def test_any_object_with_the_four_methods_is_a_sink():
    class Mean:
        def open(self, columns, rows):
            self.total, self.count = 0, 0

        def write(self, column, start, rows):
            assert start == self.count
            self.total, self.count = self.total + int(rows.sum()), self.count + len(rows)

        def flush(self, rows):
            pass

        def close(self, rows):
            return dict.fromkeys(rows, self.total / self.count)

    result = wl.run(
        lambda n, t: (n + 1, n), 0, length=100, save=wl.Every(), sink=Mean(), chunk_steps=7
    )
    assert result.records == 49.5
