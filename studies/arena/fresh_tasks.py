"""Ten further tasks, on which nothing is tuned: four of them are stochastic.

Sizes, layouts, starts, keys and one-way doors are drawn from one seed. It and the seeds
of the runs were committed before the first run on these tasks; settings are chosen on
other maps and other seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions.envs import from_env
from eigenoptions.mdp import MDP, maze
from eigenoptions.mdp.mazes import perfect_map, rooms_map

# Of everything below that is drawn.
_SEED = 20_381_118

# Of the runs on these tasks: none of them serves to choose a setting.
FRESH_SEEDS = range(38_000, 38_010)


def _make_generator(number: int) -> np.random.Generator:
    """Return the generator of the task with this number."""
    return np.random.default_rng([_SEED, number])


def _draw_seed(rng: np.random.Generator) -> int:
    """Draw the seed of a layout."""
    return int(rng.integers(2**31))


def _place_start(mdp: MDP, rng: np.random.Generator) -> MDP:
    """Return the same map with a random start."""
    return replace(mdp, start=int(rng.integers(mdp.n_states)))


def _draw_rooms(rng: np.random.Generator) -> MDP:
    """Draw rooms with one door between any two neighbours, and a start."""
    rows = int(rng.integers(3, 7))
    cols = int(rng.integers(3, 7))
    size = int(rng.integers(4, 8))
    return _place_start(maze(rooms_map(rows, cols, size, rng=rng)), rng)


def _draw_perfect_maze(rng: np.random.Generator) -> MDP:
    """Draw a maze of corridors without loops, and a start."""
    rows = int(rng.integers(12, 19))
    cols = int(rng.integers(12, 19))
    return _place_start(maze(perfect_map(rows, cols, rng=rng)), rng)


def make_slippery(mdp: MDP, slip: float) -> MDP:
    """Return the same map, in which a share of the moves has a random direction."""
    uniform = np.full((mdp.n_actions, mdp.n_actions), 1.0 / mdp.n_actions)
    random_move = kron(eye_array(mdp.n_states), uniform) @ mdp.transition
    mixture = (1.0 - slip) * mdp.transition + slip * random_move
    return replace(mdp, transition=csr_array(mixture))


def _find_doors(mdp: MDP) -> list[tuple[int, int, int]]:
    """Return each door as (state before it, action that enters it, door).

    A door is a cell with two neighbours, on opposite sides.
    """
    successors = mdp.successors
    assert successors is not None
    doors = []
    for state in range(mdp.n_states):
        is_free = successors[state] != state
        for action in (1, 2):
            back = (action + 2) % 4
            others = [a for a in range(4) if a not in (action, back)]
            is_between = is_free[action] and is_free[back]
            if is_between and not is_free[others].any():
                doors.append((int(successors[state, back]), action, state))
    return doors


def _make_rooms(number: int) -> MDP:
    return _draw_rooms(_make_generator(number))


def _make_perfect_maze(number: int) -> MDP:
    return _draw_perfect_maze(_make_generator(number))


def _make_slippery_rooms(number: int) -> MDP:
    rng = _make_generator(number)
    return make_slippery(_draw_rooms(rng), slip=0.2)


def _make_slippery_maze(number: int) -> MDP:
    rng = _make_generator(number)
    rows = int(rng.integers(8, 13))
    cols = int(rng.integers(8, 13))
    mdp = _place_start(maze(perfect_map(rows, cols, rng=rng)), rng)
    return make_slippery(mdp, slip=0.1)


def _make_one_way_rooms(number: int) -> MDP:
    """Rooms of which a third of the doors can be passed in one direction only."""
    rng = _make_generator(number)
    mdp = _draw_rooms(rng)
    assert mdp.successors is not None
    successors = mdp.successors.copy()
    for before, action, door in _find_doors(mdp):
        if rng.random() >= 1 / 3:
            continue
        behind = int(mdp.successors[door, action])
        # Entering from one of the two sides fails.
        if rng.random() < 0.5:
            successors[before, action] = before
        else:
            successors[behind, (action + 2) % 4] = behind
    return MDP.from_successors(successors, coords=mdp.coords, start=mdp.start)


def _make_locked_rooms(number: int) -> MDP:
    """Rooms in a row, of which each has the key of the door to the next.

    States are ``keys * n_cells + cell``, where `keys` is the number of keys so far. A
    key is taken by entering its cell.
    """
    rng = _make_generator(number)
    n_rooms = int(rng.integers(4, 6))
    size = int(rng.integers(5, 8))
    rooms = maze(rooms_map(1, n_rooms, size, rng=rng))
    assert rooms.successors is not None
    assert rooms.coords is not None
    n_cells = rooms.n_states
    column = rooms.coords[:, 1]
    room = (column - 1) // (size + 1)
    is_door = column % (size + 1) == 0

    key_cells = []
    for number_of_room in range(n_rooms - 1):
        inside = np.flatnonzero((room == number_of_room) & ~is_door)
        key_cells.append(int(rng.choice(inside)))
    start = int(rng.choice(np.flatnonzero((room == 0) & ~is_door)))

    # The door behind room r is locked until r + 1 keys were taken.
    lock = np.where(is_door, room + 1, 0)
    successors = np.empty((n_rooms * n_cells, 4), dtype=np.int64)
    for n_keys in range(n_rooms):
        after = rooms.successors.astype(np.int64)
        stays = np.arange(n_cells)[:, None]
        after = np.where(lock[after] > n_keys, stays, after)
        keys_after = np.full(after.shape, n_keys)
        if n_keys < n_rooms - 1:
            keys_after[after == key_cells[n_keys]] = n_keys + 1
        rows = slice(n_keys * n_cells, (n_keys + 1) * n_cells)
        successors[rows] = keys_after * n_cells + after
    return MDP.from_successors(successors, start=start)


def _make_minigrid(env: str, number: int) -> MDP:
    seed = _draw_seed(_make_generator(number))
    return from_env(f"minigrid:MiniGrid-{env}", seed=seed)


def _make_frozen_lake(number: int) -> MDP:
    rng = _make_generator(number)
    size = int(rng.integers(12, 17))
    lake = generate_random_map(size=size, p=0.9, seed=_draw_seed(rng))
    with gym.make("FrozenLake-v1", desc=lake, is_slippery=True) as env:
        return from_env(env)


def _make_rainy_taxi(number: int) -> MDP:
    rng = _make_generator(number)
    with gym.make("Taxi-v4", is_rainy=True) as env:
        mdp = from_env(env)
        starts = np.flatnonzero(env.unwrapped.initial_state_distrib)  # type: ignore[attr-defined]
    return replace(mdp, start=int(rng.choice(starts)))


# Per task, a few words about it, and the function that makes its MDP.
FRESH_TASKS: dict[str, tuple[str, Callable[[], MDP]]] = {
    "rooms": ("generated rooms", partial(_make_rooms, 0)),
    "perfect maze": ("corridors without loops", partial(_make_perfect_maze, 1)),
    "one-way rooms": (
        "rooms, a third of the doors passable in one direction",
        partial(_make_one_way_rooms, 2),
    ),
    "locked rooms": (
        "rooms in a row, each has the key of the door to the next",
        partial(_make_locked_rooms, 3),
    ),
    "other MultiRoom": (
        "MiniGrid-MultiRoom-N4-S5-v1, another layout",
        partial(_make_minigrid, "MultiRoom-N4-S5-v1", 4),
    ),
    "LavaCrossing": (
        "MiniGrid-LavaCrossingS9N1-v0: lava ends an episode",
        partial(_make_minigrid, "LavaCrossingS9N1-v0", 5),
    ),
    "slippery rooms": (
        "rooms, every fifth move in a random direction",
        partial(_make_slippery_rooms, 6),
    ),
    "slippery maze": (
        "corridors without loops, every tenth move in a random direction",
        partial(_make_slippery_maze, 7),
    ),
    "FrozenLake": (
        "a generated lake, slippery; holes end an episode",
        partial(_make_frozen_lake, 8),
    ),
    "rainy Taxi": (
        "Taxi-v4 with rain, which turns every fifth move aside",
        partial(_make_rainy_taxi, 9),
    ),
}
