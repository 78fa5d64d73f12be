"""Potentials of goals: how far every state is, by a random walk or by moves.

Greedy descent arrives from everywhere only if a potential has no local minimum. The
default representation ``Z = (exp(1 / temperature) I - P)^-1`` of a random walk P sums
over all paths, at a price for each move. Beside the goal ``Z(s, g)`` is the mean over
the walk's next states, divided by a number above 1, so one of them has more: ``-log Z``
has no local minimum. The study of OGBench compares other distances (docs/planner.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_real
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import stay_at_end, uniform_walk

POTENTIALS = ("log-z", "shortest")

# From a table and the number of a goal to one number per state.
PotentialFunction = Callable[[MDP, int], ArrayLike]

# Below this, entries of Z are too close to the end of the floating point range.
_SMALLEST = 1e-250


class Potentials:
    """The potentials of all goals of a table.

    Parameters
    ----------
    mdp : MDP
        The table.
    kind : str or callable
        One of `POTENTIALS`, or a function of the table and the number of a goal.
    temperature : float
        Of the default representation: a move costs ``1 / temperature``.
    """

    def __init__(
        self, mdp: MDP, kind: str | PotentialFunction, temperature: float
    ) -> None:
        self._n_additional = mdp.n_additional
        # A walk that ended could go nowhere any more: this one stays instead.
        mdp = stay_at_end(mdp)
        self._mdp = mdp
        self._kind = kind
        self._temperature = temperature
        # The random walk (S, S) that takes every action equally often.
        self._walk = uniform_walk(mdp)
        self._known: dict[int, FloatArray] = {}

    def find(self, goal: int) -> FloatArray:
        """One number per state: 0 at the goal, less far away, -inf without a way."""
        if goal not in self._known:
            # No way leads on from the end of an episode.
            ends = np.full(self._n_additional, -np.inf)
            self._known[goal] = np.append(self._compute(goal), ends)
        return self._known[goal]

    def _compute(self, goal: int) -> FloatArray:
        backward = csr_array(self._walk.T)
        moves = np.asarray(dijkstra(backward, indices=goal, unweighted=True))
        if callable(self._kind):
            value = self._call(self._kind, goal)
        elif self._kind == "log-z":
            value = self._compute_log_z(goal, moves)
        else:
            value = -moves
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

    def _call(self, function: PotentialFunction, goal: int) -> FloatArray:
        """Return what a function of the user says of all states."""
        n_states = self._mdp.n_states
        value = np.asarray(check_real("potential", function(self._mdp, goal)), float)
        if value.shape != (n_states,) or np.isnan(value).any():
            raise ValueError(
                f"potential(mdp, goal) must return {n_states} numbers, not NaN, one "
                f"per state, got shape {value.shape}"
            )
        return value

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
