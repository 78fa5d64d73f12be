"""States that are recognised by their observation: integers, text, or tuples of them.

Every environment that no other family claims belongs here. It is copied to save a
state, and it is refused where observations are not finite.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eigenoptions.envs.families.family import Family, families


def make_hashable(obs: Any) -> Hashable:
    """Return an observation as a key of a dictionary, which JSON can write.

    Large arrays become a digest.

    >>> make_hashable({"cell": np.array([1, 2]), "has_key": np.int64(0)})
    (('cell', (1, 2)), ('has_key', 0))
    """
    if isinstance(obs, dict):
        return tuple((name, make_hashable(obs[name])) for name in sorted(obs))
    if isinstance(obs, tuple | list):
        return tuple(make_hashable(part) for part in obs)

    if isinstance(obs, np.ndarray) and obs.size > 64:
        # Integers of every width have one digest; other numbers count as they are.
        is_integer = obs.dtype.kind in "iub"
        numbers = obs.astype(np.int64).tobytes() if is_integer else obs.tobytes()
        return hashlib.blake2b(numbers, digest_size=16).hexdigest()
    if isinstance(obs, np.ndarray) and obs.ndim > 0:
        return tuple(obs.ravel().tolist())

    # NumPy's numbers, also arrays without a dimension, as Python's own.
    if isinstance(obs, np.ndarray | np.generic):
        number: Hashable = obs.item()
        return number
    return obs  # type: ignore[no-any-return]


def is_finite(space: gym.Space[Any]) -> bool:
    """Whether observations are integers or text, so that equal states look equal."""
    if isinstance(space, spaces.Dict):
        return all(is_finite(part) for part in space.spaces.values())
    if isinstance(space, spaces.Tuple):
        return all(is_finite(part) for part in space.spaces)
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iub"
    return isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Text
    )


def _match_every_env(env: gym.Env[Any, Any]) -> bool:
    return True


def _identify_state(env: Any, obs: Any) -> Hashable:
    return make_hashable(obs)


def _find_obstacle(env: gym.Env[Any, Any]) -> str | None:
    space = env.observation_space
    if is_finite(space):
        return None
    # A long space is printed over several lines.
    on_one_line = " ".join(str(space).split())
    return f"its observations are not finite ({on_one_line})"


def _suggest_sampled(env: gym.Env[Any, Any]) -> str:
    # Samples are arrays.
    if isinstance(env.observation_space, spaces.Tuple | spaces.Dict):
        return "gymnasium.wrappers.FlattenObservation(env)"
    return "env"


OBSERVATION = Family(
    name="observation",
    matches=_match_every_env,
    identify_state=_identify_state,
    looks_inside=False,
    find_obstacle=_find_obstacle,
    suggest_sampled=_suggest_sampled,
)
families.add("observation", OBSERVATION)
