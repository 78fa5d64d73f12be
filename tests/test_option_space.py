"""The space of actions and options: which samples are drawn, with which chances, masks and seeds."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, OptionsWrapper
from tests.tables import make_options
from tests.test_wrapper import MODES, wrapped


@pytest.fixture(scope="module")
def skills() -> eo.OptionSet:
    return eo.discover(eo.maze("four-rooms"), n_options=8)


def test_samples_are_options_with_the_chance_and_only_where_they_may_start(skills: eo.OptionSet) -> None:
    env = wrapped(skills, option_chance=0.25)
    assert env.action_space == Discrete(12) == env.action_space
    _, info = env.reset(seed=0)
    env.action_space.seed(1)
    drawn, may = np.zeros(12), np.zeros(12)
    n = 4000
    for _ in range(n):
        action = env.action_space.sample()
        assert env.action_space.contains(action)
        assert info["action_mask"][action]
        drawn[action] += 1
        may[4:] += info["action_mask"][4:] / info["action_mask"][4:].sum()
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
    expected = np.where(np.arange(12) < 4, 0.75 * n / 4, 0.25 * may)
    assert (np.abs(drawn - expected) < 5 * np.sqrt(expected)).all()


def test_samples_honour_a_mask_a_probability_and_the_seed(skills: eo.OptionSet) -> None:
    space = wrapped(skills, option_chance=0.5).action_space
    mask = np.zeros(12, dtype=np.int8)
    assert space.sample(mask=mask) == 0  # as in Gymnasium
    mask[[2, 9]] = 1
    assert {int(space.sample(mask=mask)) for _ in range(50)} == {2, 9}
    mask[2] = 0
    assert space.sample(mask=mask) == 9
    assert space.sample(probability=np.eye(12)[3]) == 3
    with pytest.raises(ValueError, match=r"a mask must have shape \(12,\), got \(3,\)"):
        space.sample(mask=np.ones(3, dtype=np.int8))
    space.seed(5)
    first = [space.sample() for _ in range(20)]
    space.seed(5)
    assert [space.sample() for _ in range(20)] == first


@pytest.mark.parametrize("mode", MODES)
def test_a_uniform_choice_and_a_running_option(skills: eo.OptionSet, mode: str) -> None:
    env = wrapped(skills, option_chance=None, mode=mode)
    for _ in range(3):
        _, info = env.reset(seed=0)
        over = False
        while not over:
            action = env.action_space.sample()
            assert info["action_mask"][action]
            *_, terminated, truncated, info = env.step(action)
            over = terminated or truncated


def test_copies_of_the_space(skills: eo.OptionSet) -> None:
    """A copy of the environment has the mask of its own state; a space alone knows no state."""
    env = wrapped(skills, option_chance=1.0)
    env.reset(seed=0, options={"start": int(skills.stops[0][0])})
    here = set(np.flatnonzero(env.action_masks()[4:]) + 4)
    assert here != set(range(4, 12))
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert {int(twin.action_space.sample()) for _ in range(100)} <= here
        twin.step(int(next(iter(here))))
        assert twin.action_space.source() is not None
        assert set(np.flatnonzero(twin.action_masks()[4:]) + 4) != here
        assert twin.action_masks().tolist() == twin.action_space.source().tolist()
        assert {int(env.action_space.sample()) for _ in range(100)} <= here
    alone = pickle.loads(pickle.dumps(env.action_space))
    assert alone.option_chance == 1.0
    assert {int(alone.sample()) for _ in range(400)} == set(range(4, 12))


def test_a_rare_option_finds_the_goal_sooner(skills: eo.OptionSet) -> None:
    """Median steps to the goal of four rooms, with an option in one decision of twenty and with none."""

    def steps(chance: float | None, seed: int) -> int:
        env = OptionsWrapper(MazeEnv("four-rooms"), skills, option_chance=chance)
        env.action_space.seed(seed)
        env.reset(seed=seed)
        total, terminated = 0, False
        while not terminated and total < 3000:
            _, _, terminated, _, info = env.step(env.action_space.sample())
            total += info["duration"]
        return total

    medians = [np.median([steps(chance, seed) for seed in range(15)]) for chance in (0.05, 0.0)]
    assert medians[0] < 0.5 * medians[1]


def test_masks_say_where_options_may_start(skills: eo.OptionSet, rng: np.random.Generator) -> None:
    env = wrapped(skills)
    state, info = env.reset(seed=0)
    for _ in range(200):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        np.testing.assert_array_equal(mask, [1] * 4 + (skills.policy[:, state] >= 0).astype(int).tolist())
        masks = env.action_masks()
        assert masks.dtype == np.bool_
        np.testing.assert_array_equal(masks, mask)
        mask[:] = 7  # what was handed out is the caller's
        np.testing.assert_array_equal(env.action_masks(), masks)
        state, _, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(masks)))
        if terminated or truncated:
            state, info = env.reset()


def test_the_environments_own_mask_is_kept() -> None:
    options = make_options(np.zeros((2, 500), dtype=int), 6)
    env = OptionsWrapper(gym.make("Taxi-v4"), options)
    _, info = env.reset(seed=0)
    own = gym.make("Taxi-v4")
    np.testing.assert_array_equal(info["action_mask"][:6], own.reset(seed=0)[1]["action_mask"])
    *_, info = env.step(1)
    np.testing.assert_array_equal(info["action_mask"][:6], own.step(1)[4]["action_mask"])
    np.testing.assert_array_equal(info["action_mask"][6:], [1, 1])


def test_masks_of_many_states_are_worked_out_on_demand(
    skills: eo.OptionSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eigenoptions.envs.wrapper.LARGEST_TABLE", 100)
    env = wrapped(skills)
    state, info = env.reset(seed=0)
    np.testing.assert_array_equal(info["action_mask"][4:], skills.policy[:, state] >= 0)
