"""The incidence matrix of sampled transitions and its singular vectors (paper, Section 5.1).

Every new transition is a row ``phi(s') - phi(s)`` of T. With one-hot features and every transition of a graph sampled,
``T'T = 2L`` (Theorem 5.1): the right singular vectors of T are the eigenvectors of the combinatorial Laplacian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse, vstack

from eigenoptions._validation import check_int
from eigenoptions.data import Transitions
from eigenoptions.features import Map, compute_features
from eigenoptions.spectra.canonical import canonical_basis
from eigenoptions.spectra.spectrum import Spectrum

Array = NDArray[np.float64]
Batches = Transitions | Iterable[Transitions]


class Incidence:
    """Rows of an incidence matrix, from one batch of transitions after the other.

    Each difference of features is one row (Section 5.2); transitions that change no feature have none.

    >>> T = Incidence()
    >>> T.add(np.array([[0, 0], [1, 0], [2, 2]]), np.array([[1, 0], [2, 0], [2, 2]])).tolist()
    [True, False, False]
    >>> T.rows.toarray().tolist()
    [[1.0, 0.0]]
    """

    def __init__(self) -> None:
        self._blocks: list[csr_array] = []
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def rows(self) -> csr_array:
        """``(len, d)`` the incidence matrix T, in the order of the transitions."""
        if not self._blocks:
            raise ValueError("there are no transitions: add at least one batch")
        return csr_array(vstack(self._blocks))

    def add(self, phi: Any, phi_next: Any) -> NDArray[np.bool_]:
        """Add features ``(N, d)`` before and after each transition, dense or sparse; return which of them are new."""
        if not issparse(phi):
            kind = np.int8 if phi.dtype == phi_next.dtype == np.bool_ else np.float64
            phi, phi_next = phi.astype(kind), phi_next.astype(kind)
        difference = csr_array(phi_next - phi, dtype=np.float64)
        difference.sum_duplicates()
        difference.eliminate_zeros()
        # A row is known by a digest of its columns (4 bytes each) and entries (8 bytes each).
        columns, entries = (
            difference.indices.astype(np.int32).tobytes(),
            difference.data.tobytes(),
        )
        new = np.zeros(difference.shape[0], dtype=np.bool_)
        for i, (low, high) in enumerate(pairwise(difference.indptr.tolist())):
            key = blake2b(
                columns[4 * low : 4 * high] + entries[8 * low : 8 * high],
                digest_size=16,
            ).digest()
            if high > low and key not in self._seen:
                self._seen.add(key)
                new[i] = True
        self._blocks.append(difference[new])
        return new


def incidence(transitions: Batches, features: Map) -> csr_array:
    """The incidence matrix T ``(N, d)`` of transitions in a feature space (Section 5.1).

    Parameters
    ----------
    transitions
        A batch, or an iterable of batches, of which one is in memory at a time.
    features
        The map phi from a batch of observations to ``(N, d)``.

    Examples
    --------
    Every transition of a path of three states, in both directions: twice the Laplacian.

    >>> from eigenoptions.features import OneHot
    >>> states, next_states = np.array([0, 1, 2, 1, 1]), np.array([1, 2, 1, 0, 0])
    >>> T = incidence(Transitions(states, np.zeros(5, int), next_states, np.zeros(5, bool)), OneHot(3))
    >>> (T.T @ T).toarray().tolist()
    [[2.0, -2.0, 0.0], [-2.0, 4.0, -2.0], [0.0, -2.0, 2.0]]
    """
    T = Incidence()
    for phi, phi_next in _compute_features(transitions, features):
        T.add(phi, phi_next)
    return T.rows


def feature_spectrum(
    transitions: Batches, features: Map, k: int | None = None, whiten: bool = True
) -> Spectrum:
    """Eigenpurposes in a feature space, from sampled transitions (Section 5).

    Parameters
    ----------
    transitions, features, k
        As in `incidence`; and the number of eigenpurposes (None: all).
    whiten
        Functions ``f(s) = e . phi(s)`` have variance 1 on the data; False: directions e have length 1, as in the paper.

    Examples
    --------
    >>> from eigenoptions.features import Fourier
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> walk = Transitions(x[:-1], np.zeros(49, dtype=int), x[1:], np.zeros(49, dtype=bool))
    >>> feature_spectrum(walk, Fourier((0.0,), (1.0,), order=3), 2)
    Spectrum(2 of dimension 4, incidence: 0.1007, 0.4026)
    """
    T, n, total, squares = Incidence(), 0, np.zeros(1), np.zeros((1, 1))
    for phi, phi_next in _compute_features(transitions, features):
        T.add(phi, phi_next)
        if whiten:
            products = phi.T.astype(np.float64) @ phi
            squares = squares + (products.toarray() if issparse(products) else products)
            n, total = n + phi.shape[0], total + phi.sum(axis=0)
    covariance = squares / n - np.outer(total / n, total / n) if n else None
    return incidence_spectrum(T.rows, k, covariance=covariance, features=features)


def incidence_spectrum(
    T: csr_array,
    k: int | None = None,
    *,
    covariance: Array | None = None,
    min_variance: float = 1e-6,
    tolerance: float | None = None,
    features: Map | None = None,
) -> Spectrum:
    """Right singular vectors of an incidence matrix ``(N, d)``, those of the smallest singular values first.

    Directions e have length 1, as in the paper; features that never changed take no part. With a covariance M
    ``(d, d)`` of the features, functions ``f(s) = e . phi(s)`` have variance 1 instead, ``e' M e = 1``, as in slow
    feature analysis; else, where features overlap, the smallest singular values belong to functions that are flat on
    the data. Directions with less than `min_variance` of the largest variance are left out. ``values`` are those of
    ``T'T / 2``; below `tolerance` (None: rounding errors) times the largest they are zero: `n_zero` directions in
    which no transition went.
    """
    d = T.shape[1]
    if not T.nnz:
        raise ValueError("no transition has changed a feature: sample more transitions")
    # Coordinates of directions: features that changed, or principal axes of the features, scaled to variance 1.
    used, axes, whitening = np.arange(d), None, np.zeros(0)
    if covariance is None:
        used = np.flatnonzero(np.bincount(T.indices, minlength=d))
    else:
        variances, axes = find_principal_axes(covariance, min_variance)
        whitening = axes / np.sqrt(variances)
    n = len(used) if axes is None else axes.shape[1]
    k = check_int("k", n if k is None else k, maximum=n)
    A = 0.5 * _gram_matrix(T[:, used])
    values, vectors = eigh(A if axes is None else whitening.T @ A @ whitening)
    norm = float(values[-1])
    limit = 8 * n * np.finfo(float).eps if tolerance is None else tolerance
    values = np.where(values > limit * norm, values, 0.0)
    basis = canonical_basis(values, vectors if axes is None else axes @ vectors, norm)[
        :, :k
    ]
    directions = np.zeros((d, k))
    directions[used] = basis if axes is None else whitening @ (axes.T @ basis)
    return Spectrum(
        values[:k], directions, "incidence", int((values[:k] == 0).sum()), features
    )


def find_principal_axes(
    covariance: Array, min_variance: float = 1e-6
) -> tuple[Array, Array]:
    """Variances ``(m,)`` and orthonormal axes ``(d, m)`` of features, without those of a relatively small variance."""
    variances, axes = eigh(covariance)
    kept = variances > min_variance * max(float(variances[-1]), 0.0)
    return variances[kept], axes[:, kept]


def _compute_features(transitions: Batches, features: Map) -> Iterator[tuple[Any, Any]]:
    """Features ``(N, d)`` before and after the transitions of each batch."""
    for batch in [transitions] if isinstance(transitions, Transitions) else transitions:
        phi = compute_features(features, batch.obs)
        yield phi, compute_features(features, batch.next_obs, phi.shape[1])


def _gram_matrix(T: csr_array, block_rows: int = 4096) -> Array:
    """``T'T``, by sparse or by dense products, whichever is faster."""
    n, d = T.shape
    gram: Array = np.zeros(
        (check_int("the number of features that change", d, maximum=20_000), d)
    )
    if T.nnz < 0.1 * n * d:
        gram += T.T @ T
    else:
        for low in range(0, n, block_rows):
            block = T[low : low + block_rows].toarray()
            gram += block.T @ block
    return gram
