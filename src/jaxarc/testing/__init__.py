"""What every environment must keep to, as a test that any of them can call."""

from __future__ import annotations

from jaxarc.testing._conformance import ConformanceError as ConformanceError
from jaxarc.testing._conformance import ManyWorlds as ManyWorlds
from jaxarc.testing._conformance import check_environment as check_environment

__all__ = ["ConformanceError", "ManyWorlds", "check_environment"]
