"""What a measurement ran on: a figure without its machine says nothing."""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

from worldloom.mesh._cores import usable_cores

_PACKAGES = ("worldloom", "jax", "jaxlib", "numpy", "equinox")
_QUIET = 0.3  # cores


@dataclasses.dataclass(frozen=True)
class Machine:
    """The processor, the memory, the devices and the versions behind a figure.

    ```python
    from worldloom import bench

    machine = bench.Machine.here()
    assert machine.cores >= 1
    assert "jax" in machine.versions
    ```
    """

    cpu: str
    """Model name of the processor."""

    cores: int
    """Cores this process may use."""

    memory: int
    """Bytes of main memory."""

    system: str
    """Operating system and architecture."""

    devices: str
    """JAX's devices, as in `2 x cpu`."""

    versions: dict[str, str]
    """Python, JAX and the packages that matter for speed."""

    load: float | None = None
    """Cores that others kept busy just before: see `load`. Above zero means a busy machine."""

    @classmethod
    def here(cls) -> Machine:
        """Describe the machine this process runs on."""
        import jax
        import psutil

        kinds = collections.Counter(device.device_kind for device in jax.devices())
        return cls(
            cpu=_cpu_model(),
            cores=usable_cores(),
            memory=psutil.virtual_memory().total,
            system=f"{platform.system()} {platform.machine()}",
            devices=", ".join(f"{count} x {kind}" for kind, count in kinds.items()),
            versions={"python": platform.python_version(), **_versions()},
            load=load(),
        )

    @property
    def quiet(self) -> bool:
        """Whether others left it alone: only then is a promise judged by the clock on the wall."""
        return is_quiet(self.load)

    def __str__(self) -> str:
        """One line for the foot of a table."""
        parts = [
            f"{self.cpu}, {self.cores} core{'s' * (self.cores != 1)}",
            f"{self.memory / 2**30:.0f} GiB",
            self.system,
            self.devices,
            f"Python {self.versions.get('python', '?')}, JAX {self.versions.get('jax', '?')}",
        ]
        if self.load is not None:
            parts.append(f"load {self.load:g}")
        return " · ".join(parts)


def load() -> float:
    """How many cores are busy while this process waits for a fifth of a second.

    The load average of a minute would count what this process, or the benchmark before it, did.
    """
    import psutil

    return round(psutil.cpu_percent(interval=0.2) / 100 * (os.cpu_count() or 1), 2)


def is_quiet(load: float | None) -> bool:
    """Whether so many busy cores leave a measurement alone; not, where nothing is known."""
    return load is not None and load <= _QUIET


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree
            continue
    return found


@functools.cache
def _cpu_model() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.strip()
    return platform.processor() or platform.machine()
