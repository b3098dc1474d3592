"""`worldloom demo`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from worldloom.cli._command import Command
from worldloom.cli._output import OutputFolder


@dataclasses.dataclass(frozen=True)
class Demo:
    """What `worldloom demo` does."""

    out: Annotated[Path, OutputFolder()] = Path("out")
    """Folder for the report and everything it is made from."""


def run(config: Demo) -> None:
    """Run the demo into the folder. The last line it prints is the path of the page."""
    from worldloom import demo

    demo.main(config.out)


COMMAND = Command(
    "demo",
    "Run a small world batched by thousands, and leave a page that shows it.",
    Demo,
    run,
    examples=(
        ("worldloom demo", "leaves out/report.html"),
        ("worldloom demo --out tour", "leaves tour/report.html"),
    ),
)
