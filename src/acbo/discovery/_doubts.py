"""Reasons to doubt an answer: what a table, or what was said of it, has that training had not.

Each check looks for one thing that makes a network sure without evidence, and tells it in numbers.
Thresholds are beyond what tables of the training families show: of 1,680 of them, with 2 to 20
variables and 30 to 1,000 rows, the largest values are written beside each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from acbo.data import Dataset

PRIOR = (
    "before any data the network in the package believes in 0.5 to 2 edges a variable in any "
    "order, without cycles and hidden causes; linear, smooth or quadratic effects; continuous "
    "noise (normal, Laplace, uniform); rows that are independent of each other, 16 to 1,024 of them"
)
_SHOWN = 3
_FEWEST_ROWS = 16
_FEWEST_FREE = 8
_FEWEST_SET = 10
_LEVELS = 20
_SAME = 1e-5  # of a variance
_ALIKE, _PAIRS = 0.98, 2.1  # a variable; seen: 2.05
_SHARE, _SHARE_OF_FEW = 0.96, 0.985  # seen: 0.949 of 8 and more variables, 0.982 of fewer
_CORRELATED = 4.8  # deviations; seen: 4.3
_FAR, _ALONE, _FARTHEST = 10.0, 4.0, 30.0  # seen: 18 deviations; 2.5 times the next at 10
_BOTH_WAYS = 0.4  # seen: 0.21
_EDGES = 2.5  # a variable; seen: 2.3


def doubts(dataset: Dataset, edges: Float[np.ndarray, "d d"], *, shipped: bool) -> tuple[str, ...]:
    """Why an answer may be surer than the evidence, one sentence each.

    **Arguments:**

    - `edges`: the probabilities that were said, each edge looked at by itself.
    - `shipped`: whether the network in the package said so; its prior is then told too.
    """
    names = dataset.names
    values = dataset.values.astype(np.float64)
    set_ = dataset.intervened
    told = [
        *_too_few(names, set_),
        *_levels(names, values, set_),
        *_redundant(names, values),
        *_as_one(values),
        *_dependent(names, values, set_),
        *_far_out(names, values, set_),
        *_contradicted(names, values, set_, edges),
        *_incoherent(names, edges),
        *(_too_many(edges) if shipped else ()),
    ]
    if told and shipped:
        told.append(f"what data do not decide, the prior does: {PRIOR}")
    return tuple(told)


def _too_few(names: tuple[str, ...], set_: Bool[np.ndarray, "n d"]) -> Iterator[str]:
    n = len(set_)
    if n < _FEWEST_ROWS:
        yield f"there are {n} rows; no network of this kind has seen fewer than {_FEWEST_ROWS}"
    free = n - set_.sum(axis=0)
    few = np.flatnonzero(free < min(_FEWEST_FREE, n))
    if len(few):
        listed = ", ".join(f"{names[j]} {free[j]}" for j in few)
        yield (
            f"of {n} rows too few leave a variable alone to show its causes (fewer than "
            f"{_FEWEST_FREE}): {listed}; edges into it are a guess"
        )


def _levels(
    names: tuple[str, ...], values: Float[np.ndarray, "n d"], set_: Bool[np.ndarray, "n d"]
) -> Iterator[str]:
    """Few different values, or whole numbers that repeat: categories, counts, switches."""
    found = []
    for j, name in enumerate(names):
        free = values[~set_[:, j], j]
        levels = len(np.unique(free))
        whole = bool((free == np.round(free)).all())
        few = levels <= min(_LEVELS, len(free) // 2) or (whole and levels <= len(free) / 2)
        if len(free) >= 3 and few:
            kind = "whole numbers" if whole else "values"
            found.append(f"{name} takes {levels} different {kind} in {len(free)} rows")
    if found:
        yield (
            f"{_listed(found)}: the network knows continuous variables only, and codes of "
            "categories have no order that means anything"
        )


def _redundant(names: tuple[str, ...], values: Float[np.ndarray, "n d"]) -> Iterator[str]:
    """Columns that others give: nothing can tell which of them is a cause."""
    n, d = values.shape
    if n < 3:
        return
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    left = np.triu(1 - (z.T @ z / n) ** 2, 1) + np.tril(np.ones((d, d)))
    pairs = np.argwhere(left < _SAME)
    if len(pairs):
        found = [f"{names[i]} and {names[j]} but for {max(left[i, j], 0):.1g}" for i, j in pairs]
        yield (
            f"columns have the same variance: {_listed(found)} of it; which of such two is a cause "
            "cannot be told: drop one"
        )
    once = sorted(set(range(d)) - {int(j) for _, j in pairs})
    if n < d + 8 or len(once) < 3:
        return
    for j in once:
        others = z[:, [k for k in once if k != j]]
        rest = z[:, j] - others @ np.linalg.lstsq(others, z[:, j], rcond=None)[0]
        if rest.var() * n / (n - d) < _SAME:
            yield (
                f"{names[j]} follows from the other columns but for {rest.var():.1g} of its "
                "variance (a sum or a share of them?); drop one of those that belong together"
            )
            return


def _as_one(values: Float[np.ndarray, "n d"]) -> Iterator[str]:
    """Columns that all move together, as those of a strong chain do."""
    n, d = values.shape
    if d < 4 or n < 3:
        return
    alike = np.corrcoef(values.T)
    pairs = int((np.abs(alike[np.triu_indices(d, 1)]) > _ALIKE).sum())
    share = np.linalg.eigvalsh(alike)[-1] / d
    if pairs > _PAIRS * d or share > (_SHARE if d >= 8 else _SHARE_OF_FEW):
        yield (
            f"the columns move as one: {pairs} of {d * (d - 1) // 2} pairs correlate by more than "
            f"{_ALIKE}, and {100 * share:.0f} % of the variance is along one direction; which of "
            "so many stand-ins is a direct cause hardly shows, and too many edges are said"
        )


def _dependent(
    names: tuple[str, ...], values: Float[np.ndarray, "n d"], set_: Bool[np.ndarray, "n d"]
) -> Iterator[str]:
    """Rows that are like the row before: time series, random walks, drifts, sorted tables."""
    found = []
    _, kind = np.unique(set_, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    same = kind[1:] == kind[:-1]
    if same.sum() < 12:
        return
    for j, name in enumerate(names):
        x = stats.rankdata(values[:, j])  # outliers and heavy tails hide nothing
        for one in np.unique(kind):
            x[kind == one] -= x[kind == one].mean()
        a, b = x[:-1][same], x[1:][same]
        size = np.sqrt((a**2).sum() * (b**2).sum())
        r = float((a * b).sum() / size) if size > 0 else 0.0
        if r > 0.1 and np.arctanh(min(r, 0.999999)) * np.sqrt(same.sum() - 3) > _CORRELATED:
            found.append((r, name))
    if found:
        r, name = max(found)
        several = f" ({len(found)} columns are like that)" if len(found) > 1 else ""
        yield (
            f"rows are not independent: {name} correlates by {r:.2f} with itself in the row "
            f"before{several}; time series, drifts and batches look like causes. If the table was "
            "only sorted, shuffle it"
        )


def _far_out(
    names: tuple[str, ...], values: Float[np.ndarray, "n d"], set_: Bool[np.ndarray, "n d"]
) -> Iterator[str]:
    """A few values far from all others: they rule means and variances."""
    found = []
    for j, name in enumerate(names):
        free = np.flatnonzero(~set_[:, j])
        if len(free) < 8:
            continue
        away = np.abs(values[free, j] - np.median(values[free, j]))
        order = np.argsort(-away)
        scale = 1.4826 * np.median(away)
        if scale == 0:
            continue
        away = away[order] / scale
        few = np.arange(max(1, len(free) // 50))
        alone = (away[few] > _FAR) & (away[few] > _ALONE * away[few + 1])
        if alone.any() or away[0] > _FARTHEST:
            row = free[order[0]]
            found.append(
                f"{name} is {values[row, j]:.4g} in row {row}, {away[0]:.0f} robust deviations "
                "from its median"
            )
    if found:
        yield (
            f"{_listed(found)} (rows counted from 0): values so far out outweigh the rest. Check "
            "them, or take a logarithm"
        )


def _contradicted(
    names: tuple[str, ...],
    values: Float[np.ndarray, "n d"],
    set_: Bool[np.ndarray, "n d"],
    edges: Float[np.ndarray, "d d"],
) -> Iterator[str]:
    """Edges that interventions speak against: what a hidden common cause leaves."""
    ever = np.flatnonzero(set_.any(axis=0)).tolist()
    for i, j in np.argwhere(edges >= 0.5).tolist():
        if _shows_nothing(values, set_, edges, i, j):
            yield (
                f"{names[i]} goes with {names[j]} where nothing is set, but not where {names[i]} "
                f"is set ({(set_[:, i] & ~set_[:, j]).sum()} rows), and {names[i]} -> {names[j]} "
                f"is said with {edges[i, j]:.2f}: something hidden may cause both"
            )
        elif edges[i, j] >= 0.9 and ever == [j] and _shows_nothing(values, set_, edges, j, i):
            yield (
                f"{names[i]} -> {names[j]} ({edges[i, j]:.2f}) is all that is left after setting "
                f"{names[j]}, the only variable that was set, did nothing to {names[i]}: something "
                f"hidden that causes both would look the same. Set {names[i]} to tell"
            )


def _shows_nothing(
    values: Float[np.ndarray, "n d"],
    set_: Bool[np.ndarray, "n d"],
    edges: Float[np.ndarray, "d d"],
    cause: int,
    effect: int,
) -> bool:
    """Whether two variables go together where neither is set, and not where the first is."""
    tried = set_[:, cause] & ~set_[:, effect]
    calm = ~set_[:, cause] & ~set_[:, effect]
    others = [k for k in np.flatnonzero(edges[:, effect] >= 0.3) if k != cause]
    if min(tried.sum(), calm.sum()) < len(others) + _FEWEST_SET:
        return False
    x = (values - values.mean(axis=0)) / values.std(axis=0)
    powers = x[:, [cause]] ** np.arange(1, 4)
    known = np.concatenate([np.ones((len(x), 1)), x[:, others]], axis=1)
    seen, _ = _explained(x[calm, effect], known[calm], powers[calm, :1])
    _, chance = _explained(x[tried, effect], known[tried], powers[tried])
    # What is seen where nothing is set would show among the rows in which the cause is set.
    spread = powers[tried, 0].var() / max(powers[calm, 0].var(), 1e-12)
    expected = seen * spread / (1 - seen + seen * spread)
    return bool(expected * tried.sum() > 25 and chance > 0.05)


def _explained(
    y: Float[np.ndarray, " n"], known: Float[np.ndarray, "n k"], more: Float[np.ndarray, "n m"]
) -> tuple[float, float]:
    """The share of what is left of `y` that more columns explain, and the chance of as much."""

    def rest(design: np.ndarray) -> float:
        return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())

    before, after = rest(known), rest(np.concatenate([known, more], axis=1))
    m, left = more.shape[1], len(y) - known.shape[1] - more.shape[1]
    ratio = (before - after) / m / max(after / left, 1e-12)
    return 1 - after / max(before, 1e-12), float(stats.f.sf(ratio, m, left))


def _incoherent(names: tuple[str, ...], edges: Float[np.ndarray, "d d"]) -> Iterator[str]:
    """Probabilities that no acyclic graph has: the table is like none of the training's."""
    both = np.triu(edges + edges.T - 1, 1)
    i, j = np.unravel_index(int(both.argmax()), both.shape)
    if both[i, j] > _BOTH_WAYS:
        yield (
            f"{names[i]} -> {names[j]} ({edges[i, j]:.2f}) and {names[j]} -> {names[i]} "
            f"({edges[j, i]:.2f}) are both said to be likely, and cannot both be: the table is "
            "unlike those of the training"
        )


def _too_many(edges: Float[np.ndarray, "d d"]) -> Iterator[str]:
    """More edges than any table of the training of the network in the package has."""
    count, d = float(edges.sum()), len(edges)
    if count > _EDGES * d:
        yield (
            f"{count:.1f} edges are expected among {d} variables, {count / d:.1f} a variable; "
            "tables of the training have 0.5 to 2: the table is unlike them"
        )


def _listed(found: list[str]) -> str:
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
