"""Issue 24, line 1.4: a changed byte of records is a named error, or changes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import killing
import numpy as np
import pytest

import worldloom as wl
from worldloom import store
from worldloom.loop import _ledger

KINDS: dict[str, Callable[[Path], wl.Sink]] = {"npy": killing.npy, "zarr": killing.zarr}
LEFT_AT = 30


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bits of a run that nobody disturbs."""
    return killing.drive(wl.MemorySink(), tmp_path_factory.mktemp("wanted"))


@pytest.fixture(scope="module", params=["left", "finished"])
def sound(request, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with records and a checkpoint: of a run that was killed, or has ended."""
    folder = tmp_path_factory.mktemp("sound")
    leave_at = LEFT_AT if request.param == "left" else None
    killing.drive(KINDS[kind](folder), folder, leave_at=leave_at)
    return folder


def contents(folder: Path) -> dict[str, str]:
    found = wl.load_records(folder / "records")
    return {name: killing.digest({name: found[name]}, 0) for name in found}


def mutate(folder: Path, random: np.random.Generator) -> str:
    """Change one file as bad disks, bad copies and people do."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = files[random.integers(len(files))]
    data = bytearray(file.read_bytes())
    where = int(random.integers(max(len(data), 1)))
    what = ["bit", "byte", "cut", "drop", "insert", "delete", "exchange"][random.integers(7)]
    if what == "bit" and data:
        data[where] ^= 1 << random.integers(8)
    elif what == "byte" and data:
        data[where] = random.integers(256)
    elif what == "cut":
        del data[where:]
    elif what == "drop":
        del data[where : where + int(random.integers(1, 9))]
    elif what == "insert":
        data[where:where] = random.bytes(random.integers(1, 9))
    elif what == "exchange":
        data[:] = files[random.integers(len(files))].read_bytes()
    file.write_bytes(data)
    if what == "delete":
        file.unlink()
    return f"{what} at {where} of {file.relative_to(folder)}"


def check_mutations(kind: str, sound: Path, folder: Path, wanted: str, seeds: range) -> list[str]:
    before, wrong, refused = contents(sound), [], 0
    for seed in seeds:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sound, folder)
        how = mutate(folder, np.random.default_rng(seed))
        for action, expected in (
            (lambda: contents(folder), before),
            (lambda: killing.drive(KINDS[kind](folder), folder), wanted),
        ):
            try:
                if action() != expected:
                    wrong.append(f"{seed}: {how}: silently different")
            except wl.WorldloomError as error:
                refused += 1
                if str(folder) not in str(error):
                    wrong.append(f"{seed}: {how}: names no file: {error}")
            except Exception as error:
                wrong.append(f"{seed}: {how}: {type(error).__name__}: {error}")
    assert refused > len(seeds) // 4
    return wrong


def test_mutated_run_folders(kind: str, sound: Path, wanted: str, tmp_path: Path):
    assert check_mutations(kind, sound, tmp_path / "work", wanted, range(50)) == []


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_many_mutated_run_folders(kind: str, sound: Path, wanted: str, tmp_path: Path):
    assert check_mutations(kind, sound, tmp_path / "work", wanted, range(50, 1050)) == []


def test_the_error_names_file_and_column(kind: str, sound: Path, tmp_path: Path):
    folder = tmp_path / "work"
    shutil.copytree(sound, folder)
    if kind == "npy":
        file, names = folder / "records" / "b.c.npy", r"b\.c\.npy: records 'b\.c' are damaged"
        data = bytearray(file.read_bytes())
        data[128 + 8 * 3] ^= 1  # the fourth row
        file.write_bytes(data)
    else:
        (folder / "records" / "b.c" / "c" / "0").unlink()  # Zarr takes it for zeros.
        names = r"b\.c: records 'b\.c' are damaged: rows 0 to"
    with pytest.raises(wl.SinkError, match=names):
        wl.load_records(folder / "records")
    with pytest.raises(wl.SinkError, match=names):
        killing.drive(KINDS[kind](folder), folder)


def test_bytes_behind_the_rows_that_count_change_nothing(wanted: str, tmp_path: Path):
    killing.drive(killing.npy(tmp_path), tmp_path, leave_at=LEFT_AT)
    file = tmp_path / "records" / "a.npy"
    data = bytearray(file.read_bytes())
    data[-10:] = b"0123456789"
    file.write_bytes(data)
    assert killing.drive(killing.npy(tmp_path), tmp_path) == wanted


@pytest.mark.parametrize("block", [1, 7, 64, 100, 10**9])
def test_blocks_of_any_size(block: int, wanted: str, tmp_path: Path, monkeypatch):
    """Rows that are longer or shorter than a block, and end in the middle of one."""
    monkeypatch.setattr(_ledger, "BLOCK", block)
    for step in (10, 20, 30):
        killing.drive(killing.npy(tmp_path), tmp_path, leave_at=step)
        wl.load_records(tmp_path / "records")
    assert killing.drive(killing.npy(tmp_path), tmp_path) == wanted
    entry = json.loads((tmp_path / "records" / "index.json").read_text())["columns"]["a"]
    sums = entry["parts"][0]["sums"][0]
    assert len(sums) == -(-killing.STEPS * 24 // block)


def test_an_older_checkpoint_is_good_to_go_back_to(kind: str, wanted: str, tmp_path: Path):
    """Rows that count no more are cut off the checksums, wherever in a block that is."""
    sink, state = KINDS[kind](tmp_path), tmp_path / "state.loom"
    killing.drive(sink, tmp_path, leave_at=30)
    for back in (20, 10, 20):
        store.save(state, back)
        if back == 20:
            killing.drive(KINDS[kind](tmp_path), tmp_path, leave_at=back + 5)
    assert killing.drive(KINDS[kind](tmp_path), tmp_path) == wanted


def test_a_run_is_prolonged(kind: str, wanted: str, tmp_path: Path):
    """More rows than before, after the end and after a kill; checksums hold over both."""
    killing.drive(KINDS[kind](tmp_path), tmp_path, length=20)
    killing.drive(KINDS[kind](tmp_path), tmp_path, length=30, leave_at=25)
    assert killing.drive(KINDS[kind](tmp_path), tmp_path) == wanted
    wl.load_records(tmp_path / "records")


def test_records_of_fewer_rows_than_the_checkpoint_counts(kind: str, tmp_path: Path):
    killing.drive(KINDS[kind](tmp_path), tmp_path, leave_at=20)
    store.save(tmp_path / "state.loom", 30)
    with pytest.raises(wl.SinkError, match="holds 20 records 'a'; the checkpoint counts 30"):
        killing.drive(KINDS[kind](tmp_path), tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"columns": {}}', '{"sha256": "0", "columns": {}}', "[" * 100_000, "\xff"],
    ids=range(7),
)
def test_an_index_that_is_none(kind: str, text: str, tmp_path: Path):
    killing.drive(KINDS[kind](tmp_path), tmp_path, leave_at=20)
    file = tmp_path / "records" / ("index.json" if kind == "npy" else "zarr.json")
    file.write_text(text, encoding="latin1")
    with pytest.raises(wl.SinkError, match=rf"{file.name} is damaged"):
        wl.load_records(tmp_path / "records")
    with pytest.raises(wl.SinkError, match=rf"{file.name} is damaged"):
        killing.drive(KINDS[kind](tmp_path), tmp_path)
