"""Diffusion time: the mean of hitting times over all pairs of states (paper, Section 4.2)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import count
from math import log

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import (
    Progress,
)
from eigenoptions.evaluation.hitting import HittingSystem, mean_over_pairs
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

_REMEDY = "use others, a smaller option_chance, or a stop_chance"


_TRAPPED = "these options trap the walk"


Chance = float | str | None


Array = NDArray[np.float64]


logger = logging.getLogger("eigenoptions")


def diffusion_time(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> float:
    """Mean expected number of primitive steps between two different states (Section 4.2, Appendix B).

    Parameters
    ----------
    mdp : MDP
        At most 4,000 states, each reachable from every other. From states that no action leaves, where episodes end,
        the next step leads to the start (without one, to any other state). States that cannot be reached from the
        start are left out, and logged.
    options : OptionSet, optional
        Options of this MDP; None for primitive actions only.
    option_chance : float in [0, 1) or "auto", optional
        Probability that a decision is for an option where one is available. None: uniform over the actions and the
        available options, as in the paper. ``"auto"``: this and the stop chance by `tune_exploration`.
    stop_chance : float in [0, 1], default 0
        Probability that an option also terminates after each of its steps.
    progress : callable, optional
        Called as ``progress(done, total)`` with numbers of goals; a minute can pass above 1,000 states.

    Returns
    -------
    float
        To a proved relative error of 1e-9; above 500 states and 1e6 steps the proof is weaker, 1e-2 at worst.
        OverflowError where it cannot be given: more than 1e12 steps. ValueError where it is infinite.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> options = eo.discover(mdp, n_options=64)
    >>> round(diffusion_time(mdp), 3), round(diffusion_time(mdp, options), 1)
    (620.769, 218.4)
    """
    walk = HittingSystem(mdp, options, option_chance, stop_chance)
    return mean_over_pairs(walk.solve(walk.option_chance, progress=progress))


def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> Array:
    """Diffusion times ``(n + 1,)`` without options, with the first, the first two and so on (Section 4.2, Figure 6).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`; where that raises OverflowError, the time is inf.
    progress : callable, optional
        Called as ``progress(done, total)`` with numbers of diffusion times.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> ends = [eo.Purpose(np.eye(5)[s], f"to {s}") for s in (0, 4)]
    >>> diffusion_curve(mdp, eo.solve(mdp, ends)).round(1).tolist()
    [20.0, 37.1, 5.8]
    """
    walk = HittingSystem(mdp, options, option_chance, stop_chance)
    times = np.empty(len(walk.policy) + 1)
    for n in range(len(times)):
        times[n] = walk.compute_mean(walk.option_chance, n)
        if progress is not None:
            progress(n + 1, len(times))
    return times


@dataclass(frozen=True)
class BestChance:
    """The option `chance` with the smallest `diffusion_time`; see `best_option_chance`.

    Beside them are the diffusion times of primitive actions only (chance 0) and of the paper's uniform choice; inf
    where the options trap the walk.
    """

    chance: float
    diffusion_time: float
    primitive_diffusion_time: float
    uniform_diffusion_time: float


def best_option_chance(
    mdp: MDP,
    options: OptionSet,
    *,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> BestChance:
    """The option chance with which a random walk has the smallest diffusion time (Section 4.2).

    Parameters
    ----------
    mdp, options, stop_chance
        As in `diffusion_time`.
    progress : callable, optional
        Called as ``progress(done, total)`` with diffusion times computed and at most to compute.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> best = best_option_chance(mdp, eo.discover(mdp, n_options=4))
    >>> round(best.chance, 2), round(best.diffusion_time, 1), round(best.uniform_diffusion_time)
    (0.05, 267.7, 13525)
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import expit

    walk = HittingSystem(mdp, options, None, stop_chance)
    if not len(walk.policy):
        raise ValueError(
            "there are no options, so no option chance: discover at least one"
        )
    grid, counter, limit = [-10.0, -7.0, -4.5, -2.0, 0.5, 4.5], count(1), 20

    def compute(log_odds: float) -> float:
        """The logarithm of the diffusion time, a smooth function of the log-odds of the chance."""
        mean = mean_over_pairs(walk.solve(float(expit(log_odds)), prove=False))
        if progress is not None:
            progress(next(counter), len(grid) + limit + 1)
        return log(mean) if 0 < mean < 1e300 else 1e3

    best = int(np.argmin([compute(x) for x in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    settings = {"xatol": 0.01, "maxiter": limit}
    chance = float(
        expit(
            minimize_scalar(
                compute, bounds=bounds, method="bounded", options=settings
            ).x
        )
    )
    time, uniform, primitive = (
        walk.compute_mean(chance),
        walk.compute_mean(None),
        walk.compute_mean(None, 0),
    )
    if progress is not None:
        progress(len(grid) + limit + 1, len(grid) + limit + 1)
    return BestChance(
        chance if time < primitive else 0.0, min(time, primitive), primitive, uniform
    )
