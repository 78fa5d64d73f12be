"""`Family`: what the search and the wrappers need to know about an environment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from eigenoptions._registry import Registry
from eigenoptions._types import IndexArray
from eigenoptions.envs.families.windows import Surroundings
from eigenoptions.options.lookahead import Restore, Save

# From the unwrapped environment and its observation to what identifies the state.
Key: TypeAlias = Callable[[Any, Any], Hashable]

# Row and column of each state (None where a picture cannot show them), and a legend.
Places: TypeAlias = tuple[IndexArray | None, str]


class Recogniser(Protocol):
    """What gives each state of an episode its key; each environment has its own.

    Most keys need only the present observation, or a look inside the environment. A
    pose by dead reckoning needs the action, too.
    """

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> Hashable:
        """Return the key of the first state of an episode."""

    def follow(self, env: gym.Env[Any, Any], obs: Any, action: int) -> Hashable:
        """Return the key of the state that an action led to."""


def _find_no_obstacle(env: gym.Env[Any, Any]) -> None:
    """Every environment of the family can be searched."""


def _identify_no_layout(env: Any) -> None:
    """All environments of one id have the same layout."""


def _leave_unplaced(keys: Sequence[Hashable]) -> Places:
    """Nothing is known about where states lie."""
    return None, ""


def _leave_headings(keys: Sequence[Hashable]) -> IndexArray | None:
    """An agent has no heading."""
    return None


def _search_as_it_is(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Every wrapper may change what the key reads."""
    return env


def _suggest_env(env: gym.Env[Any, Any]) -> str:
    """The environment can be sampled as it is."""
    return "env"


def _find_no_window(env: gym.Env[Any, Any]) -> None:
    """Observations are no windows on a grid, as far as is known."""


@dataclass(frozen=True)
class Family:
    """How states of one family of environments are identified, saved and restored.

    Functions of the unwrapped environment take what ``env.unwrapped`` returns; the
    others take the environment with its wrappers.

    Parameters
    ----------
    name : str or None
        Name of the key. Files of options hold it. None for a key of the user.
    matches : callable
        Whether an environment belongs to the family.
    identify_state : callable
        ``identify_state(unwrapped, obs)`` returns a hashable key of the present state.
    looks_inside : bool, default=True
        Whether the key reads the environment; False where the observation is enough.
    find_obstacle : callable, default=no obstacle
        Why the key cannot identify the states of an environment; None where it can.
    save, restore : callable, default=None
        ``saved = save(unwrapped)`` and ``restore(unwrapped, saved)``. None: the
        environment is copied.
    identify_layout : callable, default=no layout
        Of the unwrapped environment: what distinguishes layouts of one id, such as a
        digest of the walls; None where there is only one.
    place_states : callable, default=no places
        From the keys of all states to where a picture shows them, and its legend.
    find_headings : callable, default=no headings
        From the keys of all states to where the agent looks: ``MDP.headings``.
    prepare_search : callable, default=the environment as it is
        From an environment to the one that is searched, without wrappers that the key
        does not need.
    suggest_sampled : callable, default="env"
        How to write an environment that cannot be searched as an argument of
        ``discover(..., steps=...)``, for error messages.
    trackers : mapping, default={}
        Coarser keys of the family, by the names that users give: functions that make a
        `Recogniser`, which reads observations and actions, and not the environment.
    find_surroundings : callable, default=no window
        From an environment to how its observations are windows on a grid; None where
        they are not.
    """

    name: str | None
    matches: Callable[[gym.Env[Any, Any]], bool]
    identify_state: Key
    looks_inside: bool = True
    find_obstacle: Callable[[gym.Env[Any, Any]], str | None] = _find_no_obstacle
    save: Save | None = None
    restore: Restore | None = None
    identify_layout: Callable[[Any], str | None] = _identify_no_layout
    place_states: Callable[[Sequence[Any]], Places] = _leave_unplaced
    find_headings: Callable[[Sequence[Any]], IndexArray | None] = _leave_headings
    prepare_search: Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]] = _search_as_it_is
    suggest_sampled: Callable[[gym.Env[Any, Any]], str] = _suggest_env
    trackers: Mapping[str, Callable[[], Recogniser]] = field(default_factory=dict)
    find_surroundings: Callable[[gym.Env[Any, Any]], Surroundings | None] = (
        _find_no_window
    )

    @property
    def by(self) -> str | Key:
        """What ``MDP.recognition`` remembers: the name, or the key of the user."""
        return self.identify_state if self.name is None else self.name


# All families by name. Each file of this folder adds its own.
families: Registry[Family] = Registry("recognition")
families.announce_folder("eigenoptions.envs.families")
