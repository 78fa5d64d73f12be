"""Rows of a vector environment: which of them begin episodes, and what is in them."""

from __future__ import annotations

from typing import Any

from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from eigenoptions.envs.sources import env_name


def find_autoreset(envs: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return how a vector environment resets itself, as its metadata say.

    Nothing else does: the row after the end of an episode looks the same in each mode,
    and a wrong guess would join two episodes.
    """
    mode = envs.metadata.get("autoreset_mode")
    if isinstance(mode, AutoresetMode):
        return mode
    raise ValueError(
        f"{env_name(envs)} must say when it resets itself after the end of an episode, "
        f'got autoreset_mode={mode!r}: set envs.metadata["autoreset_mode"] to '
        "gymnasium.vector.AutoresetMode.NEXT_STEP (its next step is the reset), "
        "SAME_STEP (the observation is of the next episode) or DISABLED"
    )


def check_resets_itself(envs: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return the mode of a vector environment that resets itself; refuse others."""
    mode = find_autoreset(envs)
    if mode == AutoresetMode.DISABLED:
        raise ValueError(
            f"{env_name(envs)} must reset itself, got {mode}: make it with "
            "AutoresetMode.NEXT_STEP"
        )
    return mode


def read_last_obs(infos: dict[str, Any], i: int) -> Any:
    """Return the last observation of an episode that has ended under ``SAME_STEP``."""
    last_obs = infos.get("final_obs")
    if last_obs is None or last_obs[i] is None:
        raise ValueError(
            f"an episode of environment {i} has ended, and infos have no 'final_obs', "
            "which under SAME_STEP holds its last observation: put it there, or make "
            "the environments with AutoresetMode.NEXT_STEP"
        )
    return last_obs[i]


def take_row(space: Space[Any], obs: Any, i: int) -> Any:
    """Return the observation of environment i in a batch.

    Parameters
    ----------
    space : gymnasium.Space
        That of a single environment. It tells a Tuple, whose batch is a tuple of
        batches, from other tuples, such as those of a Sequence.
    obs : object
        The batch.
    i : int
        Number of the environment.

    Examples
    --------
    >>> pair = spaces.Tuple([spaces.Discrete(9), spaces.Discrete(9)])
    >>> take_row(pair, ([1, 2], [3, 4]), 1)
    (2, 4)
    >>> take_row(spaces.Sequence(spaces.Discrete(9)), ((1,), (3, 4)), 1)
    (3, 4)
    """
    if isinstance(space, spaces.Dict):
        return {name: take_row(part, obs[name], i) for name, part in space.items()}
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, obs, strict=True)
        return tuple(take_row(part, part_obs, i) for part, part_obs in parts)
    return obs[i]
