"""One journey to a goal, which notices that it is stuck and plans anew."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.planner.pilot import Pilot


class BlockedMove(NamedTuple):
    """A move that did not work on a journey.

    Attributes
    ----------
    place : object
        The observation there.
    action : object
        The action that did not move anything.
    state : int
        The state of the table.
    move : int
        The move of the table that is not taken there again on this journey.
    """

    place: Any
    action: Any
    state: int
    move: int


class Journey:
    """One way to a goal: ``run = planner.start(goal)``, then ``run.act(obs)``.

    It compares where each action led with where it should lead. After `patience` steps
    without progress the move is blocked *here*: it is not taken in this cell again on
    this journey, and the way is planned anew. If an observation jumps, because of a
    reset say, the journey goes on from there.

    Parameters
    ----------
    pilot : Pilot
        The part of the planner that acts; it does not change.
    goal : object
        The goal.
    patience : int, default=3
        Steps without progress that make a move blocked.

    Attributes
    ----------
    blocked : list of BlockedMove
        What did not work so far.
    arrived : bool
        Whether the last observation was at the goal: in its state, and within one step
        where actions are vectors.
    steps : int
        Number of actions so far.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> log = eo.collect(eo.envs.MazeEnv("S..G"), 200, rng=0)
    >>> run = eo.Planner(log).start(goal=3)
    >>> run.act(0), run.act(1), run.act(2), run.act(3)
    (1, 1, 1, -1)
    >>> run.arrived, run.blocked
    (True, [])
    """

    def __init__(self, pilot: Pilot, goal: Any, patience: int = 3) -> None:
        self.goal = goal
        self.blocked: list[BlockedMove] = []
        self.arrived = False
        self.steps = 0
        self._pilot = pilot
        self._patience = patience
        self._goal_point, self._goal_state = pilot.locate(goal)
        self._course = pilot.find_course(self._goal_state)
        self._has_warned = False
        self._begin()

    def _begin(self) -> None:
        """Forget what was tried: the next observation may be anywhere."""
        self._last: tuple[FloatArray, int, int, Any, Any] | None = None
        self._n_stuck = 0
        self._best_value = -np.inf
        self._n_without_progress = 0
        # Ways out of the goal's cell that were tried to reach the goal from elsewhere.
        self._n_detours = 0
        self._is_on_detour = False

    def act(self, obs: Any) -> Any:
        """The next action on the way to the goal."""
        pilot = self._pilot
        point, state = pilot.locate(obs)
        if self._last is not None:
            self._watch(obs, point, state)

        move, action = self._decide(obs, point, state)
        self.arrived = pilot.is_at(point, state, self._goal_point, self._goal_state)
        self._last = (point, state, move, action, obs)
        self.steps += 1
        return action

    def _decide(self, obs: Any, point: FloatArray, state: int) -> tuple[int, Any]:
        pilot = self._pilot
        if state != self._goal_state:
            self._is_on_detour = False
        elif self._is_on_detour:
            # The goal lies behind something: leave its cell, and come from elsewhere.
            exits = pilot.rank_exits(state)
            move = exits[(self._n_detours - 1) % len(exits)]
            return move, pilot.make_action(point, state, move)
        return pilot.decide(
            self._course, point, state, self._goal_point, self._goal_state, obs
        )

    def _watch(self, obs: Any, point: FloatArray, state: int) -> None:
        """Look at what the last action did, and plan anew if nothing comes of it."""
        assert self._last is not None
        last_point, last_state, last_move, last_action, last_obs = self._last
        progress = self._pilot.measure_progress(
            last_point, last_state, last_move, last_action, point, state
        )
        if progress is None:
            # It jumped.
            self._begin()
            return

        if progress < 0.25:
            self._n_stuck += 1
        else:
            self._n_stuck = 0

        value = float(self._course.value[state])
        if value > self._best_value:
            self._best_value = value
            self._n_without_progress = 0
        elif state != self._goal_state or self._n_stuck > 0:
            self._n_without_progress += 1

        is_stuck = self._n_stuck >= self._patience
        is_circling = self._n_without_progress >= self._pilot.limit_circles(
            self._patience
        )
        if is_stuck or is_circling:
            self._block(last_obs, last_state, last_move, last_action)

    def _block(self, obs: Any, state: int, move: int, action: Any) -> None:
        """Mark a move as blocked here, and plan anew."""
        self.blocked.append(BlockedMove(obs, action, state, move))
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"stuck at {np.round(obs, 3)}: the way is planned anew without this "
                "move (run.blocked); record steps there, or give a smaller cell_size",
                stacklevel=4,
            )
        self._n_stuck = 0
        self._n_without_progress = 0
        self._best_value = -np.inf
        if state == self._goal_state:
            self._n_detours += 1
            self._is_on_detour = True
            return

        moves = {(b.state, b.move) for b in self.blocked if b.state != self._goal_state}
        course = self._pilot.plan_around(self._goal_state, moves)
        if course.policy[state] < 0:
            # Too much was blocked to go on: trust the data again, the last one aside.
            self.blocked = self.blocked[-1:]
            course = self._pilot.plan_around(self._goal_state, {(state, move)})
        if course.policy[state] < 0:
            raise ValueError(
                f"no way from {np.round(obs, 3)} to {np.round(self.goal, 3)} is left: "
                "the only move there did not work; record steps near it"
            )
        self._course = course
