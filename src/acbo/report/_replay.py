"""An optimisation to step through: what was set, what came of it, what was believed then."""

from __future__ import annotations

import dataclasses

import numpy as np

from acbo.report._drawing import assets, draw_both
from acbo.report._recording import Recording
from worldloom import report
from worldloom.report._replay import script_json
from worldloom.report._section import caption

_WIDTH, _TALL = 380, 170
_DRAWN = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class OptimisationReplay:
    """A recorded optimisation, as a piece of a `worldloom.report` page.

    The graph shows what was believed then, edge by edge; beside it the worth of each intervention
    and the believed causes of the target. Play, step and scrub as in every replay.

    **Arguments:**

    - `recording`: of `record_optimisation`.
    - `title`, `caption`: above and below.
    - `fps`: steps a second at normal speed.
    """

    recording: Recording
    title: str = ""
    caption: str = ""
    fps: float | int = 1.0

    def render(self) -> report.Fragment:
        """The state at the end, the data, and the script that makes a player of them."""
        told = self.recording
        title = self.title or f"One optimisation of {told.names[told.target]}: {told.policy}"
        ever = (told.beliefs.max(axis=0) >= _DRAWN) & ~np.eye(len(told.names), dtype=bool)
        last = told.beliefs[-1]
        arrows = [(i, j, float(last[i, j])) for i, j in np.argwhere(ever).tolist()]
        drawings = draw_both(
            last,
            told.names,
            arrows,
            about=f"{title}: what is believed of the graph",
            target=told.target,
        )
        about = {
            "fps": self.fps,
            "names": told.names,
            "target": told.target,
            "variables": told.variables.tolist(),
            "values": _rounded(told.values),
            "seen": _rounded(told.seen),
            "worth": _rounded(told.worth),
            "best": _rounded(told.best),
            "beliefs": _rounded(told.beliefs),
        }
        causes = "".join(
            f'<li data-cause="{i}"><span>{report.escape(name)}</span>'
            f'<i style="--share: {last[i, told.target]:.3f}"></i>'
            f"<b>{last[i, told.target]:.2f}</b></li>"
            for i, name in enumerate(told.names)
            if i != told.target
        )
        target = report.escape(told.names[told.target])
        aim = "small" if told.minimise else "large"
        return report.Fragment(
            f'<figure class="chart acbo-graph acbo-replay" role="group" '
            f'aria-label="{report.escape("Replay: " + title)}"><h4>{report.escape(title)}</h4>'
            f'<p class="acbo-now" aria-live="polite">{report.escape(in_words(told))}</p>'
            f'<div class="acbo-panels"><div class="acbo-stage">{drawings}</div><div>'
            f"<h5>Worth of each intervention</h5>{_track(told)}"
            f'<h5>Believed causes of {target}, which is to be {aim}</h5><ul class="bars">{causes}'
            f'</ul></div></div><div class="acbo-controls"></div>'
            f'<script type="application/json" class="about">{script_json(about)}</script>'
            f"{caption(self.caption)}</figure>",
            (
                *assets(),
                report.Asset.load("transport.css"),
                report.Asset.load("acbo_replay.css", package="acbo.report"),
                report.Asset.load("transport.js"),
                report.Asset.load("acbo_replay.js", package="acbo.report"),
            ),
        )


def in_words(told: Recording) -> str:
    """How it ended, for those who do not play it."""
    first = int(np.argmax(told.worth))
    name, target = told.names[told.variables[first]], told.names[told.target]
    return (
        f"The best of {len(told.worth)} interventions was number {first + 1}: {name} set to "
        f"{told.values[first]:.2f}, {target} seen at {told.seen[first]:.2f}; "
        f"{100 * told.best[-1]:.0f} % of what one intervention can reach."
    )


def _track(told: Recording) -> str:
    """Dots for the worth of each intervention, and a line for the best so far."""
    worth = np.clip(told.worth, -1.5, 1.5)
    best = np.clip(told.best, -1.5, 1.5)
    low, high = min(0.0, float(worth.min())) - 0.08, 1.08
    count = len(worth)

    def x(k: int) -> float:
        return 44 + (k + 0.5) * (_WIDTH - 50) / count

    def y(value: float) -> float:
        return _TALL - 22 - (value - low) / (high - low) * (_TALL - 30)

    parts = []
    for level, name in ((0.0, "nothing"), (1.0, "best")):
        parts.append(
            f'<line x1="44" x2="{_WIDTH - 4}" y1="{y(level):.1f}" y2="{y(level):.1f}"/>'
            f'<text x="0" y="{y(level) + 4:.1f}">{name}</text>'
        )
    points = " ".join(f"{x(k):.1f},{y(float(value)):.1f}" for k, value in enumerate(best))
    parts.append(f'<polyline class="series-0" points="{points}"/>')
    for k, value in enumerate(worth):
        parts.append(
            f'<circle data-step="{k + 1}" cx="{x(k):.1f}" cy="{y(float(value)):.1f}" r="5"/>'
        )
        if count <= 12 or (k + 1) % 5 == 0:
            parts.append(
                f'<text x="{x(k):.1f}" y="{_TALL - 4}" text-anchor="middle">{k + 1}</text>'
            )
    return (
        f'<svg class="acbo-track" viewBox="0 0 {_WIDTH} {_TALL}" role="img" aria-label="'
        f'Worth of {count} interventions; the best is {told.best[-1]:.2f}.">{"".join(parts)}</svg>'
    )


def _rounded(values: np.ndarray) -> list:
    return np.round(np.asarray(values, float), 3).tolist()
