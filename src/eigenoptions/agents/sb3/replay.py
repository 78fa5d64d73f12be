"""`fill_replay`: an off-policy agent begins with the steps of `explore`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from eigenoptions._types import BoolArray, IndexArray
from eigenoptions.agents.sb3.buffers import SMDPReplayBuffer
from eigenoptions.agents.sb3.discounts import check_discounts
from eigenoptions.agents.sb3.observations import (
    check_same_task,
    stack_observations,
    take_rows,
)
from eigenoptions.envs import OptionsWrapper
from eigenoptions.explore.found import Found
from eigenoptions.explore.found_vectors import VectorFound
from eigenoptions.options import OptionSet

logger = logging.getLogger("eigenoptions")


def fill_replay(agent: BaseAlgorithm, found: Found) -> int:
    """Put the steps of `explore` into the replay buffer of an off-policy agent.

    The agent then learns from the first reward on that was found. Call this before
    ``agent.learn``, and make the agent with ``learning_starts=0``, since its buffer is
    not empty.

    Explore the environment with the same observation wrappers as the agent's; `Monitor`
    and `OptionsWrapper` make no difference. Every observation is that of the first
    visit to its state: a key of yours must not be coarser than what the agent sees.

    Parameters
    ----------
    agent : stable_baselines3.common.off_policy_algorithm.OffPolicyAlgorithm
        DQN, `OptionsDQN` or another with discrete actions; SAC, TD3 or DDPG where
        vectors were explored with a ``Box`` of actions. Options have the numbers after
        the primitive actions, which keep theirs.
    found : Found
        What `explore` returned.

    Returns
    -------
    int
        Number of steps.

    Notes
    -----
    A terminated episode is worth nothing afterwards, a truncated one goes on, as SB3
    stores them. With several environments each gets a part of the steps, and the first
    steps fill the last row.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import DQN
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> found = eo.explore(env, 1000, until="reward")
    >>> agent = DQN("MlpPolicy", env, learning_starts=0, seed=0)
    >>> fill_replay(agent, found) == found.n_steps == agent.replay_buffer.size()
    True
    """
    if not isinstance(agent, OffPolicyAlgorithm):
        raise ValueError(
            f"{type(agent).__name__} has no replay buffer: use clone(agent, found)"
        )
    check_same_task(agent, found)
    check_discounts(agent)
    _warn_of_coarse_key(found)
    buffer: Any = agent.replay_buffer
    if buffer.optimize_memory_usage:
        raise ValueError(
            "optimize_memory_usage=True takes next observations from the row below, "
            "which may belong to another episode: make the agent without it"
        )
    n_rows = ceil(found.n_steps / buffer.n_envs)
    if n_rows > buffer.buffer_size:
        raise ValueError(
            f"the replay buffer holds {buffer.buffer_size * buffer.n_envs} steps, "
            f"found has {found.n_steps}: make the agent with "
            f"buffer_size={n_rows * buffer.n_envs} or more"
        )

    observations = stack_observations(agent, found, found.step_observations)
    before, after = found.step_rows
    actions = _read_actions(agent, found)
    numbers = found.numbers
    assert numbers.reward is not None
    extras = _collect_extras(agent, found)

    # Row k of the buffer has step k of the part of each environment.
    first_steps = n_rows * np.arange(buffer.n_envs)
    order = (first_steps + np.arange(n_rows)[:, None]) % found.n_steps
    is_truncated = _find_truncated(found, order, buffer.handle_timeout_termination)
    for row, steps in enumerate(order):
        next_places = after[steps]
        infos = []
        for i, next_place in enumerate(next_places):
            info = {"TimeLimit.truncated": bool(is_truncated[row, i])}
            infos.append(info | extras[next_place])
        buffer.add(
            take_rows(observations, before[steps]),
            take_rows(observations, next_places),
            actions[steps],
            numbers.reward[steps],
            numbers.terminated[steps] | is_truncated[row],
            infos,
        )
    return found.n_steps


def _read_actions(agent: Any, found: Found) -> NDArray[Any]:
    """Return the actions of all steps as the buffer holds them.

    SB3 stores vectors in -1 to 1, whatever the bounds of the environment are.
    """
    if not isinstance(found, VectorFound):
        return found.numbers.action
    if isinstance(agent.action_space, Box):
        scaled: NDArray[Any] = agent.policy.scale_action(found.transitions.action)
        return scaled
    return found.transitions.action


def _warn_of_coarse_key(found: Found) -> None:
    """Warn where most steps would not change what the agent sees."""
    if isinstance(found.about.by, str):
        return
    share = float((found.numbers.obs == found.numbers.next_obs).mean())
    if share > 0.5:
        logger.warning(
            "%s: %.0f%% of the steps stay in one state of your key, and are stored "
            "with equal observations before and after; if the agent sees more than "
            "your key, explore with a finer one",
            found.about.name,
            100 * share,
        )


def _find_truncated(
    found: Found, order: IndexArray, handles_timeouts: bool
) -> BoolArray:
    """Return which steps an agent takes for cut off, in the order of a buffer.

    Values go on where an episode is cut off. A buffer that does not handle time limits
    takes them for ends, and then only those of the environment count.
    """
    is_truncated = np.asarray(found.numbers.truncated, dtype=np.bool_)[order]
    if handles_timeouts:
        # The row below the last one, and the first of an episode, continue nothing.
        is_truncated[-1] = True
        is_truncated[:-1] |= found.is_first[order[1:]]
    return is_truncated & ~found.numbers.terminated[order]


def _collect_extras(agent: BaseAlgorithm, found: Found) -> Sequence[dict[str, Any]]:
    """Return what our buffer stores beside the step to each state, for every state."""
    if not isinstance(getattr(agent, "replay_buffer", None), SMDPReplayBuffer):
        return [{}] * len(found.step_observations)
    env = agent.get_env()
    if env is None or not all(env.env_is_wrapped(OptionsWrapper)):
        raise ValueError(
            "SMDPReplayBuffer needs discounts: wrap the agent's environment in "
            "OptionsWrapper"
        )
    gamma = env.get_attr("gamma")[0]
    options = env.get_attr("options")[0]
    state = env.get_attr("state")[0]

    n_primitive = found.about.n_actions
    masks = np.ones(
        (len(found.step_observations), n_primitive + len(options)), dtype=np.bool_
    )
    masks[:, n_primitive:] = _find_available(options, state, found)
    return [{"discount": gamma, "action_mask": mask} for mask in masks]


def _find_available(options: Any, state: Any, found: Found) -> BoolArray:
    """Return which options are available in each seen state, ``(S, n_options)``."""
    inputs: Sequence[Any] = found.step_observations
    if state is not None:
        inputs = [state(obs) for obs in found.step_observations]
    elif isinstance(options, OptionSet):
        inputs = _number_states(options, found)

    if not isinstance(options, OptionSet):
        rows = []
        for option_input in inputs:
            rows.append([option.act(option_input) >= 0 for option in options])
        return np.array(rows)

    # The last row is that of states that the options do not know, number -1.
    nothing = np.zeros((1, len(options)), dtype=np.bool_)
    table = np.concatenate([options.initiation.T, nothing])
    available: BoolArray = table[np.asarray(inputs)]
    return available


def _number_states(options: OptionSet, found: Found) -> list[int]:
    """Return the number that the options give to each seen state; -1: unknown."""
    keys = [found.states[number] for number in found.seen.tolist()]
    by = None
    if options.mdp is not None and options.mdp.recognition is not None:
        by = options.mdp.recognition.by
    if by is None and found.about.numbers is not None:
        # Numbered observations are the numbers of states.
        return keys
    if by is None or by != found.about.by:
        raise ValueError(
            "the agent's options recognise states otherwise than found: use options "
            "of discover(found)"
        )
    known = {key: number for number, key in enumerate(options.mdp.states or ())}
    return [known.get(key, -1) for key in keys]
