"""What OptionsWrapper adds to an environment's own time, per primitive step: ``python benchmarks/wrapper.py``.

First, how fast our mazes step beside Gymnasium's own small environments, through `gymnasium.make` as users call it.

Decisions are made once and then replayed: through the wrapper, and the very same primitive steps (and resets) without
it. The ratio is of the least of many short rounds, taken in turn, in CPU time: a long one is disturbed by whatever else
the machine does. Four ways to decide: "options" takes one of the options that may start (a primitive action where there
is none), "all" is uniform over everything the mask allows, "sample" is ``action_space.sample()`` (an option in one
decision of twenty), "actions" takes no option. In the last every step pays the fixed cost of a decision (a mask, the
entries of info), in our mazes and in an environment of Gymnasium.

Last, `OptionsVectorWrapper` against the same number of single wrappers in a loop, in primitive steps per second: both
read the next decision of a state from the same table. "Arrays only" is the rate of a step that made the arrays it
returns and did nothing else: no vector environment with these results can be faster.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import record

import eigenoptions as eo
from eigenoptions.envs import OptionsVectorWrapper, OptionsWrapper

LIMIT = 1.20
# Least gain of the vector wrapper over single ones, and the number of copies from which it is an aim.
GAIN, AIM_COPIES = 5.0, 64
DECISIONS, ROUNDS = (1_000, 3) if record.QUICK else (10_000, 9)
# Of the replays with and without options.
REPLAYED, REPLAYS = (500, 6) if record.QUICK else (1_000, 90)
THEIRS = ("FrozenLake8x8", "CliffWalking", "Taxi")


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Writes down the primitive actions; None for a reset."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.taken: list[int | None] = []

    def reset(self, **given: Any) -> Any:  # noqa: D102
        self.taken.append(None)
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:  # noqa: D102
        self.taken.append(int(action))
        return self.env.step(action)


def replay(env: gym.Env[Any, Any], actions: Sequence[int | None]) -> float:
    step, reset = env.step, env.reset
    begin = time.process_time()
    for action in actions:
        if action is None:
            reset()
        else:
            step(action)
    return time.process_time() - begin


def decide(env: OptionsWrapper, choose: Callable[[Any], int]) -> list[int | None]:
    decisions: list[int | None] = []
    over = True
    for _ in range(REPLAYED):
        if over:
            decisions.append(None)
            _, info = env.reset(seed=0 if len(decisions) == 1 else None)
        action = choose(info["action_mask"])
        decisions.append(action)
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return decisions


def measure(name: str, n_options: int, limit: int | None, among: str) -> float:
    options = eo.discover(eo.maze(name), n_options=n_options)
    rng = np.random.default_rng(0)

    def env() -> gym.Env[Any, Any]:
        return gym.make("eigenoptions/Maze-v0", maze=name, max_episode_steps=limit)

    recorder = Recorder(env())
    env_with_options = OptionsWrapper(recorder, options)
    env_with_options.action_space.seed(0)

    def choose(mask: np.ndarray) -> int:
        if among == "sample":
            return int(env_with_options.action_space.sample())
        if among == "actions":
            return int(rng.integers(options.n_actions))
        allowed = np.flatnonzero(mask)
        skills = allowed[allowed >= (options.n_actions if among == "options" else 0)]
        return int(rng.choice(skills if len(skills) else allowed))

    decisions = decide(env_with_options, choose)
    bare, wrapped = env(), OptionsWrapper(env(), options)
    own, ours = [], []
    for _ in range(REPLAYS):
        own.append(replay(bare, recorder.taken))
        ours.append(replay(wrapped, decisions))
    steps = sum(action is not None for action in recorder.taken)
    bare_us, wrapped_us = min(own) / steps * 1e6, min(ours) / steps * 1e6
    cells = (name, among, limit or "none", f"{steps / REPLAYED:.2f}", f"{bare_us:.3f}", f"{wrapped_us:.3f}")
    print(*(f"{cell:>14}" for cell in (*cells, f"{wrapped_us / bare_us:.3f}")))
    return wrapped_us / bare_us


def stepping() -> None:
    """Random steps of small tables, ours and Gymnasium's, in turns."""
    rng = np.random.default_rng(0)
    steps = DECISIONS * 3

    def rate(env: gym.Env[Any, Any]) -> float:
        actions = rng.integers(env.action_space.n, size=steps).tolist()
        begin = time.process_time()
        env.reset(seed=0)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return steps / (time.process_time() - begin)

    ours = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=1000)
    for name in THEIRS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the newest version is taken, which is what we want
            theirs = gym.make(name, max_episode_steps=1000)
        pairs = [(rate(ours), rate(theirs)) for _ in range(3)]
        best = max(a for a, _ in pairs), max(b for _, b in pairs)
        assert theirs.spec is not None
        record.row("FourRooms-v0, steps with resets", *best, f"Gymnasium {theirs.spec.id}", unit="steps/s")


def theirs() -> None:
    """The cost of a decision in an environment of Gymnasium, by its own actions, in turns."""
    options = eo.OptionSet(np.zeros((8, 64), dtype=int), 4)
    bare, wrapped = gym.make("FrozenLake8x8-v1"), OptionsWrapper(gym.make("FrozenLake8x8-v1"), options)
    actions: list[int | None] = [None]
    actions += [a for _ in range(DECISIONS // 10) for a in (3, 3, 0, 0, None)]
    pairs = [(replay(bare, actions), replay(wrapped, actions)) for _ in range(ROUNDS)]
    ratio = min(b for _, b in pairs) / min(a for a, _ in pairs)
    record.aim("OptionsWrapper over FrozenLake8x8, choosing actions", ratio, most=LIMIT)


def menu(options: eo.OptionSet, chance: float | None, rows: int = 64) -> np.ndarray:
    """``(rows, S)`` random decisions: any that may be taken, or an option with this chance."""
    rng = np.random.default_rng(0)
    table = rng.integers(options.n_actions, size=(rows, options.n_states))
    for s in range(options.n_states):
        skills = options.n_actions + np.flatnonzero(options.initiation[:, s])
        share = len(skills) / (len(skills) + options.n_actions) if chance is None else chance
        use = rng.random(rows) < (share if len(skills) else 0)
        table[use, s] = rng.choice(skills, size=int(use.sum())) if use.any() else 0
    return table


def vector(copies: int, chance: float | None) -> float:
    """Primitive steps per second of single wrappers and of the vector wrapper, in turns."""
    options = eo.discover(eo.maze("four-rooms"), n_options=8)
    table = menu(options, chance)
    rows, given = table.tolist(), {"max_episode_steps": 1000}
    singles = [OptionsWrapper(gym.make("eigenoptions/FourRooms-v0", **given), options) for _ in range(copies)]
    envs = OptionsVectorWrapper(gym.make_vec("eigenoptions/FourRooms-v0", copies, **given), options)
    rounds = range(ROUNDS // 2 + 1)
    rates = [(_singles(singles, rows), _batches(envs, list(table)), _arrays(envs)) for _ in rounds]
    way = "uniformly" if chance is None else f"with a chance of {chance}"
    slow, fast, most = (max(rate) for rate in zip(*rates, strict=True))
    what = f"{copies} copies of four rooms, options chosen {way}"
    record.row(f"arrays only, {what}", most, slow, "single wrappers in a loop", unit="steps/s")
    return record.row(
        f"OptionsVectorWrapper, {what}", fast, slow, "single wrappers in a loop", unit="steps/s"
    )


def _singles(envs: list[OptionsWrapper], rows: list[list[int]]) -> float:
    obs = [env.reset(seed=i)[0] for i, env in enumerate(envs)]
    steps, begin = 0, time.process_time()
    for t in range(max(2, DECISIONS // 2 // len(envs))):
        row = rows[t % len(rows)]
        for i, env in enumerate(envs):
            after, _, terminated, truncated, info = env.step(row[obs[i]])
            steps += info["duration"]
            obs[i] = env.reset()[0] if terminated or truncated else after
    return steps / (time.process_time() - begin)


def _arrays(envs: OptionsVectorWrapper) -> float:
    """Steps per second if a step only made the arrays that it returns."""
    count = max(100, 10 * DECISIONS // envs.num_envs)
    begin = time.process_time()
    for _ in range(count):
        parts = envs._results(5)[:3]
        made = [part[i] for part in parts for i in range(len(part))]
    assert len(made) == 13
    return count * envs.num_envs / (time.process_time() - begin)


def _batches(envs: OptionsVectorWrapper, table: list[np.ndarray]) -> float:
    obs, _ = envs.reset(seed=0)
    # The first step may compile.
    obs = envs.step(table[0][obs])[0]
    count = max(100, 10 * DECISIONS // envs.num_envs)
    begin = time.process_time()
    for t in range(count):
        obs = envs.step(table[t % len(table)][obs])[0]
    return count * envs.num_envs / (time.process_time() - begin)


def main() -> int:
    stepping()
    theirs()
    gains = {
        (copies, chance): vector(copies, chance)
        for copies in ((16, 256) if record.QUICK else (16, 64, 256, 1024))
        for chance in (None, 0.05)
    }
    least = min(gain for (copies, _), gain in gains.items() if copies >= AIM_COPIES)
    record.aim(f"OptionsVectorWrapper over single wrappers, {AIM_COPIES} copies or more", least, least=GAIN)
    heads = ("maze", "choose among", "time limit", "steps/decision", "own us/step", "with options", "ratio")
    print(*(f"{head:>14}" for head in heads))
    worst = dict.fromkeys(("options", "all", "sample", "actions"), 0.0)
    for among in worst:
        for name in ("four-rooms",) if record.QUICK else ("four-rooms", "open-room", "i-maze"):
            for limit in (1000,) if record.QUICK else (None, 1000):
                worst[among] = max(worst[among], measure(name, 8, limit, among))
    for among, ratio in worst.items():
        name = f"OptionsWrapper over the bare environment, choosing {among}, worst"
        record.aim(name, ratio, most=LIMIT)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
