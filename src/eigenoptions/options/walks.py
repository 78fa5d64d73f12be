"""Random walks through a table over actions and options (paper, Section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import (
    check_float,
    check_int,
    check_type,
    make_generator,
    set_readonly,
)
from eigenoptions.data import Transitions
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import cumulate_rows
from eigenoptions.options.records import OptionSet


def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    begin: int | None = None,
    max_episode_steps: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Transitions:
    """Walk through a table: each decision is for an action or for an option, which runs to its end.

    Parameters
    ----------
    mdp : MDP
        The table. Episodes begin at its start (without one, in any state) and end at its goal, if it has one.
    steps : int
        Number of transitions.
    options, option_chance, stop_chance
        As in `diffusion_time`; `option_chance` may be 1.
    begin : int, optional
        First state; None: as every episode.
    max_episode_steps : int, optional
        Start a new episode after this many steps; None: never.
    rng : int or Generator, default 0
        Draws the walk.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> walk(maze("S.G"), 4, rng=1).next_obs.tolist()
    [0, 1, 1, 1]
    """
    from eigenoptions._kernels.walking import Episodes, Place, Trace, wander

    steps = check_int("steps", steps)
    limit = (
        2**63 - 1
        if max_episode_steps is None
        else check_int("max_episode_steps", max_episode_steps)
    )
    starts = np.array([mdp.start])
    if mdp.start is None:
        starts = np.array(
            [s for s in range(mdp.n_states) if s != mdp.goal or mdp.n_states == 1]
        )
    episodes = Episodes(starts, -1 if mdp.goal is None else mdp.goal, limit)
    policies = stack_policies(mdp, options)
    moves, choices = make_tables(mdp, policies, option_chance, stop_chance)
    place = Place(state=-1)
    if begin is not None:
        place = Place(state=check_int("begin", begin, 0, mdp.n_states - 1))
    counter = make_generator(rng).integers(2**64, size=1, dtype=np.uint64)
    state, action, after = (np.empty(steps, dtype=np.int64) for _ in range(3))
    wander(
        moves,
        choices,
        episodes,
        place,
        counter,
        n_steps=steps,
        touched=np.empty(0, dtype=np.uint8),
        trace=Trace(state, action, after),
    )
    terminated = after == episodes.goal
    return Transitions(*map(set_readonly, (state, action, after, terminated)))


def visit_states(
    tables: Any,
    start: int,
    seed: int,
    touched: NDArray[np.uint8],
    max_steps: int,
    piece: int = 20_000_000,
) -> tuple[float, int]:
    """Walk until all states are marked in `touched` (S,), or `max_steps`: sum of the steps of first visits, steps."""
    from eigenoptions._kernels.walking import Episodes, Place, Trace, wander

    moves, choices = tables
    endless = Episodes(np.zeros(1, dtype=np.int64), goal=-1, limit=2**63 - 1)
    nothing = np.empty(0, dtype=np.int64)
    counter = np.array([seed], dtype=np.uint64)
    touched[start] = 1
    place = Place(start, n_untouched=int((touched == 0).sum()))

    # In pieces of about a second, between which the walk can be interrupted.
    while place.n_untouched and place.age < max_steps:
        place = wander(
            moves,
            choices,
            endless,
            place,
            counter,
            n_steps=min(piece, max_steps - place.age),
            touched=touched,
            trace=Trace(nothing, nothing, nothing),
        )
    return place.touch_steps, place.age


def stack_policies(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Policies ``(n, S)`` of options made for an MDP; without options ``(0, S)``."""
    if options is None:
        return np.empty((0, mdp.n_states), dtype=np.int32)
    check_type("options", options, OptionSet, "discover some, or give None")
    options.check(mdp)
    return np.ascontiguousarray(options.policy, dtype=np.int32)


def make_tables(
    mdp: MDP, policy: NDArray[Any], option_chance: Any = None, stop_chance: float = 0.0
) -> Any:
    """Dynamics and choices of a walk, as the kernels of `_kernels.walking` read them: `Moves` and `Choices`."""
    from eigenoptions._kernels.walking import Choices, Moves

    # A negative number stands for a uniform choice over actions and options.
    chance = (
        -1.0
        if option_chance is None
        else check_float("option_chance", option_chance, 0, 1)
    )
    stop_chance = check_float("stop_chance", stop_chance, minimum=0, maximum=1)
    P = mdp.transition
    moves = Moves(P.indptr, P.indices, cumulate_rows(P.indptr, P.data), mdp.n_actions)
    available = csr_array(policy.T >= 0)
    first, numbers = (
        available.indptr.astype(np.int64),
        available.indices.astype(np.int64),
    )
    # A small type: the policy is read at every step.
    small = np.ascontiguousarray(policy.T, dtype=np.min_scalar_type(-mdp.n_actions - 1))
    return moves, Choices(small, first, numbers, chance, stop_chance)
