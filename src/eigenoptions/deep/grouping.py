"""Noisy observations: which of them show the same state.

Where the noise is small against the differences between states, there are two kinds of
distances between observations, with a gap between them. Then "closer than the gap" is
an equivalence relation, and its classes, here called groups, are numbered like
observations that repeat exactly.

There is no such gap where states are not discrete, or where the noise is too large. And
if what is left within the groups is not new in each observation, it is more than noise.
In both cases nothing is numbered.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from eigenoptions._types import Float32Array, FloatArray, IndexArray


def group_observations(
    x: Float32Array,
    before: IndexArray,
    after: IndexArray,
    rng: np.random.Generator,
    max_sample: int = 2048,
) -> IndexArray | None:
    """Number the states that noisy observations show.

    Parameters
    ----------
    x : array (n, d)
        Observations. The noise must have about the same size along each coordinate.
    before, after : array (N,)
        Observation ``after[i]`` was made one transition after ``before[i]``.
    rng : Generator
        Draws a sample of the observations.
    max_sample : int, default=2048
        Largest number of observations whose distances are all compared.

    Returns
    -------
    array (n,) or None
        The group of each observation; None where they cannot be told apart.
    """
    # The groups of a sample: there must be far fewer of them than observations.
    rows = rng.choice(len(x), min(len(x), max_sample), replace=False)
    sample = x[np.sort(rows)]
    distances = cdist(sample, sample, "sqeuclidean")
    limit = _find_gap(distances)
    if limit is None:
        return None
    sample_groups = _find_groups(distances, limit)
    if sample_groups is None or sample_groups.max() + 1 > 0.5 * len(sample):
        return None

    # All other observations belong to the group whose mean is near.
    noise = _measure_noise(distances, sample_groups)
    means, sizes = compute_group_means(sample, sample_groups)
    groups = _assign_to_nearest(x, means, sizes, noise, limit)
    if groups is None:
        return None

    # Those that are far from all means form further groups.
    is_new = groups < 0
    new = x[is_new]
    if len(new) > max_sample:
        return None
    new_groups = _find_groups(cdist(new, new, "sqeuclidean"), limit)
    if new_groups is None:
        return None
    groups[is_new] = groups.max() + 1 + new_groups

    all_means, _ = compute_group_means(x, groups)
    if not _is_white(x - all_means[groups], before, after):
        return None
    return groups


def compute_group_means(
    x: Float32Array, groups: IndexArray
) -> tuple[Float32Array, IndexArray]:
    """Compute the mean ``(g, d)`` and the size ``(g,)`` of each group."""
    sizes = np.bincount(groups)
    n = len(x)
    is_member = csr_array(
        (np.ones(n, dtype=np.float32), (groups, np.arange(n))),
        shape=(len(sizes), n),
    )
    means = is_member @ x / sizes[:, None]
    return means.astype(np.float32), sizes


# A gap counts if its far side is so many times as far as its near one.
_LEAST_RATIO = 1.05

# Share of the observations that may be near two means: so few may be there by chance.
_MOST_UNCLEAR = 1e-4

# Observations that are compared with all means at a time, which bounds the memory.
_BLOCK_ROWS = 4096

# Correlation with the next observation below which what is left looks like noise.
_MOST_CORRELATION = 0.1


def _find_gap(distances: FloatArray) -> float | None:
    """Find the middle of the widest gap between squared distances ``(n, n)``.

    It is the gap whose two sides have the largest ratio. None if this ratio, of
    distances that are not squared, is small.
    """
    ascending = np.sort(distances[np.triu_indices(len(distances), 1)])
    # Equal observations have distance zero, by which nothing can be divided.
    tiny = np.finfo(np.float32).tiny
    ratios = ascending[1:] / np.maximum(ascending[:-1], tiny)

    widest = int(ratios.argmax())
    # Ratios of squares are squares of ratios.
    if ratios[widest] < _LEAST_RATIO**2:
        return None
    return float(ascending[widest] + ascending[widest + 1]) / 2


def _find_groups(distances: FloatArray, limit: float) -> IndexArray | None:
    """Group observations that are closer than the limit.

    None if that is no equivalence relation: some members of a group are far apart.
    """
    is_near = distances < limit
    np.fill_diagonal(is_near, True)
    _, components = connected_components(csr_array(is_near), directed=False)
    groups: IndexArray = components.astype(np.intp)

    n_pairs_in_groups = (np.bincount(groups) ** 2).sum()
    if n_pairs_in_groups != is_near.sum():
        return None
    return groups


def _measure_noise(distances: FloatArray, groups: IndexArray) -> float:
    """Measure the mean squared distance of an observation from what it shows."""
    is_same = groups[:, None] == groups
    np.fill_diagonal(is_same, False)
    # Both observations of a pair have noise.
    return float(distances[is_same].mean()) / 2


def _assign_to_nearest(
    x: Float32Array,
    means: Float32Array,
    sizes: IndexArray,
    noise: float,
    limit: float,
) -> IndexArray | None:
    """Assign each observation to the group with the nearest mean, or to -1: a new one.

    None if too many observations are near two means.
    """
    # The limit holds for two observations, each with its noise; a mean of n has 1/n.
    limits = limit - noise + noise / sizes

    groups = np.empty(len(x), dtype=np.intp)
    n_unclear = 0
    for low in range(0, len(x), _BLOCK_ROWS):
        block = slice(low, low + _BLOCK_ROWS)
        distances = cdist(x[block], means, "sqeuclidean")
        n_near = (distances < limits).sum(axis=1)
        n_unclear += int((n_near > 1).sum())
        groups[block] = np.where(n_near > 0, distances.argmin(axis=1), -1)

    if n_unclear > _MOST_UNCLEAR * len(x):
        return None
    return groups


def _is_white(rest: Float32Array, before: IndexArray, after: IndexArray) -> bool:
    """Tell whether what is left of observations ``(n, d)`` is new in each of them.

    Along no coordinate is it correlated with that of the next observation.
    """
    # An observation that is its own successor says nothing.
    has_moved = before != after
    now = rest[before[has_moved]]
    later = rest[after[has_moved]]

    covariance = (now * later).sum(axis=0)
    size = np.sqrt((now**2).sum(axis=0) * (later**2).sum(axis=0))
    return bool((np.abs(covariance) <= _MOST_CORRELATION * size).all())
