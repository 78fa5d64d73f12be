"""How singular directions differ from others: effect sizes and their intervals, which Section 5.2 does not give.

Options of one roll-out are not independent: they share a collection of transitions and a start. The unit is therefore
the *group*: all options of one kind, of one collection and one basis. Its statistic is the mean over starts of the mean
over its options, or their `agreement` across starts. The effect is the mean over collections of ``singular - mean of
the random bases``. Its interval is a bootstrap that draws collections, in each its starts (the same for both sides)
and the random bases, and that adds the deviation of a random basis to the one kind too: the singular vectors are one
basis per collection, and must differ from random ones by more than these do among themselves. (Of 150 simulated studies
of three collections without an effect, intervals of 95% found one in 22% without that term, and in 1% with it: they are
wide rather than narrow.) Everything is seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from reproduction.atari.measures import (
    KINDS,
    Array,
    Table,
    meetings,
    own_agreement,
    points_of,
    reach,
)
from reproduction.limits import CONFIDENCE, Difference

# Measures of a group instead of an option: see `own_agreement` and `reach`.
AGREEMENT, REACH = "agreement", "reach"
BOOTSTRAP_DRAWS = 4000

# From weights of starts (draws, starts) to values (draws,).
Statistic = Callable[[Array], Array]
Group = Sequence[Statistic]


@dataclass(frozen=True)
class Effect:
    """How one kind of direction differs from another in one measure.

    Attributes
    ----------
    one, other, difference
        Means of the two kinds, and their difference with its interval.
    spread
        Standard deviation of the other kind's bases within a collection; NaN with fewer than two.
    delta
        Cliff's delta: P(an option of the one kind has more) - P(has less), within collections and starts.
    above, groups
        In how many of how many comparisons with one basis of one collection the one kind has more.
    least, most
        The smallest and the largest difference of a collection.

    Examples
    --------
    >>> e = Effect(0.5, 0.3, Difference(0.2, 0.1, 0.3), 0.05, 0.4, 28, 30, 0.1, 0.3)
    >>> e.spreads, e.better
    (4.0, True)
    """

    one: float
    other: float
    difference: Difference
    spread: float
    delta: float
    above: int
    groups: int
    least: float
    most: float

    @property
    def spreads(self) -> float:
        """The difference in units of the spread across bases; NaN where there is none."""
        return self.difference.mean / self.spread if self.spread > 0 else float("nan")

    @property
    def better(self) -> bool:
        """The one kind has more: the interval and every collection lie above zero."""
        return self.difference.better and self.least > 0

    @property
    def worse(self) -> bool:
        """The one kind has less: the interval and every collection lie below zero."""
        return self.difference.worse and self.most < 0

    def __str__(self) -> str:
        """The difference, its interval and sizes, in words."""
        units = f", {self.spreads:+.1f} spreads of a basis" if self.spread > 0 else ""
        delta = "" if math.isnan(self.delta) else f", Cliff's delta {self.delta:+.2f}"
        return f"{self.one:.3f} against {self.other:.3f}: {self.difference}{units}{delta}"

    def row(self) -> dict[str, float]:
        """As columns of a table."""
        names = ("spread", "spreads", "delta", "above", "groups", "least", "most")
        ends = zip(("difference", "low", "high"), astuple(self.difference), strict=True)
        return {"one": self.one, "other": self.other, **dict(ends), **{n: getattr(self, n) for n in names}}


def effect_of(row: Mapping[str, Any]) -> Effect:
    """The effect of a row of a table."""
    of = {field.name: row[field.name] for field in fields(Effect)}
    return Effect(**of | {"difference": Difference(row["difference"], row["low"], row["high"])})


def chosen(table: Table, **values: float | str) -> Table:
    """Rows with given values of some columns; a kind by its name.

    >>> chosen({"kind": np.array([0.0, 1.0]), "dwell": np.array([0.5, 0.9])}, kind="random")["dwell"].tolist()
    [0.9]
    """
    keep = np.ones(len(table["kind"]), dtype=bool)
    for name, value in values.items():
        keep &= table[name] == (KINDS.index(value) if isinstance(value, str) else value)
    return {name: column[keep] for name, column in table.items()}


def places(table: Table, starts: Sequence[float]) -> Array:
    """``(options, starts, p)`` modal places of one group, NaN where an option was not rolled out."""
    keys = np.stack([table["direction"], table["sign"]], axis=1)
    names, number = np.unique(keys, axis=0, return_inverse=True)
    points = points_of(table)
    found = np.full((len(names), len(starts), points.shape[1]), np.nan)
    for s, start in enumerate(starts):
        at = table["start"] == start
        found[number.ravel()[at], s] = points[at]
    return found


def cliff(a: ArrayLike, b: ArrayLike) -> float:
    """Cliff's delta: P(a > b) - P(a < b); NaN if either is empty.

    >>> cliff([1.0, 2.0], [1.0, 1.0])
    0.5
    """
    x, y = (np.asarray(v, dtype=float) for v in (a, b))
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    if not (len(x) and len(y)):
        return float("nan")
    # The rank sum of x gives the statistic U of Mann and Whitney: the pairs with x > y, and half of the ties.
    u = rankdata(np.concatenate([x, y]))[: len(x)].sum() - len(x) * (len(x) + 1) / 2
    pairs = len(x) * len(y)
    return float((2 * u - pairs) / pairs)


def effect(
    table: Table,
    measure: str,
    one: str = "singular",
    other: str = "random",
    *,
    among: int = 1,
    draws: int = BOOTSTRAP_DRAWS,
    rng: int = 0,
) -> Effect:
    """How `one` kind differs from the `other` in a measure of options, or of groups; see the module.

    Parameters
    ----------
    table
        Roll-outs: collection, start, kind, basis, direction, sign, and measures.
    measure
        A column, or ``"agreement"``, or ``"reach"`` (of sets as large as the smallest group).
    one, other
        Two of `KINDS`.
    among
        Number of intervals of one claim that hold together; each is widened (Bonferroni).
    draws, rng
        Number of bootstrap samples, and their seed.

    Examples
    --------
    >>> at = np.arange(8.0)
    >>> keys = {"collection": at // 4, "start": at % 2, "kind": at // 2 % 2, "basis": 0 * at, "direction": 0 * at}
    >>> found = effect({**keys, "sign": 0 * at, "dwell": 1 - at // 2 % 2}, "dwell", draws=100)
    >>> print(found.difference, found.delta)
    +1.000 (+1.000 to +1.000) 1.0
    """
    collections = np.unique(table["collection"]).tolist()
    compared = np.isin(table["kind"], [KINDS.index(one), KINDS.index(other)])
    starts = np.unique(table["start"]).tolist()
    table = {name: column[compared] for name, column in table.items()}
    k = _size(table)
    mine: list[Statistic] = []
    bases: list[list[Statistic]] = []
    deltas: list[float] = []
    for c in collections:
        left, right = (chosen(table, collection=c, kind=kind) for kind in (one, other))
        if not (len(left["kind"]) and len(right["kind"])):
            raise ValueError(f"collection {c:g} has no roll-outs of {one!r} or of {other!r} to compare")
        mine.append(_statistic(left, measure, starts, k))
        bases.append([_statistic(basis, measure, starts, k) for basis in _bases(right)])
        deltas += _deltas(left, right, measure, starts)
    ours = np.array(_over_all(mine, starts))
    theirs = [np.array(_over_all(group, starts)) for group in bases]
    by = np.array([x - y.mean() for x, y in zip(ours, theirs, strict=True)])
    low, high = _interval(mine, bases, len(starts), among, draws, rng)
    spread = [y.var(ddof=1) for y in theirs if len(y) > 1]
    return Effect(
        float(ours.mean()),
        float(np.mean([y.mean() for y in theirs])),
        Difference(float(by.mean()), low, high),
        float(np.sqrt(np.mean(spread))) if spread else float("nan"),
        float(np.nanmean(deltas)) if not np.isnan(deltas).all() else float("nan"),
        int(sum((x > y).sum() for x, y in zip(ours, theirs, strict=True))),
        sum(map(len, theirs)),
        float(by.min()),
        float(by.max()),
    )


def level(table: Table, measure: str, kind: str, *, draws: int = BOOTSTRAP_DRAWS, rng: int = 0) -> Difference:
    """Mean of a measure, or of agreement, of one kind, with the interval of the same bootstrap."""
    table = chosen(table, kind=kind)
    starts, k = np.unique(table["start"]).tolist(), _size(table)
    parts = [chosen(table, collection=c) for c in np.unique(table["collection"])]
    groups = [[_statistic(basis, measure, starts, k) for basis in _bases(part)] for part in parts]
    mean = float(np.mean([np.mean(_over_all(group, starts)) for group in groups]))
    nothing: list[Statistic] = [lambda weights: np.zeros(len(weights))] * len(groups)
    low, high = _interval(nothing, groups, len(starts), 1, draws, rng)
    return Difference(mean, 0.0 - high, 0.0 - low)


def by_group(table: Table, measures: Sequence[str]) -> list[dict[str, Any]]:
    """One row per group, except walks: its kind, collection and basis, and its statistics over all starts."""
    table = {name: column[table["kind"] != KINDS.index("walk")] for name, column in table.items()}
    starts = np.unique(table["start"]).tolist()
    names = np.unique(np.stack([table[key] for key in ("kind", "collection", "basis")], axis=1), axis=0)
    rows, k = [], _size(table)
    for kind, c, b in names.tolist():
        part = chosen(table, kind=kind, collection=c, basis=b)
        values = _over_all([_statistic(part, measure, starts, k) for measure in measures], starts)
        row = {"kind": KINDS[int(kind)], "collection": int(c), "basis": int(b)}
        rows.append(row | dict(zip(measures, values, strict=True)))
    return rows


def _bases(table: Table) -> list[Table]:
    """The groups of one kind and collection."""
    return [chosen(table, basis=b) for b in np.unique(table["basis"])]


def _over_all(group: Group, starts: Sequence[float]) -> list[float]:
    """Values of statistics if all starts have the same weight."""
    return [float(statistic(np.ones((1, len(starts))))[0]) for statistic in group]


def _statistic(table: Table, measure: str, starts: Sequence[float], k: int) -> Statistic:
    """The statistic of one group as a function of the weights of starts; for `reach`, of sets of k options."""
    if measure == AGREEMENT:
        own, others = meetings(places(table, starts))
        pairs = 1.0 - np.eye(len(starts))

        def meet(w: Array) -> Array:
            total, excess = (np.einsum("ds,st,dt->d", w, m, w) for m in (pairs, pairs * (own - others)))
            return np.where(total > 0, excess / np.where(total > 0, total, 1.0), np.nan)

        return meet
    parts = [chosen(table, start=s) for s in starts]
    if measure == REACH:
        means = np.array([reach(points_of(p), p["arrives"], k) if len(p["kind"]) else np.nan for p in parts])
    else:
        values = [p[measure][~np.isnan(p[measure])] for p in parts]
        means = np.array([v.mean() if len(v) else np.nan for v in values])
    there = ~np.isnan(means)

    def average(w: Array) -> Array:
        total, summed = w @ there, w @ np.where(there, means, 0.0)
        return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)

    return average


def _size(table: Table) -> int:
    """The smallest number of options per start of the groups that are compared."""
    keys = np.stack([table[k] for k in ("collection", "start", "kind", "basis")])
    return int(np.unique(keys, axis=1, return_counts=True)[1].min())


def _deltas(left: Table, right: Table, measure: str, starts: Sequence[float]) -> list[float]:
    """Cliff's delta of a measure, by start where it is one of options."""
    if measure == REACH:
        return [float("nan")]
    if measure == AGREEMENT:
        mine = own_agreement(places(left, starts))
        return [cliff(mine, np.concatenate([own_agreement(places(g, starts)) for g in _bases(right)]))]
    return [cliff(*(part[measure][part["start"] == s] for part in (left, right))) for s in starts]


def _interval(
    mine: Group, bases: Sequence[Group], starts: int, among: int, draws: int, rng: int
) -> tuple[float, float]:
    """Percentiles of the difference when collections, starts and bases are resampled."""
    random = np.random.default_rng(rng)
    many = len(mine)
    drawn = random.integers(many, size=(draws, many))
    weights = random.multinomial(starts, np.full(starts, 1 / starts), size=(draws, many)).astype(float)
    found = np.empty((draws, many))
    for c in range(many):
        at = drawn == c
        theirs = np.stack([f(weights[at]) for f in bases[c]], axis=1)
        many_bases = theirs.shape[1]
        pick = random.integers(many_bases, size=theirs.shape)
        found[at] = mine[c](weights[at]) - np.take_along_axis(theirs, pick, axis=1).mean(axis=1)
        # The one kind may differ as much by chance as one basis does from the others.
        if many_bases > 1:
            one = np.take_along_axis(theirs, random.integers(many_bases, size=(len(theirs), 1)), axis=1)[:, 0]
            found[at] += (one - theirs.mean(axis=1)) * np.sqrt(many_bases / (many_bases - 1))
    means = found.mean(axis=1)
    means = means[~np.isnan(means)]
    if not len(means):
        return float("-inf"), float("inf")
    tail = (1 - CONFIDENCE) / (2 * among)
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
