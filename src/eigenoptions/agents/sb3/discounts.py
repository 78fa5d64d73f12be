"""Whether an agent of SB3 discounts decisions for options as `OptionsWrapper` does."""

from __future__ import annotations

import logging
from weakref import WeakSet

from stable_baselines3.common.base_class import BaseAlgorithm

from eigenoptions.agents.sb3.buffers import (
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    check_same_gamma,
    find_gamma,
)

logger = logging.getLogger("eigenoptions")

# Agents that a warning was about: one is enough.
_warned: WeakSet[BaseAlgorithm] = WeakSet()


def check_discounts(agent: BaseAlgorithm) -> None:
    """Check that an agent's discounts are those of its `OptionsWrapper`.

    `OptionsDQN`, `prefer_actions`, `fill_replay` and the callbacks call this. Call it
    for an agent that uses none of them. Agents without options pass, and so do those of
    the mode "step", where a constant discount is right.

    Parameters
    ----------
    agent : stable_baselines3.common.base_class.BaseAlgorithm
        The agent. A warning says what to change if its buffer stores no discounts, so
        that an option of many steps is discounted as one step.

    Raises
    ------
    ValueError
        If the agent and its wrapper have different discounts.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import DQN
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> env = eo.OptionsWrapper(env, eo.discover(env, n_options=4), gamma=0.9)
    >>> check_discounts(DQN("MlpPolicy", env, gamma=0.99))
    Traceback (most recent call last):
    ...
    ValueError: DQN has gamma=0.99, its OptionsWrapper gamma=0.9: give both the same
    """
    gamma = find_gamma(agent.action_space)
    if gamma is None:
        return
    name = type(agent).__name__
    # An agent may have no gamma: there is nothing to compare.
    check_same_gamma(name, getattr(agent, "gamma", gamma), gamma)

    # Off-policy agents have a replay buffer, the others a rollout buffer.
    buffer = getattr(agent, "replay_buffer", None)
    if buffer is not None:
        remedy = "use OptionsDQN, or replay_buffer_class=SMDPReplayBuffer"
    else:
        buffer = getattr(agent, "rollout_buffer", None)
        remedy = (
            "use rollout_buffer_class=SMDPRolloutBuffer (of MaskablePPO: "
            "SMDPMaskableRolloutBuffer) and callback=SMDPDiscounts()"
        )
    stores_discounts = isinstance(buffer, SMDPReplayBuffer | SMDPRolloutBuffer)
    # With gamma 1 nothing is discounted.
    if stores_discounts or gamma == 1 or agent in _warned:
        return
    _warned.add(agent)
    logger.warning(
        "%s discounts an option of k steps by gamma, as one step, and not by gamma**k, "
        "so it overrates long options: %s",
        name,
        remedy,
    )
