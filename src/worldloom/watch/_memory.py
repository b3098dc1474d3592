"""How much memory a piece of work takes: host and device, phase by phase."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax

from worldloom._errors import WorldloomError
from worldloom.watch._tables import megabytes, print_table


class MeterError(WorldloomError, ValueError):
    """A `MemoryMeter` was given something it cannot measure with."""


def host_bytes() -> int:
    """Memory of this process that is in RAM (its resident set), in bytes."""
    import psutil

    return psutil.Process().memory_info().rss


def device_bytes() -> int:
    """Memory that JAX holds on the devices of this process, in bytes.

    Devices that keep account of themselves are asked; for the others (CPUs), the arrays that are
    alive are added up.
    """
    devices = jax.local_devices()
    accounts = {device: device.memory_stats() for device in devices}
    counted = sum(stats["bytes_in_use"] for stats in accounts.values() if stats)
    silent = {device for device, stats in accounts.items() if not stats}
    return counted + sum(_bytes_on(array, silent) for array in jax.live_arrays())


def _bytes_on(array: jax.Array, devices: set[Any]) -> int:
    if array.is_deleted():
        return 0
    shards = len(array.sharding.addressable_devices & devices)
    return shards * math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class Phase:
    """One measured piece of work. All sizes in bytes.

    **Attributes:**

    - `name`, `seconds`: what it was, and how long it took.
    - `host_before`, `host_after`, `host_peak`: the resident set of the process.
    - `device_before`, `device_after`: memory on the devices.
    - `overhead`: the share of one core that measuring took.
    """

    name: str
    seconds: float
    host_before: int
    host_after: int
    host_peak: int
    device_before: int
    device_after: int
    overhead: float

    @property
    def host_growth(self) -> int:
        """What is left on the host after the phase, of what was not there before."""
        return self.host_after - self.host_before

    @property
    def device_growth(self) -> int:
        """What is left on the devices after the phase, of what was not there before."""
        return self.device_after - self.device_before


class MemoryMeter:
    """Measures named phases of a program.

    A thread looks at the resident set every `interval` seconds while a phase lasts, or less
    often if that takes more than half a percent of a core. A peak that is shorter may be missed.
    Phases may be nested and repeated. JAX computes while Python goes on: wait for results inside
    the phase that they belong to.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import watch

    meter = watch.MemoryMeter()
    with meter.phase("load"):
        data = jax.block_until_ready(jnp.ones(10_000_000))
    with meter.phase("sum"):
        jax.block_until_ready(data.sum())
    meter.print()
    assert meter.phases[0].device_growth == 40_000_000
    ```
    """

    def __init__(self, *, interval: float | int = 0.02):
        if not interval > 0:
            raise MeterError(f"interval is {interval!r}; expected a positive number of seconds")
        self.interval = interval
        self.phases: list[Phase] = []

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the `with` block as the phase `name`. Kept even if the block raises."""
        device_before = device_bytes()
        sampler = _Sampler(self.interval)
        host_before = host_bytes()
        started = time.perf_counter()
        sampler.start()
        try:
            yield
        finally:
            host_after = host_bytes()
            seconds = time.perf_counter() - started
            peak, spent = sampler.stop()
            self.phases.append(
                Phase(
                    name=name,
                    seconds=seconds,
                    host_before=host_before,
                    host_after=host_after,
                    host_peak=max(peak, host_before, host_after),
                    device_before=device_before,
                    device_after=device_bytes(),
                    overhead=spent / seconds,
                )
            )

    def print(self) -> None:
        """Print the phases as a table, sizes in MiB."""
        rows = [
            (
                phase.name,
                f"{phase.seconds:.2f}",
                megabytes(phase.host_peak),
                f"{phase.host_growth / 2**20:+.1f}",
                megabytes(phase.device_after),
                f"{phase.device_growth / 2**20:+.1f}",
            )
            for phase in self.phases
        ]
        columns = ("phase", "s", "host peak", "host left", "device", "device left")
        print_table("Memory (MiB)", columns, rows)


class _Sampler(threading.Thread):
    """Remembers the largest resident set it has seen, and the time that looking took."""

    def __init__(self, interval: float):
        super().__init__(name="worldloom-memory-meter", daemon=True)
        self._interval = interval
        self._stopped = threading.Event()
        self._peak = 0
        self._spent = 0.0

    def run(self) -> None:
        import psutil

        process = psutil.Process()
        wait = self._interval
        while not self._stopped.wait(wait):
            self._peak = max(self._peak, process.memory_info().rss)
            spent = time.thread_time()
            wait = max(self._interval, 200 * (spent - self._spent))
            self._spent = spent

    def stop(self) -> tuple[int, float]:
        self._stopped.set()
        self.join()
        return self._peak, self._spent
