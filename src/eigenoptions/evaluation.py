"""Diffusion time: expected steps of a random walk over actions and options (paper, Section 4.2, Appendix B).

For a goal g the expected steps h obey h(g) = 0 and, elsewhere, h(s) = mean over the choices at s (primitive actions,
and the options that may start there) of their steps plus h where they end; an option that touches g stops there.
Diffusion time is the mean of h over all ordered pairs of different states.

With few options h grows exponentially and a linear solver in double precision returns noise. So every solution is
proved by its residual, and what cannot be proved is computed again without a subtraction (`_kernels.elimination`).
State spaces too large for exact answers are sampled (`diffusion_estimate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._checks import number, whole
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import endless, policy_of, tables, weights
from eigenoptions.parallel import current, on_engine, pays, pmap

# Exact answers hold about six dense arrays of this many states squared: 0.8 GB together.
MAX_STATES = 4_000
# Relative error up to which a linear solution is accepted.
MAX_ERROR = 1e-9
# Numbers that one elimination may hold in memory.
ELIMINATION_NUMBERS = 30_000_000
# Most goals that an elimination serves between two calls of progress.
GOALS_PER_JOB = 512
CURVE_JOBS = 32
# Seconds of work, to decide whether workers pay: per value of a curve and state cubed, and per step of a walk.
SECONDS_PER_CUBE = 2e-10
SECONDS_PER_STEP = 2e-8
# Steps of a walk between two chances to interrupt it.
STEPS_PER_CALL = 20_000_000

Progress = Callable[[int, int], object]
Array = NDArray[np.float64]


@on_engine()
def diffusion_time(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    progress: Progress | None = None,
) -> float:
    """Mean expected number of primitive steps between two different states (Section 4.2, Appendix B).

    Each decision is uniform over the primitive actions and the options that may start there. Options run to their
    end, but the walk stops the moment it touches the goal. Exact to a relative error of 1e-9, however large.

    Parameters
    ----------
    mdp
        Deterministic or stochastic dynamics of at most 4,000 states, every state reachable from every other.
    options
        Options made for this MDP; None for primitive actions only.
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
    >>> diffusion_time(mdp, eo.discover(mdp, n_options=64)) < diffusion_time(mdp)
    True
    """
    walk = _Walk(mdp, options)
    return float(walk.means(len(walk.policy), progress).mean())


@on_engine()
def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    progress: Progress | None = None,
) -> Array:
    """Diffusion time as options are added one by one, in their order (Section 4.2, Figure 6).

    Parameters
    ----------
    mdp, options
        As for `diffusion_time`.
    progress
        Called with values done and values in all.

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
    walk = _Walk(mdp, options)
    many = len(walk.policy) + 1
    report = _counter(progress, many)
    if pays(SECONDS_PER_CUBE * many * mdp.n_states**3):
        jobs = list(pairwise(np.linspace(0, many, min(many, CURVE_JOBS) + 1).astype(int).tolist()))
        parts = pmap(_curve_part, jobs, shared={"mdp": mdp, "options": options}, arrived=report)
    else:
        parts = _map(walk.values, [(m, m + 1) for m in range(many)], {}, report)
    return np.array([value for part in parts for value in part])


@on_engine()
def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    progress: Progress | None = None,
) -> Array:
    """Expected number of primitive steps from every state to every goal (Appendix B).

    Parameters
    ----------
    mdp, options, progress
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
    return _Walk(mdp, options).pairs(progress)


@dataclass(frozen=True)
class Estimate:
    """A diffusion time estimated from samples.

    Attributes
    ----------
    mean
        Mean over the walks.
    low, high
        Ends of the interval that holds the true value with about the given confidence.
    confidence
        Confidence level of the interval.
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


@on_engine()
def diffusion_estimate(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
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
    mdp, options
        As for `diffusion_time`, without its limit.
    walks
        Number of independent walks, at least 2.
    max_steps
        Steps after which a walk gives up. Then ValueError is raised instead of an estimate: the states not yet touched
        could take any time, so no interval would be valid.
    confidence
        Confidence level of the interval, in (0, 1).
    rng
        Seed or generator that draws the walks.
    progress
        Called with walks done and walks in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> estimate = diffusion_estimate(eo.maze("four-rooms"), walks=400)
    >>> estimate.low < 620.769 < estimate.high
    True
    """
    from scipy.stats import t

    whole("walks", walks, 2)
    whole("max_steps", max_steps)
    number("confidence", confidence, "(0, 1)")
    policy = _checked(mdp, options)
    # A small type: the policy is read at every step.
    policy = policy.astype(np.min_scalar_type(-mdp.n_actions - 1))
    n = mdp.n_states
    generator = np.random.default_rng(rng)
    seeds = [
        (int(generator.integers(n)), int(generator.integers(2**64, dtype=np.uint64))) for _ in range(walks)
    ]
    shared = {"tables": tables(mdp, policy), "max_steps": max_steps, "walks": walks}
    found = _covers([(i, *seed) for i, seed in enumerate(seeds)], shared, progress)
    values, steps = np.array([value for value, _ in found]), sum(taken for _, taken in found)
    mean = float(values.mean())
    half = float(t.interval(confidence, walks - 1)[1] * values.std(ddof=1) / np.sqrt(walks))
    return Estimate(mean, max(mean - half, 1.0), mean + half, float(confidence), int(walks), steps)


def _covers(
    jobs: list[tuple[int, int, int]],
    shared: dict[str, Any],
    progress: Progress | None,
) -> list[tuple[float, int]]:
    """Results of `_cover` for all jobs. The length of the first walk decides whether workers pay."""
    report = _counter(progress, len(jobs))
    found = _map(_cover, jobs[:1], shared, report)
    if pays(SECONDS_PER_STEP * found[0][0][1] * len(jobs)):
        found += pmap(_cover, jobs[1:], shared=shared, arrived=report)
    else:
        found += _map(_cover, jobs[1:], shared, report)
    return [walk for (walk,) in found]


def _cover(
    job: tuple[int, int, int], tables: tuple[Any, Any], max_steps: int, walks: int
) -> list[tuple[float, int]]:
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
            f"walk {walk + 1} of {walks} had not touched {_some(np.flatnonzero(touched == 0))} after {max_steps:,} "
            f"steps, so there is no interval (that walk alone makes {least:.3g} or more): "
            "raise max_steps, or use other options"
        )
    return [(total / (n - 1), int(place[2]))]


def _checked(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Policies ``(k, S)`` of options that end, on an MDP where every state can be reached from every other."""
    if not isinstance(mdp, MDP):
        raise TypeError(
            f"diffusion time is that of an MDP, got {type(mdp).__name__}: make one with maze(...)"
        )
    if mdp.n_states < 2:
        raise ValueError("diffusion time is between different states, but this MDP has 1 state")
    policy = policy_of(mdp, options)
    for backward, what in ((False, "cannot be reached from state 0"), (True, "cannot reach state 0")):
        lost = np.flatnonzero(~reachable(mdp.transition, [0], backward=backward))
        if len(lost):
            raise ValueError(
                f"the diffusion time is infinite: {_some(lost)} {what}; "
                "keep only states that can all reach each other"
            )
    for o, row in enumerate(policy):
        lost = endless(mdp, row)
        if len(lost) and options is not None:
            raise ValueError(
                f"option {options.labels[o]!r} never ends from {_some(lost)}, so the walk may never reach a goal; "
                "give it a state where it stops (-1)"
            )
    return policy


def _some(states: NDArray[Any]) -> str:
    """Number of states, and the first few."""
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def _curve_part(job: tuple[int, int], mdp: MDP, options: OptionSet) -> list[float]:
    return _Walk(mdp, options).values(job)


class _Walk:
    """A checked random walk over actions and options, with the arrays that all its answers share.

    Answers are for the first m options. `M_options` and `K_options` are sums over the options added so far; see
    `_kernels.diffusion` for M and K.
    """

    def __init__(self, mdp: MDP, options: OptionSet | None) -> None:
        if isinstance(mdp, MDP) and mdp.n_states > MAX_STATES:
            raise ValueError(
                f"exact diffusion times need at most {MAX_STATES:,} states, got {mdp.n_states:,}: "
                "use diffusion_estimate, which samples"
            )
        self.policy = _checked(mdp, options)
        self.mdp = mdp
        if mdp.successors is not None:
            self._follow(mdp.successors)

    def _follow(self, nxt: NDArray[np.int32]) -> None:
        """Lay out each option's steps, lengths and ends, and the states farthest from the end first: each (k, S)."""
        from eigenoptions._kernels.diffusion import Ways
        from eigenoptions._kernels.planning import run

        k, n = self.policy.shape
        length, end = np.empty((2, k, n), dtype=np.int32)
        for o in range(k):
            run(nxt, self.policy[o], length[o], end[o])
        followed = nxt[np.arange(n), np.maximum(self.policy, 0)]
        step = np.where(self.policy >= 0, followed, -1).astype(np.int32)
        order = np.argsort(-length, axis=1, kind="stable").astype(np.int32)
        self.ways, self.length = Ways(step, end, order), length
        self.M_options, self.K_options = np.zeros((n, n)), np.zeros((n, n))
        self.added = 0

    def means(self, m: int, progress: Progress | None = None) -> Array:
        """``(S,)`` mean steps to each goal from the other states."""
        n = self.mdp.n_states
        goals: NDArray[np.intp] = np.arange(n)
        means = np.zeros(n)
        if self.mdp.successors is not None:
            H, goals = self._linear(self.mdp.successors, m)
            means = H.sum(axis=0) / (n - 1)
        if len(goals):
            means[goals] = self._accurate(m, goals, np.full((1, n), 1.0 / (n - 1)), progress)[0]
        return means

    def values(self, job: tuple[int, int]) -> list[float]:
        """Diffusion times with the first m options, for m in ``job[0]..job[1]-1``."""
        return [float(self.means(m).mean()) for m in range(*job)]

    def pairs(self, progress: Progress | None = None) -> Array:
        """``(S, S)`` steps from each start to each goal."""
        n, m = self.mdp.n_states, len(self.policy)
        H, goals = np.empty((n, n)), np.arange(n)
        if self.mdp.successors is not None:
            H, goals = self._linear(self.mdp.successors, m)
        if len(goals):
            H[:, goals] = self._accurate(m, goals, np.eye(n), progress)
        return H

    def equations(self, nxt: NDArray[np.int32], m: int) -> tuple[Array, Array, tuple[Array, Array]]:
        """M and K of the walk with the first m options, and the weights of its choices."""
        from eigenoptions._kernels import diffusion

        while self.added < m:
            o = self.added
            way = self.ways.step[o], self.length[o], self.ways.end[o]
            diffusion.add_option(*way, self.M_options, self.K_options)
            self.added += 1
        action, option = weights(self.policy[:m])
        M, K = option[:, None] * self.M_options, option[:, None] * self.K_options
        diffusion.add_moves(nxt, action, M, K)
        return M, K, (action, option)

    def _linear(self, nxt: NDArray[np.int32], m: int) -> tuple[Array, NDArray[np.intp]]:
        """Steps (start, goal) from one inverse for all goals, and the goals for which they cannot be proved."""
        from eigenoptions._kernels import diffusion

        M, K, shares = self.equations(nxt, m)
        ways = diffusion.Ways(*(part[:m] for part in self.ways))
        return diffusion.hitting(nxt, ways, shares, M, K, MAX_ERROR, ELIMINATION_NUMBERS)

    def _accurate(
        self, m: int, goals: NDArray[np.intp], start: Array, progress: Progress | None = None
    ) -> Array:
        """``(r, len(goals))`` steps from the starts, without a subtraction."""
        P, policy = self.mdp.transition, self.policy[:m]
        shared: dict[str, Any] = {
            "table": (P.indptr, P.indices, P.data),
            "policy": policy,
            "shares": weights(policy),
            "start": start,
        }
        r, n = start.shape
        group = min(GOALS_PER_JOB, max(1, (ELIMINATION_NUMBERS - n * (n + r)) // (m * (3 * n + r) + 1)))
        parts = np.array_split(goals, -(-len(goals) // group))
        report = _counter(progress, len(goals))
        if current().name == "serial":
            found = _map(_eliminated, parts, shared, report)
        else:
            found = pmap(_eliminated, parts, shared=shared, arrived=report)
        return np.concatenate(found, axis=0).T


def _counter(progress: Progress | None, total: int) -> Callable[[int, Sized], None]:
    """Callback for the results of jobs, each with one entry per unit of work, that reports their number so far."""
    done = 0

    def report(_: int, result: Sized) -> None:
        nonlocal done
        done += len(result)
        if progress:
            progress(done, total)

    return report


def _map(
    function: Callable[..., Any],
    jobs: Sequence[Any],
    shared: dict[str, Any],
    report: Callable[[int, Any], object],
) -> list[Any]:
    """`parallel.pmap` in this process, where the first error ends the work."""
    found = []
    for i, job in enumerate(jobs):
        found.append(function(job, **shared))
        report(i, found[-1])
    return found


def _eliminated(
    goals: NDArray[np.intp],
    table: tuple[Any, Any, Any],
    policy: NDArray[np.int32],
    shares: tuple[Array, Array],
    start: Array,
) -> Array:
    """``(len(goals), r)`` steps from the starts, by elimination."""
    from eigenoptions._kernels.elimination import hitting

    with np.errstate(all="ignore"):
        h = hitting(table, policy, shares, goals, start)
    if h is None or not np.isfinite(h).all():
        raise OverflowError(
            f"the diffusion time is beyond 1e290, outside double precision (goal {goals[0]}"
            f"{' and others' * (len(goals) > 1)}): the options lead too reliably elsewhere; use other options"
        )
    return h.T
