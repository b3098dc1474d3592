"""How much memory this process could still have."""

from __future__ import annotations

import resource
from pathlib import Path


def free_memory() -> int:
    """Bytes that this process could still allocate without swapping.

    The least of what the machine has free, what each control group around this process leaves to
    it (a container, a Slurm job), and what `ulimit -v` and `ulimit -d` do.
    """
    import psutil

    return min([psutil.virtual_memory().available, *left_in_container(), *_left_in_limits()])


def left_in_container(
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


def _left_in_limits() -> list[int]:
    """What the limits of this process on its address space and its data leave to it."""
    import psutil

    memory = psutil.Process().memory_info()
    used = {"RLIMIT_AS": memory.vms, "RLIMIT_DATA": getattr(memory, "data", memory.rss)}
    limits = {name: resource.getrlimit(getattr(resource, name))[0] for name in used}
    return [
        max(limit - used[name], 0)
        for name, limit in limits.items()
        if limit != resource.RLIM_INFINITY
    ]
