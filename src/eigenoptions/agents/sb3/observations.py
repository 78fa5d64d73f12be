"""What `explore` found, as an agent of Stable-Baselines3 observes it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecTransposeImage, unwrap_vec_wrapper

from eigenoptions._types import IndexArray
from eigenoptions.envs import FixedSeed
from eigenoptions.explore.found import Found
from eigenoptions.explore.found_vectors import VectorFound

logger = logging.getLogger("eigenoptions")

# One row per state; of a Dict space one array for each of its parts.
Observations: TypeAlias = NDArray[Any] | dict[str, NDArray[Any]]


def check_same_task(agent: BaseAlgorithm, found: Found) -> None:
    """Check that an agent has the actions and the layout of what was found."""
    if not isinstance(found, Found):
        raise TypeError(
            f"found must be what explore returns, got {type(found).__name__}"
        )
    action_space = agent.action_space
    if isinstance(found, VectorFound) and found.controls.is_box:
        if action_space != found.controls.space:
            raise ValueError(
                f"the agent has actions {action_space}, found has "
                f"{found.controls.space}: explore the agent's environment"
            )
        return
    if not isinstance(action_space, spaces.Discrete):
        raise ValueError(
            f"the agent's actions must be numbers, got {action_space}: explore knows "
            "no others"
        )
    # Options are further actions; the primitive ones keep their numbers.
    n_primitive = getattr(action_space, "n_primitive", int(action_space.n))
    if n_primitive != found.about.n_actions:
        raise ValueError(
            f"the agent has {n_primitive} primitive actions, found has "
            f"{found.about.n_actions}: explore the agent's environment"
        )
    _check_layout(agent, found)


def _check_layout(agent: BaseAlgorithm, found: Found) -> None:
    """Refuse another layout than the one that was explored; warn if it changes."""
    env = agent.get_env()
    if env is None or found.about.layout is None:
        return
    seed = found.about.seed
    if not all(env.env_is_wrapped(FixedSeed)):
        logger.warning(
            "%s has a new layout in every episode, and one of them was explored: give "
            "the agent eo.envs.FixedSeed(env, %d)",
            found.about.name,
            seed,
        )
        return
    for other_seed in env.get_attr("seed"):
        if other_seed != seed:
            raise ValueError(
                f"the agent's environment has the layout of seed {other_seed}, found "
                f"that of seed {seed}: explore(env, steps, seed={other_seed})"
            )


def stack_observations(
    agent: BaseAlgorithm, found: Found, seen: Sequence[Any] | None = None
) -> Observations:
    """Return observations as the agent stores them.

    Those of the states of ``found.seen``, or other ones.

    SB3 moves the channels of images to the front, and so does this.

    Raises
    ------
    ValueError
        If the agent's environment has other observations than the explored one.
    """
    space = agent.observation_space
    env = agent.get_env()
    transposer = None
    if env is not None:
        transposer = unwrap_vec_wrapper(env, VecTransposeImage)
    if transposer is not None:
        space = transposer.venv.observation_space

    if seen is None:
        seen = found.observations
    observations: Observations
    if isinstance(space, spaces.Dict):
        observations = {}
        for name, part in space.spaces.items():
            rows = [_get_part(obs, name, space) for obs in seen]
            observations[name] = _stack(rows, part)
    else:
        observations = _stack(seen, space)

    if transposer is not None:
        return transposer.transpose_observations(observations)
    return observations


def _get_part(obs: Any, name: str, space: spaces.Dict) -> Any:
    """Return a part of a dict that was observed."""
    if not isinstance(obs, dict) or name not in obs:
        raise ValueError(
            f"the agent observes a dict with {sorted(space.spaces)}, found has no "
            f"{name!r}: explore the environment with the agent's observation wrappers"
        )
    return obs[name]


def _stack(rows: Any, space: Space[Any]) -> NDArray[Any]:
    """Return observations as rows of an array, if they are in a space."""
    for obs in rows:
        is_dict = isinstance(obs, dict)
        if is_dict or np.shape(obs) != space.shape or not _is_inside(obs, space):
            kind = "a dict" if is_dict else f"shape {np.shape(obs)}"
            raise ValueError(
                f"the agent observes {space}, found has {kind}: explore the "
                "environment with the agent's observation wrappers"
            )
    return np.array(rows, dtype=space.dtype)


def _is_inside(obs: Any, space: Space[Any]) -> bool:
    """Return whether a space has an observation, whatever its type of numbers is."""
    return space.contains(np.asarray(obs, dtype=space.dtype))


def take_rows(observations: Observations, rows: IndexArray) -> Observations:
    """Return some of the observations."""
    if isinstance(observations, dict):
        return {name: part[rows] for name, part in observations.items()}
    return observations[rows]
