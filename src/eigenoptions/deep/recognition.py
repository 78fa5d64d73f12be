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

Array = NDArray[np.float32]
Index = NDArray[np.int64]


def find_classes(
    x: Array, before: Index, after: Index, rng: np.random.Generator, sample: int = 2048
) -> Index | None:
    """``(n,)`` number of what each observation ``(n, d)`` shows; None where that cannot be told.

    Observation ``after[i]`` was made one transition after observation ``before[i]``. The noise must have about the same
    size along each coordinate.
    """
    # Classes of a sample, if there are far fewer than observations.
    rows = np.sort(rng.choice(len(x), min(len(x), sample), replace=False))
    squared = _squared_distances(x[rows], x[rows])
    limit = _find_gap(squared)
    labels = None if limit is None else _find_components(squared, limit)
    if limit is None or labels is None or labels.max() + 1 > 0.5 * len(rows):
        return None
    same = labels[:, None] == labels
    np.fill_diagonal(same, False)
    # Mean squared distance of an observation from what it shows.
    noise = float(squared[same].mean()) / 2
    # All observations by their distance from the classes' means; those that are far from all form further classes.
    classes = _assign_nearest(x, *compute_class_means(x[rows], labels), noise, limit)
    if classes is None:
        return None
    new = np.flatnonzero(classes < 0)
    labels = (
        _find_components(_squared_distances(x[new], x[new]), limit)
        if len(new) <= sample
        else None
    )
    if labels is None:
        return None
    classes[new] = classes.max() + 1 + labels
    return (
        classes
        if _is_white(x - compute_class_means(x, classes)[0][classes], before, after)
        else None
    )


def compute_class_means(x: Array, labels: Index) -> tuple[Array, Index]:
    """Mean ``(c, d)`` and number ``(c,)`` of the members of each class."""
    sizes = np.bincount(labels).astype(np.int64)
    member = csr_array(
        (np.ones(len(x), np.float32), (labels, np.arange(len(x)))),
        shape=(len(sizes), len(x)),
    )
    return np.asarray(member @ x / sizes[:, None], dtype=np.float32), sizes


def _squared_distances(a: Array, b: Array) -> Array:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.maximum(squared, 0, out=squared), dtype=np.float32)


def _find_gap(squared: Array, min_ratio: float = 1.05) -> float | None:
    """Squared distance in the middle of the widest gap between those of all pairs; None if it is narrow."""
    sizes = np.sort(squared[np.triu_indices(len(squared), 1)])
    ratio = sizes[1:] / np.maximum(sizes[:-1], np.finfo(np.float32).tiny)
    at = int(ratio.argmax())
    return float(sizes[at] + sizes[at + 1]) / 2 if ratio[at] >= min_ratio**2 else None


def _find_components(squared: Array, limit: float) -> Index | None:
    """Class of each observation, where "closer than the limit" is an equivalence relation; else None."""
    near = squared < limit
    np.fill_diagonal(near, True)
    labels = connected_components(csr_array(near), directed=False)[1].astype(np.int64)
    return labels if (np.bincount(labels) ** 2).sum() == near.sum() else None


def _assign_nearest(
    x: Array,
    centres: Array,
    sizes: Index,
    noise: float,
    limit: float,
    block: int = 4096,
) -> Index | None:
    """Class of each observation by its distance from the means of classes, -1 for a new one; None where unclear."""
    # The limit holds for two observations, each with its noise; a mean of n has 1/n of it.
    limits = (limit - noise + noise / sizes).astype(np.float32)
    labels, n_unclear = np.empty(len(x), dtype=np.int64), 0
    for low in range(0, len(x), block):
        squared = _squared_distances(x[low : low + block], centres)
        within = (squared < limits).sum(axis=1)
        n_unclear += int((within > 1).sum())
        labels[low : low + block] = np.where(within > 0, squared.argmin(axis=1), -1)
    # A few may be near two classes by chance.
    return labels if n_unclear <= 1e-4 * len(x) else None


def _is_white(
    rest: Array, before: Index, after: Index, max_correlation: float = 0.1
) -> bool:
    """Whether what is left ``(n, d)`` of observations is uncorrelated with that of the next, along each coordinate."""
    # An observation that is the next one as well says nothing.
    moved = before != after
    f, g = rest[before[moved]], rest[after[moved]]
    size = np.sqrt((f**2).sum(axis=0) * (g**2).sum(axis=0))
    return bool((np.abs((f * g).sum(axis=0)) <= max_correlation * size).all())
