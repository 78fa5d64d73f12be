"""`OptionsWrapper` and `OptionsSpace`: what a decision returns, what is available."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import StickyAction, TimeLimit, TransformObservation

import eigenoptions as eo
from eigenoptions.envs import FixedSeed, MazeEnv, OptionsSpace, OptionsWrapper
from eigenoptions.options.tuning import tune_exploration
from tests.tables import make_options

MODES = ["call-and-return", "step"]
# On a corridor of seven cells.
RIGHT = make_options([[1, 1, 1, 1, 1, 1, eo.TERMINATE]], 4)


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
        info["count"] = self.count
        return obs, float(self.count), terminated, truncated, info


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
            path = options.follow(i, start).tolist()
            if 0 in path:
                # The goal ends the option.
                path = path[: path.index(0) + 1]
            duration = len(path) - 1
            is_goal = path[-1] == 0

            env.reset(options={"start": int(start)})
            obs, reward, terminated, truncated, info = env.step(4 + i)
            assert (obs, terminated, truncated) == (path[-1], is_goal, False)
            expected = 0.9 ** (duration - 1) if is_goal else 0.0
            assert reward == pytest.approx(expected)
            assert info["option"] == i
            assert info["duration"] == duration
            assert info["discount"] == pytest.approx(0.9**duration)
            assert "unavailable" not in info
            assert "option_truncated" not in info


@pytest.mark.parametrize(
    "name", ["eigenoptions/FourRooms-v0", "FrozenLake-v1", "Taxi-v4"]
)
def test_step_primitive_action_is_the_environments_own(
    name: str, rng: np.random.Generator
) -> None:
    bare = gym.make(name, max_episode_steps=60)
    n_states = int(bare.observation_space.n)
    n_actions = int(bare.action_space.n)
    options = make_options(np.zeros((2, n_states), dtype=int), n_actions)
    env = wrap(gym.make(name, max_episode_steps=60), options, gamma=0.9)
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
        is_over = outcome[2] or outcome[3]
        assert ("option_usage" in info) == is_over
        info.pop("option_usage", None)
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
    assert info["duration"] == 6
    assert info["discount"] == 0.5**6
    assert info["primitive_return"] == sum(range(2, 8))
    # The rest of the info is that of the last step.
    assert info["count"] == 7


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 5, 6, 7])
def test_time_limit_counts_primitive_steps(limit: int, mode: str) -> None:
    env = wrap(TimeLimit(MazeEnv("S......"), limit), RIGHT, mode=mode)
    for _ in range(2):  # the count begins anew with the episode
        env.reset(seed=0)
        steps = 0
        truncated = False
        while not truncated and steps < 6:
            _, _, terminated, truncated, info = env.step(4)
            steps += info["duration"]
            assert not terminated
        assert steps == min(limit, 6)
        assert truncated == (limit <= 6)


def test_unavailable_option_takes_one_random_action_by_the_seed() -> None:
    never = make_options(np.full((2, 104), eo.TERMINATE), 4)

    def walk(seed: int) -> list[int]:
        env = wrap_rooms(never, limit=None)
        state, _ = env.reset(seed=seed)
        path = [state]
        for i in range(200):
            state, _, _, _, info = env.step(4 + i % 2)
            assert info["unavailable"]
            assert info["option"] == i % 2
            assert info["duration"] == 1
            assert state in env.unwrapped.mdp.successors[path[-1]]
            path.append(state)
        return path

    assert walk(1) == walk(1) != walk(2)


@pytest.mark.parametrize("mode", MODES)
def test_max_duration_truncates_an_endless_option(mode: str) -> None:
    endless = make_options(np.ones((1, 3), dtype=int), 4)
    env = wrap_corridor(endless, "S..", mode=mode, max_duration=50)
    steps = 0
    info: dict[str, Any] = {}
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
    whole = wrap_rooms(options, None)
    single = wrap_rooms(options, None, mode="step")
    assert isinstance(single.observation_space, Dict)
    _, info = whole.reset(seed=0)
    _, step_info = single.reset(seed=0)
    for _ in range(100):
        np.testing.assert_array_equal(info["action_mask"], step_info["action_mask"])
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        state, reward, terminated, _, info = whole.step(action)
        discounted = 0.0
        given = action
        for i in range(info["duration"]):
            obs, step_reward, step_terminated, _, step_info = single.step(given)
            assert obs in single.observation_space
            assert step_info["duration"] == 1
            assert step_info["option"] == info["option"]
            discounted += 0.99**i * step_reward
            # While an option runs, the action is ignored.
            given = int(rng.integers(12))
            if i + 1 < info["duration"]:
                assert obs["option"] == info["option"] + 1
                assert np.flatnonzero(step_info["action_mask"]).tolist() == [action]
        assert obs == {"observation": state, "option": 0}
        assert step_terminated == terminated
        assert discounted == pytest.approx(reward)
        if terminated:
            _, info = whole.reset()
            _, step_info = single.reset()


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
        self.observation_space = Box(0, 10, (1,))
        self.array = np.zeros(1, dtype=np.float32)

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
    """Accelerate in the direction of motion until the car is high up."""

    def act(self, obs: np.ndarray) -> int:
        position, velocity = obs
        if position > 0.3:
            return eo.TERMINATE
        return 2 if velocity >= 0 else 0


@pytest.mark.parametrize("mode", MODES)
def test_use_of_options_is_counted_at_the_end_of_an_episode(mode: str) -> None:
    """An option that is not available, a step, and an option to the goal."""
    policies = np.array([[1, 1, 1, 1, 1, 1, -1], [-1] * 7])
    env = wrap_corridor(make_options(policies, 4), maze="S.....G", mode=mode)
    infos = []
    for choice in (5, 1, *[4] * 7):
        *_, terminated, truncated, info = env.step(choice)
        infos.append(info)
        if terminated or truncated:
            break

    assert all("option_usage" not in info for info in infos[:-1])
    n_steps = sum(info["duration"] for info in infos)
    assert n_steps >= 6
    assert infos[-1]["option_usage"] == {
        "decisions": 3,
        "option_decisions": 1,
        "steps": n_steps,
        "option_steps": n_steps - 2,
    }
    # The next episode counts anew.
    env.reset(seed=0)
    for _ in range(6):
        *_, info = env.step(1)
    assert info["option_usage"]["decisions"] == info["option_usage"]["steps"] == 6


def test_agents_of_sb3_without_our_adapters_are_warned_of() -> None:
    """Once, when an option takes several steps; not with our adapters."""
    code = """
import sys
import eigenoptions as eo
ADAPTERS
env = eo.envs.MazeEnv("four-rooms")
options = eo.discover(env, n_options=4)
for _ in range(2):
    wrapped = eo.OptionsWrapper(env, options, option_chance=0.5)
    wrapped.reset(seed=0)
    wrapped.action_space.seed(0)
    for _ in range(100):
        wrapped.step(wrapped.action_space.sample())
"""
    counts = []
    for line in (
        "",
        "import stable_baselines3",
        "import eigenoptions.agents.sb3",
    ):
        command = [sys.executable, "-c", code.replace("ADAPTERS", line)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        counts.append(done.stderr.count("OptionsDQN"))
    assert counts == [0, 1, 0]


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
    """A 4 x 5 grid with a Dict observation and a wall that depends on the seed."""

    observation_space = Dict(
        {
            "cell": Box(0, 5, (2,), dtype=np.int64),
            "image": Box(0, 1, (9, 9), dtype=np.uint8),
        }
    )
    action_space = Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = (0, 0)
        self.wall = (1, int(self.np_random.integers(1, 5)))
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
    """Options know the states, also from a file; the agent keeps its observations."""
    inner = Boxes() if name == "Boxes" else gym.make(f"minigrid:MiniGrid-{name}-v0")
    options = eo.discover(inner, n_options=8)
    if loaded:
        options.save(tmp_path / "skills.safetensors")
        options = eo.load_options(tmp_path / "skills.safetensors")
    assert len(set(options.mdp.states)) == options.n_states
    options.check(inner)
    env = wrap(FixedSeed(inner, 0), options)
    n_primitive = env.n_primitive
    state = 0
    obs, info = env.reset(seed=3)
    for _ in range(300):
        assert obs in env.observation_space
        np.testing.assert_array_equal(
            info["action_mask"][n_primitive:], options.choices(state) >= 0
        )
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        obs, _, terminated, truncated, info = env.step(action)
        if action < n_primitive:
            state = int(options.mdp.successors[state, action])
        else:
            path = options.follow(action - n_primitive, state)
            state = int(path[info["duration"]])
        if terminated or truncated:
            state = 0
            obs, info = env.reset()
    if name != "Empty-6x6":
        # Another seed has another layout.
        with pytest.raises(ValueError, match="seed 0"):
            wrap(inner, options).reset(seed=4)


def test_wrong_numbers_of_states_raise() -> None:
    def number_wrongly(obs: Any) -> int:
        row, column = obs["cell"]
        return int(5 * row + column - 1)

    options = eo.discover(Boxes(), n_options=4)
    env = wrap(Boxes(), options, state=number_wrongly)
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
            # The mask is that of the twin's own state.
            assert twin.action_masks()[twin.action_space.sample()]
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
        assert mask.tolist() == [1, 1, 1, 1, *(options.policy[:, state] >= 0)]
        masks = env.action_masks()
        assert masks.dtype == np.bool_
        # The caller may change the mask, which is a copy.
        mask[:] = 7
        np.testing.assert_array_equal(env.action_masks(), masks)
        action = rng.choice(np.flatnonzero(masks))
        state, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            state, info = env.reset()


def test_samples_are_available_options_with_option_chance(
    options: eo.OptionSet,
) -> None:
    env = wrap_rooms(options, option_chance=0.25)
    _, info = env.reset(seed=0)
    env.action_space.seed(1)
    n_samples = 3000
    counts = np.zeros(12)
    expected = np.zeros(12)
    for _ in range(n_samples):
        action = env.action_space.sample()
        assert info["action_mask"][action]
        counts[action] += 1
        is_available = info["action_mask"][4:]
        expected[:4] += 0.75 / 4
        expected[4:] += 0.25 * is_available / is_available.sum()
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
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
@pytest.mark.parametrize("is_sampled", [False, True])
def test_stop_chance_ends_options_alike(mode: str, is_sampled: bool) -> None:
    """Lengths are geometric, whether an option was sampled or chosen otherwise."""
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

    durations = []
    for _ in range(1000):
        sample = env.action_space.sample()
        durations.append(run(sample if is_sampled else 4))
    counts = np.bincount(durations, minlength=5)[1:5]
    expected = 250 * 0.75 ** np.arange(4)
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()


def test_automatic_settings_let_options_run_to_their_ends(four_rooms: eo.MDP) -> None:
    """A random walk would stop these options by chance."""
    options = eo.discover(four_rooms, n_options=8)
    assert tune_exploration(four_rooms, options).stop_chance > 0
    env = OptionsWrapper(MazeEnv(four_rooms), options)
    assert env.option_chance > 0
    state, _ = env.reset(seed=0)
    path = options.follow(0, state)
    for _ in range(20):
        env.reset(seed=0)
        assert env.step(4)[4]["duration"] == len(path) - 1


@pytest.mark.parametrize("mode", MODES)
def test_unused_samples_change_nothing(mode: str) -> None:
    endless = make_options(np.ones((1, 3), dtype=int), 4)
    settings = {"mode": mode, "option_chance": 1.0, "stop_chance": 0.25}
    walks = []
    for draws_samples in (False, True):
        env = wrap_corridor(endless, "S..", **settings)
        env.reset(seed=0)
        walk = []
        for _ in range(200):
            if draws_samples:
                env.action_space.sample()
            walk.append(env.step(4)[4]["duration"])
        walks.append(walk)
    assert walks[0] == walks[1]


# Errors

ROOMS = "eigenoptions/FourRooms-v0"


@pytest.mark.parametrize(
    ("env", "settings", "word"),
    [
        ("Pendulum-v1", {}, "Discrete"),
        ("MountainCar-v0", {}, "actions"),
        ("eigenoptions/IMaze-v0", {}, "states"),
        (ROOMS, {"gamma": 0}, "gamma"),
        (ROOMS, {"mode": "flat"}, "mode"),
        (ROOMS, {"max_duration": 0}, "max_duration"),
        (ROOMS, {"option_chance": 2}, "option_chance"),
        (ROOMS, {"stop_chance": 1.0}, "stop_chance"),
        (ROOMS, {"options": []}, "no options"),
        (ROOMS, {"options": 3}, "OptionSet"),
        (ROOMS, {"options": [lambda obs: 0]}, "act"),
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
    step = env.env.step

    def fail_on_the_way(action: int) -> Any:
        if env.unwrapped.state >= 3:
            raise ZeroDivisionError
        return step(action)

    env.env.step = fail_on_the_way
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
    infos = [env.step(4 + i % 8)[4] for i in range(50)]
    assert sum(info["duration"] for info in infos) > 100


def test_check_compares_the_dynamics(options: eo.OptionSet) -> None:
    # Another task has the same dynamics.
    options.check(gym.make("eigenoptions/FourRooms-v0", goal=50))

    slippery = gym.make("FrozenLake-v1")
    eo.discover(slippery, n_options=2).check(slippery)
    firm = gym.make("FrozenLake-v1", is_slippery=False)
    with pytest.raises(ValueError, match="another state space"):
        eo.discover(firm, n_options=2).check(slippery)

    rows = str(options.mdp).splitlines()[:13]
    mirrored = "\n".join(row[::-1] for row in rows)
    mirrored = mirrored.replace("█", "#").replace(" ", ".")
    with pytest.raises(ValueError, match="another state space"):
        options.check(MazeEnv(mirrored))


def test_a_reset_in_a_vector_is_a_decision_of_no_steps(options: eo.OptionSet) -> None:
    """As learners in CleanRL's style see it: no key is missing in a row."""

    def make_env() -> OptionsWrapper:
        return wrap(TimeLimit(MazeEnv("four-rooms"), 12), options)

    envs = gym.vector.SyncVectorEnv([make_env])
    _, infos = envs.reset(seed=0)
    assert infos["duration"].tolist() == [0]
    n_resets = 0
    is_over = False
    for step in range(60):
        # A vector environment takes a step to begin the next episode.
        was_over = is_over
        n_resets += was_over
        _, _, terminated, truncated, infos = envs.step(np.array([4 + step % 8]))
        is_over = bool((terminated | truncated)[0])
        assert (infos["duration"] == 0).tolist() == [was_over]
        assert np.allclose(infos["discount"], 0.99 ** infos["duration"])
    assert n_resets > 2
