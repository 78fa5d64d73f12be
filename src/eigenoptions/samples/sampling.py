"""Samples: transitions and what is known of their environment (paper, Section 5.1)."""

from __future__ import annotations

import logging
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._progress import ProgressArgument
from eigenoptions._types import FeatureFunction, Randomness
from eigenoptions._validation import check_int
from eigenoptions.discovery.features import Fitted, Trained
from eigenoptions.envs.finite import mdp_from_table
from eigenoptions.envs.sources import count_actions, env_name, make_vector_env
from eigenoptions.mdp import MDP
from eigenoptions.mdp.spaces import (
    count_states,
    find_sampled_space,
    is_array_space,
    read_spaces,
)
from eigenoptions.samples import Transitions
from eigenoptions.samples.collection import collect

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False)
class Samples:
    """Transitions and what is known of their environment.

    Attributes
    ----------
    transitions : Transitions
        The samples.
    n_actions : int
        Number of actions.
    n_states : int, default=None
        Number of states; None where observations are not the numbers of states.
    space : gymnasium.Space, default=None
        Space of the observations.
    coords : ndarray of shape (S, 2), default=None
        Places of the states.
    features : callable, default=None
        The map that was applied while sampling, where observations are no arrays
        (Dict).
    provenance : dict, default={}
        Where the samples come from.
    """

    transitions: Transitions
    n_actions: int
    n_states: int | None = None
    space: Any = None
    coords: NDArray[np.int_] | None = None
    features: FeatureFunction | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


def read_samples(data: Any, space: Any = None, n_actions: int | None = None) -> Samples:
    """Samples of recorded data: whatever `Transitions.of` accepts.

    Parameters
    ----------
    data : object
        The data.
    space : gymnasium.Space, default=None
        Space of the observations, where the data do not declare it.
    n_actions : int, default=None
        Number of actions, likewise.
    """
    declared_space, declared_actions = read_spaces(data)
    transitions = Transitions.of(data)
    if not len(transitions):
        raise ValueError("there are no transitions: collect some")
    if space is None:
        space = declared_space
    if n_actions is None:
        n_actions = declared_actions
    else:
        n_actions = check_int("n_actions", n_actions)
    if space is None or n_actions is None:
        logger.warning(
            "n_actions or the observation space were inferred from the data, which "
            "need not show all: pass n_actions= and space= to be safe"
        )

    action = transitions.action
    if transitions.obs.ndim > 1 and (action == action[0]).all():
        logger.warning(
            "the action is %d in all %d rows, so that options have nothing to choose: "
            "record steps in which actions vary",
            action[0],
            len(action),
        )
    if n_actions is None:
        largest = int(transitions.action.max())
        n_actions = check_int("n_actions", largest + 1, maximum=1 << 20)
    return Samples(
        transitions,
        n_actions,
        _count_sampled_states(transitions, space),
        space,
        provenance={"transitions": len(transitions)},
    )


def _count_sampled_states(transitions: Transitions, space: Any) -> int | None:
    """Number of states of samples; None where observations are not numbers or names."""
    obs = transitions.obs
    if transitions.states is not None:
        return len(transitions.states)
    if space is None and obs.ndim == 1 and obs.dtype.kind in "iu":
        return int(max(obs.max(), transitions.next_obs.max())) + 1
    return count_states(space)


def sample_environment(
    env: Any,
    features: Fitted | Trained | None = None,
    *,
    steps: int = 50_000,
    max_episode_steps: int | None = None,
    rng: Randomness = 0,
    progress: ProgressArgument = None,
) -> Samples:
    """Samples of a random walk through an environment.

    Eight environments step together, or the one that is given as an object.

    Parameters
    ----------
    env : object
        An id, an environment, a function that creates one, a vector environment, or an
        `MDP`.
    features : Fitted or Trained, default=None
        A function is applied while sampling where observations are not arrays (Dict,
        Tuple).
    steps : int, default=50000
        Number of transitions.
    max_episode_steps, rng, progress
        As in `eigenoptions.collect`.

    Examples
    --------
    >>> sample_environment("CliffWalking-v1", steps=100).space
    Discrete(48)
    """
    can_be_made = isinstance(env, str | MDP) or callable(env)
    n_envs = 8 if can_be_made else 1
    given = features.features if isinstance(features, Fitted) else None
    envs, is_owned = make_vector_env(env, n_envs, max_episode_steps)
    with closing(envs) if is_owned else nullcontext():
        n_actions = count_actions(envs)
        first: Any = envs.envs[0] if hasattr(envs, "envs") else envs
        name = env.name if isinstance(env, MDP) else env_name(first)
        space = find_sampled_space(envs.single_observation_space)
        if given is None and not isinstance(features, Trained):
            _check_no_images(space, env_name(first))

        # A feature map of the caller makes arrays of observations that are none.
        applied = None
        if callable(given) and not is_array_space(space):
            applied = given
        mapping = applied
        if applied is None and space is not envs.single_observation_space:
            mapping = itemgetter("observation")
        transitions = collect(envs, steps, rng=rng, features=mapping, progress=progress)

        coords = None
        if first is not envs:
            coords = _find_coords(first, space)
        # What a feature map returns is not of the environment's space.
        space_of_samples = space
        if applied is not None:
            space_of_samples = None
        return Samples(
            transitions,
            n_actions,
            count_states(space),
            space=space_of_samples,
            coords=coords,
            features=applied,
            provenance={
                "transitions": len(transitions),
                "environment": name,
                "steps": int(steps),
            },
        )


def _check_no_images(space: Any, name: str) -> None:
    """Raise ValueError for images, whose numbers are no features."""
    if np.prod(space.shape or 1) > 1000:
        raise ValueError(
            f"observations of {name} are images of shape {space.shape}: give features= "
            '("deep" learns them; an Atari game also has gymnasium.make(..., '
            'obs_type="ram"))'
        )


def _find_coords(env: Any, space: Any) -> NDArray[np.int_] | None:
    """Places of the states, for pictures, if the environment has a table of them."""
    mdp = mdp_from_table(env)
    if mdp is None or mdp.n_states != count_states(space):
        return None
    return mdp.coords


def has_vectors(samples: Samples) -> bool:
    """Whether observations are a few numbers each, and not bytes or images."""
    obs = samples.transitions.obs
    is_mapped = samples.features is not None
    return (
        not is_mapped
        and obs.ndim == 2
        and obs.dtype.kind in "iuf"
        and (obs.dtype != np.uint8)
    )
