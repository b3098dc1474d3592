"""How good the networks are: graphs that they find, and interventions that they choose."""

from __future__ import annotations

from acbo.evaluation._cells import CELLS as CELLS
from acbo.evaluation._cells import DiscoveryCell as DiscoveryCell
from acbo.evaluation._contest import CONTESTS as CONTESTS
from acbo.evaluation._contest import Contest as Contest
from acbo.evaluation._contest import PolicyScores as PolicyScores
from acbo.evaluation._contest import evaluate_policy as evaluate_policy
from acbo.evaluation._discovery import DiscoveryScores as DiscoveryScores
from acbo.evaluation._discovery import ExactScores as ExactScores
from acbo.evaluation._discovery import evaluate_discovery as evaluate_discovery
from acbo.evaluation._entrants import POLICIES as POLICIES
from acbo.evaluation._entrants import GreedyOnBelief as GreedyOnBelief
from acbo.evaluation._entrants import ProcessOnBelief as ProcessOnBelief
from acbo.evaluation._entrants import make_policy as make_policy
from acbo.evaluation._tables import discovery_table as discovery_table
from acbo.evaluation._tables import policy_table as policy_table

__all__ = [
    "CELLS",
    "CONTESTS",
    "POLICIES",
    "Contest",
    "DiscoveryCell",
    "DiscoveryScores",
    "ExactScores",
    "GreedyOnBelief",
    "PolicyScores",
    "ProcessOnBelief",
    "discovery_table",
    "evaluate_discovery",
    "evaluate_policy",
    "make_policy",
    "policy_table",
]
