"""`OptionsVectorWrapper` decides as single wrappers do, its slow twins."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import eigenoptions as eo
from eigenoptions.envs import (
    MazeEnv,
    OptionsVectorSpace,
    OptionsVectorWrapper,
    OptionsWrapper,
)
from eigenoptions.features import Raw
from eigenoptions.options.linear import LinearOptionSet
from tests.tables import make_options

N_ENVS = 5
NUMBERS = ("option", "duration")
RETURNS = ("discount", "primitive_return")
MAZE = "S.......\n.#######\n........\n.......G"


class StateReward(gym.Wrapper[Any, Any, Any, Any]):
    """A reward that depends on state and step."""

    def reset(self, **settings: Any) -> Any:
        self.steps = 0
        return self.env.reset(**settings)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, (int(obs) % 3) * 0.5 + self.steps % 2, terminated, truncated, info


@pytest.fixture(scope="module")
def options() -> eo.OptionSet:
    return eo.discover(eo.maze(MAZE), n_options=6)


def make_one() -> gym.Env[Any, Any]:
    # Without a start in the map, every episode begins in a random state.
    return TimeLimit(StateReward(MazeEnv(MAZE.replace("S", "."))), 37)


def wrap(env: Any, options: Any, *args: Any, **settings: Any) -> OptionsVectorWrapper:
    """With a fixed option chance, since the automatic one simulates."""
    return OptionsVectorWrapper(
        env, options, *args, **{"option_chance": 0.05, **settings}
    )


def make_envs(
    n: int = N_ENVS, maze: str = MAZE, mode: AutoresetMode = AutoresetMode.NEXT_STEP
) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: MazeEnv(maze)] * n, autoreset_mode=mode)


def summarize(
    before: Any,
    action: Any,
    obs: Any,
    reward: Any,
    terminated: Any,
    truncated: Any,
    info: Any,
) -> tuple[list[int], list[float]]:
    """What came of a decision: what must be equal, and what is computed in floats."""
    choice = [before, action, obs, *(info[name] for name in NUMBERS)]
    returns = [reward, *(info[name] for name in RETURNS)]
    return [*map(int, choice), int(terminated), int(truncated)], [*map(float, returns)]


def decide_singly(
    options: Any, seed: int, count: int
) -> list[list[tuple[list[int], list[float]]]]:
    """What each of the single wrappers returns for random available decisions."""
    decisions = []
    for i in range(N_ENVS):
        env, rng = (
            OptionsWrapper(make_one(), options, gamma=0.9, option_chance=0.05),
            np.random.default_rng((seed, i)),
        )
        obs, info = env.reset(seed=seed + i)
        decisions.append([])
        for _ in range(count):
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            before, (obs, reward, terminated, truncated, info) = obs, env.step(action)
            decisions[-1].append(
                summarize(before, action, obs, reward, terminated, truncated, info)
            )
            if terminated or truncated:
                obs, info = env.reset()
    return decisions


@pytest.mark.parametrize("kind", ["table", "objects"])
@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_decisions_equal_those_of_single_wrappers(
    options: eo.OptionSet, autoreset: AutoresetMode, kind: str
) -> None:
    expected = decide_singly(options, 7, 60)
    inner = SyncVectorEnv([make_one] * N_ENVS, autoreset_mode=autoreset)
    envs = wrap(inner, options if kind == "table" else list(options), gamma=0.9)
    rngs = [np.random.default_rng((7, i)) for i in range(N_ENVS)]
    obs, infos = envs.reset(seed=7)
    decisions: list[list[tuple[list[int], list[float]]]] = [[] for _ in range(N_ENVS)]
    actions, decides = np.zeros(N_ENVS, dtype=int), np.ones(N_ENVS, dtype=bool)
    resets = ~decides
    for _ in range(600):
        available = np.column_stack([np.ones((N_ENVS, 4)), options.policy.T[obs] >= 0])
        for i, mask in enumerate(infos["action_mask"]):
            if decides[i]:
                np.testing.assert_array_equal(mask, available[i])
                actions[i] = rngs[i].choice(np.flatnonzero(mask))
            elif not resets[i]:
                assert np.flatnonzero(mask).tolist() == [
                    actions[i]
                ]  # a running option leaves no choice
        # A running option ignores the action.
        obs, reward, terminated, truncated, infos = envs.step(
            np.where(decides, actions, np.arange(N_ENVS))
        )
        ended = terminated | truncated
        for i in np.flatnonzero(infos["complete"]):
            is_same_step = autoreset == AutoresetMode.SAME_STEP and ended[i]
            last = infos["final_obs"][i] if is_same_step else obs[i]
            parts = (
                infos["begin_obs"][i],
                infos["choice"][i],
                last,
                reward[i],
                terminated[i],
                truncated[i],
            )
            decisions[i].append(
                summarize(*parts, {name: infos[name][i] for name in NUMBERS + RETURNS})
            )
        assert (reward[~infos["complete"]] == 0).all()
        decides = infos["complete"] | (infos["duration"] == 0)
        if autoreset == AutoresetMode.NEXT_STEP:
            # The next step of these environments is a reset, which ignores the action.
            resets = ended
            decides &= ~resets
        elif autoreset == AutoresetMode.DISABLED and ended.any():
            obs, reset_infos = envs.reset(options={"reset_mask": ended})
            infos["action_mask"] = reset_infos["action_mask"]
    for ours, theirs in zip(decisions, expected, strict=True):
        our_choices, our_returns = zip(*ours[:60], strict=True)
        their_choices, their_returns = zip(*theirs, strict=True)
        assert our_choices == their_choices
        np.testing.assert_allclose(our_returns, their_returns, rtol=1e-12)


def test_unavailable_option_takes_one_random_action_by_the_seed(
    options: eo.OptionSet,
) -> None:
    successors = eo.maze(MAZE).successors

    def walk(seed: int) -> np.ndarray:
        envs = wrap(make_envs(8), options)
        obs, infos = envs.reset(seed=seed)
        path = []
        for i in range(120):
            mask, actions = infos["action_mask"], np.full(8, 4 + i % 6)
            before, (obs, _, _, _, infos) = obs, envs.step(actions)
            begins = (infos["duration"] > 0) & (mask.sum(axis=1) > 1)
            np.testing.assert_array_equal(
                infos["unavailable"][begins], mask[np.arange(8), actions][begins] == 0
            )
            is_step = infos["duration"] > 0
            moved = successors[before, infos["primitive_action"]]
            np.testing.assert_array_equal(moved[is_step], obs[is_step])
            path.append(obs)
        return np.array(path)

    assert (walk(1) == walk(1)).all()
    assert (walk(1) != walk(2)).any()


class Right:
    """Right until the wall, with patience."""

    stop_chance = 0.0

    def __init__(self, patience: int | None = None) -> None:
        self.patience = patience

    def act(self, obs: Any) -> int:
        return 1

    def potential(self, obs: Any) -> float:
        return float(min(obs, 4))


def test_patience_ends_options_as_in_single_wrappers() -> None:
    weights = [[[0.0], [1.0], [0.0], [0.0]]]
    learned = LinearOptionSet(
        [eo.Purpose([1.0])], Raw(), 4, weights=weights
    ).with_termination(patience=3)
    batch, single = (
        (lambda s: np.minimum(s, 4.0)[:, None]),
        (lambda s: np.minimum([float(s)], 4.0)),
    )
    for options, first, states in (
        ([Right(3), Right()], 4, (None, None)),
        (learned, 1, (batch, single)),
    ):
        maze = "S" + "." * 20
        envs = wrap(make_envs(2, maze), options, state=states[0], max_duration=9)
        env = OptionsWrapper(
            MazeEnv(maze), options, state=states[1], max_duration=9, option_chance=0.05
        )
        env.reset(seed=0)
        envs.reset(seed=0)
        for action in (1, first, 4):
            *_, info = env.step(action)
            steps, complete = 0, False
            while not complete:
                *_, infos = envs.step(np.array([action, 0]))
                steps, complete = steps + 1, infos["complete"][0]
            assert steps == info["duration"] == infos["duration"][0]


def test_stop_chance_ends_sampled_options_only() -> None:
    endless = make_options(np.ones((1, 3), dtype=int), 4)
    settings = {"option_chance": 1.0, "stop_chance": 0.25, "max_duration": 50}
    envs = wrap(make_envs(20, "S.."), endless, **settings)
    for is_sampled in (True, False):
        envs.reset(seed=0)
        durations = []
        for _ in range(200):
            actions = envs.action_space.sample() if is_sampled else np.full(20, 4)
            *_, infos = envs.step(actions)
            durations += infos["duration"][infos["complete"]].tolist()
        if is_sampled:
            share = np.mean(np.array(durations) == 1)
            assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / len(durations))
        else:
            assert set(durations) == {50}


def test_reset_mask_ends_the_options_of_some_environments(
    options: eo.OptionSet,
) -> None:
    envs = wrap(make_envs(6, mode=AutoresetMode.DISABLED), options)
    rng, n_continued = np.random.default_rng(0), 0
    with pytest.raises(gym.error.ResetNeeded):
        envs.reset(options={"reset_mask": np.arange(6) == 0})
    envs.reset(seed=0)
    for i in range(200):
        _, _, terminated, _, infos = envs.step(rng.integers(10, size=6))
        mask, reset_mask = infos["action_mask"], (np.arange(6) == i % 6) | terminated
        *_, reset_infos = envs.reset(options={"reset_mask": reset_mask.copy()})
        assert (reset_infos["action_mask"][reset_mask, :4] == 1).all()
        continues = ~reset_mask & (mask.sum(axis=1) == 1)
        assert (reset_infos["action_mask"][continues] == mask[continues]).all()
        n_continued += int(continues.sum())
    assert n_continued > 10


def test_samples_are_available_options_with_option_chance(
    options: eo.OptionSet,
) -> None:
    envs = wrap(make_envs(400), options, option_chance=0.25)
    space = envs.action_space
    assert space == MultiDiscrete([10] * 400)
    _, infos = envs.reset(seed=0)
    space.seed(0)
    for _ in range(20):
        actions = space.sample()
        assert space.contains(actions)
        assert infos["action_mask"][np.arange(400), actions].all()
        *_, infos = envs.step(actions)
    envs.reset(seed=0)
    share = np.mean([(space.sample() >= 4).mean() for _ in range(50)])
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
    alone = pickle.loads(pickle.dumps(space))
    assert alone.sample().max() == 9  # knows no masks
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=np.ones(3, dtype=np.int8))
    assert (
        OptionsVectorSpace(4, 6, 3).sample(mask=np.eye(10, dtype=np.int8)[[7, 7, 7]])
        == 7
    ).all()


def test_mask_of_the_environment_is_kept() -> None:
    envs = wrap(
        gym.make_vec("Taxi-v4", 3), make_options(np.zeros((2, 500), dtype=int), 6)
    )
    bare = gym.make_vec("Taxi-v4", 3)
    masks = envs.reset(seed=0)[1]["action_mask"], bare.reset(seed=0)[1]["action_mask"]
    np.testing.assert_array_equal(masks[0][:, :6], masks[1])
    *_, infos = envs.step(np.array([0, 1, 6]))
    *_, bare_infos = bare.step(np.array([0, 1, 0]))
    np.testing.assert_array_equal(
        infos["action_mask"][:2, :6], bare_infos["action_mask"][:2]
    )
    assert infos["action_mask"][2].tolist() == [0] * 6 + [1, 0]
    assert envs.action_masks().dtype == np.bool_


class Faulty(gym.vector.VectorWrapper):
    """Replaces one part of what a step returns."""

    part, value = 1, 0.0

    def step(self, actions: Any) -> Any:
        outcome = list(self.env.step(actions))
        outcome[self.part] = self.value
        return tuple(outcome)


@pytest.mark.parametrize(
    ("part", "value", "word"),
    [
        (0, np.full(3, -1), "observations"),
        (0, np.zeros((3, 1), dtype=int), "observations"),
        (0, np.full(3, 25), "observations"),
        (1, np.zeros(13), "rewards"),
        (1, np.zeros(1), "rewards"),
        (1, np.zeros((3, 1)), "rewards"),
        (2, np.zeros(2, dtype=bool), "terminated"),
        (3, np.zeros(4, dtype=bool), "truncated"),
    ],
)
def test_step_checks_what_the_environment_returns(
    options: eo.OptionSet, part: int, value: Any, word: str
) -> None:
    inner = Faulty(make_envs(3))
    envs = wrap(inner, options)
    envs.reset(seed=0)
    inner.part, inner.value = part, value
    with pytest.raises(ValueError, match=word):
        envs.step(np.array([0, 1, 4]))


def test_wrong_argument_raises(options: eo.OptionSet) -> None:
    mazes = make_envs(3)
    envs = wrap(mazes, options)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(3, dtype=int))
    envs.reset(seed=0)
    for actions in ([0, 1, 10], [0, -1, 0], [0.0, 1.0, 2.0], [0, 1]):
        with pytest.raises(ValueError, match="actions"):
            envs.step(np.array(actions))
    with pytest.raises(ValueError, match="states"):
        wrap(make_envs(2, "S.."), options)
    with pytest.raises(ValueError, match="state="):
        wrap(mazes, options, state=lambda s: s * 0 + 25).reset(seed=0)
    with pytest.raises(TypeError, match="VectorEnv"):
        wrap(MazeEnv(MAZE), options)
