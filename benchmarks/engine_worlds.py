"""Many worlds in one program: against one at a time, over worlds, and over devices.

The worlds are those of `make demo`: reaction-diffusion on a torus of 32 x 32 cells. The naive
version is what one writes first: a compiled step, called by Python for one world after the other.

    python benchmarks/engine_worlds.py [--rounds 9] [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent / "engine"
sys.path.insert(0, str(HERE))

import jax  # noqa: E402
from reaction import setup  # noqa: E402  # pyright: ignore[reportMissingImports]

from worldloom import bench, mesh  # noqa: E402
from worldloom.demo._naive import jit_loop, numpy_loop  # noqa: E402
from worldloom.demo._world import SUBSTEPS, begin  # noqa: E402

GROUP = "engine"
NAIVE, OURS = "jit, one by one", "worldloom.run"
FEW = 32
DEVICES = tuple(count for count in (1, 2, 4, 8, 16) if count <= mesh.usable_cores())


def over_devices(script: bench.Script, side: int, rounds: int) -> None:
    """The same worlds on more and more devices, each number in a process of its own."""
    variants = {
        f"{count} devices": bench.Rival(
            HERE / "reaction.py",
            options={"side": side},
            environ={"JAX_NUM_CPU_DEVICES": str(count)},
        )
        for count in DEVICES
    }
    found = bench.compare(
        variants,
        rounds=rounds,
        items=side * side * SUBSTEPS,
        unit="world-steps",
        title=f"{side * side:,} worlds over devices",
    )
    sizes = dict(zip(variants, DEVICES, strict=True))
    script.growth(found, axis="devices", sizes=sizes)


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(9, 3))
    mesh.use_every_core()
    options = script.start()
    side = 16 if options.quick else 64
    few = begin(jax.random.key(0), 16)
    found = bench.compare(
        {
            NAIVE: jit_loop(few, FEW),
            OURS: setup(side=side),
            "NumPy, one by one": numpy_loop(few, FEW),
        },
        rounds=options.rounds,
        items={NAIVE: FEW, OURS: side * side * SUBSTEPS, "NumPy, one by one": FEW},
        unit="world-steps",
        title=f"{side * side:,} worlds in one program",
    )
    script.case(found, ours=OURS, naive=NAIVE)
    sizes = {f"{n * n:,} worlds": n * n for n in (1, 4, 16, 64) if n <= side}
    many = bench.compare(
        {name: setup(side=int(count**0.5)) for name, count in sizes.items()},
        rounds=options.rounds,
        items={name: count * SUBSTEPS for name, count in sizes.items()},
        unit="world-steps",
        title="worlds in one program, over worlds",
    )
    script.growth(many, axis="worlds", sizes=sizes)
    over_devices(script, side, options.rounds)
    script.finish()


if __name__ == "__main__":
    main()
