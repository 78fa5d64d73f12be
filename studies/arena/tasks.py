"""Tasks for agents, as tables: ten to develop on, and ten fresh ones for the test.

Each has a start, ends of episodes, a time limit, a native goal and random goals.
Reaching the goal gives reward 1 and ends the episode; nothing else gives a reward. The
ten of this file are deterministic; of those of `fresh_tasks` four are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.envs import MazeEnv, from_env
from eigenoptions.mdp import MDP, graph, maze, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.mdp.mazes import rooms_map
from eigenoptions.options import OptionSet
from studies.arena.fresh_tasks import FRESH_TASKS
from studies.arena.keys import add_keys

# Of tables: dictionaries by name of column.
Rows = list[dict[str, Any]]

# Shares of the budget at which coverage is measured.
MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Task:
    """A table to learn in.

    Parameters
    ----------
    mdp : MDP
        The dynamics, with a start and no goal.
    ends : ndarray of bool of shape (S,)
        States in which an episode ends.
    native : ndarray of bool of shape (S,)
        States of the task's own goal.
    distance : ndarray of shape (S,)
        Fewest steps from the start; inf where it does not lead.
    limit : int
        Most steps of an episode.
    """

    mdp: MDP
    ends: BoolArray
    native: BoolArray
    distance: FloatArray
    limit: int

    @property
    def states(self) -> IndexArray:
        """States that the start leads to."""
        return np.flatnonzero(np.isfinite(self.distance))

    @property
    def start(self) -> int:
        """The state in which episodes begin."""
        assert self.mdp.start is not None
        return self.mdp.start

    @property
    def budget(self) -> int:
        """Primitive steps of a run: 100 per state, at most 200,000."""
        return min(100 * len(self.states), 200_000)


@lru_cache(maxsize=20)
def make_task(name: str) -> Task:
    """Return a task by its name: one of `TASKS` or `FRESH_TASKS`.

    >>> task = make_task("CliffWalking")
    >>> len(task.states), task.budget, np.flatnonzero(task.native).tolist()
    (38, 3800, [47])
    """
    _, source = {**TASKS, **FRESH_TASKS}[name]
    return describe_table(source() if callable(source) else from_env(source))


def describe_table(table: MDP) -> Task:
    """Return the task of a table.

    The native goal is where the environment ends an episode; where it never does, it is
    the state farthest from the start. An episode may last twenty times as long as the
    way to the farthest state.
    """
    mdp = MDP(table.transition, coords=table.coords, start=table.start or 0)

    distance = dijkstra(uniform_walk(mdp), indices=mdp.start, unweighted=True)
    is_known = np.isfinite(distance)
    ends = is_known & _find_absorbing_states(mdp)
    farthest = int(np.where(is_known, distance, -1).argmax())
    native = ends
    if not ends.any():
        native = np.arange(mdp.n_states) == farthest
    return Task(mdp, ends, native, distance, limit=20 * int(distance[farthest]))


def _find_absorbing_states(mdp: MDP) -> BoolArray:
    """Return ``(S,)`` where every action stays."""
    row, next_state = mdp.transition.nonzero()
    state = row // mdp.n_actions
    is_absorbing = np.ones(mdp.n_states, dtype=np.bool_)
    is_absorbing[state[state != next_state]] = False
    return is_absorbing


def draw_goals(task: Task, options: OptionSet, n: int, rng: int) -> NDArray[np.intp]:
    """Draw `n` different goals away from the ends of options, or all if there are less.

    A goal is a state that the start leads to, other than the start and the ends of the
    task. States in which an option ends, and their neighbours, are left out unless
    nothing remains. All others are equally likely.
    """
    is_allowed = np.isfinite(task.distance) & (task.distance > 0) & ~task.ends
    is_option_end = _find_option_ends(task.mdp, options)
    is_beside_end = graph(task.mdp) @ is_option_end > 0
    is_far = is_allowed & ~is_option_end & ~is_beside_end

    states = np.flatnonzero(is_allowed)
    if is_far.any():
        states = np.flatnonzero(is_far)
    n_goals = min(n, len(states))
    return np.random.default_rng(rng).choice(states, n_goals, replace=False)


def _find_option_ends(mdp: MDP, options: OptionSet) -> BoolArray:
    """Return ``(S,)`` where an option terminates that led there from another state."""
    is_end = np.zeros(mdp.n_states, dtype=np.bool_)
    for policy in np.asarray(options.policy):
        running = np.flatnonzero(policy >= 0)
        rows = running * mdp.n_actions + policy[running]
        after = np.unique(mdp.transition[rows].nonzero()[1])
        is_end[after[policy[after] < 0]] = True
    return is_end


class TableEnv(MazeEnv):
    """The table of a task as an environment.

    At the task's other ends it ends an episode without a reward.
    """

    def __init__(self, task: Task, goal: BoolArray) -> None:
        super().__init__(task.mdp)
        self.ends = task.ends | goal
        self.is_goal = goal

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        state, _, _, _, info = super().step(action)
        return state, float(self.is_goal[state]), bool(self.ends[state]), False, info


def make_table_env(task: Task, goal: BoolArray | None = None) -> gym.Env[Any, Any]:
    """Return the environment of a task with its time limit; rewards need a goal."""
    if goal is None:
        goal = np.zeros(task.mdp.n_states, dtype=np.bool_)
    return gym.wrappers.TimeLimit(TableEnv(task, goal), task.limit)


def measure_coverage(
    task: Task, first_visit: NDArray[np.int64], budget: int
) -> dict[str, float]:
    """Return mean and median of the first visits to states, and shares at `MARKS`.

    A state that was not visited counts with the budget.
    """
    visits = first_visit[task.states]
    steps = np.where(visits < 0, budget, visits)
    measured = {
        "mean_goal": float(steps.mean()),
        "median_goal": float(np.median(steps)),
    }
    for mark in MARKS:
        is_seen = (visits >= 0) & (visits <= mark * budget)
        measured[f"seen {mark:g}"] = float(is_seen.mean())
    return measured


def make_two_keys() -> MDP:
    """Return three rooms in a row, whose last corner ends the episode.

    A key in each of the first two rooms opens the third. States are the cell and the
    keys that the agent has; a key is taken by entering its cell.

    >>> make_two_keys().n_states
    442
    """
    rooms = maze(rooms_map(1, 3, 7, centred=True))
    assert rooms.coords is not None
    n_cells = rooms.n_states
    row, column = rooms.coords.T

    # Rooms are columns 1 to 7, 9 to 15 and 17 to 23; a door is between two of them. The
    # first key, bit 0, is at the bottom left, the second at the top right of its room.
    is_locked = column >= 16
    keys_at = np.zeros(n_cells, dtype=np.int64)
    bottom_left = np.lexsort((column, -row))[0]
    top_right = np.flatnonzero(column == 15)[0]
    keys_at[bottom_left] = 1
    keys_at[top_right] = 2

    # The last state, the last corner with both keys, is the end.
    successors = add_keys(rooms, keys_at, is_locked)
    successors[-1] = len(successors) - 1

    # Only states that the start leads to.
    is_reachable = reachable(MDP.from_successors(successors).transition, [0])
    states = np.flatnonzero(is_reachable)
    return MDP.from_successors(np.searchsorted(states, successors[states]))


_MINIGRID = "minigrid:MiniGrid-"

# Per task, a few words about it, and an environment's id or a function that makes its
# MDP.
TASKS: dict[str, tuple[str, str | Callable[[], MDP]]] = {
    "FourRooms": ("MiniGrid-FourRooms-v0", f"{_MINIGRID}FourRooms-v0"),
    "MultiRoom": ("MiniGrid-MultiRoom-N4-S5-v1", f"{_MINIGRID}MultiRoom-N4-S5-v1"),
    "KeyCorridor": ("MiniGrid-KeyCorridorS3R2-v0", f"{_MINIGRID}KeyCorridorS3R2-v0"),
    "DoorKey": ("MiniGrid-DoorKey-8x8-v0", f"{_MINIGRID}DoorKey-8x8-v0"),
    "perfect-21x21": (
        "a perfect maze: corridors without loops",
        partial(maze, "perfect:21x21"),
    ),
    "two-keys": (
        "three rooms in a row, of which the last needs two keys",
        make_two_keys,
    ),
    "Taxi": ("Taxi-v4 with one passenger and one destination", "Taxi-v4"),
    "CliffWalking": ("CliffWalking-v1", "CliffWalking-v1"),
    "rooms-5x5": ("25 rooms of 5 x 5 cells", partial(maze, rooms_map(5, 5, 5))),
    "rooms-10x10": ("100 rooms of 4 x 4 cells", partial(maze, rooms_map(10, 10, 4))),
}
