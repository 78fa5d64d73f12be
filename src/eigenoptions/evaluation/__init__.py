"""Diffusion time: how far a random walk over actions and options is from everywhere (paper, Section 4.2, Appendix B).

For a goal g the expected steps h obey h(g) = 0 and, elsewhere, h(s) = mean over the choices at s (primitive actions,
and the options that may start there) of their steps plus h where they end; an option that touches g stops there.
Diffusion time is the mean of h over all ordered pairs of different states.

With few options h grows exponentially and a linear solver in double precision returns noise. So every solution is
proved by its residual, and what cannot be proved is computed again without a subtraction (`_kernels.elimination`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.evaluation.checking import endless as endless
from eigenoptions.evaluation.checking import policy_of
from eigenoptions.evaluation.estimating import Estimate as Estimate
from eigenoptions.evaluation.estimating import diffusion_estimate as diffusion_estimate
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.parallel import ENGINES, pmap

LIMIT = 4_000  # states for exact answers: four dense arrays of half a GB together
TRUST = 1e-9  # relative error up to which a linear solution is believed
ROOM = 30_000_000  # numbers that an elimination may hold
PIECES = 32  # jobs that a curve is cut into
GROUP = 512  # most goals an elimination serves between two reports of progress

WORTH = (
    10_000_000_000  # states cubed times numbers of options, a few seconds, from which workers pay for a curve
)

Progress = Callable[[int, int], object]
Array = NDArray[np.float64]


def diffusion_time(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    engine: str = "serial",
    workers: int | None = None,
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
        Made for this MDP; None for primitive actions only.
    engine, workers
        Where to serve goals that need exact elimination, as in `parallel.pmap`; the answer is the same. What one
        inverse tells for all goals is computed here.
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
    walk.engine, walk.workers = engine, workers
    return float(walk.means(len(walk.policy), progress).mean())


def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    engine: str = "serial",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Diffusion time as options are added one by one, in their order (Section 4.2, Figure 6).

    Parameters
    ----------
    mdp, options
        As for `diffusion_time`.
    engine, workers
        Where to compute, as in `parallel.pmap`, a few values at a time; they are the same. What takes less than a few
        seconds is computed here in any case.
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
    done = 0

    def tell(_: int, values: list[float]) -> None:
        nonlocal done
        done += len(values)
        if progress:
            progress(done, many)

    if engine == "serial" or (engine in ENGINES and many * mdp.n_states**3 < WORTH):
        curve = []
        for m in range(many):
            curve.append(float(walk.means(m).mean()))
            tell(m, curve[-1:])
        return np.array(curve)
    bounds = np.linspace(0, many, min(many, PIECES) + 1).astype(int).tolist()
    jobs = list(pairwise(bounds))
    parts = pmap(
        _values, jobs, engine, shared={"mdp": mdp, "options": options}, workers=workers, arrived=tell
    )
    return np.array([value for part in parts for value in part])


def _values(job: tuple[int, int], mdp: MDP, options: OptionSet) -> list[float]:
    """Diffusion times with the first m options, for m in ``job[0]..job[1]-1``."""
    walk = _Walk(mdp, options)
    return [float(walk.means(m).mean()) for m in range(*job)]


def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    engine: str = "serial",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Expected number of primitive steps from every state to every goal (Appendix B).

    Parameters
    ----------
    mdp, options, engine, workers, progress
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
    walk = _Walk(mdp, options)
    walk.engine, walk.workers = engine, workers
    return walk.pairs(progress)


class _Walk:
    """A checked random walk over actions and options, with what all its answers share.

    Only this file sees it; it saves passing a dozen arrays around. Answers take the first m options.
    """

    engine: str = "serial"  # where goals are served that one inverse cannot serve
    workers: int | None = None

    def __init__(self, mdp: MDP, options: OptionSet | None) -> None:
        if isinstance(mdp, MDP) and mdp.n_states > LIMIT:
            raise ValueError(
                f"exact diffusion times need at most {LIMIT:,} states, got {mdp.n_states:,}: "
                "use diffusion_estimate, which samples"
            )
        self.policy = policy_of(mdp, options)
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
        table = self.mdp.transition
        shared: dict[str, Any] = {
            "table": (table.indptr, table.indices, table.data),
            "n_actions": self.mdp.n_actions,
            "policy": self.policy[:m],
            "start": start,
        }
        r, n = start.shape
        group = min(GROUP, max(1, (ROOM - n * (n + r)) // (m * (3 * n + r) + 1)))
        parts = np.array_split(goals, -(-len(goals) // group))
        done = 0

        def tell(_: int, h: Array) -> None:
            nonlocal done
            done += h.shape[1]
            if progress:
                progress(done, len(goals))

        if self.engine != "serial":
            found = pmap(_reached, parts, self.engine, shared=shared, workers=self.workers, arrived=tell)
            return np.concatenate(found, axis=1)
        found = []
        for part in parts:  # the first that cannot be told ends it
            found.append(_reached(part, **shared))
            tell(0, found[-1])
        return np.concatenate(found, axis=1)


def _reached(
    goals: NDArray[np.intp],
    table: tuple[Any, Any, Any],
    n_actions: int,
    policy: NDArray[np.int32],
    start: Array,
) -> Array:
    """``(r, len(goals))`` steps from the starts, by elimination."""
    from eigenoptions._kernels.elimination import hitting

    with np.errstate(all="ignore"):
        h = hitting(table, n_actions, policy, goals, start)
    if h is None or not np.isfinite(h).all():
        raise OverflowError(
            f"the diffusion time is beyond 1e290 and cannot be told in double precision (goal {goals[0]}"
            f"{' and others' * (len(goals) > 1)}): the options lead too reliably elsewhere; use other options"
        )
    return h
