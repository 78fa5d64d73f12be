"""What an option did, and how singular directions differ from others (paper, Section 5.2).

The paper states that options have "the clear intent of reaching particular positions". An option with such an intent
*stays* there (`dwell`), it has *gone* there (`away`, `arrives`), and it goes there from other starts *too* (see
`count_meetings`). The player's position is read from the game's memory; a *place* is a square of 4 by 4 of its units
(about pixels), so that the jitter of an animation is not travel. Defined before any result was seen:

================ ================================================================================================
``dwell``        share of the second half of the frames spent at the modal place
``settles``      dwell is at least SETTLED
``away``         distance of the modal place from the start
``arrives``      settles at least FAR units away from the start
``farthest``     largest distance from the start
``died``         a life was lost
``score``        points of the game
``height``       mean of the last coordinate of the position (in Freeway: how far the chicken is up the road)
``x``, ``y``     the most frequent position at the modal place
``region``       the region of the game that holds it, or ``""``
================ ================================================================================================

Options of one roll-out share a collection of transitions and a start. The unit of a comparison is therefore the
*group*: all options of one kind, of one collection and one basis. Its statistic is the mean over starts of the mean
over its options, or their agreement. The effect is the mean over collections of ``singular - mean of the random
bases``. Its interval is a bootstrap that draws collections, in each its starts (the same for both sides) and the random
bases, and adds the deviation of a random basis to the one kind too: the singular vectors are one basis per collection,
and must differ from random ones by more than these do among themselves. The intervals are wide rather than narrow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from reproduction.atari.games import Game
from reproduction.atari.rollouts import Array, Rollouts
from reproduction.statistics import CONFIDENCE, Difference

# Side of a place, in units of position.
CELL = 4
# Share of the second half of the time at one place from which an option has settled there.
SETTLED = 0.5
# About the size of a player, or of a lane, in units of position; what is nearer to the start is still the start.
FAR = 16.0
# Names of the coordinates of a position.
AXES = ("x", "y")
# Columns that identify an option within a collection.
OPTION = ["kind", "basis", "direction", "sign"]


def measure(rollouts: Rollouts, game: Game) -> pd.DataFrame:
    """The measures of each of n roll-outs that watched the bytes of the player's position.

    The *modal place* is where most frames of the second half are spent; of equal ones, the first that is visited. After
    its end (a lost life) an option is nowhere, so dying early is not dwelling; with nothing in the second half, dwell
    is 0 and the modal place NaN.
    """
    n, frames, n_axes = rollouts.watched.shape
    start, rows = rollouts.start.astype(int), []
    for i in range(n):
        path = rollouts.watched[i, : rollouts.length[i]].astype(int)
        late = path[frames // 2 :]
        dwell, point = 0.0, np.full(n_axes, np.nan)
        if len(late):
            places = list(map(tuple, (late // CELL).tolist()))
            modal, count = Counter(places).most_common(1)[0]
            dwell = count / (frames - frames // 2)
            at_modal = [
                tuple(p)
                for p, place in zip(late.tolist(), places, strict=True)
                if place == modal
            ]
            point = np.array(Counter(at_modal).most_common(1)[0][0], dtype=float)
        away, settles = float(np.linalg.norm(point - start)), dwell >= SETTLED
        row = {
            "died": float(rollouts.died[i]),
            "score": rollouts.score[i],
            "dwell": dwell,
        }
        row |= {
            "settles": float(settles),
            "arrives": float(settles and away >= FAR),
            "away": away,
        }
        row |= dict(zip(AXES, point.tolist(), strict=False))
        row |= {
            "farthest": np.linalg.norm(path - start, axis=1).max(),
            "height": path[:, -1].mean(),
        }
        rows.append(row | {"region": game.find_region(point)})
    return pd.DataFrame(rows)


def get_points(table: pd.DataFrame) -> Array:
    """``(n, p)`` modal places of a table."""
    return table[[axis for axis in AXES if axis in table]].to_numpy(dtype=float)


def count_meetings(places: ArrayLike) -> tuple[Array, Array]:
    """How often modal places from two starts are near each other, of one option and of two different options.

    Of places ``(options, starts, p)``, NaN where there is none (near nothing); returns ``(starts, starts)`` shares of
    options, and of ordered pairs of different options. The *agreement* of a group is the mean of their difference over
    pairs of different starts: 1 if the start does not matter and no two options have the same place, 0 if an option
    agrees with itself no more than with others.

    >>> own, others = count_meetings([[[0.0], [0.0]], [[80.0], [80.0]]])  # each option always at its own place
    >>> float(own[0, 1]), float(others[0, 1])
    (1.0, 0.0)
    """
    points = np.asarray(places, dtype=float)
    n, starts, p = points.shape
    flat = points.reshape(-1, p)
    # A comparison with NaN is false: not near.
    near = (cdist(flat, flat) < FAR).reshape(n, starts, n, starts)
    own = np.einsum("isit->st", near.astype(float))
    return own / n, (near.sum(axis=(0, 2)) - own) / max(n * (n - 1), 1)


def find_reliable(table: pd.DataFrame) -> pd.DataFrame:
    """Options that go to one place from more than half of the starts, and not by staying there.

    Such an option settles near one place (less than FAR from its modal place from one of the starts) from more than
    half of all starts, and arrives there from at least one of them. The rows are those roll-outs whose place it is.
    """
    n_starts, rows = table.start.nunique(), []
    points, settles, arrives = (
        get_points(table),
        table.settles.to_numpy() > 0,
        table.arrives.to_numpy() > 0,
    )
    for option in table.groupby(["collection", *OPTION]).indices.values():
        near = cdist(points[option], points[option]) < FAR
        near &= settles[option, None] & settles[None, option]
        best = int(near.sum(axis=1).argmax())
        if near[best].sum() > n_starts / 2 and arrives[option[near[best]]].any():
            rows.append(option[best])
    return table.iloc[rows]


@dataclass(frozen=True)
class Effect(Difference):
    """How singular directions differ from random ones in one measure, with the least difference of a collection."""

    least: float

    @property
    def better(self) -> bool:
        """Whether singular directions have more: the interval and every collection lie above zero."""
        return self.low > 0 and self.least > 0


def compare_with_random(
    table: pd.DataFrame, measure: str, n_intervals: int = 1, draws: int = 4000
) -> Effect:
    """How singular directions differ from random ones in a column of roll-outs, or in their ``"agreement"``.

    With `n_intervals` intervals of one claim that hold together, each is widened (Bonferroni).
    """
    ones, others = (
        tabulate_groups(table[table.kind == kind], measure)
        for kind in ("singular", "random")
    )
    differences = [
        weigh(x).mean() - weigh(y).mean() for x, y in zip(ones, others, strict=True)
    ]
    low, high = bootstrap(ones, others, n_intervals, draws)
    return Effect(float(np.mean(differences)), low, high, float(min(differences)))


def mean_agreement(table: pd.DataFrame, *, draws: int = 4000) -> Difference:
    """Agreement of the options of one kind across starts, with the interval of the same bootstrap."""
    groups = tabulate_groups(table, "agreement")
    low, high = bootstrap([0 * group[:1] for group in groups], groups, 1, draws)
    return Difference(
        float(np.mean([weigh(group).mean() for group in groups])), 0.0 - high, 0.0 - low
    )


def tabulate_groups(table: pd.DataFrame, measure: str) -> list[Array]:
    """By collection, ``(bases, starts, starts)`` numbers of the groups whose mean over pairs of starts is the measure.

    That of a column is the mean of the first start. The agreement counts pairs of different starts only: its diagonal
    is NaN.
    """
    collections = []
    for _, part in table.groupby("collection"):
        bases, n_starts = [], part.start.nunique()
        for _, group in part.groupby("basis"):
            if measure == "agreement":
                points = get_points(group.sort_values(["direction", "sign", "start"]))
                own, others = count_meetings(
                    points.reshape(-1, n_starts, points.shape[1])
                )
                bases.append(np.where(np.eye(n_starts) > 0, np.nan, own - others))
            else:
                means = group.groupby("start")[measure].mean().to_numpy(dtype=float)
                bases.append(np.repeat(means[:, None], n_starts, axis=1))
        collections.append(np.stack(bases))
    return collections


def weigh(groups: Array, weights: Array | None = None) -> Array:
    """``(draws, bases)`` means over pairs of starts that have weights ``(draws, starts)``; None: once, all equal.

    NaN if there is no pair: all weight is on one start, and the pair of it with itself does not count.
    """
    w = np.ones((1, groups.shape[1])) if weights is None else weights
    counts = ~np.isnan(groups[0])
    total = np.einsum("ds,st,dt->d", w, counts.astype(float), w)
    sums = np.einsum(
        "ds,bst,dt->db", w, np.where(counts, groups, 0.0), w, optimize=True
    )
    return sums / np.where(total > 0, total, np.nan)[:, None]


def bootstrap(
    ones: list[Array], others: list[Array], n_intervals: int, draws: int
) -> tuple[float, float]:
    """Percentiles of the difference of groups when collections, starts and bases are resampled."""
    rng, n, n_starts = np.random.default_rng(0), len(ones), ones[0].shape[1]
    drawn = rng.integers(n, size=(draws, n))
    weights = rng.multinomial(
        n_starts, np.full(n_starts, 1 / n_starts), size=(draws, n)
    ).astype(float)
    differences = np.empty((draws, n))
    for c in range(n):
        at = drawn == c
        theirs = weigh(others[c], weights[at])
        n_bases = theirs.shape[1]
        chosen = np.take_along_axis(theirs, rng.integers(n_bases, size=theirs.shape), 1)
        differences[at] = weigh(ones[c], weights[at])[:, 0] - chosen.mean(axis=1)
        # The one kind may differ by chance as much as one basis does from the others.
        if n_bases > 1:
            one = np.take_along_axis(
                theirs, rng.integers(n_bases, size=(len(theirs), 1)), 1
            )[:, 0]
            differences[at] += (one - theirs.mean(axis=1)) * np.sqrt(
                n_bases / (n_bases - 1)
            )
    tail = (1 - CONFIDENCE) / (2 * n_intervals)
    low, high = np.nanquantile(differences.mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)
