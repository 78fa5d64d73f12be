"""Observations that repeat up to noise: which of them show the same thing.

Where the noise is small against the differences between what is shown, distances between observations are of two kinds
with a gap between them, and "closer than the gap" is an equivalence relation. Its classes are numbered like
observations that repeat exactly. Where states are not discrete, or the noise is too large, there is no such gap, and
where what is left within the classes is not new in each observation, it is more than noise: then nothing is numbered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

# Observations whose distances from each other are computed.
SAMPLE = 2048
# Least ratio of the distances at both sides of the gap, and most classes as a share of the observations compared.
LEAST_GAP, MOST_CLASSES = 1.05, 0.5
# Most observations, as a share of all, that may be near two classes by chance.
MOST_AMBIGUOUS = 1e-4
# Largest correlation in time, along some coordinate, of what counts as noise.
MOST_CORRELATION = 0.1
# Observations that are compared with all classes at a time.
BLOCK = 4096

Array = NDArray[np.float32]
Index = NDArray[np.int64]


def classes(x: Array, before: Index, after: Index, rng: np.random.Generator) -> Index | None:
    """``(n,)`` number of what each observation ``(n, d)`` shows; None where that cannot be told.

    Observation ``after[i]`` was made one transition after observation ``before[i]``. The noise must have about the same
    size along each coordinate.
    """
    some = np.sort(rng.choice(len(x), min(len(x), SAMPLE), replace=False))
    squared = _squared_distances(x[some], x[some])
    limit = _gap(squared)
    known = None if limit is None else _components(squared, limit)
    if limit is None or known is None or known.max() + 1 > MOST_CLASSES * len(some):
        return None
    same = known[:, None] == known
    np.fill_diagonal(same, False)
    # Mean squared distance of an observation from what it shows.
    noise = float(squared[same].mean()) / 2
    found = _nearest(x, *means(x[some], known), noise, limit)
    if found is None:
        return None
    new = np.flatnonzero(found < 0)
    known = _components(_squared_distances(x[new], x[new]), limit) if len(new) <= SAMPLE else None
    if known is None:
        return None
    found[new] = found.max() + 1 + known
    return found if _is_new_each_time(x - means(x, found)[0][found], before, after) else None


def means(x: Array, of: Index) -> tuple[Array, Index]:
    """Mean ``(c, d)`` and number ``(c,)`` of the members of each class."""
    sizes = np.bincount(of).astype(np.int64)
    member = csr_array((np.ones(len(x), np.float32), (of, np.arange(len(x)))), shape=(len(sizes), len(x)))
    return np.asarray(member @ x / sizes[:, None], dtype=np.float32), sizes


def _squared_distances(a: Array, b: Array) -> Array:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.maximum(squared, 0, out=squared), dtype=np.float32)


def _gap(squared: Array) -> float | None:
    """Squared distance in the middle of the widest gap between those of all pairs; None if it is narrow."""
    sizes = np.sort(squared[np.triu_indices(len(squared), 1)])
    ratio = sizes[1:] / np.maximum(sizes[:-1], np.finfo(np.float32).tiny)
    at = int(ratio.argmax())
    return float(sizes[at] + sizes[at + 1]) / 2 if ratio[at] >= LEAST_GAP**2 else None


def _components(squared: Array, limit: float) -> Index | None:
    """Class of each observation, where "closer than the limit" is an equivalence relation; else None."""
    near = squared < limit
    np.fill_diagonal(near, True)
    found = connected_components(csr_array(near), directed=False)[1].astype(np.int64)
    return found if (np.bincount(found) ** 2).sum() == near.sum() else None


def _nearest(x: Array, centres: Array, sizes: Index, noise: float, limit: float) -> Index | None:
    """Class of each observation by its distance from the means of classes, -1 for a new one; None if many are unclear.

    The limit holds for two observations, each with its noise; a mean of n has 1/n of it.
    """
    limits = (limit - noise + noise / sizes).astype(np.float32)
    found, unclear = np.empty(len(x), dtype=np.int64), 0
    for low in range(0, len(x), BLOCK):
        squared = _squared_distances(x[low : low + BLOCK], centres)
        within = (squared < limits).sum(axis=1)
        unclear += int((within > 1).sum())
        found[low : low + BLOCK] = np.where(within > 0, squared.argmin(axis=1), -1)
    return found if unclear <= MOST_AMBIGUOUS * len(x) else None


def _is_new_each_time(rest: Array, before: Index, after: Index) -> bool:
    """Whether what is left ``(n, d)`` of observations is uncorrelated with that of the next, along each coordinate."""
    # An observation that is the next one as well says nothing.
    moved = before != after
    f, g = rest[before[moved]], rest[after[moved]]
    size = np.sqrt((f**2).sum(axis=0) * (g**2).sum(axis=0))
    return bool((np.abs((f * g).sum(axis=0)) <= MOST_CORRELATION * size).all())
