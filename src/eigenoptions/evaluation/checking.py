"""What is asked of a walk before it is measured: all states reach each other, and every option ends (Appendix B)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet


def policy_of(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Policies ``(k, S)`` of options that end, on an MDP where every state can be reached from every other."""
    if not isinstance(mdp, MDP):
        raise TypeError(
            f"diffusion time is that of an MDP, got {type(mdp).__name__}: make one with maze(...)"
        )
    n = mdp.n_states
    if n < 2:
        raise ValueError("diffusion time is between different states, but this MDP has 1 state")
    if options is None:
        policy = np.empty((0, n), dtype=np.int32)
    elif isinstance(options, OptionSet):
        options.check(mdp)
        policy = np.ascontiguousarray(options.policy, dtype=np.int32)
    else:
        raise TypeError(f"options must be an OptionSet or None, got {type(options).__name__}")
    for backward, what in ((False, "cannot be reached from state 0"), (True, "cannot reach state 0")):
        lost = np.flatnonzero(~reachable(mdp.transition, [0], backward=backward))
        if len(lost):
            raise ValueError(
                f"the diffusion time is infinite: {some(lost)} {what}; "
                "keep only states that can all reach each other"
            )
    for o, row in enumerate(policy):
        lost = endless(mdp, row)
        if len(lost) and options is not None:
            raise ValueError(
                f"option {options.labels[o]!r} never ends from {some(lost)}, so the walk may never reach a goal; "
                "give it a state where it stops (-1)"
            )
    return policy


def endless(mdp: MDP, row: NDArray[np.int32]) -> NDArray[np.intp]:
    """States from which an option cannot reach an end."""
    from eigenoptions._kernels.planning import run

    n = mdp.n_states
    if mdp.successors is not None:
        length = np.empty(n, dtype=np.int32)
        if run(mdp.successors, row, length, np.empty_like(length)) < 0:
            return np.empty(0, dtype=np.intp)
    followed = mdp.transition[np.arange(n) * mdp.n_actions + np.maximum(row, 0)]
    return np.flatnonzero(~reachable(followed, row < 0, backward=True))


def some(states: NDArray[Any]) -> str:
    """How many states, and the first few."""
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def whole(value: object, least: int, what: str) -> None:
    """Raise ValueError for what is no whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{what} must be a whole number from {least}, got {value!r}")
