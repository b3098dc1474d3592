"""The persistent compilation cache: what was compiled yesterday is loaded today."""

from __future__ import annotations

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
    return place


def _processor() -> str:
    """A short name for this kind of processor: equal names may share compiled programs."""
    text = platform.machine() + platform.processor()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "flags", "Features")):
                text += line
            elif not line:
                break
    except OSError:
        pass
    return hashlib.sha256(text.encode()).hexdigest()[:12]
