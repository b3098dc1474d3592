"""Look into a running program without breaking or slowing it."""

from __future__ import annotations

from worldloom.watch._callback import CallbackError as CallbackError
from worldloom.watch._callback import callback as callback
from worldloom.watch._leak import LeakHuntError as LeakHuntError
from worldloom.watch._leak import LeakReport as LeakReport
from worldloom.watch._leak import find_leak as find_leak
from worldloom.watch._memory import MemoryMeter as MemoryMeter
from worldloom.watch._memory import MeterError as MeterError
from worldloom.watch._memory import Phase as Phase
from worldloom.watch._memory import device_bytes as device_bytes
from worldloom.watch._memory import host_bytes as host_bytes
from worldloom.watch._metrics import JsonlMetrics as JsonlMetrics
from worldloom.watch._metrics import Metrics as Metrics
from worldloom.watch._metrics import MetricsError as MetricsError
from worldloom.watch._metrics import MetricsWriter as MetricsWriter
from worldloom.watch._metrics import read_metrics as read_metrics
from worldloom.watch._profile import Kernel as Kernel
from worldloom.watch._profile import Profile as Profile
from worldloom.watch._profile import ProfileError as ProfileError
from worldloom.watch._profile import profile as profile
from worldloom.watch._profile import read_kernels as read_kernels
from worldloom.watch._rate import Rate as Rate
from worldloom.watch._rate import RateError as RateError
from worldloom.watch._statistics import print_statistics as print_statistics
from worldloom.watch._statistics import reset_statistics as reset_statistics
from worldloom.watch._statistics import statistics as statistics

__all__ = [
    "CallbackError",
    "JsonlMetrics",
    "Kernel",
    "LeakHuntError",
    "LeakReport",
    "MemoryMeter",
    "MeterError",
    "Metrics",
    "MetricsError",
    "MetricsWriter",
    "Phase",
    "Profile",
    "ProfileError",
    "Rate",
    "RateError",
    "callback",
    "device_bytes",
    "find_leak",
    "host_bytes",
    "print_statistics",
    "profile",
    "read_kernels",
    "read_metrics",
    "reset_statistics",
    "statistics",
]
