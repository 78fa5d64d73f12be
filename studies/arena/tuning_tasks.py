"""Tasks on which settings are chosen: other maps and layouts than those reported."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from eigenoptions.envs import from_env
from eigenoptions.mdp import MDP, maze
from eigenoptions.mdp.mazes import perfect_map, rooms_map
from studies.arena.domains import make_one_way_rooms
from studies.arena.fresh_tasks import make_slippery
from studies.arena.tasks import Task, describe_table

# No other seed is used to choose a setting.
TUNING_SEEDS = (100, 101, 102)


def _draw_rooms(rows: int, cols: int, size: int, seed: int) -> MDP:
    return maze(rooms_map(rows, cols, size, rng=seed))


def _draw_perfect_maze(rows: int, cols: int, seed: int) -> MDP:
    return maze(perfect_map(rows, cols, rng=seed))


def _make_minigrid(name: str) -> MDP:
    return from_env(f"minigrid:MiniGrid-{name}-v0", seed=1)


def _make_slippery_rooms() -> MDP:
    return make_slippery(_draw_rooms(3, 4, 5, seed=5), slip=0.2)


def _make_slippery_maze() -> MDP:
    return make_slippery(_draw_perfect_maze(9, 9, seed=6), slip=0.1)


TUNING_TASKS: dict[str, Callable[[], MDP]] = {
    "tuning rooms 3x3": partial(_draw_rooms, 3, 3, 6, seed=1),
    "tuning rooms 7x7": partial(_draw_rooms, 7, 7, 4, seed=2),
    "tuning perfect 12x12": partial(_draw_perfect_maze, 12, 12, seed=3),
    "tuning perfect 20x20": partial(_draw_perfect_maze, 20, 20, seed=4),
    "tuning FourRooms": partial(_make_minigrid, "FourRooms"),
    "tuning DoorKey-6x6": partial(_make_minigrid, "DoorKey-6x6"),
    "tuning KeyCorridorS3R1": partial(_make_minigrid, "KeyCorridorS3R1"),
    "tuning Unlock": partial(_make_minigrid, "Unlock"),
    "tuning one-way four rooms": make_one_way_rooms,
    "tuning FrozenLake8x8": partial(from_env, "FrozenLake8x8-v1"),
    "tuning slippery rooms": _make_slippery_rooms,
    "tuning slippery maze": _make_slippery_maze,
}


@lru_cache(maxsize=12)
def make_tuning_task(name: str) -> Task:
    """Return a task that settings are chosen on.

    >>> len(make_tuning_task("tuning one-way four rooms").states)
    104
    """
    return describe_table(TUNING_TASKS[name]())
