"""The systems on the engine, each with sub-commands of its own, found without importing them."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import importlib.util

from worldloom.cli._command import Command


@dataclasses.dataclass(frozen=True)
class System:
    """A package whose module `cli` has a tuple `COMMANDS` of [`worldloom.cli.Command`][]."""

    name: str
    package: str
    summary: str

    def has_commands(self) -> bool:
        """Whether the package has a `cli` module. Looks at files; imports nothing."""
        package = importlib.util.find_spec(self.package)
        if package is None or package.submodule_search_locations is None:
            return False
        finder = importlib.machinery.PathFinder
        return (
            finder.find_spec(f"{self.package}.cli", package.submodule_search_locations) is not None
        )

    def commands(self) -> dict[str, Command]:
        """Its commands by name, in order. Imports the package."""
        module = importlib.import_module(f"{self.package}.cli")
        return {command.name: command for command in module.COMMANDS}


SYSTEMS = (
    System("arc", "jaxarc", "ARC puzzles as a reinforcement-learning environment."),
    System("trace", "jaxtrace", "Particles carried by a measured flow."),
    System("acbo", "acbo", "Causal Bayesian optimisation."),
)


def systems() -> dict[str, System]:
    """The systems that have commands, by name."""
    return {system.name: system for system in SYSTEMS if system.has_commands()}
