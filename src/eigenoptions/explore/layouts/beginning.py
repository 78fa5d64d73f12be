"""A beginning for agents: draw skills at random until some episodes were won.

An agent may settle before it has seen a reward, and then the rules that lead to it are
never learned. Copy this loop into one of your own if you like.
"""

from __future__ import annotations

import logging
from typing import Any

import gymnasium as gym

from eigenoptions._validation import check_int
from eigenoptions.envs.sources import env_name

logger = logging.getLogger("eigenoptions")


def draw_until_won(
    env: gym.Env[Any, Any], wins: int = 5, max_steps: int = 20_000
) -> int:
    """Choose uniformly among available skills until so many episodes were won.

    Parameters
    ----------
    env : gymnasium.Env
        An `OptionsWrapper` with the skills of a `MapWrapper`. Every choice is
        ``env.action_space.sample()``, and every episode a new layout.
    wins : int, default=5
        Number of episodes to win: their rewards have a positive sum.
    max_steps : int, default=20000
        Primitive steps after which it gives up, with a warning.

    Returns
    -------
    int
        Primitive steps taken: an agent that is compared has so many fewer.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> env = eo.MapWrapper(gym.make("minigrid:MiniGrid-Empty-5x5-v0"))
    >>> env = eo.OptionsWrapper(env, env.skills(32), primitives=False)
    >>> draw_until_won(env, wins=1) > 0
    True
    """
    wins = check_int("wins", wins)
    max_steps = check_int("max_steps", max_steps)
    n_steps = 0
    n_won = 0
    while n_won < wins and n_steps < max_steps:
        env.reset()
        total = 0.0
        is_over = False
        while not is_over:
            choice = env.action_space.sample()
            _, _, terminated, truncated, info = env.step(choice)
            total += info["primitive_return"]
            n_steps += info["duration"]
            is_over = terminated or truncated
        n_won += total > 0
    if n_won < wins:
        logger.warning(
            "%s: %d of %d episodes were won by random choice in %d steps; raise "
            "max_steps, or look at what the rules do not know (print(env.rules))",
            env_name(env),
            n_won,
            wins,
            n_steps,
        )
    return n_steps
