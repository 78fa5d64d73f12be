"""Options in vector environments: every decision equals that of a single wrapper, its slow twin."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, MazeVectorEnv, OptionsVectorWrapper, OptionsWrapper
from eigenoptions.features import Raw
from eigenoptions.options.linear import LinearOptionSet

B = 5
NAMES = ("option", "duration", "discount", "primitive_return")
CLIFF = "S.......\n.#######\n........\n.......G"


class Toll(gym.Wrapper[Any, Any, Any, Any]):
    """A reward that depends on state and step, and an info."""

    def reset(self, **given: Any) -> Any:
        self.steps = 0
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return (
            obs,
            (int(obs) % 3) * 0.5 + self.steps % 2,
            terminated,
            truncated,
            {**info, "steps": self.steps},
        )


@pytest.fixture(scope="module")
def skills() -> eo.OptionSet:
    return eo.discover(eo.maze(CLIFF), n_options=6)


def one_env(limit: int = 37) -> gym.Env[Any, Any]:
    # Without a start in the map, every episode begins in a random state.
    return TimeLimit(Toll(MazeEnv(CLIFF.replace("S", "."))), limit)


def copies(autoreset: AutoresetMode, **given: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: one_env(**given)] * B, autoreset_mode=autoreset)


def decisions_of_singles(options: Any, seed: int, count: int, **given: Any) -> list[list[tuple[Any, ...]]]:
    """What each of B single wrappers returns for random allowed decisions."""
    found = []
    for b in range(B):
        env, rng = OptionsWrapper(one_env(), options, **given), np.random.default_rng((seed, b))
        obs, info = env.reset(seed=seed + b)
        rows = []
        for _ in range(count):
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            before, (obs, reward, terminated, truncated, info) = obs, env.step(action)
            rows.append(result(before, action, obs, reward, terminated, truncated, info))
            if terminated or truncated:
                obs, info = env.reset()
        found.append(rows)
    return found


def result(
    before: Any, action: Any, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any
) -> tuple[Any, ...]:
    numbers = (before, action, obs, reward, *(info[name] for name in NAMES))
    return (*map(float, numbers), bool(terminated), bool(truncated))


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_decisions_are_those_of_single_wrappers(skills: eo.OptionSet, autoreset: AutoresetMode) -> None:
    """Rewards, durations, discounts, ends and masks, for random decisions, under every autoreset mode."""
    expected = decisions_of_singles(skills, 7, 60, gamma=0.9)
    envs = OptionsVectorWrapper(copies(autoreset), skills, gamma=0.9)
    rngs = [np.random.default_rng((7, b)) for b in range(B)]
    obs, infos = envs.reset(seed=7)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(B)]
    actions, decides, resets = np.zeros(B, dtype=int), np.ones(B, dtype=bool), np.zeros(B, dtype=bool)
    for _ in range(600):
        table = np.column_stack([np.ones((B, 4)), skills.policy.T[obs] >= 0])
        for b in range(B):
            mask = infos["action_mask"][b]
            if decides[b]:
                np.testing.assert_array_equal(mask, table[b])
                actions[b] = rngs[b].choice(np.flatnonzero(mask))
            elif not resets[b]:
                # A running option leaves no choice, and ignores what is given.
                assert np.flatnonzero(mask).tolist() == [actions[b]]
        given = np.where(decides, actions, np.arange(B))
        obs, reward, terminated, truncated, infos = envs.step(given)
        ended = terminated | truncated
        for b in np.flatnonzero(infos["complete"]):
            same_step = autoreset == AutoresetMode.SAME_STEP and ended[b]
            last = infos["final_obs"][b] if same_step else obs[b]
            parts = (infos["begin_obs"][b], infos["choice"][b], last, reward[b], terminated[b], truncated[b])
            found[b].append(result(*parts, {name: infos[name][b] for name in NAMES}))
        assert (reward[~infos["complete"]] == 0).all()
        decides = infos["complete"] | (infos["duration"] == 0)
        if autoreset == AutoresetMode.NEXT_STEP:
            # The next row of these copies is a reset, which ignores the action.
            resets = ended
            decides &= ~resets
        elif autoreset == AutoresetMode.DISABLED and ended.any():
            obs, fresh = envs.reset(options={"reset_mask": ended})
            infos["action_mask"] = fresh["action_mask"]
    for mine, theirs in zip(found, expected, strict=True):
        count = min(len(mine), len(theirs))
        assert count == 60
        assert mine[:count] == theirs[:count]


def test_mode_step_is_a_vector_of_single_wrappers(skills: eo.OptionSet) -> None:
    def wrapped() -> gym.Env[Any, Any]:
        return OptionsWrapper(one_env(), skills, mode="step", max_duration=4)

    theirs = SyncVectorEnv([wrapped] * B)
    ours = OptionsVectorWrapper(copies(AutoresetMode.NEXT_STEP), skills, mode="step", max_duration=4)
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    rng = np.random.default_rng(0)
    (obs, infos), (seen, notes) = ours.reset(seed=3), theirs.reset(seed=3)
    for _ in range(300):
        for name in ("observation", "option"):
            np.testing.assert_array_equal(obs[name], seen[name])
        np.testing.assert_array_equal(infos["action_mask"], notes["action_mask"])
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])
        obs, *mine, infos = ours.step(actions)
        seen, *other, notes = theirs.step(actions)
        assert obs in ours.observation_space
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)
        real = infos["duration"] > 0
        for name in NAMES:
            np.testing.assert_array_equal(infos[name][real], np.asarray(notes[name])[real])
        np.testing.assert_array_equal(infos["cut"], notes.get("cut", np.zeros(B, dtype=bool)))


def test_native_mazes_and_unavailable_options(skills: eo.OptionSet) -> None:
    """A native vector maze; an option that may not start is one random step, decided by the seed."""

    def walk(seed: int) -> np.ndarray:
        envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF, 8, max_episode_steps=50), skills)
        obs, infos = envs.reset(seed=seed)
        path = []
        for i in range(120):
            may = infos["action_mask"]
            actions = np.full(8, 4 + i % 6)
            runs = may.sum(axis=1) == 1
            before, (obs, _, _, _, infos) = obs, envs.step(actions)
            real = infos["duration"] > 0
            expected = ~runs & ~may[np.arange(8), actions].astype(bool)
            np.testing.assert_array_equal(infos["unavailable"][real & ~runs], expected[real & ~runs])
            successors = eo.maze(CLIFF).successors[before]
            assert (successors == obs[:, None]).any(axis=1)[real].all()
            path.append(obs)
        return np.array(path)

    assert (walk(1) == walk(1)).all()
    assert (walk(1) != walk(2)).any()


class Right:
    """Right until the wall."""

    patience = None
    stop_chance = 0.0

    def __init__(self, patience: int | None = None) -> None:
        self.patience = patience

    def act(self, obs: Any) -> int:
        return 1

    def potential(self, obs: Any) -> float:
        return float(min(obs, 4))


def test_objects_and_guards() -> None:
    """Options as objects, with patience of their own; learned options with patience in a batch."""
    ends = []
    for options in (
        [Right(3), Right(None)],
        LinearOptionSet([[1.0]], Raw(), 4, weights=[[[0.0], [1.0], [0.0], [0.0]]]).guarded(patience=3),
    ):
        vector = isinstance(options, list)
        state = None if vector else lambda s: np.minimum(np.asarray(s, dtype=float)[:, None], 4.0)
        single = None if vector else lambda s: np.minimum([float(s)], 4.0)
        envs = OptionsVectorWrapper(MazeVectorEnv("S" + "." * 20, 2), options, state=state, max_duration=9)
        env = OptionsWrapper(MazeEnv("S" + "." * 20), options, state=single, max_duration=9)
        env.reset(seed=0)
        envs.reset(seed=0)
        first = 1 if not vector else 4
        for action in (1, first, 4):
            *_, info = env.step(action)
            steps, complete = 0, np.zeros(2, dtype=bool)
            while not complete[0]:
                obs, _, _, _, infos = envs.step(np.array([action, 0]))
                steps, complete = steps + 1, infos["complete"]
            assert steps == info["duration"] == infos["duration"][0]
        ends.append(int(obs[0]))
    assert ends[0] > 4


def test_samples_of_a_batch(skills: eo.OptionSet) -> None:
    envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF, 500), skills, option_chance=0.25)
    space = envs.action_space
    assert space == MultiDiscrete([10] * 500)
    _, infos = envs.reset(seed=0)
    space.seed(0)
    for _ in range(20):
        actions = space.sample()
        assert space.contains(actions)
        assert infos["action_mask"][np.arange(500), actions].all()
        _, _, _, _, infos = envs.step(actions)
    envs.reset(seed=0)
    share = np.mean([(space.sample() >= 4).mean() for _ in range(40)])
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
    alone = copy.deepcopy(space)
    assert alone.source is None
    assert alone.sample().max() == 9
    none = np.zeros((500, 10), dtype=np.int8)
    none[:, 7] = 1
    assert (space.sample(mask=none) == 7).all()
    with pytest.raises(ValueError, match=r"masks must have shape \(500, 10\), got \(3,\)"):
        space.sample(mask=np.ones(3, dtype=np.int8))


def test_the_environments_own_mask_is_kept() -> None:
    options = eo.OptionSet(np.zeros((2, 500), dtype=int), 6)
    envs = OptionsVectorWrapper(gym.make_vec("Taxi-v4", 3), options)
    own = gym.make_vec("Taxi-v4", 3)
    masks = envs.reset(seed=0)[1]["action_mask"], own.reset(seed=0)[1]["action_mask"]
    np.testing.assert_array_equal(masks[0][:, :6], masks[1])
    *_, infos = envs.step(np.array([0, 1, 6]))
    *_, notes = own.step(np.array([0, 1, 0]))
    np.testing.assert_array_equal(infos["action_mask"][:2, :6], notes["action_mask"][:2])
    assert infos["action_mask"][2].tolist() == [0] * 6 + [1, 0]
    assert envs.action_masks().dtype == np.bool_


def test_wrong_input(skills: eo.OptionSet) -> None:
    mazes = MazeVectorEnv(CLIFF, 3)
    envs = OptionsVectorWrapper(mazes, skills)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(3, dtype=int))
    envs.reset(seed=0)
    for bad, complaint in (
        ([0, 1, 10], r"actions must be in 0\.\.9, got 10 for copy 2"),
        ([0, -1, 0], r"actions must be in 0\.\.9, got -1 for copy 1"),
        ([0.0, 1.0, 2.0], "actions must be 3 whole numbers, got float64"),
        ([0, 1], r"actions must be 3 whole numbers, got int64 of shape \(2,\)"),
    ):
        with pytest.raises(ValueError, match=complaint):
            envs.step(np.array(bad))
    with pytest.raises(ValueError, match="they have 25 states, this one has 104"):
        OptionsVectorWrapper(MazeVectorEnv("four-rooms", 2), skills)
    with pytest.raises(ValueError, match="same size, but other dynamics"):
        OptionsVectorWrapper(MazeVectorEnv("." * 25, 2), skills)
    with pytest.raises(ValueError, match=r"state= must give 3 numbers in 0\.\.24, got \(3,\) in 25\.\.25"):
        OptionsVectorWrapper(mazes, skills, state=lambda s: s * 0 + 25).reset(seed=0)
    with pytest.raises(TypeError, match="VectorEnv"):
        OptionsVectorWrapper(MazeEnv(CLIFF), skills)
