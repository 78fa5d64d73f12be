"""The policy that leads to a goal: its moves, and what each of them is worth."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions.mdp import MDP


class GoalPolicy:
    """What to do in each state of a table on the way to a goal.

    Parameters
    ----------
    mdp : MDP
        The table.
    moves : ndarray of int of shape (S,)
        The move in each state, or TERMINATE.
    arrival : ndarray of shape (S,)
        What it is worth to arrive in each state.
    value : ndarray of shape (S,)
        What each state is worth: higher is nearer to the goal.
    blocked : set of (state, move), optional
        Moves that did not work in this episode, and are not to be taken again.

    Attributes
    ----------
    moves : list of int
        As above; a list is faster to look up.
    """

    def __init__(
        self,
        mdp: MDP,
        moves: IntegerArray,
        arrival: FloatArray,
        value: FloatArray,
        blocked: Set[tuple[int, int]] = frozenset(),
    ) -> None:
        self.moves: list[int] = moves.tolist()
        self.value = value
        self._blocked = blocked
        self._mdp = mdp
        self._arrival = arrival

    def rank_moves(self, state: int) -> list[int]:
        """Moves of a state that are not blocked, the best one first.

        Near ties are ties. A blocked move only stays put, which would look better than
        a move away from the goal, so it has to be left out.
        """
        n_moves = self._mdp.n_actions
        first_row = state * n_moves
        rows = self._mdp.transition[first_row : first_row + n_moves]
        ranked = rank(rows @ self._arrival)
        return [move for move in ranked if (state, move) not in self._blocked]


def rank(scores: FloatArray) -> list[int]:
    """Numbers of the scores, the largest first; of near ties the first."""
    left = list(range(len(scores)))
    ranked = []
    while left:
        best = int(find_first_maximum(scores[left]))
        ranked.append(left.pop(best))
    return ranked


def find_most_likely(
    mdp: MDP, policy: GoalPolicy, state: int, goal: int
) -> list[int] | None:
    """States on the most likely path to a goal; None if the policy does not arrive."""
    path = [state]
    visited = {state}
    while path[-1] != goal:
        here = path[-1]
        if policy.moves[here] < 0:
            return None
        row = mdp.transition[[here * mdp.n_actions + policy.moves[here]]]
        leads = np.zeros(len(row.indices), dtype=np.bool_)
        for i, to in enumerate(row.indices.tolist()):
            goes_on = policy.moves[to] >= 0 and to not in visited
            leads[i] = to == goal or goes_on
        if not leads.any():
            return None
        chances = np.where(leads, row.data, 0.0)
        following = int(row.indices[find_first_maximum(chances)])
        path.append(following)
        visited.add(following)
    return path
