"""Diffusion times of state spaces too large for exact answers, by sampling (paper, Appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eigenoptions._validation import check_float, check_int, make_generator
from eigenoptions.evaluation.exact import Progress, checked, some
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import checked_chance, tables
from eigenoptions.parallel import run_jobs

# Steps of a walk between two chances to interrupt it.
STEPS_PER_CALL = 20_000_000


@dataclass(frozen=True)
class Estimate:
    """A diffusion time estimated from samples.

    Attributes
    ----------
    mean, low, high, confidence
        Mean over the walks, ends of the interval that holds the true value, and the confidence that it does.
    walks, steps
        Number of walks, and of primitive steps in all of them.

    Examples
    --------
    >>> print(Estimate(620.0, 600.0, 640.0, 0.95, 100, 500_000))
    620 (95% between 600 and 640, from 100 walks)
    """

    mean: float
    low: float
    high: float
    confidence: float
    walks: int
    steps: int

    def __str__(self) -> str:
        return (
            f"{self.mean:.4g} ({100 * self.confidence:g}% between {self.low:.4g} and {self.high:.4g}, "
            f"from {self.walks} walks)"
        )


def diffusion_estimate(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    walks: int = 100,
    max_steps: int = 1_000_000_000,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Estimate:
    """Diffusion time of a state space too large for `diffusion_time`, by sampling (Appendix B).

    Each walk starts in a random state and continues until it has touched *every* state, so it yields the steps to all
    goals at once. The few goals that are hardest to reach dominate the mean; sampled goals would miss them, a walk
    waits for them. The interval is Student's, over walks.

    Parameters
    ----------
    mdp, options, option_chance
        As for `diffusion_time`, without its limit.
    walks, rng, progress
        Number of independent walks, at least 2; the seed or generator that draws them; and a function that is called
        with walks done and walks in all.
    max_steps
        Steps after which a walk gives up. Then ValueError is raised instead of an estimate: the states not yet touched
        could take any time, so no interval would be valid.
    confidence
        Confidence level of the interval, in (0, 1).

    Examples
    --------
    >>> import eigenoptions as eo
    >>> estimate = diffusion_estimate(eo.maze("four-rooms"), walks=400)
    >>> estimate.low < 620.769 < estimate.high
    True
    """
    from scipy.stats import t

    check_int("walks", walks, 2)
    check_int("max_steps", max_steps)
    check_float("confidence", confidence, above=0, below=1)
    policy = checked(mdp, options)
    # A small type: the policy is read at every step.
    policy = policy.astype(np.min_scalar_type(-mdp.n_actions - 1))
    n = mdp.n_states
    generator = make_generator(rng)
    jobs = [
        (i, int(generator.integers(n)), int(generator.integers(2**64, dtype=np.uint64))) for i in range(walks)
    ]
    shared = {
        "tables": tables(mdp, policy, checked_chance(option_chance)),
        "max_steps": max_steps,
        "walks": walks,
    }
    values, steps = zip(*run_jobs(_cover, jobs, shared=shared, progress=progress), strict=True)
    mean = float(np.mean(values))
    half = float(t.interval(confidence, walks - 1)[1] * np.std(values, ddof=1) / np.sqrt(walks))
    return Estimate(mean, max(mean - half, 1.0), mean + half, float(confidence), int(walks), sum(steps))


def _cover(
    job: tuple[int, int, int], tables: tuple[Any, Any], max_steps: int, walks: int
) -> tuple[float, int]:
    """Mean steps to the other states, and steps until the last of them, of one walk (its number, start and seed)."""
    from eigenoptions._kernels.walking import cover

    walk, start, seed = job
    n = tables[1].policy.shape[1]
    count = np.array([seed], dtype=np.uint64)
    place = np.array([start, -1, 0, n - 1], dtype=np.int64)
    touched = np.zeros(n, dtype=np.uint8)
    touched[start] = 1
    total = 0.0
    while place[3] and place[2] < max_steps:
        budget = min(STEPS_PER_CALL, max_steps - int(place[2]))
        total += cover(*tables, place, count, touched, budget)
    if place[3]:
        least = (total + float(place[3]) * max_steps) / (n - 1)
        raise ValueError(
            f"walk {walk + 1} of {walks} had not touched {some(np.flatnonzero(touched == 0))} after {max_steps:,} "
            f"steps, so there is no interval (that walk alone makes {least:.3g} or more): "
            "raise max_steps, or use other options"
        )
    return total / (n - 1), int(place[2])
