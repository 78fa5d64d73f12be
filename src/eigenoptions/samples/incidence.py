"""The incidence matrix of sampled transitions and its singular vectors (Section 5.1).

Every new transition is a row ``phi(s') - phi(s)`` of T. With one-hot features, and with
every transition of a graph sampled, ``T'T = 2L`` (Theorem 5.1): the right singular
vectors of T are the eigenvectors of the combinatorial Laplacian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse, vstack
from scipy.sparse.linalg import eigsh

from eigenoptions._types import BoolArray, FeatureFunction, FeatureMatrix, FloatArray
from eigenoptions._validation import check_int, check_memory, check_type
from eigenoptions.samples import Transitions
from eigenoptions.samples.features import compute_features
from eigenoptions.spectra.canonical import (
    compute_canonical_basis,
    find_cluster_bounds,
)
from eigenoptions.spectra.spectrum import Spectrum

# One batch, or many, of which one is in memory at a time.
Batches: TypeAlias = Transitions | Iterable[Transitions]


class Incidence:
    """Rows of an incidence matrix, from one batch of transitions after the other.

    Each difference of features is one row (Section 5.2), however often it occurs.
    Transitions that change no feature have no row. Differences are equal if they are
    so up to `grain` times the size of each feature: otherwise rounding errors, which
    depend on the machine, would decide how often a step against a wall, or a turn on
    the spot, counts.

    Parameters
    ----------
    grain : float, default=2**-20
        About a millionth.

    Examples
    --------
    >>> T = Incidence()
    >>> before = np.array([[0, 0], [1, 0], [2, 2]])
    >>> after = np.array([[1, 0], [2, 0], [2, 2]])
    >>> T.add(before, after).tolist()
    [True, False, False]
    >>> T.rows.toarray().tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, grain: float = 2.0**-20) -> None:
        self._grain = grain
        self._scale: FloatArray | None = None
        self._blocks: list[csr_array] = []
        self._digests: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._digests)

    @property
    def rows(self) -> csr_array:
        """The incidence matrix T ``(len, d)``, in the order of the transitions."""
        if not self._blocks:
            raise ValueError("there are no transitions: add at least one batch")
        return csr_array(vstack(self._blocks))

    def add(self, phi: FeatureMatrix, phi_next: FeatureMatrix) -> BoolArray:
        """Add the transitions of a batch.

        Parameters
        ----------
        phi, phi_next : array or sparse array (N, d)
            Features before and after each transition.

        Returns
        -------
        array (N,)
            Which transitions were new.
        """
        difference = _subtract_features(phi_next, phi)
        compared = difference
        if phi.dtype.kind == "f" and phi.shape[0]:
            self._measure_scale(phi)
            compared = self._round(difference)
        is_new = np.zeros(difference.shape[0], dtype=np.bool_)
        for row, digest in enumerate(_compute_digests(compared)):
            if digest is not None and digest not in self._digests:
                self._digests.add(digest)
                is_new[row] = True
        self._blocks.append(difference[is_new])
        return is_new

    def _measure_scale(self, phi: FeatureMatrix) -> None:
        """Set the size of each feature that had none: a power of 2 near its largest."""
        largest = abs(phi).max(axis=0)
        if issparse(largest):
            largest = largest.toarray()
        largest = np.asarray(largest, dtype=np.float64).ravel()
        # 0.67 to 1.33 becomes 1: rounding errors do not decide about 0.5 or 1.
        size = 2.0 ** np.floor(np.log2(1.5 * np.where(largest > 0, largest, 1.0)))
        size = np.where(largest > 0, size, 0.0)
        if self._scale is None:
            self._scale = size
        self._scale = np.where(self._scale > 0, self._scale, size)

    def _round(self, difference: csr_array) -> csr_array:
        """Differences in units of the grain, without those that are rounding errors."""
        assert self._scale is not None
        units = self._grain * np.where(self._scale > 0, self._scale, 1.0)
        rounded = difference.copy()
        rounded.data = np.round(difference.data / units[difference.indices])
        rounded.eliminate_zeros()
        return rounded


def _subtract_features(phi_next: FeatureMatrix, phi: FeatureMatrix) -> csr_array:
    """Differences of features ``(N, d)``, without stored zeros."""
    if not issparse(phi):
        # Booleans cannot be subtracted, and small unsigned integers would wrap around.
        is_boolean = phi.dtype == phi_next.dtype == np.bool_
        signed = np.int8 if is_boolean else np.float64
        phi = phi.astype(signed)
        phi_next = phi_next.astype(signed)
    difference = csr_array(phi_next - phi, dtype=np.float64)
    difference.sum_duplicates()
    difference.eliminate_zeros()
    return difference


def _compute_digests(rows: csr_array) -> Iterator[bytes | None]:
    """A digest of the columns and entries of each row; None for empty rows."""
    # Cut from the bytes of whole arrays, which is faster than arrays of single rows.
    columns = rows.indices.astype(np.int32).tobytes()
    entries = rows.data.tobytes()
    for low, high in pairwise(rows.indptr.tolist()):
        if low == high:
            yield None
        else:
            text = columns[4 * low : 4 * high] + entries[8 * low : 8 * high]
            yield blake2b(text, digest_size=16).digest()


def incidence(transitions: Batches, features: FeatureFunction) -> csr_array:
    """Compute the incidence matrix T of transitions in a feature space (Section 5.1).

    Parameters
    ----------
    transitions : Transitions or iterable of Transitions
        A batch, or many, of which one is in memory at a time.
    features : callable
        The map phi from a batch of observations to features ``(N, d)``.

    Returns
    -------
    csr_array (N, d)
        One row ``phi(s') - phi(s)`` per difference.

    Examples
    --------
    Every transition of a path of three states, in both directions: twice the Laplacian.

    >>> from eigenoptions.samples.features import OneHot
    >>> states = np.array([0, 1, 2, 1, 1])
    >>> next_states = np.array([1, 2, 1, 0, 0])
    >>> actions = np.zeros(5, dtype=int)
    >>> terminated = np.zeros(5, dtype=bool)
    >>> walk = Transitions(states, actions, next_states, terminated)
    >>> T = incidence(walk, OneHot(3))
    >>> (T.T @ T).toarray().tolist()
    [[2.0, -2.0, 0.0], [-2.0, 4.0, -2.0], [0.0, -2.0, 2.0]]
    """
    T = Incidence()
    for phi, phi_next in _iterate_feature_pairs(transitions, features):
        T.add(phi, phi_next)
    return T.rows


def feature_spectrum(
    transitions: Batches,
    features: FeatureFunction,
    k: int | None = None,
    whiten: bool = True,
) -> Spectrum:
    """Compute eigenpurposes in a feature space, from sampled transitions (Section 5).

    Parameters
    ----------
    transitions, features
        As in `incidence`.
    k : int or None, default=None
        Number of eigenpurposes; None for all.
    whiten : bool, default=True
        Whether functions ``f(s) = e . phi(s)`` have variance 1 on the data. If not,
        directions e have length 1, as in the paper.

    Returns
    -------
    Spectrum
        The directions e are its vectors; see `incidence_spectrum`.

    Examples
    --------
    >>> from eigenoptions.samples.features import Fourier
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> actions = np.zeros(49, dtype=int)
    >>> terminated = np.zeros(49, dtype=bool)
    >>> walk = Transitions(x[:-1], actions, x[1:], terminated)
    >>> feature_spectrum(walk, Fourier((0.0,), (1.0,), order=3), 2)
    Spectrum(2 of dimension 4, incidence: 0.1007, 0.4026)
    """
    T, covariance = measure_changes(transitions, features, whiten)
    return incidence_spectrum(T, k, covariance=covariance, features=features)


def measure_changes(
    transitions: Batches, features: FeatureFunction, whiten: bool = True
) -> tuple[csr_array, FloatArray | None]:
    """Measure what transitions change: all that `feature_spectrum` knows of them.

    Parameters
    ----------
    transitions, features
        As in `incidence`.
    whiten : bool, default=True
        Whether to compute the covariance.

    Returns
    -------
    T : csr_array of shape (N, d)
        The incidence matrix.
    covariance : array of shape (d, d) or None
        The covariance of the features; None without `whiten`.
    """
    T = Incidence()
    moments = _FeatureSums()
    for phi, phi_next in _iterate_feature_pairs(transitions, features):
        T.add(phi, phi_next)
        if whiten:
            moments.add(phi)
    covariance = moments.compute_covariance() if whiten else None
    return T.rows, covariance


class _FeatureSums:
    """Sums of features and of their products, from one batch after the other."""

    def __init__(self) -> None:
        self._n_samples = 0
        self._sum: Any = 0.0
        self._sum_of_products: Any = 0.0

    def add(self, phi: FeatureMatrix) -> None:
        """Add features ``(N, d)``, dense or sparse."""
        _check_features(phi.shape[1])
        products: Any = phi.T.astype(np.float64) @ phi
        if issparse(products):
            products = products.toarray()
        self._n_samples += phi.shape[0]
        self._sum = self._sum + phi.sum(axis=0)
        self._sum_of_products = self._sum_of_products + products

    def compute_covariance(self) -> FloatArray | None:
        """The covariance ``(d, d)``; None without samples."""
        if not self._n_samples:
            return None
        mean = self._sum / self._n_samples
        covariance: FloatArray = self._sum_of_products / self._n_samples
        return covariance - np.outer(mean, mean)


def incidence_spectrum(
    T: csr_array,
    k: int | None = None,
    *,
    covariance: FloatArray | None = None,
    min_variance: float = 1e-6,
    tolerance: float | None = None,
    features: FeatureFunction | None = None,
) -> Spectrum:
    """Compute the right singular vectors of an incidence matrix, smallest values first.

    Without a covariance, directions e have length 1, as in the paper, and features that
    never changed take no part. Where features overlap, the smallest singular values
    then belong to functions that are flat on the data. With a covariance M of the
    features, functions ``f(s) = e . phi(s)`` have variance 1 instead, ``e' M e = 1``,
    as in slow feature analysis.

    Parameters
    ----------
    T : csr_array (N, d)
        The incidence matrix.
    k : int or None, default=None
        Number of singular vectors; None for all.
    covariance : array (d, d) or None, default=None
        Covariance of the features.
    min_variance : float, default=1e-6
        With a covariance, directions with less than this part of the largest variance
        are left out.
    tolerance : float or None, default=None
        Eigenvalues below this part of the largest are zero; None for rounding errors.
    features : callable or None, default=None
        The map phi, which the spectrum keeps.

    Returns
    -------
    Spectrum
        ``values`` are the eigenvalues of ``T'T / 2``, ``vectors`` the directions
        ``(d, k)``, and ``n_zero`` counts the directions in which no transition went.
    """
    if not T.nnz:
        raise ValueError("no transition has changed a feature: sample more transitions")
    if covariance is None:
        values, directions = _find_unit_directions(T, k, tolerance)
    else:
        variances, axes = find_principal_axes(covariance, min_variance)
        values, directions = _find_white_directions(T, variances, axes, k, tolerance)
    n_zero = int((values == 0).sum())
    return Spectrum(values, directions, "incidence", n_zero, features)


def _find_unit_directions(
    T: csr_array, k: int | None, tolerance: float | None
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues ``(k,)`` of ``T'T / 2``, and unit vectors ``(d, k)``."""
    n_features = T.shape[1]
    changes = np.bincount(T.indices, minlength=n_features)
    changing = np.flatnonzero(changes)
    k = _check_number(k, len(changing))

    values, vectors = eigh(0.5 * _compute_gram_matrix(T[:, changing]))
    norm = float(values[-1])
    values = _clear_small_values(values, norm, len(values), tolerance)
    basis = compute_canonical_basis(values, vectors, norm)

    directions = np.zeros((n_features, k))
    directions[changing] = basis[:, :k]
    return values[:k], directions


def _find_white_directions(
    T: csr_array,
    variances: FloatArray,
    axes: FloatArray,
    k: int | None,
    tolerance: float | None,
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues ``(k,)``, and directions ``(d, k)`` of functions with variance 1.

    The principal axes of the features ``(d, m)``, scaled to variance 1, are the
    coordinates.
    """
    k = _check_number(k, len(variances))
    whitening = axes / np.sqrt(variances)
    A = 0.5 * _compute_gram_matrix(T)
    values, vectors, norm = _solve_smallest(whitening.T @ A @ whitening, k)
    values = _clear_small_values(values, norm, len(variances), tolerance)

    # The canonical basis depends on the coordinates. Those of the features do not
    # depend on the solver, as the principal axes may.
    basis = compute_canonical_basis(values, axes @ vectors, norm)[:, :k]
    return values[:k], whitening @ (axes.T @ basis)


# Eigenvalues that are computed beyond those that are asked for, to see where the last
# eigenspace ends.
_N_MORE = 8

# Rows that are made dense at a time.
_BLOCK_ROWS = 4096


def _solve_smallest(A: FloatArray, k: int) -> tuple[FloatArray, FloatArray, float]:
    """The smallest eigenvalues, their eigenvectors, and the norm of a matrix.

    There are at least k of them, and the eigenspace of each of the first k is whole.
    """
    n = len(A)
    if k + _N_MORE < n // 2:
        values, vectors = eigh(A, subset_by_index=(0, k + _N_MORE - 1))
        # The norm is a scale for rounding errors: a few digits of it are enough.
        (norm,) = eigsh(A, 1, v0=np.ones(n), tol=1e-6, return_eigenvectors=False)
        bounds = find_cluster_bounds(values, float(norm))
        # The last eigenspace may be cut.
        if bounds[-2] >= k:
            return values, vectors, float(norm)
    values, vectors = eigh(A)
    return values, vectors, float(values[-1])


def _check_number(k: int | None, maximum: int) -> int:
    """The number of singular vectors; None for all, which must be one at least."""
    if k is None:
        k = maximum
    return check_int("k", k, maximum=maximum)


def _clear_small_values(
    values: FloatArray, norm: float, n: int, tolerance: float | None
) -> FloatArray:
    """Eigenvalues of a matrix of n rows, with 0 for those that are rounding errors."""
    if tolerance is None:
        tolerance = 8 * n * np.finfo(float).eps
    return np.where(values > tolerance * norm, values, 0.0)


def find_principal_axes(
    covariance: FloatArray, min_variance: float = 1e-6
) -> tuple[FloatArray, FloatArray]:
    """Find the principal axes of features.

    Parameters
    ----------
    covariance : array (d, d)
        Covariance of the features.
    min_variance : float, default=1e-6
        Axes with less than this part of the largest variance are left out.

    Returns
    -------
    variances : array (m,)
        The variance along each axis, in ascending order.
    axes : array (d, m)
        Orthonormal columns.
    """
    variances, axes = eigh(covariance)
    largest = max(float(variances[-1]), 0.0)
    is_kept = variances > min_variance * largest
    return variances[is_kept], axes[:, is_kept]


def _iterate_feature_pairs(
    transitions: Batches, features: FeatureFunction
) -> Iterator[tuple[Any, Any]]:
    """Features ``(N, d)``, dense or sparse, before and after each batch of steps."""
    remedy = "make them with Transitions.of(data)"
    check_type("transitions", transitions, Transitions | Iterable, remedy)
    batches = [transitions] if isinstance(transitions, Transitions) else transitions
    for batch in batches:
        check_type("transitions", batch, Transitions, remedy)
        phi = compute_features(features, batch.obs)
        phi_next = compute_features(features, batch.next_obs, n_features=phi.shape[1])
        yield phi, phi_next


def _compute_gram_matrix(T: csr_array) -> FloatArray:
    """``T'T`` by sparse or by dense products, whichever is faster."""
    n_rows, n_features = T.shape
    _check_features(n_features)
    gram: FloatArray = np.zeros((n_features, n_features))
    if T.nnz < 0.1 * n_rows * n_features:
        gram += T.T @ T
        return gram

    for low in range(0, n_rows, _BLOCK_ROWS):
        block = T[low : low + _BLOCK_ROWS].toarray()
        gram += block.T @ block
    return gram


def _check_features(n_features: int) -> None:
    """Raise ValueError if matrices of so many features would be too large."""
    # Products, their eigenvectors, and as much again for LAPACK.
    n_bytes = 4 * 8 * n_features**2
    what = f"products of {n_features:,} features"
    check_memory(what, n_bytes, "use fewer features, or deep.learn")
