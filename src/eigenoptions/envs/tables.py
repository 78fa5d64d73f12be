"""The MDP of an environment that lists its transitions: ``P[s][a]`` of toy-text."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, FloatArray
from eigenoptions.envs.families import Places
from eigenoptions.envs.sources import count_actions
from eigenoptions.mdp import MDP, reachable

logger = logging.getLogger("eigenoptions")

# One row per outcome that a table lists.
_OUTCOME = np.dtype(
    [
        ("before", np.intp),
        ("action", np.intp),
        ("after", np.intp),
        ("probability", np.float64),
        ("reward", np.float64),
        ("done", np.bool_),
    ]
)


# What every action does in every state: an environment's ``table[s][a]``.
Table: TypeAlias = Mapping[int, Any] | Sequence[Any]


def read_table(env: gym.Env[Any, Any], table: Table, name: str) -> MDP:
    """Return the MDP of an environment's own table.

    Every action stays put where episodes only end. Moves that end an episode elsewhere
    lead to an additional state. Actions stay put, too, in states that are never
    reached: the moves that a table lists there never happen, and would be edges
    of the graph.

    Parameters
    ----------
    env : gymnasium.Env
        The unwrapped environment.
    table : dict or list
        ``table[s][a]`` lists tuples ``(probability, next state, reward, done)``.
    name : str
        Name of the MDP.
    """
    n_actions = count_actions(env)
    n_states = len(table)
    if isinstance(env.observation_space, Discrete):
        n_states = int(env.observation_space.n)
    outcomes = _list_outcomes(table, n_actions)
    _check_states(outcomes, n_states, name)

    start_chance = _find_start_chance(env, outcomes, n_states)
    has_moves = np.isin(np.arange(n_states), outcomes["before"])
    last_moves, is_end = _find_ends(outcomes, start_chance, has_moves)

    # Reached are also states that a table lists past the end of an episode, such as
    # Taxi's drive after the delivery.
    is_reached = _find_reached(outcomes, start_chance)
    n_missed = n_states - int(is_reached.sum())
    if n_missed:
        logger.info(
            "%s: %d of %d states are never reached: they stay put",
            name,
            n_missed,
            n_states,
        )

    can_move = is_reached & ~is_end & has_moves
    moves = outcomes[can_move[outcomes["before"]]]
    coords, legend = place_states(env, n_states)
    goal = _find_goal(last_moves, is_end)

    # Moves that end an episode where others go on lead to an additional state.
    ends_elsewhere = moves["done"] & ~is_end[moves["after"]]
    n_additional = int(ends_elsewhere.any())
    moves["after"][ends_elsewhere] = n_states
    can_move = np.append(can_move, np.zeros(n_additional, dtype=np.bool_))
    return MDP(
        _build_transition(moves, ~can_move, n_actions),
        n_additional=n_additional,
        # An MDP has one start: the most likely, and the first of equally likely ones.
        start=int(np.argmax(start_chance)),
        goal=goal,
        reward=_compute_mean_rewards(moves, n_states + n_additional, n_actions),
        coords=coords,
        legend=legend,
        name=name,
    )


def _list_outcomes(table: Table, n_actions: int) -> NDArray[np.void]:
    """List all possible outcomes of a table, one row each."""
    states = table.items() if isinstance(table, dict) else enumerate(table)
    rows = []
    for state, actions in states:
        for action in range(n_actions):
            for probability, after, reward, done in actions[action]:
                if probability > 0:
                    rows.append((state, action, after, probability, reward, done))
    return np.array(rows, dtype=_OUTCOME)


def _check_states(outcomes: NDArray[np.void], n_states: int, name: str) -> None:
    last = max(outcomes["after"].max(), outcomes["before"].max())
    if outcomes["after"].min() < 0 or last >= n_states:
        raise ValueError(
            f"the table of {name} has a state {last}, but there are {n_states} states"
        )


def _find_start_chance(
    env: gym.Env[Any, Any], outcomes: NDArray[np.void], n_states: int
) -> FloatArray:
    """Return ``(S,)`` how likely episodes begin in each state.

    These are weights, which need not sum to 1.
    """
    distribution = getattr(env, "initial_state_distrib", None)
    if distribution is not None and np.shape(distribution) == (n_states,):
        return np.asarray(distribution, dtype=np.float64)

    # Without a known distribution, all states are equal but those that are only ends.
    done = outcomes["done"]
    only_ends = np.setdiff1d(outcomes["after"][done], outcomes["after"][~done])
    weights = np.ones(n_states)
    weights[only_ends] = 0.0
    return weights


def _find_ends(
    outcomes: NDArray[np.void], start_chance: FloatArray, has_moves: BoolArray
) -> tuple[NDArray[np.void], BoolArray]:
    """Return the last moves of episodes, and ``(S,)`` where episodes end.

    They end in states that a last move leads to, unless some episode goes on there.
    """
    done = outcomes["done"]
    is_live = _find_reached(outcomes[~done], start_chance) & has_moves
    last_moves = outcomes[done & is_live[outcomes["before"]]]

    is_end = np.zeros(len(start_chance), dtype=np.bool_)
    is_end[last_moves["after"]] = True
    return last_moves, is_end & ~is_live


def _find_reached(moves: NDArray[np.void], start_chance: FloatArray) -> BoolArray:
    """Return ``(S,)`` which states some moves reach from where episodes begin."""
    n_states = len(start_chance)
    links = csr_array(
        (np.ones(len(moves)), (moves["before"], moves["after"])),
        shape=(n_states, n_states),
    )
    return reachable(links, start_chance > 0)


def _build_transition(
    moves: NDArray[np.void], stays: BoolArray, n_actions: int
) -> csr_array:
    """Return the table ``(S * A, S)`` of moves, and of states that stay put."""
    move_rows = moves["before"] * n_actions + moves["action"]
    stay_rows = np.flatnonzero(np.repeat(stays, n_actions))
    rows = np.append(move_rows, stay_rows)
    columns = np.append(moves["after"], stay_rows // n_actions)
    probabilities = np.append(moves["probability"], np.ones(len(stay_rows)))

    n_states = len(stays)
    shape = (n_states * n_actions, n_states)
    return csr_array((probabilities, (rows, columns)), shape=shape)


def _compute_mean_rewards(
    moves: NDArray[np.void], n_states: int, n_actions: int
) -> FloatArray:
    """Return ``(S * A,)`` the mean reward of each action, 0 where it stays put."""
    rows = moves["before"] * n_actions + moves["action"]
    weighted = moves["probability"] * moves["reward"]
    means = np.bincount(rows, weighted, minlength=n_states * n_actions)
    return means.astype(np.float64)


def _find_goal(last_moves: NDArray[np.void], is_end: BoolArray) -> int | None:
    """Return the end with the highest reward, if there is only one.

    None, too, where the highest reward is for a move into a state that is no end.
    """
    best = np.full(len(is_end), -np.inf)
    np.maximum.at(best, last_moves["after"], last_moves["reward"])
    if not len(last_moves):
        return None

    goals = np.flatnonzero(best == best.max())
    is_sure = len(goals) == 1 and is_end[goals[0]]
    return int(goals[0]) if is_sure else None


def drop_far_places(mdp: MDP) -> MDP:
    """Return the MDP without places where moves often jump: a graph then shows more.

    A quarter of the moves may lead elsewhere than to a neighbouring cell. Moves that
    change nothing do not count, and states with a heading keep their places.

    >>> steps = [[0, 1], [0, 2], [1, 2]]
    >>> near = MDP.from_successors(steps, coords=[(0, 0), (0, 1), (0, 2)], legend="row")
    >>> drop_far_places(near) is near
    True
    >>> far = MDP.from_successors(steps, coords=[(0, 0), (5, 5), (0, 2)], legend="row")
    >>> print(drop_far_places(far).coords)
    None
    """
    if mdp.coords is None or mdp.headings is not None:
        return mdp
    entries = mdp.transition.tocoo()
    before = entries.row // mdp.n_actions
    after = entries.col
    moves = (before != after) & (after < mdp.n_listed)
    extent = np.abs(mdp.coords[after] - mdp.coords[before]).sum(axis=1)
    if not moves.any() or (extent[moves] == 1).mean() >= 0.75:
        return mdp
    return replace(mdp, coords=None, legend="")


def place_states(env: Any, n_states: int) -> Places:
    """Place states on a grid (FrozenLake, CliffWalking), or on the maps of Taxi."""
    # FrozenLake has its map in `desc`, CliffWalking its size in `shape`.
    shape = getattr(env, "shape", None)
    if getattr(env, "desc", None) is not None:
        shape = np.shape(env.desc)
    if isinstance(shape, tuple) and len(shape) == 2 and np.prod(shape) == n_states:
        rows, columns = np.unravel_index(np.arange(n_states), shape)
        return np.stack([rows, columns], axis=1), ""

    is_taxi = all(hasattr(env, name) for name in ("decode", "locs", "max_row"))
    if not is_taxi:
        return None, ""
    states = np.array([list(env.decode(state)) for state in range(n_states)])
    row, column, passenger, destination = states.T
    # A gap of one cell lies between the maps.
    height = env.max_row + 2
    width = env.max_col + 2
    coords = np.stack([row + height * destination, column + width * passenger], axis=1)
    legend = (
        "one map per place of the passenger (columns R, G, Y, B, taxi) and destination "
        "(rows R, G, Y, B); 4 pick up, 5 drop off"
    )
    return coords, legend
