"""Variables of the environment that hold nonsense, and ports that are taken: one sentence each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

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


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"WORLDLOOM_COORDINATOR": "nonsense", **JOINED}, "nonsense"),
        ({"WORLDLOOM_COORDINATOR": "host:", **JOINED}, "HOST:PORT"),
        ({"WORLDLOOM_COORDINATOR": ":1", **JOINED}, "HOST:PORT"),
        ({"WORLDLOOM_COORDINATOR": "host:99999999", **JOINED}, "HOST:PORT"),
        ({"WORLDLOOM_COORDINATOR": "h:1", "WORLDLOOM_PROCESSES": "two"}, "WORLDLOOM_PROCESSES"),
        ({"WORLDLOOM_COORDINATOR": "h:1", "WORLDLOOM_PROCESSES": "0"}, "WORLDLOOM_PROCESSES"),
        ({"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_PROCESS": "-1"}, "PROCESS"),
        ({"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_PROCESS": "7"}, "process 7 of 2"),
        (
            {"WORLDLOOM_COORDINATOR": "h:1", **JOINED, "WORLDLOOM_DEVICES_PER_PROCESS": "x"},
            "WORLDLOOM_DEVICES_PER_PROCESS",
        ),
        ({"WORLDLOOM_CLUSTER": "martian"}, "WORLDLOOM_CLUSTER"),
        ({"SLURM_STEP_NUM_TASKS": "many"}, "SLURM_STEP_NUM_TASKS"),
        ({"OMPI_COMM_WORLD_SIZE": "3.5"}, "OMPI_COMM_WORLD_SIZE"),
        ({"JOB_COMPLETION_INDEX": "first"}, "JOB_COMPLETION_INDEX"),
        ({"JAX_COORDINATOR_ADDRESS": "nonsense"}, "JAX_COORDINATOR_ADDRESS"),
        ({"JAX_PLATFORMS": "martian"}, "martian"),
        ({"EQX_ON_ERROR": "martian"}, "EQX_ON_ERROR"),
    ],
    ids=lambda value: next(reversed(value.items()))[0] if isinstance(value, dict) else value,
)
def test_nonsense_is_named(environ: dict[str, str], named: str, tmp_path):
    words = ["demo"] if not any("WORLDLOOM" in k or k in _SCHEDULED for k in environ) else COMMAND
    assert named in told(words, str(tmp_path), **environ)


_SCHEDULED = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "JOB_COMPLETION_INDEX")
_SCHEDULED += ("JAX_COORDINATOR_ADDRESS",)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody else listens."""
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken_is_named(taken: int, tmp_path):
    address = f"127.0.0.1:{taken}"
    said = told(COMMAND, str(tmp_path), WORLDLOOM_COORDINATOR=address, **JOINED)
    assert f"port {taken}" in said
    assert "another port" in said
    with pytest.raises(mesh.StartError, match=f"port {taken} of '{address}'"):
        mesh.start(address, processes=2, process=0)


def test_an_address_without_a_port_is_refused_in_python():
    for address in ("nonsense", "host:port", "host:0", ""):
        with pytest.raises(mesh.StartError, match="HOST:PORT"):
            mesh.start(address, processes=2, process=0)
    with pytest.raises(mesh.StartError, match="process 5 of 2"):
        mesh.start("host:1", processes=2, process=5)
