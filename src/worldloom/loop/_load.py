"""Records read back from where a run left them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from worldloom.loop._npy_sink import load_npy
from worldloom.loop._sink import SinkError
from worldloom.loop._zarr_sink import GROUP, load_zarr


def load_records(folder: str | Path) -> dict[str, Any]:
    """Read what a `NpySink` or a `ZarrSink` wrote: arrays by name, whole, whoever wrote them.

    All rows are read once and compared with their checksums: a changed, missing or exchanged file
    is a [`worldloom.SinkError`][] that names it. To look at records without that, open them with
    `np.load(folder / "name.npy", mmap_mode="r")` or `zarr.open_group(folder)`.

    An array that one process wrote to a `.npy` file is memory-mapped. One with many parts is joined
    in memory. Arrays of Zarr are Zarr arrays. A run that is not finished yields the rows that its
    newest checkpoint counts; from Zarr, in memory.

    ```python
    import jax.numpy as jnp
    import worldloom as wl

    def step(x, t):
        return x + 1, x

    wl.run(step, jnp.zeros(3), length=4, save=wl.Every(), sink=wl.NpySink("rows"))
    assert wl.load_records("rows")["records"].shape == (4, 3)
    ```
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise SinkError(f"{folder} holds no records: it is not a folder")
    return load_zarr(folder) if (folder / GROUP).exists() else load_npy(folder)
