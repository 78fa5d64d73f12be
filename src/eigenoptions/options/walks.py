"""Random walks through a table with actions and options, compiled (paper, Section 5.1)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import check_float, check_int, make_generator, set_readonly
from eigenoptions.mdp import MDP, Transitions, reachable
from eigenoptions.options import OptionSet


@overload
def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = ...,
    *,
    option_chance: float | None = ...,
    begin: int | None = ...,
    rng: int | np.random.Generator = ...,
    max_episode_steps: int | None = ...,
    record_options: Literal[False] = ...,
) -> Transitions: ...
@overload
def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = ...,
    *,
    option_chance: float | None = ...,
    begin: int | None = ...,
    rng: int | np.random.Generator = ...,
    max_episode_steps: int | None = ...,
    record_options: Literal[True],
) -> tuple[Transitions, NDArray[np.int32]]: ...
def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    begin: int | None = None,
    rng: int | np.random.Generator = 0,
    max_episode_steps: int | None = None,
    record_options: bool = False,
) -> Transitions | tuple[Transitions, NDArray[np.int32]]:
    """Walk through a table: each decision is for an action or for an option, which runs to its end.

    Parameters
    ----------
    mdp
        The table. Episodes begin at its start (without one, in any state) and end at its goal, if it has one.
    steps
        Number of transitions.
    options
        Options for this many states and actions; None for primitive actions only.
    option_chance
        Probability that a decision is for an option, where one may start. None: uniform over actions and options.
    begin
        State to begin in; None: as every episode does.
    rng
        Seed or generator that draws the walk.
    max_episode_steps
        Start a new episode after this many steps; None: never.
    record_options
        Return also the number of the option behind each step, ``(steps,)``, -1 for a primitive action.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> walk(maze("S.G"), 4, rng=1).next_obs.tolist()
    [0, 1, 1, 1]
    """
    from eigenoptions._kernels.walking import wander

    check_int("steps", steps)
    places = episodes(mdp, begin, max_episode_steps)
    moves, menu = tables(mdp, policy_of(mdp, options), option_chance)
    seed = make_generator(rng).integers(2**64, dtype=np.uint64)
    state, action, after = (np.empty(int(steps), dtype=np.int64) for _ in range(3))
    option = np.empty(int(steps), dtype=np.int32)
    wander(moves, menu, places, seed, state, action, after, option)
    transitions = Transitions(*set_readonly(state, action, after, after == places.goal))
    return (transitions, option) if record_options else transitions


def episodes(mdp: MDP, begin: int | None, max_episode_steps: int | None) -> Any:
    """Where and when episodes of a walk begin and end, as the kernels read it: `_kernels.walking.Episodes`."""
    from eigenoptions._kernels.walking import Episodes

    limit = np.iinfo(np.int64).max
    if max_episode_steps is not None:
        limit = min(limit, check_int("max_episode_steps", max_episode_steps))
    if begin is not None and not (isinstance(begin, int | np.integer) and 0 <= begin < mdp.n_states):
        raise ValueError(f"begin must be a state in 0..{mdp.n_states - 1}, got {begin!r}")
    goal = -1 if mdp.goal is None else mdp.goal
    return Episodes(-1 if begin is None else int(begin), first_states(mdp), goal, limit)


def first_states(mdp: MDP) -> NDArray[np.int64]:
    """States in which an episode may begin: the start, or without one any state but the goal."""
    if mdp.start is not None:
        return np.array([mdp.start])
    states = np.arange(mdp.n_states)
    return states if mdp.goal is None or mdp.n_states == 1 else np.delete(states, mdp.goal)


def policy_of(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Policies ``(k, S)`` of options made for an MDP; without options ``(0, S)``."""
    if options is None:
        return np.empty((0, mdp.n_states), dtype=np.int32)
    if not isinstance(options, OptionSet):
        raise TypeError(f"options must be an OptionSet or None, got {type(options).__name__}")
    options.check(mdp)
    return np.ascontiguousarray(options.policy, dtype=np.int32)


def tables(mdp: MDP, policy: NDArray[Any], option_chance: float | None = None) -> tuple[Any, Any]:
    """Dynamics and choices of a walk, as the kernels of `_kernels.walking` read them: `Moves` and `Menu`."""
    from eigenoptions._kernels.walking import Menu, Moves, cumulate

    chance = checked_chance(option_chance)
    P = mdp.transition
    moves = Moves(P.indptr, P.indices, cumulate(P.indptr, P.data), mdp.n_actions)
    offered = csr_array(policy.T >= 0)
    return moves, Menu(
        policy,
        offered.indptr.astype(np.int64),
        offered.indices.astype(np.int64),
        -1.0 if chance is None else chance,
    )


def checked_chance(option_chance: float | None) -> float | None:
    """The chance that a decision is for an option; None stands for a uniform choice over actions and options."""
    return (
        None if option_chance is None else check_float("option_chance", option_chance, minimum=0, maximum=1)
    )


def weights(
    policy: NDArray[np.int32], n_actions: int, chance: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of each action and of each option that may start, per state ``(S,)``: equal for a uniform choice."""
    n = policy.shape[1]
    if chance is None:
        return np.ones(n), np.ones(n)
    count = (policy >= 0).sum(axis=0)
    some = count > 0
    return np.where(some, 1.0 - chance, 1.0) / n_actions, np.where(some, chance, 0.0) / np.maximum(count, 1)


def endless(mdp: MDP, row: NDArray[np.int32]) -> NDArray[np.intp]:
    """States from which an option with this policy ``(S,)`` cannot reach an end."""
    from eigenoptions._kernels.planning import run

    n = mdp.n_states
    if mdp.successors is not None:
        length = np.empty(n, dtype=np.int32)
        if run(mdp.successors, row, length, np.empty_like(length)) < 0:
            return np.empty(0, dtype=np.intp)
    followed = mdp.transition[np.arange(n) * mdp.n_actions + np.maximum(row, 0)]
    return np.flatnonzero(~reachable(followed, row < 0, backward=True))
