"""Compile, batch, watch, store and measure JAX simulations.

A world is a pure step over a pytree: `step(state, x) -> (state, output)`. `run` compiles it once,
takes it through any number of steps in bounded memory, shows progress, keeps what you ask for,
and resumes after a crash exactly where it was.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from worldloom._errors import WorldloomError as WorldloomError

if TYPE_CHECKING:
    from worldloom.compile import Compiled as Compiled
    from worldloom.compile import compiled as compiled
    from worldloom.compile import count_compiles as count_compiles
    from worldloom.compile import default_cache_folder as default_cache_folder
    from worldloom.compile import enable_cache as enable_cache
    from worldloom.compile import no_compiles as no_compiles
    from worldloom.loop import At as At
    from worldloom.loop import Checkpoint as Checkpoint
    from worldloom.loop import Column as Column
    from worldloom.loop import Every as Every
    from worldloom.loop import Fault as Fault
    from worldloom.loop import FaultError as FaultError
    from worldloom.loop import Final as Final
    from worldloom.loop import MemorySink as MemorySink
    from worldloom.loop import NoProgress as NoProgress
    from worldloom.loop import NpySink as NpySink
    from worldloom.loop import Progress as Progress
    from worldloom.loop import ProgressBar as ProgressBar
    from worldloom.loop import ResumeError as ResumeError
    from worldloom.loop import RunInterrupted as RunInterrupted
    from worldloom.loop import RunResult as RunResult
    from worldloom.loop import SavedRun as SavedRun
    from worldloom.loop import Sink as Sink
    from worldloom.loop import SinkError as SinkError
    from worldloom.loop import StepError as StepError
    from worldloom.loop import ZarrSink as ZarrSink
    from worldloom.loop import fresh_seed as fresh_seed
    from worldloom.loop import load_records as load_records
    from worldloom.loop import read_run as read_run
    from worldloom.loop import run as run
    from worldloom.loop import unroll as unroll

__version__ = "0.1.0"

__all__ = [
    "At",
    "Checkpoint",
    "Column",
    "Compiled",
    "Every",
    "Fault",
    "FaultError",
    "Final",
    "MemorySink",
    "NoProgress",
    "NpySink",
    "Progress",
    "ProgressBar",
    "ResumeError",
    "RunInterrupted",
    "RunResult",
    "SavedRun",
    "Sink",
    "SinkError",
    "StepError",
    "WorldloomError",
    "ZarrSink",
    "compiled",
    "count_compiles",
    "default_cache_folder",
    "enable_cache",
    "fresh_seed",
    "load_records",
    "no_compiles",
    "read_run",
    "run",
    "unroll",
]

_ROOMS = (
    "batch",
    "bench",
    "check",
    "compile",
    "config",
    "demo",
    "doctor",
    "loop",
    "mesh",
    "report",
    "store",
    "watch",
)


def __getattr__(name: str) -> Any:
    # `worldloom --help` does not wait for JAX: a name is fetched from its room when first used.
    if name in _ROOMS:
        return importlib.import_module(f"worldloom.{name}")
    for room in ("compile", "loop") if name in __all__ else ():
        module = importlib.import_module(f"worldloom.{room}")
        if name in module.__all__:
            globals()[name] = value = getattr(module, name)
            return value
    raise AttributeError(f"module 'worldloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
