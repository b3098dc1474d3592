"""`worldloom profile`."""

from __future__ import annotations

import dataclasses
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from worldloom._errors import WorldloomError
from worldloom.cli._command import Command, UsageError
from worldloom.cli._output import OutputFolder


@dataclasses.dataclass(frozen=True)
class Profile:
    """What `worldloom profile` does."""

    out: Annotated[Path, OutputFolder()] = Path("profile")
    """Folder for the trace, which other tools open too."""

    top: int = 15
    """How many rows of the table to print."""

    command: Annotated[
        tuple[str, ...],
        tyro.conf.arg(metavar="-- COMMAND ...", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = ()
    """A Python script or `-m MODULE`, and its arguments: the words after `--`."""


def run(config: Profile) -> int:
    """Run the program in this process under the profiler, and print where the time went."""
    module, words = split_program(config.command)
    from worldloom import watch

    code = 0
    with watch.profile(config.out) as profile:
        try:
            # What the program leaves is kept until the block ends, which waits for its arrays.
            leftovers = run_program(module, words)
        except SystemExit as exit:  # a program that ends itself still has a profile
            leftovers = None
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        except WorldloomError:
            raise
        except Exception:  # the program's own, told as `python` tells it
            leftovers = None
            code = 1
            traceback.print_exc()
    del leftovers
    profile.print(top=config.top)
    print(f"The trace, for XProf or TensorBoard: {profile.file}")
    return code


def split_program(command: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether the first word names a module, and the words of the program without `python`."""
    words = list(command)
    if words and Path(words[0]).name.startswith("python"):
        words.pop(0)
    module = words[:1] == ["-m"]
    if module:
        words.pop(0)
    if not words:
        raise UsageError("give a script after `--`, as in: worldloom profile -- python train.py")
    if not module and not Path(words[0]).is_file():
        raise UsageError(
            f"there is no Python script {words[0]!r}; for a module, write -m {words[0]}"
        )
    return module, words


def run_program(module: bool, words: Sequence[str]) -> dict[str, Any]:
    """Run a script or a module as `python` would, with its own `sys.argv`; return its globals."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = list(words)
    try:
        if module:
            sys.path.insert(0, "")
            return runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        return runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path


COMMAND = Command(
    "profile",
    "Run a Python program under the profiler, and print the kernels that take the time.",
    Profile,
    run,
    examples=(
        ("worldloom profile -- python train.py --steps 100", "a script with its arguments"),
        ("worldloom profile --top 5 -- -m my_package.train", "a module; a short table"),
    ),
    rest="command",
)
