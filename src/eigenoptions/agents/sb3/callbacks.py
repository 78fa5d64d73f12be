"""Callbacks for SB3's agents: true discounts, primitive steps, the use of options."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from eigenoptions._validation import check_int
from eigenoptions.agents.sb3.buffers import SMDPRolloutBuffer, read_discounts
from eigenoptions.agents.sb3.discounts import check_discounts


class SMDPDiscounts(BaseCallback):
    """Passes the discounts of `OptionsWrapper` to the rollout buffer, step by step.

    Where a time limit truncates an episode, SB3 adds gamma times the value of the last
    state to the reward. The callback adds the difference to the true discount
    beforehand, so that the sum is exact.
    """

    def _on_training_start(self) -> None:
        buffer = getattr(self.model, "rollout_buffer", None)
        if not isinstance(buffer, SMDPRolloutBuffer):
            raise ValueError(
                "SMDPDiscounts needs a buffer: pass "
                "rollout_buffer_class=SMDPRolloutBuffer"
            )
        check_discounts(self.model)

    def _on_step(self) -> bool:
        # An agent with a policy that has values, and a rollout buffer.
        model: Any = self.model
        infos = self.locals["infos"]
        rewards = self.locals["rewards"]
        discounts = read_discounts(infos)
        buffer = model.rollout_buffer
        buffer.discounts[buffer.pos] = discounts

        for i, info in enumerate(infos):
            is_truncated = info.get("TimeLimit.truncated", False)
            last_obs = info.get("terminal_observation")
            if is_truncated and last_obs is not None:
                tensor, _ = model.policy.obs_to_tensor(last_obs)
                with torch.no_grad():
                    value = float(model.policy.predict_values(tensor)[0])
                rewards[i] += (discounts[i] - model.gamma) * value
        return True


class PrimitiveSteps(BaseCallback):
    """Lets ``agent.learn(n)`` count primitive steps, those inside options included.

    Without it, SB3 counts a decision for an option as one step. With it, ``n``,
    `learning_starts`, the exploration rate, other schedules and the log count what the
    environment was asked for, so that agents with and without options are compared at
    equal cost. The last decision may pass ``n``.

    `train_freq`, `target_update_interval`, `n_steps` and `progress_bar` still count
    decisions.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import DQN
    >>> from eigenoptions.agents.sb3 import SMDPReplayBuffer
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> env = eo.OptionsWrapper(env, eo.discover(env, n_options=4), option_chance=0.5)
    >>> agent = DQN("MlpPolicy", env, replay_buffer_class=SMDPReplayBuffer, seed=0)
    >>> agent = agent.learn(100, callback=PrimitiveSteps())
    >>> agent.num_timesteps >= 100 > agent.replay_buffer.size()
    True
    """

    def _on_training_start(self) -> None:
        check_discounts(self.model)

    def _on_step(self) -> bool:
        durations = _read_infos(self.locals["infos"], "duration")
        # SB3 has counted one step for each environment.
        self.model.num_timesteps += sum(durations) - len(durations)
        self.num_timesteps = self.model.num_timesteps
        return True


class OptionUsage(BaseCallback):
    """Logs how an agent uses its options, to TensorBoard or where SB3's logger writes.

    Of the last decisions it records

    * ``options/share_of_decisions`` and ``options/share_of_steps``: how many decisions
      were for an option, and how many primitive steps options took;
    * ``options/mean_length``: primitive steps of an option;
    * ``options/unavailable``: the share of decisions for an option that could not
      start, so that a random action took its place;
    * ``option_share/e2+`` and so on: the share of decisions for each option.

    Parameters
    ----------
    window : int, default=1000
        Number of last decisions, of all environments together.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> env = eo.OptionsWrapper(env, eo.discover(env, n_options=4))
    >>> from eigenoptions.agents.sb3 import OptionsDQN
    >>> agent = OptionsDQN("MlpPolicy", env, seed=0)
    >>> agent = agent.learn(40, callback=OptionUsage())
    >>> 0 <= agent.logger.name_to_value["options/share_of_decisions"] <= 1
    True
    """

    def __init__(self, window: int = 1000) -> None:
        super().__init__()
        # The option of each decision, -1 for none, -2 for one that could not start; and
        # its duration.
        window = check_int("window", window)
        self._options: deque[int] = deque(maxlen=window)
        self._durations: deque[int] = deque(maxlen=window)
        self._labels: list[str] = []

    def _on_training_start(self) -> None:
        if not hasattr(self.model.action_space, "n_primitive"):
            raise ValueError(
                "OptionUsage needs options: wrap the environment in OptionsWrapper"
            )
        check_discounts(self.model)
        options = self.training_env.get_attr("options", indices=0)[0]
        self._labels = []
        for number, option in enumerate(options):
            self._labels.append(getattr(option, "label", "") or str(number))

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        options = _read_infos(infos, "option")
        for info, option in zip(infos, options, strict=True):
            self._options.append(-2 if info.get("unavailable") else option)
            self._durations.append(info["duration"])
        return True

    def _on_rollout_end(self) -> None:
        options = np.array(self._options)
        durations = np.array(self._durations)
        if not len(options):
            return
        runs = options >= 0
        share_of_steps = durations[runs].sum() / durations.sum()
        self.logger.record("options/share_of_decisions", float(runs.mean()))
        self.logger.record("options/share_of_steps", float(share_of_steps))
        self.logger.record("options/unavailable", float(np.mean(options == -2)))
        if runs.any():
            mean_length = float(durations[runs].mean())
            self.logger.record("options/mean_length", mean_length)

        counts = np.bincount(options[runs], minlength=len(self._labels))
        shares = (counts / len(options)).tolist()
        for label, share in zip(self._labels, shares, strict=True):
            # A table of 64 options would fill the terminal.
            self.logger.record(f"option_share/{label}", share, exclude="stdout")


def _read_infos(infos: list[dict[str, Any]], name: str) -> list[int]:
    """Return what `OptionsWrapper` says of each environment's decision."""
    for info in infos:
        if name not in info:
            raise ValueError(
                f"no {name} in the infos: wrap the environment in OptionsWrapper"
            )
    return [info[name] for info in infos]
