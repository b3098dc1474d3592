"""Numbers of a run, line by line in a file; other trackers implement the same four methods."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import jax
import numpy as np
from jaxtyping import Int, Num

from worldloom._errors import WorldloomError


class MetricsError(WorldloomError, ValueError):
    """A metric cannot be written, or a file of metrics cannot be read."""


@runtime_checkable
class MetricsWriter(Protocol):
    """Where the numbers of a run go. Implement these four to use another tracker."""

    def start(self, config: Mapping[str, Any]) -> None:
        """A run begins, or is resumed. `config` holds what JSON can hold."""
        ...

    def log(self, step: SupportsIndex, metrics: Mapping[str, Any]) -> None:
        """Record numbers, or small arrays of numbers, at a step."""
        ...

    def artifact(self, name: str, path: str | os.PathLike[str]) -> None:
        """Record that the run wrote a file."""
        ...

    def finish(self) -> None:
        """The run is over. What was logged is safe on disk when this returns."""
        ...


class JsonlMetrics:
    """Metrics as JSON Lines: one object a line, appended and flushed at once.

    A run that was killed can go on in the same file: a last line that was cut off is removed
    when the file is opened. Steps that are logged again replace the earlier ones when read. JSON
    has no NaN and no infinities: they are written as the strings `"NaN"`, `"Infinity"` and
    `"-Infinity"`, and `read_metrics` makes floats of them again. Several threads may log; of
    several processes, each needs a file of its own.

    ```python
    import tempfile
    from pathlib import Path
    from worldloom import watch

    with tempfile.TemporaryDirectory() as folder:
        metrics = watch.JsonlMetrics(Path(folder) / "metrics.jsonl")
        metrics.start({"learning_rate": 0.1})
        for step in range(3):
            metrics.log(step, {"loss": 1 / (1 + step)})
        metrics.finish()
        steps, loss = watch.read_metrics(metrics.path).series("loss")
        assert list(steps) == [0, 1, 2] and loss[0] == 1.0
    ```
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock = threading.Lock()
        self._checked = False

    def start(self, config: Mapping[str, Any]) -> None:
        """Append one line with `config`."""
        try:
            json.dumps(dict(config), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise MetricsError(f"config cannot be written as JSON: {error}") from None
        self._write({"kind": "start", "config": dict(config)})

    def log(self, step: SupportsIndex, metrics: Mapping[str, Any]) -> None:
        """Append one line with the numbers of `step`."""
        values = {name: _plain(name, value) for name, value in metrics.items()}
        self._write({"kind": "log", "step": operator.index(step), "metrics": values})

    def artifact(self, name: str, path: str | os.PathLike[str]) -> None:
        """Append one line that names a file."""
        self._write({"kind": "artifact", "name": name, "path": os.fspath(path)})

    def finish(self) -> None:
        """Append the last line and make sure that all of them are on disk."""
        self._write({"kind": "finish"}, sync=True)

    def _write(self, line: dict[str, Any], *, sync: bool = False) -> None:
        text = json.dumps(line | {"time": time.time()}, allow_nan=False) + "\n"
        with self._lock:
            if not self._checked:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _drop_torn_line(self.path)
                self._checked = True
            with self.path.open("ab") as file:
                file.write(text.encode())
                if sync:
                    file.flush()
                    os.fsync(file.fileno())


def _drop_torn_line(path: Path) -> None:
    """Cut off what a killed process may have left behind the last newline."""
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            end = start + newline + 1
            if newline >= 0:
                break
        file.truncate(end)


_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _plain(name: str, value: Any) -> Any:
    """Numbers and arrays of numbers as JSON."""
    if isinstance(value, bool | int | float | np.generic | np.ndarray | jax.Array):
        value = np.asarray(value)
        if value.dtype.kind in "biu":
            return value.tolist()
        if value.dtype.kind == "f" or jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
            return _finite(value.astype(np.float64).tolist())
    raise MetricsError(
        f"metric {name!r} is {value!r}; expected a real number or an array of real numbers"
    )


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return _WORDS[value] if isinstance(value, str) else value


@dataclasses.dataclass(frozen=True)
class Metrics:
    """What a file of metrics holds.

    **Attributes:**

    - `config`: that of the last start.
    - `rows`: the metrics of each step, in order of steps. Of a step that was logged again, as
      happens when a run is resumed, each metric has its last value.
    - `artifacts`: names and paths of files.
    - `finished`: whether the last run came to its end.
    """

    config: dict[str, Any]
    rows: dict[int, dict[str, Any]]
    artifacts: dict[str, str]
    finished: bool

    def series(self, name: str) -> tuple[Int[np.ndarray, " n"], Num[np.ndarray, " n *shape"]]:
        """Steps at which `name` was logged, and its values."""
        steps = [step for step, row in self.rows.items() if name in row]
        if not steps:
            known = sorted({key for row in self.rows.values() for key in row})
            raise MetricsError(f"no metric {name!r} was logged; logged were: {', '.join(known)}")

        return np.array(steps), np.array([self.rows[step][name] for step in steps])


def read_metrics(path: str | os.PathLike[str]) -> Metrics:
    """Read what `JsonlMetrics` wrote, also while it is being written."""
    config: dict[str, Any] = {}
    rows: dict[int, dict[str, Any]] = {}
    artifacts: dict[str, str] = {}
    finished = False
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is torn
        try:
            entry = json.loads(line)
            match entry["kind"]:
                case "start":
                    config, finished = entry["config"], False
                case "log":
                    values = {name: _number(value) for name, value in entry["metrics"].items()}
                    rows.setdefault(entry["step"], {}).update(values)
                case "artifact":
                    artifacts[entry["name"]] = entry["path"]
                case "finish":
                    finished = True
                case other:
                    raise KeyError(other)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MetricsError(
                f"{os.fspath(path)}, line {number}: not a line of metrics ({error!r})"
            ) from None
    return Metrics(config, dict(sorted(rows.items())), artifacts, finished)
