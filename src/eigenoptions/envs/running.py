"""`run_options`: the paths of options through an environment (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int
from eigenoptions.envs.recognition import StateReader
from eigenoptions.envs.sources import count_actions, make_env
from eigenoptions.options import TERMINATE
from eigenoptions.options.linear import RunningOption


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
    runs, max_steps
        Number of starts per option, and steps after which an option is stopped.
    warm_up, rng
        Maximum number of steps of the random walk from a reset to a start, and its seed.

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
    reader = StateReader(options)
    # The layout of options that belong to one.
    seed = reader.recognition.get("seed")
    paths: list[list[NDArray[Any]]] = [[] for _ in options]
    try:
        for run in range(runs):
            for option, its_paths in zip(options, paths, strict=True):
                generator = np.random.default_rng((rng, run))
                first_seed = int(generator.integers(2**31))
                obs, _ = made.reset(seed=first_seed if seed is None else seed)
                ended, path = False, [np.array(obs)]
                for _ in range(int(generator.integers(warm_up + 1))):
                    obs, _, terminated, truncated, _ = made.step(int(generator.integers(n_actions)))
                    ended = terminated or truncated
                    if ended:
                        break
                    path = [np.array(obs)]
                policy = RunningOption(option, generator)
                while not ended and len(path) <= max_steps:
                    value = reader.read(made.unwrapped, obs)
                    action = TERMINATE if reader.is_unknown(value) else policy.act(value)
                    if action < 0:
                        break
                    obs, _, terminated, truncated, _ = made.step(action)
                    path.append(np.array(obs))
                    ended = terminated or truncated
                its_paths.append(np.array(path))
    finally:
        if isinstance(env, str):
            made.close()
    return paths
