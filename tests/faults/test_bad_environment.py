"""Variables of the environment that hold nonsense, and ports that are taken: one sentence each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worldloom import mesh

JOINED = {"WORLDLOOM_PROCESSES": "2", "WORLDLOOM_PROCESS": "0"}
COMMAND = ["trace", "run", "nowhere.nc", "-o", "x.nc"]


def told(words: list[str], cwd: str, **environ: str) -> str:
    """What a command says in an environment with these variables; it must fail with a sentence."""
    ended = subprocess.run(
        [sys.executable, "-m", "worldloom.cli", *words],
        env=os.environ | environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    assert "error: " in ended.stderr
    assert "unexpected" not in ended.stderr, ended.stderr
    return ended.stderr


LAUNCHED = [
    ({"WORLDLOOM_COORDINATOR": "nonsense", **JOINED}, "nonsense"),
    ({"WORLDLOOM_COORDINATOR": "host:", **JOINED}, "HOST:PORT"),
    ({"WORLDLOOM_COORDINATOR": ":1", **JOINED}, "HOST:PORT"),
    ({"WORLDLOOM_COORDINATOR": "host:99999999", **JOINED}, "HOST:PORT"),
    ({"WORLDLOOM_COORDINATOR": "h:1", "WORLDLOOM_PROCESSES": "two"}, "WORLDLOOM_PROCESSES"),
    ({"WORLDLOOM_COORDINATOR": "h:1", "WORLDLOOM_PROCESSES": "0"}, "WORLDLOOM_PROCESSES"),
    ({"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_PROCESS": "-1"}, "WORLDLOOM_PROCESS"),
    ({"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_PROCESS": "7"}, "process 7 of 2"),
    (
        {"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_DEVICES_PER_PROCESS": "x"},
        "WORLDLOOM_DEVICES_PER_PROCESS",
    ),
]


@pytest.mark.parametrize(("environ", "named"), LAUNCHED)
def test_nonsense_of_a_launch_is_named(
    environ: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(mesh.StartError, match=named):
        mesh.start()


# What JAX or Equinox reads, when they are imported or joined: each in a process of its own.
OTHERS = [
    ({"JAX_PLATFORMS": "martian"}, ["demo"]),
    ({"EQX_ON_ERROR": "martian"}, ["demo"]),
    ({"SLURM_STEP_NUM_TASKS": "many"}, COMMAND),
    pytest.param({"WORLDLOOM_COORDINATOR": "nonsense", **JOINED}, COMMAND, marks=pytest.mark.slow),
    pytest.param({"WORLDLOOM_CLUSTER": "martian"}, COMMAND, marks=pytest.mark.slow),
    pytest.param({"OMPI_COMM_WORLD_SIZE": "3.5"}, COMMAND, marks=pytest.mark.slow),
    pytest.param({"JOB_COMPLETION_INDEX": "first"}, COMMAND, marks=pytest.mark.slow),
    pytest.param({"JAX_COORDINATOR_ADDRESS": "nonsense"}, COMMAND, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("environ", "words"), OTHERS)
def test_nonsense_of_others_is_named(environ: dict[str, str], words: list[str], tmp_path: Path):
    assert next(iter(environ)) in told(words, str(tmp_path), **environ)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody else listens."""
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken_is_named(taken: int):
    address = f"127.0.0.1:{taken}"
    with pytest.raises(mesh.StartError, match=f"port {taken} of '{address}'"):
        mesh.start(address, processes=2, process=0)


def test_an_address_without_a_port_is_refused_in_python():
    for address in ("nonsense", "host:port", "host:0", ""):
        with pytest.raises(mesh.StartError, match="HOST:PORT"):
            mesh.start(address, processes=2, process=0)
    with pytest.raises(mesh.StartError, match="process 5 of 2"):
        mesh.start("host:1", processes=2, process=5)
