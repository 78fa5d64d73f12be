"""What an option did: a few numbers per roll-out, defined before any result was seen (paper, Section 5.2).

The paper states that options have "the clear intent of reaching particular positions". An option with such an intent
*stays* there (`dwell`), it has *gone* there (`away`, `arrives`), and it goes there from other starts *too*
(`count_meetings`); a set of options is better if they go to many places (`count_places`). The player's position is read
from the game's memory; a *place* is a square of 4 by 4 of its units (about pixels), so that the jitter of an animation
is not travel.

================ ================================================================================================
``dwell``        share of the second half of the frames spent at the modal place
``settles``      dwell is at least SETTLED
``away``         distance of the modal place from the start
``arrives``      settles at least FAR units away from the start
``places``       different places seen
``farthest``     largest distance from the start
``died``         a life was lost
``score``        points of the game
``first_stop``   first frame at which no action was positive (all frames, if none)
``stopped``      share of the frames at which no action was positive
``steady``       share of the frames with the most frequent action
``height``       mean of the last coordinate of the position (in Freeway: how far the chicken is up the road)
``x``, ``y`` ... the most frequent position at the modal place
``region``       the first region of the game that holds it, or ``""``
================ ================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reproduction.atari.games import Game
from reproduction.atari.rollouts import Rollouts

# Side of a place, in units of position.
CELL = 4
# Share of the second half of the time at one place from which an option has settled there.
SETTLED = 0.5
# About the size of a player, or of a lane, in units of position; what is nearer to the start is still the start.
FAR = 16.0
# Names of the coordinates of a position.
AXES = ("x", "y")

Array = NDArray[np.float64]


def measure(rollouts: Rollouts, start: ArrayLike, game: Game) -> pd.DataFrame:
    """The measures of each of n roll-outs of F frames that watched the bytes of the player's position.

    `start` is the position at the start. The *modal place* is where most frames of the second half, ``F // 2`` on, are
    spent; of equal ones, the first that is visited. After its end (a lost life) an option is nowhere, so dying early is
    not dwelling; with nothing in the second half, dwell is 0 and the modal place NaN.
    """
    n, frames, n_axes = rollouts.watched.shape
    rows = []
    for i in range(n):
        length = int(rollouts.length[i])
        stopped = rollouts.stopped[i, :length]
        actions = rollouts.actions[i, :length].astype(np.int64)
        row: dict[str, Any] = {
            "died": float(rollouts.died[i]),
            "score": float(rollouts.score[i]),
            "first_stop": float(stopped.argmax() if stopped.any() else frames),
            "stopped": stopped.sum() / max(length, 1),
            "steady": np.bincount(actions, minlength=1).max() / max(length, 1),
        }
        row |= _measure_path(rollouts.watched[i, :length].astype(float), frames, np.asarray(start))
        row["region"] = game.find_region([row[axis] for axis in AXES[:n_axes]])
        rows.append(row)
    return pd.DataFrame(rows)


def _measure_path(path: Array, frames: int, start: NDArray[Any]) -> dict[str, float]:
    """Measures of one path of positions ``(length, p)``."""
    axes = AXES[: path.shape[1]]
    place = np.unique(path // CELL, axis=0, return_inverse=True)[1].ravel() if len(path) else np.zeros(0)
    row = {
        **{"dwell": 0.0, "settles": 0.0, "arrives": 0.0, "away": np.nan, **dict.fromkeys(axes, np.nan)},
        "places": float(len(np.unique(place))),
        "farthest": float(np.linalg.norm(path - start, axis=1).max(initial=0.0)),
        "height": float(path[:, -1].mean()) if len(path) else np.nan,
    }
    late = place[frames // 2 :]
    if not len(late):
        return row
    modal, count = _find_mode(late)
    point, _ = _find_mode(path[frames // 2 :][late == modal])
    dwell, away = count / (frames - frames // 2), float(np.linalg.norm(point - start))
    settles = dwell >= SETTLED
    row |= {
        "dwell": dwell,
        "settles": float(settles),
        "away": away,
        "arrives": float(settles and away >= FAR),
    }
    return row | dict(zip(axes, point.tolist(), strict=True))


def _find_mode(points: NDArray[Any]) -> tuple[Any, int]:
    """The most frequent of points ``(n, ...)``, of equal ones the first; and how often it occurs."""
    different, first, counts = np.unique(points, axis=0, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return different[best], int(counts[best])


def get_points(table: pd.DataFrame) -> Array:
    """``(n, p)`` modal places of a table."""
    points: Array = table[[axis for axis in AXES if axis in table]].to_numpy(dtype=float)
    return points


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


def count_places(points: ArrayLike, arrives: ArrayLike, k: int) -> float:
    """Different places at which k of n options arrive from one start, on average over all choices of the k.

    `points` ``(n, p)`` are modal places, different if they lie in different squares of FAR by FAR; `arrives` ``(n,)``
    is whether each option arrives. Sets of different size are compared at the same k.

    >>> count_places([[0.0], [0.0], [0.0], [99.0]], [1, 1, 1, 1], 2)
    1.5
    """
    m, there = np.asarray(points, dtype=float), np.asarray(arrives) > 0
    if not there.any():
        return 0.0
    return rarefy(np.unique(m[there] // FAR, axis=0, return_counts=True)[1].tolist(), len(m), k)


def rarefy(counts: Sequence[int], n: int, k: int) -> float:
    """How many of several things k of n options do, on average over all choices of the k.

    Each thing is done by `counts` of the n options: none of the k does it with probability ``C(n - c, k) / C(n, k)``.

    >>> rarefy([3, 1], 4, 2)
    1.5
    """
    missed = [np.prod(1 - c / np.arange(n - k + 1, n + 1)) if n - c >= k else 0.0 for c in counts]
    return float(len(counts) - sum(map(float, missed)))


def find_reliable(table: pd.DataFrame) -> pd.DataFrame:
    """Options that go to one place from more than half of the starts, and not by staying there.

    Such an option settles near one place (less than FAR from its modal place from one of the starts) from more than
    half of all starts, and arrives there from at least one of them. The rows are those roll-outs whose place it is.
    """
    n_starts, rows = table.start.nunique(), []
    points, settles, arrives = get_points(table), table.settles.to_numpy() > 0, table.arrives.to_numpy() > 0
    for option in table.groupby(["collection", "kind", "basis", "direction", "sign"]).indices.values():
        near = np.linalg.norm(points[option, None] - points[None, option], axis=2) < FAR
        near &= settles[option, None] & settles[None, option]
        best = int(near.sum(axis=1).argmax())
        if near[best].sum() > n_starts / 2 and arrives[option[near[best]]].any():
            rows.append(option[best])
    return table.iloc[rows]
