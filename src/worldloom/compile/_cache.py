"""The persistent compilation cache: what was compiled yesterday is loaded today."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import platform
import sys
from pathlib import Path

import jax

_log = logging.getLogger("worldloom.compile")


def default_cache_folder() -> Path:
    """Where compiled programs are kept unless `WORLDLOOM_CACHE_DIR` says otherwise.

    A folder of the user's own cache directory, one for each kind of processor: a program compiled
    for one processor may crash on another that shares the same home directory.
    """
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "worldloom" / f"jax-{jax.__version__}-{_processor()}"


def enable_cache(folder: str | Path | None = None) -> Path | None:
    """Keep compiled programs on disk, so that the next process starts without compiling.

    Worldloom calls this once, before it compiles anything. It does nothing where the user has
    already given JAX a cache (`JAX_COMPILATION_CACHE_DIR`, `jax_compilation_cache_dir`), or where
    `WORLDLOOM_CACHE_DIR=off`.

    **Arguments:**

    - `folder`: where to keep them; by default `WORLDLOOM_CACHE_DIR`, then
        [`worldloom.default_cache_folder`][].

    **Returns:**

    The folder in use, or `None` if there is no cache.
    """
    wanted = folder or os.environ.get("WORLDLOOM_CACHE_DIR")
    if folder is None:
        if wanted == "off":
            return None
        given = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
        if given is not None:
            return Path(given)
    place = Path(wanted) if wanted else default_cache_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("no compilation cache: cannot make %s (%s)", place, error)
        return None
    if not os.access(place, os.W_OK):
        _log.warning("no compilation cache: %s is not writable", place)
        return None
    jax.config.update("jax_compilation_cache_dir", str(place))
    # JAX's own thresholds (one second, some kilobytes) keep nearly every CPU program out.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    _hush()
    return place


def _hush() -> None:
    """Keep XLA from printing two errors of 2 KB for every program that it loads.

    On processors with AVX-512 it takes preferences of its compiler for abilities that the processor
    lacks (openxla/xla#44565). The programs are right. What really fails is raised all the same;
    `TF_CPP_MIN_LOG_LEVEL=0` shows everything that XLA has to say.
    """
    by_user = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") != "1"  # JAX sets it to 1 itself
    if by_user or "avx512" not in _cpu_info():
        return
    with contextlib.suppress(ImportError, AttributeError):  # not of JAX's public part
        from jax._src.lib import utils  # pyright: ignore[reportPrivateImportUsage]

        utils.absl_set_min_log_level(3)


def _processor() -> str:
    """A short name for this kind of processor: equal names may share compiled programs."""
    text = platform.machine() + platform.processor() + _cpu_info()
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@functools.cache
def _cpu_info() -> str:
    """Model and abilities of the first core, where Linux tells them; otherwise nothing."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return ""
    lines = first.splitlines()
    return "".join(line for line in lines if line.startswith(("model name", "flags", "Features")))
