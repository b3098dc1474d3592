"""Joining the processes of one run, and leaving them."""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback
from types import TracebackType
from typing import NoReturn

import jax

from worldloom._signals import exit_code
from worldloom._way import way
from worldloom.mesh._errors import StartError

# Set by the launcher for the processes it starts; or by hand, then without the last.
COORDINATOR = "WORLDLOOM_COORDINATOR"
PROCESSES = "WORLDLOOM_PROCESSES"
PROCESS = "WORLDLOOM_PROCESS"
DEVICES = "WORLDLOOM_DEVICES_PER_PROCESS"

# Names one of JAX's cluster detection methods, for programs that call `start` without arguments.
CLUSTER = "WORLDLOOM_CLUSTER"

# What tells that a scheduler started this process as one of several. Each holds a count, but
# for the last: every pod has Kubernetes' variables, only a pod of an indexed job this one.
_COUNTS = {"Slurm": "SLURM_STEP_NUM_TASKS", "Open MPI": "OMPI_COMM_WORLD_SIZE"}
_KUBERNETES_INDEX = "JOB_COMPLETION_INDEX"

# A peer that is silent for so long is dead: JAX's own limit is 100 seconds.
_HEARTBEAT_SECONDS = 30

_SIGNS_OF_A_LOST_PEER = ("Gloo", "heartbeat", "coordination service", "Connection closed by peer")


def start(
    address: str | None = None,
    *,
    processes: int | None = None,
    process: int | None = None,
    cluster: str | None = None,
    timeout: int = 300,
) -> None:
    """Join the other processes of this run. Call it first, before any computation.

    Without arguments it finds out by itself: processes started by `worldloom launch`, by Slurm,
    by Open MPI, or as an indexed Kubernetes job. On its own a process has nothing to join, and
    nothing happens; so a program can always call it. Calling it again does nothing.

    From then on an exception that nobody catches ends this process at once, without the wait
    for the others that JAX does at exit: they see the connection close, and end too.

    **Arguments:**

    - `address`: `"host:port"` of process 0, reachable from all; with `processes` and `process`.
    - `processes`: how many processes there are.
    - `process`: which one this is, from 0.
    - `cluster`: the name of one of JAX's cluster detection methods, to use that and no other:
      `"slurm"`, `"ompi"`, or `"mpi4py"` for other MPIs. The environment variable
      `WORLDLOOM_CLUSTER` says the same from outside.
    - `timeout`: seconds to wait for the others.

    ```python
    from worldloom import mesh

    mesh.start()
    ```
    """
    if jax.distributed.is_initialized():
        return
    given = (address, processes, process)
    if any(value is not None for value in given):
        if any(value is None for value in given):
            raise StartError(
                "address, processes and process go together, got "
                f"address={address!r}, processes={processes!r}, process={process!r}."
            )
        _join(address, processes, process, None, timeout, "the given addresses")
    elif cluster is not None:
        _join(None, None, None, cluster, timeout, f"cluster={cluster!r}")
    elif COORDINATOR in os.environ:
        _join_launched(timeout)
    elif CLUSTER in os.environ:
        name = os.environ[CLUSTER]
        _join(None, None, None, name, timeout, f"{CLUSTER}={name}")
    elif (scheduler := _scheduler()) is not None:
        _join(None, None, None, None, timeout, scheduler)


def abort(code: int = 1) -> NoReturn:
    """End this process with exit code `code`, without waiting for the others of the run.

    At a normal exit the processes of a run wait for each other, up to five minutes. A process
    that gives up must not: it would wait for those that wait for its results. For an uncaught
    exception this happens by itself; use `abort` in the place of `sys.exit` with an error. Alone,
    a process exits as with `sys.exit`.
    """
    if not jax.distributed.is_initialized():
        sys.exit(code)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _scheduler() -> str | None:
    """Who started this process as one of several, or None."""
    for name, variable in _COUNTS.items():
        if os.environ.get(variable, "1") not in ("", "0", "1"):
            return f"{name} ({variable}={os.environ[variable]})"
    if _KUBERNETES_INDEX in os.environ:
        return f"Kubernetes ({_KUBERNETES_INDEX}={os.environ[_KUBERNETES_INDEX]})"
    if "JAX_COORDINATOR_ADDRESS" in os.environ:
        return f"JAX_COORDINATOR_ADDRESS={os.environ['JAX_COORDINATOR_ADDRESS']}"
    return None


def _join_launched(timeout: int) -> None:
    """Join the processes of `mesh.launch`, or those whose variables somebody has set by hand."""
    processes, process = _number(PROCESSES), _number(PROCESS)
    if processes == 1:
        return
    address = os.environ[COORDINATOR]
    if DEVICES not in os.environ:
        _join(address, processes, process, None, timeout, f"{COORDINATOR}={address}")
        return
    # Accelerators are dealt out in turn. On CPU the launcher has set the number of devices.
    devices = _number(DEVICES)
    local = list(range(process * devices, (process + 1) * devices))
    _join(address, processes, process, None, timeout, "worldloom launch", local, bind=address)


def _port(address: str, reason: str) -> int:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise StartError(f"{reason}: {address!r} is not HOST:PORT, as in 10.0.0.1:4321")
    return int(port)


def _check_port(port: int, address: str) -> None:
    """Refuse a port that another program listens at: JAX would say that a server did not start."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise StartError(
                f"process 0 cannot listen at port {port} of {address!r}: {error.strerror}. Choose "
                "another port, the same for all processes"
            ) from error


def _number(variable: str) -> int:
    text = os.environ.get(variable, "")
    if not text.isdecimal() or (variable != PROCESS and int(text) < 1):
        raise StartError(
            f"{COORDINATOR} is set but {variable}={text!r} is not a number that fits. Both are set "
            "by worldloom launch: start this process through it, set both, or unset them."
        )
    return int(text)


def _join(
    address: str | None,
    processes: int | None,
    process: int | None,
    cluster: str | None,
    timeout: int,
    reason: str,
    local_devices: list[int] | None = None,
    bind: str | None = None,
) -> None:
    if address is not None:
        port = _port(address, reason)
        if not 0 <= (process or 0) < (processes or 1):
            raise StartError(
                f"{reason}: process {process} of {processes}; expected 0 to {(processes or 1) - 1}"
            )
        if process == 0:
            _check_port(port, address)
    # JAX's preemption service would swallow SIGTERM: a process told to end would not.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator_address=address,
            num_processes=processes,
            process_id=process,
            local_device_ids=local_devices,
            cluster_detection_method=cluster,
            initialization_timeout=timeout,
            heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
            coordinator_bind_address=bind,
        )
    except Exception as error:  # JAX reads variables of schedulers, and takes them as they are
        if "must be called before" in str(error):
            raise StartError(
                f"mesh.start() came too late to join the processes of {reason}: JAX's backend is "
                "already running. Call it before the first computation, straight after the "
                "imports."
            ) from error
        raise StartError(
            f"cannot join the processes of {reason}: {type(error).__name__}: {error}. "
            + way(
                "Give mesh.start(address, processes=..., process=...) by hand if need be.",
                f"Set {COORDINATOR}=HOST:PORT, {PROCESSES} and {PROCESS} by hand if need be.",
            )
        ) from error
    sys.excepthook = end_with_message


def end_with_message(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an exception that nobody caught, say whether a lost peer is behind it, and end."""
    traceback.print_exception(kind, error, trace)
    if any(sign in str(error) for sign in _SIGNS_OF_A_LOST_PEER):
        print(
            "worldloom: another process of this run has died, so this one ends too. If the run "
            "keeps checkpoints, start it again to resume from the last one, with the same or "
            "another number of processes.",
            file=sys.stderr,
        )
    abort(exit_code(error) if issubclass(kind, KeyboardInterrupt) else 1)
