"""Diffusion time of large state spaces, seen through samples (paper, Appendix B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import stdtrit

from eigenoptions.evaluation.checking import policy_of, some, whole
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.parallel import ENGINES, pmap

WORTH = 100_000_000  # steps, about two seconds, from which workers pay

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Estimate:
    """A diffusion time seen through samples.

    Attributes
    ----------
    mean
        Over the walks.
    low, high
        Interval that holds the true value with about the given confidence.
    confidence
        Of that interval.
    walks, steps
        Walks sampled, and primitive steps taken in all.

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
    walks: int = 100,
    max_steps: int = 1_000_000_000,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
    engine: str = "serial",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Diffusion time of a state space too large for `diffusion_time`, by sampling (Appendix B).

    Each walk starts anywhere and goes on until it has touched *every* state, so it yields the steps to all goals at
    once. The few goals that are hardest to reach carry the mean; sampled goals would miss them, a walk waits for them.
    The interval is Student's, over walks.

    Parameters
    ----------
    mdp, options
        As for `diffusion_time`, without its limit.
    walks
        Independent walks, at least 2.
    max_steps
        Steps after which a walk gives up. Then there is no estimate but a ValueError: what is left untouched could
        take any time, and an interval would be a lie.
    confidence
        Of the interval, in (0, 1).
    rng
        Seed or generator.
    engine, workers
        Where to walk, as in `parallel.pmap`; the estimate is the same. Short walks are walked here in any case.
    progress
        Called with walks done and walks in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> estimate = diffusion_estimate(eo.maze("four-rooms"), walks=400)
    >>> estimate.low < 620.769 < estimate.high
    True
    """
    from eigenoptions._kernels.learning import cumulate

    whole(walks, 2, "walks")
    whole(max_steps, 1, "max_steps")
    if not (isinstance(confidence, int | float | np.floating) and 0 < confidence < 1):
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    policy = policy_of(mdp, options)
    policy = policy.astype(np.min_scalar_type(-mdp.n_actions - 1))  # small: it is read at every step
    n = mdp.n_states
    generator = np.random.default_rng(rng)
    seeds = [
        (int(generator.integers(n)), int(generator.integers(2**64, dtype=np.uint64))) for _ in range(walks)
    ]
    offered = csr_array(policy.T >= 0)
    table = mdp.transition
    shared: dict[str, Any] = {
        "indptr": table.indptr,
        "indices": table.indices,
        "sums": cumulate(table.indptr, table.data),
        "n_actions": mdp.n_actions,
        "policy": policy,
        "first": offered.indptr,
        "offered": offered.indices,
        "max_steps": max_steps,
        "walks": walks,
    }
    # The first walk tells how long they are, whether workers pay, and whether any of them will come to an end.
    found = [_covered((0, *seeds[0]), **shared)]
    if progress:
        progress(1, walks)
    rest = [(i, *seed) for i, seed in enumerate(seeds)][1:]
    if engine != "serial" and (engine not in ENGINES or found[0][1] * walks >= WORTH):
        told = None if progress is None else lambda p: progress(p.done + 1, walks)
        found += pmap(_covered, rest, engine, shared=shared, workers=workers, progress=told)
    else:
        for job in rest:  # the first that does not end ends it
            found.append(_covered(job, **shared))
            if progress:
                progress(len(found), walks)
    values, steps = np.array([value for value, _ in found]), sum(taken for _, taken in found)
    mean = float(values.mean())
    half = float(stdtrit(walks - 1, 0.5 + confidence / 2) * values.std(ddof=1) / np.sqrt(walks))
    return Estimate(mean, max(mean - half, 1.0), mean + half, float(confidence), int(walks), steps)


def _covered(
    job: tuple[int, int, int],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    sums: NDArray[np.float64],
    n_actions: int,
    policy: NDArray[Any],
    first: NDArray[Any],
    offered: NDArray[Any],
    max_steps: int,
    walks: int,
) -> tuple[float, int]:
    """Mean steps to the other states, and steps until the last of them, of one walk."""
    from eigenoptions._kernels.walks import cover

    number, start, seed = job
    n = policy.shape[1]
    count = np.array([seed], dtype=np.uint64)
    place = np.array([start, -1, 0, n - 1], dtype=np.int64)
    touched = np.zeros(n, dtype=np.uint8)
    touched[start] = 1
    total = 0.0
    while place[3] and place[2] < max_steps:  # in pieces, so that Ctrl-C is heard
        budget = min(20_000_000, max_steps - int(place[2]))
        total += cover(
            indptr, indices, sums, n_actions, policy, first, offered, place, count, touched, budget
        )  # fmt: skip
    if place[3]:
        least = (total + float(place[3]) * max_steps) / (n - 1)
        raise ValueError(
            f"walk {number + 1} of {walks} had not touched {some(np.flatnonzero(touched == 0))} after {max_steps:,} "
            f"steps, so no interval can be told (that walk alone makes {least:.3g} or more): "
            "raise max_steps, or use other options"
        )
    return total / (n - 1), int(place[2])
