"""Random walks through a table over actions and options (paper, Section 5.1).

The walks themselves are in `_kernels.walking`, which loads numba. It is imported inside
the functions that need it, so that small problems never load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import IntegerArray, Randomness
from eigenoptions._validation import (
    check_float,
    check_int,
    check_memory,
    check_type,
    make_generator,
    set_readonly,
)
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import cumulate_rows
from eigenoptions.options.records import OptionSet
from eigenoptions.samples import Transitions

if TYPE_CHECKING:
    from eigenoptions._kernels.walking import Choices, Moves

# The largest integer of the kernels: more steps than any walk takes.
_UNLIMITED = 2**63 - 1


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
    from eigenoptions._kernels.walking import Episodes, Place, Trace, wander

    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    n_steps = check_int("steps", steps)
    # Three numbers of eight bytes and a truth value per step.
    check_memory(f"{n_steps:,} steps", 25 * n_steps, "walk fewer at a time")
    limit = _UNLIMITED
    if max_episode_steps is not None:
        limit = check_int("max_episode_steps", max_episode_steps)
    goal = -1
    if mdp.goal is not None:
        goal = mdp.goal

    policies = stack_policies(mdp, options)
    moves, choices = make_tables(mdp, policies, option_chance, stop_chance)
    place = Place(state=-1)
    if begin is not None:
        place = Place(state=check_int("begin", begin, 0, mdp.n_states - 1))
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


def visit_states(
    tables: tuple[Moves, Choices],
    start: int,
    seed: int,
    touched: NDArray[np.uint8],
    max_steps: int,
    piece: int = 20_000_000,
) -> tuple[float, int]:
    """Walk until all states are touched.

    Parameters
    ----------
    tables : Moves, Choices
        Dynamics and choices of the walk, from `make_tables`.
    start : int
        First state.
    seed : int
        Seed of the random numbers.
    touched : array of shape (S,)
        1 for each state that need not be touched; the walk sets the others to 1.
    max_steps : int
        Steps after which the walk gives up.
    piece : int, default=20,000,000
        Steps of one call of the kernel, about a second. Between two calls, the walk can
        be interrupted.

    Returns
    -------
    total : float
        Sum of the steps at which states were touched.
    steps : int
        Number of steps of the walk.
    """
    # Imported here to keep numba out of small problems.
    from eigenoptions._kernels.walking import Episodes, Place, Trace, wander

    no_goal = Episodes(np.zeros(1, dtype=np.int64), goal=-1, limit=_UNLIMITED)
    nothing = np.empty(0, dtype=np.int64)
    no_trace = Trace(nothing, nothing, nothing)

    moves, choices = tables
    counter = np.array([seed], dtype=np.uint64)
    touched[start] = 1
    place = Place(start, n_untouched=int((touched == 0).sum()))
    while place.n_untouched and place.age < max_steps:
        place = wander(
            moves,
            choices,
            no_goal,
            place,
            counter,
            n_steps=min(piece, max_steps - place.age),
            touched=touched,
            trace=no_trace,
        )
    return place.touch_steps, place.age


def stack_policies(mdp: MDP, options: OptionSet | None) -> NDArray[np.int32]:
    """Return the policies ``(n, S)`` of options of an MDP; n = 0 without options."""
    if options is None:
        return np.empty((0, mdp.n_states), dtype=np.int32)
    check_type("options", options, OptionSet, "discover some, or give None")
    options.check(mdp)
    return np.ascontiguousarray(options.policy, dtype=np.int32)


def make_tables(
    mdp: MDP,
    policies: IntegerArray,
    option_chance: float | None = None,
    stop_chance: float = 0.0,
) -> tuple[Moves, Choices]:
    """Return the dynamics and the choices of a walk as the kernels read them.

    `policies` has the shape ``(n, S)``. For the others see `walk`.
    """
    # Imported here to keep numba out of small problems.
    from eigenoptions._kernels.walking import Choices, Moves

    # A negative number stands for a uniform choice over actions and options.
    kernel_chance = -1.0
    if option_chance is not None:
        kernel_chance = check_float("option_chance", option_chance, 0, 1)
    stop_chance = check_float("stop_chance", stop_chance, minimum=0, maximum=1)

    table = mdp.transition
    cumulative = cumulate_rows(table.indptr, table.data)
    moves = Moves(table.indptr, table.indices, cumulative, mdp.n_actions)

    # The smallest type that holds an action: the policy is read at every step.
    small_type = np.min_scalar_type(-mdp.n_actions - 1)
    available = csr_array(policies.T >= 0)
    choices = Choices(
        policy=np.ascontiguousarray(policies.T, dtype=small_type),
        first=available.indptr.astype(np.int64),
        available=available.indices.astype(np.int64),
        option_chance=kernel_chance,
        stop_chance=stop_chance,
    )
    return moves, choices


def _list_starts(mdp: MDP) -> NDArray[np.int64]:
    """Return the states in which an episode may begin."""
    if mdp.start is not None:
        return np.array([mdp.start])
    states = np.arange(mdp.n_states)
    if mdp.goal is None or mdp.n_states == 1:
        return states
    return np.delete(states, mdp.goal)
