"""Diffusion time: expected steps of a random walk over actions and options (paper, Section 4.2 and Appendix B).

A decision in state s is for each of the A actions with weight a(s), and for each option available there with weight
w(s); N(s) is the sum. For a goal g, the expected steps h obey h(g) = 0 and elsewhere

    N(s) h(s) - a(s) sum_actions E[h(s')] - w(s) sum_o [T_o(s, .) - q_o(s, g) T_o(g, .)] h
        = a(s) A + w(s) sum_o [c_o(s) - q_o(s, g) c_o(g)]

where an option o started in s terminates in t with probability T_o(s, t), takes c_o(s) steps, and passes through g with
probability q_o(s, g); the walk stops the moment it touches g, also in the middle of an option. The terms without q are
M h, the same for all goals: one inverse ``Y = (M + 11')^-1`` serves them all, and each goal adds a small system with
one unknown ``T_o(g, .) h`` per option.

Without row and column g, the matrix is an M-matrix. So a residual of at most e times the right side, in every row,
proves a relative error of at most e in every entry of h.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions._validation import Progress, check_float, check_int, check_type, make_generator
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.exploration import resolve_exploration
from eigenoptions.options.solver import follow_options, policy_transitions
from eigenoptions.options.walks import (
    continue_after_end,
    find_ends,
    make_tables,
    stack_policies,
    visit_states,
)
from eigenoptions.parallel import run_jobs

__all__ = [
    "diffusion_time",
    "diffusion_curve",
    "hitting_times",
    "best_option_chance",
    "diffusion_estimate",
    "BestChance",
    "Estimate",
    "mean_interval",
]

log = logging.getLogger("eigenoptions")

Array = NDArray[np.float64]
Chance = float | str | None

# Exact answers hold about ten dense arrays (S, S): 1.3 GB. Elimination takes a minute where all goals need it.
MAX_STATES, MAX_ELIMINATION_STATES = 4_000, 500
# Relative error that is proved; the second where elimination would take too long.
MAX_ERROR, MAX_ERROR_LARGE = 1e-9, 1e-2
# Numbers in the largest table of the goals that are solved together (32 MB).
BLOCK_SIZE = 2**22
_TRAPPED = "these options trap the walk"
_REMEDY = "use others, a smaller option_chance, or a stop_chance"


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
        Deterministic or stochastic dynamics of at most 4,000 states, each reachable from every other. Where episodes
        end, that is, in states that no action leaves, the next step leads to the start (without one, to any other
        state). A goal that can be left does not end the walk. States that cannot be reached from the start are left
        out, and logged.
    options : OptionSet, optional
        Options of this MDP; None for primitive actions only.
    option_chance : float in [0, 1) or "auto", optional
        Probability that a decision is for an option where one is available, uniformly among these. None: uniform over
        the actions and the available options, as in the paper. ``"auto"``: this and the stop chance as agents use them
        (`tune_exploration`).
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
    walk = _Walk(mdp, options, option_chance, stop_chance)
    return _mean_pairs(walk.solve(walk.option_chance, progress=progress))


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
        As in `diffusion_time`. Where the options trap the walk, so that it raises OverflowError, the time is inf.
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
    walk = _Walk(mdp, options, option_chance, stop_chance)
    times = np.empty(walk.n_options + 1)
    for n in range(len(times)):
        times[n] = walk.compute_mean(walk.option_chance, n)
        if progress is not None:
            progress(n + 1, len(times))
    return times


def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> Array:
    """``(S, S)`` expected number of primitive steps from every start (row) to every goal (column) (Appendix B).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance, progress
        As in `diffusion_time`, whose value is the mean of the entries off the diagonal. Entries of states that are
        left out are nan.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    walk = _Walk(mdp, options, option_chance, stop_chance)
    times = np.full((mdp.n_states, mdp.n_states), np.nan)
    times[np.ix_(walk.kept, walk.kept)] = walk.solve(walk.option_chance, progress=progress)
    return times


@dataclass(frozen=True)
class BestChance:
    """The option chance with the smallest diffusion time; see `best_option_chance`.

    Attributes
    ----------
    chance, diffusion_time : float
        Probability that a decision is for an option where one is available, and the diffusion time at this chance.
    primitive_diffusion_time, uniform_diffusion_time : float
        That of primitive actions only (chance 0), and of the paper's uniform choice; inf above 1e12 steps.
    """

    chance: float
    diffusion_time: float
    primitive_diffusion_time: float
    uniform_diffusion_time: float


def best_option_chance(
    mdp: MDP, options: OptionSet, *, stop_chance: float = 0.0, progress: Progress | None = None
) -> BestChance:
    """The option chance with which a random walk has the smallest diffusion time (Section 4.2).

    Parameters
    ----------
    mdp, options, stop_chance
        As in `diffusion_time`.
    progress : callable, optional
        Called as ``progress(done, total)`` with diffusion times computed and, roughly, in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> best = best_option_chance(mdp, eo.discover(mdp, n_options=4))
    >>> round(best.chance, 2), round(best.diffusion_time, 1), round(best.uniform_diffusion_time)
    (0.05, 267.7, 13525)
    """
    walk = _Walk(mdp, options, None, stop_chance)
    if not walk.n_options:
        raise ValueError("there are no options, so no option chance: discover at least one")

    def to_chance(log_odds: float) -> float:
        return 1.0 / (1.0 + math.exp(-log_odds))

    counter = count(1)

    @cache
    def compute(log_odds: float) -> float:
        """The logarithm of the diffusion time, a smooth function of the log-odds of the chance."""
        mean = _mean_pairs(walk.solve(to_chance(log_odds), prove=False))
        if progress is not None:
            done = next(counter)
            progress(done, max(20, done + 3))
        return math.log(mean) if 0 < mean < 1e300 else 1e3

    grid = [-10.0, -7.0, -4.5, -2.0, 0.5, 4.5]
    best = min(range(len(grid)), key=lambda i: compute(grid[i]))
    chance = to_chance(grid[best])
    if 0 < best < len(grid) - 1 and compute(grid[best]) < compute(grid[best + 1]):
        chance = to_chance(minimize_scalar(compute, grid[best - 1 : best + 2], tol=0.01).x)
    time, uniform, primitive = walk.compute_mean(chance), walk.compute_mean(None), walk.compute_mean(None, 0)
    if progress is not None:
        total = max(20, next(counter) + 2)
        progress(total, total)
    return BestChance(chance if time < primitive else 0.0, min(time, primitive), primitive, uniform)


@dataclass(frozen=True)
class Estimate:
    """A diffusion time estimated from samples.

    Attributes
    ----------
    mean, low, high, confidence : float
        Mean over the walks, ends of the interval that holds the true value, and the confidence that it does.
    walks, steps : int
        Number of walks, and of primitive steps in all of them.
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
    check_int("walks", walks, 2, 10_000_000)
    check_int("max_steps", max_steps)
    check_float("confidence", confidence, above=0, below=1)
    option_chance, stop_chance = _resolve_chances(options, option_chance, stop_chance)
    table, policy, kept = _prepare_walk(mdp, options, stop_chance)
    generator = make_generator(rng)
    starts, seeds = generator.integers(len(kept), size=walks), generator.integers(2**63, size=walks)
    jobs = list(zip(starts.tolist(), seeds.tolist(), strict=True))
    tables = make_tables(table, policy, option_chance, stop_chance)
    shared = {"tables": tables, "max_steps": max_steps, "numbers": kept}
    means, steps = np.array(run_jobs(_cover, jobs, shared=shared, progress=progress)).T
    low, high = map(float, mean_interval(means, confidence))
    if np.ptp(means) == 0 and not (table.n_actions == 1 and table.successors is not None):
        low, high = -inf, inf  # that random walks agree says nothing about their spread
    # A step touches one new state at most.
    low = max(low, table.n_states / 2)
    return Estimate(float(means.mean()), low, high, confidence, walks, int(steps.sum()))


def _cover(job: tuple[int, int], tables: Any, max_steps: int, numbers: NDArray[np.intp]) -> tuple[float, int]:
    """Mean steps to the other states, and steps until the last of them, of one walk."""
    (start, seed), touched = job, np.zeros(len(numbers), dtype=np.uint8)
    total, steps = visit_states(tables, start, seed, touched, max_steps)
    if not touched.all():
        missing, remedy = _list_states(numbers[touched == 0]), "raise max_steps, or use other options"
        raise ValueError(f"a walk had not touched {missing} after {max_steps:,} steps: {remedy}")
    return total / (len(numbers) - 1), steps


def mean_interval(samples: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
    """Lower and upper end of Student's interval for the mean over the first axis; the mean itself for one sample.

    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> print(low.round(2), high.round(2))
    -0.48 4.48
    """
    from scipy.stats import t

    values = np.asarray(samples, dtype=float)
    n, mean = len(values), values.mean(axis=0)
    if n < 2:
        return mean, mean
    half = t.ppf((1 + confidence) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return mean - half, mean + half


class _Walk:
    """A random walk over the actions and the first n options of a set, for any option chance."""

    def __init__(self, mdp: MDP, options: Any, option_chance: Chance, stop_chance: float) -> None:
        self.option_chance, stop_chance = _resolve_chances(options, option_chance, stop_chance)
        table, policy, self.kept = _prepare_walk(mdp, options, stop_chance)
        self.n_options, self.n_states = policy.shape
        S = self.n_states
        if S > MAX_STATES:
            limit = f"exact diffusion times need at most {MAX_STATES:,} states, got {S:,}"
            raise ValueError(f"{limit}: use diffusion_estimate, which samples")
        self.available, self.n_actions = policy >= 0, mdp.n_actions
        self.moves = table.transition.toarray().reshape(S, mdp.n_actions, S).mean(axis=1)
        self.passes, self.ends, self.steps = follow_options(table, policy, stop_chance)
        if not (self.steps >= 0).all() or self.steps.max(initial=0) > 1e6:
            worst = self.steps.max(axis=1).argmax()
            raise OverflowError(f"{_TRAPPED}: option number {worst} runs for more than 1e6 steps; {_REMEDY}")

    def compute_mean(self, option_chance: float | None, n: int | None = None) -> float:
        """The diffusion time with the first n options; inf where they trap the walk."""
        try:
            return _mean_pairs(self.solve(option_chance, n))
        except OverflowError:
            return inf

    def solve(
        self,
        option_chance: float | None,
        n: int | None = None,
        prove: bool = True,
        progress: Progress | None = None,
    ) -> Array:
        """``(S, S)`` expected steps from each start to each goal with the first n options."""
        S, n = self.n_states, self.n_options if n is None else n
        # Weights of an action and of an option in each state.
        available = self.available[:n].sum(axis=0)
        a, w = np.full(S, float(self.n_actions)), np.ones(S)
        if option_chance is not None:
            a = np.where(available > 0, 1.0 - option_chance, 1.0)
            w = np.where(available > 0, option_chance, 0.0) / np.maximum(available, 1)

        # Rates of decisions that lead from state to state, the matrix M, and the right sides K (S, goals).
        passes, ends, steps = self.passes[: n * S], self.ends[: n * S], self.steps[:n]
        sum_options = csr_array(kron(np.ones((1, n)), eye_array(S)))
        rates = a[:, None] * self.moves + w[:, None] * (sum_options @ ends).toarray()
        M = np.diag(a + w * available) - rates
        saved = (sum_options @ passes.multiply(steps.reshape(-1, 1))).toarray().T
        K = a[:, None] + w[:, None] * (steps.sum(axis=0)[:, None] - saved)
        Y = _try(np.linalg.inv, M + 1.0)
        max_error = (MAX_ERROR if S <= MAX_ELIMINATION_STATES else MAX_ERROR_LARGE) if prove else inf

        H, size = np.empty((S, S)), max(1, BLOCK_SIZE // (max(1, n) * S))
        for low in range(0, S, size):
            # F: w(s) q_o(s, g) of each goal and option; E: T_o(g, .).
            goals = np.arange(low, min(low + size, S))
            rows = (goals[:, None] + S * np.arange(n)).ravel()
            F, E = passes[rows].toarray().reshape(len(goals), n, S) * w, ends[rows]
            h, proved = _solve_goals(M, K, Y, F, E, goals, max_error)
            H[:, goals] = h.T
            if not proved.all() and S > MAX_ELIMINATION_STATES:
                state = self.kept[goals[~proved][0]]
                raise OverflowError(f"{_TRAPPED}: more than 1e12 steps to state {state}; {_REMEDY}")
            # As many goals together as fit into the cache.
            for part in np.array_split(np.flatnonzero(~proved), 1 + (~proved).sum() * S**2 // 2**18):
                P = rates - np.array([F[j].T @ E[j * n : (j + 1) * n] for j in part]).reshape(-1, S, S)
                # A difference of rounding size is zero: all of these options pass through the goal.
                P[1e-13 * rates > P] = 0.0
                P[np.arange(len(part)), :, goals[part]] += F[part].sum(axis=1)
                H[:, goals[part]] = _eliminate(P, K.T[goals[part]], goals[part]).T
            if progress is not None:
                progress(int(goals[-1]) + 1, S)
        return H


def _solve_goals(
    M: Array, K: Array, Y: Array, F: Array, E: csr_array, goals: NDArray[np.intp], max_error: float
) -> tuple[Array, NDArray[np.bool_]]:
    """``(m, S)`` solutions of ``M h + F' E h = K`` except in the row of each goal, and whether they are proved."""
    (m, n, S), each = F.shape, np.arange(len(goals))
    share = Y.sum(axis=0)  # the null vector of M'
    rounding = np.finfo(float).eps * (np.count_nonzero(M, axis=1) + 2 * n + 4) * M.diagonal()
    costs = K.T[goals]
    h, right, proved = np.zeros((m, S)), costs.copy(), np.zeros(m, dtype=np.bool_)
    with np.errstate(all="ignore"):
        # The entry of the goal makes a right side orthogonal to the null vector.
        F[each, :, goals] = 0.0
        F[each, :, goals] = -(F @ share) / share[goals, None]
        # y = E h solves a small system, since h is Y (right - F' y) up to a constant, and 0 in the goal.
        Z = np.asarray(E @ Y).reshape(m, n, S) - Y[goals][:, None]
        small = np.eye(n) + Z @ F.transpose(0, 2, 1)
        for _ in range(3):
            right[each, goals] = 0.0
            right[each, goals] = -(right @ share) / share[goals]
            y = _try(np.linalg.solve, small, Z @ right[:, :, None])
            step = (right - (y.transpose(0, 2, 1) @ F)[:, 0]) @ Y.T
            h += step - step[each, goals][:, None]
            if max_error == inf:
                return h, ~proved
            # The residual is the right side of a refinement.
            y = E.multiply(np.repeat(h, n, axis=0)).sum(axis=1).reshape(m, 1, n)
            right = costs - h @ M.T - (y @ F)[:, 0]
            right[each, goals] = 0.0
            error = (np.abs(right) + rounding * np.abs(h).max(axis=1, keepdims=True)) / costs
            proved = error.max(axis=1) <= max_error
            if proved.all():
                break
    return h, proved


def _eliminate(P: Array, cost: Array, goals: NDArray[np.intp]) -> Array:
    """``(m, S)`` steps to m goals from rates ``(m, S, S)`` and costs (Grassmann, Taksar and Heyman, 1985)."""
    # States are taken out one by one, and the sum of the rates to the others takes the place of the diagonal: without a
    # subtraction, numbers keep their digits, however many steps the walk takes.
    S, each, times, total = cost.shape[1], np.arange(len(goals)), np.zeros_like(cost), np.zeros_like(cost)
    # Column S has the rates to the goal, which is no other state, and column S + 1 the cost.
    P = np.concatenate([P, P[each, :, goals][:, :, None], cost[:, :, None]], axis=2)
    P[each, :, goals], P[each, goals], P[each, goals, S] = 0.0, 0.0, 1.0
    with np.errstate(all="ignore"):
        for s in range(S):
            total[:, s] = P[:, s, s + 1 : S + 1].sum(axis=1)
            P[:, s + 1 :, s] /= total[:, s, None]
            P[:, s + 1 :, s + 1 :] += P[:, s + 1 :, s, None] * P[:, s, None, s + 1 :]
        for s in reversed(range(S)):
            later = (P[:, s, s + 1 : S] * times[:, s + 1 :]).sum(axis=1)
            times[:, s] = (P[:, s, S + 1] + later) / total[:, s]
    if not np.isfinite(times).all():
        raise OverflowError(f"{_TRAPPED}: more than 1e290 steps to a goal; {_REMEDY}")
    return times


def _try(function: Callable[..., Any], *arguments: Array) -> Array:
    """The inverse or solution; nan, which proves nothing, where the matrix is singular: options that trap the walk."""
    try:
        return np.asarray(function(*arguments), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(arguments[-1], np.nan)


def _prepare_walk(
    mdp: MDP, options: OptionSet | None, stop_chance: float
) -> tuple[MDP, NDArray[np.int32], NDArray[np.intp]]:
    """The table of a walk that never ends, the policies in it ``(n, kept)``, and the numbers of the states kept."""
    check_type("mdp", mdp, MDP, "make one with maze(...)")
    check_float("stop_chance", stop_chance, minimum=0, maximum=1)
    policy = np.where(find_ends(mdp), TERMINATE, stack_policies(mdp, options))
    kept = np.arange(mdp.n_states)
    table = continue_after_end(mdp, goal_ends=False)
    if mdp.start is not None:
        kept = np.flatnonzero(reachable(table.transition, [mdp.start]))
    if len(kept) < mdp.n_states:
        left_out = _list_states(np.setdiff1d(np.arange(mdp.n_states), kept))
        log.warning("left out of the diffusion time: %s that cannot be reached from the start", left_out)
        rows = (kept[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
        table, policy = MDP(table.transition[rows][:, kept]), policy[:, kept]
    if table.n_states < 2:
        raise ValueError("diffusion time is between different states, but this MDP has 1 state")
    both_ways = reachable(table.transition, [0]) & reachable(table.transition, [0], backward=True)
    if not both_ways.all():
        lost, remedy = _list_states(kept[~both_ways]), "keep only states that can all reach each other"
        raise ValueError(
            f"the diffusion time is infinite to or from {lost}, seen from state {kept[0]}; {remedy}"
        )
    for o, row in enumerate(policy if stop_chance == 0 else ()):
        terminates = reachable(policy_transitions(table, row), row < 0, backward=True)
        if not terminates.all():
            lost, remedy = _list_states(kept[~terminates]), "give it a state where it terminates (-1)"
            raise ValueError(f"option number {o} never terminates from {lost}; {remedy}, or a stop_chance")
    return table, policy, kept


def _list_states(states: NDArray[np.intp]) -> str:
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def _mean_pairs(H: Array) -> float:
    return float(H.sum() / (len(H) * (len(H) - 1)))


def _resolve_chances(options: Any, option_chance: Chance, stop_chance: float) -> tuple[float | None, float]:
    chosen = resolve_exploration(options, option_chance, stop_chance)
    if chosen.option_chance is not None:
        # At 1, primitive actions would be taken only where no option is available, and goals could be out of reach.
        check_float("option_chance", chosen.option_chance, minimum=0, below=1)
    return chosen.option_chance, chosen.stop_chance
