"""What memory and cache there is."""

from __future__ import annotations

from pathlib import Path

import jax

# The last level of cache is taken to be this large where the system does not tell.
_USUAL_CACHE = 32 * 2**20


def available_memory(device: jax.Device | None = None) -> int:  # pyright: ignore[reportInvalidTypeForm]
    """Bytes that a program could still allocate on `device` (the default one if not given).

    An accelerator knows. For a CPU device it is what the operating system could give to this
    process without swapping, within the limits of its container.
    """
    statistics = (device or jax.devices()[0]).memory_stats()
    if statistics is not None and "bytes_limit" in statistics:
        return statistics["bytes_limit"] - statistics["bytes_in_use"]
    import psutil

    return min([psutil.virtual_memory().available, *_left_in_container()])


def _left_in_container(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> list[int]:
    """What each control group around this process leaves to it. Empty where none has a limit."""
    left = []
    for folder in _groups(root, membership):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            try:
                bytes_of_limit = (folder / limit).read_text().strip()
                bytes_used = int((folder / used).read_text())
                statistics = (folder / "memory.stat").read_text().split()
            except OSError:
                continue  # Another version of control groups, or none.
            if bytes_of_limit != "max":
                # Cached files count as used, but give way when memory is needed.
                files = int(statistics[statistics.index("inactive_file") + 1])
                left.append(max(int(bytes_of_limit) - bytes_used + files, 0))
    return left


def _groups(root: Path, membership: Path) -> list[Path]:
    """Folders of the control groups of this process, of both versions, innermost first."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []  # Not Linux.
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            top = root / controllers
            inner = top / path.lstrip("/")
            folders += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(top)]
    return folders


def cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Size of the processor's last level of cache."""
    sizes = [_USUAL_CACHE]
    levels = [0]
    for folder in root.glob("index*"):
        levels.append(int((folder / "level").read_text()))
        sizes.append(int((folder / "size").read_text().strip().removesuffix("K")) * 1024)
    return sizes[levels.index(max(levels))]
