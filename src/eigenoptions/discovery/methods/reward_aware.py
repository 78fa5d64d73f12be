"""Reward-aware options: paths that avoid costly states, by the default representation (Tse et al., NeurIPS 2025).

With rewards r and the uniformly random policy P, the default representation is
``Z = (diag(exp(-r / temperature)) - P)^-1``. Its first eigenvector e is positive, and the option of the purpose
``log e`` leaves costly states (their RACE). ``temperature log Z(s, g)`` is about the return of the best path from s to
g. For further options the extremes of the next eigenvectors are goals g, approached by the purpose ``log Z(., g)``,
which rises along cheap paths and has no maximum but g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.discovery.goals import connected, enough, highest
from eigenoptions.discovery.methods import Method
from eigenoptions.mdp import MDP, graph, reachable
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import default_representation, smallest_eigenvectors, uniform_walk

# Error of a logarithm of an entry of Z.
LOG_ERROR = 1e-12

Array = NDArray[np.float64]


def purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    rewards: ArrayLike | None = None,
    temperature: float = 1.3,
) -> list[Purpose]:
    """The logarithm of the first eigenvector, then those of Z toward the extremes of the next ones.

    `rewards` is one negative number per state, received when it is left; None: those of the MDP. `temperature` weighs
    them: the higher, the less costs matter.
    """
    states = connected(mdp, graph(mdp), METHOD.name)
    Z = default_representation(uniform_walk(mdp), rewards_per_state(mdp, rewards), temperature)
    symmetric = (Z + Z.T)[np.ix_(states, states)] / 2.0
    _, vectors = smallest_eigenvectors(-symmetric, len(states))
    # Its small entries are lost in rounding. Products of positive numbers have no such error, so they bring them back.
    first = symmetric @ (symmetric @ np.abs(vectors[:, 0]))
    _check_range(mdp, first, temperature)
    cheap = np.full(mdp.n_states, np.log(first).min())
    cheap[states] = np.log(first)
    found = [Purpose(cheap, "cheap", index=1)] if np.ptp(cheap) > 1e-9 else []
    goals: dict[int, None] = {}
    for vector in vectors.T[1:]:
        if n_options is not None and len(found) + len(goals) >= n_options:
            break
        goals |= dict.fromkeys((int(states[highest(vector)]), int(states[highest(-vector)])))
    found += [_toward(mdp, Z[:, g], g, temperature) for g in goals]
    return enough(n_options, found, "extremes of eigenvectors")


def _toward(mdp: MDP, column: Array, goal: int, temperature: float) -> Purpose:
    """The logarithm of a column of Z; its option starts only where a path leads to the goal."""
    inside = reachable(mdp.transition, [goal], backward=True)
    _check_range(mdp, column[inside], temperature)
    potential = np.full(len(column), np.log(column[inside]).min())
    potential[inside] = np.log(column[inside])
    return Purpose(potential, goal=goal, initiation=inside)


def _check_range(mdp: MDP, entries: Array, temperature: float) -> None:
    if not (entries > 0).all():
        raise ValueError(
            f"the default representation of {mdp!r} is too small for double precision at temperature {temperature}: "
            "choose a higher temperature, or rewards closer to 0"
        )


def rewards_per_state(mdp: MDP, rewards: ArrayLike | None = None) -> Array:
    """``(S,)`` the mean reward of leaving each state under the uniformly random policy; None: those of the MDP."""
    if rewards is None and mdp.reward is None:
        raise ValueError(
            f"the default representation needs rewards, but {mdp!r} has none: make the MDP with reward=, one negative "
            f"number per state (method {METHOD.name!r} also takes them as rewards=)"
        )
    r = np.asarray(mdp.reward if rewards is None else rewards, dtype=np.float64)
    if r.size == mdp.n_states * mdp.n_actions:
        r = r.reshape(mdp.n_states, mdp.n_actions).mean(axis=1)
    if rewards is None:
        # States that are never left, as ends of episodes, have no reward of their own: they cost as little as any.
        left = uniform_walk(mdp).diagonal() < 1.0
        if left.any():
            r = np.where(left, r, r[left].max())
    return r


METHOD = Method(
    "reward-aware",
    purposes=purposes,
    max_states=4_000,
    needs_rewards=True,
    summary="paths to distant states that avoid costly states; needs rewards",
)
