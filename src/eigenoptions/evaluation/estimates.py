"""Diffusion time of state spaces too large to solve, by sampling (Appendix B)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import (
    Progress,
    check_float,
    check_int,
    make_generator,
)
from eigenoptions.evaluation.hitting import HittingSystem, list_states
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import make_tables, visit_states
from eigenoptions.parallel import run_jobs

_REMEDY = "use others, a smaller option_chance, or a stop_chance"


_TRAPPED = "these options trap the walk"


Chance = float | str | None


Array = NDArray[np.float64]


logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True)
class Estimate:
    """A diffusion time estimated from samples: the mean over the walks, and an interval that holds the true value.

    `confidence` is the probability that it does, `steps` the number of primitive steps in all walks.
    """

    mean: float
    low: float
    high: float
    confidence: float
    walks: int
    steps: int


def diffusion_estimate(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    walks: int = 100,
    max_steps: int = 1_000_000_000,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Estimate:
    """Diffusion time of a state space too large for `diffusion_time`, by sampling (Appendix B).

    Each walk starts in a random state and continues until it has touched *every* state, so it yields the steps to all
    goals at once, also to the few that are hardest to reach and dominate the mean. The interval is Student's.

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`, without its limit.
    walks : int, default 100
        Number of independent walks, at least 2: the jobs of `parallel.run_jobs`.
    max_steps : int, default 1e9
        Steps after which a walk gives up. Then ValueError is raised: no interval would be valid.
    confidence : float in (0, 1), default 0.95
        Confidence level of the interval.
    rng : int or Generator, default 0
        Draws the walks.
    progress : callable, optional
        Called with walks done and walks in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> estimate = diffusion_estimate(eo.maze("four-rooms"), walks=400)
    >>> estimate.low < 620.769 < estimate.high
    True
    """
    walks = check_int("walks", walks, 2, 10_000_000)
    max_steps = check_int("max_steps", max_steps)
    confidence = check_float("confidence", confidence, above=0, below=1)
    walk = HittingSystem(mdp, options, option_chance, stop_chance)
    table, kept = walk.table, walk.kept
    generator = make_generator(rng)
    jobs = np.transpose(
        [
            generator.integers(len(kept), size=walks),
            generator.integers(2**63, size=walks),
        ]
    )
    tables = make_tables(table, walk.policy, walk.option_chance, walk.stop_chance)
    shared = {"tables": tables, "max_steps": max_steps, "numbers": kept}
    means, steps = np.array(
        run_jobs(_cover, jobs.tolist(), shared=shared, progress=progress)
    ).T
    low, high = map(float, mean_interval(means, confidence))
    if np.ptp(means) == 0 and not (
        table.n_actions == 1 and table.successors is not None
    ):
        low, high = -inf, inf  # that random walks agree says nothing about their spread
    # A step touches one new state at most.
    low = max(low, table.n_states / 2)
    return Estimate(float(means.mean()), low, high, confidence, walks, int(steps.sum()))


def _cover(
    job: list[int], tables: Any, max_steps: int, numbers: NDArray[np.intp]
) -> tuple[float, int]:
    """Mean steps to the other states, and steps until the last of them, of one walk."""
    (start, seed), touched = job, np.zeros(len(numbers), dtype=np.uint8)
    total, steps = visit_states(tables, start, seed, touched, max_steps)
    if not touched.all():
        missing = list_states(numbers[touched == 0])
        raise ValueError(
            f"a walk had not touched {missing} after {max_steps:,} steps: raise max_steps"
        )
    return total / (len(numbers) - 1), steps
