"""Buffers of Stable-Baselines3 that keep the discount of each decision.

SB3's own buffers leave it to the agent to discount every decision by one gamma, as if
an option took a single step. These keep ``info["discount"]`` of `OptionsWrapper`.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import explain_extra

try:
    import torch
    from gymnasium import Space
    from gymnasium.spaces import Dict, Discrete, Tuple
    from gymnasium.spaces.utils import flatten, flatten_space
    from sb3_contrib.common.maskable.buffers import (
        MaskableDictRolloutBuffer,
        MaskableRolloutBuffer,
    )
    from stable_baselines3.common.buffers import (
        DictReplayBuffer,
        DictRolloutBuffer,
        ReplayBuffer,
        RolloutBuffer,
    )
    from stable_baselines3.common.vec_env import VecNormalize, VecTransposeImage
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"eigenoptions.agents.sb3 needs {missing.name}: {explain_extra('sb3')}",
        name=missing.name,
    ) from None


logger = logging.getLogger("eigenoptions")

# Rows of observations, or of each part of a Dict.
Rows: TypeAlias = NDArray[Any] | dict[str, NDArray[Any]]
Tensors: TypeAlias = torch.Tensor | dict[str, torch.Tensor]


class DecisionSamples(NamedTuple):
    """A batch of decisions: SB3's fields, and the masks of the next states.

    Each is a tensor with one row per decision; observations of a Dict space are a dict
    of them.
    """

    observations: Tensors
    actions: torch.Tensor
    next_observations: Tensors
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    next_masks: torch.Tensor


class SMDPReplayBuffer(ReplayBuffer):
    """A replay buffer that stores the discount of each decision, and the next mask.

    With ``OptionsWrapper(record_steps=True)`` the primitive steps inside an option are
    stored too (intra-option learning), for a single environment without
    ``optimize_memory_usage``, which takes next observations from the row below.

    The parameters are those of SB3's `ReplayBuffer`, or of its `DictReplayBuffer` where
    observations are dicts.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> SMDPReplayBuffer:
        """Return the twin for dicts where observations are dicts."""
        if _observes_dicts(args, kwargs):
            return super().__new__(_SMDPDictReplayBuffer)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        n_actions = 1
        if isinstance(self.action_space, Discrete):
            n_actions = int(self.action_space.n)
        shape = (self.buffer_size, self.n_envs)
        self.masks = np.ones((*shape, n_actions), dtype=np.bool_)
        self.discounts = np.full(shape, np.nan, dtype=np.float32)
        self._has_warned = False

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
        self.discounts[self.pos] = read_discounts(infos)
        self.masks[self.pos] = [info.get("action_mask", True) for info in infos]
        super().add(obs, next_obs, action, reward, done, infos)

        if self.n_envs > 1 and any("unavailable" in info for info in infos):
            self._warn_of_masks()
        if any("steps" in info for info in infos):
            if self.n_envs != 1 or self.optimize_memory_usage:
                raise ValueError(
                    "steps inside options need one environment and "
                    "optimize_memory_usage=False, or record_steps=False of "
                    f"OptionsWrapper; got {self.n_envs} environments"
                )
            self._add_primitive_steps(infos[0], done)

    def _warn_of_masks(self) -> None:
        """Say once that an agent samples by the mask of the first environment."""
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning(
            "an option was chosen where it is not available: DQN of Stable-Baselines3 "
            "samples the choices of all %d environments by the mask of the first, and "
            "its greedy choices know none; OptionsDQN uses the mask of each",
            self.n_envs,
        )

    def _add_primitive_steps(self, info: dict[str, Any], done: NDArray[Any]) -> None:
        """Store the steps inside an option, each as a decision of its own."""
        steps = info["steps"]
        # The wrapper's own observations, which wrappers around it may change.
        step_space = getattr(self.action_space, "step_space", self.observation_space)
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
                _make_row(step.obs, step_space, self.observation_space),
                _make_row(step.next_obs, step_space, self.observation_space),
                np.array([step.action]),
                np.array([step.reward]),
                step_done,
                [{"TimeLimit.truncated": step_truncated}],
            )

    def _get_samples(  # type: ignore[override]
        self, batch_inds: NDArray[Any], env: VecNormalize | None = None
    ) -> DecisionSamples:
        """Return samples with their discounts and masks.

        SB3's own method draws an environment for each row of the batch, but does not
        say which. So this is that method again, for all columns at once.
        """
        # SB3 seeds NumPy's global generator.
        env_numbers = np.random.randint(0, self.n_envs, size=len(batch_inds))  # noqa: NPY002
        entries = (batch_inds, env_numbers)
        if self.optimize_memory_usage:
            # Such a buffer holds each observation once: the next one is a row below.
            next_entries = ((batch_inds + 1) % self.buffer_size, env_numbers)
            next_obs = _take_entries(self.observations, next_entries)
        else:
            next_obs = _take_entries(self.next_observations, entries)

        obs = _take_entries(self.observations, entries)
        # A time limit is not the end: values continue there.
        dones = self.dones[entries] * (1 - self.timeouts[entries])
        rewards = self._normalize_reward(self.rewards[entries][:, None], env)
        return DecisionSamples(
            observations=self._make_tensors(self._normalize_obs(obs, env)),
            actions=self.to_torch(self.actions[entries]),
            next_observations=self._make_tensors(self._normalize_obs(next_obs, env)),
            dones=self.to_torch(dones[:, None]),
            rewards=self.to_torch(rewards),
            discounts=self.to_torch(self.discounts[entries][:, None]),
            next_masks=self.to_torch(self.masks[entries]),
        )

    def _make_tensors(self, rows: Rows) -> Tensors:
        """Return rows of observations as SB3's networks take them."""
        if isinstance(rows, dict):
            return {name: self.to_torch(part) for name, part in rows.items()}
        return self.to_torch(rows)


class _SMDPDictReplayBuffer(  # type: ignore[misc]
    SMDPReplayBuffer, DictReplayBuffer
):
    """`SMDPReplayBuffer` of dicts: SB3 stores each part on its own."""


class SMDPRolloutBuffer(RolloutBuffer):
    """A rollout buffer for PPO and A2C that discounts each decision by its duration.

    A rollout buffer does not receive the infos, so the callback `SMDPDiscounts` passes
    the discounts to it. The parameters are those of SB3's `RolloutBuffer`, or of its
    `DictRolloutBuffer` where observations are dicts.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from eigenoptions.agents.sb3 import SMDPDiscounts
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

    def __new__(cls, *args: Any, **kwargs: Any) -> SMDPRolloutBuffer:
        """Return the twin for dicts where observations are dicts."""
        if _observes_dicts(args, kwargs):
            return super().__new__(_SMDPDictRolloutBuffer)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wrapper_gamma = find_gamma(self.action_space)
        if wrapper_gamma is not None:
            check_same_gamma("the agent", self.gamma, wrapper_gamma)

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


class _SMDPDictRolloutBuffer(SMDPRolloutBuffer, DictRolloutBuffer):
    """`SMDPRolloutBuffer` of dicts."""


class SMDPMaskableRolloutBuffer(SMDPRolloutBuffer, MaskableRolloutBuffer):
    """`SMDPRolloutBuffer` for MaskablePPO.

    That agent calls the wrapper's `action_masks`, so it takes no unavailable option.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> SMDPMaskableRolloutBuffer:
        """Return the twin for dicts where observations are dicts."""
        if _observes_dicts(args, kwargs):
            return object.__new__(_SMDPMaskableDictRolloutBuffer)
        return object.__new__(cls)


class _SMDPMaskableDictRolloutBuffer(
    SMDPMaskableRolloutBuffer, MaskableDictRolloutBuffer
):
    """`SMDPMaskableRolloutBuffer` of dicts."""

    # The parent's own are those of arrays.
    get = MaskableDictRolloutBuffer.get  # type: ignore[assignment]
    _get_samples = MaskableDictRolloutBuffer._get_samples  # type: ignore[assignment]


def _observes_dicts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of a buffer, as SB3 gives them, are for a Dict space."""
    space = kwargs.get("observation_space")
    if len(args) > 1:
        space = args[1]
    if isinstance(space, Tuple):
        raise ValueError(
            f"Stable-Baselines3 has no policy for {space}: wrap the environment in "
            "FlattenObservation"
        )
    return isinstance(space, Dict)


def _make_row(obs: Any, space: Space[Any], stored: Space[Any]) -> Any:
    """Return an observation inside an option as a row of what SB3 stores.

    SB3 moves the channels of images to the front, and `FlattenObservation` may stand
    around `OptionsWrapper`.
    """
    if isinstance(space, Dict) and isinstance(stored, Dict):
        rows = {}
        for name, part in stored.spaces.items():
            rows[name] = _make_row(obs[name], space[name], part)
        return rows

    if space == stored:
        return np.array([obs])
    shape = space.shape or ()
    if len(shape) == 3 and stored.shape == (shape[2], shape[0], shape[1]):
        return VecTransposeImage.transpose_image(np.array([obs]))
    if flatten_space(space) == stored:
        return np.array([flatten(space, obs)])
    raise ValueError(
        f"steps inside options are observed in {space}, the agent observes {stored}: "
        "put observation wrappers inside of OptionsWrapper, or pass record_steps=False"
    )


def _take_entries(rows: Rows, entries: tuple[NDArray[Any], ...]) -> Rows:
    """Return some rows of a buffer."""
    if isinstance(rows, dict):
        return {name: part[entries] for name, part in rows.items()}
    taken: NDArray[Any] = rows[entries]
    return taken


def read_discounts(infos: list[dict[str, Any]]) -> list[float]:
    """Return the discount of each environment's decision."""
    for info in infos:
        if "discount" not in info:
            raise ValueError(
                "no discount in the infos: wrap the environment in OptionsWrapper"
            )
    return [info["discount"] for info in infos]


def find_gamma(action_space: Space[Any]) -> float | None:
    """The discount of the `OptionsWrapper` that an action space belongs to.

    None where there is none, or where decisions take one step each.
    """
    gamma: float | None = getattr(action_space, "gamma", None)
    return gamma


def check_same_gamma(owner: str, gamma: float, wrapper_gamma: float) -> None:
    """Raise ValueError if an agent has another discount than its wrapper."""
    if gamma != wrapper_gamma:
        raise ValueError(
            f"{owner} has gamma={gamma}, its OptionsWrapper gamma={wrapper_gamma}: "
            "give both the same"
        )
