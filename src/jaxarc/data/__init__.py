"""ARC tasks: read and checked on the host, packed once on the device."""

from __future__ import annotations

from jaxarc.data._augment import Augmentation as Augmentation
from jaxarc.data._buffer import PackedPair as PackedPair
from jaxarc.data._buffer import TaskBuffer as TaskBuffer
from jaxarc.data._loaders import LazyTaskLoader as LazyTaskLoader
from jaxarc.data._loaders import MemoryMappedTaskLoader as MemoryMappedTaskLoader
from jaxarc.data._loaders import Parser as Parser
from jaxarc.data._loaders import extract_task_id_from_index as extract_task_id_from_index
from jaxarc.data._parse import BadTaskError as BadTaskError
from jaxarc.data._parse import Pair as Pair
from jaxarc.data._parse import RawTask as RawTask
from jaxarc.data._parse import UnknownTaskError as UnknownTaskError
from jaxarc.data._parse import parse_grid as parse_grid
from jaxarc.data._parse import parse_task as parse_task
from jaxarc.data._sources import NAMES as NAMES
from jaxarc.data._sources import VERSIONS as VERSIONS
from jaxarc.data._sources import load as load
from jaxarc.data._sources import load_file as load_file
from jaxarc.data._sources import load_folder as load_folder
from jaxarc.data._sources import load_kaggle as load_kaggle
from jaxarc.data._sources import load_mini_arc as load_mini_arc
from jaxarc.data._task import JaxArcTask as JaxArcTask
from jaxarc.data._task import create_mock_task as create_mock_task
from jaxarc.data._task import pad_task as pad_task
from jaxarc.data._taskset import SUBSETS as SUBSETS
from jaxarc.data._taskset import TaskSet as TaskSet

__all__ = [
    "NAMES",
    "SUBSETS",
    "VERSIONS",
    "Augmentation",
    "BadTaskError",
    "JaxArcTask",
    "LazyTaskLoader",
    "MemoryMappedTaskLoader",
    "PackedPair",
    "Pair",
    "Parser",
    "RawTask",
    "TaskBuffer",
    "TaskSet",
    "UnknownTaskError",
    "create_mock_task",
    "extract_task_id_from_index",
    "load",
    "load_file",
    "load_folder",
    "load_kaggle",
    "load_mini_arc",
    "pad_task",
    "parse_grid",
    "parse_task",
]
