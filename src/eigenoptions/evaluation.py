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
from functools import cache
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
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
# Numbers held at a time in the tables of all goals (270 MB), and in products of some of them.
TABLE_SIZE, PRODUCT_SIZE = 2**25, 2**20
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
    >>> round(diffusion_time(mdp), 3)
    620.769
    >>> options = eo.discover(mdp, n_options=64)
    >>> round(diffusion_time(mdp, options), 1), round(diffusion_time(mdp, options[:4], option_chance=0.05), 1)
    (218.4, 267.7)
    """
    chance = _check_option_chance(option_chance)
    return _mean(_Walk(mdp, options, stop_chance).solve(chance, progress))


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
        ``(len(options) + 1,)``: without options, with the first, with the first two, and so on.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> ends = [eo.Purpose(np.eye(5)[s], f"to {s}") for s in (0, 4)]
    >>> diffusion_curve(mdp, eo.solve(mdp, ends)).round(1).tolist()
    [20.0, 37.1, 5.8]
    """
    walk, option_chance = _Walk(mdp, options, stop_chance), _check_option_chance(option_chance)
    curve = np.empty(walk.n_options + 1)
    for n in range(len(curve)):
        walk.select(n)
        curve[n] = _mean(walk.solve(option_chance))
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
    """Expected number of primitive steps from every state to every goal (Appendix B).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance, progress
        As in `diffusion_time`, whose value is the mean of the entries off the diagonal.

    Returns
    -------
    ndarray
        ``(S, S)`` by start and goal, zeros on the diagonal.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    chance = _check_option_chance(option_chance)
    return _Walk(mdp, options, stop_chance).solve(chance, progress)


@dataclass(frozen=True)
class BestChance:
    """The option chance with the smallest diffusion time; see `best_option_chance`.

    Attributes
    ----------
    chance, diffusion_time
        Probability that a decision is for an option where one is available, and the diffusion time at this chance.
    primitive_diffusion_time, uniform_diffusion_time
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

    Notes
    -----
    The diffusion time is a smooth function of the chance. It is computed at eight chances from 1e-4 to 0.99; a
    polynomial in the log-odds through the values around the smallest gives the next, until two agree to 0.1%.

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
    log_odds = [-9, -7, -4.5, -3, -1.5, 0, 2, 4.5]
    max_refinements, times = 8, dict[float, float]()

    def compute(x: float) -> None:
        mean = _mean(walk.solve(1 / (1 + exp(-x)), prove=False))
        times[x] = mean if 0 < mean < inf else inf
        if progress is not None:
            progress(len(times), len(log_odds) + max_refinements)

    for x in log_odds:
        compute(x)
        if times[x] > 100 * min(times.values()):
            break
    for _ in range(max_refinements):
        # A polynomial through the smallest value and its neighbours.
        xs = sorted(x for x in times if times[x] < inf)
        i = min(range(len(xs)), key=lambda i: times[xs[i]])
        near = xs[max(i - 2, 0) : i + 3]
        polynomial = np.polynomial.Polynomial.fit(near, np.log([times[x] for x in near]), len(near) - 1)
        fine = np.linspace(xs[max(i - 1, 0)], xs[min(i + 1, len(xs) - 1)], 2001)
        x = float(fine[polynomial(fine).argmin()])
        if min(abs(x - other) for other in times) < 1e-3:
            break
        compute(x)
    chance = 1 / (1 + exp(-min(times, key=times.__getitem__)))
    best = _mean(walk.solve(chance))
    try:
        uniform = _mean(walk.solve(None))
    except OverflowError:
        uniform = inf
    walk.select(0)
    primitive = _mean(walk.solve(None))
    return BestChance(chance if best < primitive else 0.0, min(best, primitive), primitive, uniform)


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
    goals at once. The few goals that are hardest to reach dominate the mean; sampled goals would miss them, a walk
    waits for them. The interval is Student's, over walks.

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`, without its limit.
    walks : int, default 100
        Number of independent walks, at least 2. They are the jobs of `parallel.run_jobs`.
    max_steps : int, default 1e9
        Steps after which a walk gives up. Then ValueError is raised instead of an estimate: the states not yet touched
        could take any time, so no interval would be valid.
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
    low, high = mean_interval(means, confidence)
    return Estimate(
        float(means.mean()), max(float(low), 1.0), float(high), confidence, walks, int(steps.sum())
    )


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
        least = (total + place[3] * max_steps) / (n_states - 1)
        raise ValueError(
            f"a walk had not touched {_list_states(np.flatnonzero(touched == 0))} after {max_steps:,} steps (it alone "
            f"makes {least:.3g} or more), so there is no interval: raise max_steps, or use other options"
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
        check_type("mdp", mdp, MDP, "make one with maze(...)")
        if mdp.n_states > MAX_STATES:
            limit = f"exact diffusion times need at most {MAX_STATES:,} states, got {mdp.n_states:,}"
            raise ValueError(f"{limit}: use diffusion_estimate, which samples")
        policy, all_terminate = _check_walk(mdp, options, stop_chance)
        self.n_options, self.n_states = n, S = policy.shape
        self.runs = policy >= 0
        self.moves = mdp.transition.toarray().reshape(S, mdp.n_actions, S).mean(axis=1)
        self.n_actions = mdp.n_actions
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
        self.select(n)

    def select(self, n: int) -> None:
        """Use the first n options: what depends on them, and on no option chance."""
        S = self.n_states
        passes, ends = self.passes[: n * S].tocoo(), self.ends[: n * S].tocoo()
        (row, start), q = passes.coords, passes.data
        option, goal = row // S, row % S
        self.available = self.runs[:n].sum(axis=0)
        saved = coo_array((q * self.steps[option, goal], (start, goal)), shape=(S, S)).toarray()
        self.cost = self.steps[:n].sum(axis=0)[:, None] - saved
        self.end_sums = coo_array((ends.data, (ends.row % S, ends.col)), shape=(S, S)).toarray()
        # Blocks of goals, whose table F fits into memory; a single one is kept.
        width = int(self.channel[:n].max(initial=-1)) + 1
        size = min(S, max(1, TABLE_SIZE // max(1, width * S)))
        example = np.zeros((S, width), dtype=np.int64)
        example[goal, self.channel[option, goal]] = option

        def make_block(first: int) -> _Block:
            goals = np.arange(first, min(first + size, S))
            mine = (goal >= first) & (goal < first + size)
            place = (goal[mine] - first) * width + self.channel[option, goal][mine]
            F = coo_array((q[mine], (place, start[mine])), shape=(len(goals) * width, S)).toarray()
            E = csr_array(self.ends[(example[goals] * S + goals[:, None]).ravel()])
            return _Block(goals, F.reshape(len(goals), width, S), E)

        self.make_block = cache(make_block) if size == S else make_block
        self.firsts = range(0, S, size)

    def solve(
        self, option_chance: float | None, progress: Progress | None = None, *, prove: bool = True
    ) -> Array:
        """``(S, S)`` expected steps from each start to each goal, proved or by elimination."""
        S, available = self.n_states, self.available
        a, w = np.full(S, float(self.n_actions)), np.ones(S)
        if option_chance is not None:
            a = np.where(available > 0, 1.0 - option_chance, 1.0)
            w = np.where(available > 0, option_chance, 0.0) / np.maximum(available, 1)
        # At these rates a decision leads to other states, without a goal.
        rates = a[:, None] * self.moves + w[:, None] * self.end_sums
        M, K = np.diag(a + w * available) - rates, a[:, None] + w[:, None] * self.cost
        Y, H = _invert(M + 1.0), np.empty((S, S))
        max_error = MAX_ERROR if S <= MAX_ELIMINATION_STATES else MAX_ERROR_LARGE
        n_terms = np.count_nonzero(M, axis=1) + 2 * self.n_options + 4
        rounding = np.finfo(float).eps * n_terms * M.diagonal()
        for first in self.firsts:
            block = self.make_block(first)
            goals, column = block.goals, np.arange(len(block.goals))
            small, right, h = block.couple(Y, w), K[:, goals], np.zeros((S, len(goals)))
            unproved = np.full(len(goals), prove)
            with np.errstate(all="ignore"):
                for _ in range(3):
                    # The residual is also the right side of a refinement.
                    step = Y @ block.balance(right, small, Y, w)
                    h += step - step[goals, column]
                    if not prove:
                        break
                    right = K[:, goals] - M @ h - block.spread(block.read_ends(h), w)
                    right[goals, column] = 0.0
                    error = (np.abs(right) + rounding[:, None] * np.abs(h).max(axis=0)) / K[:, goals]
                    unproved = ~(error.max(axis=0) <= max_error)
                    if not unproved.any():
                        break
            for some in np.array_split(np.flatnonzero(unproved), 1 + unproved.sum() * S**2 // PRODUCT_SIZE):
                if len(some):
                    h[:, some] = block.eliminate(some, rates, w, K)
            H[:, goals] = h
            if progress is not None:
                progress(int(goals[-1]) + 1, S)
        return H


@dataclass(frozen=True)
class _Block:
    """Goals with their part of the equations, ``M h + w F' y = K`` where ``y = E h``, except in the row of the goal.

    F (goals, channels, S) has sums of q_o(s, g) over the options of a channel, E (goals * channels, S) their T_o(g, .).
    """

    goals: NDArray[np.intp]
    F: Array
    E: csr_array

    def read_ends(self, X: Array) -> Array:
        """``(goals, channels)``: E X, each goal with its own column of X."""
        n, width, _ = self.F.shape
        row = np.repeat(np.arange(n * width), np.diff(self.E.indptr))
        values = self.E.data * X[self.E.indices, row // max(width, 1)]
        return np.bincount(row, values, minlength=n * width).astype(np.float64).reshape(n, width)

    def spread(self, y: Array, w: Array) -> Array:
        """``(S, goals)``: w F' y."""
        return w[:, None] * (y[:, None, :] @ self.F)[:, 0].T

    def couple(self, Y: Array, w: Array) -> Array:
        """``(goals, channels, channels)``: the matrix of the small systems for y."""
        (n, width, S), goals = self.F.shape, self.goals
        weighted, share = Y * w, Y.sum(axis=0)
        small = np.empty((n, width, width))
        size = max(1, PRODUCT_SIZE // max(1, width * S))
        for low in range(0, n, size):
            part, F = slice(low, low + size), self.F[low : low + size].transpose(0, 2, 1)
            R = (self.E[low * width : (low + size) * width] @ weighted).reshape(len(F), width, S)
            small[part] = R @ F - weighted[goals[part], None] @ F
        # The entry in the row of the goal makes a right side orthogonal to the null vector of M'.
        lift = (self.F @ (share * w)) / share[goals, None]
        small -= (self.read_ends(Y[:, goals]) - Y[goals, goals][:, None])[:, :, None] * lift[:, None, :]
        small[:, np.arange(width), np.arange(width)] += 1.0
        return small

    def balance(self, K: Array, small: Array, Y: Array, w: Array) -> Array:
        """Right sides B such that ``Y B`` solves the equations for K, up to one number per goal."""
        goals, column, share = self.goals, np.arange(len(self.goals)), Y.sum(axis=0)
        B = K.copy()
        for is_coupled in (True, False):
            B[goals, column] = 0.0
            B[goals, column] = -(share @ B) / share[goals]
            if is_coupled:
                used = np.unique(self.E.indices)
                X = np.empty_like(B)
                X[used] = Y[used] @ B
                at_goal = (Y[goals] * B.T).sum(axis=1)
                try:
                    y = np.linalg.solve(small, (self.read_ends(X) - at_goal[:, None])[:, :, None])[:, :, 0]
                except np.linalg.LinAlgError:
                    # Options that trap the walk: nothing will be proved.
                    y = np.full(small.shape[:2], np.nan)
                B -= self.spread(y, w)
        return B

    def eliminate(self, columns: NDArray[np.intp], rates: Array, w: Array, K: Array) -> Array:
        """``(S, len(columns))`` expected steps to some of the goals, by elimination."""
        n, (_, width, S) = len(columns), self.F.shape
        if S > MAX_ELIMINATION_STATES:
            raise OverflowError(
                f"{_TRAPPED}: more than 1e12 steps to state {self.goals[columns[0]]}; {_REMEDY}"
            )
        P, cost, order = np.empty((n, S, S)), np.empty((n, S)), np.tile(np.arange(S), (n, 1))
        for i, j in enumerate(columns):
            goal = self.goals[j]
            passes = w[:, None] * self.F[j].T
            left = rates - passes @ self.E[j * width : (j + 1) * width].toarray()
            # A difference of rounding size is zero: all of these options pass through the goal.
            left[left < 1e-13 * rates] = 0.0
            left[:, goal] += passes.sum(axis=1)
            order[i, [0, goal]] = goal, 0
            P[i], cost[i] = left[np.ix_(order[i], order[i])], K[order[i], goal]
        times = _eliminate(P, cost)
        if not np.isfinite(times).all():
            raise OverflowError(f"{_TRAPPED}: more than 1e290 steps to a goal; {_REMEDY}")
        return np.take_along_axis(times, order, axis=1).T


def _eliminate(P: Array, cost: Array) -> Array:
    """``(n, S)`` expected steps to state 0 of n walks, without a subtraction (Grassmann, Taksar and Heyman, 1985).

    `P` (n, S, S) are rates, `cost` (n, S) steps times rates; both are overwritten. States are taken out one by one, and
    the sum of the rates to the others takes the place of the diagonal. Sums and products of positive numbers keep
    their digits, however many steps the walk takes.
    """
    n, S = cost.shape
    times = np.zeros((n, S))
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
    return times


def _invert(matrix: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        # Nothing will be proved.
        return np.full_like(matrix, np.nan)


_NOTHING: Any = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _trace_options(
    mdp: MDP, policy: NDArray[np.int32], stop_chance: float
) -> tuple[csr_array, csr_array, Array]:
    """`passes`, `ends` and `steps` of options that terminate, in deterministic dynamics: follow all paths at once."""
    n, S = policy.shape
    runs = policy >= 0
    assert mdp.successors is not None
    successors = mdp.successors[np.arange(S), np.maximum(policy, 0)]
    option, start = np.nonzero(runs)
    probability, steps = 1.0, np.zeros((n, S))
    state: NDArray[np.integer[Any]] = start
    passes, ends = [_NOTHING], [_NOTHING]
    while len(option) and probability > 0.0:
        steps[option, start] += probability
        state = successors[option, state]
        goes_on = runs[option, state]
        ends.append((probability * np.where(goes_on, stop_chance, 1.0), option * S + start, state))
        option, start, state = option[goes_on], start[goes_on], state[goes_on]
        probability *= 1.0 - stop_chance
        passes.append((np.full(len(option), probability), option * S + state, start))
    tables = []
    for parts in (passes, ends):
        value, row, column = (np.concatenate(part) for part in zip(*parts, strict=True))
        tables.append(csr_array(coo_array((value, (row, column)), shape=(n * S, S))))
        tables[-1].eliminate_zeros()
    return tables[0], tables[1], steps


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
    policy = stack_policies(mdp, options)
    for backward, problem in ((False, "cannot be reached from state 0"), (True, "cannot reach state 0")):
        lost = np.flatnonzero(~reachable(mdp.transition, [0], backward=backward))
        if len(lost):
            remedy = "keep only states that can all reach each other"
            raise ValueError(f"the diffusion time is infinite: {_list_states(lost)} {problem}; {remedy}")
    for o, row in enumerate(policy):
        followed = mdp.transition[np.arange(mdp.n_states) * mdp.n_actions + np.maximum(row, 0)]
        lost = np.flatnonzero(~reachable(followed, row < 0, backward=True))
        if len(lost) and stop_chance == 0 and options is not None:
            raise ValueError(
                f"option {options.labels[o]!r} never terminates from {_list_states(lost)}, so the walk may never reach "
                "a goal; give it a state where it terminates (-1), or a stop_chance"
            )
        if len(lost):
            return policy, False
    return policy, True


def _list_states(states: NDArray[np.intp]) -> str:
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def _mean(H: Array) -> float:
    return float(H.sum() / (len(H) * (len(H) - 1)))


def _check_option_chance(option_chance: float | None) -> float | None:
    # At 1, primitive actions would be taken only where no option is available, and goals could be out of reach.
    return None if option_chance is None else check_float("option_chance", option_chance, minimum=0, below=1)
