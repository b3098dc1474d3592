"""`worldloom doctor`."""

from __future__ import annotations

import dataclasses

from worldloom.cli._command import Command


@dataclasses.dataclass(frozen=True)
class Doctor:
    """What `worldloom doctor` does."""

    json: bool = False
    """Print a JSON object instead of text, for scripts."""


def run(config: Doctor) -> int:
    """Print the diagnosis; 1 where the self-check found something wrong."""
    from worldloom.doctor import examine

    diagnosis = examine()
    print(diagnosis.to_json() if config.json else diagnosis)
    return 0 if diagnosis.healthy else 1


COMMAND = Command(
    "doctor",
    "Show versions, devices, memory and cache, and check that JAX computes right here.",
    Doctor,
    run,
    examples=(
        ("worldloom doctor", "exit code 0: all is well; 1: the last lines say what is wrong"),
        ("worldloom doctor --json > doctor.json", "the same for a script, or for a bug report"),
    ),
)
