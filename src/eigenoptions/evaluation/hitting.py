"""Hitting times: expected steps of a random walk over actions and options (Appendix B).

In state s, a decision is for a primitive action with weight a(s), and for each of the
options that are available there with weight w(s). N(s) is the sum of these weights. An
option o that starts in s takes c_o(s) steps, terminates in t with probability
T_o(s, t), and passes through g on its way with probability q_o(s, g). The walk stops
the moment it touches the goal g, also in the middle of an option. So the expected
steps h to the goal obey h(g) = 0 and, in every other state s,

    N(s) h(s) - a(s) E[h(s')] - w(s) sum_o [T_o(s, .) - q_o(s, g) T_o(g, .)] h
        = a(s) + w(s) sum_o [c_o(s) - q_o(s, g) c_o(g)]

where s' follows s by a random action. The terms without q are M h, with the same matrix
M for all goals. One inverse ``Y = (M + 11')^-1`` therefore serves all goals, and each
goal adds a small system, with one unknown ``T_o(g, .) h`` per option.

The error is proved. Without row and column g, the matrix of a goal is an M-matrix: its
inverse has no negative entry. So if the residual is at most e times the right side, in
every row, the relative error of every entry of h is at most e.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import BoolArray, FloatArray, IndexArray, Progress
from eigenoptions.evaluation.behaviour import Behaviour, Chance, prepare_behaviour
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import follow_options, uniform_walk
from eigenoptions.options import OptionSet

# Exact answers hold about ten dense arrays (S, S), which take 1.3 GB at this size.
_MAX_STATES = 4_000

# Number of states up to which elimination is used. It takes a minute if all goals of so
# many states need it.
_MAX_ELIMINATION_STATES = 500

# Relative error that must be proved where there are more states.
_MAX_ERROR_OF_LARGE = 1e-2


@shows_progress
def hitting_times(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: ProgressArgument = None,
) -> FloatArray:
    """Compute the expected number of primitive steps between all states (Appendix B).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance, progress
        As in `diffusion_time`, which is the mean of the entries off the diagonal.

    Returns
    -------
    array (S, S)
        The steps from each start (row) to each goal (column). States that are left out
        have nan, and so have additional states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> hitting_times(eo.maze("S.G")).round(6).tolist()
    [[0.0, 4.0, 12.0], [8.0, 0.0, 8.0], [12.0, 4.0, 0.0]]
    """
    progress = check_progress(progress)
    behaviour = prepare_behaviour(mdp, options, option_chance, stop_chance)
    system = HittingSystem(behaviour)
    states = behaviour.states[: behaviour.n_goals]
    times = np.full((mdp.n_states, mdp.n_states), np.nan)
    times[np.ix_(states, states)] = system.solve(
        behaviour.option_chance, progress=progress
    )
    return times


class HittingSystem:
    """The linear systems of hitting times, for any option chance and number of options.

    Parameters
    ----------
    behaviour : Behaviour
        The actions and options. Its option chance is not used: `solve` takes one.
    max_error : float, default=1e-9
        Relative error that must be proved up to 500 states, and 0.01 beyond. Where it
        is not, a goal is solved again by elimination, which is slow but always
        accurate.
    block_entries : int, default=2**22
        Numbers in the largest array of the goals that are solved together (32 MB).
    """

    def __init__(
        self,
        behaviour: Behaviour,
        *,
        max_error: float = 1e-9,
        block_entries: int = 2**22,
    ) -> None:
        n_states = len(behaviour.states)
        if n_states > _MAX_STATES:
            raise ValueError(
                f"exact diffusion times need at most {_MAX_STATES:,} states, "
                f"got {n_states:,}: use diffusion_estimate, which samples"
            )
        self.behaviour = behaviour
        self.can_eliminate = n_states <= _MAX_ELIMINATION_STATES
        self.max_error = max_error if self.can_eliminate else _MAX_ERROR_OF_LARGE
        self.block_entries = block_entries

    @cached_property
    def effects(self) -> tuple[csr_array, csr_array, FloatArray]:
        """Passes, ends and steps of the options: see `follow_options`."""
        behaviour = self.behaviour
        passes, ends, steps = follow_options(
            behaviour.table, behaviour.policy, behaviour.stop_chance
        )
        # Rounding makes steps negative or nan where an option hardly ever ends.
        if not (steps >= 0).all() or steps.max(initial=0) > 1e6:
            longest = steps.max(axis=1).argmax()
            raise OverflowError(
                f"these options trap the walk: option number {longest} runs for more "
                "than 1e6 steps; use others, a smaller option_chance, or a stop_chance"
            )
        return passes, ends, steps

    def solve(
        self,
        option_chance: float | None,
        n_options: int | None = None,
        *,
        prove: bool = True,
        progress: Progress | None = None,
    ) -> FloatArray:
        """Compute the expected steps from each start (row) to each goal (column).

        Parameters
        ----------
        option_chance : float or None
            Probability that a decision is for an option; None for the uniform choice.
        n_options : int or None, default=None
            Only the first options are available; None for all.
        prove : bool, default=True
            Whether to prove the error, which takes longer.
        progress : callable or None, default=None
            Called as ``progress(done, total)`` with numbers of goals.
        """
        if n_options is None:
            n_options = len(self.behaviour.policy)
        n_states = len(self.behaviour.states)
        n_goals = self.behaviour.n_goals
        equations = self._assemble(option_chance, n_options)
        max_error = self.max_error if prove else inf

        times = np.empty((n_states, n_goals))
        entries_per_goal = max(1, n_options) * n_states
        n_together = max(1, self.block_entries // entries_per_goal)
        for first in range(0, n_goals, n_together):
            goals = np.arange(first, min(first + n_together, n_goals))
            solutions, is_proved = equations.solve_goals(goals, max_error)
            times[:, goals] = solutions.T

            for goal in goals[~is_proved]:
                if not self.can_eliminate:
                    state = self.behaviour.states[goal]
                    raise OverflowError(
                        "these options trap the walk: more than 1e12 steps "
                        f"to state {state}; "
                        "use others, a smaller option_chance, or a stop_chance"
                    )
                times[:, goal] = equations.eliminate_goal(goal)

            if progress is not None:
                progress(int(goals[-1]) + 1, n_goals)
        return times[:n_goals]

    def _assemble(self, option_chance: float | None, n_options: int) -> _Equations:
        """The equations of the walk with the first options."""
        table = self.behaviour.table
        n_states = table.n_states
        passes, ends, steps = self.effects
        passes = passes[: n_options * n_states]
        ends = ends[: n_options * n_states]
        steps = steps[:n_options]

        n_available = (self.behaviour.policy[:n_options] >= 0).sum(axis=0)
        action_weight, option_weight = _weigh_decisions(
            n_available, table.n_actions, option_chance
        )
        decision_weight = action_weight + option_weight * n_available

        # Rates by which decisions in a state (row) lead to another (column).
        sum_options = csr_array(kron(np.ones((1, n_options)), eye_array(n_states)))
        action_rates = action_weight[:, None] * uniform_walk(table).toarray()
        option_rates = option_weight[:, None] * (sum_options @ ends).toarray()
        rates = action_rates + option_rates

        # Steps of a decision in a state (row), less those that an option would take
        # after it has touched the goal (column).
        saved = (sum_options @ passes.multiply(steps.reshape(-1, 1))).toarray().T
        option_steps = steps.sum(axis=0)[:, None] - saved
        costs = action_weight[:, None] + option_weight[:, None] * option_steps

        M = np.diag(decision_weight) - rates
        return _Equations(n_options, M, rates, costs, option_weight, passes, ends)


def _weigh_decisions(
    n_available: IndexArray, n_actions: int, option_chance: float | None
) -> tuple[FloatArray, FloatArray]:
    """The weights a of the actions together and w of an available option, ``(S,)``."""
    if option_chance is None:
        action_weight = np.full(len(n_available), float(n_actions))
        option_weight = np.ones(len(n_available))
    else:
        has_options = n_available > 0
        action_weight = np.where(has_options, 1.0 - option_chance, 1.0)
        option_weight = np.where(has_options, option_chance, 0.0)
        option_weight /= np.maximum(n_available, 1)
    return action_weight, option_weight


@dataclass(frozen=True, eq=False)
class _Equations:
    """The equations of all goals, in the letters of the module's docstring.

    For goal g they are ``M h + F' E h = K``, except in row g. Row o of F is
    ``w(s) q_o(s, g)``, row o of E is ``T_o(g, .)``, and K is column g of `costs`.

    Attributes
    ----------
    n_options : int
        Number of options.
    M, rates, costs : array (S, S)
        The matrix that all goals share; the rates of decisions that lead from state to
        state, which are the negative part of M; and the right sides, one per column.
    option_weight : array (S,)
        The weight w of an available option.
    passes, ends : csr_array (n_options S, S)
        The probabilities q (row o S + g, column s) and T (row o S + s, column t).
    """

    n_options: int
    M: FloatArray
    rates: FloatArray
    costs: FloatArray
    option_weight: FloatArray
    passes: csr_array
    ends: csr_array

    @cached_property
    def inverse(self) -> FloatArray:
        """``Y = (M + 11')^-1``; nan, which proves nothing, where it does not exist."""
        shifted = self.M + 1.0
        try:
            return np.asarray(np.linalg.inv(shifted), dtype=np.float64)
        except np.linalg.LinAlgError:
            # The options trap the walk.
            return np.full_like(shifted, np.nan)

    @cached_property
    def rounding(self) -> FloatArray:
        """Bounds ``(S,)`` of rounding errors in a residual, for solutions of size 1."""
        n_terms = np.count_nonzero(self.M, axis=1) + 2 * self.n_options + 4
        bounds: FloatArray = np.finfo(float).eps * n_terms * self.M.diagonal()
        return bounds

    def solve_goals(
        self, goals: IndexArray, max_error: float
    ) -> tuple[FloatArray, BoolArray]:
        """Solve the equations of some goals by the inverse that they share.

        Returns the solutions ``(goals, S)``, and which of them have a proved relative
        error of at most `max_error`.
        """
        # Where options trap the walk, numbers overflow. Then nothing is proved.
        with np.errstate(all="ignore"):
            block = _GoalBlock(self, goals)
            solutions = block.solve(block.costs)
            if max_error == inf:
                return solutions, np.ones(len(goals), dtype=np.bool_)

            residual = block.compute_residual(solutions)
            errors = block.bound_errors(solutions, residual)
            if not (errors <= max_error).all():
                solutions += block.solve(residual)
                residual = block.compute_residual(solutions)
                errors = block.bound_errors(solutions, residual)
        return solutions, errors <= max_error

    def eliminate_goal(self, goal: int) -> FloatArray:
        """Solve the equations of one goal by elimination: steps ``(S,)``."""
        F, E = self.find_passes(np.array([goal]))
        rates = self.rates - F[0].T @ E
        # A difference of the size of rounding is zero: all of these options pass
        # through the goal.
        rates[1e-13 * self.rates > rates] = 0.0
        rates[:, goal] += F[0].sum(axis=0)
        return _eliminate(rates, self.costs[:, goal], goal)

    def find_passes(self, goals: IndexArray) -> tuple[FloatArray, csr_array]:
        """``F (goals, n_options, S)`` and ``E (goals n_options, S)`` of some goals."""
        # Each option has S rows, one per state; of these, take those of the goals.
        n_states = len(self.M)
        first_rows = n_states * np.arange(self.n_options)
        rows = (goals[:, None] + first_rows).ravel()

        passes = self.passes[rows].toarray()
        passes = passes.reshape(len(goals), self.n_options, n_states)
        F = passes * self.option_weight
        return F, self.ends[rows]


class _GoalBlock:
    """The equations of some goals, solved by the inverse ``Y = (M + 11')^-1``.

    M has the null vector 1, and M' has the null vector ``Y' 1``. The equation
    ``M h = r`` has a solution if r is orthogonal to the null vector of M'. Then Y r is
    a solution, and the others differ from it by a constant. In the row of the goal
    there is no equation, so that its entry of r can be chosen to make r orthogonal.

    With ``y = E h``, a solution is ``h = Y (r - F' y)``, less its entry in the goal. E
    times this equation is a small system for y: ``(I + Z F') y = Z r``, where Z is
    ``E Y`` less the goal's row of Y.
    """

    def __init__(self, equations: _Equations, goals: IndexArray) -> None:
        Y = equations.inverse
        F, E = equations.find_passes(goals)
        null_vector = Y.sum(axis=0)

        # The entry of each goal in its own row of an array (goals, S).
        each = np.arange(len(goals))
        F[each, :, goals] = 0.0
        F[each, :, goals] = -(F @ null_vector) / null_vector[goals, None]
        Z = np.asarray(E @ Y).reshape(F.shape) - Y[goals][:, None]

        self.equations = equations
        self.costs = equations.costs.T[goals]
        self.F = F
        self.E = E
        self.Z = Z
        self.small = np.eye(equations.n_options) + Z @ F.transpose(0, 2, 1)
        self.null_vector = null_vector
        self.goals = goals
        self.each = each

    def solve(self, right: FloatArray) -> FloatArray:
        """Solutions ``(goals, S)`` for right sides ``(goals, S)``."""
        right = right.copy()
        right[self.each, self.goals] = 0.0
        balance = -(right @ self.null_vector) / self.null_vector[self.goals]
        right[self.each, self.goals] = balance

        y = _solve_small(self.small, self.Z @ right[:, :, None])
        passes = (y.transpose(0, 2, 1) @ self.F)[:, 0]
        solutions = (right - passes) @ self.equations.inverse.T
        at_goals = solutions[self.each, self.goals]
        return solutions - at_goals[:, None]

    def compute_residual(self, solutions: FloatArray) -> FloatArray:
        """``K - M h - F' E h``, with 0 in the row of each goal: ``(goals, S)``."""
        y = _multiply_ends(self.E, solutions)
        passes = (y[:, None] @ self.F)[:, 0]
        residual = self.costs - solutions @ self.equations.M.T - passes
        residual[self.each, self.goals] = 0.0
        return residual

    def bound_errors(self, solutions: FloatArray, residual: FloatArray) -> FloatArray:
        """Proved relative errors ``(goals,)``; see the module's docstring."""
        size = np.abs(solutions).max(axis=1, keepdims=True)
        largest_residual = np.abs(residual) + self.equations.rounding * size
        errors: FloatArray = (largest_residual / self.costs).max(axis=1)
        return errors


def _solve_small(matrices: FloatArray, right: FloatArray) -> FloatArray:
    """Solve systems; nan, which proves nothing, where one has no solution."""
    try:
        return np.asarray(np.linalg.solve(matrices, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        # The options trap the walk.
        return np.full_like(right, np.nan)


def _multiply_ends(E: csr_array, solutions: FloatArray) -> FloatArray:
    """``(goals, n_options)`` products of each goal's rows of E with its solution."""
    n_goals = len(solutions)
    n_rows = E.shape[0]
    row = np.repeat(np.arange(n_rows), np.diff(E.indptr))
    goal = row // (n_rows // n_goals) if n_rows else row
    products = E.data * solutions[goal, E.indices]
    # Without options, bincount would return integers.
    sums = np.bincount(row, products, n_rows).astype(np.float64)
    return sums.reshape(n_goals, -1)


def _eliminate(rates: FloatArray, costs: FloatArray, goal: int) -> FloatArray:
    """Steps ``(S,)`` to a goal from the rates and costs of decisions.

    States are taken out one by one, and the sum of the rates to the others takes the
    place of the diagonal. Nothing is subtracted, so all numbers keep their digits,
    however many steps the walk takes (Grassmann, Taksar and Heyman, 1985).
    """
    is_other = np.arange(len(costs)) != goal
    n = len(costs) - 1
    # Columns: the other states, the goal, and the costs.
    table = np.column_stack(
        [rates[is_other][:, is_other], rates[is_other, goal], costs[is_other]]
    )

    total = np.empty(n)
    times = np.zeros(n)
    with np.errstate(all="ignore"):
        # Take out state s: who went there now goes where s leads, at the cost of s.
        for s in range(n):
            total[s] = table[s, s + 1 : n + 1].sum()
            table[s + 1 :, s] /= total[s]
            table[s + 1 :, s + 1 :] += np.outer(table[s + 1 :, s], table[s, s + 1 :])

        # Put the states back, last first: s leads only to states whose time is known.
        for s in reversed(range(n)):
            steps = table[s, n + 1] + table[s, s + 1 : n] @ times[s + 1 :]
            times[s] = steps / total[s]

    if not np.isfinite(times).all():
        raise OverflowError(
            "these options trap the walk: more than 1e290 steps to a goal; "
            "use others, a smaller option_chance, or a stop_chance"
        )
    return np.insert(times, goal, 0.0)
