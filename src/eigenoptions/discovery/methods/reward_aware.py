"""Reward-aware options: paths that avoid costly states.

Tse et al. (NeurIPS 2025). With rewards r and the uniformly random policy P, the default
representation is ``Z = (diag(exp(-r / temperature)) - P)^-1``. Its first eigenvector e
is positive, and the option of the purpose ``log e`` leaves costly states (their RACE).
``temperature log Z(s, g)`` is about the return of the best path from s to g. For
further options the extremes of the next eigenvectors are goals g, approached by the
purpose ``log Z(., g)``, which rises along cheap paths and has no maximum but g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.discovery.method import discovery_method, find_connected_states
from eigenoptions.mdp import MDP, graph, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    default_representation,
)


@discovery_method(
    "reward-aware", needs_rewards=True, candidates="extremes of eigenvectors"
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    rewards: ArrayLike | None = None,
    temperature: float = 1.3,
) -> list[Purpose]:
    """The logarithm of the first eigenvector, then ways to the extremes of the next.

    `rewards` is one negative number per state, received when it is left; None: those of
    the MDP. `temperature` weighs them: the higher, the less costs matter.
    """
    states = find_connected_states(mdp, graph(mdp), "reward-aware")
    costs = compute_state_rewards(mdp, rewards)
    Z = default_representation(uniform_walk(mdp), costs, temperature)
    symmetric = (Z + Z.T)[np.ix_(states, states)] / 2.0
    _, vectors = compute_smallest_eigenvectors(-symmetric, len(states))

    # Small entries of the first eigenvector are lost in rounding. Products of positive
    # numbers have no such error, so they bring them back.
    first = symmetric @ (symmetric @ np.abs(vectors[:, 0]))
    cheap = _make_log_potential(mdp, first, states, temperature)
    purposes = []
    if np.ptp(cheap) > 1e-9:
        purposes.append(Purpose(cheap, "cheap", index=1))

    n_goals = None if n_options is None else n_options - len(purposes)
    for goal in _find_extremes(vectors[:, 1:], states, n_goals):
        # The option starts only where a path leads to the goal.
        is_inside = reachable(mdp.transition, [goal], backward=True)
        inside = np.flatnonzero(is_inside)
        potential = _make_log_potential(mdp, Z[inside, goal], inside, temperature)
        purposes.append(Purpose(potential, goal=goal, initiation=is_inside))
    return purposes[:n_options]


def _find_extremes(
    vectors: FloatArray, states: IndexArray, n_goals: int | None
) -> list[int]:
    """The states where eigenvectors are highest and lowest, each once, at least n."""
    goals: dict[int, None] = {}
    for vector in vectors.T:
        if n_goals is not None and len(goals) >= n_goals:
            break
        goals[int(states[find_first_maximum(vector)])] = None
        goals[int(states[find_first_maximum(-vector)])] = None
    return list(goals)


def _make_log_potential(
    mdp: MDP, entries: FloatArray, states: IndexArray, temperature: float
) -> FloatArray:
    """``(S,)`` logarithms of entries at some states, elsewhere the smallest."""
    if not (entries > 0).all():
        raise ValueError(
            f"the default representation of {mdp!r} is too small for double precision "
            f"at temperature {temperature}: choose a higher temperature, or rewards "
            "closer to 0"
        )
    logarithms = np.log(entries)
    potential = np.full(mdp.n_states, logarithms.min())
    potential[states] = logarithms
    return potential


def compute_state_rewards(mdp: MDP, rewards: ArrayLike | None = None) -> FloatArray:
    """``(S,)`` the mean reward of leaving each state under the uniformly random policy.

    `rewards` are one per state, or one per state and action; None: those of the MDP.
    """
    if rewards is None and mdp.reward is None:
        raise ValueError(
            f"{mdp!r} has no rewards: make the MDP with reward=, one negative number "
            "per state, or give rewards="
        )
    given = mdp.reward if rewards is None else rewards
    r = np.asarray(given, dtype=np.float64)
    if r.size == mdp.n_states * mdp.n_actions:
        r = r.reshape(mdp.n_states, mdp.n_actions).mean(axis=1)

    # States that are never left, as ends of episodes, have no reward of their own: they
    # cost as little as any.
    if rewards is None:
        is_left = uniform_walk(mdp).diagonal() < 1.0
        if is_left.any():
            r = np.where(is_left, r, r[is_left].max())
    return r
