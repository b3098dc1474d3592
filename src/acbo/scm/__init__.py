"""Systems to learn about: structural causal models as arrays, sampled on the device."""

from __future__ import annotations

from acbo.scm._equations import Equations as Equations
from acbo.scm._family import Family as Family
from acbo.scm._family import Study as Study
from acbo.scm._graphs import Graph as Graph
from acbo.scm._graphs import ancestors as ancestors
from acbo.scm._graphs import is_acyclic as is_acyclic
from acbo.scm._graphs import sample_graph as sample_graph
from acbo.scm._mechanisms import Fourier as Fourier
from acbo.scm._mechanisms import Linear as Linear
from acbo.scm._mechanisms import Mechanism as Mechanism
from acbo.scm._mechanisms import Polynomial as Polynomial
from acbo.scm._mechanisms import sample_mechanism as sample_mechanism
from acbo.scm._scm import SCM as SCM
from acbo.scm._scm import Samples as Samples
from acbo.scm._scm import standardise as standardise

__all__ = [
    "SCM",
    "Equations",
    "Family",
    "Fourier",
    "Graph",
    "Linear",
    "Mechanism",
    "Polynomial",
    "Samples",
    "Study",
    "ancestors",
    "is_acyclic",
    "sample_graph",
    "sample_mechanism",
    "standardise",
]
