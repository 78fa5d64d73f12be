"""`check_dynamics`: whether an environment moves as the MDP of options does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from eigenoptions._validation import check_int
from eigenoptions.envs.recognition import StateReader
from eigenoptions.envs.spaces import check_spaces
from eigenoptions.options import OptionSet


def check_dynamics(
    options: OptionSet,
    env: gym.Env[Any, Any],
    *,
    state: Callable[[Any], Any] | None = None,
    steps: int = 200,
) -> None:
    """Raise ValueError if a random walk makes a move that is impossible in the MDP of the options.

    ``options.check(env)`` calls it. The environment takes `steps` steps: reset it before you use it again. `state` is
    that of `OptionsWrapper`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> check_dynamics(eo.discover(eo.maze("four-rooms"), n_options=2), eo.envs.MazeEnv("four-rooms"))
    """
    n_actions = check_spaces(env, options, mapped=state is not None)
    rng, table, reader = np.random.default_rng(0), options.mdp.transition, StateReader(options, state)
    recognition = options.mdp.recognition or {}
    seed, after = recognition.get("seed", 0), -1
    for _ in range(check_int("steps", steps)):
        if after < 0:
            obs, _ = env.reset(seed=seed)
            seed, after = recognition.get("seed"), reader.read_first(env.unwrapped, obs)
        before, action = after, int(rng.integers(n_actions))
        obs, _, terminated, truncated, _ = env.step(action)
        after, row = reader.read(env.unwrapped, obs), before * n_actions + action
        # An action that always stays put may be one that was never tried when the MDP was made.
        if table[row, after] == 0 and table[row, before] < 1:
            raise ValueError(
                f"options of another state space: action {action} led from state {before} to {after}, which never "
                f"happens in {options.mdp!r}; discover options on this environment"
            )
        if terminated or truncated:
            after = -1
