"""What an option did, and how singular directions differ from others (Section 5.2).

The paper states that options have "the clear intent of reaching particular positions".
An option with such an intent *stays* there (`dwell`), it has *gone* there (`away`,
`arrives`), and it goes there from other starts *too* (see `count_meetings`). The
player's position is read from the game's memory; a *place* is a square of 4 by 4 of its
units (about pixels), so that the jitter of an animation is not travel. Defined before
any result was seen:

============ ===========================================================================
``dwell``    share of the second half of the frames spent at the modal place
``settles``  dwell is at least SETTLED
``away``     distance of the modal place from the start
``arrives``  settles at least FAR units away from the start
``farthest`` largest distance from the start
``died``     a life was lost
``score``    points of the game
``height``   mean of the last coordinate of the position (in Freeway: how far the
             chicken is up the road)
``x``, ``y`` the most frequent position at the modal place
``region``   the region of the game that holds it, or ``""``
============ ===========================================================================

Options of one roll-out share a collection of transitions and a start. The unit of a
comparison is therefore the *group*: all options of one kind, of one collection and one
basis. Its statistic is the mean over starts of the mean over its options, or their
agreement. The effect is the mean over collections of ``singular - mean of the random
bases``. Its interval is a bootstrap that draws collections, in each its starts (the
same for both sides) and the random bases, and adds the deviation of a random basis to
the one kind too: the singular vectors are one basis per collection, and must differ
from random ones by more than these do among themselves. Where there is one random basis
per collection, as large as that of T, its deviation is not known and not added: the
mean over hundreds of directions varies little. Otherwise intervals are wide rather than
narrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from eigenoptions._types import FloatArray, IntegerArray
from reproduction.atari.games import Game
from reproduction.atari.rollouts import Rollouts
from reproduction.statistics import CONFIDENCE, Difference
from reproduction.thresholds import MARGIN

# Side of a place, in units of position.
CELL = 4

# Share of the second half of the time at one place from which an option has settled.
SETTLED = 0.5

# About the size of a player, or of a lane, in units of position; what is nearer to the
# start is still the start.
FAR = 16.0

# Numbers of frames after which roll-outs are measured, evenly spaced.
N_PREFIXES = 10

# Names of the coordinates of a position.
AXES = ("x", "y")

# Columns that identify an option within a collection.
OPTION = ["kind", "basis", "direction", "sign"]


# What each option did


def measure_rollouts(rollouts: Rollouts, game: Game) -> pd.DataFrame:
    """The measures of each roll-out; it watched the bytes of the player's position.

    After its end (a lost life) an option is nowhere, so dying early is not dwelling.
    """
    n_options, n_frames, _ = rollouts.watched.shape
    start = rollouts.start.astype(int)
    rows = []
    for i in range(n_options):
        path = rollouts.watched[i, : rollouts.length[i]].astype(int)
        half = n_frames // 2
        dwell, point = find_modal_place(path[half:], n_frames - half)
        away = float(np.linalg.norm(point - start))
        settles = dwell >= SETTLED
        row: dict[str, Any] = {
            "died": float(rollouts.died[i]),
            "score": rollouts.score[i],
            "dwell": dwell,
            "settles": float(settles),
            "arrives": float(settles and away >= FAR),
            "away": away,
        }
        row |= zip(AXES, point.tolist(), strict=False)
        row |= {
            "farthest": np.linalg.norm(path - start, axis=1).max(),
            "height": path[:, -1].mean(),
            "region": game.find_region(point),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def measure_prefixes(
    rollouts: Rollouts, game: Game, n_parts: int = N_PREFIXES
) -> Iterator[tuple[int, pd.DataFrame]]:
    """The measures after each of some numbers of frames, as if play had ended there.

    From them one sees how long a roll-out must be for a measure to become flat.

    Yields
    ------
    frames : int
        How many frames.
    table : DataFrame
        The measures of each roll-out.
    """
    n_frames = rollouts.actions.shape[1]
    for part in range(1, n_parts + 1):
        frames = n_frames * part // n_parts
        prefix = replace(
            rollouts,
            actions=rollouts.actions[:, :frames],
            watched=rollouts.watched[:, :frames],
            length=np.minimum(rollouts.length, frames),
            died=rollouts.died & (rollouts.length <= frames),
        )
        yield frames, measure_rollouts(prefix, game)


def find_modal_place(path: IntegerArray, n_frames: int) -> tuple[float, FloatArray]:
    """The share of the frames spent at the modal place, and the place.

    The *modal place* is where most frames are spent; of equal ones, the first that is
    visited. It is given as the most frequent position there. Without a frame, the share
    is 0 and the place NaN.

    Parameters
    ----------
    path : array, shape (t, p)
        Positions, frame by frame, until the option ended.
    n_frames : int
        Frames that there could have been.
    """
    n_axes = path.shape[1]
    if not len(path):
        return 0.0, np.full(n_axes, np.nan)

    positions = [tuple(position) for position in path.tolist()]
    places = [tuple(place) for place in (path // CELL).tolist()]
    modal, n_modal = Counter(places).most_common(1)[0]
    at_modal = [
        position
        for position, place in zip(positions, places, strict=True)
        if place == modal
    ]
    point, _ = Counter(at_modal).most_common(1)[0]
    return n_modal / n_frames, np.array(point, dtype=float)


def get_points(table: pd.DataFrame) -> FloatArray:
    """``(n, p)`` modal places of a table."""
    axes = [axis for axis in AXES if axis in table]
    points: FloatArray = table[axes].to_numpy(dtype=float)
    return points


def count_meetings(places: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """How often places from two starts are near each other.

    The *agreement* of a group is the mean, over pairs of different starts, of how much
    more often places of one option meet than those of two: 1 if the start does not
    matter and no two options have the same place, 0 if an option agrees with itself no
    more than with others.

    Parameters
    ----------
    places : array_like, shape (options, starts, p)
        Modal places; NaN where there is none, which is near nothing.

    Returns
    -------
    own : array, shape (starts, starts)
        Share of the options whose places meet.
    others : array, shape (starts, starts)
        Share of the ordered pairs of different options whose places meet.

    Examples
    --------
    Each option is always at its own place:

    >>> own, others = count_meetings([[[0.0], [0.0]], [[80.0], [80.0]]])
    >>> float(own[0, 1]), float(others[0, 1])
    (1.0, 0.0)
    """
    points = np.asarray(places, dtype=float)
    n_options, n_starts, n_axes = points.shape
    flat = points.reshape(-1, n_axes)
    # A comparison with NaN is false: not near.
    near = (cdist(flat, flat) < FAR).reshape(n_options, n_starts, n_options, n_starts)

    own = np.einsum("isit->st", near.astype(float))
    of_all = near.sum(axis=(0, 2))
    n_pairs = max(n_options * (n_options - 1), 1)
    return own / n_options, (of_all - own) / n_pairs


def find_reliable(table: pd.DataFrame) -> pd.DataFrame:
    """Options that go to one place from more than half of the starts.

    Such an option settles near one place (less than FAR from its modal place from one
    of the starts) from more than half of all starts, and arrives there from at least
    one of them: it was not there from the beginning. The rows are those roll-outs whose
    place it is.
    """
    n_starts = table.start.nunique()
    points = get_points(table)
    settles = table.settles.to_numpy() > 0
    arrives = table.arrives.to_numpy() > 0

    rows = []
    for option in table.groupby(["collection", *OPTION]).indices.values():
        # near[i, j]: whether roll-outs i and j of the option settle near each other.
        near = cdist(points[option], points[option]) < FAR
        near &= settles[option, None] & settles[None, option]
        best = int(near.sum(axis=1).argmax())
        at_best = option[near[best]]
        if len(at_best) > n_starts / 2 and arrives[at_best].any():
            rows.append(option[best])
    return table.iloc[rows]


# Singular directions against random ones


@dataclass(frozen=True)
class Effect(Difference):
    """How singular directions differ from random ones in one measure.

    `least` is the smallest difference of a collection.
    """

    least: float

    def above(self, margin: float = MARGIN) -> bool | None:
        """Whether singular directions have more, also in every collection."""
        is_above = super().above(margin)
        return None if is_above and self.least <= 0 else is_above


def compare_with_random(
    table: pd.DataFrame, measure: str, n_intervals: int = 1, draws: int = 4000
) -> Effect:
    """How singular directions differ from random ones in one measure.

    Parameters
    ----------
    table : DataFrame
        Roll-outs.
    measure : str
        A column, or ``"agreement"``.
    n_intervals : int, default=1
        Number of intervals that hold together: each is widened (Bonferroni).
    draws : int, default=4000
        Draws of the bootstrap.
    """
    singular = tabulate_groups(table[table.kind == "singular"], measure)
    random = tabulate_groups(table[table.kind == "random"], measure)
    differences = [
        average_pairs(ours).mean() - average_pairs(theirs).mean()
        for ours, theirs in zip(singular, random, strict=True)
    ]
    deviations = estimate_deviations(table[table.kind == "random"], measure)
    low, high = bootstrap_difference(singular, random, n_intervals, draws, deviations)
    return Effect(float(np.mean(differences)), low, high, float(min(differences)))


def estimate_deviations(table: pd.DataFrame, measure: str) -> list[float]:
    """How much the mean of the only random basis of each collection deviates.

    The directions of a basis are a sample of all directions: the result is the standard
    error of their mean. It is 0 where there are other bases to compare with, and for
    the agreement, which no direction has alone.
    """
    deviations = []
    for _, part in table.groupby("collection"):
        if measure == "agreement" or part.basis.nunique() > 1:
            deviations.append(0.0)
            continue
        by_direction = part.groupby("direction")[measure].mean()
        deviations.append(float(by_direction.sem()))
    return deviations


def mean_agreement(table: pd.DataFrame, *, draws: int = 4000) -> Difference:
    """Agreement of the options of one kind across starts, with its interval.

    The interval is that of the same bootstrap, as the difference to groups of zeros.
    """
    groups = tabulate_groups(table, "agreement")
    zeros = [0 * group[:1] for group in groups]
    low, high = bootstrap_difference(zeros, groups, 1, draws)
    mean = float(np.mean([average_pairs(group).mean() for group in groups]))
    return Difference(mean, 0.0 - high, 0.0 - low)


def tabulate_groups(table: pd.DataFrame, measure: str) -> list[FloatArray]:
    """Numbers of pairs of starts whose mean is the measure of a group.

    For each collection the result has an array (bases, starts, starts). That of a
    column is the mean of the first start. The agreement counts pairs of different
    starts only: its diagonal is NaN.
    """
    collections = []
    for _, part in table.groupby("collection"):
        n_starts = part.start.nunique()
        bases = []
        for _, group in part.groupby("basis"):
            if measure == "agreement":
                bases.append(_tabulate_agreement(group, n_starts))
            else:
                means = group.groupby("start")[measure].mean().to_numpy(dtype=float)
                bases.append(np.repeat(means[:, None], n_starts, axis=1))
        collections.append(np.stack(bases))
    return collections


def _tabulate_agreement(group: pd.DataFrame, n_starts: int) -> FloatArray:
    """``(starts, starts)`` how much more often own places meet than those of others."""
    points = get_points(group.sort_values(["direction", "sign", "start"]))
    places = points.reshape(-1, n_starts, points.shape[1])
    own, others = count_meetings(places)
    is_same_start = np.eye(n_starts, dtype=bool)
    return np.where(is_same_start, np.nan, own - others)


def average_pairs(groups: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Means over pairs of starts, weighted by how often each start is drawn.

    Parameters
    ----------
    groups : array, shape (bases, starts, starts)
        Numbers of the pairs; NaN for those that do not count.
    weights : array, shape (draws, starts), optional
        How often each start is drawn; by default once, in one draw.

    Returns
    -------
    array, shape (draws, bases)
        NaN if no pair counts: all weight is on one start.
    """
    if weights is None:
        weights = np.ones((1, groups.shape[1]))
    counts = ~np.isnan(groups[0])
    values = np.where(counts, groups, 0.0)
    total = np.einsum("ds,st,dt->d", weights, counts.astype(float), weights)
    sums: FloatArray = np.einsum(
        "ds,bst,dt->db", weights, values, weights, optimize=True
    )
    return sums / np.where(total > 0, total, np.nan)[:, None]


def bootstrap_difference(
    ones: list[FloatArray],
    others: list[FloatArray],
    n_intervals: int,
    draws: int,
    deviations: Sequence[float] | None = None,
) -> tuple[float, float]:
    """Percentiles of the difference of groups when everything is resampled.

    Parameters
    ----------
    ones, others : list of arrays
        Groups of `tabulate_groups`, one per collection. Only the first basis of `ones`
        is used.
    n_intervals, draws : int
        As in `compare_with_random`.
    deviations : sequence of float, optional
        Those of `estimate_deviations`; by default 0.
    """
    rng = np.random.default_rng(0)
    n_collections = len(ones)
    n_starts = ones[0].shape[1]
    drawn = rng.integers(n_collections, size=(draws, n_collections))
    weights = rng.multinomial(
        n_starts, np.full(n_starts, 1 / n_starts), size=(draws, n_collections)
    ).astype(float)

    differences = np.empty((draws, n_collections))
    for collection in range(n_collections):
        is_drawn = drawn == collection
        ours = average_pairs(ones[collection], weights[is_drawn])[:, 0]
        theirs = average_pairs(others[collection], weights[is_drawn])
        n_bases = theirs.shape[1]
        bases = rng.integers(n_bases, size=theirs.shape)
        resampled = np.take_along_axis(theirs, bases, axis=1)
        differences[is_drawn] = ours - resampled.mean(axis=1)

        # The one kind may differ by chance as much as one basis does from the others.
        if n_bases > 1:
            basis = rng.integers(n_bases, size=(len(theirs), 1))
            one = np.take_along_axis(theirs, basis, axis=1)[:, 0]
            deviation = one - theirs.mean(axis=1)
            differences[is_drawn] += deviation * np.sqrt(n_bases / (n_bases - 1))
        elif deviations is not None:
            differences[is_drawn] += rng.normal(
                scale=deviations[collection], size=len(theirs)
            )

    tail = (1 - CONFIDENCE) / (2 * n_intervals)
    low, high = np.nanquantile(differences.mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)
