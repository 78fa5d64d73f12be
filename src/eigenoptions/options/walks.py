"""Random walks through a table over actions and options (paper, Section 5.1).

The walks themselves are in `_kernels.walking`, which loads numba. It is imported inside
the functions that need it, so that small problems never load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import IntegerArray
from eigenoptions._validation import (
    check_float,
    check_type,
)
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import cumulate_rows
from eigenoptions.options.records import OptionSet

if TYPE_CHECKING:
    from eigenoptions._kernels.walking import Choices, Moves

# The largest integer of the kernels: more steps than any walk takes.
UNLIMITED = 2**63 - 1


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
    from eigenoptions._kernels.walking import Episodes, Trace, WalkState, wander

    no_goal = Episodes(np.zeros(1, dtype=np.int64), goal=-1, limit=UNLIMITED)
    nothing = np.empty(0, dtype=np.int64)
    no_trace = Trace(nothing, nothing, nothing)

    moves, choices = tables
    counter = np.array([seed], dtype=np.uint64)
    touched[start] = 1
    place = WalkState(start, n_untouched=int((touched == 0).sum()))
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


def trace_walk(
    tables: tuple[Moves, Choices], start: int, seed: int, n_steps: int
) -> NDArray[np.int64]:
    """The states ``(n_steps,)`` that a walk enters, one after the other.

    It is the walk of `visit_states` with the same start and seed.
    """
    # Imported here to keep numba out of small problems.
    from eigenoptions._kernels.walking import Episodes, Trace, WalkState, wander

    no_goal = Episodes(np.zeros(1, dtype=np.int64), goal=-1, limit=UNLIMITED)
    state, action, next_state = np.empty((3, n_steps), dtype=np.int64)
    moves, choices = tables
    wander(
        moves,
        choices,
        no_goal,
        WalkState(start),
        np.array([seed], dtype=np.uint64),
        n_steps=n_steps,
        touched=np.empty(0, dtype=np.uint8),
        trace=Trace(state, action, next_state),
    )
    return next_state


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
