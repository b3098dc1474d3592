"""Ten thousand pendulums: a run with records, a checkpoint and a page to look at.

    python examples/pendulums.py [FOLDER]

Press Ctrl-C while it runs, start it again, and it goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax.numpy as jnp

import worldloom as wl
from worldloom import report


def swing(state, t):
    """One step of every pendulum; the output is the mean energy."""
    angle, speed = state
    speed = speed - 0.01 * jnp.sin(angle)
    angle = angle + 0.01 * speed
    return (angle, speed), jnp.mean(speed**2 / 2 - jnp.cos(angle))


def some_angles(state):
    return state[0][::2500]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "pendulums")
    start = (jnp.linspace(0.1, 3.0, 10_000), jnp.zeros(10_000))
    result = wl.run(
        swing,
        start,
        length=5000,
        save={"energy": wl.Every(10), "angle": wl.Every(50, of=some_angles, initial=True)},
        progress="pendulums",
        checkpoint=folder / "run",
        resume=True,
    )
    energy = result.records["energy"]
    print(result)
    print(f"mean energy from {energy[0]:.4f} to {energy[-1]:.4f}")
    page = report.Report("Ten thousand pendulums", subtitle="Four of them, and what they conserve.")
    page.headline(f"{result.steps:,}", "steps", command="python examples/pendulums.py")
    page.section("Angles")
    steps = [50 * row for row in range(len(result.records["angle"]))]
    page.add(
        report.LineChart(
            {f"pendulum {2500 * i:,}": (steps, result.records["angle"][:, i]) for i in range(4)},
            title="Four of the pendulums",
            x_label="step",
            y_label="angle",
        )
    )
    print(page.save(folder / "report.html"))


if __name__ == "__main__":
    main()
