"""Diffusion time: expected steps of a random walk over actions and options (paper, Section 4.2, Appendix B).

For a goal g the expected steps h obey h(g) = 0 and, elsewhere, h(s) = mean over the choices at s (primitive actions,
and the options that may start there) of their steps plus h where they end; an option that touches g stops there.
Diffusion time is the mean of h over all ordered pairs of different states.

The paper's mean is uniform. With `option_chance` c it is c times the mean over the options that may start plus 1 - c
times that over the primitive actions; `best_option_chance` finds the c with the least diffusion time. Answers are
exact (`exact`); state spaces too large for that are sampled (`estimate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from eigenoptions.evaluation.estimate import Estimate, diffusion_estimate
from eigenoptions.evaluation.exact import Array, Progress, Walk, counter, mapped
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

__all__ = [
    "BestChance",
    "Estimate",
    "best_option_chance",
    "diffusion_curve",
    "diffusion_estimate",
    "diffusion_time",
    "hitting_times",
]

# Chances at which the diffusion time is computed before the best is refined between two of them.
COARSE_CHANCES = (0.0, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97)
# Error of the best chance, relative to the upper end of the interval it lies in.
CHANCE_ERROR = 1e-3
# Ratio to the least diffusion time so far from which on larger chances are not tried.
HOPELESS = 100.0
# Most chances computed to refine the best.
MAX_REFINEMENTS = 24


def diffusion_time(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    progress: Progress | None = None,
) -> float:
    """Mean expected number of primitive steps between two different states (Section 4.2, Appendix B).

    Each decision is for a primitive action or for an option that may start there. Options run to their end, but the
    walk stops the moment it touches the goal. Exact to a relative error of 1e-9, however large.

    Parameters
    ----------
    mdp, options
        Deterministic or stochastic dynamics of at most 4,000 states, every state reachable from every other; and
        options made for it, None for primitive actions only.
    option_chance
        Probability in [0, 1) that a decision is for an option, where one may start; it is then uniform over those
        that may, otherwise over the primitive actions. None: uniform over actions and options together, as in the
        paper.
    progress
        Called with goals done and goals in all, in long computations.

    Returns
    -------
    float
        Raises OverflowError where the value exceeds 1e290, ValueError where it is infinite.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> round(diffusion_time(mdp), 3)
    620.769
    >>> options = eo.discover(mdp, n_options=64)
    >>> round(diffusion_time(mdp, options), 1), round(diffusion_time(mdp, options[:4], option_chance=0.05), 1)
    (218.4, 267.7)
    """
    walk = Walk(mdp, options, option_chance)
    return float(walk.means(len(walk.policy), progress).mean())


def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    option_chance: float | None = None,
    progress: Progress | None = None,
) -> Array:
    """Diffusion time as options are added one by one, in their order (Section 4.2, Figure 6).

    Parameters
    ----------
    mdp, options, option_chance, progress
        As for `diffusion_time`; `progress` is called with values done and values in all.

    Returns
    -------
    ndarray
        ``(len(options) + 1,)``: without an option, with the first, with the first two, and so on.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> ends = [eo.Purpose(np.eye(5)[s], f"to {s}") for s in (0, 4)]
    >>> diffusion_curve(mdp, eo.solve(mdp, ends)).round(1).tolist()
    [20.0, 37.1, 5.8]
    """
    walk = Walk(mdp, options, option_chance)
    many = len(walk.policy) + 1
    report = counter(progress, many)
    parts = mapped(walk.values, [(m, m + 1) for m in range(many)], {}, report)
    return np.array([value for part in parts for value in part])


def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    progress: Progress | None = None,
) -> Array:
    """Expected number of primitive steps from every state to every goal (Appendix B).

    Parameters
    ----------
    mdp, options, option_chance, progress
        As for `diffusion_time`, whose value is the mean of the entries off the diagonal.

    Returns
    -------
    ndarray
        ``(S, S)`` by start and goal, zeros on the diagonal. ``h.sum(axis=0) / (S - 1)`` is the mean to each goal,
        ``h.sum(axis=1) / (S - 1)`` the mean from each start.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    return Walk(mdp, options, option_chance).pairs(progress)


@dataclass(frozen=True)
class BestChance:
    """The chance of an option with the least diffusion time; see `best_option_chance`.

    Attributes
    ----------
    chance, diffusion_time
        Probability that a decision is for an option, where one may start, and diffusion time at this chance.
    without, uniform
        Diffusion time of primitive actions only, which is that at chance 0, and of the paper's uniform choice over
        actions and options; inf beyond 1e290.

    Examples
    --------
    >>> BestChance(0.05, 267.7, 620.8, 13525.0).diffusion_time
    267.7
    """

    chance: float
    diffusion_time: float
    without: float
    uniform: float


def best_option_chance(mdp: MDP, options: OptionSet, *, progress: Progress | None = None) -> BestChance:
    """The chance of an option with which a random walk has the least diffusion time (Section 4.2).

    The diffusion time is a smooth function of the chance. It is computed exactly at 14 chances from 0 to 0.97 (up to
    one that is a hundred times worse than the best so far), and minimised between the neighbours of the least.

    The best chance is small where options are long, because a walk needs primitive steps to search around their ends
    (options of 10 steps at a chance of 0.1 take about half of all steps), and where they have few ends, because each
    return to the same place undoes the search: 0.05 for 4 eigenoptions of four rooms, 0.29 for 32.

    Parameters
    ----------
    mdp, options, progress
        As for `diffusion_time`; `progress` is called with values done and the most there can be.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> best = best_option_chance(mdp, eo.discover(mdp, n_options=4))
    >>> round(best.chance, 2), round(best.diffusion_time, 1), round(best.uniform)
    (0.05, 267.7, 13525)
    """
    from scipy.optimize import minimize_scalar

    walk = Walk(mdp, options)
    if not len(walk.policy):
        raise ValueError("there are no options, so no chance of one: discover at least one")
    done = 0

    def value(chance: float | None) -> float:
        nonlocal done
        walk.chance = chance
        done += 1
        if progress:
            progress(done, 1 + len(COARSE_CHANCES) + MAX_REFINEMENTS)
        try:
            return float(walk.means(len(walk.policy)).mean())
        except OverflowError:
            return inf

    uniform = value(None)
    coarse: list[float] = []
    for chance in COARSE_CHANCES:
        coarse.append(value(chance))
        if coarse[-1] > HOPELESS * min(coarse):
            break
    i = int(np.argmin(coarse))
    ends = COARSE_CHANCES[max(i - 1, 0)], (*COARSE_CHANCES, 1.0)[i + 1]
    how = {"xatol": CHANCE_ERROR * ends[1], "maxiter": MAX_REFINEMENTS}
    fine = minimize_scalar(lambda x: value(float(x)), bounds=ends, method="bounded", options=how)
    least, chance = min((coarse[i], COARSE_CHANCES[i]), (float(fine.fun), float(fine.x)))
    return BestChance(chance, least, coarse[0], uniform)
