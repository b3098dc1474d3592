"""Published causal networks, as pgmpy ships them: names and edges, offline."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from acbo._errors import DataError, UnknownNetworkError
from acbo.data._dataset import frozen
from worldloom._extras import import_extra

_VARIABLE = re.compile(r"^variable\s+(\S+)\s*\{", re.MULTILINE)
_PARENTS = re.compile(r"^probability\s*\(\s*([^\s|)]+)\s*(?:\|([^)]*))?\)", re.MULTILINE)


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """A causal graph with names: `graph[i, j]` is true when `names[i] -> names[j]`."""

    name: str
    names: tuple[str, ...]
    graph: Bool[np.ndarray, "d d"]

    def __repr__(self) -> str:
        return f"Network({self.name!r}, {len(self.names)} variables, {int(self.graph.sum())} edges)"

    def parents(self, variable: str) -> tuple[str, ...]:
        """The names of the direct causes of a variable."""
        if variable not in self.names:
            raise DataError(
                f"{self.name!r} has no variable {variable!r}; it has {', '.join(self.names)}"
            )
        column = self.graph[:, self.names.index(variable)]
        return tuple(self.names[i] for i in np.flatnonzero(column))


def _folder() -> Path:
    # The files are read where they lie: importing pgmpy takes seconds.
    spec = importlib.util.find_spec("pgmpy")
    if spec is None or spec.origin is None:
        package = import_extra("pgmpy", extra="causal", purpose="reading published networks")
        return Path(str(package.__file__)).parent / "utils" / "example_models"
    return Path(spec.origin).parent / "utils" / "example_models"


@functools.cache
def _files() -> dict[str, Path]:
    files = [*_folder().glob("*.bif.gz"), *_folder().glob("*.json")]
    return {file.name.partition(".")[0]: file for file in sorted(files)}


def published_networks() -> tuple[str, ...]:
    """The names that `published_network` knows, for the installed version of pgmpy."""
    return tuple(sorted(_files()))


@functools.cache
def published_network(name: str) -> Network:
    """A network of the bnlearn repository: `"sachs"`, `"asia"`, `"alarm"`, and more.

    They come with pgmpy (the extra `causal`); nothing is downloaded.

    ```python
    from acbo.data import published_network

    sachs = published_network("sachs")
    assert len(sachs.names) == 11
    assert sachs.parents("Erk") == ("Mek", "PKA")
    ```
    """
    if name not in _files():
        raise UnknownNetworkError(
            f"no published network is called {name!r}; there are {', '.join(published_networks())}"
        )
    file = _files()[name]
    if file.suffix == ".json":
        content = json.loads(file.read_text(encoding="utf-8"))
        names, edges = content["nodes"], content["arcs"]
    else:
        text = gzip.decompress(file.read_bytes()).decode("utf-8")
        names = _VARIABLE.findall(text)
        edges = [
            (parent.strip(), child)
            for child, parents in _PARENTS.findall(text)
            for parent in parents.split(",")
            if parent.strip()
        ]
    place = {variable: j for j, variable in enumerate(names)}
    graph = np.zeros((len(names), len(names)), bool)
    for parent, child in edges:
        graph[place[parent], place[child]] = True
    return Network(name, tuple(names), frozen(graph))
