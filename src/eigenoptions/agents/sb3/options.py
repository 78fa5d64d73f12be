"""Stable-Baselines3 with options: a decision is discounted by its true duration.

SB3's agents discount every decision by one gamma, as if an option took a single step,
and so overestimate long options (paper, Section 2.2). These adapters use
``info["discount"]`` of `OptionsWrapper` instead. They need the extra ``sb3``.

* DQN: `OptionsDQN`; or the stock agent with the discounts alone,
  ``DQN(..., replay_buffer_class=SMDPReplayBuffer)``.
* PPO, A2C, TRPO: ``PPO(..., rollout_buffer_class=SMDPRolloutBuffer)`` and
  ``agent.learn(n, callback=SMDPDiscounts())``.
* MaskablePPO: the same with `SMDPMaskableRolloutBuffer`.

DQN explores by the wrapper's ``action_space.sample()``, so its options are rare
(`option_chance`). Call `prefer_actions` for the stock DQN and the others, whose first
choices would be options in most decisions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_float

try:
    import torch
    from gymnasium.spaces import Discrete
    from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
    from stable_baselines3 import DQN
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecNormalize, VecTransposeImage
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"eigenoptions.agents.sb3 needs {missing.name}: "
        "pip install 'eigenoptions[sb3]'",
        name=missing.name,
    ) from None


class DecisionSamples(NamedTuple):
    """A batch of decisions: SB3's fields, and the masks of the next states.

    Each is a tensor with one row per decision.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    next_masks: torch.Tensor


class SMDPReplayBuffer(ReplayBuffer):
    """A replay buffer that stores the discount of each decision, and the next mask.

    With ``OptionsWrapper(record_steps=True)`` the primitive steps inside an option are
    stored too (intra-option learning), for a single environment without
    ``optimize_memory_usage``, which takes next observations from the row below.

    The parameters are those of SB3's `ReplayBuffer`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        n_actions = 1
        if isinstance(self.action_space, Discrete):
            n_actions = int(self.action_space.n)
        shape = (self.buffer_size, self.n_envs)
        self.masks = np.ones((*shape, n_actions), dtype=np.bool_)
        self.discounts = np.full(shape, np.nan, dtype=np.float32)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store a decision of each environment, and the steps inside an option."""
        self.discounts[self.pos] = _read_discounts(infos)
        self.masks[self.pos] = [info.get("action_mask", True) for info in infos]
        super().add(obs, next_obs, action, reward, done, infos)

        if any("steps" in info for info in infos):
            if self.n_envs != 1 or self.optimize_memory_usage:
                raise ValueError(
                    "steps inside options need one environment and "
                    "optimize_memory_usage=False, or record_steps=False of "
                    f"OptionsWrapper; got {self.n_envs} environments"
                )
            self._add_primitive_steps(infos[0], done)

    def _add_primitive_steps(self, info: dict[str, Any], done: NDArray[Any]) -> None:
        """Store the steps inside an option, each as a decision of its own."""
        steps = info["steps"]
        for number, step in enumerate(steps, start=1):
            # Only the last step may have ended the episode.
            step_done = np.zeros(1)
            step_truncated = False
            if number == len(steps):
                step_done = done
                step_truncated = info.get("TimeLimit.truncated", False)

            self.discounts[self.pos] = step.discount
            self.masks[self.pos] = step.action_mask
            super().add(
                self._prepare_observation(step.obs),
                self._prepare_observation(step.next_obs),
                np.array([step.action]),
                np.array([step.reward]),
                step_done,
                [{"TimeLimit.truncated": step_truncated}],
            )

    def _prepare_observation(self, obs: Any) -> NDArray[Any]:
        """Return an observation of the environment as a row that SB3 would store.

        SB3 moves the channels of images to the front.
        """
        rows = np.array([obs])
        is_moved = rows.ndim == 4 and rows.shape[1:] != self.obs_shape
        if is_moved:
            return VecTransposeImage.transpose_image(rows)
        return rows

    def _get_samples(  # type: ignore[override]
        self, batch_inds: NDArray[Any], env: VecNormalize | None = None
    ) -> DecisionSamples:
        """Return samples with their discounts and masks.

        They are drawn as the parent draws them; it does not return the numbers of the
        environments, which are needed here.
        """
        # SB3 seeds NumPy's global generator.
        env_numbers = np.random.randint(0, self.n_envs, size=len(batch_inds))  # noqa: NPY002
        rows = (batch_inds, env_numbers)
        if self.optimize_memory_usage:
            rows_below = ((batch_inds + 1) % self.buffer_size, env_numbers)
            raw_next_obs = self.observations[rows_below]
        else:
            raw_next_obs = self.next_observations[rows]

        # Arrays here; another buffer of SB3 has dicts.
        obs: Any = self._normalize_obs(self.observations[rows], env)
        next_obs: Any = self._normalize_obs(raw_next_obs, env)
        # A time limit is not the end: values continue there.
        dones = self.dones[rows] * (1 - self.timeouts[rows])
        rewards = self._normalize_reward(self.rewards[rows][:, None], env)
        return DecisionSamples(
            observations=self.to_torch(obs),
            actions=self.to_torch(self.actions[rows]),
            next_observations=self.to_torch(next_obs),
            dones=self.to_torch(dones[:, None]),
            rewards=self.to_torch(rewards),
            discounts=self.to_torch(self.discounts[rows][:, None]),
            next_masks=self.to_torch(self.masks[rows]),
        )


class OptionsDQN(DQN):
    """SB3's DQN over actions and options, with the right values (Section 2.2).

    Targets are ``R + gamma**k max Q(s', .)`` after k steps, the maximum over what is
    available in s': an unavailable option is never the maximum, nor is it chosen. The
    environment must be an `OptionsWrapper` in mode "call-and-return".

    Parameters
    ----------
    *args, **kwargs
        Those of SB3's `DQN`, without n-step returns.
    double : bool, default=False
        Whether the network chooses the action of s' that the target network evaluates
        (van Hasselt et al., 2016). The maximum over many choices of one network
        overestimates, and far from the goal the error can be larger than the values.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> options = eo.discover(env, n_options=4)
    >>> env = eo.OptionsWrapper(env, options, gamma=0.9, record_steps=True)
    >>> agent = OptionsDQN("MlpPolicy", env, gamma=0.9, learning_starts=8, seed=0)
    >>> agent.learn(16).replay_buffer.size() >= 16
    True
    """

    def __init__(self, *args: Any, double: bool = False, **kwargs: Any) -> None:
        if kwargs.get("n_steps", 1) != 1:
            raise ValueError(
                "n_steps must be 1, since decisions have durations, got "
                f"{kwargs['n_steps']}"
            )
        self.double = double
        kwargs.setdefault("replay_buffer_class", SMDPReplayBuffer)
        super().__init__(*args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if hasattr(self.action_space, "n_primitive"):
            prefer_actions(self)

    def compute_targets(self, batch: DecisionSamples) -> torch.Tensor:
        """Return the values ``(N, 1)`` that the decisions of a batch are moved to."""
        with torch.no_grad():
            values = self.q_net_target(batch.next_observations)
            preferences = values
            if self.double:
                preferences = self.q_net(batch.next_observations)

            is_unavailable = ~batch.next_masks.bool()
            preferences = preferences.masked_fill(is_unavailable, -torch.inf)
            best = preferences.argmax(dim=1, keepdim=True)
            # A terminal state is worth 0, also one where nothing is available.
            next_values = torch.where(batch.dones > 0, 0.0, values.gather(1, best))
            return batch.rewards + batch.discounts * next_values

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
            targets = self.compute_targets(batch)
            loss = torch.nn.functional.smooth_l1_loss(values, targets)

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
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return the action of the highest value, or a random one while exploring.

        Parameters
        ----------
        observation, state, episode_start, deterministic
            Those of SB3's `DQN`.
        action_masks : ndarray, default=None
            Which choices are allowed. None: those of the agent's environment for its
            current observation, and all for other observations.
        """
        # SB3 seeds NumPy's global generator.
        if not deterministic and np.random.rand() < self.exploration_rate:  # noqa: NPY002
            return super().predict(
                observation, state, episode_start, deterministic=False
            )

        is_current = self.env is not None and observation is self._last_obs
        if action_masks is None and self.env is not None and is_current:
            action_masks = np.stack(self.env.env_method("action_masks"))
        if action_masks is None:
            return self.policy.predict(observation, state, episode_start, deterministic)

        tensor, is_batch = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.q_net(tensor).cpu().numpy()
        is_allowed = np.asarray(action_masks, dtype=np.bool_).reshape(values.shape)
        best = np.where(is_allowed, values, -np.inf).argmax(axis=1)
        return (best if is_batch else best[0]), state


def prefer_actions(agent: BaseAlgorithm, option_chance: float = 0.05) -> None:
    """Let an agent begin with primitive actions.

    An untrained network chooses each action and each option about equally often, so
    most of its choices are options. Call this before `learn`.

    PPO, A2C and MaskablePPO explore by their own policy. The biases of its logits are
    set so that all options together have probability `option_chance` where all are
    available. This holds approximately, since the agent's initial weights are small
    but not zero.

    DQN explores by ``OptionsWrapper(option_chance=...)``. Here every option begins with
    the mean value of the primitive actions. The mean is at most the maximum, so the
    greedy choice is a primitive action. `OptionsDQN` does this itself.

    Parameters
    ----------
    agent : stable_baselines3.common.base_class.BaseAlgorithm
        The agent, which changes.
    option_chance : float, default=0.05
        Probability of all options together, in (0, 1). DQN does not use it.
    """
    option_chance = check_float("option_chance", option_chance, above=0, below=1)
    action_space = getattr(agent, "action_space", None)
    n_primitive = getattr(action_space, "n_primitive", None)
    if n_primitive is None:
        raise ValueError(
            "the agent's action space has no options: wrap its environment in "
            "OptionsWrapper"
        )
    if n_primitive == 0:
        # Where actions are vectors, options may be the only choices.
        return

    if hasattr(agent, "q_net") and hasattr(agent, "q_net_target"):
        _set_option_values_to_mean(agent.q_net, n_primitive)
        _set_option_values_to_mean(agent.q_net_target, n_primitive)
    elif hasattr(agent.policy, "action_net"):
        action_net: Any = agent.policy.action_net
        bias = action_net.bias
        n_options = len(bias) - n_primitive
        with torch.no_grad():
            bias[:n_primitive] = np.log((1 - option_chance) / n_primitive)
            bias[n_primitive:] = np.log(option_chance / n_options)
    else:
        raise ValueError(
            f"{type(agent).__name__} has no action_net and no q_net: use PPO, A2C or "
            "DQN"
        )


def _set_option_values_to_mean(network: torch.nn.Module, n_primitive: int) -> None:
    """Give every option the mean value of the primitive actions, in all states.

    The values are linear in the last layer, so the means of its rows have this value.
    """
    linear_layers = [
        layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)
    ]
    last = linear_layers[-1]
    with torch.no_grad():
        for parameter in (last.weight, last.bias):
            parameter[n_primitive:] = parameter[:n_primitive].mean(dim=0)


class SMDPRolloutBuffer(RolloutBuffer):
    """A rollout buffer for PPO and A2C that discounts each decision by its duration.

    A rollout buffer does not receive the infos, so the callback `SMDPDiscounts` passes
    the discounts to it. The parameters are those of SB3's `RolloutBuffer`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import PPO
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> env = eo.OptionsWrapper(env, eo.discover(env, n_options=4))
    >>> agent = PPO(
    ...     "MlpPolicy",
    ...     env,
    ...     n_steps=8,
    ...     batch_size=8,
    ...     rollout_buffer_class=SMDPRolloutBuffer,
    ...     seed=0,
    ... )
    >>> agent.learn(8, callback=SMDPDiscounts()).rollout_buffer.discounts.shape
    (8, 1)
    """

    discounts: NDArray[np.float32]

    def reset(self) -> None:
        """Clear the last rollout."""
        super().reset()
        shape = (self.buffer_size, self.n_envs)
        self.discounts = np.full(shape, np.nan, dtype=np.float32)

    def compute_returns_and_advantage(
        self, last_values: torch.Tensor, dones: NDArray[Any]
    ) -> None:
        """Compute GAE with one discount d_t per decision.

        ``A_t = r_t + d_t V_t+1 - V_t + d_t lambda A_t+1``.
        """
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

            next_values = self.values[step]
            continues = 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values


class SMDPMaskableRolloutBuffer(SMDPRolloutBuffer, MaskableRolloutBuffer):
    """`SMDPRolloutBuffer` for MaskablePPO.

    That agent calls the wrapper's `action_masks`, so it takes no unavailable option.
    """


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

    def _on_step(self) -> bool:
        # An agent with a policy that has values, and a rollout buffer.
        model: Any = self.model
        infos = self.locals["infos"]
        rewards = self.locals["rewards"]
        discounts = _read_discounts(infos)
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


def _read_discounts(infos: list[dict[str, Any]]) -> list[float]:
    """Return the discount of each environment's decision."""
    for info in infos:
        if "discount" not in info:
            raise ValueError(
                "no discount in the infos: wrap the environment in OptionsWrapper"
            )
    return [info["discount"] for info in infos]
