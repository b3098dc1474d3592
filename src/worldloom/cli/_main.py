"""`main`: find the command, run it, and turn what happens into an exit code."""

from __future__ import annotations

import difflib
import itertools
import logging
import os
import sys
from collections.abc import Iterable, Sequence

from worldloom._errors import WorldloomError
from worldloom._signals import exit_code
from worldloom._systems import System, systems_with
from worldloom._way import at_shell
from worldloom.cli import _bench, _demo, _doctor, _launch, _profile, _report
from worldloom.cli._command import Command, UsageError, split_rest
from worldloom.cli._output import OutputError, check_outputs

OK, FAILED, USAGE, CLOSED_PIPE = 0, 1, 2, 141

COMMANDS: dict[str, Command] = {
    module.COMMAND.name: module.COMMAND
    for module in (_doctor, _demo, _bench, _profile, _launch, _report)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `worldloom` command and return its exit code.

    0: fine. 1: the command failed. 2: the command line is wrong, or what it is to write cannot be
    written there. 130: Ctrl-C, and 128 + n: a run was ended by signal n. 141: whoever read the
    output has gone. Errors of ours are one message on stderr; `--debug` shows the traceback.

    **Arguments:**

    - `argv`: the words after `worldloom`; those of this process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    ours, _ = split_rest(words)
    debug = "--debug" in ours
    if debug:
        words = [word for word in ours if word != "--debug"] + words[len(ours) :]
    else:
        # Zarr reads in tasks, and asyncio logs the traceback of each that was given up.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except SystemExit as exit:  # tyro has explained the usage, or a profiled script ended itself
        return _exit_code(exit)
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except KeyboardInterrupt as stop:
        print(f"worldloom: {str(stop) or 'interrupted'}", file=sys.stderr)
        return exit_code(stop)
    except WorldloomError as error:
        if debug:
            raise
        print(f"worldloom: error: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError | OutputError) else FAILED
    except Exception as error:
        if debug:
            raise
        print(f"worldloom: error: {_unexpected(error, words)}", file=sys.stderr)
        return FAILED


def _unexpected(error: Exception, words: list[str]) -> str:
    """What to say of an error that nobody expected: what, where, and how to see more."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {str(error.filename)!r}; --debug shows where"
    named = [name for name in os.environ if name.isupper() and "_" in name and name in str(error)]
    if named:
        return f"environment variable {named[0]}={os.environ[named[0]]!r}: {error}"
    known = itertools.takewhile(str.isalpha, words[:2])
    what = " ".join(str(error).split())[:500]
    named = f"unexpected {type(error).__name__} in `{' '.join(('worldloom', *known))}`"
    return f"{named}: {what or 'no message'}; --debug shows where"


def _exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return OK
    if isinstance(exit.code, int):
        return exit.code
    print(exit.code, file=sys.stderr)
    return FAILED


def _dispatch(words: list[str]) -> int:
    if not words:
        print(_overview(), file=sys.stderr)
        return USAGE
    name, rest = words[0], words[1:]
    if name in ("-h", "--help", "help"):
        print(_overview())
        return OK
    if name in ("-V", "--version"):
        from worldloom import __version__

        print(f"worldloom {__version__}")
        return OK
    if name in COMMANDS:
        return _call(COMMANDS[name], rest, "worldloom")
    found = systems_with("cli")
    if name in found:
        return _dispatch_system(found[name], rest)
    raise UsageError(_unknown(name, [*COMMANDS, *found], "worldloom"))


def _dispatch_system(system: System, words: list[str]) -> int:
    prog = f"worldloom {system.name}"
    commands = {command.name: command for command in system.load("cli").COMMANDS}
    if not words or words[0] in ("-h", "--help", "help"):
        lines = [f"usage: {prog} COMMAND ...", "", system.summary, "", *_listing(commands.values())]
        lines += ["", f"Every command explains itself: {prog} COMMAND --help"]
        print("\n".join(lines), file=sys.stdout if words else sys.stderr)
        return OK if words else USAGE
    if words[0] in commands:
        return _call(commands[words[0]], words[1:], prog)
    raise UsageError(_unknown(words[0], list(commands), prog))


def _call(command: Command, words: list[str], prog: str) -> int:
    config = command.parse(words, f"{prog} {command.name}")
    check_outputs(config)
    with at_shell(command.flags):
        return command.run(config) or OK


def _unknown(name: str, known: list[str], prog: str) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{prog} {nearest[0]}'?" if nearest else ""
    kind = "option" if name.startswith("-") else "command"
    return f"unknown {kind} {name!r}.{hint} Commands: {', '.join(known)}. See {prog} --help."


def _listing(entries: Iterable[Command | System], title: str = "Commands:") -> list[str]:
    return [title, *(f"  {entry.name:<10}{entry.summary}" for entry in entries)]


def _overview() -> str:
    lines = [
        "usage: worldloom [--version] [--debug] COMMAND ...",
        "",
        "Compile, batch, watch, store and measure JAX simulations.",
        "",
        "Start here:",
        "  worldloom doctor            Is this machine ready, and does its JAX compute right?",
        "  worldloom demo --out out    Run the demo, then open out/report.html.",
        "",
        *_listing(COMMANDS.values()),
    ]
    if found := systems_with("cli"):
        lines += ["", *_listing(found.values(), "Systems, each with commands of its own:")]
    lines += [
        "",
        "Every command explains itself: worldloom COMMAND --help",
        "An error is one message; --debug shows where it came from.",
    ]
    return "\n".join(lines)
