"""The one long loop: `run`, what it keeps, where that goes, and how it resumes."""

from __future__ import annotations

from worldloom.loop._checkpoint import Checkpoint as Checkpoint
from worldloom.loop._checkpoint import ResumeError as ResumeError
from worldloom.loop._checkpoint import SavedRun as SavedRun
from worldloom.loop._checkpoint import read_run as read_run
from worldloom.loop._load import load_records as load_records
from worldloom.loop._npy_sink import NpySink as NpySink
from worldloom.loop._program import StepError as StepError
from worldloom.loop._progress import NoProgress as NoProgress
from worldloom.loop._progress import Progress as Progress
from worldloom.loop._progress import ProgressBar as ProgressBar
from worldloom.loop._records import Column as Column
from worldloom.loop._run import Fault as Fault
from worldloom.loop._run import FaultError as FaultError
from worldloom.loop._run import RunInterrupted as RunInterrupted
from worldloom.loop._run import RunResult as RunResult
from worldloom.loop._run import run as run
from worldloom.loop._save import At as At
from worldloom.loop._save import Every as Every
from worldloom.loop._save import Final as Final
from worldloom.loop._seed import fresh_seed as fresh_seed
from worldloom.loop._sink import MemorySink as MemorySink
from worldloom.loop._sink import Sink as Sink
from worldloom.loop._sink import SinkError as SinkError
from worldloom.loop._unroll import unroll as unroll
from worldloom.loop._zarr_sink import ZarrSink as ZarrSink

__all__ = [
    "At",
    "Checkpoint",
    "Column",
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
    "ZarrSink",
    "fresh_seed",
    "load_records",
    "read_run",
    "run",
    "unroll",
]
