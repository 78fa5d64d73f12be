"""Stable-Baselines3 with options: buffers that discount a decision by its true duration (paper, Section 2.2).

SB3's agents discount every decision by one gamma, as if an option took a single step, and so overestimate long
options. These adapters use ``info["discount"]`` of `OptionsWrapper` instead. They need the extra ``sb3``.

* DQN: `OptionsDQN`; or the stock agent with the discounts alone, ``DQN(..., replay_buffer_class=SMDPReplayBuffer)``.
* PPO, A2C, TRPO: ``PPO(..., rollout_buffer_class=SMDPRolloutBuffer).learn(n, callback=SMDPDiscounts())``.
* MaskablePPO: the same with `SMDPMaskableRolloutBuffer`.

DQN explores by the wrapper's ``action_space.sample()``, so its options are rare (`option_chance`). Call
`prefer_actions` for the stock DQN and the others, whose first choices would be options in most decisions.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

try:
    import torch
    from gymnasium.spaces import Discrete
    from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
    from stable_baselines3 import DQN
    from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import VecNormalize
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"eigenoptions.agents.sb3 needs {missing.name}: pip install 'eigenoptions[sb3]'",
        name=missing.name,
    ) from None
from numpy.typing import NDArray

from eigenoptions._validation import check_float

__all__ = ["OptionsDQN", "prefer_actions", "SMDPReplayBuffer", "SMDPRolloutBuffer"]
__all__ += ["SMDPMaskableRolloutBuffer", "SMDPDiscounts"]


# A batch of decisions: the masks of the next states beside SB3's fields.
Samples = namedtuple("Samples", (*ReplayBufferSamples._fields, "next_masks"))  # type: ignore[misc]


class SMDPReplayBuffer(ReplayBuffer):
    """A replay buffer whose samples have SB3's own ``discounts``, one per decision, and the mask of the next state.

    With ``OptionsWrapper(record_steps=True)`` the primitive steps inside an option are stored too (intra-option
    learning), for a single environment without ``optimize_memory_usage``, which takes next observations from the row
    below.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        n_actions = (
            int(self.action_space.n) if isinstance(self.action_space, Discrete) else 1
        )
        self.masks = np.ones((self.buffer_size, self.n_envs, n_actions), dtype=np.bool_)
        self.discounts = np.full(
            (self.buffer_size, self.n_envs), np.nan, dtype=np.float32
        )

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: Any,
        reward: Any,
        done: Any,
        infos: list[Any],
    ) -> None:
        """Store a decision of each environment, and the primitive steps inside an option."""
        self.discounts[self.pos] = _read_discounts(infos)
        self.masks[self.pos] = [info.get("action_mask", True) for info in infos]
        super().add(obs, next_obs, action, reward, done, infos)
        if not any("steps" in info for info in infos):
            return
        if self.n_envs != 1 or self.optimize_memory_usage:
            limit = "one environment and optimize_memory_usage=False, or record_steps=False of OptionsWrapper"
            raise ValueError(
                f"steps inside options need {limit}; got {self.n_envs} environments"
            )
        for step in infos[0]["steps"]:
            self.discounts[self.pos], self.masks[self.pos] = (
                step.discount,
                step.action_mask,
            )
            # Only the last step may have ended the episode.
            is_last = step is infos[0]["steps"][-1]
            obs, action, reward, next_obs = (np.array([part]) for part in step[:4])
            truncated = is_last and infos[0].get("TimeLimit.truncated", False)
            ends = done if is_last else np.zeros(1)
            super().add(
                obs,
                next_obs,
                action,
                reward,
                ends,
                [{"TimeLimit.truncated": truncated}],
            )

    def _get_samples(
        self, batch_inds: NDArray[Any], env: VecNormalize | None = None
    ) -> Any:
        """Samples as the parent draws them (it does not return which environments it drew), with the discounts."""
        rows = batch_inds, np.random.randint(0, self.n_envs, size=len(batch_inds))  # noqa: NPY002 (SB3 seeds this one)
        below = (batch_inds + 1) % self.buffer_size, rows[1]
        next_obs = (
            self.observations[below]
            if self.optimize_memory_usage
            else self.next_observations[rows]
        )
        parts = (
            self._normalize_obs(self.observations[rows], env),
            self.actions[rows],
            self._normalize_obs(next_obs, env),
            (self.dones[rows] * (1 - self.timeouts[rows]))[:, None],
            self._normalize_reward(self.rewards[rows][:, None], env),
            self.discounts[rows][:, None],
            self.masks[rows],
        )
        return Samples(*map(self.to_torch, parts))


class OptionsDQN(DQN):
    """SB3's DQN over actions and options, with the right values (Section 2.2).

    Targets are ``R + gamma**k max Q(s', .)`` after k steps, the maximum over what is available in s': an unavailable
    option is never the maximum, nor is it chosen. Needs `OptionsWrapper` in mode "call-and-return". Parameters are
    those of SB3's DQN, without n-step returns. With `double` the network chooses the action of s' that the target
    network evaluates (van Hasselt et al., 2016): the maximum over many choices of one network overestimates, and far
    from the goal the error can be larger than the values.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> env = eo.OptionsWrapper(env, eo.discover(env, n_options=4), gamma=0.9, record_steps=True)
    >>> agent = OptionsDQN("MlpPolicy", env, gamma=0.9, learning_starts=8, seed=0).learn(16)
    >>> agent.replay_buffer.size() >= 16
    True
    """

    def __init__(self, *args: Any, double: bool = False, **kwargs: Any) -> None:
        self.double = double
        if kwargs.get("n_steps", 1) != 1:
            raise ValueError(
                f"n_steps must be 1, since decisions have durations, got {kwargs['n_steps']}"
            )
        super().__init__(*args, **{"replay_buffer_class": SMDPReplayBuffer, **kwargs})

    def _setup_model(self) -> None:
        super()._setup_model()
        if hasattr(self.action_space, "n_primitive"):
            prefer_actions(self)

    def targets(self, batch: Any) -> torch.Tensor:
        """``(N, 1)`` values that the decisions of a batch are moved towards."""
        with torch.no_grad():
            values = self.q_net_target(batch.next_observations)
            choosing = self.q_net(batch.next_observations) if self.double else values
            best = choosing.masked_fill(~batch.next_masks.bool(), -torch.inf).argmax(
                dim=1, keepdim=True
            )
            # A terminal state is worth 0, also one where nothing is available.
            next_values = torch.where(batch.dones > 0, 0.0, values.gather(1, best))
            return batch.rewards + batch.discounts * next_values  # type: ignore[no-any-return]

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take gradient steps on batches of the replay buffer."""
        assert self.replay_buffer is not None
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(
                batch_size, env=self._vec_normalize_env
            )
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

        Without masks, those of the agent's environment are used for its current observation, and none for others.
        """
        if not deterministic and np.random.rand() < self.exploration_rate:  # noqa: NPY002 (SB3 seeds this one)
            return super().predict(
                observation, state, episode_start, deterministic=False
            )
        if (
            action_masks is None
            and self.env is not None
            and observation is self._last_obs
        ):
            action_masks = np.stack(self.env.env_method("action_masks"))
        if action_masks is None:
            return self.policy.predict(observation, state, episode_start, deterministic)
        tensor, is_batch = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.q_net(tensor).cpu().numpy()
        allowed = np.asarray(action_masks, dtype=np.bool_).reshape(values.shape)
        best = np.where(allowed, values, -np.inf).argmax(axis=1)
        return (best if is_batch else best[0]), state


def prefer_actions(agent: Any, option_chance: float = 0.05) -> None:
    """Let an agent begin with primitive actions; a network that knows nothing would choose among all alike.

    PPO, A2C and MaskablePPO explore by their own policy: the biases of the action logits are set so that all options
    together have probability `option_chance` where all are available, up to the agent's small initial weights. DQN
    explores by ``OptionsWrapper(option_chance=...)``: here every option begins with the mean value of the actions, so
    that the greedy choice is an action; `OptionsDQN` does this itself. Call it before `learn`.
    """
    option_chance = check_float("option_chance", option_chance, above=0, below=1)
    n_primitive = getattr(getattr(agent, "action_space", None), "n_primitive", None)
    if n_primitive is None:
        raise ValueError(
            "the agent's action space has no options: wrap its environment in OptionsWrapper"
        )
    with torch.no_grad():
        if hasattr(agent, "q_net"):
            for network in (agent.q_net, agent.q_net_target):
                last = [
                    layer
                    for layer in network.modules()
                    if isinstance(layer, torch.nn.Linear)
                ][-1]
                for parameter in (last.weight, last.bias):
                    parameter[n_primitive:] = parameter[:n_primitive].mean(dim=0)
            return
        if not hasattr(agent.policy, "action_net"):
            raise ValueError(
                f"{type(agent).__name__} has no action_net and no q_net: use PPO, A2C or DQN"
            )
        bias = agent.policy.action_net.bias
        bias[:n_primitive] = np.log((1 - option_chance) / n_primitive)
        bias[n_primitive:] = np.log(option_chance / (len(bias) - n_primitive))


class SMDPRolloutBuffer(RolloutBuffer):
    """A rollout buffer for PPO and A2C that discounts each decision by its true duration.

    A rollout buffer does not receive the infos, so the callback `SMDPDiscounts` passes the discounts to it.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import PPO
    >>> env = eo.OptionsWrapper(eo.envs.MazeEnv("four-rooms"), eo.discover(eo.maze("four-rooms"), n_options=4))
    >>> agent = PPO("MlpPolicy", env, n_steps=8, batch_size=8, rollout_buffer_class=SMDPRolloutBuffer, seed=0)
    >>> agent.learn(8, callback=SMDPDiscounts()).rollout_buffer.discounts.shape
    (8, 1)
    """

    discounts: NDArray[np.float32]

    def reset(self) -> None:
        """Clear the last rollout."""
        super().reset()
        self.discounts = np.full(
            (self.buffer_size, self.n_envs), np.nan, dtype=np.float32
        )

    def compute_returns_and_advantage(
        self, last_values: torch.Tensor, dones: NDArray[Any]
    ) -> None:
        """GAE with one discount per decision: ``A_t = r_t + d_t V_t+1 - V_t + d_t lambda A_t+1``."""
        if np.isnan(self.discounts).any():
            raise ValueError(
                "the buffer has no discounts: pass callback=SMDPDiscounts() to learn"
            )
        next_values = last_values.clone().cpu().numpy().flatten()
        continues = 1.0 - dones.astype(np.float32)
        advantage = np.zeros(self.n_envs, dtype=np.float32)
        for step in reversed(range(self.buffer_size)):
            discount = self.discounts[step] * continues
            delta = self.rewards[step] + discount * next_values - self.values[step]
            advantage = delta + discount * self.gae_lambda * advantage
            self.advantages[step] = advantage
            next_values, continues = self.values[step], 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values


class SMDPMaskableRolloutBuffer(SMDPRolloutBuffer, MaskableRolloutBuffer):
    """`SMDPRolloutBuffer` for MaskablePPO, which calls the wrapper's `action_masks`: no unavailable option is taken."""


class SMDPDiscounts(BaseCallback):
    """Passes the discounts of `OptionsWrapper` to the rollout buffer, step by step.

    Where a time limit truncates an episode, SB3 adds gamma times the value of the last state to the reward. The
    callback adds the difference to the true discount beforehand, so that the sum is exact.
    """

    def _on_training_start(self) -> None:
        if not isinstance(
            getattr(self.model, "rollout_buffer", None), SMDPRolloutBuffer
        ):
            raise ValueError(
                "SMDPDiscounts needs a buffer: pass rollout_buffer_class=SMDPRolloutBuffer"
            )

    def _on_step(self) -> bool:
        model: Any = self.model
        infos, rewards = self.locals["infos"], self.locals["rewards"]
        buffer = model.rollout_buffer
        buffer.discounts[buffer.pos] = discounts = _read_discounts(infos)
        for i, info in enumerate(infos):
            if (
                info.get("TimeLimit.truncated", False)
                and info.get("terminal_observation") is not None
            ):
                last = model.policy.obs_to_tensor(info["terminal_observation"])[0]
                with torch.no_grad():
                    value = float(model.policy.predict_values(last)[0])
                rewards[i] += (discounts[i] - model.gamma) * value
        return True


def _read_discounts(infos: list[dict[str, Any]]) -> list[float]:
    try:
        return [info["discount"] for info in infos]
    except KeyError:
        raise ValueError(
            "no discount in the infos: wrap the environment in OptionsWrapper"
        ) from None
