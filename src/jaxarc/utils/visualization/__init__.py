"""Watching ARC worlds: pictures, callbacks, memory, recordings, replays."""

from __future__ import annotations

from jaxarc.utils.visualization._callbacks import (
    adaptive_visualization_callback as adaptive_visualization_callback,
)
from jaxarc.utils.visualization._callbacks import jax_log_episode_summary as jax_log_episode_summary
from jaxarc.utils.visualization._callbacks import jax_log_grid as jax_log_grid
from jaxarc.utils.visualization._console import (
    log_comparison_to_console as log_comparison_to_console,
)
from jaxarc.utils.visualization._console import log_grid_to_console as log_grid_to_console
from jaxarc.utils.visualization._drawing import Animation as Animation
from jaxarc.utils.visualization._drawing import Drawing as Drawing
from jaxarc.utils.visualization._drawing import DrawingError as DrawingError
from jaxarc.utils.visualization._grid import GridError as GridError
from jaxarc.utils.visualization._memory import LazyLoader as LazyLoader
from jaxarc.utils.visualization._memory import MemoryLimitError as MemoryLimitError
from jaxarc.utils.visualization._memory import MemoryManager as MemoryManager
from jaxarc.utils.visualization._memory import (
    create_lazy_visualization_loader as create_lazy_visualization_loader,
)
from jaxarc.utils.visualization._memory import get_memory_manager as get_memory_manager
from jaxarc.utils.visualization._palette import ARC as ARC
from jaxarc.utils.visualization._palette import COLOUR_BLIND as COLOUR_BLIND
from jaxarc.utils.visualization._palette import Palette as Palette
from jaxarc.utils.visualization._palette import PaletteError as PaletteError
from jaxarc.utils.visualization._rebuild import Frames as Frames
from jaxarc.utils.visualization._rebuild import Replayer as Replayer
from jaxarc.utils.visualization._rebuild import rebuild as rebuild
from jaxarc.utils.visualization._recording import Episode as Episode
from jaxarc.utils.visualization._recording import Recording as Recording
from jaxarc.utils.visualization._recording import RecordingError as RecordingError
from jaxarc.utils.visualization._replays import Replays as Replays
from jaxarc.utils.visualization._replays import save_replay as save_replay
from jaxarc.utils.visualization._rollout import watch_rollout as watch_rollout
from jaxarc.utils.visualization._settings import DebugSettings as DebugSettings
from jaxarc.utils.visualization._settings import MemorySettings as MemorySettings
from jaxarc.utils.visualization._settings import SettingsError as SettingsError
from jaxarc.utils.visualization._settings import WatchSettings as WatchSettings
from jaxarc.utils.visualization._settings import load_settings as load_settings
from jaxarc.utils.visualization._sheets import animate as animate
from jaxarc.utils.visualization._sheets import animate_episode as animate_episode
from jaxarc.utils.visualization._sheets import draw_comparison as draw_comparison
from jaxarc.utils.visualization._sheets import draw_episode as draw_episode
from jaxarc.utils.visualization._sheets import draw_grid as draw_grid
from jaxarc.utils.visualization._sheets import draw_mosaic as draw_mosaic
from jaxarc.utils.visualization._sheets import draw_strip as draw_strip
from jaxarc.utils.visualization._sheets import draw_task as draw_task
from worldloom.store import CompressedStorage as CompressedStorage
from worldloom.store import smallest_dtype as optimize_array_memory
from worldloom.watch import print_statistics as print_callback_performance_report
from worldloom.watch import reset_statistics as reset_callback_performance_stats
from worldloom.watch import statistics as get_callback_performance_stats

__all__ = [
    "ARC",
    "COLOUR_BLIND",
    "Animation",
    "CompressedStorage",
    "DebugSettings",
    "Drawing",
    "DrawingError",
    "Episode",
    "Frames",
    "GridError",
    "LazyLoader",
    "MemoryLimitError",
    "MemoryManager",
    "MemorySettings",
    "Palette",
    "PaletteError",
    "Recording",
    "RecordingError",
    "Replayer",
    "Replays",
    "SettingsError",
    "WatchSettings",
    "adaptive_visualization_callback",
    "animate",
    "animate_episode",
    "create_lazy_visualization_loader",
    "draw_comparison",
    "draw_episode",
    "draw_grid",
    "draw_mosaic",
    "draw_strip",
    "draw_task",
    "get_callback_performance_stats",
    "get_memory_manager",
    "jax_log_episode_summary",
    "jax_log_grid",
    "load_settings",
    "log_comparison_to_console",
    "log_grid_to_console",
    "optimize_array_memory",
    "print_callback_performance_report",
    "rebuild",
    "reset_callback_performance_stats",
    "save_replay",
    "watch_rollout",
]
