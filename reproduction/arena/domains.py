"""Domains of the arena: mazes, tilings, environments, and one each with one-way, uncertain and costly moves.

Every state of a domain can be reached from every other, so that diffusion times are finite. Every step costs 1 unless
the domain has costs of its own, so that methods that need rewards work everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron

from eigenoptions._validation import check_choice
from eigenoptions.envs import from_env
from eigenoptions.mdp import MDP, maze, reachable
from eigenoptions.mdp.maps import rooms_map

# Reward of a step from a costly state; others cost 1.
COSTLY = -20.0
# Chance that a move of the slippery domain goes in a random direction.
SLIP = 0.2
# Doors of four rooms (row, column), and the move that passes each in the one-way domain: clockwise.
ONE_WAY_DOORS = (((3, 6), 1), ((7, 9), 2), ((10, 6), 3), ((6, 2), 0))


@dataclass(frozen=True)
class Domain:
    """A domain: what it is in a few words, and a maze by name or a function that builds its MDP."""

    about: str
    source: str | Callable[[], MDP]


@lru_cache(maxsize=4)
def build(name: str) -> MDP:
    """The MDP of a domain, with a start, without a goal, and with a reward per state.

    >>> build("one-way")
    MDP(one-way: 104 states, 4 actions, deterministic, start 94)
    """
    source = DOMAINS[check_choice("domain", name, tuple(DOMAINS))].source
    mdp = maze(source) if isinstance(source, str) else source()
    reward = np.full(mdp.n_states, -1.0) if mdp.reward is None else mdp.reward
    return replace(mdp, name=name, start=0 if mdp.start is None else mdp.start, goal=None, reward=reward)


def nine_rooms() -> MDP:
    """Nine rooms of 5 x 5 states.

    >>> nine_rooms().n_states
    237
    """
    return maze(rooms_map(3, 3, 5))


def costly() -> MDP:
    """Nine rooms, of which the one in the middle costs 20 per step; every other room can be reached around it.

    >>> int((costly().reward < -1).sum())
    25
    """
    mdp = nine_rooms()
    assert mdp.coords is not None
    middle = ((mdp.coords > 6) & (mdp.coords < 12)).all(axis=1)
    return replace(mdp, reward=np.where(middle, COSTLY, -1.0))


def one_way() -> MDP:
    """Four rooms whose doors can be entered from one side only, so that the rooms are passed clockwise."""
    mdp = maze("four-rooms")
    assert mdp.coords is not None
    assert mdp.successors is not None
    moves: NDArray[np.int32] = mdp.successors.copy()
    for place, action in ONE_WAY_DOORS:
        door = int(np.flatnonzero((mdp.coords == place).all(axis=1))[0])
        behind = moves[door, action]
        moves[behind, (action + 2) % 4] = behind
    table = csr_array((np.ones(moves.size), moves.ravel(), np.arange(moves.size + 1)))
    return replace(mdp, transition=table)


def slippery() -> MDP:
    """Four rooms in which every fifth move goes in a random direction."""
    mdp = maze("four-rooms")
    n, A = mdp.n_states, mdp.n_actions
    any_move = kron(eye_array(n), np.full((A, A), 1.0 / A))
    table = csr_array((1.0 - SLIP) * mdp.transition + SLIP * (any_move @ mdp.transition))
    return replace(mdp, transition=table)


def continuing(env: str) -> MDP:
    """A finite environment in which the next episode begins where one has ended: ends of episodes lead to the start.

    Only states that the start can reach, and that can reach the start, are kept.

    >>> continuing("FrozenLake-v1").n_states
    16
    """
    with warnings.catch_warnings():
        # A name without a version stands for the newest, of which Gymnasium warns.
        warnings.simplefilter("ignore")
        mdp = from_env(env)
    n, A = mdp.n_states, mdp.n_actions
    start = mdp.start or 0
    stays = np.asarray(mdp.transition[np.arange(n * A), np.repeat(np.arange(n), A)]).reshape(n, A)
    ended = np.repeat((stays == 1.0).all(axis=1), A)
    restart = csr_array((np.ones(n * A), (np.arange(n * A), np.full(n * A, start))), shape=(n * A, n))
    table = csr_array(mdp.transition.multiply(~ended[:, None]) + restart.multiply(ended[:, None]))
    table.eliminate_zeros()
    kept = np.flatnonzero(reachable(table, [start]) & reachable(table, [start], backward=True))
    rows = (kept[:, None] * A + np.arange(A)).ravel()
    inside = csr_array(table[rows][:, kept])
    return MDP(
        inside,
        coords=None if mdp.coords is None else np.asarray(mdp.coords)[kept],
        start=int(np.searchsorted(kept, start)),
    )


DOMAINS = {
    "four-rooms": Domain("the paper's four rooms", "four-rooms"),
    "open-room": Domain("the paper's open room", "open-room"),
    "i-maze": Domain("the paper's I-maze", "i-maze"),
    "nine-rooms": Domain("3 x 3 rooms of 5 x 5 states", nine_rooms),
    "rooms-2x2": Domain("a tiling of rooms of 10 x 10 states", "rooms:2x2"),
    "rooms-5x5": Domain("a tiling of 25 rooms", "rooms:5x5"),
    "rooms-10x10": Domain("a tiling of 100 rooms", "rooms:10x10"),
    "perfect-10x10": Domain("a perfect maze: corridors without loops", "perfect:10x10"),
    "perfect-15x15": Domain("a larger perfect maze", "perfect:15x15"),
    "frozen-lake": Domain(
        "FrozenLake8x8: uncertain moves, ends lead to the start", partial(continuing, "FrozenLake8x8-v1")
    ),
    "taxi": Domain("Taxi with one destination, deliveries lead to the start", partial(continuing, "Taxi")),
    "one-way": Domain("four rooms whose doors are one-way", one_way),
    "slippery": Domain("four rooms, every fifth move in a random direction", slippery),
    "costly": Domain("nine rooms, the middle one costs 20 per step", costly),
}
