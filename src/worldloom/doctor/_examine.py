"""`examine`: the facts and the self-check together, for people and for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence

from worldloom.doctor._facts import Cache, Facts, gather_facts
from worldloom.doctor._selfcheck import Attempt, Check, command, version_check


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What `worldloom doctor` prints. `str` of it is the text."""

    facts: Facts
    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether every check of the self-check is all right."""
        return all(check.ok for check in self.checks)

    def to_json(self) -> str:
        """Everything as a JSON object; `healthy` says the verdict."""
        return json.dumps({"healthy": self.healthy, **dataclasses.asdict(self)}, indent=2)

    def __str__(self) -> str:
        """The text for people: facts, checks, and the verdict last."""
        return "\n".join(_lines(self))


def examine(*, words: Sequence[str] | None = None, timeout: float = 60.0) -> Diagnosis:
    """Gather the facts about this environment and run the platform self-check.

    **Arguments:**

    - `words`, `timeout`: as for [`worldloom.doctor.self_check`][].

    ```python
    from worldloom import doctor

    diagnosis = doctor.examine()
    print(diagnosis)
    assert diagnosis.healthy
    ```
    """
    attempt = Attempt(words or command())  # runs while we look around
    facts = gather_facts()
    return Diagnosis(facts, (version_check(), *attempt.checks(timeout)))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    facts = diagnosis.facts
    yield "Versions"
    yield from (f"  {name:<12}{version}" for name, version in facts.versions.items())
    yield "Machine"
    yield f"  {'cores':<12}{facts.cores}"
    total, available = _gibibytes(facts.memory_total), _gibibytes(facts.memory_available)
    yield f"  {'memory':<12}{total} GiB, {available} GiB of it available"
    for index, device in enumerate(facts.devices):
        yield f"  {'' if index else 'devices':<12}{device}"
    yield "Compilation cache"
    yield from (f"  {line}" for line in _cache_lines(facts.cache))
    yield "Extras"
    for extra, missing in facts.extras.items():
        state = f"missing {', '.join(missing)}: pip install 'worldloom[{extra}]'"
        yield f"  {extra:<12}{state if missing else 'installed'}"
    if not facts.extras:
        yield "  unknown: Worldloom is not installed as a package"
    yield "Self-check"
    for check in diagnosis.checks:
        yield f"  {'ok' if check.ok else 'WRONG':<7}{check.name}: {check.found}"
    yield ""
    wrong = [check for check in diagnosis.checks if not check.ok]
    if not wrong:
        yield "All is well."
        return
    yield "Something is wrong."
    yield from (f"- {check.meaning}" for check in wrong)
    yield from dict.fromkeys(check.remedy for check in wrong)


def _cache_lines(cache: Cache) -> Iterator[str]:
    if cache.folder is None:
        yield "off: every process compiles anew"
        return
    yield cache.folder
    yield f"{cache.entries} programs, {cache.bytes / 2**20:.1f} MiB"
    if not cache.writable:
        yield "not writable: every process compiles anew. Set WORLDLOOM_CACHE_DIR to another folder"


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f}"
