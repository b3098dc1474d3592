"""Run the worlds, measure them against the naive version, leave the page."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, UInt8

from worldloom import batch, bench, mesh
from worldloom._systems import systems_with
from worldloom.compile import count_compiles
from worldloom.demo import _table
from worldloom.demo._naive import jit_loop, numpy_loop
from worldloom.demo._page import Findings, make_page
from worldloom.demo._table import Line
from worldloom.demo._world import (
    SUBSTEPS,
    Worlds,
    advance,
    advance_on,
    begin,
    react,
    recipes,
    shades,
)
from worldloom.loop import Every, RunResult, run

_NAIVE_WORLDS = 16


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much the demo does."""

    side: int = 64
    """Worlds along each side of the map."""

    length: int = 100
    """Steps of the run; each is 20 steps of the chemistry."""

    rounds: int = 5
    """Rounds of the measurement."""

    chapters: bool = True
    """Whether the systems on the engine add theirs."""


def main(out: Path, *, scale: Scale | None = None) -> Path:
    """Run thousands of worlds and write `out/report.html`.

    **Arguments:**

    - `out`: the folder; it is made if it is not there.
    - `scale`: how much to do; by default what takes half a minute on two cores.

    **Returns:**

    The path of the page, which is also the last line printed.
    """
    scale = scale or Scale()
    began = time.perf_counter()
    devices = _devices()
    step = advance_on(devices)
    _say(f"Running {scale.side**2:,} worlds, {scale.length * SUBSTEPS:,} steps each")
    with count_compiles() as compiles:
        worlds = begin(jax.random.key(0), side=scale.side)
        shown = worth_watching(scale.side)
        result = _run(step, mesh.shard(worlds, devices), shown, scale.length)
        _say(f"{result.run_seconds:.1f} s. Measuring against one world at a time")
        comparison = _measure(step, mesh.shard(worlds, devices), worlds, scale.rounds)
        # A fixed amount of memory: the programs that are looked at are the same at every start.
        plan = batch.plan(
            advance, worlds, jnp.int32(0), in_axes=(0, None), memory="8 GiB", donate_argnums=0
        )
        final = np.asarray(shades(result.state.v))
    comparison.to_json(out / "speed.json")
    findings = Findings(
        side=scale.side,
        steps=scale.length * SUBSTEPS,
        devices=devices.size,
        result=result,
        comparison=comparison,
        plan=plan,
        final=final,
        built=compiles.total,
    )
    page = make_page(findings, out)
    patterns = int(np.asarray(result.records["fates"])[-1, 0])
    lines = [
        Line(
            "worldloom",
            f"{scale.side**2:,} worlds x {scale.length * SUBSTEPS:,} steps",
            comparison,
            "worldloom.run",
            f"patterns in {patterns:,} worlds",
        )
    ]
    if scale.chapters:
        for system in systems_with("demo").values():
            _say(f"Running {system.package}")
            lines.append(system.load("demo").add_to(page))
    _table.add_to(page, lines)
    path = page.save(out / "report.html")
    loaded = compiles.loaded.total()
    seconds = time.perf_counter() - began
    _say(_table.for_console(lines))
    _say(f"{seconds:.1f} s; {compiles.total} programs compiled, {loaded} loaded from the cache")
    print(path, flush=True)
    return path


def worth_watching(side: int, *, rows: int = 5, columns: int = 8) -> tuple[int, ...]:
    """The numbers of worlds along the crescent of the map where patterns live.

    Where `kill` is `sqrt(feed) / 2 - feed`, a world that is the same everywhere loses its balance:
    patterns live on either side of that line.
    """
    feed, kill = map(np.asarray, recipes(side))
    chosen = []
    for wanted_feed in np.linspace(0.058, 0.026, rows):
        line = np.sqrt(wanted_feed) / 2 - wanted_feed
        for wanted_kill in line + np.linspace(-0.001, 0.004, columns):
            distance = ((feed - wanted_feed) / 0.05) ** 2 + ((kill - wanted_kill) / 0.015) ** 2
            chosen.append(int(np.argmin(distance)))
    return tuple(chosen)


def pictures(worlds: Worlds, *, shown: tuple[int, ...]) -> UInt8[Array, "shown 32 32"]:
    """Some of the worlds, as one sees them."""
    return shades(worlds.v[jnp.asarray(shown)])


def fates(worlds: Worlds) -> Int[Array, " 3"]:
    """How many worlds have a pattern, are the same everywhere, are empty."""
    empty = jnp.max(worlds.v, axis=(1, 2)) < 0.01
    pattern = ~empty & (jnp.std(worlds.v, axis=(1, 2)) > 0.01)
    counts = [jnp.sum(kind, dtype=jnp.int32) for kind in (pattern, ~empty & ~pattern, empty)]
    return jnp.stack(counts)


def _run(
    step: jax.tree_util.Partial, worlds: Worlds, shown: tuple[int, ...], length: int
) -> RunResult:
    watch = functools.partial(pictures, shown=shown)
    save = {
        "pictures": Every(1, of=watch, initial=True),
        "fates": Every(1, of=fates, initial=True),
    }
    return run(step, worlds, length=length, save=save, progress="worlds")


def _measure(
    step: jax.tree_util.Partial, spread: Worlds, worlds: Worlds, rounds: int
) -> bench.Comparison:
    """One step of one world is one item, whoever takes it."""
    count = len(worlds.feed)
    every_step = jax.jit(jax.vmap(react))
    return bench.compare(
        {
            "jit, one by one": jit_loop(worlds, _NAIVE_WORLDS),
            "NumPy, one by one": numpy_loop(worlds, _NAIVE_WORLDS),
            "jit(vmap)": lambda: every_step(worlds),
            "worldloom.run": lambda: run(step, spread, length=1).state,
        },
        items={
            "jit, one by one": _NAIVE_WORLDS,
            "NumPy, one by one": _NAIVE_WORLDS,
            "jit(vmap)": count,
            "worldloom.run": SUBSTEPS * count,
        },
        rounds=rounds,
        seconds=0.1,
        unit="steps",
        title="Gray-Scott",
        progress=True,
    )


def _devices() -> Mesh:
    """One device a core, a power of two of them so that the map divides; or what JAX has."""
    count = 1 << (mesh.usable_cores().bit_length() - 1)
    with contextlib.suppress(mesh.StartError):  # JAX is running: its devices are as they are
        mesh.use_cpu_devices(count)
    return mesh.worlds_mesh()


def _say(message: object) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(message)
