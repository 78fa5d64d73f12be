"""A DQN in PyTorch, in one file that can be read from top to bottom.

It is Double DQN in the style of CleanRL. With options three lines differ: the target
discounts by ``info["discount"]``, and the largest value is taken over
``info["action_mask"]``, in the target and in the greedy choice. Random actions are
``env.action_space.sample()`` as ever, so that `Exploring` needs no change here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from eigenoptions.explore import Found
from eigenoptions.options import OptionSet
from studies.arena.deep_budget import Budget, BudgetSpentError, Env, Mask
from studies.arena.deep_networks import ViewEncoder


@dataclass(frozen=True)
class DQNSettings:
    """Settings of the agent.

    Attributes
    ----------
    gamma : float
        Discount per primitive step.
    table_rate, view_rate : float
        Learning rate where observations are numbers (SGD, one weight per state and
        choice), and where they are views (Adam).
    batch_size : int
        Transitions of an update.
    steps_per_update : int
        Primitive steps for each update.
    table_target_updates, view_target_updates : int
        Updates after which the target network is renewed, where observations are
        numbers, and where they are views.
    exploring_share : float
        Share of the budget in which the chance of a random action falls to its last
        value.
    last_epsilon : float
        That value.
    """

    gamma: float = 0.99
    table_rate: float = 20.0
    view_rate: float = 1e-3
    batch_size: int = 32
    steps_per_update: int = 4
    table_target_updates: int = 25
    view_target_updates: int = 50
    exploring_share: float = 0.5
    last_epsilon: float = 0.05


class Replay:
    """All transitions of a run."""

    def __init__(self, capacity: int, obs: NDArray[Any], n_choices: int) -> None:
        self.obs = np.zeros((capacity, *obs.shape), dtype=obs.dtype)
        self.next_obs = np.zeros_like(self.obs)
        self.action = np.zeros(capacity, dtype=np.int64)
        self.reward = np.zeros(capacity, dtype=np.float32)
        # 0 where the episode terminated.
        self.discount = np.zeros(capacity, dtype=np.float32)
        self.next_mask = np.ones((capacity, n_choices), dtype=np.bool_)
        self.size = 0
        self.has_reward = False

    def add(
        self,
        obs: Any,
        action: int,
        reward: float,
        next_obs: Any,
        discount: float,
        next_mask: Mask | None,
    ) -> None:
        """Add one transition."""
        # There is room for a whole run: nothing is overwritten.
        row = self.size
        self.obs[row] = obs
        self.action[row] = action
        self.reward[row] = reward
        self.next_obs[row] = next_obs
        self.discount[row] = discount
        # Without options every choice stays available.
        if next_mask is not None:
            self.next_mask[row] = next_mask
        self.size += 1
        # Learning waits for the first reward.
        if reward != 0:
            self.has_reward = True

    def fill(self, found: Found, gamma: float, options: OptionSet | None) -> None:
        """Add all steps of an exploration, with the options available after each."""
        steps = found.transitions
        rows = slice(self.size, self.size + len(steps))
        self.obs[rows] = steps.obs
        self.action[rows] = steps.action
        self.reward[rows] = steps.reward
        self.next_obs[rows] = steps.next_obs
        self.discount[rows] = gamma * ~steps.terminated
        if options is not None:
            available = options.initiation[:, found.numbers.next_obs]
            self.next_mask[rows, -len(options) :] = available.T
        self.size += len(steps)
        self.has_reward |= bool(np.any(steps.reward))

    def draw(self, rng: np.random.Generator, n: int) -> list[torch.Tensor]:
        """Draw transitions: the columns as tensors."""
        rows = rng.integers(self.size, size=n)
        columns = (
            self.obs,
            self.action,
            self.reward,
            self.next_obs,
            self.discount,
            self.next_mask,
        )
        return [torch.from_numpy(column[rows]) for column in columns]


def make_network(env: Env, n_choices: int) -> nn.Module:
    """Make the network: a table for numbered states, otherwise two hidden layers.

    Numbered states have nothing in common that a hidden layer could use: choices that
    were never tried would inherit the values of others. Small random values leave no
    ties, which the first action would win.
    """
    space: Any = env.observation_space
    if hasattr(space, "n"):
        table = nn.Embedding(int(space.n), n_choices)
        nn.init.normal_(table.weight, std=1e-3)
        return table
    encoder = ViewEncoder(space)
    last = nn.Linear(64, n_choices)
    nn.init.normal_(last.weight, std=1e-3)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        encoder,
        nn.Linear(encoder.features_dim, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        last,
    )


class TorchDQN:
    """The agent.

    Parameters
    ----------
    env : gymnasium.Env
        The environment with all wrappers.
    budget : Budget
        The wrapper inside it that counts primitive steps.
    seed : int
        Of the network and of random decisions.
    settings : DQNSettings, default=DQNSettings()
        Its settings.
    network : callable, default=make_network
        From the environment and the number of choices to the network: an embedding, or
        layers of which the last is linear.
    """

    def __init__(
        self,
        env: Env,
        budget: Budget,
        seed: int,
        settings: DQNSettings = DQNSettings(),
        network: Callable[[Env, int], nn.Module] = make_network,
    ) -> None:
        torch.manual_seed(seed)
        self.env = env
        self.budget = budget
        self.settings = settings
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        env.action_space.seed(seed)

        n_choices = int(env.action_space.n)  # type: ignore[attr-defined]
        self.network = network(env, n_choices)
        self.n_primitive = getattr(env.action_space, "n_primitive", n_choices)
        self._set_option_values()
        self.target_network = copy.deepcopy(self.network)
        if isinstance(self.network, nn.Embedding):
            self.rate = settings.table_rate
            self.target_updates = settings.table_target_updates
            self.optimizer: torch.optim.Optimizer = torch.optim.SGD(
                self.network.parameters(), self.rate
            )
        else:
            self.rate = settings.view_rate
            self.target_updates = settings.view_target_updates
            self.optimizer = torch.optim.Adam(
                self.network.parameters(), self.rate, fused=True
            )

        # An option adds its primitive steps, and one decision.
        example = np.asarray(env.observation_space.sample())
        self.replay = Replay(2 * budget.total, example, n_choices)
        self.n_updates = 0

    def _set_option_values(self) -> None:
        """Let options begin with the mean value of the actions.

        Where nothing is known, the greedy choice is then an action.
        """
        last: Any = self.network
        if isinstance(self.network, nn.Sequential):
            last = self.network[-1]
        with torch.no_grad():
            if isinstance(last, nn.Embedding):
                means = last.weight[:, : self.n_primitive].mean(dim=1, keepdim=True)
                last.weight[:, self.n_primitive :] = means
            else:
                for parameter in (last.weight, last.bias):
                    means = parameter[: self.n_primitive].mean(dim=0)
                    parameter[self.n_primitive :] = means

    def choose(self, obs: Any, mask: Mask | None = None) -> int:
        """Return the available choice with the largest value."""
        with torch.no_grad():
            values = self.network(torch.as_tensor(obs)[None])[0].numpy()
        if mask is not None:
            values = np.where(mask, values, -np.inf)
        return int(values.argmax())

    def learn(self) -> None:
        """Learn until the budget is spent."""
        with suppress(BudgetSpentError):
            obs, info = self.env.reset(seed=self.seed)
            while True:
                if self.rng.random() < self._epsilon():
                    action = int(self.env.action_space.sample())
                else:
                    action = self.choose(obs, info.get("action_mask"))
                next_obs, reward, terminated, truncated, info = self.env.step(action)
                self._remember(obs, action, float(reward), next_obs, terminated, info)
                self._update_when_due()
                obs = next_obs
                if terminated or truncated:
                    obs, info = self.env.reset()

    def _epsilon(self) -> float:
        """Return the chance of a random action."""
        settings = self.settings
        progress = min(1.0, self.budget.spent / settings.exploring_share)
        return 1.0 - (1.0 - settings.last_epsilon) * progress

    def _remember(
        self,
        obs: Any,
        action: int,
        reward: float,
        next_obs: Any,
        terminated: bool,
        info: dict[str, Any],
    ) -> None:
        """Add a decision to the replay, and the primitive steps inside an option."""
        discount = info.get("discount", self.settings.gamma)
        if terminated:
            discount = 0.0
        mask = info.get("action_mask")
        self.replay.add(obs, action, reward, next_obs, discount, mask)

        path = info.get("steps", ())
        for step in path:
            discount = step.discount
            if terminated and step is path[-1]:
                discount = 0.0
            self.replay.add(
                step.obs,
                step.action,
                step.reward,
                step.next_obs,
                discount,
                step.action_mask,
            )

    def _update_when_due(self) -> None:
        """Update by primitive steps, so that options lose no updates.

        Before the first reward there is nothing to learn; what is due is done then.
        """
        settings = self.settings
        if self.replay.size < settings.batch_size or not self.replay.has_reward:
            return
        # Constant in the first half of the budget, then falling to 0.
        share = min(1.0, 2.0 - 2.0 * self.budget.spent)
        self.optimizer.param_groups[0]["lr"] = self.rate * share
        while self.n_updates < self.budget.steps // settings.steps_per_update:
            self._update()
            self.n_updates += 1
            if self.n_updates % self.target_updates == 0:
                self.target_network.load_state_dict(self.network.state_dict())

    def _update(self) -> None:
        """Take one step of gradient descent."""
        batch = self.replay.draw(self.rng, self.settings.batch_size)
        obs, action, reward, next_obs, discount, next_mask = batch
        with torch.no_grad():
            # The network chooses, the target network evaluates: a maximum over many
            # choices of one network overestimates.
            preferences = self.network(next_obs).masked_fill(~next_mask, -torch.inf)
            best = preferences.argmax(dim=1, keepdim=True)
            next_value = self.target_network(next_obs).gather(1, best)[:, 0]
            target = reward + discount * next_value

        value = self.network(obs).gather(1, action[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
