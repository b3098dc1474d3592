"""Damaged files of every kind that a command reads end in a sentence: no traceback, no crash."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import damage
from specimens import SPECIMENS, Specimen
from workers import Worker, worker

from acbo.cli import Optimise
from acbo.data import read_data
from jaxtrace.io import DataError, open_dataset
from worldloom import WorldloomError, config
from worldloom.cli import main

MIB = 2**20
QUICK, SLOW = 100, 2_000
# What opens a reader in C in yet another process, which a bad file may end, takes its time.
SLOW_KINDS = ("hdf.nc", "packed.nc", "tracks.nc", "curvilinear.vtk", "image.vtk", "rectilinear.vtk")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what some specimens need beside them."""
    folder = tmp_path_factory.mktemp("room")
    (folder / "mask.csv").write_text("alpha,beta\n0,1\n")
    SPECIMENS["classic.nc"].make(folder / "flow.nc")
    return folder


@pytest.fixture(scope="module")
def commands(room: Path) -> Iterator[Worker]:
    with worker(room) as made:
        yield made


def check(specimen: Specimen, room: Path, commands: Worker, seeds: range) -> None:
    """Mutants of one kind of file, each read by its command."""
    sound = room / "sound" / specimen.name
    sound.parent.mkdir(exist_ok=True)
    if not sound.exists():
        specimen.make(sound)
    for beside in sound.parent.iterdir():
        if beside.is_file():
            shutil.copy(beside, room / beside.name)
    place = room / specimen.name
    commands.run(specimen.command(sound))  # what is imported is not what a file asks for
    wrong = []
    for seed in seeds:
        what = damage(sound, place, seed)
        ended = commands.run(specimen.command(place))
        if not ended.sound or ended.grown > 400 * MIB:
            last = ended.err.strip().splitlines()[-1:]
            wrong.append(f"{seed} ({what}): {ended.code}, {ended.grown / MIB:.0f} MiB, {last}")
    assert not wrong, f"{len(wrong)} of {len(seeds)} mutants of {specimen.name}:\n" + "\n".join(
        wrong[:10]
    )


@pytest.mark.parametrize("kind", SPECIMENS)
def test_mutants_of_a_file_end_in_a_sentence(kind: str, room: Path, commands: Worker):
    check(SPECIMENS[kind], room, commands, range(QUICK // 5 if kind in SLOW_KINDS else QUICK))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", SPECIMENS)
def test_many_mutants_of_a_file_end_in_a_sentence(kind: str, room: Path, commands: Worker):
    check(SPECIMENS[kind], room, commands, range(QUICK, QUICK + SLOW))


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says on stderr that ends with 1 or 2."""
    assert main(words) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("worldloom: error: "), told
    assert "unexpected" not in told
    return told


def test_a_table_that_is_not_utf_8_names_the_line_and_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    table = tmp_path / "cells.csv"
    table.write_bytes("größe,b\n1.5,2\n2,2.5\n3,1\n".encode("latin-1"))
    told = refused(["acbo", "discover", str(table)], capsys)
    assert "byte 0xf6 in line 1 is no text in utf-8" in told
    assert "--encoding latin-1" in told
    with pytest.raises(WorldloomError, match="encoding='latin-1'"):
        read_data(table)
    assert read_data(table, encoding="latin-1").names == ("größe", "b")
    assert "not one that Python knows" in refused(
        ["acbo", "discover", str(table), "--encoding", "martian"], capsys
    )


@pytest.mark.parametrize("name", ["task.json", "speed.json", "record.json", "flow.vtu.series"])
@pytest.mark.parametrize("text", ["[" * 3_000 + "]" * 3_000, '{"a":' * 100_000, "1" * 5_000])
def test_json_that_is_nested_deeply(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / name).write_text(text)
    words = SPECIMENS[name].command(tmp_path / name)
    if words[0] == "read":
        words = ["trace", "info", words[1]]
    assert str(tmp_path / name) in refused(words, capsys)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 3_000 + "]" * 3_000,
        "\n".join(" " * i + "a:" for i in range(3_000)),
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "\n".join(
            f"{n}: &{n} [{', '.join([f'*{b}'] * 10)}]"
            for b, n in zip("abcdefgh", "bcdefghi", strict=True)
        ),
    ],
    ids=["brackets", "indents", "aliases"],
)
def test_yaml_that_is_nested_deeply_or_multiplies(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "run.yaml"
    file.write_text(text)
    assert "run.yaml" in refused(["acbo", "optimise", str(file)], capsys)
    with pytest.raises(config.ConfigError, match=r"run\.yaml"):
        config.load(Optimise, file)


def test_a_checkpoint_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "run"
    file.write_text("precious")
    SPECIMENS["classic.nc"].make(tmp_path / "flow.nc")
    for words in (
        ["arc", "train"],
        ["trace", "run", str(tmp_path / "flow.nc"), "-o", str(tmp_path / "x.nc")],
        ["acbo", "train"],
    ):
        told = refused([*words, "--checkpoint", str(file)], capsys)
        assert "--checkpoint" in told
        assert "is a file; name a folder" in told
    assert file.read_text() == "precious"


def test_a_header_of_netcdf_3_that_lies_is_refused_before_netcdf_c_sees_it(tmp_path: Path):
    """Each number in the header made large, one after the other, in each of the three forms."""
    for kind in ("classic.nc", "offset.nc", "cdf5.nc"):
        sound = tmp_path / f"sound-{kind}"
        SPECIMENS[kind].make(sound)
        content = sound.read_bytes()
        open_dataset(sound).close()
        for at in range(4, 400, 4):
            changed = tmp_path / kind
            changed.write_bytes(content[:at] + b"\x7f\xff\xff\xf0" + content[at + 4 :])
            with contextlib.suppress(DataError), open_dataset(changed) as flow:
                flow.slice(0)


def test_a_reader_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from jaxtrace.io import _look

    SPECIMENS["hdf.nc"].make(tmp_path / "sound.nc")
    damage(tmp_path / "sound.nc", tmp_path / "hang.nc", 95)  # HDF5 never ends with this one
    monkeypatch.setattr(_look, "SECONDS", 3.0)
    with pytest.raises(DataError, match=r"hang\.nc.*(does not come to an end|damaged)"):
        open_dataset(tmp_path / "hang.nc")
    open_dataset(tmp_path / "sound.nc").close()  # the next file is looked at by another process


def test_an_error_that_nobody_expected_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(*_: object) -> None:
        raise KeyError("parts")

    monkeypatch.setattr("worldloom.demo.main", broken)
    assert main(["demo"]) == 1
    told = capsys.readouterr().err
    assert told == (
        "worldloom: error: unexpected KeyError in `worldloom demo`: 'parts'; --debug shows where\n"
    )
    with pytest.raises(KeyError):
        main(["--debug", "demo"])
