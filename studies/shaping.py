"""A dense reward that respects walls, for agents of others (docs/planner.md).

``python -m studies shaping [--quick] [--seeds 10]`` needs
``pip install gymnasium-robotics``. Q-learning, DQN and PPO learn to reach a distant
goal in ``rooms:5x5``, DQN and PPO of Stable-Baselines3 also in PointMaze_Large, with
`eigenoptions.ShapedReward` and a potential of `eigenoptions.Planner`: log Z, the
commute time, minus the Euclidean distance, or none. Each is scaled to [0, 1], and the
goal gives reward 1: it resembles the value of a state.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium import wrappers
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.evaluation.intervals import mean_interval
from reproduction.lab import Lab, open_lab
from studies.potentials import compute_commute

POTENTIALS = ("log-z", "commute", "euclidean", "none")
GAMMA = 0.99

# Settings of each agent.
AGENTS: dict[str, dict[str, Any]] = {
    "Q-learning": {"step_size": 0.2},
    "DQN": {
        "learning_rate": 1e-3,
        "learning_starts": 500,
        "batch_size": 64,
        "target_update_interval": 500,
        "exploration_fraction": 0.2,
    },
    "PPO": {
        "learning_rate": 1e-3,
        "n_steps": 128,
        "batch_size": 256,
        "n_epochs": 10,
        "gae_lambda": 0.8,
    },
}

# The setting of an agent that is chosen for each task and potential on other seeds, and
# its values; the first of them where no run arrives. Potentials of neighbours differ by
# 0.01, which is little for a network: rewards are multiplied.
GRID: dict[str, tuple[str, tuple[float, ...]]] = {
    "Q-learning": ("epsilon", (0.05, 0.02, 0.2)),
    "DQN": ("reward_scale", (20.0, 5.0, 100.0)),
    "PPO": ("reward_scale", (100.0, 20.0, 500.0)),
}

# Steps of each agent in each task.
STEPS = {
    "rooms:5x5": {"Q-learning": 8_000, "DQN": 8_000, "PPO": 30_000},
    "PointMaze": {"DQN": 4_000, "PPO": 16_000},
}

# Start and goal of OGBench's five tasks in the large maze; one for each seed, in turn.
TASKS = (
    ((1, 1), (7, 10)),
    ((5, 4), (7, 1)),
    ((7, 4), (1, 10)),
    ((3, 8), (5, 4)),
    ((1, 1), (5, 4)),
)

# Forces on the ball of PointMaze, one for each action.
FORCES = np.array([(x, y) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])

# Frequencies of random Fourier features of a position.
FREQUENCIES = np.random.default_rng(0).normal(0.0, 4.0 * np.pi, (2, 64))

Env = gym.Env[Any, Any]


class Task(NamedTuple):
    """A task: environments, potentials, and what networks see.

    Attributes
    ----------
    make_env : callable
        Makes an environment.
    potentials : mapping
        From observations to numbers in [0, 1]; an array where these are states.
    encode : callable
        From an observation to the input of a network.
    """

    make_env: Callable[[], Env]
    potentials: Mapping[str, Any]
    encode: Callable[[Any], Any]


def main(arguments: Sequence[str]) -> None:
    """Train the agents, and write ``shaping.csv`` and a table to a folder."""
    options = make_parser().parse_args(arguments)
    with open_lab(options.out, quick=options.quick) as lab:
        results = pd.DataFrame(compare_potentials(lab, options.seeds))

    results.to_csv(options.out / "shaping.csv", index=False, float_format="%.6g")
    table = write_table(results)
    (options.out / "table.md").write_text(table)
    print(table)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser("python -m studies shaping", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one short run of each kind"
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="runs of each agent with each potential"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("shaping"), metavar="DIR", help="folder"
    )
    return parser


def compare_potentials(lab: Lab, n_seeds: int) -> list[dict[str, Any]]:
    """Train every agent with every potential in every task.

    The setting of each is chosen on seeds 100 and 101.
    """
    cases: list[dict[str, Any]] = [
        {
            "task": task,
            "agent": agent,
            "potential": potential,
            "steps": 1_000 if lab.quick else steps,
        }
        for task, agents in STEPS.items()
        for agent, steps in agents.items()
        for potential in POTENTIALS
    ]

    lab.describe("choosing settings")
    trial_seeds = [100] if lab.quick else [100, 101]
    trials = [
        {**case, "seed": seed, "setting": value}
        for case in cases
        for value in GRID[case["agent"]][1]
        for seed in trial_seeds
    ]
    best = choose_settings(pd.DataFrame(lab.pmap(run_agent, trials)))

    lab.describe("training")
    seeds = range(1 if lab.quick else n_seeds)
    calls = []
    for case in cases:
        setting = best[case["task"], case["agent"], case["potential"]]
        calls += [{**case, "seed": seed, "setting": setting} for seed in seeds]
    return lab.pmap(run_agent, calls)


def choose_settings(trials: pd.DataFrame) -> pd.Series:
    """The best setting by task, agent and potential.

    It has the highest success; of equal ones, the earliest first arrival.
    """
    case = ["task", "agent", "potential"]
    scores = trials.groupby([*case, "setting"], sort=False)
    means = scores[["success", "first_arrival"]].mean().reset_index()
    ranked = means.sort_values(
        ["success", "first_arrival"], ascending=[False, True], kind="stable"
    )
    return ranked.groupby(case).setting.first()


# One run


def run_agent(
    task: str, agent: str, potential: str, seed: int, steps: int, setting: float
) -> dict[str, Any]:
    """Train one agent, and count the episodes that reach the goal.

    `setting` is the value of what `GRID` varies.
    """
    if task == "rooms:5x5":
        opened = open_rooms()
    else:
        opened = open_point_maze(seed % len(TASKS))
    recorders: list[wrappers.RecordEpisodeStatistics[Any, Any]] = []

    def make_env() -> Env:
        recorder = wrappers.RecordEpisodeStatistics(
            opened.make_env(), buffer_length=steps
        )
        recorders.append(recorder)
        if potential == "none":
            return recorder
        return eo.ShapedReward(recorder, opened.potentials[potential], GAMMA)

    varied, _ = GRID[agent]
    settings = {**AGENTS[agent], varied: setting}
    if agent == "Q-learning":
        learn_table(make_env(), steps, seed, **settings)
    else:
        learn_with_sb3(agent, make_env, opened.encode, steps, seed, **settings)
    return {
        "task": task,
        "agent": agent,
        "potential": potential,
        "seed": seed,
        "steps": steps,
        "setting": setting,
        **summarize_episodes(recorders, steps),
    }


def summarize_episodes(
    recorders: Sequence[wrappers.RecordEpisodeStatistics[Any, Any]], steps: int
) -> dict[str, float]:
    """The step of the first arrival, and success in the last quarter, in percent.

    Environments that run side by side take a step together.
    """
    arrivals = []
    late = []
    for recorder in recorders:
        ends = len(recorders) * np.cumsum(recorder.length_queue)
        for end, gain in zip(ends.tolist(), recorder.return_queue, strict=True):
            arrives = gain > 0
            if arrives:
                arrivals.append(end)
            if end > 0.75 * steps:
                late.append(arrives)
    return {
        "first_arrival": min(arrivals, default=steps),
        "success": 100.0 * float(np.mean(late)) if late else 0.0,
    }


def learn_table(
    env: Env, steps: int, seed: int, step_size: float, epsilon: float
) -> None:
    """Q-learning; values begin at small random numbers, so that there are no ties."""
    assert isinstance(env.observation_space, Discrete)
    rng = np.random.default_rng(seed)
    q = rng.normal(0.0, 1e-3, (env.observation_space.n, 4))
    obs, _ = env.reset(seed=seed)
    for _ in range(steps):
        if rng.random() < epsilon:
            action = int(rng.integers(4))
        else:
            action = int(q[obs].argmax())

        next_obs, reward, terminated, truncated, _ = env.step(action)
        target = float(reward)
        if not terminated:
            target += GAMMA * q[next_obs].max()
        q[obs, action] += step_size * (target - q[obs, action])

        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()


def learn_with_sb3(
    agent: str,
    make_env: Callable[[], Env],
    encode: Callable[[Any], Any],
    steps: int,
    seed: int,
    reward_scale: float,
    **settings: Any,
) -> None:
    """An agent of Stable-Baselines3; PPO learns in eight copies of the environment."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make_encoded() -> Env:
        env = wrappers.TransformReward(
            make_env(), lambda reward: reward_scale * float(reward)
        )
        shape = encode(env.observation_space.sample()).shape
        space = Box(-np.inf, np.inf, shape, np.float32)
        encoded: Env = wrappers.TransformObservation(env, encode, space)
        return encoded

    torch.set_num_threads(1)
    n_copies = 8 if agent == "PPO" else 1
    envs = DummyVecEnv([make_encoded] * n_copies)
    make_model = getattr(stable_baselines3, agent)
    model = make_model(
        "MlpPolicy", envs, gamma=GAMMA, seed=seed, device="cpu", **settings
    )
    model.learn(steps)


# The tasks


def encode_positions(positions: FloatArray) -> NDArray[np.float32]:
    """Positions in [0, 1] with random Fourier features of them.

    Walls are sharp and networks are smooth.
    """
    angles = positions @ FREQUENCIES
    return np.concatenate(
        [positions, np.cos(angles), np.sin(angles)], axis=-1, dtype=np.float32
    )


@cache
def open_rooms() -> Task:
    """The rooms, with the start farthest from the goal."""
    maze = eo.maze("rooms:5x5")
    assert maze.successors is not None
    assert maze.coords is not None
    goal = maze.n_states - 1

    # The log has every transition once.
    states, actions = np.indices(maze.successors.shape).reshape(2, -1)
    log = (states, actions, maze.successors.ravel())
    values = {
        "log-z": eo.Planner(log).potential(goal),
        "commute": eo.Planner(log, potential=compute_commute).potential(goal),
        "euclidean": -np.linalg.norm(maze.coords - maze.coords[goal], axis=1),
    }
    to_goal = eo.Planner(log, potential="shortest").potential(goal)
    start = int(to_goal.argmin())
    rooms = eo.envs.MazeEnv(maze, start=start, goal=goal).mdp
    features = encode_positions(maze.coords / maze.coords.max(axis=0))

    def make_env() -> Env:
        return wrappers.TimeLimit(eo.envs.MazeEnv(rooms), 400)

    return Task(
        make_env=make_env,
        potentials={name: 1.0 - value / value.min() for name, value in values.items()},
        encode=features.__getitem__,
    )


@cache
def open_point_maze(number: int) -> Task:
    """A task of PointMaze_Large; nine forces, each held for ten steps."""
    robotics = import_module("gymnasium_robotics")
    gym.register_envs(robotics)
    layout = np.array(robotics.envs.maze.maps.LARGE_MAZE, dtype=object)
    free = np.argwhere(layout == 0)
    start, goal_cell = TASKS[number]
    layout[start] = "r"
    layout[goal_cell] = "g"

    def make_env() -> Env:
        env: Any = gym.make(
            "PointMaze_Large-v3",
            maze_map=layout.tolist(),
            continuing_task=False,
            max_episode_steps=200,
        )
        env.unwrapped.position_noise_range = 0.0
        env.unwrapped.point_env.frame_skip = 10
        return wrappers.TransformAction(env, FORCES.__getitem__, Discrete(len(FORCES)))

    env = make_env()
    before, after = record_walks(env, free)
    goal = env.reset()[0]["desired_goal"]
    size = np.abs(np.concatenate([before, after])).max(axis=0)
    farthest = np.linalg.norm(before - goal, axis=1).max()

    def measure_nearness(obs: Any) -> float:
        distance = np.linalg.norm(obs["achieved_goal"] - goal)
        return float(1.0 - distance / farthest)

    def encode(obs: Any) -> Any:
        position, speed = obs["observation"].reshape(2, 2)
        features = encode_positions(0.5 + 0.5 * position / size)
        return np.append(features, np.float32(speed / 5.0))

    return Task(
        make_env=make_env,
        potentials={
            "log-z": plan_potential(before, after, goal, "log-z"),
            "commute": plan_potential(before, after, goal, compute_commute),
            "euclidean": measure_nearness,
        },
        encode=encode,
    )


def record_walks(env: Env, cells: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Positions before and after the steps of short random walks from everywhere."""
    rng = np.random.default_rng(0)
    steps: list[tuple[FloatArray, FloatArray]] = []
    for cell in cells.repeat(20, axis=0):
        obs, _ = env.reset(options={"reset_cell": cell})
        path = [obs["achieved_goal"]]
        for action in rng.integers(len(FORCES), size=20):
            obs, *_ = env.step(action)
            path.append(obs["achieved_goal"])
        steps += pairwise(path)
    before, after = np.array(steps).transpose(1, 0, 2)
    return before, after


def plan_potential(
    before: FloatArray, after: FloatArray, goal: FloatArray, kind: Any
) -> Callable[[Any], float]:
    """A potential of a planner of displacements, scaled to [0, 1]."""
    planner = eo.Planner((before, after - before, after), 0.25, potential=kind)
    value = planner.potential(goal)
    least = value[np.isfinite(value)].min()
    scaled = 1.0 - np.minimum(value / least, 1.0)
    return lambda obs: float(scaled[planner.state(obs["achieved_goal"])])


# The table


def write_table(results: pd.DataFrame) -> str:
    """Means and 95% intervals over seeds, as Markdown."""
    lines = [
        "| task | agent | potential | seeds | setting | first arrival, steps "
        "| success in the last quarter, % |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for names, rows in results.groupby(["task", "agent", "potential"], sort=False):
        cells = [
            *names,
            str(len(rows)),
            f"{rows.setting.iloc[0]:g}",
            describe_mean(rows.first_arrival, rows.steps.max()),
            describe_mean(rows.success, 100.0),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def describe_mean(values: pd.Series, most: float) -> str:
    """A mean with its interval, which cannot leave 0 to `most`."""
    mean = values.mean()
    low = high = mean
    if len(values) > 1:
        low, high = np.clip(mean_interval(values.to_numpy()), 0, most)
    return f"{mean:,.0f} ({low:,.0f} to {high:,.0f})"
