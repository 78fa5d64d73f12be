"""States that are recognised by their observation: integers, text, or tuples of them.

Every environment that no other family claims belongs here. It is copied to save a
state, and it is refused where observations are not finite.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eigenoptions._types import IndexArray
from eigenoptions.envs.families.family import Family, Places, families
from eigenoptions.mdp.keys import make_hashable

# A place on a map has at least so many rows and columns: a flag is no direction.
_MIN_EXTENT = 3
# Above these, maps would be many, or mostly empty.
_MAX_MAPS = 16
_MAX_CELLS_PER_STATE = 10


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


def _place_states(keys: Sequence[Any]) -> Places:
    """Place states on maps of two of their numbers, one map per value of the others.

    The two are those with the most values: in ``(row, column, has_key)`` the first two.

    >>> coords, legend = _place_states([(r, c, k) for k in (0, 1) for r in range(3)
    ...                                 for c in range(4)])
    >>> coords[-1].tolist(), legend
    ([2, 8], 'number 0 of the observation down, number 1 to the right; one map per ...')
    """
    numbers = _list_numbers(keys)
    if numbers is None or len(np.unique(numbers, axis=0)) < len(keys):
        return None, ""
    n_values = np.array([len(np.unique(column)) for column in numbers.T])
    if np.sum(n_values >= _MIN_EXTENT) < 2:
        return None, ""
    # Of columns with equally many values, the first ones.
    down, right = sorted(np.argsort(-n_values, kind="stable")[:2].tolist())
    others = np.delete(numbers, [down, right], axis=1)
    kinds, kind = np.unique(others, axis=0, return_inverse=True)

    rows = numbers[:, down] - numbers[:, down].min()
    columns = numbers[:, right] - numbers[:, right].min()
    width = int(columns.max()) + 1
    n_cells = (int(rows.max()) + 1) * width * len(kinds)
    if len(kinds) > _MAX_MAPS or n_cells > _MAX_CELLS_PER_STATE * len(keys):
        return None, ""

    # NumPy 2.0.0 returns a column. A gap lies between the maps.
    columns = columns + (width + 1) * kind.ravel()
    legend = f"number {down} of the observation down, number {right} to the right"
    if len(kinds) > 1:
        legend += "; one map per value of the others"
    return np.stack([rows, columns], axis=1), legend


def _list_numbers(keys: Sequence[Any]) -> IndexArray | None:
    """The numbers ``(S, d)`` in the keys, without names; None if some are no integers.

    >>> _list_numbers([(("at", (0, 1)), ("key", 0)), (("at", (2, 1)), ("key", 1))])
    array([[0, 1, 0],
           [2, 1, 1]])
    """
    rows = []
    for key in keys:
        rows.append([part for part in _flatten(key) if not isinstance(part, str)])
    try:
        numbers = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        # Rows differ in length, or hold something else.
        return None
    if numbers.ndim != 2 or not np.isfinite(numbers).all():
        return None
    whole = numbers.astype(np.int64)
    return whole if (whole == numbers).all() else None


def _flatten(key: Any) -> Iterator[Any]:
    """The parts of a nested tuple."""
    if isinstance(key, tuple):
        for part in key:
            yield from _flatten(part)
    else:
        yield key


OBSERVATION = Family(
    name="observation",
    matches=_match_every_env,
    identify_state=_identify_state,
    looks_inside=False,
    find_obstacle=_find_obstacle,
    suggest_sampled=_suggest_sampled,
    place_states=_place_states,
)
families.add("observation", OBSERVATION)
