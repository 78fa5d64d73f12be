"""Stable-Baselines3 with options: buffers that discount a decision by its true duration (paper, Section 2.2).

SB3's agents discount every decision by one gamma, as if an option took a single step, and so overestimate long
options. These adapters use ``info["discount"]`` of `OptionsWrapper` instead. They need the extra ``sb3``.

==============  ==========================================================================================
DQN             ``DQN(..., replay_buffer_class=SMDPReplayBuffer)``
PPO, A2C        ``PPO(..., rollout_buffer_class=SMDPRolloutBuffer).learn(n, callback=SMDPDiscounts())``
MaskablePPO     ``MaskablePPO(..., rollout_buffer_class=SMDPMaskableRolloutBuffer)``, and the same callback
==============  ==========================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import torch
    from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
    from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import VecNormalize
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"eigenoptions.envs.sb3 needs {missing.name}: pip install 'eigenoptions[sb3]'", name=missing.name
    ) from None
from numpy.typing import NDArray

__all__ = ["SMDPReplayBuffer", "SMDPRolloutBuffer", "SMDPMaskableRolloutBuffer", "SMDPDiscounts"]


class SMDPReplayBuffer(ReplayBuffer):
    """A replay buffer for DQN whose samples carry the discount of each decision.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> from stable_baselines3 import DQN
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0", max_episode_steps=200)
    >>> env = eo.envs.OptionsWrapper(env, eo.discover(eo.maze("four-rooms"), n_options=4), gamma=0.9)
    >>> agent = DQN("MlpPolicy", env, gamma=0.9, replay_buffer_class=SMDPReplayBuffer, learning_starts=8, seed=0)
    >>> _ = agent.learn(16)
    >>> agent.replay_buffer.sample(4).discounts.shape
    torch.Size([4, 1])
    """

    discounts: NDArray[np.float32]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.discounts = np.full((self.buffer_size, self.n_envs), np.nan, dtype=np.float32)

    def add(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store a transition of each environment."""
        self.discounts[self.pos] = _discounts(infos)
        super().add(obs, next_obs, action, reward, done, infos)

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Samples as the parent draws them (it does not return which environment it drew), with the discounts."""
        at = batch_inds, np.random.randint(0, self.n_envs, size=len(batch_inds))  # noqa: NPY002 (SB3 seeds this one)
        after = ((batch_inds + 1) % self.buffer_size, at[1])
        later = self.observations[after] if self.optimize_memory_usage else self.next_observations[at]
        parts = (
            self._normalize_obs(self.observations[at], env),
            self.actions[at],
            self._normalize_obs(later, env),
            (self.dones[at] * (1 - self.timeouts[at]))[:, None],
            self._normalize_reward(self.rewards[at][:, None], env),
            self.discounts[at][:, None],
        )
        return ReplayBufferSamples(*(self.to_torch(part) for part in parts))  # type: ignore[arg-type]


class _TrueDiscounts(RolloutBuffer):
    """Advantages in which step t is discounted by the duration of the decision at t."""

    discounts: NDArray[np.float32]

    def reset(self) -> None:
        """Clear the last rollout."""
        super().reset()
        self.discounts = np.full((self.buffer_size, self.n_envs), np.nan, dtype=np.float32)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: NDArray[Any]) -> None:
        """GAE with one discount per decision: ``A_t = r_t + d_t V_t+1 - V_t + d_t lambda A_t+1``."""
        if np.isnan(self.discounts).any():
            raise ValueError("the buffer has no discounts: pass callback=SMDPDiscounts() to learn")
        values = last_values.clone().cpu().numpy().flatten()
        goes_on = 1.0 - dones.astype(np.float32)
        advantage = np.zeros(self.n_envs, dtype=np.float32)
        for step in reversed(range(self.buffer_size)):
            weight = self.discounts[step] * goes_on
            delta = self.rewards[step] + weight * values - self.values[step]
            advantage = delta + weight * self.gae_lambda * advantage
            self.advantages[step] = advantage
            values, goes_on = self.values[step], 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values


class SMDPRolloutBuffer(_TrueDiscounts):
    """A rollout buffer for PPO and A2C that discounts each decision by its true duration.

    A rollout buffer does not receive the infos, so the callback `SMDPDiscounts` passes the discounts to it.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> from stable_baselines3 import PPO
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0", max_episode_steps=200)
    >>> env = eo.envs.OptionsWrapper(env, eo.discover(eo.maze("four-rooms"), n_options=4))
    >>> agent = PPO("MlpPolicy", env, n_steps=8, batch_size=8, rollout_buffer_class=SMDPRolloutBuffer, seed=0)
    >>> agent = agent.learn(8, callback=SMDPDiscounts())
    >>> agent.rollout_buffer.discounts.shape
    (8, 1)
    """


class SMDPMaskableRolloutBuffer(_TrueDiscounts, MaskableRolloutBuffer):
    """The same for MaskablePPO, which calls the wrapper's `action_masks` and never takes an unavailable option.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> from sb3_contrib import MaskablePPO
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0", max_episode_steps=200)
    >>> env = eo.envs.OptionsWrapper(env, eo.discover(eo.maze("four-rooms"), n_options=4))
    >>> buffer = {"rollout_buffer_class": SMDPMaskableRolloutBuffer}
    >>> agent = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, **buffer)
    >>> agent = agent.learn(8, callback=SMDPDiscounts())
    >>> agent.rollout_buffer.discounts.shape
    (8, 1)
    """


class SMDPDiscounts(BaseCallback):
    """Passes the discounts of `OptionsWrapper` to the rollout buffer, step by step.

    Where a time limit cuts an episode, SB3 adds gamma times the value of the last state to the reward. The callback
    adds the difference to the true discount beforehand, so that the sum is exact.

    Examples
    --------
    >>> SMDPDiscounts().n_calls
    0
    """

    def _on_training_start(self) -> None:
        if not isinstance(getattr(self.model, "rollout_buffer", None), _TrueDiscounts):
            raise ValueError(
                "SMDPDiscounts needs rollout_buffer_class=SMDPRolloutBuffer (or SMDPMaskableRolloutBuffer)"
            )

    def _on_step(self) -> bool:
        model: Any = self.model
        infos, rewards = self.locals["infos"], self.locals["rewards"]
        buffer = model.rollout_buffer
        buffer.discounts[buffer.pos] = discounts = _discounts(infos)
        for i, info in enumerate(infos):
            if info.get("TimeLimit.truncated", False) and info.get("terminal_observation") is not None:
                last = model.policy.obs_to_tensor(info["terminal_observation"])[0]
                with torch.no_grad():
                    value = float(model.policy.predict_values(last)[0])
                rewards[i] += (discounts[i] - model.gamma) * value
        return True


def _discounts(infos: list[dict[str, Any]]) -> list[float]:
    try:
        return [info["discount"] for info in infos]
    except KeyError:
        raise ValueError("no discount in the infos: wrap the environment in OptionsWrapper") from None
