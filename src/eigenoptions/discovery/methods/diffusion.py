"""Diffusion options: goals are where a random walk spreads slowest (Bar, Talmon and Meir, ICML 2020).

With the lazy walk ``P = (I + D^-1 W) / 2`` on the graph, its eigenvalues w_k and its right and left eigenvectors
phi_k and psi_k, the score of a state is ``f_t(s) = |sum over k >= 2 of w_k^t phi_k(s) psi_k|^2``: all of the spectrum,
the smooth part for large t. The sum is ``P^t(s, .) - pi``, so f_t(s) is the squared distance between where the walk
from s is after t steps and its stationary distribution pi. The local maxima of f_t are the goals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import check_int
from eigenoptions.discovery.method import (
    choose_goal_discount,
    discovery_method,
    take_first,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import find_local_maxima, make_goal_purposes


@discovery_method("diffusion", gamma=choose_goal_discount, n_options=None)
def choose_purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, t: int = 4
) -> list[Purpose]:
    """Indicators of the local maxima of f_t, largest first."""
    W = graph(mdp)
    goals = find_local_maxima(W, compute_diffusion_distances(W, t)).tolist()
    goals = take_first(
        n_options, goals, f"local maxima of f_t at t = {t}", "a smaller t has more"
    )
    return make_goal_purposes(mdp, goals)


def compute_diffusion_distances(W: csr_array, t: int) -> NDArray[np.float64]:
    """``(S,)`` the score f_t: squared distance of the lazy walk from its stationary distribution after t steps.

    >>> import eigenoptions as eo
    >>> compute_diffusion_distances(eo.graph(eo.maze("...")), 1).round(4).tolist()
    [0.125, 0.0, 0.125]
    """
    t = check_int("t", t, minimum=0)
    n = W.shape[0]
    degree = W.sum(axis=1)
    positive = np.where(degree > 0, degree, 1.0)
    P = csr_array(
        0.5
        * (
            eye_array(n)
            + diags_array(1.0 / positive) @ W
            + diags_array(1.0 * (degree == 0))
        )
    )
    P_t = csr_array(eye_array(n))
    for _ in range(t):
        P_t = csr_array(P_t @ P)
    # The stationary distribution of a state's own component.
    component = connected_components(W, directed=False)[1]
    pi = positive / np.bincount(component, positive)[component]
    square = np.bincount(component, pi**2)[component]
    distances: NDArray[np.float64] = (P_t * P_t).sum(axis=1) - 2.0 * (P_t @ pi) + square
    return distances
