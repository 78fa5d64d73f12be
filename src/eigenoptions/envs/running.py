"""Options let loose in an environment, to see where they lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions.envs.tables import count_actions, made_env

Paths = list[list[NDArray[Any]]]


def run_options(
    env: str | gym.Env[Any, Any],
    options: Sequence[Any],
    *,
    runs: int = 8,
    max_steps: int = 500,
    warm_up: int = 50,
    rng: int = 0,
) -> Paths:
    """Paths of each option through an environment, from the same states for all (Section 5.2).

    Parameters
    ----------
    env
        An id or an environment.
    options
        What has ``act(obs)``: an `OptionSet` where observations are states, a `LinearOptionSet`, or a list.
    runs
        Starts. Each is a reset and a random walk of 0 to `warm_up` steps; the same seed leads every option there.
    max_steps
        Steps after which an option is stopped.

    Returns
    -------
    list of lists of arrays
        For each option and start the observations ``(T + 1, ...)`` from where it began to where it stopped. One
        observation alone: the option did not start there, or the walk had ended before.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("i-maze"), n_options=2)
    >>> paths = run_options("eigenoptions/IMaze-v0", options, runs=1, warm_up=0)
    >>> [path[0].tolist() for path in paths]
    [[16, 17, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 1], [16, 17]]
    """
    made = made_env(env)
    n_actions = count_actions(made)
    paths: Paths = [[] for _ in options]
    try:
        for run in range(runs):
            for i, option in enumerate(options):
                dice = np.random.default_rng((rng, run))
                obs, _ = made.reset(seed=int(dice.integers(2**31)))
                over = False
                for _ in range(int(dice.integers(warm_up + 1))):
                    before = obs
                    obs, _, terminated, truncated, _ = made.step(int(dice.integers(n_actions)))
                    if over := terminated or truncated:
                        obs = before
                        break
                seen = [obs]
                while not over and len(seen) <= max_steps and (action := option.act(obs)) >= 0:
                    obs, _, terminated, truncated, _ = made.step(action)
                    seen.append(obs)
                    over = terminated or truncated
                paths[i].append(np.array(seen))
    finally:
        if isinstance(env, str):
            made.close()
    return paths
