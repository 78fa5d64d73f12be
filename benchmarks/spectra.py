"""Eigenvectors against the best SciPy call for the same number of them: ``python benchmarks/spectra.py``.

The rival is the faster one of dense ``eigh`` and ``eigsh`` on a symmetric SuperLU factor, each with the quickest way to
the Laplacian. It does not prove that nothing was missed, has no canonical basis and refines nothing; ours does all
three.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import record
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import LinearOperator, eigsh, splu

import eigenoptions as eo
from eigenoptions.mdp import maps

K = 32
# Rooms per side, and how often each way is timed.
SIDES = {1: 20, 3: 5} if record.QUICK else {1: 1000, 2: 200, 3: 100, 10: 8, 31: 3}
# States up to which dense `eigh` is the faster one.
DENSE_UP_TO = 150


def rival(W: csr_array) -> Any:
    """The best SciPy call at this size."""
    n = W.shape[0]
    if n <= DENSE_UP_TO:
        A = W.toarray()
        root = 1.0 / np.sqrt(A.sum(axis=0))
        A *= -root
        A *= root[:, None]
        A.flat[:: n + 1] += 1.0
        values, vectors = np.linalg.eigh(A)
        return values[:K], vectors[:, :K]
    L, shift = laplacian(W, normed=True), 0.1 / n**2
    symmetric = {"SymmetricMode": True}
    A = csc_array(L + shift * eye_array(n))
    factor = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
    inverse = LinearOperator((n, n), factor.solve, dtype=np.float64)
    return eigsh(L, K, sigma=-shift, OPinv=inverse)


def main() -> int:
    plans = [("rooms", maps.rooms_map(side, side), rounds) for side, rounds in SIDES.items()]
    if not record.QUICK:
        plans.append(("perfect maze", maps.perfect_map(224, 224), 3))
    for name, text, rounds in plans:
        W = eo.graph(eo.maze(text))
        name = f"{name}, {W.shape[0]:,} states"
        gap = float(np.abs(np.sort(rival(W)[0]) - eo.spectrum(W, K).values).max())
        record.agree(f"eigenvalues, {name}", gap, 1e-11)
        ours, theirs = record.race(lambda W=W: eo.spectrum(W, K), lambda W=W: rival(W), rounds)
        ratio = record.row(f"spectrum k={K}, {name}", ours, theirs, "SciPy's best call")
        if not record.QUICK:
            record.aim(f"spectrum k={K}, {name}, against SciPy's best call", ratio, least=1.0)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
