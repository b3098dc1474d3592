"""What there is: versions, devices, memory, the compilation cache, extras."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import re
from pathlib import Path

import worldloom

_PACKAGES = ("jax", "jaxlib", "equinox", "numpy")
_NOT_FOR_USERS = ("all", "dev")


@dataclasses.dataclass(frozen=True)
class Cache:
    """The persistent compilation cache."""

    folder: str | None
    """Where compiled programs are kept; `None` where there is no cache."""

    entries: int = 0
    bytes: int = 0
    writable: bool = False


@dataclasses.dataclass(frozen=True)
class Facts:
    """The environment that a run would have."""

    versions: dict[str, str]
    devices: tuple[str, ...]
    cores: int
    """Cores this process may use."""

    memory_total: int
    memory_available: int
    cache: Cache
    extras: dict[str, tuple[str, ...]]
    """For each extra of Worldloom, the packages of it that are missing. Empty where Worldloom is
    used from its source folder without being installed: nothing lists its extras then."""


def gather_facts() -> Facts:
    """Look around. Starts JAX."""
    import jax
    import psutil

    from worldloom.bench import Machine

    machine = Machine.here()
    return Facts(
        versions={"python": machine.versions["python"], **_versions()},
        devices=tuple(
            f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()
        ),
        cores=machine.cores,
        memory_total=machine.memory,
        memory_available=psutil.virtual_memory().available,
        cache=read_cache(jax.config.values["jax_compilation_cache_dir"]),
        extras=missing_of_extras(_requirements()),
    )


def read_cache(folder: str | None) -> Cache:
    """Count what is in the cache folder."""
    if folder is None:
        return Cache(None)
    entries = size = 0
    if os.path.isdir(folder):
        for entry in os.scandir(folder):
            # JAX writes a small file beside each program to remember when it was last used.
            if entry.is_file():
                entries += entry.name.endswith("-cache")
                size += entry.stat().st_size
    place = Path(folder)
    while not place.exists():
        place = place.parent
    return Cache(folder, entries, size, os.access(place, os.W_OK))


def missing_of_extras(requirements: list[str]) -> dict[str, tuple[str, ...]]:
    """From the requirements of a distribution: its extras, and what each still lacks."""
    found: dict[str, list[str]] = {}
    for requirement in requirements:
        match = re.match(r"([\w.-]+).*\bextra *== *['\"]([\w-]+)['\"]", requirement)
        if match is None or match[2] in _NOT_FOR_USERS:
            continue
        missing = found.setdefault(match[2], [])
        if _version(match[1]) is None:
            missing.append(match[1])
    return {extra: tuple(missing) for extra, missing in found.items()}


def _requirements() -> list[str]:
    try:
        return importlib.metadata.requires("worldloom") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _versions() -> dict[str, str]:
    found = {package: _version(package) or "not installed" for package in _PACKAGES}
    return {"worldloom": worldloom.__version__, **found}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
