"""Agents with skills in layouts never seen (docs/layouts.md).

``python -m studies layouts [--tasks DoorKey-8x8 ...] [--ways skills ...]`` needs the
extra ``sb3`` and MiniGrid. Every episode has a new layout, and MiniGrid's own limit.
What is learned is tested in 100 layouts whose seeds no other part of this repository
uses; what is learned in one of them is forgotten in the next. Each run adds a row to a
file, and runs that are in the file are not repeated.
"""

from __future__ import annotations

import argparse
import copy
import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.wrappers import FlattenObservation
from minigrid.wrappers import ImgObsWrapper
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import eigenoptions as eo
from eigenoptions.agents.sb3 import SMDPDiscounts, SMDPMaskableRolloutBuffer

FRAMES = 20_000
N_ENVS = 8
GAMMA = 0.99
N_SKILLS = 32

# Layouts of the test, and how many of them random choice is tested in.
FIRST_LAYOUT = 3_000_000
N_LAYOUTS = 100
N_RANDOM_LAYOUTS = 50

TASKS = {
    "DoorKey-8x8": "MiniGrid-DoorKey-8x8-v0",
    "MultiRoom-N4": "MiniGrid-MultiRoom-N4-S5-v1",
    "ObstructedMaze-1Dl": "MiniGrid-ObstructedMaze-1Dl-v0",
    "KeyCorridorS3R3": "MiniGrid-KeyCorridorS3R3-v0",
    "MultiRoom-N6": "MiniGrid-MultiRoom-N6-v0",
    "FourRooms": "MiniGrid-FourRooms-v0",
}

# Those of the trial that the page cites; they were not tuned.
SETTINGS: dict[str, Any] = {
    "n_steps": 64,
    "batch_size": 128,
    "n_epochs": 6,
    "learning_rate": 1e-3,
    "ent_coef": 0.01,
    "gae_lambda": 0.95,
    "gamma": GAMMA,
    "policy_kwargs": {"net_arch": [64, 64]},
}

# What ways without skills have in place of random choice among them.
NO_RANDOM = {"random_return": "", "random_deviation": "", "random_won": ""}

Chooser = Callable[[gym.Env[Any, Any], Any], int]


class StopAfterFrames(BaseCallback):
    """Ends training after a number of primitive steps."""

    def __init__(self, n_frames: int) -> None:
        super().__init__()
        self.n_left = n_frames

    def _on_step(self) -> bool:
        self.n_left -= sum(info.get("duration", 1) for info in self.locals["infos"])
        return self.n_left > 0


def main(arguments: Sequence[str]) -> None:
    """Run what is asked for, and add a row to the file after each run."""
    options = make_parser().parse_args(arguments)
    torch.set_num_threads(1)
    done = {(r["task"], r["way"], int(r["seed"])) for r in read_rows(options.out)}
    for seed in range(options.seeds):
        for task in options.tasks:
            for way in options.ways:
                if (task, way, seed) in done:
                    continue
                started = time.process_time()
                row = WAYS[way](task, seed, options.frames)
                row = {"task": task, "way": way, "seed": seed} | row
                row["cpu_seconds"] = round(time.process_time() - started)
                append_row(options.out, row)
                print(row, flush=True)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser("python -m studies layouts", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS)[:4])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["skills"])
    parser.add_argument("--seeds", type=int, default=10, help="training seeds")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of each run")
    parser.add_argument("--out", type=Path, default=Path("layouts.csv"), metavar="FILE")
    return parser


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of earlier runs."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Add a row to the file, with a header if it is the first."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


# Environments


def make_env(task: str, rules: eo.Rules | None = None) -> eo.OptionsWrapper:
    """An environment whose choices are the skills, by new rules or by given ones."""
    env = eo.MapWrapper(gym.make(f"minigrid:{TASKS[task]}"), rules=rules)
    return eo.OptionsWrapper(env, env.skills(N_SKILLS), GAMMA, primitives=False)


def test(
    task: str, choose: Chooser, n_layouts: int, make: Callable[[], gym.Env[Any, Any]]
) -> list[float]:
    """Return MiniGrid's own return in each layout: 1 - 0.9 steps / limit, or 0."""
    returns = []
    for layout in range(FIRST_LAYOUT, FIRST_LAYOUT + n_layouts):
        env = make()
        obs, _ = env.reset(seed=layout)
        env.action_space.seed(layout)
        is_over = False
        while not is_over:
            obs, reward, terminated, truncated, info = env.step(choose(env, obs))
            is_over = terminated or truncated
        # Only the last step pays, and pays MiniGrid's return.
        returns.append(float(info.get("primitive_return", reward)))
    return returns


def summarise(name: str, returns: list[float]) -> dict[str, float]:
    """Mean return, its standard deviation over layouts, and the share won."""
    return {
        f"{name}return": round(float(np.mean(returns)), 4),
        f"{name}deviation": round(float(np.std(returns)), 4),
        f"{name}won": round(float(np.mean(np.array(returns) > 0)), 4),
    }


# Ways to learn


def learn_skills(task: str, seed: int, n_frames: int, wins: int = 5) -> dict[str, Any]:
    """MaskablePPO over skills, after random choice until some episodes were won.

    The steps of random choice are part of its frames.
    """
    first = make_env(task)
    rules = first.get_wrapper_attr("rules")
    first.reset(seed=seed)
    first.action_space.seed(seed)
    n_before = 0
    if wins:
        n_before = eo.draw_until_won(first, wins, max_steps=n_frames)

    envs = [first, *(make_env(task, rules) for _ in range(N_ENVS - 1))]
    vector = DummyVecEnv([lambda env=env: env for env in envs])  # type: ignore[misc]
    # Seeds of training are far below those of the test.
    vector.seed(1000 * seed + 1)
    agent = MaskablePPO(
        "MlpPolicy",
        vector,
        seed=seed,
        rollout_buffer_class=SMDPMaskableRolloutBuffer,
        **SETTINGS,
    )
    if n_before < n_frames:
        callbacks = [SMDPDiscounts(), StopAfterFrames(n_frames - n_before)]
        agent.learn(10 * n_frames, callback=callbacks)

    def choose(env: gym.Env[Any, Any], obs: Any) -> int:
        masks = env.get_wrapper_attr("action_masks")()
        return int(agent.predict(obs, action_masks=masks)[0])

    def sample(env: gym.Env[Any, Any], obs: Any) -> int:
        return int(env.action_space.sample())

    def make() -> gym.Env[Any, Any]:
        return make_env(task, copy.deepcopy(rules))

    return {
        "frames": n_frames,
        "frames_before": n_before,
        **summarise("", test(task, choose, N_LAYOUTS, make)),
        **summarise("random_", test(task, sample, N_RANDOM_LAYOUTS, make)),
    }


def learn_skills_at_once(task: str, seed: int, n_frames: int) -> dict[str, Any]:
    """MaskablePPO over skills from the first step on."""
    return learn_skills(task, seed, n_frames, wins=0)


def learn_primitive(task: str, seed: int, n_frames: int) -> dict[str, Any]:
    """PPO over MiniGrid's own actions and its view, with five times the frames."""

    def make() -> gym.Env[Any, Any]:
        env = gym.make(f"minigrid:{TASKS[task]}")
        return FlattenObservation(ImgObsWrapper(env))

    agent = PPO("MlpPolicy", DummyVecEnv([make] * N_ENVS), seed=seed, **SETTINGS)
    agent.learn(5 * n_frames)

    def choose(env: gym.Env[Any, Any], obs: Any) -> int:
        return int(agent.predict(obs)[0])

    returns = test(task, choose, N_LAYOUTS, make)
    return {
        "frames": 5 * n_frames,
        "frames_before": 0,
        **summarise("", returns),
        **NO_RANDOM,
    }


def follow_way(task: str, seed: int, n_frames: int) -> dict[str, Any]:
    """No agent: the way to what pays, else to the unknown, learned in 1,000 frames."""
    n_frames = min(n_frames, 1_000)
    env = eo.MapWrapper(gym.make(f"minigrid:{TASKS[task]}"))
    env.reset(seed=seed)
    env.action_space.seed(seed)
    for _ in range(n_frames):
        _, _, terminated, truncated, _ = env.step(choose_way(env, None))
        if terminated or truncated:
            env.reset()

    def make() -> gym.Env[Any, Any]:
        rules = copy.deepcopy(env.rules)
        return eo.MapWrapper(gym.make(f"minigrid:{TASKS[task]}"), rules=rules)

    returns = test(task, choose_way, N_LAYOUTS, make)
    return {
        "frames": n_frames,
        "frames_before": 0,
        **summarise("", returns),
        **NO_RANDOM,
    }


def choose_way(env: gym.Env[Any, Any], obs: Any) -> int:
    """The next action of the way; a random one until motions are known."""
    rules = env.get_wrapper_attr("rules")
    if not rules.motions.is_ready:
        return int(env.action_space.sample())
    return int(env.get_wrapper_attr("found").option().act(obs))


WAYS: dict[str, Callable[[str, int, int], dict[str, Any]]] = {
    "skills": learn_skills,
    "skills at once": learn_skills_at_once,
    "primitive": learn_primitive,
    "follow": follow_way,
}
