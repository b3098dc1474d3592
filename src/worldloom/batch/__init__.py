"""How many worlds fit, how many are fastest, and what to do when they do not fit.

Functions here take whole batches, as steps do everywhere in Worldloom: write `jax.vmap(fn)` for
a function of one item.
"""

from __future__ import annotations

from worldloom.batch._adaptive import AdaptiveBatch as AdaptiveBatch
from worldloom.batch._adaptive import is_out_of_memory as is_out_of_memory
from worldloom.batch._bytes import format_bytes as format_bytes
from worldloom.batch._bytes import parse_bytes as parse_bytes
from worldloom.batch._chunked import chunked_map as chunked_map
from worldloom.batch._errors import BatchError as BatchError
from worldloom.batch._errors import BatchMemoryError as BatchMemoryError
from worldloom.batch._memory import available_memory as available_memory
from worldloom.batch._plan import Plan as Plan
from worldloom.batch._plan import plan as plan

__all__ = [
    "AdaptiveBatch",
    "BatchError",
    "BatchMemoryError",
    "Plan",
    "available_memory",
    "chunked_map",
    "format_bytes",
    "is_out_of_memory",
    "parse_bytes",
    "plan",
]
