"""The systems on the engine: found by name, without importing them."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import importlib.util
from types import ModuleType


@dataclasses.dataclass(frozen=True)
class System:
    """A package on the engine.

    Its module `cli` has a tuple `COMMANDS` of [`worldloom.cli.Command`][]. Its module `demo` has a
    function `add_to(page)` that adds a chapter to the page of `worldloom demo` and gives its
    [`worldloom.demo.Line`][].
    """

    name: str
    package: str
    summary: str

    def has(self, module: str) -> bool:
        """Whether the package has such a module. Looks at files; imports nothing."""
        package = importlib.util.find_spec(self.package)
        if package is None or package.submodule_search_locations is None:
            return False
        places = package.submodule_search_locations
        return (
            importlib.machinery.PathFinder.find_spec(f"{self.package}.{module}", places) is not None
        )

    def load(self, module: str) -> ModuleType:
        """One of its modules, imported."""
        return importlib.import_module(f"{self.package}.{module}")


SYSTEMS = (
    System("arc", "jaxarc", "ARC puzzles as a reinforcement-learning environment."),
    System("trace", "jaxtrace", "Particles carried by a measured flow."),
    System("acbo", "acbo", "Causal Bayesian optimisation."),
)


def systems_with(module: str) -> dict[str, System]:
    """The systems that have such a module, by name."""
    return {system.name: system for system in SYSTEMS if system.has(module)}
