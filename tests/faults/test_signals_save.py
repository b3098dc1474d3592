"""Issue 24, line 1.6: SIGTERM, SIGHUP and named signals save a run, and show in the exit code."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import told_to_end

import worldloom as wl
from worldloom import _signals, cli, store
from worldloom.cli import _main
from worldloom.cli._command import Command
from worldloom.loop._interrupt import catch_interrupt

SCRIPT = [sys.executable, told_to_end.__file__]
LAUNCH = [sys.executable, "-m", "worldloom.cli", "launch", "-n", "2", "--", *SCRIPT]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> wl.RunResult:
    return told_to_end.go(str(tmp_path_factory.mktemp("whole")))


class Tell(wl.NoProgress):
    """Sends this process signals when so many steps are done."""

    def __init__(self, at: int, *numbers: int):
        self.at, self.numbers = at, numbers

    def update(self, done: int) -> None:
        if done >= self.at:
            numbers, self.numbers = self.numbers, ()
            for number in numbers:
                signal.raise_signal(number)


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """A command without options."""


def saved(folder: Path) -> int | None:
    return store.Snapshots(folder / "state").latest()


def start(command: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*command, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "at 50" in line:
            return process
    raise AssertionError(process.communicate()[1])


def goes_on(folder: Path, whole: wl.RunResult, kind: str = "own") -> bool:
    result = told_to_end.go(str(folder), kind)
    return bool(
        (result.state == whole.state).all() and (result.records[:] == whole.records[:]).all()
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU"])
def test_a_signal_saves_the_last_whole_chunk(name: str, whole, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("WORLDLOOM_SAVE_SIGNALS", "usr1, SIGXCPU")
    number, before = signal.Signals[name], signal.getsignal(signal.Signals[name])
    with pytest.raises(wl.RunInterrupted, match=r"after \d+ of 1000 steps; saved in") as caught:
        told_to_end.go(str(tmp_path), progress=Tell(130, number))
    assert caught.value.signal == number
    assert saved(tmp_path) == caught.value.result.steps
    assert 130 <= caught.value.result.steps <= 150
    assert signal.getsignal(number) == before
    assert goes_on(tmp_path, whole)


def test_it_may_come_more_than_once(whole, tmp_path: Path):
    """`timeout` signals a process, and then its group; a closing terminal does likewise."""
    with pytest.raises(wl.RunInterrupted) as caught:
        told_to_end.go(str(tmp_path), progress=Tell(130, signal.SIGTERM, signal.SIGTERM))
    assert caught.value.signal == signal.SIGTERM
    assert saved(tmp_path) == caught.value.result.steps


def test_a_signal_in_the_last_chunk_is_not_lost(tmp_path: Path):
    with pytest.raises(wl.RunInterrupted, match="1000 of 1000 steps") as caught:
        told_to_end.go(str(tmp_path), progress=Tell(1000, signal.SIGTERM))
    assert caught.value.result.steps == saved(tmp_path) == 1000


def test_a_handler_of_the_program_is_called_when_all_is_saved(tmp_path: Path):
    found = []
    before = signal.signal(signal.SIGTERM, lambda *_: found.append(saved(tmp_path)))
    try:
        with pytest.raises(wl.RunInterrupted) as caught:
            told_to_end.go(str(tmp_path), progress=Tell(130, signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == [caught.value.result.steps]


def test_a_signal_that_is_to_be_ignored_is_ignored(whole, tmp_path: Path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = told_to_end.go(str(tmp_path), progress=Tell(130, signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    np.testing.assert_array_equal(result.state, whole.state)


@pytest.mark.parametrize("word", ["KILL", "SIGNONE", "15", "USR1;USR2", "SEGV"])
def test_a_word_that_names_no_signal(word: str, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("WORLDLOOM_SAVE_SIGNALS", f"USR1 {word}")
    with pytest.raises(_signals.SignalError, match=rf"WORLDLOOM_SAVE_SIGNALS=.*'{word}' is no"):
        told_to_end.go(str(tmp_path))
    with pytest.raises(wl.WorldloomError, match="WORLDLOOM_SAVE_SIGNALS"):
        wl.mesh.launch(["true"], processes=1)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_script_that_catches_nothing_ends_with_the_signal(name: str, whole, tmp_path: Path):
    process = start([*SCRIPT, "own"], tmp_path)
    process.send_signal(signal.Signals[name])
    out, err = process.communicate(timeout=100)
    assert process.returncode == 128 + signal.Signals[name], err
    assert "done" not in out
    (steps,) = re.findall(r"RunInterrupted: interrupted.* after (\d+) of 1000 steps; saved", err)
    assert saved(tmp_path) == int(steps) >= 50
    assert goes_on(tmp_path, whole)


def test_a_command_of_the_shell_ends_with_the_signal(capsys, monkeypatch):
    def run(config: object) -> int:
        with catch_interrupt() as interrupt:
            signal.raise_signal(signal.SIGHUP)
        error = wl.RunInterrupted("interrupted by SIGHUP; saved")
        error.signal = signal.Signals(interrupt.signal)
        raise error

    monkeypatch.setitem(_main.COMMANDS, "told", Command("told", "Ends.", NoOptions, run))
    assert cli.main(["told"]) == 129
    assert capsys.readouterr().err == "worldloom: interrupted by SIGHUP; saved\n"


@pytest.mark.parametrize(
    ("name", "who", "kind"), [("SIGTERM", "launcher", "own"), ("SIGUSR1", "one worker", "zarr")]
)
def test_a_launched_run_saves_once_for_all(name: str, who: str, kind: str, whole, tmp_path: Path):
    """And goes on with one process."""
    process = start([*LAUNCH, kind], tmp_path, WORLDLOOM_SAVE_SIGNALS="USR1")
    number = signal.Signals[name]
    if who == "launcher":
        process.send_signal(number)
    else:
        children = psutil.Process(process.pid).children()
        workers = [child for child in children if told_to_end.__file__ in child.cmdline()]
        # The last: the first is not the only one that must hear it.
        max(workers, key=lambda worker: worker.pid).send_signal(number)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 128 + number, err
    assert "done" not in out
    steps = set(re.findall(r"interrupted.* after (\d+) of 1000 steps; saved", err))
    assert steps == {str(saved(tmp_path))}
    assert goes_on(tmp_path, whole, kind)
