"""Options of the known part of an environment: what `explore` found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eigenoptions.discovery.tables import Request, discover_table
from eigenoptions.explore.found import Found
from eigenoptions.mdp import MDP
from eigenoptions.options import TERMINATE, OptionSet, Purpose


def discover_found(found: Found, request: Request) -> OptionSet:
    """Return options of the states that were seen.

    Moves that were not tried are no edges of the graph. Where observations are numbers
    of states, options have all of these numbers, and none starts in a state that was
    not seen.

    Parameters
    ----------
    found : Found
        What was found.
    request : Request
        What the caller of `discover` asks for.
    """
    request = request.with_default_number()
    provenance = {"source": "explored", "dynamics": "estimated"}
    is_complete = len(found.seen) == found.mdp.n_states
    part = found.mdp if is_complete else _take_seen(found)
    options = discover_table(part, request, provenance, is_environment=True)
    if is_complete:
        return options
    return _renumber_options(options, found)


def _take_seen(found: Found) -> MDP:
    """Return the MDP of the states that were seen, in the order of their numbers."""
    mdp = found.mdp
    seen = np.sort(found.seen)
    pairs = seen[:, None] * mdp.n_actions + np.arange(mdp.n_actions)
    reward = None
    if mdp.reward is not None:
        reward = mdp.reward[pairs.ravel()]
    return MDP(
        mdp.transition[pairs.ravel()][:, seen],
        start=int(np.searchsorted(seen, mdp.start or 0)),
        reward=reward,
        name=mdp.name,
    )


def _renumber_options(options: OptionSet, found: Found) -> OptionSet:
    """Return options of the seen states with the numbers of all states."""
    seen = np.sort(found.seen)
    shape = (len(options), found.mdp.n_states)
    policy = np.full(shape, TERMINATE, dtype=options.policy.dtype)
    policy[:, seen] = options.policy
    value = np.zeros(shape)
    value[:, seen] = options.value
    purposes = [_renumber_purpose(purpose, found) for purpose in options.purposes]
    return OptionSet(found.mdp, policy, value, purposes, options.provenance)


def _renumber_purpose(purpose: Purpose, found: Found) -> Purpose:
    """Return a purpose of the seen states with the numbers of all states."""
    seen = np.sort(found.seen)
    goal = purpose.goal
    label = purpose.label
    if goal is not None:
        goal = int(seen[goal])
        label = label.replace(f"goal {purpose.goal}", f"goal {goal}")
    potential = np.zeros(found.mdp.n_states)
    potential[seen] = purpose.potential
    return replace(purpose, potential=potential, goal=goal, label=label)
