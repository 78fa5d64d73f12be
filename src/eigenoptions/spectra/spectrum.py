"""The eigenvectors of a graph's Laplacian in one canonical basis (paper, Section 2.3).

The result is complete: an inertia count proves that no eigenvalue is missing. It is
accurate to rounding (`eigensolver`), and the residuals of what is returned are checked.
It is canonical: signs, and bases of repeated eigenvalues, follow a rule that depends on
the eigenspaces alone, not on the solver, the seed or the machine (`canonical`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._registry import notebook_pictures
from eigenoptions._types import FeatureFunction, FloatArray, Progress, Randomness
from eigenoptions._validation import (
    Record,
    check_choice,
    check_float,
    check_int,
    check_memory,
    make_generator,
    readonly,
    set_readonly,
)
from eigenoptions.spectra.canonical import compute_canonical_basis
from eigenoptions.spectra.eigensolver import find_smallest_eigenpairs
from eigenoptions.spectra.laplacian import OPERATORS, GraphLaplacian

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Record):
    """Eigenpairs of a diffusion model: the proto-value functions (Section 2.3).

    Attributes
    ----------
    values : array (K,)
        Eigenvalues in ascending order; for operator ``"successor"``, largest first.
        Read-only.
    vectors : array (d, K)
        Eigenvectors, one unit vector per column. Read-only.
    operator : str, default="normalized"
        Name of the operator.
    n_zero : int, default=1
        How many of the vectors have the Laplacian's eigenvalue zero: one per connected
        component of the graph.
    features : callable or None, default=None
        The map phi from observations to ``(d,)``; None for numbered states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> eo.spectrum(eo.graph(eo.maze("four-rooms")), k=4)
    Spectrum(4 of dimension 104, normalized: 0, 0.007007, 0.008495, 0.01741)
    """

    values: FloatArray
    vectors: FloatArray
    operator: str = "normalized"
    n_zero: int = 1
    features: FeatureFunction | None = None

    def __post_init__(self) -> None:
        for name in ("values", "vectors"):
            array = readonly(getattr(self, name), np.float64)
            if not np.isfinite(array).all():
                raise ValueError(
                    f"{name} must be finite: leave out eigenpairs that did not converge"
                )
            object.__setattr__(self, name, array)

        if self.values.shape != self.vectors.shape[1:] or self.vectors.ndim != 2:
            raise ValueError(
                "values (K,) and vectors (d, K) must fit, "
                f"got shapes {self.values.shape} and {self.vectors.shape}"
            )

    def embedding(self, scale: str = "commute", *, t: int = 1) -> FloatArray:
        """Scale the columns so that distances between rows have a meaning.

        Parameters
        ----------
        scale : {"commute", "diffusion"}, default="commute"
            ``"commute"`` divides each column by the root of its eigenvalue, and sets it
            to 0 for eigenvalue zero. With all eigenvectors of the combinatorial
            Laplacian, the squared distance of two rows times the sum of all degrees is
            the expected number of steps of a random walk from one state to the other
            and back (Wang et al., 2023).
            ``"diffusion"`` multiplies each column by ``(1 - eigenvalue)^t``, which
            gives a diffusion map (Coifman and Lafon, 2006).
        t : int, default=1
            Number of steps of the diffusion.

        Returns
        -------
        array (d, K)
            One row per state or feature.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> W = eo.graph(eo.maze("..."))
        >>> rows = eo.spectrum(W, operator="combinatorial").embedding("commute")
        >>> round(4 * float(((rows[0] - rows[2]) ** 2).sum()), 9)
        8.0
        """
        check_choice("scale", scale, ("commute", "diffusion"))
        if self.operator in OPERATORS and not OPERATORS[self.operator].is_laplacian:
            raise ValueError(
                "an embedding needs eigenvalues of a Laplacian: "
                "use operator='random-walk'"
            )

        if scale == "diffusion":
            return self.vectors * (1.0 - self.values) ** check_int("t", t, minimum=0)

        is_nonzero = self.values > 0
        is_nonzero[: self.n_zero] = False
        factors = np.zeros(len(self.values))
        factors[is_nonzero] = 1.0 / np.sqrt(self.values[is_nonzero])
        return self.vectors * factors

    def __repr__(self) -> str:
        n_vectors = len(self.values)
        listed = [f"{value:.4g}" for value in self.values[:5]]
        if n_vectors > 5:
            listed.append("...")
        dimension = len(self.vectors)
        return (
            f"Spectrum({n_vectors} of dimension {dimension}, "
            f"{self.operator}: {', '.join(listed)})"
        )

    def _repr_html_(self) -> str:
        """The eigenvalues, and the states placed by e2 and e3, for a notebook."""
        return notebook_pictures.find("spectrum")(self)


def number_vectors(spectrum: Spectrum) -> range:
    """The numbers of a spectrum's vectors, as the paper counts them.

    The constant function is number 1. A spectrum of features may not contain it: its
    vectors begin with number 2.
    """
    has_constant = spectrum.n_zero > 0 or spectrum.operator in OPERATORS
    first = 1 if has_constant else 2
    return range(first, first + len(spectrum.values))


@shows_progress
def spectrum(
    W: csr_array,
    k: int | None = None,
    operator: str = "normalized",
    *,
    gamma: float = 0.99,
    rng: Randomness = 0,
    progress: ProgressArgument = None,
) -> Spectrum:
    """Compute the k smoothest eigenpairs of a graph (Section 2.3).

    Parameters
    ----------
    W : csr_array (S, S)
        Symmetric non-negative weights, as `graph` returns them.
    k : int or None, default=None
        Number of eigenpairs; None for all.
    operator : str, default="normalized"
        ``"normalized"`` (the paper's choice), ``"combinatorial"`` or ``"random-walk"``:
        the k smallest eigenvalues of this Laplacian. ``"successor"``: the k largest of
        the representation ``(I - gamma P)^-1`` of the random walk ``P = D^-1 W`` on the
        graph, whose eigenvectors are those of ``"random-walk"``. (The discovery method
        ``"successor"`` takes the walk of uniformly random actions instead, which stays
        where a move is blocked.)
    gamma : float, default=0.99
        Discount of the successor representation. Other operators do not use it.
    rng : int or Generator, default=0
        Draws the start vector of the Lanczos iteration. The result does not depend on
        it.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with the steps of the iteration and about how many
        there will be: the second number may grow.

    Returns
    -------
    Spectrum
        None of the smallest eigenvalues is missing, and the eigenvectors are in the
        canonical basis.

    Notes
    -----
    In the space of one (possibly repeated) eigenvalue, the first vector is the one with
    the largest single entry a unit vector of that space can have, positive there; the
    next likewise in what is left. Of equal entries, that of the state with the lowest
    number counts. A smaller k always gives the first columns of a larger one. Zero has
    one eigenvector per connected component.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> path = eo.graph(eo.maze("...."))
    >>> spectrum(path, operator="combinatorial").values.round(3).tolist()
    [0.0, 0.586, 2.0, 3.414]
    """
    progress = check_progress(progress)
    return compute_spectrum(
        GraphLaplacian(W, operator), k, gamma=gamma, rng=rng, progress=progress
    )


def compute_spectrum(
    laplacian: GraphLaplacian,
    k: int | None = None,
    *,
    gamma: float = 0.99,
    rng: Randomness = 0,
    progress: Progress | None = None,
) -> Spectrum:
    """Compute the spectrum of a Laplacian that was made before.

    Use it if k depends on the number of components, ``laplacian.n_zero``.

    Parameters
    ----------
    laplacian : GraphLaplacian
        The Laplacian of a graph.
    k, gamma, rng, progress
        As in `spectrum`.
    """
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    generator = make_generator(rng)
    n_states = len(laplacian.mass)
    if k is None:
        k = n_states
    k = check_int("k", k, maximum=n_states)
    # The eigenvectors, those of the iteration, half as many more of its basis, and
    # their residuals.
    n_bytes = 4.5 * 8 * n_states * k
    check_memory(f"{k:,} eigenvectors of {n_states:,} states", n_bytes, "ask for fewer")
    if laplacian.n_zero > 1:
        logger.warning(
            f"the graph has {laplacian.n_zero} components: "
            "no option leads from one to another"
        )

    # Eigenvalue zero: one vector per component.
    n_zero = min(k, laplacian.n_zero)
    values = np.zeros(k)
    vectors = np.zeros((n_states, k), order="F")
    states = np.flatnonzero(laplacian.component < n_zero)
    vectors[states, laplacian.component[states]] = laplacian.null_vector[states]

    # The other eigenvalues, smallest first.
    n_nonzero = k - n_zero
    if n_nonzero:
        eigenvalues, eigenvectors = find_smallest_eigenpairs(
            laplacian, n_nonzero, generator, progress
        )
        # The eigenvectors were corrected to rounding: they have no error to allow for.
        eigenvectors = compute_canonical_basis(
            eigenvalues, eigenvectors, laplacian.norm, relative_error=0.0
        )
        values[n_zero:] = np.maximum(eigenvalues[:n_nonzero], 0.0)
        vectors[:, n_zero:] = eigenvectors[:, :n_nonzero]
    if progress is not None:
        progress(1, 1)

    vectors = laplacian.convert_vectors(vectors)
    _check_residuals(laplacian, values, vectors)
    values = laplacian.convert_values(values, gamma)
    return Spectrum(values, set_readonly(vectors), laplacian.name, n_zero)


def _check_residuals(
    laplacian: GraphLaplacian, values: FloatArray, vectors: FloatArray
) -> None:
    """Raise ValueError unless the vectors are eigenvectors of the Laplacian."""
    residuals = laplacian.matrix @ vectors - vectors * values
    largest = np.linalg.norm(residuals, axis=0).max()
    limit = 1e-8 * laplacian.norm
    # Written so that nan is refused, too.
    if not largest <= limit:
        raise ValueError(
            "the weights range too widely for eigenvectors of this operator "
            f"(a residual is {largest:.1e}, the limit is {limit:.1e}): "
            'narrow that range, or use operator="normalized"'
        )
