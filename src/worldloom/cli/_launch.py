"""`worldloom launch`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro

from worldloom.cli._command import Command, UsageError


@dataclasses.dataclass(frozen=True)
class Launch:
    """What `worldloom launch` does."""

    processes: Annotated[int, tyro.conf.arg(aliases=("-n",))] = 2
    """How many processes to start."""

    devices_per_process: int = 1
    """CPU devices that JAX shows in each; with accelerators, how many each gets."""

    timeout: float | None = None
    """Seconds after which all processes are ended."""

    command: Annotated[
        tuple[str, ...],
        tyro.conf.arg(metavar="-- COMMAND ...", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = ()
    """The program and its arguments: the words after `--`."""


def run(config: Launch) -> int:
    """Start the processes and wait for them; the exit code is that of the first to fail."""
    if not config.command:
        raise UsageError(
            "give the command after `--`, as in: worldloom launch -n 2 -- python train.py"
        )
    from worldloom import mesh

    return mesh.launch(
        config.command,
        processes=config.processes,
        devices_per_process=config.devices_per_process,
        timeout=config.timeout,
    )


COMMAND = Command(
    "launch",
    "Run one program as several processes that work together, on this machine.",
    Launch,
    run,
    examples=(
        ("worldloom launch -n 2 -- python train.py", "two processes, one device each"),
        ("worldloom launch -n 2 --devices-per-process 4 -- python train.py", "eight devices"),
        ("worldloom launch -n 2 -- worldloom trace run flow.pvd", "particles split over two"),
    ),
    details="""
The program calls worldloom.mesh.start(), which joins the processes. When one of them fails, the
others are ended, and its exit code is the one you get.""",
    rest="command",
)
