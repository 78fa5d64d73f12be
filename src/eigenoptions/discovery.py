"""`discover`: from a source of dynamics to options, every method in one place."""

from __future__ import annotations

import logging
from typing import Any

from eigenoptions.mdp import MDP, graph
from eigenoptions.options import OptionSet, eigenpurposes, solve
from eigenoptions.spectra import spectrum

log = logging.getLogger("eigenoptions")


def discover(mdp: MDP, n_options: int, method: str = "eigen", *, gamma: float = 0.9, operator: str = "normalized", rng: Any = 0) -> OptionSet:
    """Temporary."""
    W = graph(mdp)
    sp = spectrum(W, k=(n_options + 1) // 2 + 1, operator=operator)
    return solve(mdp, eigenpurposes(sp)[:n_options], gamma, provenance={"method": method, "operator": operator})
