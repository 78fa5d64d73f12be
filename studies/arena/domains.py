"""Domains on which methods are compared: mazes, tilings and environments.

Some have one-way, stochastic or costly moves.

Every state of a domain can be reached from every other, so that diffusion times are
finite. Every step costs 1 unless the domain has costs of its own, so that methods that
need rewards work everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions.envs import from_env
from eigenoptions.mdp import MDP, maze
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.mdp.mazes import rooms_map


@lru_cache(maxsize=4)
def make_domain(name: str) -> MDP:
    """The MDP of a domain, with a start, without a goal, and with a reward per state.

    >>> make_domain("one-way")
    MDP(one-way: 104 states, 4 actions, deterministic, start 94)
    """
    source = DOMAINS[name][1]
    mdp = maze(source) if isinstance(source, str) else source()
    start = mdp.start
    if start is None:
        start = 0
    # Unless the domain says more, a step costs 1.
    reward = mdp.reward
    if reward is None:
        reward = np.full(mdp.n_states, -1.0)
    return replace(mdp, name=name, start=start, goal=None, reward=reward)


def make_costly_rooms() -> MDP:
    """Nine rooms, of which the one in the middle costs 20 per step.

    Every other room can be reached around it.

    >>> int((make_costly_rooms().reward < -1).sum())
    25
    """
    mdp = maze(rooms_map(3, 3, 5))
    in_the_middle = ((mdp.coords > 6) & (mdp.coords < 12)).all(axis=1)
    return replace(mdp, reward=np.where(in_the_middle, -20.0, -1.0))


def make_one_way_rooms() -> MDP:
    """Four rooms, passed clockwise: each door can be entered from one side only."""
    mdp = maze("four-rooms")
    successors = mdp.successors.copy()
    # Cell of each door, and the move that passes it.
    for cell, action in (((3, 6), 1), ((7, 9), 2), ((10, 6), 3), ((6, 2), 0)):
        door = int(np.flatnonzero((mdp.coords == cell).all(axis=1))[0])
        behind = successors[door, action]
        successors[behind, (action + 2) % 4] = behind
    return MDP.from_successors(successors, coords=mdp.coords, start=mdp.start)


def make_slippery_rooms(slip: float = 0.2) -> MDP:
    """Four rooms in which every fifth move goes in a random direction."""
    mdp = maze("four-rooms")
    uniform = np.full((mdp.n_actions, mdp.n_actions), 1.0 / mdp.n_actions)
    random_move = kron(eye_array(mdp.n_states), uniform) @ mdp.transition
    return replace(
        mdp, transition=csr_array((1.0 - slip) * mdp.transition + slip * random_move)
    )


def make_continuing(env: str) -> MDP:
    """A finite environment in which ends of episodes lead to the start.

    Only states that a walk visits again and again are kept.

    >>> make_continuing("FrozenLake-v1").n_states
    16
    """
    mdp = from_env(env)
    endless = continue_after_end(mdp)
    kept = np.flatnonzero(find_recurrent_states(endless))
    rows = (kept[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
    coords = None if mdp.coords is None else mdp.coords[kept]
    start = int(np.searchsorted(kept, mdp.start or 0))
    return MDP(csr_array(endless.transition[rows][:, kept]), coords=coords, start=start)


# Per domain, a few words about it, and a maze by name or a function that makes its MDP.
DOMAINS: dict[str, tuple[str, str | Callable[[], MDP]]] = {
    "four-rooms": ("the paper's four rooms", "four-rooms"),
    "open-room": ("the paper's open room", "open-room"),
    "i-maze": ("the paper's I-maze", "i-maze"),
    "nine-rooms": ("3 x 3 rooms of 5 x 5 states", lambda: maze(rooms_map(3, 3, 5))),
    "rooms-2x2": ("a tiling of rooms of 10 x 10 states", "rooms:2x2"),
    "perfect-10x10": ("a perfect maze: corridors without loops", "perfect:10x10"),
    "perfect-15x15": ("a larger perfect maze", "perfect:15x15"),
    "frozen-lake": (
        "FrozenLake8x8: stochastic moves, ends lead to the start",
        partial(make_continuing, "FrozenLake8x8-v1"),
    ),
    "taxi": (
        "Taxi with one destination, deliveries lead to the start",
        partial(make_continuing, "Taxi-v4"),
    ),
    "one-way": ("four rooms whose doors are one-way", make_one_way_rooms),
    "slippery": (
        "four rooms, every fifth move in a random direction",
        make_slippery_rooms,
    ),
    "costly": ("nine rooms, the middle one costs 20 per step", make_costly_rooms),
}
