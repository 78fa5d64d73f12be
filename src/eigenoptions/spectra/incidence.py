"""The incidence matrix of sampled transitions and its singular vectors (paper, Section 5.1).

Every new transition is a row ``phi(s') - phi(s)`` of T. "We define two vectors t and t' to be identical if and only if
t - t' = 0": each row counts once. With one-hot features and every transition of a graph sampled, ``T'T = 2L``
(Theorem 5.1): the right singular vectors of T are the eigenvectors of the combinatorial Laplacian.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse, vstack

from eigenoptions.features import Map, compute_features
from eigenoptions.mdp import Transitions
from eigenoptions.spectra import MAX_DENSE_STATES, Spectrum
from eigenoptions.spectra.canonical import canonical_basis

# Share of the largest variance below which a direction in feature space counts as flat.
MIN_RELATIVE_VARIANCE = 1e-4

Array = NDArray[np.float64]


class Incidence:
    """A growing incidence matrix: the different differences of features, one batch of transitions at a time.

    Parameters
    ----------
    features
        The map phi: `add` takes observations. None: `add` takes features.
    unique
        Each difference counts once, as in the paper; False: every transition counts. Transitions that change no
        feature never count.

    Attributes
    ----------
    n_transitions
        Number of transitions that were added.

    Examples
    --------
    Every transition of a path of three states, in both directions: twice the Laplacian.

    >>> from eigenoptions.features import OneHot
    >>> T = Incidence(OneHot(3))
    >>> T.add([0, 1, 2, 1, 1], [1, 2, 1, 0, 0]).tolist()
    [True, True, True, True, False]
    >>> (T.rows.T @ T.rows).toarray().tolist()
    [[2.0, -2.0, 0.0], [-2.0, 4.0, -2.0], [0.0, -2.0, 2.0]]
    """

    def __init__(self, features: Map | None = None, *, unique: bool = True) -> None:
        self.features, self.unique, self.n_transitions = features, unique, 0
        self._blocks: list[csr_array] = []
        # Columns and entries of each row that was seen.
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        """Number of rows."""
        return sum(block.shape[0] for block in self._blocks)

    def __repr__(self) -> str:
        return f"Incidence({len(self)} rows of {self.n_transitions} transitions)"

    @property
    def rows(self) -> csr_array:
        """``(len, d)`` the incidence matrix T, in the order in which its rows were seen."""
        if not self._blocks:
            raise ValueError("the incidence matrix is empty: add transitions first")
        if len(self._blocks) > 1:
            self._blocks = [csr_array(vstack(self._blocks))]
        return self._blocks[0]

    def add(self, obs: Any, next_obs: Any) -> NDArray[np.bool_]:
        """Add a batch of transitions; returns ``(N,)`` which of them became rows."""
        features: Any = (lambda rows: rows) if self.features is None else self.features
        n_features = self._blocks[0].shape[1] if self._blocks else None
        before, after = (np.asarray(side) if not issparse(side) else side for side in (obs, next_obs))
        phi = compute_features(features, before, n_features)
        difference = _subtract(compute_features(features, after, phi.shape[1]), phi)
        new: NDArray[np.bool_] = np.diff(difference.indptr) > 0
        if self.unique:
            columns, entries = difference.indices.astype(np.int32).tobytes(), difference.data.tobytes()
            for i, (low, high) in enumerate(pairwise(difference.indptr.tolist())):
                key = columns[4 * low : 4 * high] + entries[8 * low : 8 * high]
                new[i] &= key not in self._seen
                self._seen.add(key)
        self._blocks.append(difference[new])
        self.n_transitions += len(new)
        return new


def _subtract(phi_next: Any, phi: Any) -> csr_array:
    """``(N, d)`` differences as csr with sorted columns and without zeros."""
    if not issparse(phi):
        phi_next, phi = (
            side.astype(np.int8 if side.dtype == np.bool_ else np.float64) for side in (phi_next, phi)
        )
    difference = csr_array(phi_next - phi, dtype=np.float64)
    difference.sum_duplicates()
    difference.eliminate_zeros()
    return difference


def incidence(transitions: Transitions | Iterable[Transitions], features: Map | None = None) -> Incidence:
    """The incidence matrix of transitions, or of batches of them, of which one is in memory at a time (Section 5.1).

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> x = np.array([[0.0], [1.0], [2.0], [0.5]])
    >>> batch = Transitions(x[:-1], np.zeros(3, dtype=int), x[1:], np.zeros(3, dtype=bool))
    >>> incidence(batch, Raw()).rows.toarray().tolist()
    [[1.0], [-1.5]]
    """
    T = Incidence(features)
    for batch in [transitions] if isinstance(transitions, Transitions) else transitions:
        T.add(batch.obs, batch.next_obs)
    return T


def feature_spectrum(
    transitions: Transitions | Iterable[Transitions], features: Map, k: int | None = None, whiten: bool = True
) -> Spectrum:
    """Eigenpurposes in a feature space, from sampled transitions (Section 5).

    Parameters
    ----------
    transitions
        A batch, or an iterable of batches.
    features
        The map phi from observations to ``(N, d)``.
    k
        How many; None for all.
    whiten
        Functions ``f(s) = e . phi(s)`` have variance 1 on the data; False: directions e have length 1, as in the paper.
        See `incidence_spectrum`.

    Examples
    --------
    >>> from eigenoptions.features import Fourier
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> walk = Transitions(x[:-1], np.zeros(49, dtype=int), x[1:], np.zeros(49, dtype=bool))
    >>> feature_spectrum(walk, Fourier((0.0,), (1.0,), order=3), 2)
    Spectrum(2 of dimension 4, incidence: 0.1007, 0.4026)
    """
    T, n, total, squares = Incidence(features), 0, 0.0, 0.0
    for batch in [transitions] if isinstance(transitions, Transitions) else transitions:
        T.add(batch.obs, batch.next_obs)
        if whiten:
            phi = csr_array(features(batch.obs), dtype=np.float64)
            n, total, squares = n + phi.shape[0], total + phi.sum(axis=0), squares + (phi.T @ phi).toarray()
    covariance = squares / n - np.outer(total / n, total / n) if whiten and n else None
    return incidence_spectrum(T.rows, k, covariance=covariance, features=features)


def incidence_spectrum(
    T: csr_array,
    k: int | None = None,
    *,
    covariance: Array | None = None,
    tolerance: float | None = None,
    features: Map | None = None,
) -> Spectrum:
    """Right singular vectors of an incidence matrix, those with the smallest singular values first (Section 5.1).

    Parameters
    ----------
    T
        ``(N, d)`` differences of features, as in `Incidence.rows`.
    k
        How many; None for all.
    covariance
        ``(d, d)`` covariance M of the features. None: directions e have length 1, as in the paper. With it functions
        ``f(s) = e . phi(s)`` have variance 1 instead, ``e' M e = 1``; else, where features overlap, the smallest
        singular values belong to functions that are flat on the data. (This is slow feature analysis, which the paper
        names as a relative.) Directions in which features have less than 1e-4 of the largest variance are left out.
    tolerance
        Eigenvalues of T'T below `tolerance` times the largest are zero: directions in which no transition went
        (`n_zero` of them). None: the size of rounding errors.
    features
        The map phi, for the record.

    Returns
    -------
    Spectrum
        ``values`` are those of ``T'T / 2``, which is L itself when every transition of a graph was sampled once.
        Features that never changed take no part without `covariance`: their entries are 0, and they do not count as
        zeros.
    """
    d = T.shape[1]
    if not T.nnz:
        raise ValueError("no transition has changed a feature: sample more transitions")
    # Coordinates of directions: features that changed, or principal axes of the features, scaled to variance 1.
    used, axes, deviations = np.arange(d), None, np.ones(1)
    if covariance is None:
        used = np.flatnonzero(np.bincount(T.indices, minlength=d))
    else:
        if np.shape(covariance) != (d, d) or not np.isfinite(covariance).all():
            raise ValueError(
                f"covariance must be finite numbers ({d}, {d}), got shape {np.shape(covariance)}"
            )
        variances, axes = eigh(covariance)
        kept = variances > MIN_RELATIVE_VARIANCE * max(variances[-1], 0.0)
        axes, deviations = axes[:, kept], np.sqrt(variances[kept])
    n = len(used) if axes is None else axes.shape[1]
    if not n or (k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= n)):
        raise ValueError(f"k must be in 1..{n}, the directions in which features differ, got {k!r}")
    if len(used) > MAX_DENSE_STATES:
        raise ValueError(f"at most {MAX_DENSE_STATES} features may change, got {len(used)}: use fewer")
    A = 0.5 * _gram_matrix(T[:, used])
    if axes is not None:
        A = (axes / deviations).T @ A @ (axes / deviations)
    values, vectors = eigh(A, overwrite_a=True)
    limit = 8 * n * np.finfo(float).eps if tolerance is None else tolerance
    norm = float(values[-1])
    values = np.where(values > limit * norm, values, 0.0)
    basis = canonical_basis(values, vectors if axes is None else axes @ vectors, norm)[:, :k]
    if axes is not None:
        basis = (axes / deviations) @ (axes.T @ basis)
    directions = np.zeros((d, basis.shape[1]))
    directions[used] = basis
    return Spectrum(values[:k], directions, "incidence", int((values[:k] == 0).sum()), features)


def _gram_matrix(T: csr_array) -> Array:
    """``T'T``, by sparse or by dense products, whichever is faster."""
    n, d = T.shape
    gram: Array = np.zeros((d, d))
    if T.nnz < 0.1 * n * d:
        return gram + T.T @ T
    for low in range(0, n, 4096):
        block = T[low : low + 4096].toarray()
        gram += block.T @ block
    return gram
