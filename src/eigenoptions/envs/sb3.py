"""Stable-Baselines3 with options: buffers that discount a decision by its true duration (paper, Section 2.2).

SB3's agents discount every decision by one gamma, as if an option took a single step, and so overestimate long
options. These adapters use ``info["discount"]`` of `OptionsWrapper` instead. They need the extra ``sb3``.

==============  ==========================================================================================
DQN             ``OptionsDQN(...)``: true discounts, masked targets and actions, steps inside options; or the stock
                agent with the discounts alone, ``DQN(..., replay_buffer_class=SMDPReplayBuffer)``
PPO, A2C        ``PPO(..., rollout_buffer_class=SMDPRolloutBuffer).learn(n, callback=SMDPDiscounts())``
MaskablePPO     ``MaskablePPO(..., rollout_buffer_class=SMDPMaskableRolloutBuffer)``, and the same callback
==============  ==========================================================================================

DQN explores by the wrapper's ``action_space.sample()``, so its options are rare (`option_chance`); for the others
`prefer_actions` sets the initial chance of an option.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

try:
    import torch
    from gymnasium.spaces import Discrete
    from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
    from stable_baselines3 import DQN
    from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecNormalize
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"eigenoptions.envs.sb3 needs {missing.name}: pip install 'eigenoptions[sb3]'", name=missing.name
    ) from None
from numpy.typing import NDArray

from eigenoptions._validation import check_float

__all__ = [
    "OptionsDQN",
    "as_table",
    "prefer_actions",
    "SMDPReplayBuffer",
    "SMDPRolloutBuffer",
    "SMDPMaskableRolloutBuffer",
    "SMDPDiscounts",
]


class Samples(NamedTuple):
    """A batch of decisions: the fields of SB3's `ReplayBufferSamples`, and the masks of the next states.

    Examples
    --------
    >>> Samples._fields[-1]
    'next_masks'
    """

    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    next_masks: torch.Tensor


class SMDPReplayBuffer(ReplayBuffer):
    """A replay buffer for DQN whose samples carry the discount of each decision, and the mask of the next state.

    With ``OptionsWrapper(record_steps=True)`` the primitive steps inside an option are stored too, as decisions of
    their own (intra-option learning); for a single environment only.

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
    masks: NDArray[np.bool_]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        n_actions = int(self.action_space.n) if isinstance(self.action_space, Discrete) else 1
        self.masks = np.ones((self.buffer_size, self.n_envs, n_actions), dtype=np.bool_)
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
        """Store a transition of each environment, and the primitive steps inside an option."""
        self.discounts[self.pos] = _discounts(infos)
        self.masks[self.pos] = [info.get("action_mask", True) for info in infos]
        super().add(obs, next_obs, action, reward, done, infos)
        inside = [info.get("steps", ()) for info in infos]
        if not any(inside):
            return
        if self.n_envs != 1:
            raise ValueError(
                f"steps inside options are stored for a single environment, got {self.n_envs}: use "
                "OptionsWrapper(record_steps=False), or one environment"
            )
        for i, step in enumerate(inside[0]):
            last = i == len(inside[0]) - 1
            self.discounts[self.pos], self.masks[self.pos] = step.discount, step.action_mask
            before, after = np.array([step.obs]), np.array([step.next_obs])
            ended = done if last else np.zeros(1)
            cut = [{"TimeLimit.truncated": last and infos[0].get("TimeLimit.truncated", False)}]
            super().add(before, after, np.array([step.action]), np.array([step.reward]), ended, cut)

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
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
            self.masks[at],
        )
        return Samples(*(self.to_torch(part) for part in parts))  # type: ignore[arg-type]


class OptionsDQN(DQN):
    """SB3's DQN over actions and options, with the right values (Section 2.2).

    Targets are ``R + gamma**k max Q(s', .)`` after k steps, the maximum over what may be chosen in s': an option that
    may not start is never the maximum, nor is it chosen. Needs `OptionsWrapper` in mode "call-and-return".

    Parameters
    ----------
    args, kwargs
        As of SB3's DQN.
    double
        Whether the network chooses the action of s' that the target network evaluates (van Hasselt et al., 2016). The
        maximum over many actions and options of one network overestimates; far from the goal the error can be larger
        than the values (docs/agents.md).

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0", max_episode_steps=200)
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> env = eo.envs.OptionsWrapper(env, options, gamma=0.9, record_steps=True)
    >>> agent = OptionsDQN("MlpPolicy", env, gamma=0.9, learning_starts=8, seed=0).learn(16)
    >>> agent.replay_buffer.size() >= 16
    True
    """

    def __init__(self, *args: Any, double: bool = False, **kwargs: Any) -> None:
        self.double = double
        super().__init__(*args, **{"replay_buffer_class": SMDPReplayBuffer, **kwargs})

    def targets(self, batch: Samples) -> torch.Tensor:
        """``(N, 1)`` values that the decisions of a batch are moved towards."""
        with torch.no_grad():
            values = self.q_net_target(batch.next_observations)
            judge = self.q_net(batch.next_observations) if self.double else values
            low = torch.finfo(values.dtype).min
            chosen = judge.masked_fill(~batch.next_masks.bool(), low).argmax(dim=1, keepdim=True)
            # A terminal state is worth 0, also one where nothing may be chosen.
            rest = torch.where(batch.dones > 0, 0.0, values.gather(1, chosen))
            return batch.rewards + batch.discounts * rest

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take gradient steps on batches of the replay buffer."""
        assert self.replay_buffer is not None
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            values = self.q_net(batch.observations).gather(1, batch.actions.long())
            loss = torch.nn.functional.smooth_l1_loss(values, self.targets(batch))
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], Any]:
        """The action of the highest value that `action_masks` allows, or a random one while exploring.

        Without masks they are asked of the agent's environment for its current observation, and none hold for others.
        """
        if not deterministic and np.random.rand() < self.exploration_rate:  # noqa: NPY002 (SB3 seeds this one)
            return super().predict(observation, state, episode_start, deterministic=False)
        if action_masks is None and self.env is not None and observation is self._last_obs:
            action_masks = np.stack(self.env.env_method("action_masks"))
        if action_masks is None:
            return self.policy.predict(observation, state, episode_start, deterministic)
        tensor, batched = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.q_net(tensor).cpu().numpy()
        allowed = np.asarray(action_masks, dtype=np.bool_).reshape(values.shape)
        chosen = np.where(allowed, values, -np.inf).argmax(axis=1)
        return (chosen if batched else chosen[0]), state


def as_table(agent: Any) -> None:
    """Make the network of a DQN a table for numbered states: one weight per state and choice, all near 0.

    Numbered states have nothing in common that a hidden layer or a bias could use. Choices that were never tried would
    inherit the values of others, and be taken for the best (docs/agents.md). Call it before `learn`. The learning rate
    of SGD is that of a table times the size of a batch.

    Parameters
    ----------
    agent
        A DQN with ``policy_kwargs={"net_arch": []}`` whose observations are numbers of states.

    Examples
    --------
    >>> import gymnasium as gym
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0")
    >>> how = {"net_arch": [], "optimizer_class": torch.optim.SGD}
    >>> agent = DQN("MlpPolicy", env, learning_rate=0.16 * 128, batch_size=128, policy_kwargs=how, seed=0)
    >>> as_table(agent)
    >>> agent.q_net(torch.arange(104)).abs().max().item() < 0.01
    True
    """
    layers: Any = getattr(getattr(agent, "q_net", None), "q_net", ())
    if not isinstance(getattr(agent, "observation_space", None), Discrete) or len(layers) != 1:
        raise ValueError(
            'as_table needs a DQN with numbered states and policy_kwargs={"net_arch": []}, got '
            f"{type(agent).__name__} with {len(layers)} layers"
        )
    layer = layers[0]
    # Small random values, so that there are no ties: the first action would win them all.
    torch.nn.init.normal_(layer.weight, std=1e-3)
    torch.nn.init.zeros_(layer.bias)
    layer.bias.requires_grad_(False)
    agent.q_net_target.load_state_dict(agent.q_net.state_dict())


def prefer_actions(agent: Any, option_chance: float = 0.05) -> None:
    """Set the initial chance of an option of PPO, A2C or MaskablePPO, which have no random exploration to change.

    The biases of the action logits are set so that all options together have probability `option_chance` where all may
    start, up to the agent's small initial weights. Call it before `learn`; learning then changes the chance.

    Parameters
    ----------
    agent
        An agent whose environment is an `OptionsWrapper`.
    option_chance
        Probability in (0, 1) of an option.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> from stable_baselines3 import PPO
    >>> env = gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0")
    >>> env = eo.envs.OptionsWrapper(env, eo.discover(eo.maze("four-rooms"), n_options=4))
    >>> agent = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0)
    >>> prefer_actions(agent, 0.1)
    >>> chances = agent.policy.get_distribution(torch.zeros(1, dtype=torch.int64)).distribution.probs
    >>> round(chances[0, 4:].sum().item(), 2)
    0.1
    """
    chance = check_float("option_chance", option_chance, above=0, below=1)
    first = getattr(getattr(agent, "action_space", None), "n_primitive", None)
    if first is None:
        raise ValueError("the agent's action space has no options: wrap its environment in OptionsWrapper")
    if not hasattr(agent.policy, "action_net"):
        raise ValueError(
            f"{type(agent).__name__} has no action logits: use OptionsWrapper(option_chance=...), by which DQN explores"
        )
    bias = agent.policy.action_net.bias
    with torch.no_grad():
        bias[:first] = np.log((1 - chance) / first)
        bias[first:] = np.log(chance / (len(bias) - first))


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
