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

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback
from stable_baselines3.common.type_aliases import MaybeCallback

from eigenoptions._validation import check_float
from eigenoptions.agents.sb3.buffers import DecisionSamples, SMDPReplayBuffer
from eigenoptions.agents.sb3.callbacks import PrimitiveSteps
from eigenoptions.agents.sb3.discounts import check_discounts


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
        prefer_actions(self)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        *args: Any,
        primitive_steps: bool = False,
        **kwargs: Any,
    ) -> OptionsDQN:
        """Learn for a number of decisions, or of primitive steps.

        Parameters
        ----------
        total_timesteps, callback, *args, **kwargs
            Those of SB3's `DQN.learn`.
        primitive_steps : bool, default=False
            Whether `total_timesteps`, `learning_starts` and the schedules count
            primitive steps, as with the callback `PrimitiveSteps`. False: decisions, as
            SB3 counts.
        """
        if primitive_steps:
            callback = [PrimitiveSteps(), *_list_callbacks(callback)]
        super().learn(total_timesteps, callback, *args, **kwargs)
        return self

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
        is_current = self.env is not None and observation is self._last_obs
        if action_masks is None and is_current:
            action_masks = self._find_masks()

        tensor, is_batch = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.q_net(tensor).cpu().numpy()
        is_allowed = np.ones(values.shape, dtype=np.bool_)
        if action_masks is not None:
            is_allowed = np.asarray(action_masks, dtype=np.bool_).reshape(values.shape)
        choices = np.where(is_allowed, values, -np.inf).argmax(axis=1)

        if not deterministic:
            # SB3 seeds NumPy's global generator.
            draws = np.random.random(len(choices))  # noqa: NPY002
            explores = draws < self.exploration_rate
            choices[explores] = self._sample_choices(is_allowed[explores])
        return (choices if is_batch else choices[0]), state

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the choices of a step, twice as SB3 expects; sampled at first."""
        if self.num_timesteps >= learning_starts:
            return super()._sample_action(learning_starts, action_noise, n_envs)
        choices = self._sample_choices(self._find_masks())
        return choices, choices

    def _find_masks(self) -> NDArray[np.bool_]:
        """Return what is available now, one row per environment."""
        assert self.env is not None
        return np.stack(self.env.env_method("action_masks"))

    def _sample_choices(self, is_allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return a random choice for each row of masks.

        SB3 has one action space, which knows only what the first environment allows.
        """
        samples = []
        for mask in is_allowed:
            samples.append(self.action_space.sample(mask.astype(np.int8)))
        return np.array(samples, dtype=np.int64)


def _list_callbacks(callback: MaybeCallback) -> list[BaseCallback]:
    """Return what may be given as callback of `learn` as a list."""
    if callback is None:
        return []
    if isinstance(callback, list):
        return callback
    if isinstance(callback, BaseCallback):
        return [callback]
    return [ConvertCallback(callback)]


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
    check_discounts(agent)
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
