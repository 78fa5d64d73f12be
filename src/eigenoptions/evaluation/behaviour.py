"""What walks at random: the actions and options of a table, checked.

A random walk has a finite expected time to every state only if it never ends, if it can
reach every state from every other, and if each option terminates. `prepare_behaviour`
makes or checks all of this before anything is computed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eigenoptions._types import IndexArray, IntegerArray
from eigenoptions._validation import check_float, check_type
from eigenoptions.mdp import MDP, reachable
from eigenoptions.mdp.chains import (
    compute_policy_transitions,
    continue_after_end,
    find_ends,
)
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.tuning import resolve_exploration
from eigenoptions.options.walks import stack_policies

logger = logging.getLogger("eigenoptions")

# An option chance as users give it: a number, "auto", or None for the uniform choice.
Chance: TypeAlias = float | str | None


@dataclass(frozen=True)
class Behaviour:
    """The decisions of a random walk that never ends.

    Attributes
    ----------
    table : MDP
        The dynamics. Where an episode would end, the next step leads to the start.
    policy : array (n_options, S)
        The action of each option in each state of the table, or TERMINATE.
    states : array (S,)
        The numbers that the states of the table have in the MDP of the user.
    n_goals : int
        How many of the states, the first ones, are starts and goals of walks. The
        others are additional states, which walks only pass.
    option_chance : float or None
        Probability that a decision is for an option where one is available. None: the
        decision is uniform over the actions and the available options.
    stop_chance : float
        Probability that an option also terminates after each of its steps.
    """

    table: MDP
    policy: IntegerArray
    states: IndexArray
    n_goals: int
    option_chance: float | None
    stop_chance: float


def prepare_behaviour(
    mdp: MDP,
    options: OptionSet | None,
    option_chance: Chance,
    stop_chance: float,
) -> Behaviour:
    """Check and complete the arguments of `diffusion_time`."""
    check_type("mdp", mdp, MDP, "make one with maze(...)")
    stop_chance = check_float("stop_chance", stop_chance, minimum=0, maximum=1)
    policy = stack_policies(mdp, options)
    exploration = resolve_exploration(options, option_chance, stop_chance)
    chance = exploration.option_chance
    if chance is not None:
        # With 1, no primitive action is taken where an option is available, and goals
        # may be out of reach.
        chance = check_float("option_chance", chance, minimum=0, below=1)

    # An option terminates where the episode ends.
    policy = np.where(find_ends(mdp), TERMINATE, policy)
    endless = continue_after_end(mdp, goal_ends=False)
    behaviour = Behaviour(
        endless,
        policy,
        states=np.arange(mdp.n_states),
        n_goals=mdp.n_listed,
        option_chance=chance,
        stop_chance=exploration.stop_chance,
    )

    if mdp.start is not None:
        behaviour = _restrict_to_reachable(behaviour, mdp.start)
    _check_connected(behaviour)
    if behaviour.stop_chance == 0:
        _check_terminations(behaviour)
    return behaviour


def _restrict_to_reachable(behaviour: Behaviour, start: int) -> Behaviour:
    """Leave out the states that cannot be reached from the start."""
    table = behaviour.table
    in_reach = reachable(table.transition, [start])
    if in_reach.all():
        return behaviour

    logger.warning(
        "no diffusion time of %s: out of reach of the start",
        list_states(np.flatnonzero(~in_reach)),
    )
    states = np.flatnonzero(in_reach)
    return Behaviour(
        table.restrict(states),
        behaviour.policy[:, states],
        states,
        int(in_reach[: behaviour.n_goals].sum()),
        behaviour.option_chance,
        behaviour.stop_chance,
    )


def _check_connected(behaviour: Behaviour) -> None:
    """Raise ValueError unless there are states that all reach each other."""
    moves = behaviour.table.transition
    states = behaviour.states
    if behaviour.n_goals < 2:
        raise ValueError(
            "diffusion time is between different states, but this MDP has 1 state"
        )

    # All states reach each other if all reach the first one and are reached from it.
    is_connected = reachable(moves, [0]) & reachable(moves, [0], backward=True)
    if not is_connected.all():
        lost = list_states(states[~is_connected])
        raise ValueError(
            f"the diffusion time is infinite to or from {lost}, "
            f"seen from state {states[0]}; keep states that all reach each other"
        )


def _check_terminations(behaviour: Behaviour) -> None:
    """Raise ValueError unless each option can terminate from everywhere."""
    for number, policy in enumerate(behaviour.policy):
        moves = compute_policy_transitions(behaviour.table, policy)
        can_terminate = reachable(moves, policy < 0, backward=True)
        if not can_terminate.all():
            endless = list_states(behaviour.states[~can_terminate])
            raise ValueError(
                f"option number {number} never terminates from {endless}; "
                "give it a stop_chance"
            )


def list_states(states: IndexArray) -> str:
    """Name the first few of some states, for a message.

    >>> list_states(np.array([4])), list_states(np.arange(7))
    ('state 4', '7 states (0, 1, 2, 3, 4, ...)')
    """
    if len(states) == 1:
        return f"state {states[0]}"
    listed = [str(state) for state in states[:5]]
    if len(states) > 5:
        listed.append("...")
    return f"{len(states)} states ({', '.join(listed)})"
