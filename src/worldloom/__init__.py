"""Compile, batch, watch, store and measure JAX simulations.

A world is a pure step over a pytree: `step(state, x) -> (state, output)`. `run` compiles it once,
takes it through any number of steps in bounded memory, shows progress, keeps what you ask for,
and resumes after a crash exactly where it was.
"""

from __future__ import annotations

from worldloom._errors import WorldloomError as WorldloomError
from worldloom.compile import Compiled as Compiled
from worldloom.compile import compiled as compiled
from worldloom.compile import count_compiles as count_compiles
from worldloom.compile import default_cache_folder as default_cache_folder
from worldloom.compile import enable_cache as enable_cache
from worldloom.compile import no_compiles as no_compiles

__version__ = "0.1.0"

__all__ = [
    "Compiled",
    "WorldloomError",
    "compiled",
    "count_compiles",
    "default_cache_folder",
    "enable_cache",
    "no_compiles",
]

enable_cache()
