"""A graph on a page: how probable an edge is, is how wide it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from acbo._errors import DataError
from acbo.report._layout import Place, layout
from worldloom import report
from worldloom.report._section import caption

_LONGEST_NAME = 12
_HEIGHT = 34.0


@dataclasses.dataclass(frozen=True, eq=False)
class GraphDrawing:
    """Edge probabilities as a drawing: causes first, wide arrows where an edge is likely.

    Edges below 0.5 are dashed, those below `smallest` are left out. With the true graph, edges that
    are wrong and edges that were missed have colours of their own. Every arrow tells its
    probability when it is pointed at; the list of all of them is there without seeing.

    **Arguments:**

    - `probabilities`: `[i, j]` for i causes j.
    - `names`: of the variables.
    - `title`, `caption`: above and below.
    - `target`: the variable to mark, by its number.
    - `truth`: the true graph, if it is known.
    - `smallest`: the least probability that is drawn.

    ```python
    import numpy as np
    from acbo.report import GraphDrawing
    from worldloom import report

    chances = np.array([[0.0, 0.9], [0.1, 0.0]])
    page = report.Report("A graph").add(GraphDrawing(chances, ["rain", "river"]))
    assert "rain → river: 0.90" in page.html()
    ```
    """

    probabilities: Float[np.ndarray, "d d"]
    names: Sequence[str]
    title: str = "Graph"
    caption: str = ""
    target: int | None = None
    truth: Bool[np.ndarray, "d d"] | None = None
    smallest: float = 0.1

    def __post_init__(self) -> None:
        d = len(self.names)
        if self.probabilities.shape != (d, d) or d == 0:
            raise DataError(
                f"probabilities is {list(self.probabilities.shape)} for {d} names; expected a "
                "square with one row and one column a name"
            )
        if not np.all((self.probabilities >= 0) & (self.probabilities <= 1)):
            raise DataError("probabilities has entries that are not between 0 and 1")

    def render(self) -> report.Fragment:
        """Two drawings, one for wide and one for narrow screens, of which one is shown."""
        pairs = np.argwhere(self._drawn()).tolist()
        arrows = [(i, j, float(self.probabilities[i, j])) for i, j in pairs]
        told = [
            f"{self.names[i]} → {self.names[j]}: {p:.2f}"
            for i, j, p in sorted(arrows, key=lambda arrow: -arrow[2])
        ]
        about = f"{self.title}. " + ("; ".join(told) if told else "No edge is likely.")
        drawings = draw_both(
            self.probabilities,
            self.names,
            arrows,
            about=about,
            target=self.target,
            kinds=self._kinds(),
        )
        return report.Fragment(
            f'<figure class="chart acbo-graph"><h4>{report.escape(self.title)}</h4>'
            f"{self._legend()}{drawings}{caption(self.caption)}</figure>",
            assets(),
        )

    def _drawn(self) -> np.ndarray:
        drawn = (self.probabilities >= self.smallest) & ~np.eye(len(self.names), dtype=bool)
        return drawn if self.truth is None else drawn | self.truth

    def _kinds(self) -> dict[tuple[int, int], str]:
        if self.truth is None:
            return {}
        kinds = {}
        for i, j in np.argwhere(self._drawn()).tolist():
            said = self.probabilities[i, j] > 0.5
            if self.truth[i, j]:
                kinds[i, j] = "found" if said else "missed"
            elif said:
                kinds[i, j] = "wrong"
        return kinds

    def _legend(self) -> str:
        if self.truth is None:
            return ""
        count = list(self._kinds().values()).count
        words = [f"{count('found')} found", f"{count('wrong')} wrong", f"{count('missed')} missed"]
        items = "".join(
            f'<li class="acbo-{word.split()[1]}">{report.escape(word)}</li>' for word in words
        )
        return f'<ul class="legend">{items}</ul>'


def assets() -> tuple[report.Asset, ...]:
    """What a drawing needs."""
    own = report.Asset.load("acbo_graph.css", package="acbo.report")
    return (report.Asset.load("chart.css"), own)


def draw_both(
    probabilities: np.ndarray,
    names: Sequence[str],
    arrows: Sequence[tuple[int, int, float]],
    *,
    about: str,
    target: int | None = None,
    kinds: dict[tuple[int, int], str] | None = None,
) -> str:
    """The arrows between the variables, in a wide and in a narrow drawing."""
    shown = [n if len(n) <= _LONGEST_NAME else n[: _LONGEST_NAME - 1] + "…" for n in names]
    box = max(64.0, 22 + 8.2 * max(len(name) for name in shown))
    found = []
    for size, upright, most in (
        ("wide", False, 7),
        ("narrow", True, max(2, int(300 // (box + 14)))),
    ):
        found_layout = layout(probabilities, most=most)
        along, across = (94.0, box + 14) if upright else (box + 84, 62.0)
        centres, width, height = found_layout.places(along=along, across=across, upright=upright)
        parts = []
        for i, j, p in sorted(arrows, key=lambda arrow: arrow[2]):
            lanes = [centres[lane] for lane in found_layout.routes.get((i, j), ())]
            way = [centres[i], *(lanes or [_beside(centres[i], centres[j])]), centres[j]]
            label = f"{names[i]} → {names[j]}: {p:.2f}"
            parts.append(_arrow(way, f"{i}-{j}", p, box, label, (kinds or {}).get((i, j), "")))
        for k in range(len(names)):
            x, y = centres[k]
            mark = " target" if k == target else ""
            parts.append(
                f'<g class="node{mark}" data-node="{k}"><title>{report.escape(names[k])}</title>'
                f'<rect x="{x - box / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{box:.1f}" '
                f'height="{_HEIGHT:.0f}" rx="9"/><text x="{x:.1f}" y="{y + 4.5:.1f}" '
                f'text-anchor="middle">{report.escape(shown[k])}</text></g>'
            )
        # A small graph is not blown up to the width of the page.
        widest = width * min(1.35, max(1.1, 420 / width))
        found.append(
            f'<svg class="{size}" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'style="max-width: {widest:.0f}px" role="img" '
            f'aria-label="{report.escape(about)}">{"".join(parts)}</svg>'
        )
    return "".join(found)


def _beside(start: Place, end: Place) -> Place:
    """A point left of the middle of the way: both directions of a pair stay apart."""
    (x0, y0), (x1, y1) = start, end
    bend = 0.08 + 0.05 * min(math.hypot(x1 - x0, y1 - y0) / 300, 3)
    return (x0 + x1) / 2 + bend * (y1 - y0), (y0 + y1) / 2 - bend * (x1 - x0)


def _arrow(way: list[Place], name: str, p: float, box: float, label: str, kind: str) -> str:
    """An arrow from the border of one variable, along some points, to that of another."""
    start = _border(*way[0], *way[1], box, 2.0)
    ex, ey = _border(*way[-1], *way[-2], box, 9.0)
    angle = math.atan2(ey - way[-2][1], ex - way[-2][0])
    tip, half = 9.0, 3.2 + 0.55 * (1.0 + 5.0 * p)
    points = " ".join(
        f"{x:.1f},{y:.1f}"
        for x, y in (
            (ex + tip * math.cos(angle), ey + tip * math.sin(angle)),
            (ex - half * math.sin(angle), ey + half * math.cos(angle)),
            (ex + half * math.sin(angle), ey - half * math.cos(angle)),
        )
    )
    style = " ".join(["edge", *([kind] if kind else []), *(["unsure"] if p <= 0.5 else [])])
    return (
        f'<g class="{style}" data-edge="{name}" style="--p: {p:.3f}"><title>'
        f'{report.escape(label)}</title><path d="{_curve([start, *way[1:-1], (ex, ey)])}"/>'
        f'<polygon points="{points}"/></g>'
    )


def _curve(points: list[Place]) -> str:
    """A smooth path: quadratic pieces whose corners are the inner points."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for k in range(1, len(points) - 1):
        (cx, cy), (nx, ny) = points[k], points[k + 1]
        last = k == len(points) - 2
        x, y = (nx, ny) if last else ((cx + nx) / 2, (cy + ny) / 2)
        path += f"Q{cx:.1f} {cy:.1f} {x:.1f} {y:.1f}"
    return path


def _border(
    x: float, y: float, to_x: float, to_y: float, box: float, gap: float
) -> tuple[float, float]:
    """Where the way from a variable to a point leaves its box, and a little further."""
    dx, dy = to_x - x, to_y - y
    length = math.hypot(dx, dy) or 1.0
    share = min(
        (box / 2) / abs(dx) if dx else math.inf, (_HEIGHT / 2) / abs(dy) if dy else math.inf
    )
    share = min(share, 1.0) + gap / length
    return x + share * dx, y + share * dy
