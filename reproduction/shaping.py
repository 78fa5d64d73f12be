"""A dense reward that respects walls: potentials of `eigenoptions.Planner` for agents of Stable-Baselines3.

``python -m reproduction shaping [--quick] [--seeds 10]`` (docs/planner.md; ``pip install gymnasium-robotics``).
Q-learning, DQN and PPO learn to reach a distant goal in ``rooms:5x5``, DQN and PPO also in PointMaze_Large, with
`eigenoptions.ShapedReward` and a potential: log Z, the commute time, minus the Euclidean distance, or none. Each is
scaled to [0, 1], and the goal gives reward 1: it resembles the value of a state.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium import wrappers
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions.evaluation.intervals import mean_interval
from reproduction.lab import Lab, open_lab

POTENTIALS = ("log-z", "commute", "euclidean", "none")
AGENTS: dict[str, dict[str, Any]] = {
    "Q-learning": {"step_size": 0.2},
    "DQN": {
        "learning_rate": 1e-3,
        "learning_starts": 500,
        "batch_size": 64,
        "target_update_interval": 500,
    }
    | {"exploration_fraction": 0.2},
    "PPO": {
        "learning_rate": 1e-3,
        "n_steps": 128,
        "batch_size": 256,
        "n_epochs": 10,
        "gae_lambda": 0.8,
    },
}
# The setting of an agent that is chosen for each task and potential on other seeds, and its values; the first of them
# where no run arrives. Potentials of neighbours differ by 0.01, which is little for a network: rewards are multiplied.
GRID: dict[str, tuple[str, tuple[float, ...]]] = {
    "Q-learning": ("epsilon", (0.05, 0.02, 0.2)),
    "DQN": ("reward_scale", (20.0, 5.0, 100.0)),
    "PPO": ("reward_scale", (100.0, 20.0, 500.0)),
}
STEPS = {
    "rooms:5x5": {"Q-learning": 8_000, "DQN": 8_000, "PPO": 30_000},
    "PointMaze": {"DQN": 4_000, "PPO": 16_000},
}
GAMMA = 0.99
# Start and goal of OGBench's five tasks in the large maze; one for each seed, in turn.
TASKS = (
    ((1, 1), (7, 10)),
    ((5, 4), (7, 1)),
    ((7, 4), (1, 10)),
    ((3, 8), (5, 4)),
    ((1, 1), (5, 4)),
)
FORCES = np.array([(x, y) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
FREQUENCIES = np.random.default_rng(0).normal(0.0, 4.0 * np.pi, (2, 64))


def main(arguments: Sequence[str]) -> None:
    """Train the agents, and write ``shaping.csv`` and a table to a folder."""
    parser = argparse.ArgumentParser(
        "python -m reproduction shaping", description=__doc__
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short run of each kind"
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="runs of each agent with each potential"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("shaping"), metavar="DIR", help="folder"
    )
    options = parser.parse_args(arguments)
    with open_lab(options.out, quick=options.quick) as lab:
        results = pd.DataFrame(compare(lab, options.seeds))
    results.to_csv(options.out / "shaping.csv", index=False, float_format="%.6g")
    (options.out / "table.md").write_text(write_table(results))
    print(write_table(results))


def compare(lab: Lab, seeds: int) -> list[dict[str, Any]]:
    """Choose the setting of each agent for each task and potential on seeds 100 and 101, and train with it."""
    cases = [
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
    trials = [
        case | {"seed": seed, "setting": value}
        for case in cases
        for value in GRID[case["agent"]][1]
        for seed in ([100] if lab.quick else [100, 101])
    ]
    scores = pd.DataFrame(lab.pmap(run, trials)).groupby(
        ["task", "agent", "potential", "setting"], sort=False
    )
    means = (
        scores[["success", "first_arrival"]]
        .mean()
        .reset_index()
        .sort_values(
            ["success", "first_arrival"], ascending=[False, True], kind="stable"
        )
    )
    best = means.groupby(["task", "agent", "potential"]).setting.first()
    lab.describe("training")
    jobs = [
        case
        | {
            "seed": seed,
            "setting": best[case["task"], case["agent"], case["potential"]],
        }
        for case in cases
        for seed in range(1 if lab.quick else seeds)
    ]
    return lab.pmap(run, jobs)


def run(
    task: str, agent: str, potential: str, seed: int, steps: int, setting: float
) -> dict[str, Any]:
    """Train one agent, with `setting` for what `GRID` varies, and count the episodes that reach the goal."""
    settings = AGENTS[agent] | {GRID[agent][0]: setting}
    make, values, encode = (
        open_rooms() if task == "rooms:5x5" else open_point_maze(seed % len(TASKS))
    )
    recorders: list[wrappers.RecordEpisodeStatistics[Any, Any]] = []

    def make_env() -> gym.Env[Any, Any]:
        recorders.append(wrappers.RecordEpisodeStatistics(make(), buffer_length=steps))
        shape = potential != "none"
        return (
            eo.ShapedReward(recorders[-1], values[potential], GAMMA)
            if shape
            else recorders[-1]
        )

    if agent == "Q-learning":
        learn_table(make_env(), steps, seed, **settings)
    else:
        learn_with_sb3(agent, make_env, encode, steps, seed, **settings)
    ends = [
        (len(recorders) * step, gain > 0)
        for recorder in recorders
        for step, gain in zip(
            np.cumsum(recorder.length_queue).tolist(),
            recorder.return_queue,
            strict=True,
        )
    ]
    first = min([step for step, arrived in ends if arrived], default=steps)
    late = [arrived for step, arrived in ends if step > 0.75 * steps]
    job = {
        "task": task,
        "agent": agent,
        "potential": potential,
        "seed": seed,
        "steps": steps,
    }
    return (
        job
        | {"setting": setting}
        | {
            "first_arrival": first,
            "success": 100.0 * float(np.mean(late)) if late else 0.0,
        }
    )


def learn_table(
    env: gym.Env[Any, Any], steps: int, seed: int, step_size: float, epsilon: float
) -> None:
    """Q-learning; values begin at small random numbers, so that there are no ties."""
    rng = np.random.default_rng(seed)
    q = rng.normal(0.0, 1e-3, (env.observation_space.n, 4))  # type: ignore[attr-defined]
    obs, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = (
            int(rng.integers(4)) if rng.random() < epsilon else int(q[obs].argmax())
        )
        next_obs, reward, terminated, truncated, _ = env.step(action)
        target = float(reward) + GAMMA * (not terminated) * q[next_obs].max()
        q[obs, action] += step_size * (target - q[obs, action])
        obs = env.reset()[0] if terminated or truncated else next_obs


def learn_with_sb3(
    agent: str,
    make: Callable[[], Any],
    encode: Any,
    steps: int,
    seed: int,
    reward_scale: float,
    **settings: Any,
) -> None:
    """An agent of Stable-Baselines3, of features of the position; PPO learns in eight copies of the environment."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make_encoded() -> Any:
        env = wrappers.TransformReward(
            make(), lambda reward: reward_scale * float(reward)
        )
        features = Box(
            -np.inf, np.inf, encode(env.observation_space.sample()).shape, np.float32
        )
        return wrappers.TransformObservation(env, encode, features)

    torch.set_num_threads(1)
    envs = DummyVecEnv([make_encoded] * (8 if agent == "PPO" else 1))
    model = getattr(stable_baselines3, agent)
    model("MlpPolicy", envs, gamma=GAMMA, seed=seed, device="cpu", **settings).learn(
        steps
    )


def encode_positions(positions: Any) -> NDArray[np.float32]:
    """Positions in [0, 1] with random Fourier features, since walls are sharp and networks are smooth."""
    angles = positions @ FREQUENCIES
    return np.concatenate(
        [positions, np.cos(angles), np.sin(angles)], axis=-1, dtype=np.float32
    )


@cache
def open_rooms() -> tuple[Callable[[], Any], dict[str, Any], Callable[[Any], Any]]:
    """The rooms with the start farthest from the goal: environments, potentials, and the features of a state."""
    maze: Any = eo.maze("rooms:5x5")
    states, actions = np.indices(maze.successors.shape).reshape(2, -1)
    log, goal = (states, actions, maze.successors.ravel()), maze.n_states - 1
    values = {
        kind: eo.Planner(log, potential=kind).potential(goal) for kind in POTENTIALS[:2]
    }
    values["euclidean"] = -np.linalg.norm(maze.coords - maze.coords[goal], axis=1)
    start = int(eo.Planner(log, potential="shortest").potential(goal).argmin())
    rooms = eo.envs.MazeEnv(maze, start=start, goal=goal).mdp
    features = encode_positions(maze.coords / maze.coords.max(axis=0))
    potentials = {name: 1.0 - value / value.min() for name, value in values.items()}
    return (
        lambda: wrappers.TimeLimit(eo.envs.MazeEnv(rooms), 400),
        potentials,
        features.__getitem__,
    )


@cache
def open_point_maze(
    task: int,
) -> tuple[Callable[[], Any], dict[str, Any], Callable[[Any], Any]]:
    """The same for a task of PointMaze_Large; nine forces, each held for ten steps, and at most 200 of them."""
    robotics: Any = import_module("gymnasium_robotics")
    gym.register_envs(robotics)
    layout: Any = np.array(robotics.envs.maze.maps.LARGE_MAZE, dtype=object)
    free, (layout[TASKS[task][0]], layout[TASKS[task][1]]) = (
        np.argwhere(layout == 0),
        "rg",
    )

    def make() -> gym.Env[Any, Any]:
        settings = {
            "maze_map": layout.tolist(),
            "continuing_task": False,
            "max_episode_steps": 200,
        }
        env: Any = gym.make("PointMaze_Large-v3", **settings)
        env.unwrapped.position_noise_range, env.unwrapped.point_env.frame_skip = 0.0, 10
        return wrappers.TransformAction(env, FORCES.__getitem__, Discrete(len(FORCES)))

    # The log: short random walks from everywhere. What is planned are displacements.
    env, rng, log = make(), np.random.default_rng(0), list[Any]()
    for cell in free.repeat(20, axis=0):
        way = [env.reset(options={"reset_cell": cell})[0]["achieved_goal"]]
        way += [
            env.step(action)[0]["achieved_goal"]
            for action in rng.integers(len(FORCES), size=20)
        ]
        log += pairwise(way)
    before, after = np.array(log).transpose(1, 0, 2)
    goal = env.reset()[0]["desired_goal"]
    size = np.abs(np.concatenate([before, after])).max(axis=0)

    def scale(kind: str) -> Callable[[Any], float]:
        planner = eo.Planner((before, after - before, after), 0.25, potential=kind)
        value = planner.potential(goal)
        value = 1.0 - np.minimum(value / value[np.isfinite(value)].min(), 1.0)
        return lambda obs: float(value[planner.state(obs["achieved_goal"])])

    def encode(obs: Any) -> Any:
        position, speed = obs["observation"].reshape(2, 2)
        return np.append(
            encode_positions(0.5 + 0.5 * position / size), np.float32(speed / 5.0)
        )

    potentials: dict[str, Any] = {kind: scale(kind) for kind in POTENTIALS[:2]}
    farthest = np.linalg.norm(before - goal, axis=1).max()
    potentials["euclidean"] = lambda obs: (
        1.0 - np.linalg.norm(obs["achieved_goal"] - goal) / farthest
    )
    return make, potentials, encode


def write_table(results: pd.DataFrame) -> str:
    """Means and 95% intervals over seeds, as Markdown."""
    lines = [
        "| task | agent | potential | seeds | setting | first arrival, steps | success in the last quarter, % |"
    ]
    lines.append("|---|---|---|--:|--:|--:|--:|")
    for names, rows in results.groupby(["task", "agent", "potential"], sort=False):
        cells = [str(len(rows)), f"{rows.setting.iloc[0]:g}"]
        for column, most in (("first_arrival", rows.steps.max()), ("success", 100.0)):
            interval = (
                mean_interval(rows[column].to_numpy())
                if len(rows) > 1
                else (rows[column].mean(),) * 2
            )
            cells.append(
                "{:,.0f} ({:,.0f} to {:,.0f})".format(
                    rows[column].mean(), *np.clip(interval, 0, most)
                )
            )
        lines.append(f"| {' | '.join(names)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
