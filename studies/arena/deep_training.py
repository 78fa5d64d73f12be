"""One run of a deep agent: exploring, wrappers, the agent, and its exam."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch

from eigenoptions.agents.sb3 import clone, fill_replay
from eigenoptions.discovery import discover
from eigenoptions.envs import OptionsWrapper, ShapedReward, StateNumber
from eigenoptions.explore import Exploring, Found
from eigenoptions.explore.explorer import Explorer
from eigenoptions.options import OptionSet
from studies.arena.deep_budget import Budget, CountBonus, Env, Mask, take_exam
from studies.arena.deep_dqn import TorchDQN
from studies.arena.deep_sb3 import SB3Agent, make_dqn, make_ppo
from studies.arena.deep_tasks import DEEP_TASKS, DeepTask
from studies.arena.deep_ways import (
    NO_AGENT,
    NUMBERED_WAYS,
    SB3_DQN,
    SB3_PPO,
    TORCH_DQN,
    WAYS,
    Way,
)
from studies.arena.own_search import OwnSearch

_GAMMA = 0.99


def train_deep(agent: str, task: str, way: str, seed: int) -> dict[str, Any]:
    """Train an agent on a task in a way: one row of results.

    ``first_goal`` is the number of steps until the first goal (the budget if there was
    none), ``reached`` the share of the episodes of the exam that end at the goal.
    """
    torch.set_num_threads(1)
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    seconds = time.process_time()
    kind = DEEP_TASKS[task]
    chosen = (WAYS | NUMBERED_WAYS)[way]
    budget = Budget(kind.make(seed), kind.budget)
    inner: Env = budget
    exam = kind.make(seed)
    if chosen.is_numbered or chosen.is_own_search:
        inner = StateNumber(budget, key=choose_key(budget))
        exam = StateNumber(exam, key=choose_key(exam), numbers=inner.numbers)

    found = None
    if chosen.explores_first:
        found = explore_first(inner, budget, seed)
    options = find_options(chosen, kind, seed, found)
    env = surround(inner, agent, chosen, seed, found, options)
    learner: Any
    if chosen.is_own_search:
        learner = OwnSearch(env, seed)
        learner.explore(lambda: has_explored(budget))
    elif agent == NO_AGENT:
        learner = Follower(env)
    else:
        learner = make_learner(agent, env, budget, seed)
        if found is not None:
            hand_over(learner, chosen, found, options)
        if chosen.is_trained:
            learner.learn()

    if options is not None:
        exam = OptionsWrapper(exam, options, option_chance=None)
    reached = take_exam(exam, learner.choose, seed)
    return {
        "agent": agent,
        "way": way,
        "task": task,
        "seed": seed,
        "budget": kind.budget,
        "first_goal": budget.first_goal,
        "goals": budget.goals,
        "reached": reached,
        "seconds": round(time.process_time() - seconds, 2),
    }


def choose_key(env: Env) -> str | None:
    """How states are recognised: MiniGrid's by its pose, from views and actions.

    It is the same for `explore`, the count bonus and breadth-first search.
    """
    return "observation" if hasattr(env.observation_space, "n") else "pose"


def has_explored(budget: Budget, share: float = 0.75) -> bool:
    """Whether there was a reward, or a share of the budget is spent."""
    return budget.goals > 0 or budget.spent >= share


def explore_first(env: Env, budget: Budget, seed: int) -> Found:
    """Explore until the first reward, and spend at most a share of the budget."""
    explorer = Explorer(env, key=choose_key(env), seed=seed, rng=seed)
    while not has_explored(budget):
        explorer.step()
    return explorer.found


def find_options(
    way: Way, kind: DeepTask, seed: int, found: Found | None
) -> OptionSet | None:
    """The options of a way, by the defaults of the library; None if it has none."""
    if way.options == "known":
        return discover(kind.make(seed))
    if found is None or not way.options:
        return None
    if way.options == "eigen":
        return discover(found)
    if way.options == "random":
        return discover(found, method="random", rng=seed)
    if not len(found.rewarded):
        return None
    # Only the way to the reward.
    policy = found.option().policy
    return OptionSet(found.mdp, policy[None])


def surround(
    inner: Env,
    agent: str,
    way: Way,
    seed: int,
    found: Found | None,
    options: OptionSet | None,
) -> Env:
    """Put the wrappers of a way around an environment."""
    env = inner
    if way.bonus:
        env = CountBonus(env, way.bonus[agent], choose_key(env))
    if way.is_exploring:
        env = Exploring(env, key=choose_key(env), rng=seed)
    if way.is_shaped and found is not None and len(found.rewarded):
        env = ShapedReward(env, found.potential(), gamma=_GAMMA)
    if options is not None:
        env = OptionsWrapper(env, options, gamma=_GAMMA, record_steps=agent != SB3_PPO)
    return env


def make_learner(
    agent: str, env: Env, budget: Budget, seed: int
) -> TorchDQN | SB3Agent:
    """Make an agent by its name; `env` has all wrappers, `budget` is inside it."""
    if agent == TORCH_DQN:
        return TorchDQN(env, budget, seed)
    if agent == SB3_DQN:
        return SB3Agent(make_dqn(env, budget, seed))
    return SB3Agent(make_ppo(env, seed))


def hand_over(learner: Any, way: Way, found: Found, options: OptionSet | None) -> None:
    """Give an agent what was found: the steps to DQN, the known ways to PPO."""
    if isinstance(learner, TorchDQN):
        learner.replay.fill(found, _GAMMA, options)
    elif hasattr(learner.agent, "replay_buffer"):
        fill_replay(learner.agent, found)
    elif way.is_cloned and len(found.rewarded):
        clone(learner.agent, found)


class Follower:
    """Follows the only option wherever it is available, otherwise acts at random."""

    def __init__(self, env: Env) -> None:
        self._n_primitive = getattr(env.action_space, "n_primitive", None)
        self._n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
        self._rng = np.random.default_rng(0)

    def choose(self, obs: Any, mask: Mask | None = None) -> int:
        """Return the option, or a random action."""
        if self._n_primitive is not None and mask is not None and mask[-1]:
            return int(self._n_primitive)
        return int(self._rng.integers(self._n_primitive or self._n_actions))
