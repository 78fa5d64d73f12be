"""What to do at each point: the part of a planner that episodes and places share."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, FloatArray
from eigenoptions._validation import check_int
from eigenoptions.mdp import MDP
from eigenoptions.options import TERMINATE
from eigenoptions.options.purposes import make_goal_purposes
from eigenoptions.options.solver import choose_actions, solve
from eigenoptions.vectors.displacement import Displacement
from eigenoptions.vectors.model import VectorModel
from eigenoptions.vectors.moves import neighbour_moves
from eigenoptions.vectors.policies import GoalPolicy, rank
from eigenoptions.vectors.potentials import Potentials

# Near places where steps failed, `Planner.act` takes one of the best moves at random so
# often: not always the very best.
_VARIED = 0.2
_N_VARIANTS = 3


class Controller:
    """Turns policies in a table into actions at points. It remembers no episode.

    Parameters
    ----------
    mdp : MDP
        The table.
    model : VectorModel or None
        The cells of the table; None for numbered states.
    is_seen : ndarray of bool of shape (S,)
        Which numbered states are in the data.
    potentials : Potentials
        What greedy descent climbs.
    gamma : float
        Discount per move.
    greedy : bool
        Whether policies descend the potential move by move.
    """

    def __init__(
        self,
        mdp: MDP,
        model: VectorModel | None,
        is_seen: BoolArray,
        potentials: Potentials,
        gamma: float,
        greedy: bool,
    ) -> None:
        self.mdp = mdp
        self._model = model
        self._is_seen = is_seen
        self.potentials = potentials
        self._gamma = gamma
        self._greedy = greedy
        self._policies: dict[int, GoalPolicy] = {}
        # A list is faster than an array for a single point.
        self._step_list: list[float] = []
        if model is not None:
            self._step_list = model.step.tolist()

    # Where things are

    def locate(self, obs: Any) -> tuple[FloatArray, int]:
        """The coordinates of an observation, and its state."""
        if self._model is not None:
            point = self._model.read(obs)
            return point, self._model.locate(point, obs)
        # States may have names, which are strings or tuples.
        if isinstance(obs, str | tuple):
            obs = self.mdp.find_state(obs)
        state = check_int("state", obs, 0, self.mdp.n_states - 1)
        if not self._is_seen[state]:
            raise ValueError(
                f"state {state} is not in the data: record transitions there"
            )
        return _NOWHERE, state

    def find(self, obs: Any) -> tuple[FloatArray, int]:
        """As `locate`; the state is -1 where there are no data."""
        if self._model is None:
            return self.locate(obs)
        point = self._model.read(obs)
        return point, self._model.find(point)

    def is_at(
        self, point: FloatArray, state: int, goal_point: FloatArray, goal_state: int
    ) -> bool:
        """Whether a point is at a goal."""
        if self._model is None:
            return state == goal_state
        n_steps = float((np.abs(point - goal_point) / self._model.step).max())
        if self._model.has_vector_actions:
            return n_steps <= 1.0
        # Steps of one length may lead past a small cell again and again, but not past
        # all places that are half a step away.
        return state == goal_state or n_steps <= 0.5

    # What to do

    def decide(
        self,
        policy: GoalPolicy,
        point: FloatArray,
        state: int,
        goal_point: FloatArray,
        last: int,
        obs: Any,
    ) -> tuple[int, Any]:
        """The move of a policy at a point, and the action that makes it.

        The move is TERMINATE in the goal's own cell.
        """
        move = policy.moves[state]
        model = self._model
        is_continuous = model is not None and model.has_vector_actions
        if not is_continuous and self.is_at(point, state, goal_point, last):
            return TERMINATE, TERMINATE
        if is_continuous and self._is_beside(point, goal_point, state, last):
            move = TERMINATE
            action = self._aim(point, goal_point, None)
        elif move == TERMINATE:
            return TERMINATE, self._stay(point, obs)
        else:
            action = self.make_action(point, state, move)

        if model is not None and model.failures.is_near(point / model.step):
            return self._avoid(model, policy, point, state, move, goal_point, action)
        return move, action

    def vary(
        self,
        policy: GoalPolicy,
        point: FloatArray,
        state: int,
        move: int,
        action: Any,
        rng: np.random.Generator,
    ) -> Any:
        """Sometimes another action than the given one, near places where steps failed.

        A rule without memory repeats its mistake: at a wall, a move that works from
        most of a cell may fail from this very place, and the answer is the same again.
        """
        model = self._model
        if model is None or model.targets is None or move == TERMINATE:
            return action
        is_risky = model.failures.is_near(point / model.step)
        if not is_risky or rng.random() >= _VARIED:
            return action

        assert isinstance(model.effects, Displacement)
        others = policy.rank_moves(state)[:_N_VARIANTS]
        other = others[rng.integers(len(others))]
        directions = neighbour_moves(len(point))
        if other == len(directions):
            # The last move jumps, and has no direction.
            return action
        # Straight, and not to where others crossed the border: that way may be what
        # fails.
        return model.effects.aim(point, point + model.step * directions[other])

    def _is_beside(
        self, point: FloatArray, goal_point: FloatArray, state: int, last: int
    ) -> bool:
        """Whether to go straight to a goal: it is in the same cell, or one step away.

        A point that is a little beside the goal may lie in another cell.
        """
        if state == last:
            return True
        assert self._model is not None
        columns = zip(point.tolist(), goal_point.tolist(), self._step_list, strict=True)
        return all(abs(x - goal) <= step for x, goal, step in columns)

    def _stay(self, point: FloatArray, obs: Any) -> Any:
        """What to do where there is no way: greedy descent stays, others raise."""
        if not self._greedy:
            raise ValueError(
                f"the data show no way from {np.round(obs, 3)} to the goal: record "
                "steps between, or give a larger cell_size"
            )
        if self._model is None or not self._model.has_vector_actions:
            return TERMINATE
        return self._aim(point, point, None)

    def _avoid(
        self,
        model: VectorModel,
        policy: GoalPolicy,
        point: FloatArray,
        state: int,
        move: int,
        goal_point: FloatArray,
        action: Any,
    ) -> tuple[int, Any]:
        """The best move that does not fail at this place; the given one if all do."""
        # A move fails here if more than half of such steps did.
        if move == TERMINATE:
            target: FloatArray | None = goal_point
            # A goal at a wall is beside steps that fail: only if all did, it is behind
            # the wall.
            limit = 0.99
        else:
            target = self._find_target(state, move)
            limit = 0.5
        share, part = self._find_safest(model, point, action, target)
        if share <= limit:
            return move, part

        if move == TERMINATE:
            others = self.rank_exits(state)
        else:
            others = policy.rank_moves(state)
        for other in others:
            other_action = self.make_action(point, state, other)
            other_target = self._find_target(state, other)
            share, part = self._find_safest(model, point, other_action, other_target)
            if share <= 0.5:
                return other, part
        return move, action

    def _find_target(self, state: int, move: int) -> FloatArray | None:
        """The place that a move aims at; None where actions are numbered."""
        assert self._model is not None
        if self._model.targets is None:
            return None
        return np.asarray(self._model.targets[state, move, 0])

    def _find_safest(
        self,
        model: VectorModel,
        point: FloatArray,
        action: Any,
        target: FloatArray | None,
    ) -> tuple[float, Any]:
        """The least share of failures of the parts of a path, and the first such part.

        The path has parts where actions are along one axis.
        """
        effects = model.effects
        parts = [action]
        if target is not None and isinstance(effects, Displacement):
            parts = effects.find_parts(point, target, action)
        shares = model.measure_failures(point, parts)
        least = min(shares)
        return least, parts[shares.index(least)]

    def make_action(self, point: FloatArray, state: int, move: int) -> Any:
        """The action that makes a move of the table at a point."""
        model = self._model
        if model is None or not model.has_vector_actions:
            return move
        assert model.targets is not None
        target, border = model.targets[state, move]
        return self._aim(point, target, border)

    def _aim(
        self, point: FloatArray, target: FloatArray, border: FloatArray | None
    ) -> FloatArray:
        assert self._model is not None
        assert isinstance(self._model.effects, Displacement)
        return self._model.effects.aim(point, target, border)

    def rank_exits(self, state: int) -> list[int]:
        """Moves of a state, those that most likely leave it first."""
        n_moves = self.mdp.n_actions
        rows = self.mdp.transition[state * n_moves : (state + 1) * n_moves]
        stays = rows[:, [state]].toarray().ravel()
        return rank(1.0 - stays)

    # Policies

    def find_policy(self, goal: int) -> GoalPolicy:
        """The policy to a state of the table."""
        policy = self._policies.get(goal)
        if policy is None:
            if self._greedy:
                policy = self._descend(goal)
            else:
                policy = self._make_policy(self.mdp, goal)
            self._policies[goal] = policy
        return policy

    def plan_around(self, goal: int, blocked: set[tuple[int, int]]) -> GoalPolicy:
        """The policy to a goal if some moves, pairs of state and move, stay put."""
        table = self.mdp.transition.tolil()
        for state, move in blocked:
            row = state * self.mdp.n_actions + move
            table[row, :] = 0.0
            table[row, state] = 1.0
        around = MDP(csr_array(table), n_additional=self.mdp.n_additional)
        return self._make_policy(around, goal, blocked)

    def _make_policy(
        self, mdp: MDP, goal: int, blocked: Set[tuple[int, int]] = frozenset()
    ) -> GoalPolicy:
        """The policy of the option that leads to a goal."""
        purposes = make_goal_purposes(mdp, [goal])
        options = solve(mdp, purposes, self._gamma)
        potential = np.asarray(purposes[0].potential)
        # The option's value v is what is gained above the present potential f. Then a
        # move to s' is worth f(s') + gamma v(s').
        total = options.value[0] + potential
        arrival = (1.0 - self._gamma) * potential + self._gamma * total
        return GoalPolicy(mdp, options.policy[0], arrival, total, blocked)

    def _descend(self, goal: int) -> GoalPolicy:
        """The policy of greedy descent of the potential."""
        value = self.potentials.find(goal)
        is_known = np.isfinite(value)
        # States without a way are far worse than all others.
        value = np.maximum(value, 10.0 * value[is_known].min() - 1.0)
        expected = (self.mdp.transition @ value).reshape(self.mdp.n_states, -1)
        moves = choose_actions(expected - value[:, None], 1e-9)
        moves[goal] = TERMINATE
        return GoalPolicy(self.mdp, moves, value, value)

    # Progress, for episodes

    def measure_progress(
        self,
        point: FloatArray,
        state: int,
        move: int,
        action: Any,
        next_point: FloatArray,
        next_state: int,
    ) -> float | None:
        """The part of the expected displacement that a step made; None if it jumped."""
        model = self._model
        if model is None:
            if move < 0 or next_state != state:
                return 1.0
            row = self.mdp.transition[[state * self.mdp.n_actions + move]]
            stays = float(row.data[row.indices == state].sum())
            return 1.0 if stays > 0.5 else 0.0

        # In large steps: no action leads three times as far.
        moved = (next_point - point) / model.step
        if np.abs(moved).max() > 3.0:
            return None
        expected = model.expect(point, action) / model.step
        square = float(expected @ expected)
        if square < 0.01:
            # Nothing was to move.
            return 1.0
        return float(expected @ moved) / square

    def find_place(
        self, point: FloatArray, n_parts: float = 4.0
    ) -> tuple[int, ...] | None:
        """The square, a part of a step wide, of a point; None for numbered states."""
        if self._model is None:
            return None
        columns = zip(point.tolist(), self._step_list, strict=True)
        return tuple([int(n_parts * x // step) for x, step in columns])

    def limit_circles(self, patience: int) -> int:
        """Steps after which an episode that came no nearer goes in circles."""
        steps_per_cell = 1.0
        if self._model is not None:
            steps_per_cell = float(
                (self._model.cells.grid.size / self._model.step).max()
            )
        # A way through a large cell shows no progress for many steps.
        return patience * int(8 + 4 * min(steps_per_cell, 10.0))


# The coordinates of a numbered state.
_NOWHERE = np.zeros(0)
