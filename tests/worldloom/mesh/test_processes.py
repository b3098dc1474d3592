"""Several processes for real, on the loopback interface."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from worldloom import mesh

HERE = Path(__file__).parent
PATH = [str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(PATH)}


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> dict[str, np.ndarray]:
    """The three worlds on one device of one process."""
    out = tmp_path_factory.mktemp("one") / "out.npz"
    subprocess.run(
        [sys.executable, str(HERE / "program.py"), str(out)],
        env=ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "1"},
        check=True,
        timeout=240,
    )
    return dict(np.load(out))


def compare(found, reference):
    """Bit for bit, but for the weights: their gradient is a sum over devices."""
    names = set(reference) - {"devices", "processes"}
    assert set(found) - {"devices", "processes"} == names
    assert {name.split("/")[0] for name in names} == {"grid", "vortex", "weights"}
    for name in names - {"weights"}:
        assert found[name].dtype == reference[name].dtype
        np.testing.assert_array_equal(found[name], reference[name], err_msg=name)
    np.testing.assert_allclose(found["weights"], reference["weights"], rtol=2e-6)
    np.testing.assert_allclose(found["weights"], [1, -2, 3, 0.5], atol=0.05)


def test_one_device_splits_and_copies_alike(reference):
    assert reference["devices"] == 1
    for name, value in reference.items():
        if "/split" in name:
            np.testing.assert_array_equal(value, reference[name.replace("/split", "/each")])


def test_two_devices_compute_what_one_does(reference, tmp_path):
    load("program").main(str(tmp_path / "out.npz"))
    found = dict(np.load(tmp_path / "out.npz"))
    assert found["devices"] == 2
    compare(found, reference)


def test_two_processes_compute_what_one_does(reference, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    out = tmp_path / "out.npz"
    command = [sys.executable, str(HERE / "program.py"), str(out)]
    assert mesh.launch(command, processes=2, timeout=240) == 0
    printed = capfd.readouterr().out
    assert all(f"[{i}] done with 1 local devices" in printed for i in (0, 1))
    found = dict(np.load(out))
    assert (found["devices"], found["processes"]) == (2, 2)
    compare(found, reference)


def start_pair(way: str, environments: list[dict[str, str]], *arguments: str):
    return [
        subprocess.Popen(
            [sys.executable, str(HERE / "peer.py"), way, *(a.format(i) for a in arguments)],
            env=ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "1"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, environment in enumerate(environments)
    ]


def finish(pair):
    """Both end soon after the failure."""
    try:
        # Without a time limit of our own JAX waits for five minutes here.
        ends = [process.communicate(timeout=120) for process in pair]
        return [(process.returncode, *end) for process, end in zip(pair, ends, strict=True)]
    finally:
        for process in pair:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


LOST = "another process of this run has died, so this one ends too"


def test_given_addresses_and_a_peer_that_is_killed():
    pair = start_pair("kill", [{}, {}], f"127.0.0.1:{free_port()}", "{}")
    (code0, _, err0), (code1, out1, _) = finish(pair)
    assert "failing" in out1
    assert code1 == -signal.SIGKILL
    assert code0 == 1, err0
    assert LOST in err0


def test_processes_of_slurm_and_a_peer_that_raises():
    slurm = {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": "2",
        "SLURM_STEP_NUM_TASKS": "2",
    }
    pair = start_pair(
        "raise", [slurm | {"SLURM_PROCID": i, "SLURM_LOCALID": i} for i in ("0", "1")]
    )
    (code0, _, err0), (code1, _, err1) = finish(pair)
    assert "RuntimeError: this process has a bug" in err1
    assert LOST not in err1
    assert code1 == 1
    assert code0 == 1, err0
    assert LOST in err0


@pytest.mark.slow
@pytest.mark.parametrize(("way", "code"), [("term", -signal.SIGTERM), ("abort", 9)])
def test_processes_of_open_mpi_and_a_peer_that_is_told_to_end_or_aborts(way, code):
    mpi = {
        "OMPI_MCA_orte_hnp_uri": f"{os.getpid() * 4096}.0;tcp://127.0.0.1:34911",
        "OMPI_COMM_WORLD_SIZE": "2",
    }
    ranks = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    pair = start_pair(way, [mpi | dict.fromkeys(ranks, i) for i in ("0", "1")])
    (code0, _, err0), (code1, _, _) = finish(pair)
    assert code1 == code
    assert code0 == 1, err0
    assert LOST in err0


def test_start_alone_does_nothing_even_late():
    jax.devices()
    mesh.start()
    assert not jax.distributed.is_initialized()


def test_start_alone_in_a_pod_that_is_no_indexed_job_does_nothing(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    mesh.start()
    assert not jax.distributed.is_initialized()


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"SLURM_STEP_NUM_TASKS": "4"}, r"Slurm \(SLURM_STEP_NUM_TASKS=4\)"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, r"Open MPI \(OMPI_COMM_WORLD_SIZE=2\)"),
        ({"JOB_COMPLETION_INDEX": "0"}, r"Kubernetes \(JOB_COMPLETION_INDEX=0\)"),
        ({"JAX_COORDINATOR_ADDRESS": "a:1"}, "JAX_COORDINATOR_ADDRESS=a:1"),
        ({"WORLDLOOM_CLUSTER": "mpi4py", "OMPI_COMM_WORLD_SIZE": "2"}, "WORLDLOOM_CLUSTER=mpi4py"),
        (
            {"WORLDLOOM_COORDINATOR": "a:1", "WORLDLOOM_PROCESSES": "2", "WORLDLOOM_PROCESS": "0"},
            "WORLDLOOM_COORDINATOR=a:1",
        ),
    ],
)
def test_starting_after_the_backend_is_a_named_error(monkeypatch, environment, words):
    jax.devices()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(mesh.StartError, match=f"came too late to join the processes of {words}"):
        mesh.start()


def test_one_launched_process_has_nothing_to_join(monkeypatch):
    for name, value in {"COORDINATOR": "127.0.0.1:1", "PROCESSES": "1", "PROCESS": "0"}.items():
        monkeypatch.setenv(f"WORLDLOOM_{name}", value)
    monkeypatch.setenv("WORLDLOOM_DEVICES_PER_PROCESS", "1")
    mesh.start()
    assert not jax.distributed.is_initialized()


def test_a_damaged_launch_environment_is_a_named_error(monkeypatch):
    monkeypatch.setenv("WORLDLOOM_COORDINATOR", "127.0.0.1:1")
    monkeypatch.setenv("WORLDLOOM_PROCESSES", "two")
    with pytest.raises(mesh.StartError, match="WORLDLOOM_PROCESSES='two' is not a number"):
        mesh.start()


def test_a_process_alone_aborts_as_it_would_exit():
    with pytest.raises(SystemExit) as caught:
        mesh.abort(4)
    assert caught.value.code == 4


def test_half_an_address_is_a_named_error():
    with pytest.raises(mesh.StartError, match=r"go together.* processes=2, process=None"):
        mesh.start("127.0.0.1:1", processes=2)


def test_cpu_devices_cannot_change_once_the_backend_runs():
    jax.devices()
    mesh.use_cpu_devices(2)  # As they are: nothing to change.
    with pytest.raises(mesh.StartError, match=r"use_cpu_devices\(5\) came too late.* with 2 CPU"):
        mesh.use_cpu_devices(5)
    with pytest.raises(mesh.StartError, match="at least 1"):
        mesh.use_cpu_devices(0)


def test_cpu_devices_and_a_cluster_that_jax_cannot_find():
    code = (
        "import jax; from worldloom import mesh\n"
        "mesh.use_cpu_devices(3); print(jax.config.jax_num_cpu_devices)\n"
        "try: mesh.start(timeout=1)\n"
        "except mesh.StartError as error: print(error)\n"
        "print(jax.device_count())"
    )
    # Open MPI 5 no longer sets what JAX looks for: better an error than two lonely processes.
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT | {"OMPI_COMM_WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    first, error, last = done.stdout.strip().split("\n")
    assert (first, last) == ("3", "3")
    assert "cannot join the processes of Open MPI (OMPI_COMM_WORLD_SIZE=2)" in error
    assert "mesh.start(address, processes=..., process=...)" in error
