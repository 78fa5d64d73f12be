"""Options to random states, the paper's baseline (Appendix D)."""

from __future__ import annotations

import numpy as np

from eigenoptions.discovery.goals import goal_purposes
from eigenoptions.discovery.methods import Method, far_sighted
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose


def purposes(mdp: MDP, n_options: int | None, rng: np.random.Generator) -> list[Purpose]:
    """Indicators of states drawn without replacement (Appendix D)."""
    n = mdp.n_states
    if n_options is not None and n_options > n:
        raise ValueError(f"n_options must be in 1..{n} for {n} states, got {n_options}")
    return goal_purposes(mdp, rng.permutation(n)[:n_options])


METHOD = Method(
    "random",
    purposes=purposes,
    gamma=far_sighted,
    summary="shortest paths to random states",
)
