"""`worldloom acbo bench`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from worldloom.cli import Command, OutputFolder


@dataclasses.dataclass(frozen=True)
class Bench:
    """What `worldloom acbo bench` does: `worldloom bench acbo`."""

    rivals: bool = False
    """Also run what others wrote: installed once, each into an environment of its own."""

    quick: bool = False
    """Few rounds and small sizes."""

    out: Annotated[Path, OutputFolder()] = Path("out/bench")
    """Folder for the JSON, the picture and the report page."""


def run(config: Bench) -> int:
    """Run the benchmark scripts of ACBO that a checkout has; 1 if one failed."""
    from worldloom.cli import _bench

    told = _bench.Bench(names=("acbo",), rivals=config.rivals, quick=config.quick, out=config.out)
    return _bench.run(told)


COMMAND = Command(
    "bench",
    "Measure how fast training and discovery are, as `worldloom bench acbo` does.",
    Bench,
    run,
    examples=(
        ("worldloom acbo bench --quick", "the scripts of a checkout, in a hurry"),
        ("worldloom acbo bench --rivals", "with what others wrote"),
    ),
)
