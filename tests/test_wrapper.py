"""`OptionsWrapper` and `OptionsSpace`.

What a decision returns, which choices are available, what is refused.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import StickyAction, TimeLimit, TransformObservation

import eigenoptions as eo
from eigenoptions.envs import FixedSeed, MazeEnv, OptionsSpace, OptionsWrapper
from tests.tables import make_options

MODES = ["call-and-return", "step"]
RIGHT = make_options(
    [[1, 1, 1, 1, 1, 1, eo.TERMINATE]], 4
)  # on a corridor of seven cells


@pytest.fixture(scope="module")
def options() -> eo.OptionSet:
    return eo.discover(eo.maze("four-rooms"), n_options=8)


def wrap(env: Any, options: Any, *args: Any, **settings: Any) -> OptionsWrapper:
    """With a fixed option chance, since the automatic one simulates."""
    return OptionsWrapper(env, options, *args, **{"option_chance": 0.05, **settings})


def wrap_rooms(
    options: Any, limit: int | None = 300, **settings: Any
) -> OptionsWrapper:
    return wrap(
        gym.make("eigenoptions/FourRooms-v0", max_episode_steps=limit),
        options,
        **settings,
    )


def wrap_corridor(
    options: Any = RIGHT, maze: str = "S......", **settings: Any
) -> OptionsWrapper:
    env = wrap(MazeEnv(maze), options, **settings)
    env.reset(seed=0)
    return env


class CountSteps(gym.Wrapper[Any, Any, Any, Any]):
    """Reward 1, 2, 3, ... for the steps of an episode."""

    def reset(self, **settings: Any) -> Any:
        self.count = 0
        return self.env.reset(**settings)

    def step(self, action: Any) -> Any:
        self.count += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return (
            obs,
            float(self.count),
            terminated,
            truncated,
            {**info, "count": self.count},
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_wrapper_passes_check_env(options: eo.OptionSet, mode: str) -> None:
    check_env(wrap_rooms(options, mode=mode, limit=50), skip_render_check=True)


def test_step_option_runs_to_its_end(
    options: eo.OptionSet, rng: np.random.Generator
) -> None:
    """The slow twin: `OptionSet.follow` in the table."""
    env = wrap(MazeEnv(options.mdp, goal=0), options, gamma=0.9)
    assert env.action_space == Discrete(12)
    for i in range(8):
        starts = np.flatnonzero(options.policy[i, 1:] >= 0) + 1
        for start in rng.choice(starts, 10):
            path = options.follow(i, start)
            env.reset(options={"start": int(start)})
            obs, reward, terminated, truncated, info = env.step(4 + i)
            if 0 in path:
                path = path[: path.tolist().index(0) + 1]
            duration = len(path) - 1
            assert (obs, terminated, truncated) == (path[-1], path[-1] == 0, False)
            assert reward == (0.9 ** (duration - 1) if terminated else 0.0)
            assert (info["option"], info["duration"], info["discount"]) == (
                i,
                duration,
                0.9**duration,
            )
            assert not {"unavailable", "option_truncated"} & set(info)


@pytest.mark.parametrize(
    "name", ["eigenoptions/FourRooms-v0", "FrozenLake-v1", "Taxi-v4"]
)
def test_step_primitive_action_is_the_environments_own(
    name: str, rng: np.random.Generator
) -> None:
    bare, inner = (
        gym.make(name, max_episode_steps=60),
        gym.make(name, max_episode_steps=60),
    )
    n, n_actions = int(bare.observation_space.n), int(bare.action_space.n)
    env = wrap(inner, make_options(np.zeros((2, n), dtype=int), n_actions), gamma=0.9)
    assert env.reset(seed=3)[0] == bare.reset(seed=3)[0]
    for action in rng.integers(n_actions, size=500):
        *outcome, info = env.step(action)
        *expected, own_info = bare.step(action)
        assert outcome == expected
        own_mask = own_info.pop("action_mask", np.ones(n_actions))
        assert info.pop("action_mask").tolist() == [*own_mask, 1, 1]
        extra = {
            "option": -1,
            "duration": 1,
            "discount": 0.9,
            "primitive_return": expected[1],
        }
        assert info == own_info | extra
        if outcome[2] or outcome[3]:
            assert env.reset()[0] == bare.reset()[0]


def test_step_rewards_are_discounted_per_primitive_step() -> None:
    env = wrap(CountSteps(MazeEnv("S......")), RIGHT, gamma=0.5)
    env.reset(seed=0)
    env.step(0)  # stays; the option begins at the second step
    obs, reward, _, _, info = env.step(4)
    assert obs == 6
    assert reward == sum(0.5**i * (2 + i) for i in range(6))
    assert (info["duration"], info["discount"], info["primitive_return"]) == (
        6,
        0.5**6,
        sum(range(2, 8)),
    )
    assert info["count"] == 7  # the rest of the info is that of the last step


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 5, 6, 7])
def test_time_limit_counts_primitive_steps(limit: int, mode: str) -> None:
    env = wrap(TimeLimit(MazeEnv("S......"), limit), RIGHT, mode=mode)
    for _ in range(2):  # the count begins anew with the episode
        env.reset(seed=0)
        steps, truncated = 0, False
        while not truncated and steps < 6:
            _, _, terminated, truncated, info = env.step(4)
            steps += info["duration"]
            assert not terminated
        assert (steps, truncated) == (min(limit, 6), limit <= 6)


def test_unavailable_option_takes_one_random_action_by_the_seed() -> None:
    never = make_options(np.full((2, 104), eo.TERMINATE), 4)

    def walk(seed: int) -> list[int]:
        env = wrap_rooms(never, limit=None)
        state, _ = env.reset(seed=seed)
        path = [state]
        for i in range(200):
            state, _, _, _, info = env.step(4 + i % 2)
            assert (info["unavailable"], info["option"], info["duration"]) == (
                True,
                i % 2,
                1,
            )
            assert state in env.unwrapped.mdp.successors[path[-1]]
            path.append(state)
        return path

    assert walk(1) == walk(1) != walk(2)


@pytest.mark.parametrize("mode", MODES)
def test_max_duration_truncates_an_endless_option(mode: str) -> None:
    env = wrap_corridor(
        make_options(np.ones((1, 3), dtype=int), 4), "S..", mode=mode, max_duration=50
    )
    steps, info = 0, {}
    while not info.get("option_truncated"):
        *_, info = env.step(4)
        steps += info["duration"]
    assert steps == 50
    assert env.action_masks().all()
    *_, info = wrap_corridor(max_duration=6).step(4)
    assert info["duration"] == 6
    assert "option_truncated" not in info


def test_step_mode_is_call_and_return_one_step_at_a_time(
    options: eo.OptionSet, rng: np.random.Generator
) -> None:
    whole, single = wrap_rooms(options, None), wrap_rooms(options, None, mode="step")
    assert isinstance(single.observation_space, Dict)
    (state, info), (obs, step_info) = whole.reset(seed=0), single.reset(seed=0)
    for _ in range(100):
        np.testing.assert_array_equal(info["action_mask"], step_info["action_mask"])
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        state, reward, terminated, _, info = whole.step(action)
        discounted = 0.0
        for i in range(info["duration"]):
            # While an option runs, the action is ignored.
            obs, r, done, _, step_info = single.step(
                action if i == 0 else int(rng.integers(12))
            )
            assert obs in single.observation_space
            assert (step_info["duration"], step_info["option"]) == (1, info["option"])
            discounted += 0.99**i * r
            if i + 1 < info["duration"]:
                assert obs["option"] == info["option"] + 1
                assert np.flatnonzero(step_info["action_mask"]).tolist() == [action]
        assert (obs["observation"], obs["option"], done) == (state, 0, terminated)
        assert discounted == pytest.approx(reward)
        if terminated:
            (state, info), (obs, step_info) = whole.reset(), single.reset()


def test_reset_ends_a_running_option() -> None:
    env = wrap_corridor(mode="step")
    assert env.step(4)[0] == {"observation": 1, "option": 1}
    obs, info = env.reset(seed=0)
    assert obs == {"observation": 0, "option": 0}
    assert info["action_mask"].all()


class ReusedArray(gym.Wrapper[Any, Any, Any, Any]):
    """Observations in one array that is overwritten by each step."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space, self.array = (
            Box(0, 10, (1,)),
            np.zeros(1, dtype=np.float32),
        )

    def reset(self, **settings: Any) -> Any:
        self.array[0], info = self.env.reset(**settings)
        return self.array, info

    def step(self, action: Any) -> Any:
        self.array[0], *rest = self.env.step(action)
        return self.array, *rest


def test_record_steps_returns_copies_of_every_primitive_step() -> None:
    env = wrap(
        ReusedArray(MazeEnv("S......")),
        RIGHT,
        0.9,
        record_steps=True,
        state=lambda obs: int(obs[0]),
    )
    env.reset(seed=0)
    steps = env.step(4)[4]["steps"]
    assert [int(step.obs[0]) for step in steps] == list(range(6))
    assert [int(step.next_obs[0]) for step in steps] == list(range(1, 7))
    assert {(step.action, step.reward, step.discount) for step in steps} == {
        (1, 0.0, 0.9)
    }
    assert [step.action_mask[4] for step in steps] == [1] * 5 + [0]
    assert "steps" not in env.step(0)[4]


class Climb:
    """An option on raw observations: push as the car moves until it is high up."""

    def act(self, obs: np.ndarray) -> int:
        return eo.TERMINATE if obs[0] > 0.3 else (2 if obs[1] >= 0 else 0)


def test_objects_with_act_are_options() -> None:
    env = wrap(gym.make("MountainCar-v0"), [Climb()], gamma=1.0)
    env.reset(seed=0)
    obs, reward, terminated, _, info = env.step(3)
    assert obs[0] > 0.3
    assert not terminated
    assert reward == info["primitive_return"] == -info["duration"]
    assert info["action_mask"].tolist() == [1, 1, 1, 0]


def test_state_maps_observations_to_numbers(options: eo.OptionSet) -> None:
    inner = TransformObservation(
        MazeEnv("four-rooms"), lambda s: np.array([s / 104]), Box(0, 1, (1,))
    )
    env = wrap(inner, options, state=lambda obs: round(float(obs[0]) * 104))
    plain = wrap_rooms(options, None)
    _, info = env.reset(seed=0)
    plain.reset(seed=0)
    action = int(np.flatnonzero(info["action_mask"])[-1])
    state, *_, expected = plain.step(action)
    obs, *_, info = env.step(action)
    assert round(float(obs[0]) * 104) == state
    assert info["duration"] == expected["duration"] > 1
    np.testing.assert_array_equal(info["action_mask"], expected["action_mask"])
    with pytest.raises(IndexError, match="state"):
        wrap(inner, options, state=lambda obs: 104).reset(seed=0)


class Boxes(gym.Env[Any, int]):
    """A 4 x 5 grid that observes a Dict; its wall depends on the seed."""

    observation_space = Dict(
        {
            "cell": Box(0, 5, (2,), dtype=np.int64),
            "image": Box(0, 1, (9, 9), dtype=np.uint8),
        }
    )
    action_space = Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell, self.wall = (0, 0), (1, int(self.np_random.integers(1, 5)))
        return self.observe(), {}

    def step(self, action: int) -> Any:
        move = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        to = (self.cell[0] + move[0], self.cell[1] + move[1])
        if 0 <= to[0] < 4 and 0 <= to[1] < 5 and to != self.wall:
            self.cell = to
        return self.observe(), 0.0, self.cell == (3, 4), False, {}

    def observe(self) -> Any:
        image = np.zeros((9, 9), dtype=np.uint8)
        image[self.wall] = 1
        return {"cell": np.array(self.cell), "image": image}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    "name", ["Boxes", "Empty-6x6", "DoorKey-5x5", "SimpleCrossingS9N1"]
)
def test_discover_then_wrap(
    name: str, loaded: bool, tmp_path: Any, rng: np.random.Generator
) -> None:
    """Options of an explored environment know its states, also from a file.

    The agent keeps its observations.
    """
    inner = Boxes() if name == "Boxes" else gym.make(f"minigrid:MiniGrid-{name}-v0")
    options = eo.discover(inner, n_options=8)
    if loaded:
        options.save(tmp_path / "skills.safetensors")
        options = eo.load_options(tmp_path / "skills.safetensors")
    assert len(set(options.mdp.states)) == options.n_states
    options.check(inner)
    env = wrap(FixedSeed(inner, 0), options)
    n, state = env.n_primitive, 0
    obs, info = env.reset(seed=3)
    for _ in range(300):
        assert obs in env.observation_space
        np.testing.assert_array_equal(
            info["action_mask"][n:], options.choices(state) >= 0
        )
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        obs, _, terminated, truncated, info = env.step(action)
        successor = options.mdp.successors[state, min(action, n - 1)]
        state = int(
            options.follow(action - n, state)[info["duration"]]
            if action >= n
            else successor
        )
        if terminated or truncated:
            state = 0
            obs, info = env.reset()
    if name != "Empty-6x6":
        with pytest.raises(ValueError, match="seed 0"):  # another layout
            wrap(inner, options).reset(seed=4)


def test_wrong_numbers_of_states_raise() -> None:
    options = eo.discover(Boxes(), n_options=4)
    env = wrap(
        Boxes(),
        options,
        state=lambda obs: 5 * int(obs["cell"][0]) + int(obs["cell"][1]) - 1,
    )
    with pytest.raises((ValueError, IndexError), match="state"):  # noqa: PT012
        env.reset(seed=0)
        for _ in range(100):
            env.step(env.action_space.sample())


def test_copies_and_pickles_continue_alike(options: eo.OptionSet) -> None:
    env = wrap_rooms(options, option_chance=1.0)
    env.reset(seed=3)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        original = copy.deepcopy(env)
        for action in (4, 11, 0, 7, 9):
            assert original.step(action)[:4] == twin.step(action)[:4]
            assert twin.action_masks()[
                twin.action_space.sample()
            ]  # the mask of its own state
    alone = pickle.loads(pickle.dumps(env.action_space))
    assert {int(alone.sample()) for _ in range(400)} == set(range(4, 12))


# Samples and masks


def test_masks_mark_available_options(
    options: eo.OptionSet, rng: np.random.Generator
) -> None:
    env = wrap_rooms(options)
    state, info = env.reset(seed=0)
    for _ in range(200):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        np.testing.assert_array_equal(
            mask, [1] * 4 + (options.policy[:, state] >= 0).tolist()
        )
        masks = env.action_masks()
        assert masks.dtype == np.bool_
        mask[:] = 7  # the caller's own copy
        np.testing.assert_array_equal(env.action_masks(), masks)
        state, _, terminated, truncated, info = env.step(
            rng.choice(np.flatnonzero(masks))
        )
        if terminated or truncated:
            state, info = env.reset()


def test_samples_are_available_options_with_option_chance(
    options: eo.OptionSet,
) -> None:
    env, n = wrap_rooms(options, option_chance=0.25), 3000
    _, info = env.reset(seed=0)
    env.action_space.seed(1)
    counts, share = np.zeros(12), np.zeros(12)
    for _ in range(n):
        action = env.action_space.sample()
        assert info["action_mask"][action]
        counts[action] += 1
        share[4:] += info["action_mask"][4:] / info["action_mask"][4:].sum()
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
    expected = np.where(np.arange(12) < 4, 0.75 * n / 4, 0.25 * share)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_space_sample_honours_mask_probability_and_seed() -> None:
    space = OptionsSpace(4, 8, 0.5)
    mask = np.zeros(12, dtype=np.int8)
    assert space.sample(mask=mask) == 0  # as in Gymnasium
    mask[[2, 9]] = 1
    assert {int(space.sample(mask=mask)) for _ in range(50)} == {2, 9}
    assert space.sample(probability=np.eye(12)[3]) == 3
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=np.ones(3, dtype=np.int8))
    samples = []
    for _ in range(2):
        space.seed(5)
        samples.append([space.sample() for _ in range(20)])
    assert samples[0] == samples[1]


@pytest.mark.parametrize("mode", MODES)
def test_stop_chance_ends_sampled_options_only(mode: str) -> None:
    """Lengths of sampled options are geometric; others run to their end."""
    endless = make_options(np.ones((1, 3), dtype=int), 4)
    settings = {
        "mode": mode,
        "option_chance": 1.0,
        "stop_chance": 0.25,
        "max_duration": 60,
    }
    env = wrap_corridor(endless, "S..", **settings)

    def run(action: int) -> int:
        duration = env.step(action)[4]["duration"]
        while mode == "step" and not env.action_masks()[0]:
            duration += env.step(action)[4]["duration"]
        return duration

    durations = [run(env.action_space.sample()) for _ in range(1000)]
    counts, expected = (
        np.bincount(durations, minlength=5)[1:5],
        250 * 0.75 ** np.arange(4),
    )
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()
    assert {run(4) for _ in range(5)} == {60}


# Errors

FIXED = "eigenoptions/FourRooms-v0"


@pytest.mark.parametrize(
    ("env", "settings", "word"),
    [
        ("Pendulum-v1", {}, "Discrete"),
        ("MountainCar-v0", {}, "actions"),
        ("eigenoptions/IMaze-v0", {}, "states"),
        (FIXED, {"gamma": 0}, "gamma"),
        (FIXED, {"mode": "flat"}, "mode"),
        (FIXED, {"max_duration": 0}, "max_duration"),
        (FIXED, {"option_chance": 2}, "option_chance"),
        (FIXED, {"stop_chance": 1.0}, "stop_chance"),
        (FIXED, {"options": []}, "no options"),
        (FIXED, {"options": 3}, "OptionSet"),
        (FIXED, {"options": [lambda obs: 0]}, "act"),
        (
            "MountainCar-v0",
            {"options": make_options(np.zeros((1, 9), dtype=int), 3)},
            "state=",
        ),
    ],
)
def test_wrapper_wrong_argument_raises(
    options: eo.OptionSet, env: str, settings: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        wrap(gym.make(env), **{"options": options, **settings})


def test_step_wrong_action_raises(options: eo.OptionSet) -> None:
    env = wrap_rooms(options)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, 12, np.array([5]), 1.0):
        with pytest.raises(ValueError, match="action"):
            env.step(action)
    assert env.step(np.array(5))[4]["option"] == 1


def test_step_after_an_exception_inside_an_option_needs_a_reset() -> None:
    env = wrap_corridor()
    step, env.env.step = (
        env.env.step,
        lambda action: step(action) if env.unwrapped.state < 3 else 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        env.step(4)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.env.step = step
    assert env.reset(seed=0)[1]["action_mask"].all()
    assert env.step(4)[0] == 6


def test_options_act_with_sticky_actions(options: eo.OptionSet) -> None:
    env = wrap(StickyAction(gym.make("eigenoptions/FourRooms-v0"), 0.5), options)
    env.reset(seed=0)
    assert sum(env.step(4 + i % 8)[4]["duration"] for i in range(50)) > 100


def test_check_compares_the_dynamics(options: eo.OptionSet) -> None:
    options.check(
        gym.make("eigenoptions/FourRooms-v0", goal=50)
    )  # another task, the same dynamics
    lake = eo.discover("FrozenLake-v1", n_options=2)
    lake.check(gym.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match="another state space"):
        eo.discover(gym.make("FrozenLake-v1", is_slippery=False), n_options=2).check(
            gym.make("FrozenLake-v1")
        )
    mirrored = "\n".join(row[::-1] for row in str(options.mdp).splitlines()[:13])
    mirrored = mirrored.replace("█", "#").replace(" ", ".")
    with pytest.raises(ValueError, match="another state space"):
        options.check(MazeEnv(mirrored))
