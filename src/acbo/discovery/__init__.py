"""From a table of samples to a causal graph, by a network that was trained before."""

from __future__ import annotations

from acbo.discovery._discover import MAX_VARIABLES as MAX_VARIABLES
from acbo.discovery._discover import Discovery as Discovery
from acbo.discovery._discover import discover as discover
from acbo.discovery._orders import over_orders as over_orders

__all__ = ["MAX_VARIABLES", "Discovery", "discover", "over_orders"]
