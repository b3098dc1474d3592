"""`worldloom trace ftle`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from jaxtrace._errors import TraceWarning
from jaxtrace.cli._options import (
    Box,
    Clock,
    Flow,
    Walls,
    boundary,
    check_ending,
    field,
)
from worldloom.cli import FileCommand, OutputFile, UsageError, plain_warnings

if TYPE_CHECKING:
    import numpy as np

_PICTURES = (".png", ".svg", ".pdf")


@dataclasses.dataclass(frozen=True)
class Ftle(Clock, Flow):
    """What `worldloom trace ftle` does."""

    resolution: tuple[int, ...] = ()
    """Places along each axis; 1 takes the middle. By default 200 along the longest."""

    box: Box = dataclasses.field(default_factory=Box)
    """The part of the domain to look at."""

    boundary: Walls = "none"
    """What the sides of the domain do."""

    out: Annotated[Path, OutputFile(), tyro.conf.arg(aliases=["-o"])] = Path("ftle.png")
    """What to write: .png, .svg or .pdf for a picture of two axes, .nc for the numbers."""

    def __post_init__(self) -> None:
        check_ending(self.out, (*_PICTURES, ".nc"))


def run(config: Ftle) -> None:
    """Compute the exponents, write them, and say what they are."""
    import numpy as np

    from jaxtrace.analysis import ftle
    from jaxtrace.seeding import uniform_grid_seeds

    with plain_warnings(TraceWarning):
        dataset = config.open()
        bounds = config.box.bounds(dataset)
        resolution = _resolution(config, dataset.dim, np.asarray(bounds))
        when = config.resolve(dataset)
        if when["time_span"] is None:
            raise UsageError("give --time-span: the exponent is a rate over a span of time")
        span = when["time_span"]
        steps = when["n_timesteps"] or max(1, round(abs((span[1] - span[0]) / when["dt"])))
        values = ftle(
            field(dataset, config.boundary),
            uniform_grid_seeds(resolution, bounds),
            span,
            steps,
            boundary_condition=boundary(config.boundary, dataset),
        )
    table = np.asarray(values).reshape(resolution)
    axes = _axes(resolution, bounds)
    _write(config.out, table, axes, span)
    finite = table[np.isfinite(table)]
    shown = " x ".join(map(str, resolution))
    print(f"{config.out}: {shown} places, {span[0]:g} to {span[1]:g}", end="")
    rates = f"FTLE {finite.min():.4g} to {finite.max():.4g}" if finite.size else "no FTLE"
    lost = table.size - finite.size
    print(f", {rates}" + (f"; {lost} left the flow (NaN)" if lost else ""))


def _resolution(config: Ftle, dim: int, bounds: np.ndarray) -> tuple[int, ...]:
    if config.resolution:
        if len(config.resolution) != dim or min(config.resolution) < 1:
            raise UsageError(f"--resolution {config.resolution}: expected {dim} numbers from 1 up")
        resolution = config.resolution
    else:
        extent = bounds[1] - bounds[0]
        share = extent / extent.max()
        resolution = tuple(max(2, round(200 * float(s))) for s in share)
        if dim == 3:
            resolution = (*resolution[:2], 1)
    wide = sum(n > 1 for n in resolution)
    if config.out.suffix.lower() in _PICTURES and wide != 2:
        raise UsageError(
            f"--resolution {resolution}: a picture has two axes; give 1 along the others, or write "
            "numbers to a file that ends in .nc"
        )
    return resolution


def _axes(resolution: tuple[int, ...], bounds: list[list[float]]) -> list[np.ndarray]:
    import numpy as np

    return [
        np.linspace(a, b, n) if n > 1 else np.array([(a + b) / 2])
        for a, b, n in zip(*bounds, resolution, strict=True)
    ]


def _write(out: Path, table: np.ndarray, axes: list, span: tuple[float, float]) -> None:
    from worldloom._extras import import_extra
    from worldloom.store._files import replacing

    with replacing(out) as hidden:
        if out.suffix.lower() == ".nc":
            xarray = import_extra("xarray", extra="trace", purpose="writing NetCDF")
            names = tuple("xyz"[: len(axes)])
            about = {"long_name": "finite-time Lyapunov exponent", "time_span": list(span)}
            data = xarray.DataArray(table, dict(zip(names, axes, strict=True)), names, attrs=about)
            data.to_dataset(name="ftle").to_netcdf(hidden)
            return
        from jaxtrace.visualization import plot_field

        wide = [i for i, axis in enumerate(axes) if len(axis) > 1]
        x, y = (axes[i] for i in wide)
        names = ["xyz"[i] for i in wide]
        figure = plot_field(table.reshape(len(x), len(y)), x, y, label="FTLE", axes=names)
        figure.savefig(hidden, format=out.suffix.lower()[1:], dpi=160)


COMMAND = FileCommand(
    "ftle",
    "Find what parts neighbours: the finite-time Lyapunov exponent of a flow.",
    Ftle,
    run,
    examples=(
        ("worldloom trace ftle gyre.nc --time-span 0 15 -o ftle.png", "repelling lines"),
        ("worldloom trace ftle gyre.nc --time-span 15 0", "backwards: attracting lines"),
        ("worldloom trace ftle flow.pvd --resolution 80 40 40 -o ftle.nc", "in a volume"),
    ),
)
