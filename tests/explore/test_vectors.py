"""`explore` where nothing repeats: vectors as observations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import eigenoptions as eo
from eigenoptions.explore.axes import choose_axes
from eigenoptions.explore.found_vectors import VectorFound, VectorRewards


class Field(gym.Env[Any, Any]):
    """A point in the plane with a wall: actions move it, the far corner is the goal.

    Parameters
    ----------
    extra : {"", "clock", "battery", "noise", "constant"}
        A further column.
    scale : float
        Of the second coordinate.
    """

    def __init__(self, extra: str = "", scale: float = 1.0, box: bool = False) -> None:
        self.extra = extra
        self.scale = scale
        width = 2 + bool(extra)
        self.observation_space = Box(-np.inf, np.inf, (width,), np.float64)
        self.action_space = Box(-1.0, 1.0, (2,)) if box else Discrete(4)  # type: ignore[assignment]
        self.n_steps = 0
        self.point = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.point = self.np_random.uniform(0.2, 1.0, 2)
        self.n_steps = 0
        return self.observe(), {}

    def observe(self) -> Any:
        further = {
            "": [],
            "clock": [float(self.n_steps)],
            "battery": [100.0 - 0.5 * self.n_steps - self.np_random.uniform(0, 0.2)],
            "noise": [self.np_random.normal()],
            "constant": [7.0],
        }
        x, y = self.point
        return np.array([x, y * self.scale, *further[self.extra]])

    def step(self, action: Any) -> Any:
        self.n_steps += 1
        if isinstance(self.action_space, Discrete):
            moves = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
            change = 0.45 * moves[int(action)]
        else:
            change = 0.45 * np.clip(action, -1, 1)
        x, y = self.point + change + self.np_random.normal(0, 0.01, 2)
        is_wall = (self.point[0] - 4) * (x - 4) < 0 and y < 6
        if not is_wall and 0 <= x <= 8 and 0 <= y <= 8:
            self.point = np.array([x, y])
        is_won = bool((self.point > 7).all())
        return self.observe(), float(is_won), is_won, self.n_steps >= 200, {}


def drive(env: Any, option: Any, n_episodes: int = 5, most: int = 300) -> int:
    """How many episodes an option brings to an end, from fresh starts."""
    n_won = 0
    for seed in range(n_episodes):
        obs, _ = env.reset(seed=1000 + seed)
        for _ in range(most):
            action = option.act(obs)
            if np.ndim(action) == 0 and action == -1:
                action = env.action_space.sample()
            obs, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                n_won += terminated
                break
    return n_won


@pytest.mark.parametrize("seed", [11, 12])
def test_mountain_car_is_found_and_found_again(seed: int) -> None:
    found = eo.explore("MountainCar-v0", 1000, until="reward", seed=seed)
    assert found.n_steps < 1000
    assert "end" in found.reward_rule
    assert drive(gym.make("MountainCar-v0"), found.option()) >= 4


def test_transitions_are_the_steps_that_were() -> None:
    found = eo.explore("MountainCar-v0", 300, seed=0)
    steps = found.transitions
    assert len(np.unique(steps.obs, axis=0)) > 290
    env = gym.make("MountainCar-v0").unwrapped
    env.reset(seed=0)
    for obs, action, next_obs in zip(
        steps.obs[60:90], steps.action[60:90], steps.next_obs[60:90], strict=True
    ):
        env.state = obs.astype(np.float64)  # type: ignore[attr-defined]
        assert env.step(int(action))[0] == pytest.approx(next_obs, abs=1e-5)


@pytest.mark.parametrize("box", [False, True])
def test_a_wall_with_a_door_is_passed(box: bool) -> None:
    env = Field(box=box)
    found = eo.explore(env, 4000, until="reward", seed=1)
    assert len(found.rewarded)
    assert drive(env, found.option()) >= 3
    potential = found.potential()
    start, near = np.array([0.5, 0.5]), found.transitions.obs[-1]
    assert 0 <= potential(start) < potential(near) <= 1


def test_a_planner_plans_with_what_was_found() -> None:
    found = eo.explore(Field(), 1500, seed=0)
    planner = eo.Planner(found)
    action = planner.act(found.transitions.obs[0], found.transitions.obs[-1])
    assert -1 <= action < 4


def test_the_same_seed_takes_the_same_steps() -> None:
    first, second = (eo.explore(Field(), 500, seed=3) for _ in range(2))
    assert np.array_equal(first.transitions.obs, second.transitions.obs)
    other = eo.explore(Field(), 500, seed=4)
    assert not np.array_equal(first.transitions.obs, other.transitions.obs)


def test_known_continues() -> None:
    env = Field()
    found = eo.explore(env, 300, seed=0)
    more = eo.explore(env, 200, known=found, seed=0)
    assert more.n_steps == 500
    assert np.array_equal(more.transitions.obs[:300], found.transitions.obs)
    with pytest.raises(ValueError, match="another environment"):
        eo.explore("CartPole-v1", 100, known=found)


@pytest.mark.parametrize("env", [Field(box=True), Field()])
def test_a_file_holds_what_was_found(env: Any, tmp_path: Any) -> None:
    found = eo.explore(env, 400, seed=0, until=1.0)
    found.save(tmp_path / "found.safetensors")
    loaded = eo.load_found(tmp_path / "found.safetensors")
    assert np.array_equal(loaded.transitions.obs, found.transitions.obs)
    assert np.array_equal(loaded.transitions.action, found.transitions.action)
    assert loaded.reward_rule == found.reward_rule
    assert loaded.states == found.states
    assert eo.explore(env, 50, known=loaded, seed=0).n_steps == found.n_steps + 50


def test_options_of_cells_act_on_observations() -> None:
    found = eo.explore(Field(), 1500, seed=0)
    options = eo.discover(found, n_options=4)
    env = eo.OptionsWrapper(Field(), options)
    env.reset(seed=0)
    assert env.step(5)[-1]["duration"] >= 1


def test_samples_of_an_action_space_explore() -> None:
    env = eo.Exploring(Field(box=True))
    env.reset(seed=0)
    for _ in range(400):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    assert isinstance(env.found, VectorFound)
    assert env.found.transitions.obs[:, :2].max(axis=0).min() > 5


def test_an_option_is_an_action_of_agents() -> None:
    found = eo.explore("MountainCar-v0", 1000, until="reward", seed=0)
    env = eo.OptionsWrapper(gym.make("MountainCar-v0"), found.option())
    _, info = env.reset(seed=5)
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    *_, info = env.step(3)
    assert info["duration"] > 50


@pytest.mark.parametrize(
    ("extra", "word"), [("clock", "clock"), ("battery", "one way"), ("noise", "noise")]
)
def test_what_is_always_new_is_named_and_left_out(
    extra: str, word: str, caplog: Any
) -> None:
    found = eo.explore(Field(extra), 600, seed=0)
    assert found.axes.columns == [0, 1]  # type: ignore[attr-defined]
    messages = [r.message for r in caplog.records if word in r.message]
    assert len(messages) == 1
    assert "columns=" in messages[0]


def test_scales_do_not_matter() -> None:
    plain = eo.explore(Field(), 400, seed=0).transitions
    scaled = eo.explore(Field(scale=2.0**20), 400, seed=0).transitions
    assert np.array_equal(plain.action, scaled.action)


def test_a_turn_is_one_coordinate() -> None:
    rng = np.random.default_rng(0)
    turn = np.cumsum(rng.choice([-0.3, 0.3], 500))
    place = np.cumsum(rng.choice([-1.0, 1.0], 500))
    circle = np.stack([place, np.cos(turn), np.sin(turn)], axis=1)
    jumping = np.stack([place, (turn + np.pi) % (2 * np.pi) - np.pi], axis=1)
    controls = rng.normal(size=(499, 1))
    for obs in (circle, jumping):
        axes = choose_axes(obs[:-1], obs[1:], controls)
        assert axes.is_angle.tolist() == [False, True]
        change = axes.subtract(axes.read(obs[1:]), axes.read(obs[:-1]))[:, 1]
        assert np.abs(change).max() < 1.2


def test_more_than_six_coordinates_need_columns() -> None:
    rng = np.random.default_rng(0)
    obs = np.cumsum(rng.normal(size=(300, 9)), axis=0)
    with pytest.raises(ValueError, match="columns=") as error:
        choose_axes(obs[:-1], obs[1:], rng.normal(size=(299, 1)))
    assert "9 coordinates" in str(error.value)
    assert choose_axes(obs[:-1], obs[1:], obs[:-1, :1], [0, 4]).columns == [0, 4]


def test_what_an_action_costs_is_no_reward() -> None:
    rewards = VectorRewards(2)
    for step in range(50):
        rewards.add(step % 2, -0.1 * (step % 2), False)
    assert not rewards.stands_out
    rewards.add(1, 99.9, True)
    assert rewards.stands_out


def test_dense_rewards_need_a_threshold() -> None:
    with pytest.raises(ValueError, match="until="):
        eo.explore("Pendulum-v1", 500, until="reward")
    found = eo.explore("Pendulum-v1", 2000, until=-0.5)
    assert found.n_steps < 2000
    assert found.transitions.reward is not None
    assert found.transitions.reward[-1] >= -0.5


class Pixels(Field):
    """The field as frames of noise, which never repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Box(0, 255, (16, 16, 3), np.uint8)

    def observe(self) -> Any:
        return self.np_random.integers(256, size=(16, 16, 3), dtype=np.uint8)


def test_pixels_and_columns_of_states_are_refused() -> None:
    with pytest.raises(ValueError, match="deep"):
        eo.explore(Pixels(), 2000)
    with pytest.raises(ValueError, match="columns"):
        eo.explore("FrozenLake-v1", 50, columns=[0])


class Nested(Field):
    """The field as a Dict."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict(  # type: ignore[assignment]
            x=Box(-np.inf, np.inf, (1,)), y=Box(-np.inf, np.inf, (1,))
        )

    def observe(self) -> Any:
        return {"x": self.point[:1], "y": self.point[1:]}


def test_dicts_are_flattened() -> None:
    found = eo.explore(Nested(), 300, columns=[0, 1])
    assert found.transitions.obs.shape == (300, 2)


class Broken(Field):
    """The field with an observation that is not finite, or that never moves."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def observe(self) -> Any:
        is_broken = self.n_steps >= 100 or self.value == 0
        return np.full(2, self.value) if is_broken else super().observe()


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "finite"), (np.inf, "finite"), (0.0, "moves")]
)
def test_bad_observations_are_refused(value: float, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        eo.explore(Broken(value), 300, columns=[0, 1])


def test_a_function_takes_whole_observations_of_what_was_found() -> None:
    found = eo.explore(Field("constant"), 300, columns=[0, 1], seed=0)
    options = eo.discover(found, 2, features=np.asarray)
    assert options.directions.shape[1] == 3  # type: ignore[union-attr]
