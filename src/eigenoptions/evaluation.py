"""Diffusion time: expected steps of a random walk over actions and options (paper, Section 4.2 and Appendix B).

A decision in state s is for each of the A actions with weight a(s), and for each option available there with weight
w(s); N(s) is the sum. For a goal g, the expected steps h obey h(g) = 0 and elsewhere

    N(s) h(s) - a(s) sum_actions E[h(s')] - w(s) sum_o [T_o(s, .) - q_o(s, g) T_o(g, .)] h
        = a(s) A + w(s) sum_o [c_o(s) - q_o(s, g) c_o(g)]

where an option o started in s terminates in t with probability T_o(s, t), takes c_o(s) steps, and passes through g with
probability q_o(s, g); the walk stops the moment it touches g, also in the middle of an option. The terms without q are
M h, the same for all goals: one inverse ``Y = (M + 11')^-1`` serves them all, and each goal adds a small system with
one unknown ``T_o(g, .) h`` per option that passes through g (one for all options that go on to the same state).

Without row and column g, the matrix is an M-matrix. So a residual of at most e times the right side, in every row,
proves a relative error of at most e in every entry of h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import coo_array, csr_array, vstack

from eigenoptions._validation import check_float, check_int, check_type, make_generator
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import make_tables, stack_policies
from eigenoptions.parallel import run_jobs

Progress = Callable[[int, int], object]
Array = NDArray[np.float64]

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
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> float:
    """Mean expected number of primitive steps between two different states (Section 4.2, Appendix B).

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics of at most 4,000 states, each reachable from every other.
    options : OptionSet, optional
        Options of this MDP; None for primitive actions only.
    option_chance : float in [0, 1), optional
        Probability that a decision is for an option where one is available, uniformly among these. None: uniform over
        the actions and the available options, as in the paper.
    stop_chance : float in [0, 1], default 0
        Probability that an option also terminates after each of its steps.
    progress : callable, optional
        Called with goals done and goals in all.

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
    times = hitting_times(
        mdp, options, option_chance=option_chance, stop_chance=stop_chance, progress=progress
    )
    return _mean_pairs(times)


def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> Array:
    """Diffusion time as options are added one by one, in their order (Section 4.2, Figure 6).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`.
    progress : callable, optional
        Called with values done and values in all.

    Returns
    -------
    ndarray
        ``(len(options) + 1,)``: without options, with the first, with the first two, and so on; inf where the options
        trap the walk so that `diffusion_time` raises OverflowError.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> ends = [eo.Purpose(np.eye(5)[s], f"to {s}") for s in (0, 4)]
    >>> diffusion_curve(mdp, eo.solve(mdp, ends)).round(1).tolist()
    [20.0, 37.1, 5.8]
    """
    walk, option_chance = _Walk(mdp, options, stop_chance), _check_option_chance(option_chance)
    curve = np.full(walk.n_options + 1, inf)
    for n in range(len(curve)):
        curve[n] = walk.compute_mean(option_chance, n)
        if progress is not None:
            progress(n + 1, len(curve))
    return curve


def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    progress: Progress | None = None,
) -> Array:
    """``(S, S)`` expected number of primitive steps from every start (row) to every goal (column) (Appendix B).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance, progress
        As in `diffusion_time`, whose value is the mean of the entries off the diagonal.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    option_chance = _check_option_chance(option_chance)
    return _Walk(mdp, options, stop_chance).solve(option_chance, progress=progress)


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
        Called with values done and the most there can be.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> best = best_option_chance(mdp, eo.discover(mdp, n_options=4))
    >>> round(best.chance, 2), round(best.diffusion_time, 1), round(best.uniform_diffusion_time)
    (0.05, 267.7, 13525)
    """
    walk = _Walk(mdp, options, stop_chance)
    if not walk.n_options:
        raise ValueError("there are no options, so no option chance: discover at least one")
    # The logarithm of the diffusion time is a smooth function of the log-odds of the chance.
    grid, max_refinements, logs = [-9, -7, -4.5, -3, -1.5, 0, 2, 4.5], 10, dict[float, float]()

    def compute(log_odds: float) -> float:
        mean = _mean_pairs(walk.solve(1 / (1 + exp(-log_odds)), prove=False))
        logs[float(log_odds)] = log(mean) if 0 < mean < 1e300 else 1e3
        if progress is not None:
            progress(len(logs), len(grid) + max_refinements)
        return logs[float(log_odds)]

    for x in grid:
        if compute(x) > min(logs.values()) + log(100):
            break
    xs = list(logs)
    i = min(range(len(xs)), key=lambda i: logs[xs[i]])
    bounds = xs[max(i - 1, 0)], xs[min(i + 1, len(xs) - 1)]
    minimize_scalar(
        compute, bounds=bounds, method="bounded", options={"xatol": 1e-2, "maxiter": max_refinements}
    )
    chance = 1 / (1 + exp(-min(logs, key=logs.__getitem__)))
    best, uniform, primitive = walk.compute_mean(chance), walk.compute_mean(None), walk.compute_mean(None, 0)
    return BestChance(chance if best < primitive else 0.0, min(best, primitive), primitive, uniform)


@dataclass(frozen=True)
class Estimate:
    """A diffusion time estimated from samples.

    Attributes
    ----------
    mean, low, high, confidence : float
        Mean over the walks, ends of the interval that holds the true value, and the confidence that it does.
    walks, steps : int
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
        interval = f"{100 * self.confidence:g}% between {self.low:.4g} and {self.high:.4g}"
        return f"{self.mean:.4g} ({interval}, from {self.walks} walks)"


def diffusion_estimate(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
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
    check_int("walks", walks, 2)
    check_int("max_steps", max_steps)
    check_float("confidence", confidence, above=0, below=1)
    policy, _ = _check_walk(mdp, options, stop_chance)
    tables = make_tables(mdp, policy, _check_option_chance(option_chance), stop_chance)
    generator = make_generator(rng)
    starts, seeds = generator.integers(mdp.n_states, size=walks), generator.integers(2**63, size=walks)
    jobs = list(zip(starts.tolist(), seeds.tolist(), strict=True))
    results = run_jobs(_cover, jobs, shared={"tables": tables, "max_steps": max_steps}, progress=progress)
    means, steps = np.array(results).T
    mean, (low, high) = float(means.mean()), mean_interval(means, confidence)
    return Estimate(mean, max(float(low), 1.0), float(high), confidence, walks, int(steps.sum()))


def _cover(job: tuple[int, int], tables: tuple[Any, Any], max_steps: int) -> tuple[float, int]:
    """Mean steps to the other states, and steps until the last of them, of one walk."""
    from eigenoptions._kernels.walking import Episodes, wander

    (start, seed), n_states = job, len(tables[1].policy)
    endless = Episodes(np.zeros(1, dtype=np.int64), -1, np.iinfo(np.int64).max)
    place, counter = np.array([start, -1, 0, n_states - 1]), np.array([seed], dtype=np.uint64)
    touched, nothing, total = np.zeros(n_states, dtype=np.uint8), np.empty(0, dtype=np.int64), 0.0
    touched[start] = 1
    while place[3] and place[2] < max_steps:
        # In pieces of about a second, between which the walk can be interrupted.
        n_steps = min(20_000_000, max_steps - int(place[2]))
        total += wander(*tables, endless, place, counter, n_steps, touched, nothing, nothing, nothing)
    if place[3]:
        missing = _list_states(np.flatnonzero(touched == 0))
        raise ValueError(
            f"a walk had not touched {missing} after {max_steps:,} steps, so there is no interval: raise max_steps, "
            "or use other options"
        )
    return total / (n_states - 1), int(place[2])


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
    """The equations of a random walk over the actions and the first n options of a set, for any option chance."""

    def __init__(self, mdp: MDP, options: OptionSet | None, stop_chance: float) -> None:
        policy, all_terminate = _check_walk(mdp, options, stop_chance)
        if mdp.n_states > MAX_STATES:
            limit = f"exact diffusion times need at most {MAX_STATES:,} states, got {mdp.n_states:,}"
            raise ValueError(f"{limit}: use diffusion_estimate, which samples")
        self.n_options, self.n_states = n, S = policy.shape
        self.runs, self.n_actions = policy >= 0, mdp.n_actions
        self.moves = mdp.transition.toarray().reshape(S, mdp.n_actions, S).mean(axis=1)
        # q_o(s, g) in row o S + g and column s; T_o(s, t) in row o S + s and column t; c_o(s).
        is_traced = mdp.successors is not None and all_terminate
        follow = _trace_options if is_traced else _invert_options
        self.passes, self.ends, self.steps = follow(mdp, policy, stop_chance)
        # The unknown of goal g that option o contributes to. Options that go on to the same state share one.
        passed = np.diff(self.passes.indptr).reshape(n, S) > 0
        self.channel = np.where(passed, np.arange(n)[:, None], -1)
        if is_traced and stop_chance == 0:
            number, count = np.full((S, S), -1), np.zeros(S, dtype=np.int64)
            for o in range(n):
                goals = np.flatnonzero(passed[o])
                end = self.ends.indices[self.ends.indptr[o * S + goals]]
                is_new = number[goals, end] < 0
                number[goals[is_new], end[is_new]] = count[goals[is_new]]
                count[goals[is_new]] += 1
                self.channel[o, goals] = number[goals, end]

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
        *,
        prove: bool = True,
        progress: Progress | None = None,
    ) -> Array:
        """``(S, S)`` expected steps from each start to each goal with the first n options."""
        S, n = self.n_states, self.n_options if n is None else n
        # Weights of an action and of an option in each state.
        available = self.runs[:n].sum(axis=0)
        a, w = np.full(S, float(self.n_actions)), np.ones(S)
        if option_chance is not None:
            a = np.where(available > 0, 1.0 - option_chance, 1.0)
            w = np.where(available > 0, option_chance, 0.0) / np.maximum(available, 1)

        # Right sides K (S, goals), rates of decisions that lead from state to state, and M with its inverse.
        passes, ends = self.passes[: n * S].tocoo(), self.ends[: n * S].tocoo()
        (row, start), q = passes.coords, passes.data
        option, goal = row // S, row % S
        saved = coo_array((q * self.steps[option, goal], (start, goal)), shape=(S, S)).toarray()
        K = a[:, None] + w[:, None] * (self.steps[:n].sum(axis=0)[:, None] - saved)
        end_sums = coo_array((ends.data, (ends.row % S, ends.col)), shape=(S, S)).toarray()
        rates = a[:, None] * self.moves + w[:, None] * end_sums
        M = np.diag(a + w * available) - rates
        Y = _try(np.linalg.inv, M + 1.0)
        share = Y.sum(axis=0)  # the null vector of M'
        max_error = MAX_ERROR if S <= MAX_ELIMINATION_STATES else MAX_ERROR_LARGE
        n_terms = np.count_nonzero(M, axis=1) + 2 * self.n_options + 4
        rounding = np.finfo(float).eps * n_terms * M.diagonal()

        channel = self.channel[option, goal]
        width = int(channel.max(initial=-1)) + 1
        example = np.zeros((S, width), dtype=np.int64)
        example[goal, channel] = option
        size, H = max(1, BLOCK_SIZE // (max(1, width) * S)), np.empty((S, S))
        for low in range(0, S, size):
            # The equations of some goals, except in the row of the goal: M h + F' y = K where y = E h. F has the sums
            # of w(s) q_o(s, g) over the options of a channel, E their T_o(g, .).
            goals = np.arange(low, min(low + size, S))
            m, column = len(goals), np.arange(len(goals))
            here = (goal >= low) & (goal < low + size)
            place = (goal[here] - low) * width + channel[here], start[here]
            F = coo_array((q[here] * w[start[here]], place), shape=(m * width, S)).toarray()
            F = F.reshape(m, width, S)
            E = csr_array(self.ends[(example[goals] * S + goals[:, None]).ravel()])
            row = np.repeat(np.arange(m * width), np.diff(E.indptr))

            def read_ends(h: Array, E: csr_array = E, row: Any = row, m: int = m) -> Array:
                """``(m, width)``: E h, each goal with its own column of h."""
                values = E.data * h[E.indices, row // max(width, 1)]
                return np.bincount(row, values, minlength=m * width).astype(np.float64).reshape(m, width)

            def solve_actions(right: Array, goals: Any = goals, column: Any = column) -> Array:
                """``(S, m)``: the solution of M h = right with h = 0 in the goal, whose row is left out."""
                # An entry in this row makes the right side orthogonal to the null vector.
                right[goals, column] = 0.0
                right[goals, column] = -(share @ right) / share[goals]
                h: Array = Y @ right
                h -= h[goals, column]
                return h

            with np.errstate(all="ignore"):
                # The small systems for y: E times `solve_actions` of K - F' y.
                Z = np.asarray(E @ Y).reshape(m, width, S) - Y[goals, None]
                small = np.eye(width) + Z @ F.transpose(0, 2, 1)
                small -= Z[column, :, goals][:, :, None] * (F @ share / share[goals, None])[:, None]
                h, right, unproved = np.zeros((S, m)), K[:, goals], np.full(m, prove)
                for _ in range(3):
                    y = read_ends(solve_actions(right.copy()))[:, :, None]
                    y = _try(np.linalg.solve, small, y).transpose(0, 2, 1)
                    h += solve_actions(right - (y @ F)[:, 0].T)
                    if not prove:
                        break
                    # The residual is also the right side of a refinement.
                    right = K[:, goals] - M @ h - (read_ends(h)[:, None] @ F)[:, 0].T
                    right[goals, column] = 0.0
                    error = (np.abs(right) + rounding[:, None] * np.abs(h).max(axis=0)) / K[:, goals]
                    unproved = ~(error.max(axis=0) <= max_error)
                    if not unproved.any():
                        break
            if unproved.any() and S > MAX_ELIMINATION_STATES:
                state = goals[unproved.argmax()]
                raise OverflowError(f"{_TRAPPED}: more than 1e12 steps to state {state}; {_REMEDY}")
            n_parts = 1 + unproved.sum() * S**2 // 2**20
            for part in np.array_split(np.flatnonzero(unproved), n_parts):
                P = np.empty((len(part), S, S))
                for i, j in enumerate(part):
                    P[i] = rates - F[j].T @ E[j * width : (j + 1) * width].toarray()
                    # A difference of rounding size is zero: all of these options pass through the goal.
                    P[i][P[i] < 1e-13 * rates] = 0.0
                    P[i][:, goals[j]] += F[j].sum(axis=0)
                h[:, part] = _eliminate(P, K[:, goals[part]].T, goals[part]).T
            H[:, goals] = h
            if progress is not None:
                progress(int(goals[-1]) + 1, S)
        return H


def _eliminate(P: Array, cost: Array, goals: NDArray[np.intp]) -> Array:
    """``(n, S)`` expected steps to n goals, without a subtraction (Grassmann, Taksar and Heyman, 1985).

    `P` (n, S, S) are rates, `cost` (n, S) steps times rates. States are taken out one by one, and the sum of the rates
    to the others takes the place of the diagonal. Sums and products of positive numbers keep their digits, however
    many steps the walk takes.
    """
    n, S = cost.shape
    # The goal changes places with state 0.
    order = np.tile(np.arange(S), (n, 1))
    order[np.arange(n), goals], order[:, 0] = 0, goals
    P = P[np.arange(n)[:, None, None], order[:, :, None], order[:, None]]
    cost, times = np.take_along_axis(cost, order, axis=1), np.zeros((n, S))
    with np.errstate(all="ignore"):
        for high in range(S, 1, -32):
            low = max(high - 32, 1)
            for s in range(high - 1, low - 1, -1):
                total = P[:, s, :s].sum(axis=1, keepdims=True)
                P[:, s, :s] /= total
                cost[:, s] /= total[:, 0]
                cost[:, :s] += P[:, :s, s] * cost[:, s, None]
                P[:, low:s, :s] += P[:, low:s, s, None] * P[:, None, s, :s]
                P[:, :low, low:s] += P[:, :low, s, None] * P[:, None, s, low:s]
            # The rest of the block at once.
            P[:, :low, :low] += P[:, :low, low:high] @ P[:, low:high, :low]
        for s in range(1, S):
            times[:, s] = cost[:, s] + (P[:, s, :s] * times[:, :s]).sum(axis=1)
    if not np.isfinite(times).all():
        raise OverflowError(f"{_TRAPPED}: more than 1e290 steps to a goal; {_REMEDY}")
    return np.take_along_axis(times, order, axis=1)


def _try(function: Callable[..., Any], *arguments: Array) -> Array:
    """The inverse or solution; nan, which proves nothing, where the matrix is singular: options that trap the walk."""
    try:
        return np.asarray(function(*arguments), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(arguments[-1], np.nan)


def _trace_options(
    mdp: MDP, policy: NDArray[np.int32], stop_chance: float
) -> tuple[csr_array, csr_array, Array]:
    """`passes`, `ends` and `steps` of options that terminate, in deterministic dynamics: follow all paths at once."""
    (n, S), runs = policy.shape, policy >= 0
    assert mdp.successors is not None
    successors = mdp.successors[np.arange(S), np.maximum(policy, 0)]
    option, start = np.nonzero(runs)
    state: NDArray[Any] = start
    probability, steps = 1.0, np.zeros((n, S))
    passes, ends = [(np.zeros(0), option[:0], start[:0])], [(np.zeros(0), option[:0], state[:0])]
    while len(option) and probability > 0.0:
        steps[option, start] += probability
        state = successors[option, state]
        goes_on = runs[option, state]
        ends.append((probability * np.where(goes_on, stop_chance, 1.0), option * S + start, state))
        option, start, state = option[goes_on], start[goes_on], state[goes_on]
        probability *= 1.0 - stop_chance
        passes.append((np.full(len(option), probability), option * S + state, start))

    def add_up(entries: list[tuple[Any, Any, Any]]) -> csr_array:
        value, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        table = csr_array(coo_array((value, (row, column)), shape=(n * S, S)))
        table.eliminate_zeros()
        return table

    return add_up(passes), add_up(ends), steps


def _invert_options(
    mdp: MDP, policy: NDArray[np.int32], stop_chance: float
) -> tuple[csr_array, csr_array, Array]:
    """The same in stochastic dynamics, or for cyclic paths: from the expected visits of each option."""
    n, S = policy.shape
    passes, ends, steps = [], [], np.zeros((n, S))
    for o, row in enumerate(policy):
        runs = row >= 0
        P = mdp.transition[np.arange(S) * mdp.n_actions + np.maximum(row, 0)].toarray()
        P[~runs] = 0.0
        visits = np.linalg.inv(np.eye(S) - (1.0 - stop_chance) * P * runs)
        ends.append(csr_array(visits @ (P * np.where(runs, stop_chance, 1.0))))
        visits[~runs] = visits[:, ~runs] = 0.0
        steps[o] = visits.sum(axis=1)
        if not (steps[o] >= 0).all() or steps[o].max(initial=0) > 1e6:
            raise OverflowError(f"{_TRAPPED}: option number {o} runs for more than 1e6 steps; {_REMEDY}")
        q = (visits / np.where(runs, visits.diagonal(), 1.0)).T
        np.fill_diagonal(q, 0.0)
        passes.append(csr_array(q))
    empty = csr_array((0, S))
    return vstack([empty, *passes], format="csr"), vstack([empty, *ends], format="csr"), steps


def _check_walk(mdp: MDP, options: OptionSet | None, stop_chance: float) -> tuple[NDArray[np.int32], bool]:
    """Policies ``(n, S)`` of options, and whether all of them terminate by themselves."""
    check_type("mdp", mdp, MDP, "make one with maze(...)")
    check_float("stop_chance", stop_chance, minimum=0, maximum=1)
    if mdp.n_states < 2:
        raise ValueError("diffusion time is between different states, but this MDP has 1 state")
    policy, all_terminate = stack_policies(mdp, options), True
    for backward, problem in ((False, "cannot be reached from state 0"), (True, "cannot reach state 0")):
        lost = np.flatnonzero(~reachable(mdp.transition, [0], backward=backward))
        if len(lost):
            remedy = "keep only states that can all reach each other"
            raise ValueError(f"the diffusion time is infinite: {_list_states(lost)} {problem}; {remedy}")
    for o, row in enumerate(policy):
        followed = mdp.transition[np.arange(mdp.n_states) * mdp.n_actions + np.maximum(row, 0)]
        lost = np.flatnonzero(~reachable(followed, row < 0, backward=True))
        all_terminate &= not len(lost)
        if len(lost) and stop_chance == 0:
            remedy = "give it a state where it terminates (-1), or a stop_chance"
            raise ValueError(f"option number {o} never terminates from {_list_states(lost)}; {remedy}")
    return policy, all_terminate


def _list_states(states: NDArray[np.intp]) -> str:
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def _mean_pairs(H: Array) -> float:
    return float(H.sum() / (len(H) * (len(H) - 1)))


def _check_option_chance(option_chance: float | None) -> float | None:
    # At 1, primitive actions would be taken only where no option is available, and goals could be out of reach.
    return None if option_chance is None else check_float("option_chance", option_chance, minimum=0, below=1)
