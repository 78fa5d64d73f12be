"""VAMP-2 scores: how much of the future the functions in a span predict.

The score is the sum of the squared autocorrelations of the best functions in the span
(Mardt et al., 2018). With the centred outputs z and z' of pairs,
``C = (zz + z'z') / 2`` and ``R = sym(z z')``, it is ``||C^-1/2 R C^-1/2||^2``: the
reversible form (Wu and Noe; Chen, Sidky and Ferguson, 2019), which does not depend on
the basis of the span.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.deep.backend import Tensor, torch
from eigenoptions.samples.incidence import find_principal_axes


def compute_objective(before: Tensor, after: Tensor) -> Tensor:
    """Compute the score of outputs ``(N, q)`` of pairs, to be maximised in training."""
    x = before.double()
    y = after.double()
    mean = 0.5 * (x.mean(dim=0) + y.mean(dim=0))
    x = x - mean
    y = y - mean

    n = len(x)
    cross = x.T @ y / n
    C = (x.T @ x + y.T @ y) / (2 * n)
    R = 0.5 * (cross + cross.T)

    # A small share of the mean variance keeps the first steps regular.
    q = len(C)
    ridge = 1e-6 * torch.trace(C).detach() / q + 1e-12
    L = torch.linalg.cholesky(C + ridge * torch.eye(q, dtype=C.dtype))
    M = torch.linalg.solve_triangular(L, R, upper=False)
    M = torch.linalg.solve_triangular(L, M.T, upper=False)
    return torch.sum(M * M)


def compute_score(C: FloatArray, R: FloatArray) -> float:
    """Compute the score of a span from its covariance C and that in time, R."""
    # A function that is zero everywhere has no autocorrelation.
    M = np.linalg.solve(C + 1e-9 * np.eye(len(C)), R)
    return float(np.trace(M @ M))


def compute_held_out_score(
    training_outputs: FloatArray, held_out_outputs: FloatArray, k: int
) -> float:
    """Compute the score of the k slowest functions on outputs they were not fitted to.

    Parameters
    ----------
    training_outputs, held_out_outputs : array (2 n, q)
        Outputs of the first observations of n pairs, then those of the second ones.
    k : int
        Number of functions.
    """
    mean = training_outputs.mean(axis=0)
    C, R = _compute_covariances(training_outputs - mean)
    C_held_out, R_held_out = _compute_covariances(held_out_outputs - mean)

    variances, axes = find_principal_axes(C)
    whitening = axes / np.sqrt(variances)
    _, rotation = np.linalg.eigh(whitening.T @ R @ whitening)
    slowest = rotation[:, ::-1][:, :k]
    S = whitening @ slowest
    return compute_score(S.T @ C_held_out @ S, S.T @ R_held_out @ S)


def _compute_covariances(outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariance and symmetric covariance in time of centred outputs ``(2 n, q)``."""
    f, g = np.split(outputs, 2)
    n = len(f)
    C = (f.T @ f + g.T @ g) / (2 * n)
    R = (f.T @ g + g.T @ f) / (2 * n)
    return C, R
