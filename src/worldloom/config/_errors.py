"""What can be wrong with a configuration, told all at once."""

from __future__ import annotations

from collections.abc import Sequence

from worldloom._errors import WorldloomError


class ConfigError(WorldloomError, ValueError):
    """A configuration that cannot be used. `problems` holds one sentence for each defect.

    Each sentence names the file and line, or the override, that it is about.
    """

    problems: tuple[str, ...]

    def __init__(self, problems: str | Sequence[str]):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        if len(self.problems) == 1:
            message = self.problems[0]
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            message = f"the configuration has {len(self.problems)} problems:{lines}"
        super().__init__(message)
