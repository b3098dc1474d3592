"""`worldloom bench`."""

from __future__ import annotations

import dataclasses
import difflib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import tyro

from worldloom.cli._command import Command, UsageError


@dataclasses.dataclass(frozen=True)
class Bench:
    """What `worldloom bench` does."""

    names: Annotated[
        tuple[str, ...],
        tyro.conf.arg(metavar="[NAME ...]", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = ()
    """Which scripts to run, by file name without `.py`. All of them by default."""

    quick: bool = False
    """Give `--quick` to the scripts that know it: see that they run, not how fast they are."""

    list: bool = False
    """Print the names of the scripts, and run nothing."""


def run(config: Bench) -> int:
    """Run the chosen scripts one after the other; 1 where any of them failed."""
    scripts = find_scripts()
    unknown = [name for name in config.names if name not in scripts]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], list(scripts), n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise UsageError(f"no benchmark {unknown[0]!r}.{hint} There are: {', '.join(scripts)}")
    if config.list:
        print("\n".join(scripts))
        return 0
    failed = []
    for name in config.names or scripts:
        knows = '"--quick"' in scripts[name].read_text(encoding="utf-8")
        note = " (has no --quick: runs in full)" if config.quick and not knows else ""
        print(f"== {name}{note}", flush=True)
        words = [
            sys.executable,
            str(scripts[name]),
            *(["--quick"] if config.quick and knows else []),
        ]
        if subprocess.run(words, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"worldloom bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def find_scripts() -> dict[str, Path]:
    """The benchmark scripts of a checkout: of the one we are in, or of the one we come from."""
    source = Path(__file__).resolve().parents[3]
    for root in (Path.cwd(), source):
        folder = root / "benchmarks"
        scripts = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
        if scripts:
            return {path.stem: path for path in scripts}
    raise UsageError(
        "there is no folder `benchmarks` here. The benchmark scripts are part of the source tree, "
        "not of the installed package: run this in a checkout of the repository"
    )


COMMAND = Command(
    "bench",
    "Run the benchmark scripts of a checkout.",
    Bench,
    run,
    examples=(
        ("worldloom bench --list", "names of the scripts"),
        ("worldloom bench", "all of them"),
        ("worldloom bench engine_overhead --quick", "one of them, in a hurry"),
    ),
)
