"""The platform self-check: known miscompilations, tried out in a process of their own."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_REPRODUCERS = Path(__file__).with_name("_reproducers.py")

# Releases that the dependencies of Worldloom exclude, and why. The same versions stand in
# pyproject.toml; a test compares the two.
KNOWN_BAD = {
    "0.10.2": "it computes wrong numbers on CPU (jax-ml/jax#39103) and can crash (#40412)",
    "0.11.0": "it can crash or hang on CPU (jax-ml/jax#39257)",
    "0.11.1": "it carries the fusion pass of 0.10.2, which computes wrong numbers on CPU",
}
REMEDY = (
    "Install another JAX: pip install 'jax>=0.10.1,"
    + ",".join(f"!={version}" for version in KNOWN_BAD)
    + "'"
)


@dataclasses.dataclass(frozen=True)
class Check:
    """One question of the self-check and its answer."""

    name: str
    ok: bool
    found: str
    """What was seen."""

    meaning: str = ""
    """What it means for results. Empty where all is well."""

    remedy: str = ""
    """What to do about it."""


def command() -> list[str]:
    """The process that runs the reproducers: this Python, without our folder on its path."""
    return [sys.executable, "-P", str(_REPRODUCERS)]


class Attempt:
    """The reproducers, running beside us from construction until `checks` is called."""

    def __init__(self, words: Sequence[str]):
        self._process = subprocess.Popen(
            list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def checks(self, timeout: float) -> list[Check]:
        """Wait at most `timeout` seconds and say what the reproducers found."""
        try:
            out, errors = self._process.communicate(timeout=timeout)
            ending = _ending(self._process.returncode, errors)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, errors = self._process.communicate()
            ending = f"did not end within {timeout:g} seconds"
        answers = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        rows = [answer["rows"] for answer in answers if "rows" in answer]
        ranks = [answer["ranks"] for answer in answers if "ranks" in answer]
        return [_rows_check(rows, ending), _ranks_check(ranks, ending)]


def self_check(*, words: Sequence[str] | None = None, timeout: float = 60.0) -> tuple[Check, ...]:
    """Try the programs that some releases of JAX compile wrongly on CPU.

    **Arguments:**

    - `words`: the command that runs the reproducers, for tests of the self-check itself.
    - `timeout`: seconds after which a reproducer counts as hanging.

    ```python
    from worldloom import doctor

    for check in doctor.self_check():
        assert check.ok, check.meaning
    ```
    """
    attempt = Attempt(words or command())
    return (version_check(), *attempt.checks(timeout))


def version_check() -> Check:
    """Whether the installed JAX is one that Worldloom's dependencies exclude."""
    import jax

    name = "JAX release"
    if jax.__version__ not in KNOWN_BAD:
        return Check(name, True, f"{jax.__version__}, not known to be wrong")
    return Check(
        name,
        False,
        f"{jax.__version__}, which Worldloom excludes",
        f"JAX {jax.__version__} must not be used: {KNOWN_BAD[jax.__version__]}.",
        REMEDY,
    )


def _rows_check(answers: list[dict[str, Any]], ending: str) -> Check:
    name = "rows of large products"
    if len(answers) < 2:
        return _incomplete(name, ending)
    wrong = [answer for answer in answers if answer["wrong"]]
    if not wrong:
        sizes = " and ".join(f"{answer['rows']:,} ({answer['dtype']})" for answer in answers)
        return Check(name, True, f"all right: {sizes}")
    seen = "; ".join(
        f"{answer['wrong']} of {answer['rows']:,} rows wrong in {answer['dtype']}, "
        f"from row {answer['first'][0]:,}"
        for answer in wrong
    )
    return Check(
        name,
        False,
        seen,
        "This JAX computes wrong numbers without saying so: the last rows of a large batch of "
        "matrix-vector products (jax-ml/jax#39103). No result made with it can be trusted.",
        REMEDY,
    )


def _ranks_check(answers: list[dict[str, Any]], ending: str) -> Check:
    name = "sums over many axes"
    if not answers:
        return _incomplete(name, ending)
    if answers[0]["right"]:
        return Check(name, True, "rank 7 and rank 8 are right")
    return Check(name, False, "wrong sums", "This JAX computes wrong sums.", REMEDY)


def _incomplete(name: str, ending: str) -> Check:
    return Check(
        name,
        False,
        ending,
        f"The process that tried it {ending}. A JAX that crashes or hangs here (0.10.2 and 0.11.0 "
        "do: jax-ml/jax#40412, #39257) can end any run in the middle.",
        REMEDY,
    )


def _ending(code: int, errors: str) -> str:
    if code < 0:
        return f"crashed with {signal.Signals(-code).name}"
    last = errors.strip().rpartition("\n")[2]
    return f"ended with exit code {code}" + (f" ({last})" if last else "")
