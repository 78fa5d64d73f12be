"""`run_options`: the paths of options through an environment (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int
from eigenoptions.envs.sources import count_actions, make_env
from eigenoptions.options.linear import start_option


def run_options(
    env: str | gym.Env[Any, Any],
    options: Sequence[Any],
    *,
    runs: int = 8,
    max_steps: int = 500,
    warm_up: int = 50,
    rng: int = 0,
) -> list[list[NDArray[Any]]]:
    """Paths of each option through an environment, from the same states for all (Section 5.2).

    Parameters
    ----------
    env
        An id or an environment.
    options
        Objects with ``act(obs)``: an `OptionSet` where observations are states, a `LinearOptionSet`, or a list.
    runs
        Number of starts per option, the same for all options.
    max_steps
        Steps after which an option is stopped.
    warm_up
        Maximum number of steps of the random walk that leads from a reset to a start.
    rng
        Seed that draws the starts.

    Returns
    -------
    list of lists of arrays
        For each option and start the observations ``(T + 1, ...)`` from its first to its last state. A single
        observation: the option was not available there, or the warm-up had ended the episode.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("i-maze"), n_options=2)
    >>> paths = run_options("eigenoptions/IMaze-v0", options, runs=1, warm_up=0)
    >>> [path[0].tolist() for path in paths]
    [[16, 17, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 1], [16, 17]]
    """
    check_int("runs", runs)
    check_int("max_steps", max_steps)
    check_int("warm_up", warm_up, 0)
    check_int("rng", rng, 0)
    if not hasattr(options, "__iter__") or not all(hasattr(option, "act") for option in options):
        raise TypeError(
            f"options must be an OptionSet or objects with act(obs), got {type(options).__name__}: make them with "
            "discover"
        )
    made = make_env(env)
    n_actions = count_actions(made)
    paths: list[list[NDArray[Any]]] = [[] for _ in options]
    try:
        for run in range(runs):
            for option, its_paths in zip(options, paths, strict=True):
                generator = np.random.default_rng((rng, run))
                obs, ended = _warm_up(made, n_actions, warm_up, generator)
                path = [np.array(obs)]
                policy = start_option(option, generator)
                while not ended and len(path) <= max_steps and (action := policy.act(obs)) >= 0:
                    obs, _, terminated, truncated, _ = made.step(action)
                    path.append(np.array(obs))
                    ended = terminated or truncated
                its_paths.append(np.array(path))
    finally:
        if isinstance(env, str):
            made.close()
    return paths


def _warm_up(
    env: gym.Env[Any, Any], n_actions: int, max_steps: int, rng: np.random.Generator
) -> tuple[Any, bool]:
    """Reset and take 0 to `max_steps` random steps: the last observation, and whether the episode ended."""
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    for _ in range(int(rng.integers(max_steps + 1))):
        before = np.array(obs) if isinstance(obs, np.ndarray) else obs
        obs, _, terminated, truncated, _ = env.step(int(rng.integers(n_actions)))
        if terminated or truncated:
            return before, True
    return obs, False
