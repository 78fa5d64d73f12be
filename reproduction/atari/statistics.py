"""How singular directions differ from others: effect sizes and their intervals, which Section 5.2 does not give.

Options of one roll-out share a collection of transitions and a start. The unit is therefore the *group*: all options of
one kind, of one collection and one basis. Its statistic is the mean over starts of the mean over its options, or their
`agreement` across starts. The effect is the mean over collections of ``singular - mean of the random bases``. Its
interval is a bootstrap that draws collections, in each its starts (the same for both sides) and the random bases, and
adds the deviation of a random basis to the one kind too: the singular vectors are one basis per collection, and must
differ from random ones by more than these do among themselves. The intervals are wide rather than narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reproduction.atari.measures import (
    Array,
    count_meetings,
    count_places,
    find_reliable,
    get_points,
)
from reproduction.statistics import CONFIDENCE, Difference

# From weights of starts (draws, starts) to values (draws,).
Statistic = Callable[[Array], Array]


@dataclass(frozen=True)
class Effect(Difference):
    """How one kind of direction differs from another in one measure: a difference of the means of two kinds.

    It has the means `one` and `other`; in how many (`n_above`) of how many comparisons (`n_groups`) with one basis of
    one collection the one kind has more; and the smallest and the largest difference of a collection.

    >>> effect = Effect(0.2, 0.1, 0.3, 0.5, 0.3, 28, 30, 0.1, 0.3)
    >>> print(effect.describe(), effect.better)
    0.500 against 0.300: +0.200 (+0.100 to +0.300) True
    """

    one: float
    other: float
    n_above: int
    n_groups: int
    least: float
    most: float

    @property
    def better(self) -> bool:
        """Whether the one kind has more: the interval and every collection lie above zero."""
        return self.low > 0 and self.least > 0

    @property
    def worse(self) -> bool:
        """Whether the one kind has less: the interval and every collection lie below zero."""
        return self.high < 0 and self.most < 0

    def describe(self) -> str:
        """Both means and their difference."""
        return f"{self.one:.3f} against {self.other:.3f}: {self}"


def compare_kinds(
    table: pd.DataFrame,
    measure: str,
    one: str = "singular",
    other: str = "random",
    *,
    n_intervals: int = 1,
    draws: int = 4000,
    rng: int = 0,
) -> Effect:
    """How `one` kind differs from the `other` in a measure of roll-outs; see the module.

    The measure is a column, ``"agreement"``, or ``"reach"`` (places at which sets as large as the smallest group
    arrive). With `n_intervals` intervals of one claim that hold together, each is widened (Bonferroni).

    >>> at = np.arange(8)
    >>> kinds = np.array(["singular", "random"])[at // 2 % 2]
    >>> table = pd.DataFrame({"collection": at // 4, "start": at % 2, "kind": kinds, "dwell": 1 - at // 2 % 2})
    >>> print(compare_kinds(table.assign(basis=0, direction=0, sign=1), "dwell", draws=100))
    +1.000 (+1.000 to +1.000)
    """
    table = table[table.kind.isin([one, other])]
    starts, k = sorted(table.start.unique()), _smallest_group(table)
    ones: list[Statistic] = []
    others: list[list[Statistic]] = []
    for _, part in table.groupby("collection"):
        left, right = part[part.kind == one], part[part.kind == other]
        ones.append(_make_statistic(left, measure, starts, k))
        others.append([_make_statistic(basis, measure, starts, k) for _, basis in right.groupby("basis")])
    mine = _evaluate(ones, starts)
    theirs = [_evaluate(group, starts) for group in others]
    by_collection = np.array([x - y.mean() for x, y in zip(mine, theirs, strict=True)])
    low, high = _bootstrap(ones, others, len(starts), n_intervals, draws, rng)
    return Effect(
        float(by_collection.mean()),
        low,
        high,
        one=float(mine.mean()),
        other=float(np.mean([y.mean() for y in theirs])),
        n_above=int(sum((x > y).sum() for x, y in zip(mine, theirs, strict=True))),
        n_groups=sum(map(len, theirs)),
        least=float(by_collection.min()),
        most=float(by_collection.max()),
    )


def mean_agreement(table: pd.DataFrame, *, draws: int = 4000, rng: int = 0) -> Difference:
    """Agreement of the options of one kind across starts, with the interval of the same bootstrap."""
    starts, k = sorted(table.start.unique()), _smallest_group(table)
    groups = [
        [_make_statistic(basis, "agreement", starts, k) for _, basis in part.groupby("basis")]
        for _, part in table.groupby("collection")
    ]
    mean = float(np.mean([_evaluate(group, starts).mean() for group in groups]))
    zero: list[Statistic] = [lambda weights: np.zeros(len(weights))] * len(groups)
    low, high = _bootstrap(zero, groups, len(starts), 1, draws, rng)
    return Difference(mean, 0.0 - high, 0.0 - low)


def share_of_reliable(table: pd.DataFrame) -> tuple[float, int]:
    """The share of reliable options, and the number of options."""
    n_options = len(table[["collection", "kind", "basis", "direction", "sign"]].drop_duplicates())
    return len(find_reliable(table)) / n_options, n_options


def _stack_places(group: pd.DataFrame, starts: Sequence[int]) -> Array:
    """``(options, starts, p)`` modal places of one group, NaN where an option was not rolled out."""
    number = group.groupby(["direction", "sign"]).ngroup().to_numpy()
    points = get_points(group)
    places = np.full((number.max() + 1, len(starts), points.shape[1]), np.nan)
    places[number, np.searchsorted(starts, group.start)] = points
    return places


def _make_statistic(group: pd.DataFrame, measure: str, starts: Sequence[int], k: int) -> Statistic:
    """The statistic of one group as a function of the weights of starts; for `reach`, of sets of k options."""
    if measure == "agreement":
        own, others = count_meetings(_stack_places(group, starts))
        pairs = 1.0 - np.eye(len(starts))

        def agree(w: Array) -> Array:
            total, excess = (np.einsum("ds,st,dt->d", w, m, w) for m in (pairs, pairs * (own - others)))
            return np.where(total > 0, excess / np.where(total > 0, total, 1.0), np.nan)

        return agree
    if measure == "reach":
        values = {s: count_places(get_points(part), part.arrives, k) for s, part in group.groupby("start")}
    else:
        values = group.groupby("start")[measure].mean().to_dict()
    means = np.array([values.get(s, math.nan) for s in starts])
    there = ~np.isnan(means)

    def average(w: Array) -> Array:
        total, summed = w @ there, w @ np.where(there, means, 0.0)
        return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)

    return average


def _evaluate(statistics: Sequence[Statistic], starts: Sequence[int]) -> Array:
    """Values of statistics if all starts have the same weight."""
    return np.array([statistic(np.ones((1, len(starts))))[0] for statistic in statistics])


def _smallest_group(table: pd.DataFrame) -> int:
    """The smallest number of options per start of the groups that are compared."""
    return int(table.groupby(["collection", "start", "kind", "basis"]).size().min())


def _bootstrap(
    ones: Sequence[Statistic],
    others: Sequence[Sequence[Statistic]],
    n_starts: int,
    n_intervals: int,
    draws: int,
    seed: int,
) -> tuple[float, float]:
    """Percentiles of the difference when collections, starts and bases are resampled."""
    rng, n = np.random.default_rng(seed), len(ones)
    drawn = rng.integers(n, size=(draws, n))
    weights = rng.multinomial(n_starts, np.full(n_starts, 1 / n_starts), size=(draws, n)).astype(float)
    differences = np.empty((draws, n))
    for c in range(n):
        at = drawn == c
        theirs = np.stack([statistic(weights[at]) for statistic in others[c]], axis=1)
        n_bases = theirs.shape[1]
        pick = rng.integers(n_bases, size=theirs.shape)
        differences[at] = ones[c](weights[at]) - np.take_along_axis(theirs, pick, axis=1).mean(axis=1)
        # The one kind may differ by chance as much as one basis does from the others.
        if n_bases > 1:
            one = np.take_along_axis(theirs, rng.integers(n_bases, size=(len(theirs), 1)), axis=1)[:, 0]
            differences[at] += (one - theirs.mean(axis=1)) * np.sqrt(n_bases / (n_bases - 1))
    means = differences.mean(axis=1)
    means = means[~np.isnan(means)]
    if not len(means):
        return -math.inf, math.inf
    tail = (1 - CONFIDENCE) / (2 * n_intervals)
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
