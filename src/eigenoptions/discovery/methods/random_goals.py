"""Options to random states, the paper's baseline (Appendix D)."""

from __future__ import annotations

import numpy as np

from eigenoptions.discovery.method import (
    choose_goal_discount,
    discovery_method,
    take_first,
)
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import make_goal_purposes


@discovery_method("random", gamma=choose_goal_discount)
def choose_purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator
) -> list[Purpose]:
    """Indicators of states drawn without replacement (Appendix D)."""
    goals = rng.permutation(mdp.n_states).tolist()
    return make_goal_purposes(mdp, take_first(n_options, goals, "states"))
