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
from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions._validation import (
    Progress,
    check_float,
    check_type,
)
from eigenoptions.mdp import MDP, reachable
from eigenoptions.mdp.chains import (
    compute_policy_transitions,
    continue_after_end,
    find_ends,
    follow_options,
    uniform_walk,
)
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.tuning import resolve_exploration
from eigenoptions.options.walks import stack_policies

logger = logging.getLogger("eigenoptions")

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
        As in `diffusion_time`, which is the mean of the entries off the diagonal. States left out have nan.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    walk = HittingSystem(mdp, options, option_chance, stop_chance)
    times = np.full((mdp.n_states, mdp.n_states), np.nan)
    times[np.ix_(walk.kept, walk.kept)] = walk.solve(
        walk.option_chance, progress=progress
    )
    return times


class HittingSystem:
    """A random walk over the actions and the first n options of a set, which never ends, for any option chance."""

    def __init__(
        self, mdp: MDP, options: Any, option_chance: Chance, stop_chance: float
    ) -> None:
        check_type("mdp", mdp, MDP, "make one with maze(...)")
        stop_chance = check_float("stop_chance", stop_chance, minimum=0, maximum=1)
        policy = np.where(find_ends(mdp), TERMINATE, stack_policies(mdp, options))
        chosen = resolve_exploration(options, option_chance, stop_chance)
        self.option_chance, self.stop_chance = chosen.option_chance, chosen.stop_chance
        if chosen.option_chance is not None:
            # At 1, goals could be out of reach: no primitive actions where an option is available.
            self.option_chance = check_float(
                "option_chance", chosen.option_chance, minimum=0, below=1
            )
        table, kept = continue_after_end(mdp, goal_ends=False), np.arange(mdp.n_states)
        if mdp.start is not None:
            kept = np.flatnonzero(reachable(table.transition, [mdp.start]))
        if len(kept) < mdp.n_states:
            left_out = np.setdiff1d(np.arange(mdp.n_states), kept)
            logger.warning(
                "no diffusion time of %s: out of reach of the start",
                list_states(left_out),
            )
            rows = (kept[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
            table, policy = MDP(table.transition[rows][:, kept]), policy[:, kept]
        if table.n_states < 2:
            raise ValueError(
                "diffusion time is between different states, but this MDP has 1 state"
            )
        lost = ~(
            reachable(table.transition, [0])
            & reachable(table.transition, [0], backward=True)
        )
        if lost.any():
            where = f"to or from {list_states(kept[lost])}, seen from state {kept[0]}"
            raise ValueError(
                f"the diffusion time is infinite {where}; keep states that all reach each other"
            )
        for o, row in enumerate(policy if self.stop_chance == 0 else ()):
            lost = ~reachable(
                compute_policy_transitions(table, row), row < 0, backward=True
            )
            if lost.any():
                states = list_states(kept[lost])
                raise ValueError(
                    f"option number {o} never terminates from {states}; give it a stop_chance"
                )
        self.table, self.policy, self.kept = table, policy, kept

    @cached_property
    def effects(self) -> tuple[csr_array, csr_array, Array]:
        """What the options do from each state; see `follow_options`."""
        if len(self.kept) > MAX_STATES:
            limit = f"exact diffusion times need at most {MAX_STATES:,} states, got {len(self.kept):,}"
            raise ValueError(f"{limit}: use diffusion_estimate, which samples")
        passes, ends, steps = follow_options(self.table, self.policy, self.stop_chance)
        if not (steps >= 0).all() or steps.max(initial=0) > 1e6:
            worst = steps.max(axis=1).argmax()
            raise OverflowError(
                f"{_TRAPPED}: option number {worst} runs for more than 1e6 steps; {_REMEDY}"
            )
        return passes, ends, steps

    def compute_mean(self, option_chance: float | None, n: int | None = None) -> float:
        """The diffusion time with the first n options; inf where they trap the walk."""
        try:
            return mean_over_pairs(self.solve(option_chance, n))
        except OverflowError:
            return inf

    def solve(
        self,
        option_chance: float | None,
        n: int | None = None,
        prove: bool = True,
        progress: Any = None,
    ) -> Array:
        """``(S, S)`` expected steps from each start to each goal with the first n options."""
        (n_options, S), (passes, ends, steps) = self.policy.shape, self.effects
        n = n_options if n is None else n
        passes, ends, steps = passes[: n * S], ends[: n * S], steps[:n]
        # Weights of an action and of an option in each state.
        available = (self.policy[:n] >= 0).sum(axis=0)
        a, w = np.full(S, float(self.table.n_actions)), np.ones(S)
        if option_chance is not None:
            a = np.where(available > 0, 1.0 - option_chance, 1.0)
            w = np.where(available > 0, option_chance, 0.0) / np.maximum(available, 1)

        # Rates of decisions that lead from state to state, the matrix M, and the right sides K (S, goals).
        sum_options = csr_array(kron(np.ones((1, n)), eye_array(S)))
        rates = (
            a[:, None] * uniform_walk(self.table).toarray()
            + w[:, None] * (sum_options @ ends).toarray()
        )
        M = np.diag(a + w * available) - rates
        saved = (sum_options @ passes.multiply(steps.reshape(-1, 1))).toarray().T
        K = a[:, None] + w[:, None] * (steps.sum(axis=0)[:, None] - saved)
        Y = _try(np.linalg.inv, M + 1.0)
        max_error = (
            (MAX_ERROR if S <= MAX_ELIMINATION_STATES else MAX_ERROR_LARGE)
            if prove
            else inf
        )

        H, size = np.empty((S, S)), max(1, BLOCK_SIZE // (max(1, n) * S))
        for goals in np.split(np.arange(S), range(size, S, size)):
            # F: w(s) q_o(s, g) of each goal and option; E: T_o(g, .).
            rows = (goals[:, None] + S * np.arange(n)).ravel()
            F, E = passes[rows].toarray().reshape(len(goals), n, S) * w, ends[rows]
            h, proved = _solve_goals(M, K, Y, F, E, goals, max_error)
            H[:, goals] = h.T
            failed = np.flatnonzero(~proved)
            if len(failed) and S > MAX_ELIMINATION_STATES:
                state = self.kept[goals[failed[0]]]
                raise OverflowError(
                    f"{_TRAPPED}: more than 1e12 steps to state {state}; {_REMEDY}"
                )
            for j in failed:
                P = rates - F[j].T @ E[j * n : (j + 1) * n]
                # A difference of rounding size is zero: all of these options pass through the goal.
                P[1e-13 * rates > P] = 0.0
                P[:, goals[j]] += F[j].sum(axis=0)
                H[:, goals[j]] = _eliminate(P, K[:, goals[j]], goals[j])
            if progress is not None:
                progress(int(goals[-1]) + 1, S)
        return H


def _solve_goals(
    M: Array,
    K: Array,
    Y: Array,
    F: Array,
    E: csr_array,
    goals: NDArray[np.intp],
    max_error: float,
) -> tuple[Array, NDArray[np.bool_]]:
    """``(m, S)`` solutions of ``M h + F' E h = K`` except in the row of each goal, and whether they are proved."""
    (m, n, S), each = F.shape, np.arange(len(goals))
    share = Y.sum(axis=0)  # the null vector of M'
    rounding = (
        np.finfo(float).eps * (np.count_nonzero(M, axis=1) + 2 * n + 4) * M.diagonal()
    )
    costs, row = K.T[goals], np.repeat(np.arange(m * n), np.diff(E.indptr))
    h, right, proved = np.zeros((m, S)), costs.copy(), np.zeros(m, dtype=np.bool_)
    with np.errstate(all="ignore"):
        # The entry of the goal makes a right side orthogonal to the null vector.
        F[each, :, goals] = 0.0
        F[each, :, goals] = -(F @ share) / share[goals, None]
        # y = E h solves a small system, since h is Y (right - F' y) up to a constant, and 0 in the goal.
        Z = np.asarray(E @ Y).reshape(m, n, S) - Y[goals][:, None]
        small = np.eye(n) + Z @ F.transpose(0, 2, 1)
        # The second time, the right side is the residual of the first: a refinement.
        for _ in range(2):
            right[each, goals] = 0.0
            right[each, goals] = -(right @ share) / share[goals]
            y = _try(np.linalg.solve, small, Z @ right[:, :, None])
            step = (right - (y.transpose(0, 2, 1) @ F)[:, 0]) @ Y.T
            h += step - step[each, goals][:, None]
            if max_error == inf:
                return h, ~proved
            Eh: Array = np.bincount(row, E.data * h[row // n, E.indices], m * n).astype(
                float
            )
            right = costs - h @ M.T - (Eh.reshape(m, 1, n) @ F)[:, 0]
            right[each, goals] = 0.0
            error = (
                np.abs(right) + rounding * np.abs(h).max(axis=1, keepdims=True)
            ) / costs
            proved = error.max(axis=1) <= max_error
            if proved.all():
                break
    return h, proved


def _eliminate(P: Array, costs: Array, goal: int) -> Array:
    """``(S,)`` steps to a goal from rates ``(S, S)`` and costs (Grassmann, Taksar and Heyman, 1985)."""
    # States are taken out one by one, and the sum of the rates to the others takes the place of the diagonal: without a
    # subtraction, numbers keep their digits, however many steps the walk takes.
    others = np.arange(len(costs)) != goal
    S, times, totals = (
        len(costs) - 1,
        np.zeros(len(costs) - 1),
        np.empty(len(costs) - 1),
    )
    P = np.column_stack([P[others][:, others], P[others, goal], costs[others]])
    with np.errstate(all="ignore"):
        for s in range(S):
            totals[s] = P[s, s + 1 : S + 1].sum()
            P[s + 1 :, s] /= totals[s]
            P[s + 1 :, s + 1 :] += np.outer(P[s + 1 :, s], P[s, s + 1 :])
        for s in reversed(range(S)):
            times[s] = (P[s, S + 1] + P[s, s + 1 : S] @ times[s + 1 :]) / totals[s]
    if not np.isfinite(times).all():
        raise OverflowError(f"{_TRAPPED}: more than 1e290 steps to a goal; {_REMEDY}")
    return np.insert(times, goal, 0.0)


def _try(function: Callable[..., Any], *arguments: Array) -> Array:
    """The inverse or solution; nan, which proves nothing, where the matrix is singular: options that trap the walk."""
    try:
        return np.asarray(function(*arguments), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(arguments[-1], np.nan)


def list_states(states: NDArray[np.intp]) -> str:
    """The first few of some states, for a message."""
    few = ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
    return f"state {few}" if len(states) == 1 else f"{len(states)} states ({few})"


def mean_over_pairs(H: Array) -> float:
    """The mean over all ordered pairs of different states."""
    return float(H.sum() / (len(H) * (len(H) - 1)))
