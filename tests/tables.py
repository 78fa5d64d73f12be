"""Tables, transitions and options that tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import MDP, OptionSet, Transitions


def make_slippery(mdp: MDP, slip: float = 0.2) -> MDP:
    """The same moves, which go astray to either side with probability `slip`."""
    S = mdp.n_states
    A = mdp.n_actions
    P = mdp.transition.toarray().reshape(S, A, S)
    astray = (np.roll(P, 1, axis=1) + np.roll(P, -1, axis=1)) / 2
    return MDP(
        (1 - slip) * P + slip * astray,
        coords=mdp.coords,
        start=mdp.start,
        goal=mdp.goal,
    )


def list_transitions(mdp: MDP) -> Transitions:
    """Every state and action of a deterministic table once."""
    state, action = np.indices(mdp.successors.shape).reshape(2, -1)  # type: ignore[union-attr]
    return Transitions(
        state, action, mdp.successors.ravel(), np.zeros(len(state), dtype=bool)
    )  # type: ignore[union-attr]


def make_options(policy: Any, n_actions: int, **fields: Any) -> OptionSet:
    """Options with this policy ``(n, S)`` whose table is unknown.

    They fit every table of the same size.
    """
    rows = np.asarray(policy)
    stay = np.repeat(np.arange(rows.shape[1])[:, None], n_actions, axis=1)
    mdp = MDP.from_successors(stay, is_estimated=True)
    return OptionSet(mdp, rows, **fields)


def agree(first: OptionSet, second: OptionSet) -> bool:
    """Whether two ways compute the same options of the same dynamics.

    The policies are equal, and numbers are so up to rounding.
    """
    return (
        np.array_equal(first.policy, second.policy)
        and np.allclose(first.value, second.value, rtol=0, atol=1e-9)
        and np.allclose(first.eigenvalues, second.eigenvalues, equal_nan=True)
        and first.labels == second.labels
        and first.mdp.fingerprint == second.mdp.fingerprint
    )


def same(first: OptionSet, second: OptionSet) -> bool:
    """Whether two sets hold the same options of the same dynamics, to the last bit."""
    return all(
        a == b
        for a, b in (
            (first.policy.tobytes(), second.policy.tobytes()),
            (first.policy.dtype, second.policy.dtype),
            (first.value.tobytes(), second.value.tobytes()),
            (first.eigenvalues.tobytes(), second.eigenvalues.tobytes()),
            (first.labels, second.labels),
            (first.mdp.fingerprint, second.mdp.fingerprint),
        )
    )
