"""Samples of a table: a random walk over its actions and options (Section 5.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import Randomness
from eigenoptions._validation import (
    check_int,
    check_memory,
    check_type,
    make_generator,
    set_readonly,
)
from eigenoptions.mdp import MDP
from eigenoptions.options.records import OptionSet
from eigenoptions.options.walks import UNLIMITED, make_tables, stack_policies
from eigenoptions.samples.transitions import Transitions


def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    begin: int | None = None,
    max_episode_steps: int | None = None,
    rng: Randomness = 0,
) -> Transitions:
    """Walk randomly through a table.

    Each decision is for an action, or for an option, which then runs to its end.

    Parameters
    ----------
    mdp : MDP
        The table. Episodes begin at its start, or in any state if it has none. They end
        at its goal, if it has one.
    steps : int
        Number of transitions.
    options : OptionSet, default=None
        Options of this table. None: actions only.
    option_chance : float, default=None
        Probability that a decision is for an option where one is available, in [0, 1].
        None: a uniform choice over the actions and the options that are available.
    stop_chance : float, default=0.0
        Probability that an option also terminates after each of its steps.
    begin : int, default=None
        First state of the walk. None: drawn as that of every episode.
    max_episode_steps : int, default=None
        Start a new episode after this many steps. None: never.
    rng : int or Generator, default=0
        Draws the walk.

    Returns
    -------
    Transitions
        Numbers of states and actions.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> walk(maze("S.G"), 4, rng=1).next_obs.tolist()
    [0, 1, 1, 1]
    """
    # Imported here to keep numba out of small problems.
    from eigenoptions._kernels.walking import Episodes, Trace, WalkState, wander

    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    n_steps = check_int("steps", steps)
    # Three numbers of eight bytes and a truth value per step.
    check_memory(f"{n_steps:,} steps", 25 * n_steps, "walk fewer at a time")
    limit = UNLIMITED
    if max_episode_steps is not None:
        limit = check_int("max_episode_steps", max_episode_steps)
    goal = -1
    if mdp.goal is not None:
        goal = mdp.goal

    policies = stack_policies(mdp, options)
    moves, choices = make_tables(mdp, policies, option_chance, stop_chance)
    place = WalkState(state=-1)
    if begin is not None:
        place = WalkState(state=check_int("begin", begin, 0, mdp.n_states - 1))
    counter = make_generator(rng).integers(2**64, size=1, dtype=np.uint64)

    trace = Trace(
        state=np.empty(n_steps, dtype=np.int64),
        action=np.empty(n_steps, dtype=np.int64),
        next_state=np.empty(n_steps, dtype=np.int64),
    )
    wander(
        moves,
        choices,
        Episodes(_list_starts(mdp), goal, limit),
        place,
        counter,
        n_steps=n_steps,
        touched=np.empty(0, dtype=np.uint8),
        trace=trace,
    )
    return Transitions(
        set_readonly(trace.state),
        set_readonly(trace.action),
        set_readonly(trace.next_state),
        set_readonly(trace.next_state == goal),
    )


def _list_starts(mdp: MDP) -> NDArray[np.int64]:
    """Return the states in which an episode may begin."""
    if mdp.start is not None:
        return np.array([mdp.start])
    states = np.arange(mdp.n_listed)
    if mdp.goal is None or mdp.n_listed == 1:
        return states
    return np.delete(states, mdp.goal)
