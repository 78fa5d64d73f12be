"""Options to random states, the paper's baseline (Appendix D)."""

from __future__ import annotations

import numpy as np

from eigenoptions.discovery.goals import first_n_or_raise, goal_purposes
from eigenoptions.discovery.methods import discovery_method, near_one_discount
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose


@discovery_method("random", gamma=near_one_discount)
def choose_purposes(mdp: MDP, n_options: int | None, rng: np.random.Generator) -> list[Purpose]:
    """Indicators of states drawn without replacement (Appendix D)."""
    goals = rng.permutation(mdp.n_states).tolist()
    return goal_purposes(mdp, first_n_or_raise(n_options, goals, "states"))
