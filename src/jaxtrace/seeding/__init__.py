"""Where and when particles begin."""

from __future__ import annotations

from jaxtrace._errors import SeedError as SeedError
from jaxtrace._errors import SlotOverflowError as SlotOverflowError
from jaxtrace.seeding._seeds import random_seeds as random_seeds
from jaxtrace.seeding._seeds import repeated_release as repeated_release
from jaxtrace.seeding._seeds import uniform_grid_seeds as uniform_grid_seeds

__all__ = [
    "SeedError",
    "SlotOverflowError",
    "random_seeds",
    "repeated_release",
    "uniform_grid_seeds",
]
