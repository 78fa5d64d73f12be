"""What an option did: a few numbers per roll-out, defined before any result was seen (paper, Section 5.2).

The paper states that options have "the clear intent of reaching particular positions". We measure parts of this. An
option with such an intent *stays* there (`dwell`), it has *gone* there (`away`, `arrives`), and it goes there from
other starts *too* (`own_agreement`); a set of options is better if they go to many places (`reach`). The player's
position is read from the game's memory; a *place* is a square of CELL by CELL of its units (about pixels), so that the
jitter of an animation is not travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Side of a place, in units of position.
CELL = 4
# Share of the second half of the time at one place from which an option has settled there.
SETTLED = 0.5
# About the size of a player, or of a lane, in units of position; what is nearer to the start is still the start.
FAR = 16.0
# Names of the coordinates of a position, at most as many as `find_starts` watches bytes.
AXES = ("x", "y", "z", "w", *(f"x{i}" for i in range(5, 13)))

MEASURES = {
    "dwell": "share of the second half of the frames spent at the modal place",
    "settles": f"dwell is at least {SETTLED:g}",
    "away": "distance of the modal place from the start",
    "arrives": f"settles at least {FAR:g} units away from the start",
    "places": "different places seen",
    "farthest": "largest distance from the start",
    "died": "a life was lost",
    "score": "points of the game",
    "first_stop": "first frame at which no action was positive (all frames, if none)",
    "stopped": "share of the frames at which no action was positive",
    "steady": "share of the frames with the most frequent action",
    "height": "mean of the last coordinate of the position (in Freeway: how far the chicken is up the road)",
}
# Measures that need a known position.
PLACED = ("dwell", "settles", "away", "arrives", "places", "farthest", "height")
# Kinds of options, see `jobs`.
KINDS = ("singular", "random", "rotated", "rows", "published", "constant", "walk")
# Columns that identify an option within a collection.
OPTION = ("kind", "basis", "direction", "sign")

Array = NDArray[np.float64]
# Columns of equal length, one row per roll-out.
Table = dict[str, Array]


def measure(rollouts: Any, start: ArrayLike, regions: Mapping[str, Any] | None = None) -> Table:
    """Columns of `MEASURES`, and the modal place, of each of n roll-outs of F frames.

    Parameters
    ----------
    rollouts, start
        `atari.Rollouts` that watched the p bytes of the player's position, and the position ``(p,)`` at the start.
    regions
        Named boxes of positions, see `atari.games.Game`.

    Returns
    -------
    dict
        Arrays ``(n,)``: the measures, ``x``, ``y``, ... as many as p (the most frequent position at the modal place)
        and ``region`` (number of the first region that holds it, -1 if none). The *modal place* is where most frames
        of the second half, ``F // 2`` on, are spent; of equal ones, the first that is visited. After its end (a lost
        life) an option is nowhere, so dying early is not dwelling; with nothing in the second half, dwell is 0 and the
        modal place NaN.
    """
    watched = np.asarray(rollouts.watched)
    n, frames, axes = watched.shape
    length = np.asarray(rollouts.length, dtype=np.int64)
    lived = np.arange(frames) < length[:, None]
    stopped = np.asarray(rollouts.stopped, dtype=bool) & lived
    table = {
        "died": np.asarray(rollouts.died, dtype=float),
        "score": np.asarray(rollouts.score, dtype=float),
        "first_stop": np.where(stopped.any(axis=1), stopped.argmax(axis=1), frames).astype(float),
        "stopped": stopped.sum(axis=1) / np.maximum(length, 1),
        "steady": _steady(np.asarray(rollouts.actions), length),
    }
    if axes:
        rows = [_placed(watched[i, : length[i]].astype(float), frames, np.asarray(start)) for i in range(n)]
        table |= {name: np.array([row[name] for row in rows]) for name in rows[0]}
        table["region"] = np.array([region(point, regions or {}) for point in points_of(table)], dtype=float)
    return {name: column.astype(float) for name, column in table.items()}


def _steady(actions: NDArray[Any], length: NDArray[np.int64]) -> Array:
    most = [
        np.bincount(row[:m].astype(np.int64)).max() if m else 0
        for row, m in zip(actions, length, strict=True)
    ]
    return np.array(most, dtype=float) / np.maximum(length, 1)


def _placed(path: Array, frames: int, start: NDArray[Any]) -> dict[str, float]:
    """Measures of one path of positions ``(length, p)``."""
    # One number per place, in the order of places: positions may have more bytes than fit into a code.
    code = np.unique(path // CELL, axis=0, return_inverse=True)[1].ravel() if len(path) else np.zeros(0)
    axes = AXES[: path.shape[1]]
    nothing = {"dwell": 0.0, "settles": 0.0, "arrives": 0.0, "away": np.nan, **dict.fromkeys(axes, np.nan)}
    row = {
        **nothing,
        "places": float(len(np.unique(code))),
        "farthest": float(np.linalg.norm(path - start, axis=1).max(initial=0.0)),
        "height": float(path[:, -1].mean()) if len(path) else np.nan,
    }
    late = code[frames // 2 :]
    if not len(late):
        return row
    modal, count = _mode(late)
    place, _ = _mode(path[frames // 2 :][late == modal])
    dwell, away = count / (frames - frames // 2), float(np.linalg.norm(place - start))
    return {
        **row,
        "dwell": float(dwell),
        "settles": float(dwell >= SETTLED),
        "away": away,
        "arrives": float(dwell >= SETTLED and away >= FAR),
        **dict(zip(axes, place.tolist(), strict=True)),
    }


def _mode(points: NDArray[Any]) -> tuple[Any, int]:
    """The most frequent of points ``(n, ...)``, of equal ones the first; and how often it occurs."""
    kinds, first, counts = np.unique(points, axis=0, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return kinds[best], int(counts[best])


def points_of(table: Table) -> Array:
    """``(n, p)`` modal places of a table."""
    return np.stack([table[axis] for axis in AXES if axis in table], axis=1)


def region(point: Array, regions: Mapping[str, Any]) -> int:
    """Number of the first box that holds a point, ends included; -1 if none does, or there is no point.

    >>> region(np.array([5.0]), {"low": ((0, 4),), "high": ((4.5, 9),)})
    1
    """
    for i, box in enumerate(regions.values()):
        if all(low <= x <= high for x, (low, high) in zip(point, box, strict=True)):
            return i
    return -1


def histogram(rollouts: Any, axis: int = 0, bins: int = 256) -> NDArray[np.int64]:
    """``(n, bins)`` how many frames each roll-out spends at each value of one coordinate."""
    watched = np.asarray(rollouts.watched)[:, :, axis]
    return np.stack(
        [np.bincount(row[: int(m)], minlength=bins) for row, m in zip(watched, rollouts.length, strict=True)]
    )


def meetings(places: ArrayLike) -> tuple[Array, Array]:
    """How often modal places from two starts are near each other, of one option and of two different options.

    Of places ``(options, starts, p)``, NaN where there is none (they are near nothing); near is less than FAR. Returns
    ``(starts, starts)`` shares of options, and of ordered pairs of different options.

    >>> own, others = meetings([[[0.0], [0.0]], [[80.0], [80.0]]])  # each option always at its own place
    >>> float(own[0, 1]), float(others[0, 1])
    (1.0, 0.0)
    """
    m = np.asarray(places, dtype=float)
    n, starts, _ = m.shape
    own, others = np.zeros((starts, starts)), np.zeros((starts, starts))
    for s in range(starts):
        for t in range(starts):
            # A comparison with NaN is false: not near.
            near = np.linalg.norm(m[:, None, s] - m[None, :, t], axis=2) < FAR
            own[s, t] = np.diagonal(near).mean()
            others[s, t] = (near.sum() - np.diagonal(near).sum()) / max(n * (n - 1), 1)
    return own, others


def own_agreement(places: ArrayLike) -> Array:
    """``(options,)`` agreement of each option: how often it meets itself from another start, less how often others.

    Over all pairs of different starts, the share in which the option's two modal places are near each other, less the
    share in which those of two different options of the group are. 1 at most: the start does not matter, and no two
    options have the same place. 0: an option agrees with itself no more than with others. The mean over options is
    the *agreement* of the group.

    >>> own_agreement([[[0.0], [0.0]], [[80.0], [80.0]], [[0.0], [80.0]]]).round(2).tolist()
    [0.67, 0.67, -0.33]
    """
    m = np.asarray(places, dtype=float)
    starts = m.shape[1]
    pairs = ~np.eye(starts, dtype=bool)
    if not pairs.any():
        return np.full(len(m), np.nan)
    apart = np.linalg.norm(m[:, :, None] - m[:, None, :], axis=3)[:, pairs]
    return np.asarray((apart < FAR).mean(axis=1) - meetings(m)[1][pairs].mean())


def reach(points: ArrayLike, arrives: ArrayLike, k: int) -> float:
    """Different places at which k of n options arrive from one start, on average over all choices of the k.

    `points` ``(n, p)`` are modal places, different if they lie in different squares of FAR by FAR; `arrives` ``(n,)``
    is whether each option arrives. Sets of different size are compared at the same k (exact rarefaction).

    >>> reach([[0.0], [0.0], [0.0], [99.0]], [1, 1, 1, 1], 2)
    1.5
    """
    m, there = np.asarray(points, dtype=float), np.asarray(arrives) > 0
    n = len(m)
    if not 0 < k <= n:
        raise ValueError(f"k must be in 1..{n}, the number of options, got {k}")
    if not there.any():
        return 0.0
    _, counts = np.unique(m[there] // FAR, axis=0, return_counts=True)
    return rarefied(counts.tolist(), n, k)


def rarefied(counts: Sequence[int], n: int, k: int) -> float:
    """How many of several things k of n options do, on average over all choices of the k.

    Each thing is done by `counts` of the n options: none of the k does it with probability ``C(n - c, k) / C(n, k)``.

    >>> rarefied([3, 1], 4, 2)
    1.5
    """
    missed = [np.prod(1 - c / np.arange(n - k + 1, n + 1)) if n - c >= k else 0.0 for c in counts]
    return float(len(counts) - sum(map(float, missed)))


def joined(tables: Sequence[Table]) -> Table:
    """Tables with the same columns, one under the other.

    >>> joined([{"a": np.array([1.0])}, {"a": np.array([2.0])}])["a"].tolist()
    [1.0, 2.0]
    """
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
