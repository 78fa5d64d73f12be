"""Options to random states, the paper's baseline (Appendix D)."""

from __future__ import annotations

import numpy as np

from eigenoptions.discovery.method import (
    choose_goal_discount,
    count_states,
    discovery_method,
)
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import make_goal_purposes


@discovery_method(
    "random",
    gamma=choose_goal_discount,
    candidates="states",
    count_purposes=count_states,
)
def choose_purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator
) -> list[Purpose]:
    """Indicators of states drawn without replacement (Appendix D)."""
    states = rng.permutation(mdp.n_states)
    return make_goal_purposes(mdp, states[:n_options].tolist())
