"""Every command tries its outputs before it works: found by reflection, so none is forgotten."""

from __future__ import annotations

import dataclasses
import shutil
import time
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from specimens import SPECIMENS

from worldloom._systems import SYSTEMS
from worldloom.cli import Command, main
from worldloom.cli._main import COMMANDS
from worldloom.cli._output import OutputFolder, check_room, outputs_of

INPUTS = {"data", "run", "task", "files", "read", "surrogate", "network", "file", "seeds.file"}
# What a command needs besides its output, so that its words are right.
NEEDS = {
    "arc render": ["007bbfb7"],
    "arc replay": ["run.loom"],
    "trace run": ["flow.nc"],
    "trace ftle": ["flow.nc", "--time-span", "0", "1"],
    "trace view": ["flow.nc"],
    "acbo discover": ["samples.csv"],
    "report": ["speed.json"],
    "profile": [],
}
ENDINGS = {
    "arc render": (".svg", ".png", ".gif"),
    "trace run": (".nc", ".zarr", ".pvd", ".vtp", ".html"),
    "trace ftle": (".png", ".svg", ".pdf", ".nc"),
}


def commands() -> Iterator[tuple[str, Command]]:
    yield from COMMANDS.items()
    for system in SYSTEMS:
        for command in system.load("cli").COMMANDS:
            yield f"{system.name} {command.name}", command


OUTPUTS = [
    pytest.param(name, option, mark, id=f"{name} --{option}")
    for name, command in commands()
    for option, mark, _ in outputs_of(command.config)
]


@pytest.fixture(autouse=True)
def _no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A folder of our own, with inputs that are only names: whoever reads them fails."""
    monkeypatch.chdir(tmp_path)
    for name in ("run.loom", "flow.nc", "samples.csv", "speed.json"):
        Path(name).write_text("never read")


def words_for(name: str, option: str, path: Path | str) -> list[str]:
    words = [*name.split(), *NEEDS.get(name, [])]
    words += [f"--{option.replace('_', '-')}", str(path)]
    return [*words, "--", "nothing.py"] if name == "profile" else words


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    began = time.process_time()
    assert main(words) == 2
    # Seconds of the processor: no compilation, no training.
    assert time.process_time() - began < 2
    told = capsys.readouterr().err
    assert told.startswith("worldloom: error: --"), told
    return told


def endings(name: str, mark: object) -> tuple[str, ...]:
    return ("",) if isinstance(mark, OutputFolder) else ENDINGS.get(name, (".html",))


def test_each_path_of_a_command_is_an_input_or_is_checked():
    for name, command in commands():
        checked = {option for option, _, _ in outputs_of(command.config)}
        for field, kind in _paths(command.config, ""):
            assert field in checked or field in INPUTS, (
                f"{name} --{field} ({kind}): mark it with OutputFile or OutputFolder, or list it "
                "among the inputs here"
            )


def _paths(cls: type, prefix: str) -> Iterator[tuple[str, object]]:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            yield from _paths(kind, f"{prefix}{field.name}.")
        elif "Path" in str(kind):
            yield f"{prefix}{field.name}", kind


@pytest.mark.parametrize(("name", "option", "mark"), OUTPUTS)
def test_a_missing_folder_stops_it(name, option, mark, capsys):
    if option == "checkpoint":  # the one exception
        Path("file").touch()
        assert "is a file, and a folder" in refused(words_for(name, option, "file/x/y"), capsys)
        return
    for ending in endings(name, mark):
        told = refused(words_for(name, option, f"nodir/x{ending}"), capsys)
        assert "there is no folder 'nodir'" in told
        assert not Path("nodir").exists()


@pytest.mark.parametrize(("name", "option", "mark"), OUTPUTS)
def test_the_wrong_kind_of_place_stops_it(name, option, mark, capsys):
    for ending in endings(name, mark):
        place = Path(f"place{ending}")
        if isinstance(mark, OutputFolder):
            place.write_text("precious")
        else:
            place.mkdir()
            (place / "notes.txt").write_text("precious")
        before = sorted(str(p) for p in Path().rglob("*"))
        refused(words_for(name, option, place), capsys)
        assert sorted(str(p) for p in Path().rglob("*")) == before
        assert (place if place.is_file() else place / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize(("name", "option", "mark"), OUTPUTS)
def test_a_place_that_cannot_be_written_stops_it(name, option, mark, capsys):
    for ending in endings(name, mark):
        told = refused(words_for(name, option, f"/proc/x{ending}"), capsys)
        assert "/proc/x" in told
        refused(words_for(name, option, "y" * 250 + ending), capsys)
        Path("file").touch()
        told = refused(words_for(name, option, f"file/x{ending}"), capsys)
        assert "no folder" in told or "is a file" in told


@pytest.mark.parametrize(("name", "option", "mark"), OUTPUTS)
def test_too_little_room_stops_it(name, option, mark, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    for ending in endings(name, mark):
        told = refused(words_for(name, option, f"x{ending}"), capsys)
        assert "too little room" in told


@pytest.mark.parametrize("name", ["arc replay", "trace run", "trace ftle", "report"])
def test_what_is_read_is_not_written_over(name: str, capsys: pytest.CaptureFixture[str]):
    source = NEEDS[name][0]
    told = refused(words_for(name, "out", source), capsys)
    assert "also what is read" in told
    assert Path(source).read_text() == "never read"


def test_the_room_for_tracks_is_estimated_before_they_are_computed(tmp_path, capsys, monkeypatch):
    SPECIMENS["classic.nc"].make(tmp_path / "true.nc")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 0, 2 * 2**20))
    words = ["trace", "run", "true.nc", "-o", "x.vtp", "--seeds.count", "100000"]
    assert main([*words, "--n-timesteps", "1000", "--save-every", "1"]) == 2
    told = capsys.readouterr().err
    assert "too little room for 'x.vtp': about 1.2" in told
    assert "2.00 MiB are free" in told


def test_folders_of_a_default_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("worldloom.cli._bench.find_groups", dict)
    assert main(["bench", "--list"]) == 0  # out/bench, and `out` is not there
    check_room(tmp_path / "out" / "bench", 1)
