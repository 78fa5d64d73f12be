"""Exact diffusion times: one linear system for all goals, each answer proved or computed again by elimination.

With few options the expected steps grow exponentially and a linear solver in double precision returns noise. So every
solution is proved by its residual (`_kernels.diffusion`), and what cannot be proved is computed again without a
subtraction (`_kernels.elimination`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import checked_chance, endless, policy_of, weights

# Exact answers hold about six dense arrays of this many states squared: 0.8 GB together.
MAX_STATES = 4_000
# Relative error up to which a linear solution is accepted.
MAX_ERROR = 1e-9
# Numbers that one elimination may hold in memory.
ELIMINATION_NUMBERS = 30_000_000
# Most goals that an elimination serves between two calls of progress.
GOALS_PER_JOB = 512

Progress = Callable[[int, int], object]
Array = NDArray[np.float64]


def checked(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
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
                f"the diffusion time is infinite: {some(lost)} {what}; "
                "keep only states that can all reach each other"
            )
    for o, row in enumerate(policy):
        lost = endless(mdp, row)
        if len(lost) and options is not None:
            raise ValueError(
                f"option {options.labels[o]!r} never ends from {some(lost)}, so the walk may never reach a goal; "
                "give it a state where it stops (-1)"
            )
    return policy


def some(states: NDArray[Any]) -> str:
    """Number of states, and the first few."""
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


class Walk:
    """A checked random walk over actions and options, with the arrays that all its answers share.

    Answers are for the first m options, and for the `chance` that a decision is for an option (None: a uniform
    choice over actions and options), which may be changed between two answers. `M_options` and `K_options` are sums
    over the options added so far; see `_kernels.diffusion` for M and K.
    """

    def __init__(self, mdp: MDP, options: OptionSet | None, chance: float | None = None) -> None:
        if isinstance(mdp, MDP) and mdp.n_states > MAX_STATES:
            raise ValueError(
                f"exact diffusion times need at most {MAX_STATES:,} states, got {mdp.n_states:,}: "
                "use diffusion_estimate, which samples"
            )
        self.policy = checked(mdp, options)
        # At 1 primitive actions would be taken only where no option may start, and goals could be out of reach.
        self.chance = checked_chance(chance)
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
        action, option = weights(self.policy[:m], self.mdp.n_actions, self.chance)
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
            "shares": weights(policy, self.mdp.n_actions, self.chance),
            "start": start,
        }
        r, n = start.shape
        group = min(GOALS_PER_JOB, max(1, (ELIMINATION_NUMBERS - n * (n + r)) // (m * (3 * n + r) + 1)))
        parts = np.array_split(goals, -(-len(goals) // group))
        return np.concatenate(mapped(_eliminated, parts, shared, counter(progress, len(goals))), axis=0).T


def counter(progress: Progress | None, total: int) -> Callable[[int, Sized], None]:
    """Callback for the results of jobs, each with one entry per unit of work, that reports their number so far."""
    done = 0

    def report(_: int, result: Sized) -> None:
        nonlocal done
        done += len(result)
        if progress:
            progress(done, total)

    return report


def mapped(
    function: Callable[..., Any],
    jobs: Sequence[Any],
    shared: dict[str, Any],
    report: Callable[[int, Any], object],
) -> list[Any]:
    """``[function(job, **shared) for job in jobs]``, reported one by one."""
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
