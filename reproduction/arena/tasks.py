"""Ten tasks for agents, as tables.

Each has a start, ends of episodes, a time limit, a native goal and random goals.

All of them are deterministic. Reaching the goal gives reward 1 and ends the episode;
nothing else gives a reward.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from eigenoptions.discovery import discover
from eigenoptions.discovery.cycle import cycle
from eigenoptions.envs import MazeEnv, from_env
from eigenoptions.mdp import MDP, graph, maze, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.mdp.mazes import rooms_map
from eigenoptions.options import OptionSet

# Of tables: dictionaries by name of column.
Rows = list[dict[str, Any]]
# Shares of the budget at which coverage is measured.
MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Task:
    """A table to learn in: `mdp` has a start and no goal.

    `ends` (S,) are the states in which an episode ends, `native` (S,) those of the
    task's own goal, `distance` (S,) the steps from the start (inf where it does not
    lead), and `limit` the most steps of an episode.
    """

    mdp: MDP
    ends: NDArray[np.bool_]
    native: NDArray[np.bool_]
    distance: NDArray[np.float64]
    limit: int

    @property
    def states(self) -> NDArray[np.intp]:
        """States that the start leads to."""
        return np.flatnonzero(np.isfinite(self.distance))

    @property
    def budget(self) -> int:
        """Primitive steps of a run: 100 per state, at most 200,000."""
        return min(100 * len(self.states), 200_000)


@lru_cache(maxsize=10)
def make_task(name: str) -> Task:
    """A task by its name.

    The native goal is where the environment ends an episode; where it never does, it is
    the state farthest from the start. An episode may last twenty times as long as the
    way to the farthest state.

    >>> task = make_task("CliffWalking")
    >>> len(task.states), task.budget, np.flatnonzero(task.native).tolist()
    (38, 3800, [47])
    """
    source = TASKS[name][1]
    mdp = source() if callable(source) else from_env(source)
    mdp = MDP(mdp.transition, coords=mdp.coords, start=mdp.start or 0)
    distance = dijkstra(uniform_walk(mdp), indices=mdp.start, unweighted=True)
    is_known = np.isfinite(distance)
    ends = is_known & (mdp.successors == np.arange(mdp.n_states)[:, None]).all(axis=1)
    farthest = int(np.where(is_known, distance, -1).argmax())
    native = ends if ends.any() else np.arange(mdp.n_states) == farthest
    return Task(mdp, ends, native, distance, 20 * int(distance[farthest]))


def draw_goals(task: Task, options: OptionSet, n: int, rng: int) -> NDArray[np.intp]:
    """Draw `n` goals from the states that are not beside an option's end.

    All such states are equally likely; if there are no more than `n`, all are goals.

    Never a goal are the start and what it does not lead to, and the ends of episodes.
    Ends of options are states where an option terminates that leads there from another;
    these and their neighbours are left out, unless nothing remains.
    """
    policy, successors = np.asarray(options.policy), task.mdp.successors
    stops = np.zeros(task.mdp.n_states, dtype=np.bool_)
    for row in policy:
        after = successors[row >= 0, row[row >= 0]]
        stops[after[row[after] < 0]] = True
    allowed = np.isfinite(task.distance) & ~task.ends & (task.distance > 0)
    is_far = allowed & ~stops & ~(graph(task.mdp) @ stops > 0)
    states = np.flatnonzero(is_far if is_far.any() else allowed)
    return np.random.default_rng(rng).choice(states, min(n, len(states)), replace=False)


class TableEnv(MazeEnv):
    """The table of a task as an environment.

    At the task's other ends it ends an episode without a reward.
    """

    def __init__(self, task: Task, goal: NDArray[np.bool_]) -> None:
        super().__init__(task.mdp)
        self.ends, self.is_goal = task.ends | goal, goal

    def step(self, action: int) -> Any:
        """Take one action."""
        state, _, _, _, info = super().step(action)
        return state, float(self.is_goal[state]), bool(self.ends[state]), False, info


def make_table_env(
    task: Task, goal: NDArray[np.bool_] | None = None
) -> gym.Env[Any, Any]:
    """The environment of a task with its time limit; rewards need a goal."""
    none = np.zeros(task.mdp.n_states, dtype=np.bool_)
    return gym.wrappers.TimeLimit(
        TableEnv(task, none if goal is None else goal), task.limit
    )


def measure_goal(
    is_goal: Any, first_visit: Any, budget: int, is_learned: bool
) -> dict[str, Any]:
    """Steps until the first goal, or the budget, and whether the goal is learned."""
    visits = first_visit[is_goal & (first_visit >= 0)]
    return {
        "first_goal": int(visits.min(initial=budget)),
        "learned": bool(is_learned),
        "budget": budget,
    }


def measure_coverage(
    task: Task, first_visit: NDArray[np.int64], budget: int
) -> dict[str, float]:
    """Mean and median of the first visits to states, and shares seen at `MARKS`."""
    visits = first_visit[task.states]
    steps = np.where(visits < 0, budget, visits)
    seen = {
        f"seen {mark:g}": float(np.mean((visits >= 0) & (visits <= mark * budget)))
        for mark in MARKS
    }
    return {
        "mean_goal": float(steps.mean()),
        "median_goal": float(np.median(steps)),
        **seen,
    }


@lru_cache(maxsize=10)
def get_known_options(task: str) -> OptionSet:
    """Options of a task's table, by the library's defaults for environments."""
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    return discover(make_table_env(make_task(task)))


@lru_cache(maxsize=4)
def find_options(
    task: str, steps: int, seed: int, rounds: int = 4
) -> tuple[Any, NDArray[np.int64]]:
    """Options of the last round of `cycle`, and the first visit to each state.

    The settings of `cycle` are its defaults.

    A table that `cycle` walks through has one end of episodes, so all ends count as the
    first of them.
    """
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    about, options = make_task(task), None
    successors = np.array(about.mdp.successors)
    end = int(about.ends.argmax()) if about.ends.any() else None
    successors[about.ends[successors]] = end or 0
    mdp = MDP.from_successors(successors, start=about.mdp.start, goal=end)
    first_visit = np.full(mdp.n_states, -1)
    walking: Any = {
        "steps": steps // rounds,
        "rounds": rounds,
        "max_episode_steps": about.limit,
        "rng": seed,
    }
    for snapshot in cycle(mdp, **walking):
        note_first_visits(first_visit, snapshot)
        options = snapshot.options
    return options, first_visit


def note_first_visits(first_visit: NDArray[np.int64], snapshot: Any) -> None:
    """Fill in the missing first visits (-1) with those of the last round of `cycle`."""
    states, first = np.unique(snapshot.transitions.next_obs, return_index=True)
    steps = snapshot.steps - len(snapshot.transitions) + first + 1
    first_visit[states] = np.where(first_visit[states] < 0, steps, first_visit[states])


def make_two_keys() -> MDP:
    """Three rooms in a row, whose last corner ends the episode.

    A key in each of the first two rooms opens the third.

    States are the cell and the keys that the agent has; a key is taken by entering its
    cell.

    >>> make_two_keys().n_states
    442
    """
    rooms = maze(rooms_map(1, 3, 7, centred=True))
    n, column = rooms.n_states, rooms.coords[:, 1]
    is_locked = column >= 16
    keys_at = np.zeros(n, dtype=int)
    keys_at[np.lexsort((column, -rooms.coords[:, 0]))[0]] = 1
    keys_at[np.flatnonzero(column == 15)[0]] = 2
    # State keys * n + cell.
    keys, cell = np.divmod(np.arange(4 * n), n)
    after = rooms.successors[cell]
    after = np.where(is_locked[after] & (keys < 3)[:, None], cell[:, None], after)
    successors = (keys[:, None] | keys_at[after]) * n + after
    successors[-1] = 4 * n - 1
    states = np.flatnonzero(reachable(MDP.from_successors(successors).transition, [0]))
    return MDP.from_successors(np.searchsorted(states, successors[states]))


MINIGRID = "minigrid:MiniGrid-"
# Per task, a few words about it, and an environment's id or a function that makes its
# MDP.
TASKS: dict[str, tuple[str, str | Callable[[], MDP]]] = {
    "FourRooms": ("MiniGrid-FourRooms-v0", f"{MINIGRID}FourRooms-v0"),
    "MultiRoom": ("MiniGrid-MultiRoom-N4-S5-v1", f"{MINIGRID}MultiRoom-N4-S5-v1"),
    "KeyCorridor": ("MiniGrid-KeyCorridorS3R2-v0", f"{MINIGRID}KeyCorridorS3R2-v0"),
    "DoorKey": ("MiniGrid-DoorKey-8x8-v0", f"{MINIGRID}DoorKey-8x8-v0"),
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
