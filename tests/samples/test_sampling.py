"""From samples to options: walks, tables, sampled environments, feature spaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from scipy.linalg import subspace_angles

import eigenoptions as eo
from eigenoptions.samples import Transitions
from eigenoptions.samples.feature_space import _find_cell_bounds, find_rare_transitions
from eigenoptions.samples.features import Fourier, Tiles
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import read_samples
from eigenoptions.samples.walking import walk
from tests.tables import list_transitions

# Tables


def test_discover_every_transition_gives_the_exact_options(domain: eo.MDP) -> None:
    """Theorem 5.1, end to end: the options, and not only the eigenvectors."""
    sampled = eo.discover(list_transitions(domain), n_options=16)
    exact = eo.discover(domain, n_options=16, operator="combinatorial")
    assert sampled.labels == exact.labels
    np.testing.assert_array_equal(sampled.policy, exact.policy)
    np.testing.assert_allclose(sampled.value, exact.value, rtol=0, atol=1e-9)
    assert sampled.mdp.is_estimated


def test_discover_more_samples_come_closer_to_the_exact_options(
    four_rooms: eo.MDP,
) -> None:
    table = replace(four_rooms, goal=None)
    exact = eo.discover(table, 8, operator="combinatorial")
    vectors = eo.spectrum(eo.graph(table), 5, "combinatorial").vectors[:, 1:]
    for seed in range(3):
        path = walk(table, 20_000, rng=seed)
        angles = []
        for n in (300, 3000, 20_000):
            options = eo.discover(path[:n], 8, space=Discrete(104), n_actions=4)
            found = np.stack(
                [purpose.potential for purpose in options.purposes[::2]], axis=1
            )
            angles.append(subspace_angles(found, vectors)[0])
        assert angles[0] > angles[1] > angles[2]
        assert angles[2] < 1e-7
        assert np.array_equal(options.policy, exact.policy)


def test_discover_states_never_seen_have_no_option() -> None:
    batch = ([4, 5, 6], [1, 1, 1], [5, 6, 7])
    options = eo.discover(batch, space=Discrete(9), n_actions=2)
    assert options.labels[0] == "e2+"
    assert (options.policy[:, [0, 1, 2, 3, 8]] == -1).all()
    assert eo.discover(batch, 2, "covering", space=Discrete(9), n_actions=2).goals == (
        4,
        7,
    )
    # Settings with one entry per state are those of the states seen; visits are
    # counted.
    visits = eo.discover(
        batch, 1, "neo", space=Discrete(9), n_actions=2, visits=np.arange(9)
    )
    assert visits.policy.shape == (1, 9)
    counted = eo.discover(batch, 1, "neo", space=Discrete(9), n_actions=2)
    given = np.bincount(batch[0], minlength=9)
    by_hand = eo.discover(batch, 1, "neo", space=Discrete(9), n_actions=2, visits=given)
    assert counted.policy.tobytes() == by_hand.policy.tobytes()


def test_discover_batches_agree_with_one(four_rooms: eo.MDP) -> None:
    whole = walk(four_rooms, 5000, rng=0)
    parts = [whole[first : first + 700] for first in range(0, 5000, 700)]
    one, many = (
        eo.discover(data, 8, space=Discrete(104), n_actions=4)
        for data in (whole, parts)
    )
    assert one.policy.tobytes() == many.policy.tobytes()


def test_discover_warns_of_sizes_that_come_from_the_data(
    four_rooms: eo.MDP, caplog: Any
) -> None:
    batch = walk(four_rooms, 3000, rng=0)
    eo.discover(batch, 2, space=Discrete(104), n_actions=4)
    assert caplog.text == ""
    eo.discover(batch, 2)
    assert "n_actions=" in caplog.text


# Environments


def test_discover_samples_of_environments(four_rooms: eo.MDP) -> None:
    table = eo.discover("eigenoptions/FourRooms-v0", 4, steps=4000)
    assert isinstance(table, eo.OptionSet)
    assert table.provenance["environment"] == "eigenoptions/FourRooms-v0"
    assert np.array_equal(table.mdp.coords, four_rooms.coords)
    eo.OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), table).reset(seed=0)
    lake = eo.discover("FrozenLake-v1", 2, steps=2000)
    assert lake.n_states == 16
    assert lake.n_actions == 4
    car = eo.discover(
        lambda: gym.make("MountainCar-v0"),
        2,
        steps=500,
        features=eo.Fitted("tiles", tiles=4),
    )
    assert isinstance(car, LinearOptionSet)
    assert car.features == Tiles((-1.2, -0.07), (0.6, 0.07), tiles=4)
    vector = gym.make_vec("CartPole-v1", num_envs=2)
    assert len(eo.discover(vector, 2, steps=500)) == 2
    raw = eo.discover("Acrobot-v1", 2, steps=500, features="raw")
    assert raw.directions.shape == (2, 6)


class Drift(gym.Env[Any, Any]):
    """A point that moves by chance on a line of 12 places.

    It can be copied, but not explored.
    """

    action_space = Discrete(2)

    def __init__(self, space: Any) -> None:
        self.observation_space = space

    def observe(self) -> Any:
        place = np.array([self.place])
        if isinstance(self.observation_space, Dict):
            return {
                "observation": place / 12,
                "achieved_goal": place / 12,
                "desired_goal": np.ones(1),
            }
        return place

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 5
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        move = 2 * int(action) - 1 if self.np_random.random() < 0.8 else 0
        self.place = int(np.clip(self.place + move, 0, 11))
        return self.observe(), 0.0, False, False, {}


def test_discover_samples_what_it_cannot_explore(caplog: Any) -> None:
    caplog.set_level("INFO", "eigenoptions")
    options = eo.discover(lambda: Drift(MultiDiscrete([12])), 2)
    assert options.provenance["source"] == "samples"
    assert "deterministic" in caplog.text


def test_discover_takes_the_observation_of_goal_environments() -> None:
    line = Box(0.0, 1.0, (1,), np.float64)
    env = Drift(Dict(observation=line, achieved_goal=line, desired_goal=line))
    options = eo.discover(env, steps=500, features=eo.Fitted(iterations=3))
    assert options.features.low == (0.0,)
    # 16 features of which one is constant, both signs of each: fewer than 32.
    assert 2 <= len(options) < 32
    wrapped = eo.OptionsWrapper(env, options, option_chance=0.5, max_duration=50)
    wrapped.reset(seed=0)
    for _ in range(20):
        assert set(wrapped.step(wrapped.action_space.sample())[0]) == {
            "observation",
            "achieved_goal",
            "desired_goal",
        }


def test_discover_of_an_environment_has_32_options_and_of_an_mdp_all(
    four_rooms: eo.MDP,
) -> None:
    assert len(eo.discover("eigenoptions/FourRooms-v0")) == 32
    assert len(eo.discover("FrozenLake-v1")) < 32
    assert len(eo.discover(four_rooms)) == len(eo.discover("four-rooms")) == 206


def test_discover_look_ahead_is_bound_to_a_given_environment() -> None:
    env = gym.make("CartPole-v1")
    waves = eo.Fitted("fourier", order=2, policy="look-ahead")
    options = eo.discover(env, 2, steps=300, features=waves)
    obs, _ = env.reset(seed=0)
    assert options.choices(obs).shape == (2,)
    ahead = eo.Fitted(policy="look-ahead")
    unbound = eo.discover("CartPole-v1", 2, steps=300, features=ahead)
    with pytest.raises(ValueError, match="look_ahead"):
        unbound.choices(obs)


# Feature spaces


@pytest.fixture(scope="module")
def car() -> Transitions:
    return eo.collect("MountainCar-v0", 4000, n_envs=4)


def test_discover_whitened_functions_have_variance_one(car: Transitions) -> None:
    waves = Fourier((-1.2, -0.07), (0.6, 0.07), order=3)
    kept = car.obs[find_rare_transitions(car, waves)]
    whitened, plain = (
        eo.discover(
            car,
            6,
            features=eo.Fitted(waves, whiten=whiten, iterations=2),
            n_actions=3,
        )
        for whiten in (True, False)
    )
    np.testing.assert_allclose(whitened.potential(kept).std(axis=1), 1.0, atol=1e-6)
    # Without it, the smallest eigenvalues belong to functions that are flat on the
    # data.
    assert plain.potential(kept).std(axis=1).max() < 0.01


def test_discover_whitened_eigenvalues_do_not_depend_on_the_scale_of_features(
    car: Transitions,
) -> None:
    phi = Fourier((-1.2, -0.07), (0.6, 0.07), order=2)
    scale = np.linspace(0.5, 1.5, 9)
    first, second = (
        eo.discover(
            car,
            2,
            features=eo.Fitted(f, per_cell=None, iterations=2),
            n_actions=3,
        )
        for f in (phi, lambda obs: phi(obs) * scale)
    )
    assert first.eigenvalues[0] == pytest.approx(second.eigenvalues[0], rel=0.05)


def test_discover_maps_each_observation_once(car: Transitions) -> None:
    rows = []

    def count(obs: Any) -> Any:
        rows.append(len(obs))
        return Fourier((-1.2, -0.07), (0.6, 0.07), order=2)(obs)

    eo.discover(car, 2, features=eo.Fitted(count, per_cell=None), n_actions=3)
    # One observation in each cell is mapped once more: options are tuned there.
    assert rows[0] == 2 * len(car)
    assert len(rows) == 2
    assert rows[1] < len(car) / 4


def test_cells_lie_between_the_bounds_of_the_features() -> None:
    obs = np.array([[0.2], [0.8]])
    low, high = _find_cell_bounds(obs, Fourier((0.0,), (1.0,)))
    assert (*low, *high) == (0.0, 1.0)
    low, high = _find_cell_bounds(obs, None)
    assert (*low, *high) == (0.2, 0.8)


def test_find_rare_transitions_keeps_few_of_each_cell_and_action() -> None:
    x = np.concatenate([np.full((1000, 1), 0.55), [[0.2]]])
    batch = Transitions(x, np.arange(1001) % 2, x + 0.01, np.zeros(1001, dtype=bool))
    rows = find_rare_transitions(batch, Fourier((0.0,), (1.0,)), per_cell=3, n_cells=10)
    assert rows.tolist() == [0, 1, 2, 3, 4, 5, 1000]
    assert (
        len(find_rare_transitions(batch, Fourier((0.0,), (1.0,)), per_cell=None))
        == 1001
    )


def test_read_samples_tells_numbered_states_by_the_space_or_the_type() -> None:
    batch = Transitions(
        np.array([0, 3]), np.array([0, 1]), np.array([3, 1]), np.zeros(2, dtype=bool)
    )
    assert read_samples(batch).n_states == 4
    assert read_samples(batch, Discrete(9)).n_states == 9
    boxes = (np.array([[0.5], [0.2]]), [0, 1], np.array([[0.1], [0.3]]))
    assert read_samples(boxes).n_states is None
    assert read_samples(batch, MultiBinary(4)).n_states is None
    assert read_samples(boxes, Box(0.0, 1.0, (1,))).n_states is None


# Errors

BATCH = walk(eo.maze("four-rooms"), 50)
NAN = (np.full((3, 2), np.nan), [0, 0, 0], np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("source", "settings", "word"),
    [
        (BATCH, {"n_options": 9999}, "n_options"),
        (iter([1, 2]), {}, "parts"),
        ([], {}, "empty"),
        ((np.zeros((0, 2)), np.zeros(0, int), np.zeros((0, 2))), {}, "no transitions"),
        (NAN, {}, "row 0"),
        ((np.array([{"a": 1}]), [0], np.array([{"a": 1}])), {}, "numbers"),
        (BATCH, {"space": Discrete(3)}, "states"),
        (BATCH, {"n_actions": 1}, "actions"),
        ((np.eye(2), [0, 10**9], np.eye(2)), {}, "n_actions"),
        ("Pendulum-v1", {}, "Discrete"),
        (lambda: Drift(Box(0, 255, (84, 84), np.uint8)), {"steps": 50}, "images"),
        ("Blackjack-v1", {"steps": 50}, "features="),
        ("NoSuchEnv-v0", {}, "NoSuchEnv"),
        ("MountainCar-v0", {"steps": 0}, "steps"),
        ("MountainCar-v0", {"steps": 99, "features": "wavelets"}, "features"),
        (
            "MountainCar-v0",
            {"steps": 99, "method": "covering", "features": "fourier"},
            "numbered",
        ),
        ("MountainCar-v0", {"steps": 99, "cell_size": 0.0}, "cell_size"),
        ("MountainCar-v0", {"steps": 99, "cell_size": 99.0}, "cell_size"),
        ("MountainCar-v0", {"steps": 99, "columns": [5]}, "column"),
    ],
)
def test_discover_bad_samples_raise(
    source: Any, settings: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        eo.discover(source, **{"n_options": 2, **settings})


def test_discover_unknown_settings_of_samples_raise() -> None:
    with pytest.raises(TypeError, match="did you mean 'cell_size'"):
        eo.discover("MountainCar-v0", 2, steps=99, cell_sice=3)
    with pytest.raises(TypeError, match="speed"):
        eo.discover(BATCH, 2, "diffusion", speed=3)
