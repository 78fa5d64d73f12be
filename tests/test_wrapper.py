"""Options as actions: what the wrapper returns, counts, masks and refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TransformObservation

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, Numbered, OptionsWrapper, from_env
from tests.tables import make_options

MODES = ["call-and-return", "step"]


@pytest.fixture(scope="module")
def skills() -> eo.OptionSet:
    return eo.discover(eo.maze("four-rooms"), n_options=8)


def wrapped(options: Any, limit: int | None = 300, **given: Any) -> OptionsWrapper:
    return OptionsWrapper(gym.make("eigenoptions/FourRooms-v0", max_episode_steps=limit), options, **given)


def right(n: int) -> eo.OptionSet:
    """On a corridor of n states: walk right to the last."""
    return make_options(np.array([[1] * (n - 1) + [eo.TERMINATE]]), 4)


class Toll(gym.Wrapper[Any, Any, Any, Any]):
    """Reward 1, 2, 3, ... for the steps of an episode."""

    def reset(self, **given: Any) -> Any:
        self.steps = 0
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, float(self.steps), terminated, truncated, {**info, "steps": self.steps}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("render_mode", [None, "ansi"])
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_passes_gymnasiums_checks(skills: eo.OptionSet, mode: str, render_mode: str | None) -> None:
    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=50, render_mode=render_mode)
    check_env(OptionsWrapper(env, skills, mode=mode))


def test_one_step_runs_an_option_to_its_end(
    skills: eo.OptionSet, four_rooms: eo.MDP, rng: np.random.Generator
) -> None:
    """From every kind of state: ends where the policy ends, takes its length, and passes through the same states."""
    env = OptionsWrapper(
        gym.make("eigenoptions/Maze-v0", maze=replace(four_rooms, goal=None)), skills, gamma=0.9
    )
    assert env.action_space == Discrete(12)
    for i in range(8):
        for start in rng.choice(np.flatnonzero(skills.policy[i] >= 0), 10):
            state, steps = int(start), 0
            while skills.policy[i, state] >= 0:
                state, steps = int(four_rooms.successors[state, skills.policy[i, state]]), steps + 1
            env.reset(options={"start": start})
            obs, reward, terminated, truncated, info = env.step(4 + i)
            assert (obs, reward, terminated, truncated) == (state, 0.0, False, False)
            assert (info["option"], info["duration"]) == (i, steps)
            assert info["discount"] == 0.9**steps
            assert "unavailable" not in info
            assert "cut" not in info


class Counting(MazeEnv):
    """A maze with a `step` of its own, whose table may not be read instead."""

    calls = 0

    def step(self, action: int) -> Any:
        self.calls += 1
        return super().step(action)


@pytest.mark.parametrize("kind", [int, np.int64, np.int8, np.uint8, float])
@pytest.mark.parametrize("maze", [MazeEnv, Counting])
@pytest.mark.parametrize("limit", [None, 60])
def test_a_primitive_action_is_the_environments_own(kind: Any, maze: Any, limit: int | None) -> None:
    """Also after the first step, when the wrapper reads the table of a maze itself; with ends and time limits."""
    inner = maze("four-rooms", start=0, goal=15)
    own = MazeEnv("four-rooms", start=0, goal=15)
    skills = eo.discover(inner.mdp, 8)
    env = OptionsWrapper(inner if limit is None else gym.wrappers.TimeLimit(inner, limit), skills, gamma=0.9)
    bare = own if limit is None else gym.wrappers.TimeLimit(own, limit)
    assert env.reset(seed=0)[0] == bare.reset(seed=0)[0]
    ends = 0
    for action in np.random.default_rng(1).integers(4, size=2000).tolist():
        *outcome, info = env.step(kind(action))
        assert outcome == list(bare.step(action)[:4])
        assert list(map(type, outcome)) == [int, float, bool, bool]
        assert inner.state == own.state == outcome[0]
        mask = info.pop("action_mask")
        assert info == {"option": -1, "duration": 1, "discount": 0.9, "primitive_return": outcome[1]}
        assert mask[4:].tolist() == skills.initiation[:, outcome[0]].tolist()
        if outcome[2] or outcome[3]:
            ends += outcome[2]
            env.reset()
            bare.reset()
    assert ends
    assert maze is MazeEnv or inner.calls == 2000


@pytest.mark.parametrize("limit", [None, 25])
@pytest.mark.parametrize("max_duration", [3, 10_000])
def test_options_of_mazes_run_as_those_of_other_environments(limit: int | None, max_duration: int) -> None:
    """The table of a maze is read in one loop; a subclass with its own step goes the general way."""
    both = []
    for maze in (MazeEnv, Counting):
        inner = maze("four-rooms", start=0, goal=30)
        env = inner if limit is None else gym.wrappers.TimeLimit(inner, limit)
        both.append(OptionsWrapper(env, eo.discover(inner.mdp, 8), gamma=0.9, max_duration=max_duration))
    rng, seen = np.random.default_rng(2), set()
    for env in both:
        env.reset(seed=0)
    for action in rng.integers(12, size=1500).tolist():
        (*ours, info), (*theirs, their_info) = (env.step(action) for env in both)
        assert ours == theirs
        assert list(map(type, ours)) == [int, float, bool, bool]
        assert info.pop("action_mask").tolist() == their_info.pop("action_mask").tolist()
        assert info == their_info
        assert both[0].unwrapped.state == both[1].unwrapped.state == ours[0]
        seen |= {key for key in ("cut", "unavailable") if key in info} | {f"ended {ours[2:]}"}
        if ours[2] or ours[3]:
            for env in both:
                env.reset()
    assert {"unavailable", "ended [True, False]"} <= seen
    assert ("cut" in seen) == (max_duration == 3)
    assert ("ended [False, True]" in seen) == (limit is not None)


def test_rewards_on_the_way_are_discounted_step_by_step() -> None:
    env = OptionsWrapper(Toll(MazeEnv("S......")), right(7), gamma=0.5)
    env.reset(seed=0)
    env.step(0)  # bumps into the wall; the option then begins at the second step
    obs, reward, _, _, info = env.step(4)
    assert obs == 6
    assert reward == sum(0.5**i * (2 + i) for i in range(6))
    assert (info["duration"], info["discount"], info["primitive_return"]) == (
        6,
        0.5**6,
        2 + 3 + 4 + 5 + 6 + 7,
    )
    assert info["steps"] == 7  # the rest of the info is that of the last step


def test_the_goal_in_the_middle_ends_the_option() -> None:
    env = OptionsWrapper(MazeEnv("S..G..."), right(7), gamma=0.9)
    env.reset(seed=0)
    obs, reward, terminated, truncated, info = env.step(4)
    assert (obs, reward, terminated, truncated, info["duration"]) == (3, 0.9**2, True, False, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
def test_primitive_steps_count_against_the_time_limit(limit: int, mode: str) -> None:
    env = gym.make("eigenoptions/Maze-v0", maze="S......", max_episode_steps=limit)
    env = OptionsWrapper(env, right(7), mode=mode)
    for _ in range(2):  # the count begins anew with the episode
        env.reset(seed=0)
        steps, truncated = 0, False
        while not truncated and steps < 6:
            _, _, terminated, truncated, info = env.step(4)
            steps += info["duration"]
        assert not terminated
        assert (steps, truncated) == (min(limit, 6), limit <= 6)


def test_gymnasiums_checks_are_back_after_an_option(skills: eo.OptionSet) -> None:
    env = wrapped(skills)
    chain = str(env.env)
    env.reset(seed=0)
    env.step(4 + int(np.flatnonzero(env.action_masks()[4:])[0]))
    assert (
        str(env.env)
        == chain
        == "<TimeLimit<OrderEnforcing<PassiveEnvChecker<MazeEnv<eigenoptions/FourRooms-v0>>>>>"
    )
    with pytest.raises(gym.error.ResetNeeded):
        wrapped(skills).env.step(0)


class Failing(MazeEnv):
    def step(self, action: int) -> Any:
        if self.state == 3:
            raise RuntimeError("the floor gave way")
        return super().step(action)


def test_an_environment_that_fails_in_an_option_is_left_as_it_was() -> None:
    limited = gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(Failing("S......")), 100)
    env = OptionsWrapper(limited, right(7))
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="the floor gave way"):
        env.step(4)
    assert isinstance(limited.env, gym.wrappers.OrderEnforcing)


# Options that may not start, or never stop


def test_an_unavailable_option_is_one_random_step_that_the_seed_decides() -> None:
    never = make_options(np.full((2, 104), eo.TERMINATE), 4)

    def walk(seed: int) -> list[int]:
        env = wrapped(never, limit=None)
        state, _ = env.reset(seed=seed)
        path = []
        for i in range(200):
            after, _, _, _, info = env.step(4 + i % 2)
            assert (info["unavailable"], info["option"], info["duration"]) == (True, i % 2, 1)
            assert after in env.unwrapped.mdp.successors[state]
            path.append(int(after))
            state = after
        return path

    assert walk(1) == walk(1) != walk(2)
    assert len(set(walk(1))) > 10


def test_the_environments_random_numbers_are_its_own() -> None:
    """A slippery lake walked with and without the wrapper slips at the same places."""
    options = make_options(np.full((1, 16), eo.TERMINATE), 4)
    env, bare = OptionsWrapper(gym.make("FrozenLake-v1"), options), gym.make("FrozenLake-v1")
    env.reset(seed=5)
    bare.reset(seed=5)
    *_, info = env.step(4)
    assert info["unavailable"]
    bare.step(env.unwrapped.lastaction)
    assert env.unwrapped.s == bare.unwrapped.s


@pytest.mark.parametrize("mode", MODES)
def test_an_option_that_never_stops_is_cut(mode: str) -> None:
    env = OptionsWrapper(
        MazeEnv("S.."), make_options(np.ones((1, 3), dtype=int), 4), mode=mode, max_duration=50
    )
    for _ in range(2):
        env.reset(seed=0)
        steps, info = 0, {}
        while not info.get("cut"):
            *_, info = env.step(4)
            steps += info["duration"]
        assert steps == 50
        assert env.action_masks().all()


def test_an_option_that_stops_by_itself_at_the_limit_is_not_cut() -> None:
    env = OptionsWrapper(MazeEnv("S......"), right(7), max_duration=6)
    env.reset(seed=0)
    *_, info = env.step(4)
    assert info["duration"] == 6
    assert "cut" not in info


# One step at a time


def test_step_mode_walks_the_same_way_one_step_at_a_time(
    skills: eo.OptionSet, rng: np.random.Generator
) -> None:
    whole, single = wrapped(skills, limit=None), wrapped(skills, limit=None, mode="step")
    assert isinstance(single.observation_space, Dict)
    state, info = whole.reset(seed=0)
    obs, seen = single.reset(seed=0)
    for _ in range(100):
        np.testing.assert_array_equal(info["action_mask"], seen["action_mask"])
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        state, reward, terminated, _, info = whole.step(action)
        gain = 0.0
        for i in range(info["duration"]):
            obs, r, done, _, seen = single.step(
                action if i == 0 else int(rng.integers(12))
            )  # ignored while it runs
            assert obs in single.observation_space
            assert (seen["duration"], seen["discount"], seen["option"]) == (1, 0.99, info["option"])
            gain += 0.99**i * r
            if i + 1 < info["duration"]:
                assert obs["option"] == info["option"] + 1
                np.testing.assert_array_equal(np.flatnonzero(seen["action_mask"]), [action])
        assert (obs["observation"], obs["option"], done) == (state, 0, terminated)
        assert gain == pytest.approx(reward)
        if terminated:
            state, info = whole.reset()
            obs, seen = single.reset()


def test_step_mode_forgets_the_option_with_the_episode() -> None:
    env = OptionsWrapper(MazeEnv("S......"), right(7), mode="step")
    env.reset(seed=0)
    assert env.step(4)[0] == {"observation": 1, "option": 1}
    obs, info = env.reset(seed=0)
    assert obs == {"observation": 0, "option": 0}
    assert info["action_mask"].all()


# Other observations, other options


class Climb:
    """An option on raw observations: push where the car already moves, until it is high up."""

    def act(self, obs: np.ndarray) -> int:
        return eo.TERMINATE if obs[0] > 0.3 else (2 if obs[1] >= 0 else 0)


def test_options_may_act_on_any_observation() -> None:
    env = OptionsWrapper(gym.make("MountainCar-v0"), [Climb()], gamma=1.0)
    env.reset(seed=0)
    obs, reward, terminated, truncated, info = env.step(3)
    assert obs[0] > 0.3
    assert not terminated
    assert not truncated
    assert reward == info["primitive_return"] == -info["duration"]
    assert info["action_mask"].tolist() == [1, 1, 1, 0]


def test_state_maps_observations_to_states(skills: eo.OptionSet) -> None:
    def shown(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        return TransformObservation(env, lambda s: np.array([s / 104], dtype=np.float32), Box(0, 1, (1,)))

    env = OptionsWrapper(
        shown(gym.make("eigenoptions/FourRooms-v0")), skills, state=lambda obs: round(float(obs[0]) * 104)
    )
    plain = wrapped(skills, limit=None)
    _, info = env.reset(seed=0)
    plain.reset(seed=0)
    action = int(np.flatnonzero(info["action_mask"])[-1])
    state, *_, info = plain.step(action)
    obs, *_, seen = env.step(action)
    assert round(float(obs[0]) * 104) == state
    assert seen["duration"] == info["duration"] > 1
    np.testing.assert_array_equal(seen["action_mask"], info["action_mask"])
    wrong = OptionsWrapper(shown(gym.make("eigenoptions/FourRooms-v0")), skills, state=lambda obs: 104)
    with pytest.raises(ValueError, match=r"state= gave 104, but the options know the states 0\.\.103"):
        wrong.reset(seed=0)


def test_options_found_by_exploring_minigrid_act_in_it() -> None:
    env = Numbered("minigrid:MiniGrid-Empty-8x8-v0")
    skills = eo.discover(env.mdp, n_options=4)
    env = OptionsWrapper(env, skills)
    state, info = env.reset(seed=0)
    i = int(np.flatnonzero(info["action_mask"][7:])[0])
    after, *_, info = env.step(7 + i)
    assert info["duration"] == pytest.approx(length(env.env.mdp, skills.policy[i], state))
    assert skills.policy[i, after] == eo.TERMINATE


def length(mdp: eo.MDP, row: np.ndarray, state: int) -> int:
    steps = 0
    while row[state] >= 0:
        state, steps = int(mdp.successors[state, row[state]]), steps + 1
    return steps


def test_options_over_options() -> None:
    inner = OptionsWrapper(gym.make("eigenoptions/Maze-v0", maze="S......"), right(7), gamma=0.5)
    outer = OptionsWrapper(inner, make_options(np.array([[4] * 6 + [eo.TERMINATE]]), 5), gamma=0.5)
    outer.reset(seed=0)
    obs, *_, info = outer.step(5)
    assert (obs, info["option"], info["duration"]) == (
        6,
        0,
        1,
    )  # one decision of the inner, which took six steps


def test_many_actions_need_no_bytes() -> None:
    env = OptionsWrapper(
        MazeEnv(eo.MDP(np.ones((2, 300, 2)) / 2, start=0)), make_options(np.full((1, 2), 299), 300)
    )
    env.reset(seed=0)
    assert env.action_space == Discrete(301)
    env.max_duration = 1
    assert env.action_masks().all()


def test_copies_and_pickles_go_on_alike(skills: eo.OptionSet) -> None:
    env = wrapped(skills)
    env.reset(seed=3)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        mine = copy.deepcopy(env)
        for action in (4, 11, 0, 7, 9):
            assert mine.step(action)[:4] == twin.step(action)[:4]


def test_in_a_vector_environment_the_infos_come_along(skills: eo.OptionSet) -> None:
    envs = gym.make_vec(
        "eigenoptions/FourRooms-v0", 3, "sync", wrappers=[lambda env: OptionsWrapper(env, skills, gamma=0.9)]
    )
    _, infos = envs.reset(seed=0)
    assert infos["action_mask"].shape == (3, 12)
    actions = np.array([0, 1, int(np.flatnonzero(infos["action_mask"][2])[-1])])
    *_, infos = envs.step(actions)
    np.testing.assert_allclose(infos["discount"], 0.9 ** infos["duration"])
    assert infos["duration"][2] > 1


# Bad input


def test_options_of_another_environment_are_refused(skills: eo.OptionSet) -> None:
    with pytest.raises(
        ValueError, match="options of another environment: they have 104 states, this one has 19"
    ):
        OptionsWrapper(gym.make("eigenoptions/IMaze-v0"), skills)
    with pytest.raises(
        ValueError, match="options of another environment: they choose among 4 actions, this one has 6"
    ):
        OptionsWrapper(gym.make("Taxi-v4"), skills)
    mirrored = "\n".join(row[::-1] for row in FOUR_ROOMS.splitlines())
    with pytest.raises(ValueError, match="options of another state space: same size, but other dynamics"):
        OptionsWrapper(gym.make("eigenoptions/Maze-v0", maze=mirrored), skills)
    lake = eo.discover(from_env("FrozenLake-v1", seed=0), n_options=2)
    with pytest.raises(ValueError, match="same size, but other dynamics"):
        OptionsWrapper(gym.make("FrozenLake-v1", is_slippery=False), lake)
    OptionsWrapper(gym.make("FrozenLake-v1"), lake)
    OptionsWrapper(gym.make("eigenoptions/FourRooms-v0", goal=50), skills)  # another task, the same dynamics


FOUR_ROOMS = """\
#############
#.....#....G#
#.....#.....#
#...........#
#.....#.....#
#.....#.....#
##.####.....#
#.....###.###
#.....#.....#
#.....#.....#
#...........#
#S....#.....#
#############"""


@pytest.mark.parametrize(
    ("env", "given", "complaint"),
    [
        ("Pendulum-v1", {}, r"Pendulum-v1 has actions Box.*: only Discrete\(n\) is supported"),
        ("MountainCar-v0", {}, r"they choose among 4 actions, this one has 3"),
        ("eigenoptions/FourRooms-v0", {"gamma": 0}, r"gamma must be in \(0, 1\], got 0"),
        ("eigenoptions/FourRooms-v0", {"gamma": 1.5}, r"gamma must be in \(0, 1\], got 1.5"),
        (
            "eigenoptions/FourRooms-v0",
            {"mode": "flat"},
            "mode must be one of call-and-return, step, got 'flat'",
        ),
        (
            "eigenoptions/FourRooms-v0",
            {"max_duration": 0},
            "max_duration must be a whole number from 1, got 0",
        ),
    ],
)
def test_bad_settings(skills: eo.OptionSet, env: str, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        OptionsWrapper(gym.make(env), skills, **given)


def test_bad_options(skills: eo.OptionSet) -> None:
    env = gym.make("eigenoptions/FourRooms-v0")
    with pytest.raises(ValueError, match="there are no options"):
        OptionsWrapper(env, skills[:0])
    with pytest.raises(ValueError, match=r"every option needs a method act\(obs\)"):
        OptionsWrapper(env, [lambda obs: 0])
    three = make_options(np.zeros((1, 104), dtype=int), 3)
    with pytest.raises(ValueError, match=r"observations are Box.*: pass state="):
        OptionsWrapper(gym.make("MountainCar-v0"), three)


@pytest.mark.parametrize("action", [-1, 12, 100])
@pytest.mark.parametrize("mode", MODES)
def test_bad_actions(skills: eo.OptionSet, action: int, mode: str) -> None:
    env = wrapped(skills, mode=mode)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=rf"action must be in 0\.\.11, got {action}"):
        env.step(action)
