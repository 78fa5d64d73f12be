"""The incidence matrix as a stream (paper, Section 5.1, Theorem 5.1, Lemma 5.1).

Every new transition is a row ``phi(s') - phi(s)`` of T. The right singular vectors of T are the eigenvectors of T'T, so
T itself is never formed. With one-hot features and every transition of a graph sampled once, ``T'T = 2L``: the spectrum
is that of the combinatorial Laplacian.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse

from eigenoptions import files
from eigenoptions._validation import check_choice, check_csr, check_int, check_real, make_generator
from eigenoptions.features import OneHot, recalled, record, rows_of
from eigenoptions.spectra import MAX_DENSE_STATES, Spectrum, spectrum
from eigenoptions.spectra.canonical import canonical_basis
from eigenoptions.spectra.rows import (
    BITS,
    NUMBERS,
    ROWS_PER_BLOCK,
    SPARSE,
    STATES,
    UniqueRows,
    checked_rows,
    difference,
    encode,
    moving,
    states_of,
)

FILE_FORMAT = 1
# Share of the largest variance below which a direction in feature space counts as flat.
FLAT = 1e-4
# Largest matrix and eigenvectors that are allocated: a few high state numbers must not fill the memory.
MAX_MATRIX_FEATURES = 1 << 27
MAX_VECTOR_BYTES = 1 << 33

Array = NDArray[np.float64]


class Gram:
    """Differences of features, one transition at a time, and their Gram matrix ``T'T`` (Section 5.1).

    The first batch determines the feature type: whole numbers ``(N,)`` are one-hot states, booleans ``(N, d)`` are
    bits, other arrays ``(N, d)`` numbers, and scipy's sparse arrays stay sparse.

    Parameters
    ----------
    n_features
        d; None to learn it from the data (of states: the largest number seen, plus one).
    dedupe
        True: each difference counts once, as in the paper; rows are compared entry by entry. They are all kept, bits
        packed, so memory grows with their number only; the result depends neither on the order of transitions nor on
        how they are divided into batches. False: every transition counts, and only ``T'T`` is kept; sums of whole
        numbers are exact in any order, those of other numbers are the same up to rounding.
    features
        The map phi: `add` then takes observations. None: `add` takes features.

    Examples
    --------
    Every transition of a path of three states, in both directions: twice the Laplacian.

    >>> gram = Gram()
    >>> gram.add([0, 1, 2, 1, 1], [1, 2, 1, 0, 0])
    4
    >>> gram.matrix.toarray().tolist()
    [[2.0, -2.0, 0.0], [-2.0, 4.0, -2.0], [0.0, -2.0, 2.0]]
    >>> gram.spectrum()
    Spectrum(3 of dimension 3, incidence: 0, 1, 3)
    """

    def __init__(self, n_features: int | None = None, *, dedupe: bool = True, features: Any = None) -> None:
        if n_features is not None and (not isinstance(n_features, int | np.integer) or n_features < 1):
            raise ValueError(f"n_features must be at least 1, got {n_features!r}")
        if features is not None and not callable(features):
            raise ValueError(f"features must be a function of observations, got {type(features).__name__}")
        if isinstance(features, OneHot) and n_features not in (None, features.n_states):
            raise ValueError(
                f"n_features must be {features.n_states}, the number of states, got {n_features}"
            )
        self.features = features
        self.dedupe = bool(dedupe)
        self.n_transitions = 0
        self.kind: str | None = None
        self._fixed = n_features is not None or isinstance(features, OneHot)
        self._width = features.n_states if isinstance(features, OneHot) else int(n_features or 0)
        self._rows = UniqueRows()
        # States without dedupe: how often each pair was seen.
        self._counts = np.zeros(0, dtype=np.int64)
        # Features without dedupe: T'T, and how many rows are in it.
        self._sum: Any = None
        self._added = 0
        self._cache: Any = None

    def __len__(self) -> int:
        """Number of distinct differences, zero not counted; of features without `dedupe`, all those added."""
        return self._rows.count if self._sum is None else self._added

    def __repr__(self) -> str:
        what = "differences" if self.dedupe else "transitions"
        return f"Gram({len(self)} {what} of {self.n_features} {self.kind or 'features'})"

    @property
    def n_features(self) -> int:
        """The number of features d, as far as it is known."""
        return self._width

    @property
    def nbytes(self) -> int:
        """Bytes that the stream holds, caches not counted."""
        held = self._rows.nbytes + self._counts.nbytes
        if self._sum is None:
            return held
        parts = [self._sum.data, self._sum.indices, self._sum.indptr] if issparse(self._sum) else [self._sum]
        return int(held + sum(part.nbytes for part in parts))

    def add(self, before: Any, after: Any) -> int:
        """Add transitions: ``phi(s)`` and ``phi(s')`` of each, or observations where the stream has `features`.

        Parameters
        ----------
        before, after
            ``(N,)`` state numbers, ``(N, d)`` arrays, or sparse arrays ``(N, d)``.

        Returns
        -------
        int
            How many rows were new.
        """
        kind, phi, phi_next = self._read(before, after)
        if phi.shape != phi_next.shape:
            raise ValueError(f"before and after must have one shape, got {phi.shape} and {phi_next.shape}")
        n = phi.shape[0]
        if self.kind not in (None, kind):
            raise ValueError(
                f"this stream holds differences of {self.kind}, got {kind}: use another Gram for them"
            )
        width = self._fit(kind, phi, phi_next)
        before_count = len(self)
        if kind == STATES and self.dedupe:
            self._rows.insert_pairs(phi, phi_next)
        elif kind == STATES or self.dedupe:
            indptr, words = encode(kind, phi, phi_next)
            slots = self._rows.insert(indptr, words)
            if not self.dedupe:
                counts = np.bincount(slots, minlength=self._rows.count)
                counts[: len(self._counts)] += self._counts
                self._counts = counts
        else:
            self._accumulate(difference(kind, phi, phi_next))
        self.kind, self._width = kind, width
        self.n_transitions += n
        if len(self) > before_count or not self.dedupe:
            self._cache = None
        return len(self) - before_count

    @property
    def matrix(self) -> Any:
        """``(d, d)`` the Gram matrix T'T: a csr array for states and sparse features, else dense."""
        if self._cache is None:
            self._cache = self._gram()
        return self._cache

    def spectrum(
        self,
        k: int | None = None,
        *,
        tol: float | None = None,
        metric: Array | None = None,
    ) -> Spectrum:
        """Eigenvectors of T'T, those with the smallest values first: the directions of eigenpurposes.

        Parameters
        ----------
        k
            How many; None for all.
        tol
            Eigenvalues below ``tol`` times the largest are zero: directions in which no transition went (`n_zero` of
            them). None: the size of rounding errors. States need no tolerance: their components are counted.
        metric
            ``(d, d)`` covariance M of features. None: directions e have length 1, as in the paper. With it functions
            ``f(s) = e . phi(s)`` have variance 1 instead, ``e' M e = 1``; else, where features overlap, the smallest
            eigenvalues belong to functions that are flat on the data. (For one-hot states seen alike it is the same; in
            general this is slow feature analysis, which the paper names as a relative.) Directions in which features
            have less than 1e-4 of the largest variance are left out.

        Returns
        -------
        Spectrum
            ``values`` are those of ``T'T / 2``, which is L itself when every transition was sampled once. Features that
            never changed (states never seen) take no part: their entries are 0, and they do not count as zeros.
        """
        if self.kind is None or not len(self):
            raise ValueError(
                "no transition has changed a feature yet: add some before asking for the spectrum"
            )
        G = self.matrix
        if metric is not None:
            return self._whitened(np.asarray(metric, dtype=np.float64), k, tol)
        active = np.flatnonzero(G.diagonal() > 0)
        n = len(active)
        if k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= n):
            raise ValueError(f"k must be in 1..{n}, the features that ever changed, got {k!r}")
        size = 8 * self.n_features * (n if k is None else int(k))
        if size > MAX_VECTOR_BYTES:
            raise ValueError(
                f"eigenvectors of {self.n_features} features take {size / 1e9:.1f} GB, the limit is "
                f"{MAX_VECTOR_BYTES / 1e9:.1f} GB: give a smaller k, or number the states from 0 without gaps"
            )
        part = G[active][:, active] if issparse(G) else G[np.ix_(active, active)]
        W = _weights(part) if issparse(part) else None
        if W is not None:
            found = spectrum(W, k, "combinatorial")
            values, columns, n_zero = found.values, found.vectors, found.n_zero
        else:
            values, columns, n_zero = _dense(part, n if k is None else int(k), tol)
        vectors = np.zeros((self.n_features, columns.shape[1]))
        vectors[active] = columns
        return Spectrum(values, vectors, "incidence", n_zero, self.features)

    def _whitened(self, M: Array, k: int | None, tol: float | None) -> Spectrum:
        d = self.n_features
        if M.shape != (d, d) or not np.isfinite(M).all():
            raise ValueError(f"metric must be finite numbers of shape ({d}, {d}), got shape {M.shape}")
        size, axes = eigh(M)
        kept = size > FLAT * max(float(size[-1]), 0.0)
        n = int(kept.sum())
        if not n or (k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= n)):
            raise ValueError(f"k must be in 1..{n}, the directions in which features differ, got {k!r}")
        V = axes[:, kept]
        S = V / np.sqrt(size[kept])
        values, columns, n_zero = _dense(S.T @ (self.matrix @ S), n if k is None else int(k), tol, V)
        return Spectrum(values, S @ (V.T @ columns), "incidence", n_zero, self.features)

    def merge(self, other: Gram) -> Gram:
        """Both streams as one, in a new Gram.

        >>> a, b = Gram(3), Gram(3)
        >>> a.add([0, 1], [1, 2]), b.add([1, 2], [2, 1])
        (2, 2)
        >>> a.merge(b)
        Gram(3 differences of 3 states)
        """
        if self.dedupe != other.dedupe or (None not in (self.kind, other.kind) and self.kind != other.kind):
            raise ValueError(f"these streams cannot be merged: {self!r} and {other!r} were not made alike")
        if record(self.features) != record(other.features):
            raise ValueError("these streams cannot be merged: they have different features")
        if self.kind is None:
            self, other = other, self
        widths = {self._width, other._width} - {0}
        if len(widths) > 1 and (self._fixed or other._fixed or self.kind != STATES):
            raise ValueError(f"these streams cannot be merged: {self._width} and {other._width} features")
        both = deepcopy(self)
        both.absorb(other)
        return both

    def absorb(self, other: Gram) -> None:
        """Add all differences of another stream with the same settings, after those already held."""
        if other.kind is None:
            return
        self.kind, self._width = other.kind, max(self._width, other._width)
        self._cache = None
        self.n_transitions += other.n_transitions
        if other._sum is not None:
            self._sum = other._sum.copy() if self._sum is None else self._sum + other._sum
            self._added += other._added
            return
        if self.kind == STATES and self.dedupe:
            self._rows.insert_pairs(*states_of(other._rows.words))
            return
        slots = self._rows.insert(other._rows.indptr, other._rows.words)
        if not self.dedupe:
            counts = np.zeros(self._rows.count, dtype=np.int64)
            counts[: len(self._counts)] = self._counts
            counts[slots] += other._counts
            self._counts = counts

    def sample(self, n: int, rng: int | np.random.Generator = 0) -> Gram:
        """A Gram of n of its differences, drawn uniformly without replacement (Appendix E draws 25,000).

        >>> gram = Gram()
        >>> gram.add([0, 1, 2, 3], [1, 2, 3, 4])
        4
        >>> gram.sample(2)
        Gram(2 differences of 5 states)
        """
        if not self.dedupe:
            raise ValueError("only a stream with dedupe=True keeps its differences")
        if not isinstance(n, int | np.integer) or not 0 <= n <= len(self):
            raise ValueError(f"n must be in 0..{len(self)}, the differences there are, got {n!r}")
        chosen = np.sort(make_generator(rng).choice(len(self), n, replace=False))
        part = deepcopy(self)
        part._rows, part._cache = UniqueRows(), None
        part._rows.insert(*self._rows.take(chosen))
        return part

    def save(self, path: str | Path) -> None:
        """Write the whole state to a file, to go on with it later; see `load_gram`."""
        header = {
            "kind": "gram",
            "format": FILE_FORMAT,
            "made_of": self.kind,
            "dedupe": self.dedupe,
            "n_features": self._width,
            "fixed": self._fixed,
            "n_transitions": self.n_transitions,
            "added": self._added,
            "features": record(self.features),
            "shape": None if self._sum is None else list(self._sum.shape),
        }
        arrays = {"indptr": self._rows.indptr, "words": self._rows.words, "counts": self._counts}
        if issparse(self._sum):
            arrays |= {"data": self._sum.data, "columns": self._sum.indices, "bounds": self._sum.indptr}
        elif self._sum is not None:
            arrays["sum"] = self._sum
        files.write(path, header, {name: array[None] for name, array in arrays.items()})

    def _read(self, before: Any, after: Any) -> tuple[str, Any, Any]:
        """Kind of the features, and the features of both sides."""
        one_hot = isinstance(self.features, OneHot)
        if (self.features is None or one_hot) and not issparse(before) and np.ndim(before) == 1:
            return STATES, _states(before), _states(after)
        if one_hot:
            raise ValueError(f"one-hot features need state numbers (N,), got shape {np.shape(before)}")
        width = self._width or None
        if self.features is not None:
            phi, phi_next = rows_of(self.features, before, width), rows_of(self.features, after, width)
        elif issparse(before) and issparse(after):
            phi, phi_next = (
                rows_of(lambda rows: rows, before, width),
                rows_of(lambda rows: rows, after, width),
            )
        else:
            before, after = np.asarray(before), np.asarray(after)
            phi, phi_next = rows_of(np.asarray, before, width), rows_of(np.asarray, after, width)
        if issparse(phi):
            return SPARSE, phi, phi_next
        return (BITS if phi.dtype == phi_next.dtype == np.bool_ else NUMBERS), phi, phi_next

    def _fit(self, kind: str, phi: Any, phi_next: Any) -> int:
        """The number of features after this batch."""
        if kind != STATES:
            return int(phi.shape[1])
        most = int(max(phi.max(initial=-1), phi_next.max(initial=-1)))
        if self._fixed and most >= self._width:
            raise ValueError(f"states must be in 0..{self._width - 1}, got {most}")
        return max(self._width, most + 1)

    def _accumulate(self, difference: Any) -> None:
        d = difference.shape[1]
        if self._sum is None:
            self._sum = csr_array((d, d)) if issparse(difference) else np.zeros((d, d))
        self._added += moving(difference)
        if issparse(difference):
            self._sum = csr_array(self._sum + difference.T @ difference)
            return
        for low in range(0, len(difference), ROWS_PER_BLOCK):
            block = difference[low : low + ROWS_PER_BLOCK]
            self._sum += block.T @ block

    def _gram(self) -> Any:
        d = self.n_features
        if self.kind is None:
            raise ValueError("the stream is empty: add transitions first")
        if d > MAX_MATRIX_FEATURES:
            raise ValueError(
                f"{d} features are too many for a matrix: the limit is {MAX_MATRIX_FEATURES}; number the states from 0 "
                "without gaps, or hash the features"
            )
        if self._sum is not None:
            return self._sum.copy()
        if self.kind == STATES:
            s, t = states_of(self._rows.words)
            weight = np.ones(len(s)) if self.dedupe else self._counts.astype(np.float64)
            data = np.concatenate([weight, weight, -weight, -weight])
            G = csr_array((data, (np.concatenate([s, t, s, t]), np.concatenate([s, t, t, s]))), shape=(d, d))
            G.sum_duplicates()
            return G
        total: Any = csr_array((d, d)) if self.kind == SPARSE else np.zeros((d, d))
        for block in self._rows.blocks(self.kind, d):
            total = total + block.T @ block
        return csr_array(total) if self.kind == SPARSE else total


def load_gram(path: str | Path, features: Any = None) -> Gram:
    """A stream that `Gram.save` wrote, to go on with.

    Parameters
    ----------
    path
        The file.
    features
        The map phi, where it was a function that could not be written down.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> gram = Gram()
    >>> gram.add([0, 1], [1, 2])
    2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gram.save(pathlib.Path(folder) / "gram.safetensors")
    ...     load_gram(pathlib.Path(folder) / "gram.safetensors")
    Gram(2 differences of 3 states)
    """
    header, stored = files.read(path, "gram", FILE_FORMAT)
    with files.understood(path):
        gram = Gram(dedupe=header["dedupe"], features=recalled(header["features"], features))
        try:
            _fill(gram, header, {name: array[0] for name, array in stored.items()})
        except ValueError as error:
            raise files.DamagedFileError(f"{path} is damaged: {error}") from None
    return gram


def _fill(gram: Gram, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Put the content of a file into an empty Gram. Everything is checked: a file may be made to do harm."""
    kind = header["made_of"]
    gram.kind = None if kind is None else check_choice("made_of", kind, (STATES, BITS, NUMBERS, SPARSE))
    d = gram._width = check_int(
        "n_features", header["n_features"], minimum=0 if kind is None else 1, maximum=2**31
    )
    gram._fixed = bool(header["fixed"])
    gram.n_transitions, gram._added = (
        check_int(name, header[name], minimum=0) for name in ("n_transitions", "added")
    )
    if kind is not None:
        gram._rows.insert(*checked_rows(kind, arrays["indptr"], arrays["words"], d))
    counts = arrays["counts"]
    n = gram._rows.count if kind == STATES and not gram.dedupe else 0
    if counts.shape != (n,) or counts.dtype != np.int64 or counts.min(initial=1) < 1:
        raise ValueError(f"counts must be {n} whole numbers from 1, got {counts.dtype} {counts.shape}")
    gram._counts = counts
    if header["shape"] is None:
        return
    if header["shape"] != [d, d]:
        raise ValueError(f"shape must be [{d}, {d}], got {header['shape']}")
    if "data" in arrays:
        parts = tuple(arrays[name] for name in ("data", "columns", "bounds"))
        gram._sum = check_csr("the sum", csr_array(parts, shape=(d, d)))
    else:
        gram._sum = check_real("the sum", arrays["sum"])
    data = gram._sum.data if issparse(gram._sum) else gram._sum
    if gram._sum.shape != (d, d) or data.dtype != np.float64 or not np.isfinite(data).all():
        raise ValueError(f"the sum must be ({d}, {d}) finite numbers, got {data.dtype} {gram._sum.shape}")


def _states(given: Any) -> NDArray[np.int64]:
    states = np.asarray(given)
    if not states.size:
        return np.empty(0, dtype=np.int64)
    if states.ndim != 1 or states.dtype.kind not in "iu":
        raise ValueError(
            f"a batch of shape (N,) must be state numbers, got {states.dtype}: give features (N, d)"
        )
    if not 0 <= states.min() <= states.max() < 2**31:
        raise ValueError(f"states must be in 0..{2**31 - 1}, got {states.min()}..{states.max()}")
    return states.astype(np.int64, copy=False)


def _weights(G: csr_array) -> csr_array | None:
    """W where G is twice a Laplacian D - W, as it is for one-hot features."""
    edges = csr_array(G, copy=True)
    edges.setdiag(0.0)
    edges.eliminate_zeros()
    edges.sort_indices()
    if (edges.data > 0).any() or np.any(edges.sum(axis=1) + G.diagonal()):
        return None
    return -0.5 * edges


def _dense(G: Any, k: int, tol: float | None, axes: Array | None = None) -> tuple[Array, Array, int]:
    """The k smallest eigenpairs of G / 2 in the canonical basis (on other `axes` if given), and zeros."""
    n = G.shape[0]
    if n > MAX_DENSE_STATES:
        raise ValueError(
            f"{n} features that change are too many: the limit is {MAX_DENSE_STATES}; hash them, or use fewer"
        )
    A = 0.5 * (G.toarray() if issparse(G) else G)
    values, vectors = eigh(A, overwrite_a=True)
    most = float(values[-1])
    limit = (8 * n * np.finfo(float).eps if tol is None else tol) * most
    values = np.where(values > limit, values, 0.0)
    basis = canonical_basis(values, vectors if axes is None else axes @ vectors, most)
    return values[:k], basis[:, :k], min(int((values == 0).sum()), k)
