"""Diffusion options: goals are where a random walk spreads slowest.

Bar, Talmon and Meir (ICML 2020). With the lazy walk ``P = (I + D^-1 W) / 2`` on the
graph, its eigenvalues w_k and its right and left eigenvectors phi_k and psi_k, the
score of a state is ``f_t(s) = |sum over k >= 2 of w_k^t phi_k(s) psi_k|^2``: all of the
spectrum, the smooth part for large t. The sum is ``P^t(s, .) - pi``, so f_t(s) is the
squared distance between where the walk from s is after t steps and its stationary
distribution pi. The local maxima of f_t are the goals.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._types import FloatArray, Progress
from eigenoptions._validation import check_int, check_memory
from eigenoptions.discovery.method import choose_goal_discount, discovery_method
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import find_local_maxima, make_goal_purposes


@discovery_method(
    "diffusion",
    gamma=choose_goal_discount,
    n_options=None,
    candidates="states where a random walk spreads slowest",
    remedy='method="random" has more',
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    t: int = 4,
    progress: Progress | None = None,
) -> list[Purpose]:
    """Indicators of the local maxima of f_t, largest first."""
    W = graph(mdp)
    maxima = find_local_maxima(W, compute_diffusion_distances(W, t, progress))
    return make_goal_purposes(mdp, maxima[:n_options].tolist())


def compute_diffusion_distances(
    W: csr_array, t: int, progress: Progress | None = None
) -> FloatArray:
    """``(S,)`` the score f_t: how far the lazy walk is from stationary after t steps.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> compute_diffusion_distances(eo.graph(eo.maze("...")), 1).round(4).tolist()
    [0.125, 0.0, 0.125]
    """
    t = check_int("t", t, minimum=0)
    n = W.shape[0]
    degree = W.sum(axis=1)
    positive_degree = np.where(degree > 0, degree, 1.0)

    # The lazy walk, in which an isolated state stays.
    moves = diags_array(1.0 / positive_degree) @ W
    stays = diags_array(1.0 * (degree == 0))
    P = csr_array(0.5 * (eye_array(n) + moves + stays))
    P_t = csr_array(eye_array(n))
    n_successors = np.diff(P.indptr)
    for step in range(1, t + 1):
        n_entries = min(int(n_successors[P_t.indices].sum()), n * n)
        check_memory(
            f"walks of {step} steps from {n:,} states",
            24 * n_entries,
            "take a smaller t",
        )
        P_t = csr_array(P_t @ P)
        if progress is not None:
            progress(step, t)

    # The stationary distribution of a state's own component.
    component = connected_components(W, directed=False)[1]
    total_degree = np.bincount(component, positive_degree)[component]
    pi = positive_degree / total_degree

    # |P^t(s, .) - pi|^2 = |P^t(s, .)|^2 - 2 P^t(s, .) pi + |pi|^2
    norm_of_pi = np.bincount(component, pi**2)[component]
    norm_of_walk = (P_t * P_t).sum(axis=1)
    distances: FloatArray = norm_of_walk - 2.0 * (P_t @ pi) + norm_of_pi
    return distances
