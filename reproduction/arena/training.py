"""Training runs of five agents on one environment, by equal primitive steps: tabular, PyTorch, Stable-Baselines3.

`AGENTS` names the functions. Each takes a `Run` and learns until `BudgetSpent`; before the first step it calls
``run.ready(act)`` with its greedy policy ``act(obs, mask)``.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs import Numbered
from eigenoptions.envs.sources import make_env
from eigenoptions.envs.wrapper import OptionsWrapper
from reproduction.arena.exploration import Act, BudgetSpent, CountBonus, Record, Repeats, Run

# Decisions that no budget reaches: runs end by their primitive steps.
ENDLESS = 1_000_000_000
# The single-file agent, in examples/ of the repository and of the source distribution.
SINGLE_FILE = Path(__file__).resolve().parents[2] / "examples" / "pytorch_dqn.py"


def learn_table(run: Run) -> None:
    """Q-learning over actions and options, with the steps inside options; ties at random."""
    env: Any = run.env
    rng = np.random.default_rng(run.seed)
    env.action_space.seed(run.seed)
    n = int(env.action_space.n)
    alpha, first = float(run.settings.get("alpha", 0.5)), float(run.settings.get("initial_value", 0.0))
    q = np.full((int(env.observation_space.n), n), first)
    everything = np.ones(n, dtype=np.bool_)

    def act(state: Any, mask: Any = None) -> int:
        allowed = np.flatnonzero(everything if mask is None else mask)
        values = q[state, allowed]
        return int(rng.choice(allowed[values >= values.max() - 1e-12]))

    def update(
        state: int, action: int, reward: float, after: int, discount: float, mask: Any, ended: bool
    ) -> None:
        best = 0.0 if ended else q[after, np.asarray(mask, dtype=np.bool_)].max()
        q[state, action] += alpha * (reward + discount * best - q[state, action])

    run.ready(act)
    state, info = env.reset(seed=run.seed)
    while True:
        chance = run.epsilon()
        if run.explore is not None:
            action = run.explore(chance)
        else:
            action = int(env.action_space.sample()) if rng.random() < chance else None
        if action is None:
            action = act(state, info.get("action_mask"))
        before = state
        state, reward, terminated, truncated, info = env.step(action)
        path = info.get("steps", ())
        for i, step in enumerate(path, 1):
            ended = terminated and i == len(path)
            update(step.obs, step.action, step.reward, step.next_obs, run.gamma, step.action_mask, ended)
        discount, mask = info.get("discount", run.gamma), info.get("action_mask", everything)
        update(before, action, float(reward), state, discount, mask, terminated)
        if terminated or truncated:
            state, info = env.reset()


def learn_single_file(run: Run) -> None:
    """The PyTorch agent of ``examples/pytorch_dqn.py``."""
    how = {k: v for k, v in run.settings.items() if k != "explore_share"}
    single_file().train(
        run.env,
        ENDLESS,
        gamma=run.gamma,
        seed=run.seed,
        rate=lambda decision: run.rate(),
        epsilon=run.epsilon,
        explore=run.explore,
        ready=run.ready,
        **how,
    )


def learn_sb3(name: str, run: Run) -> None:
    """Stable-Baselines3's DQN with double targets (`OptionsDQN`), PPO, or sb3-contrib's MaskablePPO."""
    from eigenoptions.envs import sb3_runs

    if name == "DQN":
        masked = run.option_chance is not None
        agent, callback = sb3_runs.dqn(run)
    else:
        masked = name == "MaskablePPO"
        agent, callback = sb3_runs.ppo(run, maskable=masked)

    def act(obs: Any, mask: Any) -> int:
        how = {"action_masks": np.asarray(mask, dtype=np.bool_)} if masked and mask is not None else {}
        return int(agent.predict(np.asarray(obs), deterministic=True, **how)[0])

    run.ready(act)
    agent.learn(ENDLESS, callback=callback)


AGENTS: dict[str, Callable[[Run], None]] = {
    **{name: partial(learn_sb3, name) for name in ("DQN", "PPO", "MaskablePPO")},
    "PyTorch DQN": learn_single_file,
    "Q-learning": learn_table,
}
# Agents that explore by random actions: the others have no place for repeated ones.
EPSILON_GREEDY = ("DQN", "PyTorch DQN", "Q-learning")
# Packages without which an agent is left out, where it is not sb3-contrib.
NEEDS = {"PyTorch DQN": "torch", "Q-learning": "numpy"}


def missing(agent: str) -> str:
    """Why an agent cannot be run here; empty if it can.

    >>> missing("Q-learning")
    ''
    """
    package = NEEDS.get(agent, "sb3_contrib")
    if importlib.util.find_spec(package) is None:
        return f"needs {package}: pip install 'eigenoptions[sb3]'"
    if agent == "PyTorch DQN" and not SINGLE_FILE.exists():
        return f"needs examples/{SINGLE_FILE.name} of the repository"
    return ""


@cache
def single_file() -> ModuleType:
    """The module of the single-file agent."""
    spec = importlib.util.spec_from_file_location("eigenoptions_pytorch_dqn", SINGLE_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def single_file_hash() -> str:
    """Hash of the single-file agent; empty where it is missing."""
    return (
        hashlib.blake2b(SINGLE_FILE.read_bytes(), digest_size=8).hexdigest() if SINGLE_FILE.exists() else ""
    )


def make_task(task: Mapping[str, Any]) -> Any:
    """The environment of a task with its time limit: a maze (keys maze, start and goal), or an id (key env).

    MiniGrid has one layout, of seed 0, and observes the number of the state.

    >>> make_task({"maze": "S.G", "limit": 5}).reset()[0]
    0
    """
    from gymnasium.wrappers import TimeLimit

    if "maze" in task:
        return TimeLimit(MazeEnv(task["maze"], start=task.get("start"), goal=task.get("goal")), task["limit"])
    if task["env"].startswith("minigrid:"):
        return TimeLimit(copy.deepcopy(_numbered(task["env"])), task["limit"])
    return make_env(task["env"])


@lru_cache(maxsize=4)
def _numbered(name: str) -> Numbered:
    """An environment of MiniGrid without its own time limit, whose states have been numbered."""
    env: Any = make_env(name).unwrapped
    # The task's own limit holds.
    env.max_steps = ENDLESS
    numbered = Numbered(env)
    # States are numbered by what the environment contains. Its view takes most of the time of a step, and is not used.
    env.gen_obs = dict
    return numbered


def train(
    agent: str, task: Mapping[str, Any], how: Mapping[str, Any], options: Any = None, seed: int = 0
) -> dict[str, Any]:
    """One training run of an agent of `AGENTS`; returns plain data.

    Parameters
    ----------
    agent, task
        Name of the agent, and the task (see `make_task`), with its discount ``"gamma"``.
    how
        ``steps`` (primitive steps, with those ``taken`` by the discovery of options), ``checkpoints`` (numbers of
        steps at which the greedy policy is evaluated in ``episodes`` episodes), ``repeats`` (epsilon-z-greedy),
        ``beta`` (count bonus), ``option_chance``, and ``settings`` of the agent.
    options, seed
        Options or None, and the seed of agent and environment.

    Returns
    -------
    dict
        ``first_goal``: primitive steps until the first goal, or -1; ``success``: share of evaluation episodes that
        reach the goal, at each checkpoint; ``greedy_steps``: mean steps of the last ones.

    Examples
    --------
    >>> found = train("Q-learning", {"maze": "S..G", "limit": 20, "gamma": 0.9}, {"steps": 300, "checkpoints": [300]})
    >>> found["success"], found["greedy_steps"]
    ([1.0], 3.0)
    """
    chance = None if options is None else how.get("option_chance", 0.05)
    checkpoints = list(how["checkpoints"])
    record = Record(make_task(task), how["steps"], how.get("taken", 0), checkpoints)

    def wrapped(inner: Any) -> Any:
        if options is None:
            return inner
        return OptionsWrapper(inner, options, task["gamma"], option_chance=chance, record_steps=True)

    env, judge = wrapped(record), wrapped(make_task(task))
    if how.get("beta"):
        env = CountBonus(env, how["beta"])
    explore = Repeats(int(env.action_space.n), seed) if how.get("repeats") else None
    policy: list[Act] = []
    success: list[float] = []
    lengths: list[float] = []

    def evaluate() -> None:
        act = policy[0]
        if agent != "Q-learning" and isinstance(judge.observation_space, Discrete):
            act = _remembered(act)
        played = [_episode(judge, act, seed * 1000 + i) for i in range(how.get("episodes", 1))]
        success.append(float(np.mean([reached for reached, _ in played])))
        lengths.append(float(np.mean([steps for _, steps in played])))

    record.at_checkpoint = evaluate
    run = Run(env, record, seed, task["gamma"], explore, chance, policy.append, how.get("settings", {}))
    with suppress(BudgetSpent):
        AGENTS[agent](run)
    # Before the first step of the agent, while options are being discovered, it knows nothing.
    early = [0.0] * (len(checkpoints) - len(success))
    return {"first_goal": record.first_goal, "success": early + success, "greedy_steps": lengths[-1]}


def _remembered(act: Act) -> Act:
    """A deterministic policy of numbered states, asked once per state: a policy that runs in a circle costs nothing."""
    known: dict[int, int] = {}

    def again(obs: Any, mask: Any) -> int:
        if obs not in known:
            known[obs] = act(obs, mask)
        return known[obs]

    return again


def _episode(env: Any, act: Act, seed: int) -> tuple[bool, int]:
    """Whether a greedy episode reaches the goal, and its primitive steps."""
    obs, info = env.reset(seed=seed)
    steps, over, terminated = 0, False, False
    while not over:
        obs, _, terminated, truncated, info = env.step(act(obs, info.get("action_mask")))
        steps += info.get("duration", 1)
        over = terminated or truncated
    return bool(terminated), steps
