"""Diffusion time of state spaces too large to solve, by sampling (Appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import FloatArray, IndexArray, Randomness
from eigenoptions._validation import check_float, check_int, make_generator
from eigenoptions.evaluation.behaviour import (
    Behaviour,
    Chance,
    list_states,
    prepare_behaviour,
)
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import make_tables, visit_states
from eigenoptions.parallel import run_jobs


@dataclass(frozen=True)
class Estimate:
    """A diffusion time that was estimated from random walks.

    Attributes
    ----------
    mean : float
        The estimate.
    low, high : float
        The ends of its confidence interval.
    confidence : float
        Probability that the interval contains the true value.
    walks : int
        Number of walks.
    steps : int
        Number of primitive steps in all walks.
    """

    mean: float
    low: float
    high: float
    confidence: float
    walks: int
    steps: int


@shows_progress
def diffusion_estimate(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    walks: int = 100,
    max_steps: int = 1_000_000_000,
    confidence: float = 0.95,
    rng: Randomness = 0,
    progress: ProgressArgument = None,
) -> Estimate:
    """Estimate the diffusion time of a state space too large for `diffusion_time`.

    Each walk starts in a random state and continues until it has touched *every* state.
    So it measures the steps to all goals at once, also to the few that are hardest to
    reach and dominate the mean. The interval is Student's.

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`, without its limit.
    walks : int, default=100
        Number of independent walks, at least 2. They are the jobs of
        `parallel.run_jobs`.
    max_steps : int, default=1_000_000_000
        Steps after which a walk gives up. Then ValueError is raised, because no
        interval would be valid.
    confidence : float in (0, 1), default=0.95
        Confidence level of the interval.
    rng : int or Generator, default=0
        Draws the walks.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with numbers of walks.

    Returns
    -------
    Estimate
        The mean and its interval.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> estimate = diffusion_estimate(eo.maze("four-rooms"), walks=400)
    >>> estimate.low < 620.769 < estimate.high
    True
    """
    progress = check_progress(progress)
    walks = check_int("walks", walks, minimum=2, maximum=10_000_000)
    max_steps = check_int("max_steps", max_steps)
    confidence = check_float("confidence", confidence, above=0, below=1)
    behaviour = prepare_behaviour(mdp, options, option_chance, stop_chance)

    generator = make_generator(rng)
    starts = generator.integers(behaviour.n_goals, size=walks)
    seeds = generator.integers(2**63, size=walks)
    jobs = list(zip(starts.tolist(), seeds.tolist(), strict=True))
    tables = make_tables(
        behaviour.table,
        behaviour.policy,
        behaviour.option_chance,
        behaviour.stop_chance,
    )
    shared = {
        "tables": tables,
        "states": behaviour.states,
        "n_goals": behaviour.n_goals,
        "max_steps": max_steps,
    }
    results = run_jobs(_touch_all_states, jobs, shared=shared, progress=progress)

    times = np.array([time for time, _ in results])
    n_steps = sum(steps for _, steps in results)
    low, high = _find_interval(behaviour, times, confidence)
    return Estimate(float(times.mean()), low, high, confidence, walks, n_steps)


def _touch_all_states(
    job: tuple[int, int],
    tables: Any,
    states: IndexArray,
    n_goals: int,
    max_steps: int,
) -> tuple[float, int]:
    """The mean steps of a walk to the other states, and the steps to the last one."""
    start, seed = job
    touched = np.zeros(len(states), dtype=np.uint8)
    touched[n_goals:] = 1
    total, steps = visit_states(tables, start, seed, touched, max_steps)
    if not touched.all():
        missing = list_states(states[touched == 0])
        raise ValueError(
            f"a walk had not touched {missing} after {max_steps:,} steps: "
            "raise max_steps"
        )
    return total / (n_goals - 1), steps


def _find_interval(
    behaviour: Behaviour, times: FloatArray, confidence: float
) -> tuple[float, float]:
    """Student's interval, where it is one."""
    table = behaviour.table
    lower_end, upper_end = mean_interval(times, confidence)
    low = float(lower_end)
    high = float(upper_end)

    # That random walks agree says nothing about their spread. Only a single action
    # without chance makes all walks alike.
    is_random = table.n_actions > 1 or table.successors is None
    if is_random and np.ptp(times) == 0:
        low = -inf
        high = inf

    # A step touches at most one new state.
    return max(low, behaviour.n_goals / 2), high
