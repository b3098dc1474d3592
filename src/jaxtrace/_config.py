"""`configure`: precision, device and memory, at any time."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace._errors import TraceError
from worldloom import mesh
from worldloom.batch import available_memory

_DTYPES = ("float32", "float64")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `configure` has set.

    **Attributes:**

    - `dtype`: the type of positions and velocities.
    - `device`: `"auto"`, or the platform that particles run on: `"cpu"`, `"gpu"`, `"tpu"`.
    - `memory_limit`: bytes that fields and records together may take; `None` for what is
        available when they are needed.
    """

    dtype: str = "float32"
    device: str = "auto"
    memory_limit: int | None = None


_settings = Settings()


def configure(
    *,
    dtype: str | None = None,
    device: str | None = None,
    memory_limit_gb: float | int | None = None,
) -> Settings:
    """Set precision, device and memory for what is made from now on. Returns all settings.

    It may be called at any time, and needs no environment variables. What is left out stays.

    **Arguments:**

    - `dtype`: `"float32"` or `"float64"`. The latter switches JAX to 64 bits.
    - `device`: `"cpu"`, `"gpu"` or `"tpu"`; one that is missing is an error. `"auto"` takes the
        best there is.
    - `memory_limit_gb`: gigabytes that a run may plan to take; a run that needs more is refused
        before it starts, with the numbers. 0 removes the limit: then what is available (free
        memory, and what the container of the process has left) is the limit.

    ```python
    import jaxtrace as jt

    settings = jt.configure(dtype="float32", device="auto", memory_limit_gb=3.0)
    assert settings.memory_limit == 3_000_000_000
    ```
    """
    global _settings
    changes: dict[str, Any] = {}
    if dtype is not None:
        if dtype not in _DTYPES:
            raise TraceError(f"dtype={dtype!r}: expected one of {_DTYPES}")
        changes["dtype"] = dtype
    if device is not None:
        mesh.use_every_core()
        if device != "auto":
            _devices_of(device)
        changes["device"] = device
    if memory_limit_gb is not None:
        if memory_limit_gb < 0:
            raise TraceError(f"memory_limit_gb={memory_limit_gb}: expected a number from 0 up")
        changes["memory_limit"] = int(memory_limit_gb * 1e9) or None
    if changes.get("dtype") == "float64":
        jax.config.update("jax_enable_x64", True)
    _settings = dataclasses.replace(_settings, **changes)
    return _settings


def settings() -> Settings:
    """What `configure` has set so far."""
    return _settings


def float_dtype() -> np.dtype:
    """The type of positions and velocities."""
    if _settings.dtype == "float64" and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        raise TraceError(
            "dtype is 'float64', but JAX was switched back to 32 bits since: call "
            "jaxtrace.configure(dtype='float64') again, or dtype='float32'"
        )
    return np.dtype(_settings.dtype)


def memory_room() -> int:
    """Bytes that a run may take: what `configure` allows, or what is available here."""
    limit = _settings.memory_limit
    return available_memory(devices()[0]) if limit is None else limit


def devices() -> list[Any]:
    """The devices that particles are spread over."""
    mesh.use_every_core()
    if _settings.device == "auto":
        return list(jax.local_devices())
    return _devices_of(_settings.device)


def as_float(array: Any) -> jax.Array:
    """A copy of an array in the configured type, on the device."""
    mesh.use_every_core()
    return jnp.array(np.asarray(array), float_dtype())


def _devices_of(platform: str) -> list[Any]:
    try:
        return list(jax.local_devices(backend=platform))
    except RuntimeError as error:
        found = sorted({device.platform for device in jax.local_devices()})
        raise TraceError(
            f"device={platform!r}: JAX finds none here, only {found}. Install JAX for that device, "
            "or use device='auto'"
        ) from error
