"""Breadth-first search through the states of a deterministic environment.

A state is identified by a key, saved and restored (`families`). A copy of an
environment holds its random generator too, so each action seems to have one outcome
even where it is random. For this reason the search is compared with a random walk that
draws other random numbers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np

from eigenoptions._types import IndexArray, Progress
from eigenoptions.envs.families import Family
from eigenoptions.envs.sources import env_name, reset_env, step_env
from eigenoptions.envs.tables import drop_far_places
from eigenoptions.mdp import MDP
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options.lookahead import copy_env

logger = logging.getLogger("eigenoptions")


class _Outcome(NamedTuple):
    """What came of a move: the key of the next state, and whether the episode ended."""

    key: Hashable
    terminated: bool


# The key of a state and an action, and what came of it.
_KnownMoves: TypeAlias = dict[tuple[Hashable, int], _Outcome]


class StateLimitReached(ValueError):  # noqa: N818 (a public name)
    """The search found more than `max_states` states.

    Attributes
    ----------
    mdp : MDP
        The states that were found. Those that were not expanded stay put under every
        action.
    expanded : int
        Number of states whose actions were all tried.
    """

    def __init__(self, message: str, mdp: MDP, expanded: int) -> None:
        super().__init__(message)
        self.mdp = mdp
        self.expanded = expanded


def search_states(
    env: gym.Env[Any, Any],
    family: Family,
    n_actions: int,
    *,
    max_states: int,
    progress: Progress | None = None,
    seed: int = 0,
) -> MDP:
    """Find all states that can be reached from ``env.reset(seed=seed)``.

    The `states` of the MDP are the keys of the family, in the order in which they were
    found.

    Parameters
    ----------
    env : gymnasium.Env
        A deterministic environment. The search leaves it in some state.
    family : Family
        How its states are identified, saved and restored.
    n_actions : int
        Number of its actions.
    max_states : int
        Maximum number of states.
    progress : callable, default=None
        Called with the number of states expanded and found.
    seed : int, default=0
        Seed of the reset.

    Raises
    ------
    StateLimitReached
        If there are more than `max_states` states.
    ValueError
        If the environment cannot be copied or is not deterministic.
    """
    searched = _SearchedEnv(env, family)
    obs, _ = reset_env(env, seed=seed)
    first_key = family.identify_state(env.unwrapped, obs)
    layout = family.identify_layout(env.unwrapped)
    start = searched.save(env)

    walked = _walk_randomly(searched, start, first_key, n_actions)
    found = _expand_states(
        searched, start, first_key, n_actions, max_states=max_states, progress=progress
    )

    successors = _tabulate(found, n_actions)
    keys = list(found.numbers)
    coords, legend = family.place_states(keys)
    recognition = Recognition(family.by, seed, layout, is_partial=found.exceeds_limit)
    mdp = MDP.from_successors(
        successors,
        states=keys,
        recognition=recognition,
        coords=coords,
        headings=None if coords is None else family.find_headings(keys),
        legend=legend,
        start=0,
        name=env_name(env),
        n_additional=len(successors) - len(keys),
    )
    mdp = drop_far_places(mdp)

    if found.exceeds_limit:
        n_expanded = len(found.successors)
        raise StateLimitReached(
            f"{mdp.name} has more than max_states={max_states} states: {n_expanded} "
            f"of the {mdp.n_states} found were expanded; raise max_states, or take the "
            "part that was found from .mdp of this error",
            mdp,
            n_expanded,
        )
    _compare(searched, walked, found)
    return mdp


class _SearchedEnv:
    """An environment that returns to its states: by the family's way, or by copies."""

    def __init__(self, env: gym.Env[Any, Any], family: Family) -> None:
        self.env = env
        self.family = family

    def save(self, env: gym.Env[Any, Any]) -> Any:
        """Return the present state of the environment or of a copy, for `restore`."""
        if self.family.save is None:
            return copy_env(env)
        return self.family.save(env.unwrapped)

    def restore(self, snapshot: Any) -> gym.Env[Any, Any]:
        """Return an environment in the state that `save` returned."""
        if self.family.restore is None:
            copied: gym.Env[Any, Any] = copy_env(snapshot)
            return copied
        self.family.restore(self.env.unwrapped, snapshot)
        return self.env

    def take_step(self, env: gym.Env[Any, Any], action: int) -> _Outcome:
        """Take one action in what `restore` returned."""
        obs, _, terminated, _, _ = step_env(env, action)
        key = self.family.identify_state(env.unwrapped, obs)
        return _Outcome(key, bool(terminated))

    def refuse(self, key: Hashable, action: int) -> ValueError:
        """Return the error of an action that has two outcomes in one state."""
        sampled = self.family.suggest_sampled(self.env)
        return ValueError(
            f"{env_name(self.env)} is not deterministic (action {action} in state "
            f"{str(key)[:80]}): it is random, or remembers more than its observation "
            "(key=) or its copies (save=, restore=) hold; take a key under which it "
            "may be random, discover(env, key=...), or sample it, "
            f"discover({sampled}, steps=...)"
        )


# Random steps that show whether outcomes differ, and the longest walk of them.
_N_STEPS = 1000
_MAX_WALK = 250

# States after which progress is reported.
_REPORT_EVERY = 64


def _walk_randomly(
    searched: _SearchedEnv,
    start: Any,
    first_key: Hashable,
    n_actions: int,
) -> _KnownMoves:
    """Record what comes of random actions; raise ValueError where outcomes differ.

    The walk begins again at the start every 250 steps and where an episode ends,
    each time with other random numbers of the environment.
    """
    rng = np.random.default_rng(0)
    outcomes: _KnownMoves = {}
    key: Hashable = None
    begins = True
    for step in range(_N_STEPS):
        if begins or step % _MAX_WALK == 0:
            env = searched.restore(start)
            env.unwrapped.np_random = np.random.default_rng(step)
            key = first_key

        action = int(rng.integers(n_actions))
        outcome = searched.take_step(env, action)
        if outcomes.setdefault((key, action), outcome) != outcome:
            raise searched.refuse(key, action)

        key = outcome.key
        begins = outcome.terminated
    return outcomes


@dataclass
class _FoundStates:
    """States that a search found, and the moves between them."""

    # The number of each state by its key, in the order in which states are found.
    numbers: dict[Hashable, int]
    # The next state of each action, for states that were expanded.
    successors: dict[int, list[int]] = field(default_factory=dict)
    # State and action of each move that ends an episode.
    endings: set[tuple[int, int]] = field(default_factory=set)
    # States in which episodes go on, also if they were not expanded.
    going_on: set[int] = field(default_factory=set)
    # Whether there are more states than `max_states`: the search ended early.
    exceeds_limit: bool = False


def _expand_states(
    searched: _SearchedEnv,
    start: Any,
    first_key: Hashable,
    n_actions: int,
    *,
    max_states: int,
    progress: Progress | None,
) -> _FoundStates:
    """Try every action in every state, in the order in which states are found.

    A state where the episode ended is not expanded: it has no successors. Nor has the
    state that was being expanded when the limit of states was reached.
    """
    # Not all numbered states are queued: one that was first met where an episode ended
    # is expanded only when it is met again while the episode goes on.
    found = _FoundStates(numbers={first_key: 0}, going_on={0})
    queue = deque([(0, start)])
    while queue and not found.exceeds_limit:
        state, snapshot = queue.popleft()
        successors: list[int] = []
        for action in range(n_actions):
            env = searched.restore(snapshot)
            key, terminated = searched.take_step(env, action)
            if key not in found.numbers and len(found.numbers) == max_states:
                found.exceeds_limit = True
                break

            after = found.numbers.setdefault(key, len(found.numbers))
            successors.append(after)
            if terminated:
                found.endings.add((state, action))
            elif after not in found.going_on:
                found.going_on.add(after)
                queue.append((after, searched.save(env)))

        if not found.exceeds_limit:
            found.successors[state] = successors
        n_expanded = len(found.successors)
        is_last = found.exceeds_limit or not queue
        if progress is not None and (is_last or n_expanded % _REPORT_EVERY == 0):
            progress(n_expanded, len(found.numbers))
    return found


def _tabulate(found: _FoundStates, n_actions: int) -> IndexArray:
    """Return the successors ``(S, A)``; states that were not expanded stay put.

    Where a move ends the episode in a state in which others go on, it leads to an
    additional state, in the last row.
    """
    n_states = len(found.numbers)
    table = np.tile(np.arange(n_states + 1)[:, None], n_actions)
    table[list(found.successors)] = list(found.successors.values())

    n_ambiguous = 0
    for state, action in found.endings:
        if state in found.successors and table[state, action] in found.going_on:
            table[state, action] = n_states
            n_ambiguous += 1
    return table if n_ambiguous else table[:n_states]


def _compare(searched: _SearchedEnv, walked: _KnownMoves, found: _FoundStates) -> None:
    """Raise ValueError where the random walk met another outcome than the search."""
    for (key, action), outcome in walked.items():
        state = found.numbers.get(key)
        is_same = (
            state is not None
            and found.numbers.get(outcome.key) == found.successors[state][action]
            and outcome.terminated == ((state, action) in found.endings)
        )
        if not is_same:
            raise searched.refuse(key, action)
