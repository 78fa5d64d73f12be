"""The order of the parts of a tuple: which is the reward, and which the next state.

Rewards stand before the next observation or after it. The shape of an observation, or
its type, tells the two apart. If states are numbers, so may be rewards. Then the rows
tell: a step mostly begins where the one before ended. If they do not, you are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray
from eigenoptions.samples.parts import Parts, convert_numbers

_NAMED = "{'obs': ..., 'action': ..., 'next_obs': ...}"


def order_four_parts(parts: Sequence[Any]) -> Parts:
    """Parts of ``(obs, action, next_obs, terminated)``, also with a reward.

    The reward is the last part, or the third one, before the next observation.
    """
    obs, action, third, fourth = parts
    readings = "(obs, action, next_obs, terminated) or (obs, action, reward, next_obs)"
    if not _is_flag(fourth):
        readings = "(obs, action, reward, next_obs) or (obs, action, next_obs, reward)"

    if _find_next_obs(obs, third, fourth, readings, is_flag=_is_flag(fourth)) == 1:
        return Parts(obs, action, fourth, reward=third)
    if _is_number_per_step(fourth) and not _is_flag(fourth):
        return Parts(obs, action, third, reward=fourth)
    _check_ends(obs, third, fourth)
    return Parts(obs, action, third, terminated=fourth)


def order_five_parts(parts: Sequence[Any]) -> Parts:
    """Parts of ``(obs, action, reward, next_obs, terminated)``.

    The reward may also be on the other side of the next observation.
    """
    obs, action, third, fourth, terminated = parts
    readings = (
        "(obs, action, reward, next_obs, terminated) or "
        "(obs, action, next_obs, reward, terminated)"
    )
    if _find_next_obs(obs, third, fourth, readings) == 0:
        return Parts(obs, action, third, terminated, fourth)
    return Parts(obs, action, fourth, terminated, third)


def _find_next_obs(
    obs: Any, third: Any, fourth: Any, readings: str, is_flag: bool = False
) -> int:
    """Which of two parts is the next observation: 0 or 1.

    Parameters
    ----------
    obs, third, fourth : array or sequence of length N
        The observation, and the two parts.
    readings : str
        What the steps may be, for the question.
    is_flag : bool, default=False
        Whether the second part could be the end of an episode.
    """
    is_like = [_is_like(part, obs) for part in (third, fourth)]
    if is_like == [True, False]:
        return 0
    if is_like == [False, True]:
        return 1
    if not all(is_like) or not _is_number_per_step(obs):
        # What is wrong shows when the parts are converted.
        return 0 if is_flag else 1

    states = _flatten(obs)
    candidates = [_flatten(part) for part in (third, fourth)]
    could_be = [_could_be_state(part, states) for part in candidates]
    if could_be[0] != could_be[1]:
        return 0 if could_be[0] else 1

    # Among more than two states, a part of zeros and ones is no state.
    if is_flag and could_be[0] and len(np.unique(states)) > 2:
        return 0
    found = follow_rows(states, candidates)
    if found is None:
        # Steps in no order. A part that never varies is no place that one gets to.
        is_constant = [bool((part == part[0]).all()) for part in candidates]
        if is_constant[0] != is_constant[1]:
            found = 1 if is_constant[0] else 0
    if found is not None:
        return found
    raise ValueError(
        f"a step between numbered states is {readings}, and the rows do not say which: "
        f"give a dict with names, {_NAMED}"
    )


def _is_like(part: Any, obs: Any) -> bool:
    """Whether the rows of a part are vectors, names or numbers as those of `obs`."""
    first = _get_first_row(part)
    first_obs = _get_first_row(obs)
    if isinstance(first_obs, str | tuple) or isinstance(first, str | tuple):
        return isinstance(first, type(first_obs))
    return bool(np.shape(first) == np.shape(first_obs))


def _get_first_row(part: Any) -> Any:
    """The first row of an array, a list, a tensor or a column of a data frame."""
    if hasattr(part, "to_numpy"):
        part = part.to_numpy()
    is_empty = part is None or not np.ndim(part) or not len(part)
    return None if is_empty else part[0]


def _is_number_per_step(part: Any) -> bool:
    """Whether each row of a part is one number."""
    first = _get_first_row(part)
    if first is None or isinstance(first, str | tuple):
        return False
    # Not `np.size`, which does not know tensors.
    return bool(np.prod(np.shape(first)) == 1)


def _flatten(part: Any) -> NDArray[Any]:
    """A part with one number in each row as an array ``(N,)``."""
    return convert_numbers("each part", part).ravel()


def _is_flag(part: Any) -> bool:
    """Whether a part could say where episodes end: zeros and ones."""
    if not _is_number_per_step(part):
        return False
    numbers = _flatten(part)
    return bool(((numbers == 0) | (numbers == 1)).all())


def _could_be_state(numbers: NDArray[Any], states: NDArray[Any]) -> bool:
    """Whether numbers could be states, as others are."""
    if numbers.dtype.kind == "b":
        return False
    if states.dtype.kind == "f":
        is_whole = bool((states == np.round(states)).all())
        return not is_whole or bool((numbers == np.round(numbers)).all())
    # Rewards are floats, and states are not.
    return numbers.dtype.kind in "iu" and numbers.min() >= min(states.min(), 0)


def follow_rows(
    states: NDArray[Any], candidates: Sequence[NDArray[Any]], margin: float = 0.25
) -> int | None:
    """Which candidate says in most rows where the next one begins.

    Parameters
    ----------
    states : array of shape (N,)
        Where each step begins.
    candidates : sequence of array of shape (N,)
        Parts of which one may say where each step ends.
    margin : float, default=0.25
        By how much the share of rows must be above that of the others.

    Returns
    -------
    int or None
        The number of the candidate; None if the rows do not tell.
    """
    if len(states) < 2:
        return None
    shares = [float((part[:-1] == states[1:]).mean()) for part in candidates]
    best = int(np.argmax(shares))
    others = shares[:best] + shares[best + 1 :]
    is_clear = shares[best] >= 0.5 and shares[best] >= max(others) + margin
    return best if is_clear else None


def _check_ends(obs: Any, next_obs: Any, terminated: Any) -> None:
    """Raise ValueError if ends look like rewards: episodes go on after them."""
    if not _is_number_per_step(terminated):
        return
    flags = _flatten(terminated)
    if flags.dtype.kind == "b" or len(flags) < 2:
        return
    ends = np.flatnonzero(flags[:-1] == 1)
    if not len(ends):
        return

    goes_on = _compare_rows(obs, next_obs, ends)
    if goes_on.mean() > 0.5:
        raise ValueError(
            "the last part is terminated or, as (obs, action, next_obs, reward), the "
            f"reward: {goes_on.sum()} of {len(ends)} episodes go on after a 1; give "
            f"True and False as ends, or a dict with names, {_NAMED}"
        )


def _compare_rows(obs: Any, next_obs: Any, rows: NDArray[np.intp]) -> BoolArray:
    """Whether the row after each of some rows begins where that one ended."""
    before = obs.to_numpy() if hasattr(obs, "to_numpy") else obs
    after = next_obs.to_numpy() if hasattr(next_obs, "to_numpy") else next_obs
    is_equal = [np.array_equal(after[row], before[row + 1]) for row in rows.tolist()]
    return np.array(is_equal, dtype=np.bool_)
