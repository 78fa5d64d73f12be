"""Tasks of the deep agents: eight for the results, and others to choose settings on.

A seed draws all of a task: the layout or the passenger, the start and the goal. The
seeds of the results are `TEST_SEEDS`. They were committed before the agents that are
tested on them, and nothing was chosen on them: settings come from `DEVELOPMENT_TASKS`,
which are other kinds or other sizes, with other seeds.

Tables show the number of the state, MiniGrid shows the agent's view of 7 x 7 cells.
Only the goal gives a reward, and it ends the episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.sparse.csgraph import dijkstra

from eigenoptions.envs import FixedSeed, MazeEnv
from eigenoptions.mdp import MDP, maze, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.mdp.mazes import perfect_map, rooms_map
from studies.arena.keys import add_keys

TEST_SEEDS = range(5000, 5020)
DEVELOPMENT_SEEDS = range(100, 104)

Env = gym.Env[Any, Any]


@dataclass(frozen=True)
class DeepTask:
    """A kind of task for deep agents.

    Attributes
    ----------
    about : str
        What it is, in a few words.
    make : callable
        From a seed to the environment, which has a time limit.
    budget : int
        Primitive steps of a run.
    """

    about: str
    make: Callable[[int], Env]
    budget: int


def make_rooms(seed: int, *, rows: int, cols: int, size: int, slip: float = 0.0) -> MDP:
    """Rooms whose doors, start and goal are drawn.

    >>> make_rooms(0, rows=2, cols=2, size=3).n_states
    40
    """
    rng = np.random.default_rng(seed)
    rooms = maze(rooms_map(rows, cols, size, rng=rng))
    return draw_task(make_slippery(rooms, slip), rng)


def make_perfect(seed: int, *, rows: int, cols: int) -> MDP:
    """A perfect maze whose corridors, start and goal are drawn.

    >>> make_perfect(0, rows=3, cols=3).n_states
    17
    """
    rng = np.random.default_rng(seed)
    corridors = perfect_map(rows, cols, rng=rng)
    return draw_task(maze(corridors), rng)


def make_keys(seed: int, *, n_rooms: int, size: int) -> MDP:
    """Rooms in a row, of which the last needs a key from each of the others.

    A key is taken by entering its cell. The cells of the keys, the start in the first
    room and the goal in the last are drawn. States are the cell and the keys taken.

    >>> make_keys(0, n_rooms=2, size=3).n_states
    27
    """
    rng = np.random.default_rng(seed)
    rooms = maze(rooms_map(1, n_rooms, size, rng=rng))
    n_cells = rooms.n_states
    assert rooms.coords is not None
    column = rooms.coords[:, 1]
    is_door = column % (size + 1) == 0
    room = np.where(is_door, -1, column // (size + 1))

    # Bit i of `keys_at` is the key of room i.
    keys_at = np.zeros(n_cells, dtype=np.int64)
    for number in range(n_rooms - 1):
        keys_at[rng.choice(np.flatnonzero(room == number))] = 1 << number
    has_no_key = keys_at == 0
    start = int(rng.choice(np.flatnonzero((room == 0) & has_no_key)))
    goal = int(rng.choice(np.flatnonzero(room == n_rooms - 1)))

    # The last door is closed until all keys are taken.
    is_last_door = column == (n_rooms - 1) * (size + 1)
    successors = add_keys(rooms, keys_at, is_last_door)
    # The goal with all keys: the last set of them.
    goal_state = len(successors) - n_cells + goal

    # Only states that the start leads to.
    table = MDP.from_successors(successors)
    states = np.flatnonzero(reachable(table.transition, [start]))
    return MDP.from_successors(
        np.searchsorted(states, successors[states]),
        start=int(np.searchsorted(states, start)),
        goal=int(np.searchsorted(states, goal_state)),
    )


def make_slippery(mdp: MDP, slip: float) -> MDP:
    """The table where each action is, with chance `slip`, another one at random.

    >>> make_slippery(maze("..."), 0.4).transition.toarray()[1].tolist()
    [0.4, 0.6, 0.0]
    """
    if slip == 0.0:
        return mdp
    shape = (mdp.n_states, mdp.n_actions, mdp.n_states)
    table = mdp.transition.toarray().reshape(shape)
    total = table.sum(axis=1, keepdims=True)
    # The mean of all other actions.
    others = (total - table) / (mdp.n_actions - 1)
    return MDP((1.0 - slip) * table + slip * others, coords=mdp.coords)


def draw_task(mdp: MDP, rng: np.random.Generator) -> MDP:
    """The table with a drawn start, and a goal of the half that is farthest from it.

    >>> task = draw_task(maze("....."), np.random.default_rng(0))
    >>> task.start, task.goal
    (4, 1)
    """
    start = int(rng.integers(mdp.n_states))
    distance = dijkstra(uniform_walk(mdp), indices=start, unweighted=True)
    is_far = distance >= np.median(distance)
    goal = int(rng.choice(np.flatnonzero(is_far)))
    return mdp.with_task(start, goal)


def make_table_env(seed: int, *, make_mdp: Callable[[int], MDP], limit: int) -> Env:
    """The environment of a table, with its time limit."""
    return gym.wrappers.TimeLimit(MazeEnv(make_mdp(seed)), limit)


class GoalReward(gym.Wrapper[Any, Any, Any, Any]):
    """Reward 1 where an episode terminates, and 0 elsewhere.

    It is for environments whose episodes terminate only at their goal.
    """

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step of the environment."""
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, float(terminated), terminated, truncated, info


def make_gymnasium_env(seed: int, *, name: str) -> Env:
    """An environment of Gymnasium in the layout of the seed."""
    return GoalReward(FixedSeed(gym.make(name, max_episode_steps=200), seed))


def make_minigrid_env(seed: int, *, name: str) -> Env:
    """MiniGrid in the layout of the seed; the agent observes its view."""
    from minigrid.wrappers import ImgObsWrapper

    env = gym.make(f"minigrid:MiniGrid-{name}")
    view: Env = ImgObsWrapper(env)  # type: ignore[no-untyped-call]
    return GoalReward(FixedSeed(view, seed))


def _make_tables(make_mdp: Callable[..., MDP], limit: int, **sizes: Any) -> Any:
    return partial(make_table_env, make_mdp=partial(make_mdp, **sizes), limit=limit)


# Nothing is chosen on these.
TEST_TASKS = {
    "rooms": DeepTask(
        "16 rooms of 5 x 5 cells",
        _make_tables(make_rooms, 300, rows=4, cols=4, size=5),
        4000,
    ),
    "perfect": DeepTask(
        "a perfect maze of 9 x 9 crossings",
        _make_tables(make_perfect, 300, rows=9, cols=9),
        4000,
    ),
    "two-keys": DeepTask(
        "three rooms in a row, of which the last needs two keys",
        _make_tables(make_keys, 300, n_rooms=3, size=5),
        4000,
    ),
    "slippery": DeepTask(
        "9 rooms of 4 x 4 cells; one action in five is another one",
        _make_tables(make_rooms, 300, rows=3, cols=3, size=4, slip=0.2),
        4000,
    ),
    "Taxi": DeepTask(
        "Taxi-v4 with one passenger and one destination",
        partial(make_gymnasium_env, name="Taxi-v4"),
        4000,
    ),
    "FourRooms": DeepTask(
        "views of MiniGrid-FourRooms-v0",
        partial(make_minigrid_env, name="FourRooms-v0"),
        5000,
    ),
    "MultiRoom": DeepTask(
        "views of MiniGrid-MultiRoom-N4-S5-v1",
        partial(make_minigrid_env, name="MultiRoom-N4-S5-v1"),
        5000,
    ),
    "DoorKey": DeepTask(
        "views of MiniGrid-DoorKey-6x6-v0",
        partial(make_minigrid_env, name="DoorKey-6x6-v0"),
        5000,
    ),
}

# Those whose observation is a view.
VIEW_TASKS = ("FourRooms", "MultiRoom", "DoorKey")

# Settings are chosen on these, with `DEVELOPMENT_SEEDS`.
DEVELOPMENT_TASKS = {
    "long rooms": DeepTask(
        "10 rooms of 6 x 6 cells",
        _make_tables(make_rooms, 300, rows=2, cols=5, size=6),
        4000,
    ),
    "small perfect": DeepTask(
        "a perfect maze of 6 x 12 crossings",
        _make_tables(make_perfect, 300, rows=6, cols=12),
        4000,
    ),
    "one key": DeepTask(
        "two rooms, of which the last needs a key",
        _make_tables(make_keys, 300, n_rooms=2, size=8),
        4000,
    ),
    "slippery corridor": DeepTask(
        "8 rooms of 3 x 3 cells in two rows; one action in ten is another one",
        _make_tables(make_rooms, 300, rows=2, cols=4, size=3, slip=0.1),
        4000,
    ),
    "CliffWalking": DeepTask(
        "CliffWalking-v1 without its costs",
        partial(make_gymnasium_env, name="CliffWalking-v1"),
        4000,
    ),
    "Crossing": DeepTask(
        "views of MiniGrid-SimpleCrossingS9N2-v0",
        partial(make_minigrid_env, name="SimpleCrossingS9N2-v0"),
        5000,
    ),
    "two rooms": DeepTask(
        "views of MiniGrid-MultiRoom-N2-S4-v0",
        partial(make_minigrid_env, name="MultiRoom-N2-S4-v0"),
        5000,
    ),
    "small DoorKey": DeepTask(
        "views of MiniGrid-DoorKey-5x5-v0",
        partial(make_minigrid_env, name="DoorKey-5x5-v0"),
        5000,
    ),
}

DEEP_TASKS = TEST_TASKS | DEVELOPMENT_TASKS
