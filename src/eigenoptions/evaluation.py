"""Diffusion time: how far a random walk over actions and options is from everywhere (paper, Section 4.2, Appendix B).

For a goal g the expected steps h obey h(g) = 0 and, elsewhere, h(s) = mean over the choices at s (primitive actions,
and the options that may start there) of their steps plus h where they end; an option that touches g stops there.
Diffusion time is the mean of h over all ordered pairs of different states.

With few options h grows exponentially and a linear solver in double precision returns noise. So every solution is
proved by its residual, and what cannot be proved is computed again without a subtraction (`_kernels.elimination`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.special import stdtrit

from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

LIMIT = 4_000  # states for exact answers: four dense arrays of half a GB together
TRUST = 1e-9  # relative error up to which a linear solution is believed
ROOM = 30_000_000  # numbers that an elimination may hold
GROUP = 512  # most goals an elimination serves between two reports of progress

Progress = Callable[[int, int], None]
Array = NDArray[np.float64]


def diffusion_time(mdp: MDP, options: OptionSet | None = None, *, progress: Progress | None = None) -> float:
    """Mean expected number of primitive steps between two different states (Section 4.2, Appendix B).

    Each decision is uniform over the primitive actions and the options that may start there. Options run to their
    end, but the walk stops the moment it touches the goal. Exact to a relative error of 1e-9, however large.

    Parameters
    ----------
    mdp
        Deterministic or stochastic dynamics of at most 4,000 states, every state reachable from every other.
    options
        Made for this MDP; None for primitive actions only.
    progress
        Called with goals done and goals in all, in long computations.

    Returns
    -------
    float
        Raises OverflowError where the answer is beyond 1e290, ValueError where it is infinite.

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


def diffusion_curve(mdp: MDP, options: OptionSet, *, progress: Progress | None = None) -> Array:
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
    curve = np.empty(len(walk.policy) + 1)
    for m in range(len(curve)):
        curve[m] = walk.means(m).mean()
        if progress:
            progress(m + 1, len(curve))
    return curve


def hitting_times(mdp: MDP, options: OptionSet | None = None, *, progress: Progress | None = None) -> Array:
    """Expected number of primitive steps from every state to every goal (Appendix B).

    Parameters
    ----------
    mdp, options, progress
        As for `diffusion_time`, whose value is the mean of the entries off the diagonal.

    Returns
    -------
    ndarray
        ``(S, S)`` by start and goal, zeros on the diagonal. ``h.sum(axis=0) / (S - 1)`` says which goals are hard to
        reach, ``h.sum(axis=1) / (S - 1)`` from where it is far.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    return _Walk(mdp, options).pairs(progress)


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
    from eigenoptions._kernels.walks import cover

    _whole(walks, 2, "walks")
    _whole(max_steps, 1, "max_steps")
    if not (isinstance(confidence, int | float | np.floating) and 0 < confidence < 1):
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    policy = _policy(mdp, options)
    policy = policy.astype(np.min_scalar_type(-mdp.n_actions - 1))  # small: it is read at every step
    n = mdp.n_states
    generator = np.random.default_rng(rng)
    offered = csr_array(policy.T >= 0)
    table = mdp.transition
    sums = cumulate(table.indptr, table.data)
    values = np.empty(walks)
    count = np.empty(1, dtype=np.uint64)
    steps = 0
    for i in range(walks):
        start = int(generator.integers(n))
        count[0] = generator.integers(2**64, dtype=np.uint64)
        place = np.array([start, -1, 0, n - 1], dtype=np.int64)
        touched = np.zeros(n, dtype=np.uint8)
        touched[start] = 1
        total = 0.0
        while place[3] and place[2] < max_steps:  # in pieces, so that Ctrl-C is heard
            budget = min(20_000_000, max_steps - int(place[2]))
            total += cover(
                table.indptr, table.indices, sums, mdp.n_actions, policy, offered.indptr, offered.indices, place,
                count, touched, budget,
            )  # fmt: skip
        if place[3]:
            least = (total + float(place[3]) * max_steps) / (n - 1)
            raise ValueError(
                f"walk {i + 1} of {walks} had not touched {_some(np.flatnonzero(touched == 0))} after {max_steps:,} "
                f"steps, so no interval can be told (that walk alone makes {least:.3g} or more): "
                "raise max_steps, or use other options"
            )
        values[i] = total / (n - 1)
        steps += int(place[2])
        if progress:
            progress(i + 1, walks)
    mean = float(values.mean())
    half = float(stdtrit(walks - 1, 0.5 + confidence / 2) * values.std(ddof=1) / np.sqrt(walks))
    return Estimate(mean, max(mean - half, 1.0), mean + half, float(confidence), int(walks), steps)


class _Walk:
    """A checked random walk over actions and options, with what all its answers share.

    Only this file sees it; it saves passing a dozen arrays around. Answers take the first m options.
    """

    def __init__(self, mdp: MDP, options: OptionSet | None) -> None:
        if isinstance(mdp, MDP) and mdp.n_states > LIMIT:
            raise ValueError(
                f"exact diffusion times need at most {LIMIT:,} states, got {mdp.n_states:,}: "
                "use diffusion_estimate, which samples"
            )
        self.policy = _policy(mdp, options)
        self.mdp = mdp
        self.nxt = mdp.successors
        self.added = -1  # options in M and K
        if self.nxt is not None:
            self._lay_ways(self.nxt)

    def _lay_ways(self, nxt: NDArray[np.int32]) -> None:
        """Next state, steps to the end and end of each option, and states farthest from the end first: each (k, S)."""
        from eigenoptions._kernels.planning import run

        k, n = self.policy.shape
        self.length = np.empty((k, n), dtype=np.int32)
        self.end = np.empty((k, n), dtype=np.int32)
        for o in range(k):
            run(nxt, self.policy[o], self.length[o], self.end[o])
        followed = nxt[np.arange(n), np.maximum(self.policy, 0)]
        self.step = np.where(self.policy >= 0, followed, -1).astype(np.int32)
        self.order = np.argsort(-self.length, axis=1, kind="stable").astype(np.int32)
        self.M = np.zeros((n, n))
        self.K = np.zeros((n, n))

    def means(self, m: int, progress: Progress | None = None) -> Array:
        """``(S,)`` mean steps to each goal from the other states."""
        n = self.mdp.n_states
        goals: NDArray[np.intp] = np.arange(n)
        means = np.zeros(n)
        if self.nxt is not None:
            H, goals = self._linear(self.nxt, m)
            means = H.sum(axis=0) / (n - 1)
        if len(goals):
            means[goals] = self._accurate(m, goals, np.full((1, n), 1.0 / (n - 1)), progress)[0]
        return means

    def pairs(self, progress: Progress | None = None) -> Array:
        """``(S, S)`` steps from each start to each goal."""
        n, m = self.mdp.n_states, len(self.policy)
        H, goals = np.empty((n, n)), np.arange(n)
        if self.nxt is not None:
            H, goals = self._linear(self.nxt, m)
        if len(goals):
            H[:, goals] = self._accurate(m, goals, np.eye(n), progress)
        return H

    def _linear(self, nxt: NDArray[np.int32], m: int) -> tuple[Array, NDArray[np.intp]]:
        """Steps (start, goal) from one inverse for all goals, and the goals for which they cannot be proved."""
        from eigenoptions._kernels import diffusion

        if self.added < 0:
            diffusion.add_moves(nxt, self.M, self.K)
            self.added = 0
        while self.added < m:
            o = self.added
            diffusion.add_option(self.step[o], self.length[o], self.end[o], self.M, self.K)
            self.added += 1
        n = len(nxt)
        H, goals = np.zeros((n, n)), np.arange(n)
        try:
            Z = np.linalg.inv(self.M.T + 1.0)
        except np.linalg.LinAlgError:
            return H, goals
        step, end, order = self.step[:m], self.end[:m], self.order[:m]
        share = Z.sum(axis=1)
        cost, right, worst = self.K, self.K.copy(), np.full(n, np.inf)
        while True:
            with np.errstate(all="ignore"):  # what is not a number will not be proved
                P = Z.T @ right
                diffusion.right_sides(step, end, order, Z, share, goals, P, right, ROOM)
                np.matmul(Z.T, right, out=P)
                P -= P[goals, np.arange(len(goals))]
            if cost is self.K:
                H = P
            else:
                P += H[:, goals]
                H[:, goals] = P
            bound = np.empty(len(goals))
            diffusion.residuals(nxt, step, end, goals, cost, P, right, bound)
            # A right answer is done; one that came nearer is refined, by solving for what is left.
            again = (bound > TRUST) & (bound < 0.1 * worst[goals])
            worst[goals] = bound
            if not again.any():
                return H, np.flatnonzero(~(worst <= TRUST))
            goals, right = goals[again], np.compress(again, right, axis=1)
            cost = self.K.take(goals, axis=1)

    def _accurate(
        self, m: int, goals: NDArray[np.intp], start: Array, progress: Progress | None = None
    ) -> Array:
        """``(r, len(goals))`` steps from the starts, without a subtraction."""
        from eigenoptions._kernels.elimination import hitting

        table = self.mdp.transition
        csr = table.indptr, table.indices, table.data
        r, n = start.shape
        group = min(GROUP, max(1, (ROOM - n * (n + r)) // (m * (3 * n + r) + 1)))
        out = np.empty((r, len(goals)))
        done = 0
        for part in np.array_split(goals, -(-len(goals) // group)):
            with np.errstate(all="ignore"):
                h = hitting(csr, self.mdp.n_actions, self.policy[:m], part, start)
            if h is None or not np.isfinite(h).all():
                raise OverflowError(
                    f"the diffusion time is beyond 1e290 and cannot be told in double precision (goal {part[0]}"
                    f"{' and others' * (len(part) > 1)}): the options lead too reliably elsewhere; use other options"
                )
            out[:, done : done + len(part)] = h
            done += len(part)
            if progress:
                progress(done, len(goals))
        return out


def _policy(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Policies ``(k, S)`` of options that end, on an MDP where every state can be reached from every other."""
    if not isinstance(mdp, MDP):
        raise TypeError(
            f"diffusion time is that of an MDP, got {type(mdp).__name__}: make one with maze(...)"
        )
    n = mdp.n_states
    if n < 2:
        raise ValueError("diffusion time is between different states, but this MDP has 1 state")
    if options is None:
        policy = np.empty((0, n), dtype=np.int32)
    elif isinstance(options, OptionSet):
        options.check(mdp)
        policy = np.ascontiguousarray(options.policy, dtype=np.int32)
    else:
        raise TypeError(f"options must be an OptionSet or None, got {type(options).__name__}")
    coo = mdp.transition.tocoo()
    graph = csr_array((np.ones(coo.nnz), (coo.row // mdp.n_actions, coo.col)), shape=(n, n))
    for links, what in (
        (graph, "cannot be reached from state 0"),
        (csr_array(graph.T), "cannot reach state 0"),
    ):
        lost = np.setdiff1d(np.arange(n), breadth_first_order(links, 0, return_predecessors=False))
        if len(lost):
            raise ValueError(
                f"the diffusion time is infinite: {_some(lost)} {what}; "
                "keep only states that can all reach each other"
            )
    for o, row in enumerate(policy):
        lost = _endless(mdp, row)
        if len(lost) and options is not None:
            raise ValueError(
                f"option {options.labels[o]!r} never ends from {_some(lost)}, so the walk may never reach a goal; "
                "give it a state where it stops (-1)"
            )
    return policy


def _endless(mdp: MDP, row: NDArray[np.int32]) -> NDArray[np.intp]:
    """States from which an option cannot reach an end."""
    from eigenoptions._kernels.planning import run

    n = mdp.n_states
    if mdp.successors is not None:
        length = np.empty(n, dtype=np.int32)
        if run(mdp.successors, row, length, np.empty_like(length)) < 0:
            return np.empty(0, dtype=np.intp)
    P = mdp.transition[np.arange(n) * mdp.n_actions + np.maximum(row, 0)].tocoo()
    runs = row[P.row] >= 0
    back = np.where(row[P.col] < 0, n, P.col)  # all ends are one more state, where the search begins
    links = csr_array((np.ones(runs.sum()), (back[runs], P.row[runs])), shape=(n + 1, n + 1))
    found = breadth_first_order(links, n, return_predecessors=False)
    return np.setdiff1d(np.flatnonzero(row >= 0), found)


def _some(states: NDArray[Any]) -> str:
    """How many states, and the first few."""
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def _whole(value: object, least: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{what} must be a whole number from {least}, got {value!r}")
