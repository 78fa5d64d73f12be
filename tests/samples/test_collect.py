"""`collect`: which transitions are recorded, by which behaviour."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.samples.collection import collect
from tests.tables import make_options

PARTS = ("obs", "action", "next_obs", "terminated")
# On a corridor of six cells.
BOTH_WAYS = make_options([[1, 1, 1, 1, 1, -1], [-1, 3, 3, 3, 3, 3]], 4)


def assert_same(one: eo.Transitions, other: eo.Transitions) -> None:
    for part in PARTS:
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def go_right(obs: Any) -> np.ndarray:
    return np.ones(len(obs), dtype=int)


@pytest.mark.parametrize("n_envs", [1, 7])
def test_collect_transitions_follow_the_table(four_rooms: eo.MDP, n_envs: int) -> None:
    batch = collect(
        "eigenoptions/FourRooms-v0", 3000, n_envs=n_envs, max_episode_steps=90
    )
    assert len(batch) == 3000
    np.testing.assert_array_equal(
        batch.next_obs, four_rooms.successors[batch.obs, batch.action]
    )
    np.testing.assert_array_equal(batch.terminated, batch.next_obs == four_rooms.goal)
    assert not (batch.obs == four_rooms.goal).any()  # a reset would leave the goal
    np.testing.assert_allclose(np.bincount(batch.action) / 3000, 0.25, atol=0.04)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("copy", [True, False])
def test_collect_resets_are_no_transitions(mode: AutoresetMode, copy: bool) -> None:
    """Also where the vector environment returns the same array in every step."""
    envs = SyncVectorEnv([lambda: MazeEnv("S..G")] * 2, autoreset_mode=mode, copy=copy)
    batch = collect(envs, 12, policy=go_right)
    columns = (batch.obs, batch.next_obs, batch.terminated)
    rows = zip(*columns, strict=True)
    assert sorted(rows) == sorted([(0, 1, False), (1, 2, False), (2, 3, True)] * 4)
    doubled = collect(envs, 12, policy=go_right, features=lambda obs: 2.0 * obs)
    assert sorted(doubled.next_obs.tolist()) == sorted(2.0 * batch.next_obs)
    # The vector environment is not closed.
    assert envs.step(np.ones(2, int))[0].shape == (2,)


def test_collect_truncation_is_no_end() -> None:
    batch = collect(MazeEnv("S....G"), 8, policy=go_right, max_episode_steps=2)
    assert batch.obs.tolist() == [0, 1] * 4
    assert batch.next_obs.tolist() == [1, 2] * 4
    assert not batch.terminated.any()


def test_collect_sources_are_equivalent(four_rooms: eo.MDP) -> None:
    settings: dict[str, Any] = {"n_envs": 5, "rng": 3, "max_episode_steps": 40}
    by_id = collect("eigenoptions/FourRooms-v0", 2000, **settings)
    assert_same(by_id, collect(lambda: MazeEnv("four-rooms"), 2000, **settings))
    assert_same(by_id, collect(four_rooms, 2000, **settings))


def test_collect_with_options_is_the_papers_walk(four_rooms: eo.MDP) -> None:
    """Each decision is uniform over what is available; options run to their end."""
    batch = collect(
        MazeEnv("......"), 6_000, policy=BOTH_WAYS, option_chance=None, rng=1
    )
    arrivals = np.flatnonzero(batch.obs == 0)
    # At the left end five choices are available, of which option 1 and action 1 lead
    # right.
    shares = np.bincount(batch.action[arrivals], minlength=4) / len(arrivals)
    np.testing.assert_allclose(shares, [0.2, 0.4, 0.2, 0.2], atol=0.04)
    n_runs = 0
    for i in arrivals[:-1]:
        goes_right = (batch.action[i : i + 5] == 1).all()
        gets_on = (batch.obs[i : i + 5] == range(5)).all()
        n_runs += goes_right and gets_on
    # A random walk makes such a run once in a thousand times.
    assert n_runs / len(arrivals) > 0.15

    options = eo.discover(four_rooms, n_options=8)
    rooms = collect(four_rooms, 2000, policy=options, n_envs=16)
    np.testing.assert_array_equal(
        rooms.next_obs, four_rooms.successors[rooms.obs, rooms.action]
    )
    as_objects = collect(
        MazeEnv("......"), 6_000, policy=list(BOTH_WAYS), option_chance=None, rng=1
    )
    assert_same(batch, as_objects)


def test_collect_option_chance_and_stop_chance() -> None:
    always_right = make_options([[1] * 6], 4)
    runs = collect(MazeEnv("......"), 2000, policy=always_right, option_chance=1.0)
    assert (runs.action == 1).all()
    mixed = collect(
        lambda: MazeEnv("......"),
        4000,
        policy=always_right,
        option_chance=0.5,
        stop_chance=0.5,
        n_envs=20,
    )
    # Half of the decisions are options, which take two steps on average.
    expected = (2 * 0.5 + 0.5 / 4) / 1.5
    np.testing.assert_allclose((mixed.action == 1).mean(), expected, atol=0.05)


def test_collect_option_ends_with_the_episode() -> None:
    options = make_options([[1, 1, 1, -1, 3, 3]], 4)
    batch = collect(
        lambda: MazeEnv("S....G"),
        5000,
        policy=options,
        n_envs=4,
        max_episode_steps=2,
        rng=2,
    )
    assert set(batch.obs.tolist()) <= {0, 1}


def test_collect_stores_features() -> None:
    batch = collect(
        "FrozenLake-v1", 100, n_envs=4, features=lambda obs: np.eye(16)[obs]
    )
    assert batch.obs.shape == (100, 16)
    np.testing.assert_array_equal(
        batch.next_obs.argmax(axis=1), collect("FrozenLake-v1", 100, n_envs=4).next_obs
    )


def test_collect_is_decided_by_the_seed() -> None:
    one, same, other = (
        collect("FrozenLake-v1", 500, n_envs=3, rng=seed) for seed in (7, 7, 8)
    )
    assert_same(one, same)
    assert (one.obs != other.obs).any()
    assert_same(
        *(collect("FrozenLake-v1", 500, rng=np.random.default_rng(1)) for _ in range(2))
    )


def test_collect_takes_vectors_as_actions() -> None:
    log = collect("Pendulum-v1", 300, n_envs=3)
    assert log.action.shape == (300, 1)
    assert -2.0 <= log.action.min() < -1.8
    assert 1.8 < log.action.max() <= 2.0
    np.testing.assert_array_equal(
        log.action, collect("Pendulum-v1", 300, n_envs=3).action
    )

    still = collect("Pendulum-v1", 20, policy=lambda obs: np.zeros((1, 1)))
    assert not still.action.any()


def test_collect_reports_progress() -> None:
    calls: list[tuple[int, int]] = []
    batch = collect(
        "CartPole-v1",
        5050,
        n_envs=3,
        rng=2,
        progress=lambda *numbers: calls.append(numbers),
    )
    assert len(batch) == 5050
    assert batch.obs.dtype == np.float32
    assert calls[-1] == (5050, 5050)
    # One call for about a thousand steps, and the last one.
    assert 5 <= len(calls) <= 7
    assert calls == sorted(calls)


class Faulty(MazeEnv):
    """Returns nan at a step."""

    def __init__(self, last: int) -> None:
        super().__init__("four-rooms")
        self.observation_space = Box(-np.inf, np.inf, (1,))
        self.left = last

    def reset(self, **settings: Any) -> Any:
        state, info = super().reset(**settings)
        return np.array([state], dtype=np.float32), info

    def step(self, action: int) -> Any:
        state, *rest = super().step(int(action))
        self.left -= 1
        if self.left == 0:
            state = np.nan
        return np.array([state], dtype=np.float32), *rest


def test_collect_refuses_observations_that_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="nan"):
        collect(Faulty(42), 100)


def test_collect_closes_what_it_made() -> None:
    closed = []

    class Closing(gym.Wrapper[Any, Any, Any, Any]):
        def close(self) -> None:
            closed.append(self)
            super().close()

    collect(lambda: Closing(gym.make("CartPole-v1")), 20, n_envs=2)
    assert len(closed) == 2
    env = Closing(gym.make("CartPole-v1"))
    collect(env, 20)
    assert env not in closed
    envs = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    collect(envs, 20)
    assert not envs.closed


@pytest.mark.parametrize(
    ("env", "settings", "word"),
    [
        ("FrozenLake-v1", {"steps": 0}, "steps"),
        ("FrozenLake-v1", {"n_envs": 0}, "n_envs"),
        ("FrozenLake-v1", {"max_episode_steps": 0}, "max_episode_steps"),
        ("FrozenLake-v1", {"rng": -1}, "rng"),
        ("FrozenLake-v1", {"policy": 3}, "int"),
        ("FrozenLake-v1", {"policy": []}, "no options"),
        ("FrozenLake-v1", {"policy": lambda obs: np.zeros(1)}, "policy"),
        ("FrozenLake-v1", {"policy": lambda obs: 0}, "policy"),
        ("Pendulum-v1", {"policy": lambda obs: np.zeros(2)}, "policy"),
        ("Pendulum-v1", {"policy": make_options(np.zeros((1, 4), int), 4)}, "Box"),
        ("FrozenLake-v9", {}, "FrozenLake-v9"),
        ("Blackjack-v1", {}, "features"),
        (MazeEnv("S.G"), {"n_envs": 2}, "n_envs"),
        (3, {}, "int"),
        (
            "eigenoptions/IMaze-v0",
            {"policy": make_options(np.zeros((1, 104), int), 4)},
            "states",
        ),
        ("Taxi-v4", {"policy": make_options(np.zeros((1, 500), int), 4)}, "actions"),
    ],
)
def test_collect_wrong_argument_raises(
    env: Any, settings: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        collect(env, **{"steps": 10, **settings})
