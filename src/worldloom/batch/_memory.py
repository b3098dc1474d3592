"""What memory and cache there is."""

from __future__ import annotations

from pathlib import Path

import jax

from worldloom._memory import free_memory

# The last level of cache is taken to be this large where the system does not tell.
_USUAL_CACHE = 32 * 2**20


def available_memory(device: jax.Device | None = None) -> int:  # pyright: ignore[reportInvalidTypeForm]
    """Bytes that a program could still allocate on `device` (the default one if not given).

    An accelerator knows. For a CPU device it is what the operating system could give to this
    process without swapping, within the limits of its container and its own.
    """
    statistics = (device or jax.devices()[0]).memory_stats()
    if statistics is not None and "bytes_limit" in statistics:
        return statistics["bytes_limit"] - statistics["bytes_in_use"]
    return free_memory()


def cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Size of the processor's last level of cache."""
    sizes = [_USUAL_CACHE]
    levels = [0]
    for folder in root.glob("index*"):
        levels.append(int((folder / "level").read_text()))
        sizes.append(int((folder / "size").read_text().strip().removesuffix("K")) * 1024)
    return sizes[levels.index(max(levels))]
