"""How many particles are where."""

from __future__ import annotations

from jaxtrace.density._density import kde as kde
from jaxtrace.density._density import sph_density as sph_density

__all__ = ["kde", "sph_density"]
