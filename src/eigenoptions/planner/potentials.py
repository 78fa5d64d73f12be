"""Potentials of goals: how far every state is, by a random walk or by moves.

Greedy descent arrives from everywhere only if a potential has no local minimum. The
default representation ``Z = (exp(1 / temperature) I - P)^-1`` of a random walk P sums
over all paths, at a price for each move. Beside the goal ``Z(s, g)`` is the mean over
the walk's next states, divided by a number above 1, so one of them has more: ``-log Z``
has no local minimum. Half of the commute time is the time back, which may fall where
the way grows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu

from eigenoptions._types import FloatArray
from eigenoptions.mdp import MDP, graph, reachable
from eigenoptions.mdp.chains import uniform_walk

POTENTIALS = ("log-z", "hitting", "shortest", "commute")

# Below this, entries of Z are too close to the end of the floating point range.
_SMALLEST = 1e-250


class Potentials:
    """The potentials of all goals of a table.

    Parameters
    ----------
    mdp : MDP
        The table.
    kind : str
        One of `POTENTIALS`.
    temperature : float
        Of the default representation: a move costs ``1 / temperature``.
    """

    def __init__(self, mdp: MDP, kind: str, temperature: float) -> None:
        self._mdp = mdp
        self._kind = kind
        self._temperature = temperature
        # The random walk (S, S) that takes every action equally often.
        self._walk = uniform_walk(mdp)
        self._known: dict[int, FloatArray] = {}

    def find(self, goal: int) -> FloatArray:
        """One number per state: 0 at the goal, less far away, -inf without a way."""
        if goal not in self._known:
            self._known[goal] = self._compute(goal)
        return self._known[goal]

    def _compute(self, goal: int) -> FloatArray:
        backward = csr_array(self._walk.T)
        moves = np.asarray(dijkstra(backward, indices=goal, unweighted=True))
        if self._kind == "log-z":
            value = self._compute_log_z(goal, moves)
        elif self._kind == "hitting":
            value = self._compute_hitting(goal, moves)
        elif self._kind == "shortest":
            value = -moves
        else:
            value = self._compute_commute(goal)
        return np.asarray(np.where(np.isfinite(moves), value, -np.inf))

    def _compute_log_z(self, goal: int, moves: FloatArray) -> FloatArray:
        """The logarithm of Z, relative to that of the goal."""
        is_goal = np.arange(self._mdp.n_states) == goal
        z = self._factors.solve(is_goal.astype(np.float64))
        with np.errstate(divide="ignore"):
            value: FloatArray = np.log(z / z[goal])

        is_far = (z < _SMALLEST) & np.isfinite(moves)
        if is_far.any():
            # Beyond the range of floating point numbers every move costs what it costs
            # on the average before.
            is_near = z >= _SMALLEST
            lowest = value[is_near].min()
            price = -lowest / moves[is_near].max()
            extra_moves = 1 + moves[is_far] - moves[is_far].min()
            value[is_far] = lowest - price * extra_moves
        return value

    def _compute_hitting(self, goal: int, moves: FloatArray) -> FloatArray:
        """Minus the mean time of the walk to the goal; -inf where it may be lost."""
        states = np.arange(self._mdp.n_states)
        is_endless = reachable(self._walk, np.isinf(moves), backward=True)
        inner = np.flatnonzero(~is_endless & (states != goal))
        value = np.where(states == goal, 0.0, -np.inf)
        system = csc_array(eye_array(len(inner)) - self._walk[inner][:, inner])
        value[inner] = -splu(system).solve(np.ones(len(inner)))
        return value

    def _compute_commute(self, goal: int) -> FloatArray:
        """Minus the mean time of the walk to the goal and back."""
        inverse, volume = self._laplacian_inverse
        resistance = np.diag(inverse) + inverse[goal, goal] - 2.0 * inverse[goal]
        return np.asarray(-volume * resistance)

    @cached_property
    def _factors(self) -> Any:
        price = np.exp(1.0 / self._temperature)
        system = csc_array(eye_array(self._mdp.n_states) * price - self._walk)
        # With diagonal pivots nothing is subtracted from positive numbers: the smallest
        # entries of Z are accurate too.
        settings: Any = {
            "permc_spec": "MMD_AT_PLUS_A",
            "options": {"SymmetricMode": True},
        }
        return splu(system, diag_pivot_thresh=0.0, **settings)

    @cached_property
    def _laplacian_inverse(self) -> tuple[FloatArray, float]:
        """The inverse of the Laplacian, and the sum of all degrees.

        The Laplacian is singular: a constant is added in each component.
        """
        n_states = self._mdp.n_states
        if n_states > 8_000:
            # Half a minute of work, and 2.6 GB for five matrices.
            raise ValueError(
                f"potential='commute' inverts a full matrix, at most 8,000 states, "
                f"got {n_states:,}: take 'hitting'"
            )
        W = graph(self._mdp).toarray()
        degree = W.sum(axis=1)
        component = connected_components(W)[1]
        is_joined = component == component[:, None]
        laplacian = np.diag(degree) - W
        inverse = np.linalg.inv(laplacian + is_joined / is_joined.sum(axis=1))
        return inverse, float(degree.sum())
