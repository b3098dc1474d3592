"""Compile once: jit for modules, and compilations that are counted, explained and kept."""

from __future__ import annotations

from worldloom.compile._cache import default_cache_folder as default_cache_folder
from worldloom.compile._cache import enable_cache as enable_cache
from worldloom.compile._compiled import Compilation as Compilation
from worldloom.compile._compiled import Compiled as Compiled
from worldloom.compile._compiled import UnhashableStaticError as UnhashableStaticError
from worldloom.compile._compiled import compiled as compiled
from worldloom.compile._compiled import unhashable_part as unhashable_part
from worldloom.compile._count import Compiles as Compiles
from worldloom.compile._count import RecompileError as RecompileError
from worldloom.compile._count import count_compiles as count_compiles
from worldloom.compile._count import no_compiles as no_compiles
from worldloom.compile._explain import Signature as Signature

__all__ = [
    "Compilation",
    "Compiled",
    "Compiles",
    "RecompileError",
    "Signature",
    "UnhashableStaticError",
    "compiled",
    "count_compiles",
    "default_cache_folder",
    "enable_cache",
    "no_compiles",
    "unhashable_part",
]

enable_cache()
