"""The same program on one device, many devices, many processes, many hosts.

The worlds of a batch are split over the devices along their leading axis. A program written
for one device runs unchanged on many: `shard` the state, run, `gather` the result.
"""

from __future__ import annotations

from worldloom._processes import DisagreementError as DisagreementError
from worldloom._processes import alone as alone
from worldloom._processes import require_same as require_same
from worldloom.mesh._arrays import gather as gather
from worldloom.mesh._arrays import join as join
from worldloom.mesh._arrays import replicate as replicate
from worldloom.mesh._arrays import shard as shard
from worldloom.mesh._cores import usable_cores as usable_cores
from worldloom.mesh._cores import use_every_core as use_every_core
from worldloom.mesh._devices import AXIS as AXIS
from worldloom.mesh._devices import use_cpu_devices as use_cpu_devices
from worldloom.mesh._devices import worlds_mesh as worlds_mesh
from worldloom.mesh._each_device import each_device as each_device
from worldloom.mesh._errors import LaunchError as LaunchError
from worldloom.mesh._errors import MeshError as MeshError
from worldloom.mesh._errors import StartError as StartError
from worldloom.mesh._joined import joined as joined
from worldloom.mesh._launch import launch as launch
from worldloom.mesh._start import abort as abort
from worldloom.mesh._start import start as start

__all__ = [
    "AXIS",
    "DisagreementError",
    "LaunchError",
    "MeshError",
    "StartError",
    "abort",
    "alone",
    "each_device",
    "gather",
    "join",
    "joined",
    "launch",
    "replicate",
    "require_same",
    "shard",
    "start",
    "usable_cores",
    "use_cpu_devices",
    "use_every_core",
    "worlds_mesh",
]
