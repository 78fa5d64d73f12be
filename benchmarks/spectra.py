"""Eigenvectors against the best SciPy call for the same number of them: ``python benchmarks/spectra.py``.

The rival is the faster one of dense ``eigh`` and ``eigsh`` on a symmetric SuperLU factor. It does not prove that
nothing was missed, has no canonical basis and refines nothing; ours does all three.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import record
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, eigsh, splu

import eigenoptions as eo
from eigenoptions.mdp import maps

K = 32
SIDES = (1, 3) if record.QUICK else (1, 3, 10, 31)
DENSE_UP_TO = 500


def rival(W: csr_array) -> Any:
    """The best SciPy call at this size."""
    L = eo.laplacian(W)
    n = L.shape[0]
    if n <= DENSE_UP_TO:
        return np.linalg.eigh(L.toarray())[0][:K]
    shift = 1.0 / n**2
    symmetric = {"SymmetricMode": True}
    A = csc_array(L + shift * eye_array(n))
    factor = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
    inverse = LinearOperator((n, n), factor.solve, dtype=np.float64)
    return np.sort(eigsh(L, K, sigma=-shift, OPinv=inverse)[0])


def main() -> int:
    for side in SIDES:
        W = eo.graph(eo.maze(maps.rooms_map(side, side)))
        n = W.shape[0]
        repeat = 5 if n < 20_000 else 2
        eo.spectrum(W, K)
        ours, spectrum = record.seconds(lambda W=W: eo.spectrum(W, K), repeat)
        theirs, values = record.seconds(lambda W=W: rival(W), repeat)
        record.agree(
            f"eigenvalues, rooms, {n:,} states", float(np.abs(values - spectrum.values).max()), 1e-11
        )
        record.row(f"spectrum k={K}, rooms, {n:,} states", ours, theirs, "SciPy's best call")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
