"""Training runs by equal primitive steps: five agents, and the ways to explore with which options are compared.

`AGENTS` names the functions. Each takes a `Run` and learns until `BudgetSpentError`; before the first step it sets
``run.act`` to its greedy policy ``act(obs, mask)``.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import TimeLimit

from eigenoptions.envs import MazeEnv, Numbered, OptionsWrapper
from eigenoptions.envs.sources import make_env

Act = Callable[[Any, Any], int]
# Decisions that no budget reaches: runs end by their primitive steps.
ENDLESS = 1_000_000_000


class BudgetSpentError(Exception):
    """A training run has taken all of its primitive steps."""


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps, notes the first goal, calls a function at checkpoints, and ends a run at its budget.

    It goes around the environment with its time limit, inside all other wrappers. `taken` steps were taken before, by
    the discovery of options.
    """

    def __init__(
        self, env: gym.Env[Any, Any], budget: int, taken: int = 0, checkpoints: Sequence[int] = ()
    ) -> None:
        super().__init__(env)
        self.steps, self.budget, self.first_goal = taken, budget, -1
        self.at_checkpoint: Callable[[], object] = lambda: None
        self._checkpoints = sorted(c for c in checkpoints if c > taken)

    def step(self, action: Any) -> Any:
        """Take one step; raises `BudgetSpentError` after the last."""
        outcome = self.env.step(action)
        self.steps += 1
        if outcome[2] and self.first_goal < 0:
            self.first_goal = self.steps
        if self._checkpoints and self.steps >= self._checkpoints[0]:
            self._checkpoints.pop(0)
            self.at_checkpoint()
        if self.steps >= self.budget:
            raise BudgetSpentError
        return outcome


class CountBonus(gym.Wrapper[Any, Any, Any, Any]):
    """Adds ``beta / sqrt(n)`` to the reward of a step into a state that was entered n times.

    Observations that are not numbers of states are counted by cells, 16 along each bounded dimension.
    """

    def __init__(self, env: gym.Env[Any, Any], beta: float) -> None:
        super().__init__(env)
        self.beta = beta
        self.counts: Counter[Hashable] = Counter()

    def step(self, action: Any) -> Any:
        """Take one step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        space: Any = self.observation_space
        cell: Hashable = obs
        if not isinstance(space, Discrete):
            cell = tuple(np.floor(16 * (obs - space.low) / (space.high - space.low)).astype(int).tolist())
        self.counts[cell] += 1
        return obs, float(reward) + self.beta * self.counts[cell] ** -0.5, terminated, truncated, info


class ConstantDiscount(gym.Wrapper[Any, Any, Any, Any]):
    """An environment without options as masked agents need it: each decision takes one step, and all are available."""

    def __init__(self, env: gym.Env[Any, Any], gamma: float) -> None:
        super().__init__(env)
        self.gamma = gamma

    def step(self, action: Any) -> Any:
        """Take one step."""
        *outcome, info = self.env.step(action)
        return *outcome, {**info, "discount": self.gamma}

    def action_masks(self) -> Any:
        """All actions."""
        return np.ones(int(self.env.action_space.n), dtype=np.bool_)  # type: ignore[attr-defined]


class RepeatedActions:
    """Random actions repeated for a zeta-distributed number of steps: epsilon-z-greedy (Dabney et al., 2021)."""

    def __init__(self, n_actions: int, seed: int) -> None:
        self.n_actions, self.rng = n_actions, np.random.default_rng(seed)
        self.action, self.left = 0, 0

    def __call__(self, epsilon: float) -> int | None:
        """The next action while exploring; otherwise a new one begins with probability epsilon, or None."""
        if self.left == 0:
            if self.rng.random() >= epsilon:
                return None
            self.action = int(self.rng.integers(self.n_actions))
            self.left = min(int(self.rng.zipf(2.0)), 1000)
        self.left -= 1
        return self.action


@dataclass
class Run:
    """What an agent needs for one training run.

    `env` has all wrappers, `record` is inside it; `explore` returns repeated actions, or is None:
    ``env.action_space.sample()``; `option_chance` is None without options; `act` is the greedy policy.
    """

    env: Any
    record: Record
    seed: int
    gamma: float
    explore: RepeatedActions | None = None
    option_chance: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    act: Act | None = None

    def epsilon(self) -> float:
        """Probability of a random decision: linear from 1 to 0.05 over `explore_share` of the primitive steps."""
        share = float(self.settings.get("explore_share", 0.5))
        return max(0.05, 1.0 - 0.95 * self.record.steps / (share * self.record.budget))

    def learning_rate(self) -> float:
        """Share of the first learning rate: 1 in the first half of the primitive steps, then linear to 0.

        With a constant rate the greedy policy would still change from one gradient step to the next at the end.
        """
        return min(1.0, 2.0 - 2.0 * self.record.steps / self.record.budget)

    def choose(self, rng: np.random.Generator, obs: Any, info: Mapping[str, Any]) -> int:
        """An epsilon-greedy decision."""
        assert self.act is not None
        epsilon = self.epsilon()
        if self.explore is not None:
            action = self.explore(epsilon)
        else:
            action = int(self.env.action_space.sample()) if rng.random() < epsilon else None
        return self.act(obs, info.get("action_mask")) if action is None else action


def learn_table(run: Run) -> None:
    """Q-learning over actions and options, with the steps inside options; ties at random."""
    rng = np.random.default_rng(run.seed)
    run.env.action_space.seed(run.seed)
    n = int(run.env.action_space.n)
    alpha = float(run.settings.get("alpha", 0.5))
    q = np.full((int(run.env.observation_space.n), n), float(run.settings.get("initial_value", 0.0)))
    all_actions = np.ones(n, dtype=np.bool_)

    def act(state: Any, mask: Any = None) -> int:
        allowed = np.flatnonzero(all_actions if mask is None else mask)
        values = q[state, allowed]
        return int(rng.choice(allowed[values >= values.max() - 1e-12]))

    def update(
        state: int, action: int, reward: float, after: int, discount: float, mask: Any, ended: bool
    ) -> None:
        best = 0.0 if ended else q[after, np.asarray(mask, dtype=np.bool_)].max()
        q[state, action] += alpha * (reward + discount * best - q[state, action])

    run.act = act
    state, info = run.env.reset(seed=run.seed)
    while True:
        before, action = state, run.choose(rng, state, info)
        state, reward, terminated, truncated, info = run.env.step(action)
        path = info.get("steps", ())
        for step in path:
            ended = terminated and step is path[-1]
            update(step.obs, step.action, step.reward, step.next_obs, run.gamma, step.action_mask, ended)
        discount, mask = info.get("discount", run.gamma), info.get("action_mask", all_actions)
        update(before, action, float(reward), state, discount, mask, terminated)
        if terminated or truncated:
            state, info = run.env.reset()


def learn_pytorch(run: Run) -> None:
    """The DQN of one file that the documentation shows; see `reproduction.arena.dqn`."""
    from reproduction.arena.dqn import train_dqn

    train_dqn(run)


def learn_sb3(name: str, run: Run) -> None:
    """Stable-Baselines3's DQN with double targets (`OptionsDQN`), PPO, or sb3-contrib's MaskablePPO."""
    from reproduction.arena.sb3_agents import make_agent

    agent, callback = make_agent(name, run)
    is_masked = name == "MaskablePPO" or (name == "DQN" and run.option_chance is not None)

    def act(obs: Any, mask: Any) -> int:
        masks = {"action_masks": np.asarray(mask, dtype=np.bool_)} if is_masked and mask is not None else {}
        return int(agent.predict(np.asarray(obs), deterministic=True, **masks)[0])

    run.act = act
    agent.learn(ENDLESS, callback=callback)


AGENTS: dict[str, Callable[[Run], None]] = {
    **{name: partial(learn_sb3, name) for name in ("DQN", "PPO", "MaskablePPO")},
    "PyTorch DQN": learn_pytorch,
    "Q-learning": learn_table,
}
# Agents that explore by random actions: the others have no place for repeated ones.
EPSILON_GREEDY = ("DQN", "PyTorch DQN", "Q-learning")


def make_task(task: Mapping[str, Any]) -> Any:
    """The environment of a task with its time limit: a maze (keys maze, start and goal), or an id (key env).

    MiniGrid has one layout, of seed 0, and observes the number of the state.

    >>> make_task({"maze": "S.G", "limit": 5}).reset()[0]
    0
    """
    if "maze" in task:
        return TimeLimit(MazeEnv(task["maze"], start=task.get("start"), goal=task.get("goal")), task["limit"])
    if task["env"].startswith("minigrid:"):
        return TimeLimit(copy.deepcopy(_make_numbered(task["env"])), task["limit"])
    return make_env(task["env"])


@lru_cache(maxsize=4)
def _make_numbered(name: str) -> Numbered:
    """An environment of MiniGrid without its own time limit, whose states have been numbered."""
    env: Any = make_env(name).unwrapped
    # A small view, since nobody reads it and it takes most of the time of a step.
    env.max_steps, env.agent_view_size = ENDLESS, 3
    return Numbered(env)


def train(
    agent: str,
    task: Mapping[str, Any],
    options: Any = None,
    *,
    steps: int,
    checkpoints: Sequence[int],
    taken: int = 0,
    episodes: int = 1,
    repeats: bool = False,
    beta: float = 0.0,
    option_chance: float = 0.05,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """One training run of an agent of `AGENTS`.

    Parameters
    ----------
    agent, task, options
        Name of the agent; the task (see `make_task`) with its discount ``"gamma"``; and options or None.
    steps, taken
        Primitive steps, with those taken by the discovery of options.
    checkpoints, episodes
        Numbers of steps at which the greedy policy is evaluated, in so many episodes.
    repeats, beta, option_chance
        Whether random actions are repeated; the count bonus; the probability that a random decision is an option.
    seed, settings
        Seed of agent and environment, and further settings of the agent.

    Returns
    -------
    dict
        ``first_goal``: primitive steps until the first goal, or -1; ``success``: share of evaluation episodes that
        reach the goal, at each checkpoint; ``greedy_steps``: mean steps of the last ones.
    """

    def wrap(inner: Any) -> Any:
        if options is None:
            return inner
        return OptionsWrapper(inner, options, task["gamma"], option_chance=option_chance, record_steps=True)

    record = Record(make_task(task), steps, taken, checkpoints)
    env: Any = wrap(record)
    evaluation_env = wrap(make_task(task))
    env = CountBonus(env, beta) if beta else env
    explore = RepeatedActions(int(env.action_space.n), seed) if repeats else None
    run = Run(env, record, seed, task["gamma"], explore, None if options is None else option_chance, settings)
    results: list[tuple[float, float]] = []

    def evaluate() -> None:
        assert run.act is not None
        # A deterministic policy of numbered states is asked once per state: one that runs in a circle costs nothing.
        is_known = agent != "Q-learning" and isinstance(evaluation_env.observation_space, Discrete)
        act = _remember(run.act) if is_known else run.act
        played = [play_episode(evaluation_env, act, seed * 1000 + i) for i in range(episodes)]
        results.append(tuple(np.mean(played, axis=0).tolist()))

    record.at_checkpoint = evaluate
    with suppress(BudgetSpentError):
        AGENTS[agent](run)
    # At checkpoints during the discovery of options the agent knows nothing yet.
    success = [0.0] * (len(checkpoints) - len(results)) + [reached for reached, _ in results]
    return {"first_goal": record.first_goal, "success": success, "greedy_steps": results[-1][1]}


def _remember(act: Act) -> Act:
    known: dict[int, int] = {}
    return lambda obs, mask: known[obs] if obs in known else known.setdefault(obs, act(obs, mask))


def play_episode(env: Any, act: Act, seed: int) -> tuple[bool, int]:
    """Whether a greedy episode reaches the goal, and its primitive steps."""
    obs, info = env.reset(seed=seed)
    steps, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        obs, _, terminated, truncated, info = env.step(act(obs, info.get("action_mask")))
        steps += info.get("duration", 1)
    return bool(terminated), steps
