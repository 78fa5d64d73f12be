"""One episode to a goal, which notices that it is stuck and plans anew."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.options import TERMINATE
from eigenoptions.vectors.controller import Controller


class BlockedMove(NamedTuple):
    """A move that did not work in an episode.

    Attributes
    ----------
    place : object
        The observation there.
    action : object
        The action that did not move anything.
    state : int
        The state of the table.
    move : int
        The move of the table that is not taken there again in this episode.
    """

    place: Any
    action: Any
    state: int
    move: int


class _LastStep(NamedTuple):
    """The last step: its observation and coordinates, and what was done there.

    The names are those of `BlockedMove`, with the coordinates of the place.
    """

    place: Any
    point: FloatArray
    action: Any
    state: int
    move: int


class Episode:
    """One episode to a goal: ``run = planner.start(goal)``, then ``run.act(obs)``.

    It compares where each action led with where it should lead. After `patience` steps
    without progress the move is blocked *here*: it is not taken in this cell again on
    this episode, and the way is planned anew. If an observation jumps, because of a
    reset say, the episode goes on from there.

    Parameters
    ----------
    controller : Controller
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

    def __init__(self, controller: Controller, goal: Any, patience: int = 3) -> None:
        self.goal = goal
        self.blocked: list[BlockedMove] = []
        self.arrived = False
        self.steps = 0
        self._controller = controller
        self._patience = patience
        self._goal_point, self._goal_state = controller.locate(goal)
        self._policy = controller.find_policy(self._goal_state)
        self._has_warned = False
        self._begin()

    def _begin(self) -> None:
        """Forget what was tried: the next observation may be anywhere."""
        self._last: _LastStep | None = None
        # Steps one after the other that moved nothing.
        self._n_stuck = 0
        self._forget_progress()
        # Ways out of the goal's cell that were tried to reach the goal from elsewhere.
        self._n_detours = 0
        self._is_on_detour = False

    def _forget_progress(self) -> None:
        """Measure progress from here on."""
        self._best_value = -np.inf
        self._n_without_progress = 0
        # Places since the last progress, and how often one of them was left and found
        # again.
        self._visited: set[tuple[int, ...]] = set()
        self._n_returns = 0
        # The last move of the policy that was not taken, since it fails at that place.
        self._avoided: BlockedMove | None = None

    def act(self, obs: Any) -> Any:
        """The next action on the way to the goal."""
        controller = self._controller
        point, state = controller.locate(obs)
        if self._last is not None:
            self._watch(self._last, point, state)

        move, action = self._decide(obs, point, state)
        self.arrived = controller.is_at(
            point, state, self._goal_point, self._goal_state
        )
        self._last = _LastStep(obs, point, action, state, move)
        self.steps += 1

        # The controller avoids a move of the policy that fails at this place.
        intended = self._policy.moves[state]
        if intended not in (move, TERMINATE) and not self._is_on_detour:
            avoided = controller.make_action(point, state, intended)
            self._avoided = BlockedMove(obs, avoided, state, intended)
        return action

    def _decide(self, obs: Any, point: FloatArray, state: int) -> tuple[int, Any]:
        """The next move, and its action: of the policy, or of a detour."""
        controller = self._controller
        if state != self._goal_state:
            self._is_on_detour = False
        elif self._is_on_detour:
            # The goal lies behind something: leave its cell, and come from elsewhere.
            exits = controller.rank_exits(state)
            move = exits[(self._n_detours - 1) % len(exits)]
            return move, controller.make_action(point, state, move)
        return controller.decide(
            self._policy, point, state, self._goal_point, self._goal_state, obs
        )

    def _watch(self, last: _LastStep, point: FloatArray, state: int) -> None:
        """Look at where the last step led, and plan anew if nothing comes of it."""
        progress = self._controller.measure_progress(
            last.point, last.state, last.move, last.action, point, state
        )
        if progress is None:
            # It jumped.
            self._begin()
            return

        # Did it move at all?
        if progress < 0.25:
            self._n_stuck += 1
        else:
            self._n_stuck = 0

        # Did it come nearer to the goal than ever before?
        value = float(self._policy.value[state])
        if value > self._best_value:
            self._forget_progress()
            self._best_value = value
        elif state != self._goal_state or self._n_stuck > 0:
            self._n_without_progress += 1
            self._count_return(last.point, point)

        is_stuck = self._n_stuck >= self._patience
        is_circling = (
            self._n_returns >= self._patience
            or self._n_without_progress
            >= self._controller.limit_circles(self._patience)
        )
        if is_circling and self._avoided is not None:
            # It is led back again and again to a move that fails there.
            self._block(self._avoided)
        elif is_stuck or is_circling:
            self._block(BlockedMove(last.place, last.action, last.state, last.move))

    def _count_return(self, last_point: FloatArray, point: FloatArray) -> None:
        """Notice that a place was visited before, so that short circles end soon."""
        place = self._controller.find_place(point)
        # A numbered state may be visited again by chance.
        if place is None or place == self._controller.find_place(last_point):
            return
        if place in self._visited:
            self._n_returns += 1
        self._visited.add(place)

    def _block(self, blocked: BlockedMove) -> None:
        """Mark a move as blocked where it was tried, and plan anew."""
        self.blocked.append(blocked)
        obs, _, state, move = blocked
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"stuck at {np.round(obs, 3)}: the way is planned anew without this "
                "move (run.blocked); record steps there, or give a smaller cell_size",
                stacklevel=4,
            )
        self._n_stuck = 0
        self._forget_progress()
        # No policy leads on from the goal's own cell.
        if state == self._goal_state:
            self._n_detours += 1
            self._is_on_detour = True
            return

        moves = {(b.state, b.move) for b in self.blocked if b.state != self._goal_state}
        policy = self._controller.plan_around(self._goal_state, moves)
        if policy.moves[state] < 0:
            # Too much was blocked to go on: trust the data again, the last one aside.
            self.blocked = self.blocked[-1:]
            policy = self._controller.plan_around(self._goal_state, {(state, move)})
        if policy.moves[state] < 0:
            raise ValueError(
                f"no way from {np.round(obs, 3)} to {np.round(self.goal, 3)} is left: "
                "the only move there did not work; record steps near it"
            )
        self._policy = policy
