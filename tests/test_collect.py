"""Samples: the right rows, the same bytes, nothing lost."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import eigenoptions as eo
from eigenoptions.envs import CollectionStopped, MazeEnv, collect, load_transitions, stream
from tests.tables import make_options

PARTS = ("obs", "action", "next_obs", "terminated")


def same(one: eo.Transitions, other: eo.Transitions) -> None:
    for part in PARTS:
        mine, theirs = getattr(one, part), getattr(other, part)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def hashes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


# The right rows


@pytest.mark.parametrize("n_envs", [1, 7])
@pytest.mark.parametrize("limit", [None, 30])
def test_every_row_is_a_transition_of_the_maze(four_rooms: eo.MDP, n_envs: int, limit: int | None) -> None:
    batch = collect("eigenoptions/FourRooms-v0", 3000, n_envs=n_envs, max_episode_steps=limit, rng=5)
    assert len(batch) == 3000
    np.testing.assert_array_equal(batch.next_obs, four_rooms.successors[batch.obs, batch.action])
    np.testing.assert_array_equal(batch.terminated, batch.next_obs == four_rooms.goal)
    assert not (batch.obs == four_rooms.goal).any()  # a reset row would leave the goal
    np.testing.assert_allclose(np.bincount(batch.action) / 3000, 0.25, atol=0.04)


def test_ends_are_kept_apart_from_resets() -> None:
    """A corridor walked right: obs 0, 1, 2 lead to 1, 2, 3, and every third row ends."""
    batch = collect("eigenoptions/Maze-v0", 12, policy=lambda obs: np.ones(len(obs), int), n_envs=1)
    assert len(batch) == 12
    batch = collect(MazeEnv("S..G"), 9, policy=lambda obs: np.ones(len(obs), int))
    assert batch.obs.tolist() == [0, 1, 2] * 3
    assert batch.next_obs.tolist() == [1, 2, 3] * 3
    assert batch.terminated.tolist() == [False, False, True] * 3


def test_a_time_limit_is_no_end() -> None:
    batch = collect(MazeEnv("S....G"), 8, policy=lambda obs: np.ones(len(obs), int), max_episode_steps=2)
    assert batch.obs.tolist() == [0, 1] * 4
    assert batch.next_obs.tolist() == [1, 2] * 4
    assert not batch.terminated.any()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_both_ways_to_reset_give_the_same_episodes(mode: AutoresetMode) -> None:
    envs = SyncVectorEnv([lambda: MazeEnv("S..G")] * 2, autoreset_mode=mode)
    batch = collect(envs, 12, policy=lambda obs: np.ones(len(obs), int))
    pairs = sorted(zip(batch.obs.tolist(), batch.next_obs.tolist(), batch.terminated.tolist(), strict=True))
    assert pairs == sorted([(0, 1, False), (1, 2, False), (2, 3, True)] * 4)
    doubled = collect(envs, 12, policy=lambda obs: np.ones(len(obs), int), features=lambda obs: 2.0 * obs)
    assert sorted(doubled.next_obs.tolist()) == sorted(2.0 * batch.next_obs)
    assert envs.step(np.ones(2, int))[0].shape == (2,)  # what was given is not closed


def test_our_vector_environment_and_gymnasiums_give_the_same_walks(four_rooms: eo.MDP) -> None:
    settings: dict[str, Any] = {"n_envs": 5, "rng": 3, "max_episode_steps": 40, "chunk": 700}
    ours = collect("eigenoptions/FourRooms-v0", 2000, **settings)
    theirs = collect(lambda: MazeEnv("four-rooms"), 2000, **settings)
    same(ours, theirs)
    same(ours, collect(four_rooms, 2000, **settings))


def test_floats_keep_their_type() -> None:
    batch = collect("MountainCar-v0", 500, n_envs=3)
    assert batch.obs.shape == (500, 2)
    assert batch.obs.dtype == np.float32
    assert (batch.obs != batch.next_obs).any(axis=1).all()


def test_behaviour_with_options_is_the_papers(four_rooms: eo.MDP) -> None:
    """Each decision uniform over actions and available options, options run to their end."""
    options = make_options(np.array([[1, 1, 1, 1, 1, -1], [-1, 3, 3, 3, 3, 3]]), 4)
    batch = collect(MazeEnv("......"), 20_000, policy=options, rng=1)
    at_left = batch.action[batch.obs == 0]
    # Into state 0 leads no running option but the second, which stops there: 5 choices, option 1 also goes right.
    arrivals = np.flatnonzero(batch.obs == 0)
    assert len(at_left) > 1000
    np.testing.assert_allclose(
        np.bincount(at_left, minlength=4) / len(at_left), [0.2, 0.4, 0.2, 0.2], atol=0.03
    )
    runs = sum(
        (batch.action[i : i + 5] == 1).all() and (batch.obs[i : i + 5] == range(5)).all()
        for i in arrivals[:-1]
    )
    assert (
        runs / len(arrivals) > 0.15
    )  # whole runs to the right: a random walk would make them one time in a thousand
    rooms = collect(four_rooms, 2000, policy=eo.discover(four_rooms, n_options=8), n_envs=16)
    np.testing.assert_array_equal(rooms.next_obs, four_rooms.successors[rooms.obs, rooms.action])


def test_options_without_a_table_behave_the_same() -> None:
    options = make_options(np.array([[1, 1, 1, 1, 1, -1], [-1, 3, 3, 3, 3, 3]]), 4)
    same(
        collect(MazeEnv("......"), 3000, policy=options, rng=4),
        collect(MazeEnv("......"), 3000, policy=list(options), rng=4),
    )


def test_an_option_does_not_run_on_into_the_next_episode() -> None:
    options = make_options(np.array([[1, 1, 1, -1, 3, 3]]), 4)
    batch = collect(lambda: MazeEnv("S....G"), 5000, policy=options, n_envs=4, max_episode_steps=2, rng=2)
    assert set(batch.obs.tolist()) <= {0, 1}


def test_features_are_stored_in_place_of_observations() -> None:
    batch = collect("FrozenLake-v1", 100, n_envs=4, features=lambda obs: np.eye(16)[obs])
    assert batch.obs.shape == (100, 16)
    same_walk = collect("FrozenLake-v1", 100, n_envs=4)
    np.testing.assert_array_equal(batch.next_obs.argmax(axis=1), same_walk.next_obs)


# The same bytes


def test_one_seed_one_collection() -> None:
    one, two = (collect("FrozenLake-v1", 500, n_envs=3, rng=7) for _ in range(2))
    same(one, two)
    generators = [collect("FrozenLake-v1", 500, n_envs=3, rng=np.random.default_rng(1)) for _ in range(2)]
    same(*generators)
    assert (one.obs != collect("FrozenLake-v1", 500, n_envs=3, rng=8).obs).any()


def test_memory_disk_and_stream_hold_the_same(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"n_envs": 3, "rng": 2, "chunk": 200}
    held = collect("FrozenLake-v1", 1050, **settings)
    record = collect("FrozenLake-v1", 1050, out=tmp_path / "a" / "b", **settings)
    assert len(record) == 1050
    same(held, record.load())
    parts = list(stream("FrozenLake-v1", 1050, **settings))
    assert [len(part) for part in parts] == [200] * 5 + [50]
    same(parts[3], list(record)[3])
    assert load_transitions(tmp_path / "a" / "b").counts == (200,) * 5 + (50,)
    assert not list(tmp_path.rglob("*.tmp"))


class Faulty(MazeEnv):
    """Raises, or shows nan, at the step of that number over all episodes."""

    def __init__(self, last: int, how: str = "raise") -> None:
        super().__init__("four-rooms")
        self.observation_space = Box(-np.inf, np.inf, (1,))
        self.left, self.how = last, how

    def reset(self, **given: Any) -> Any:
        state, info = super().reset(**given)
        return np.array([state], dtype=np.float32), info

    def step(self, action: int) -> Any:
        state, *rest = super().step(int(action))
        self.left -= 1
        if self.left == 0 and self.how == "raise":
            raise RuntimeError("the simulator crashed")
        return np.array([np.nan if self.left == 0 else state], dtype=np.float32), *rest


def test_an_interrupted_collection_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    collect(Faulty(10**9), 1000, out=whole, chunk=300)
    with pytest.raises(
        CollectionStopped, match=r"stopped after 649 of 1000 transitions: RuntimeError: the simulator"
    ) as stop:
        collect(Faulty(650), 1000, out=broken, chunk=300)
    assert "the same call goes on from there" in str(stop.value)
    assert load_transitions(broken).counts == (300, 300, 49)
    before = hashes(broken)
    collect(Faulty(10**9), 1000, out=broken, chunk=300)
    after = hashes(broken)
    assert after == hashes(whole)
    assert [after[name] == before[name] for name in sorted(before)] == [
        True,
        True,
        False,
    ]  # the rest is not done again


def test_more_steps_add_chunks_and_fewer_read_less(tmp_path: Path) -> None:
    collect("FrozenLake-v1", 250, out=tmp_path, chunk=100)
    first = hashes(tmp_path)
    longer = collect("FrozenLake-v1", 400, out=tmp_path, chunk=100)
    same(longer.load(), collect("FrozenLake-v1", 400, chunk=100))
    assert hashes(tmp_path)["chunk-000000.safetensors"] == first["chunk-000000.safetensors"]
    shorter = collect("FrozenLake-v1", 120, out=tmp_path, chunk=100)
    assert shorter.counts == (100, 20)
    same(shorter.load(), collect("FrozenLake-v1", 120, chunk=100))


def test_a_damaged_chunk_is_collected_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    collect("FrozenLake-v1", 300, out=tmp_path, chunk=100)
    whole = hashes(tmp_path)
    file = tmp_path / "chunk-000001.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING, "eigenoptions"):
        collect("FrozenLake-v1", 300, out=tmp_path, chunk=100)
    assert "it is collected again" in caplog.text
    assert hashes(tmp_path) == whole


def test_another_collections_folder_is_left_alone(tmp_path: Path) -> None:
    collect("FrozenLake-v1", 100, out=tmp_path, chunk=50)
    before = hashes(tmp_path)
    for other in ({"rng": 1}, {"n_envs": 2}, {"policy": lambda obs: np.zeros(1, int)}, {"chunk": 60}):
        with pytest.raises(
            ValueError, match=r"holds a collection with (seed|n_envs|policy|chunk) .*: choose another folder"
        ):
            collect("FrozenLake-v1", 100, out=tmp_path, **{"chunk": 50, **other})
    with pytest.raises(ValueError, match="with env 'FrozenLake-v1', not 'Taxi-v4'"):
        collect("Taxi-v4", 100, out=tmp_path, chunk=50)
    assert hashes(tmp_path) == before


# Nothing lost


def test_a_failure_keeps_its_cause_and_names_the_remedy() -> None:
    with pytest.raises(CollectionStopped, match=r"stopped after 649 of 1000 .*; with out=, a folder") as stop:
        collect(Faulty(650), 1000, chunk=300)
    assert isinstance(stop.value.__cause__, RuntimeError)


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="collect has no setting 'n_env': did you mean 'n_envs'"):
        collect("FrozenLake-v1", 10, n_env=2)  # type: ignore[call-overload]


def test_observations_that_are_no_numbers_stop_it() -> None:
    with pytest.raises(
        CollectionStopped, match="after 41 of 100 transitions: Faulty gave an observation with nan"
    ):
        collect(Faulty(42, "nan"), 100)
    seen = []
    with pytest.raises(CollectionStopped, match="after 41 of 100"):
        seen.extend(stream(Faulty(42, "nan"), 100))
    assert np.isfinite(seen[0].next_obs).all()
    with pytest.raises(CollectionStopped, match="after 0 of 10 transitions"):
        collect(Faulty(10**9), 10, features=lambda obs: obs * np.inf)


def test_a_stream_gives_out_what_it_has_before_it_stops() -> None:
    seen = []
    with pytest.raises(CollectionStopped, match="after 649 of 1000"):
        seen.extend(stream(Faulty(650), 1000, chunk=300))
    assert [len(batch) for batch in seen] == [300, 300, 49]
    whole = collect(Faulty(10**9), 1000, chunk=300)
    for part in PARTS:
        got = np.concatenate([getattr(batch, part) for batch in seen])
        np.testing.assert_array_equal(got, getattr(whole, part)[:649])


def test_progress_is_told() -> None:
    calls: list[tuple[int, int]] = []
    collect(
        "eigenoptions/FourRooms-v0",
        5000,
        n_envs=50,
        chunk=2500,
        progress=lambda *numbers: calls.append(numbers),
    )
    assert calls[-1] == (5000, 5000)
    assert len(calls) >= 4
    assert calls == sorted(calls)


def test_large_observations_make_small_chunks() -> None:
    class Screen(gym.Env[Any, Any]):
        observation_space = Box(0, 255, (210, 160, 3), np.uint8)
        action_space = Discrete(2)

        def reset(self, **given: Any) -> Any:
            super().reset(seed=given.get("seed"))
            return np.zeros((210, 160, 3), np.uint8), {}

        def step(self, action: int) -> Any:
            return np.zeros((210, 160, 3), np.uint8), 0.0, False, False, {}

    sizes = [len(batch) for batch in stream(Screen, 400)]
    assert sizes == [332, 68]  # 64 MB of two screens a row


# Bad input


@pytest.mark.parametrize(
    ("env", "given", "complaint"),
    [
        ("Pendulum-v1", {}, r"Pendulum-v1 has actions Box.*: only Discrete\(n\) is supported"),
        ("FrozenLake-v1", {"steps": 0}, "steps must be a whole number from 1, got 0"),
        ("FrozenLake-v1", {"n_envs": 0}, "n_envs must be a whole number from 1, got 0"),
        ("FrozenLake-v1", {"chunk": -3}, "chunk must be a whole number from 1, got -3"),
        ("FrozenLake-v1", {"max_episode_steps": 0}, "max_episode_steps must be a whole number from 1, got 0"),
        ("FrozenLake-v1", {"rng": -1}, "rng must be a number from 0 or a numpy Generator, got -1"),
        ("FrozenLake-v1", {"rng": "0"}, "rng must be a number from 0"),
        (
            "FrozenLake-v1",
            {"policy": 3},
            "policy must be None, an OptionSet or a function of observations, got int",
        ),
        ("FrozenLake-v1", {"policy": []}, "policy has no options: pass None for random actions"),
        ("FrozenLake-v9", {}, "no environment 'FrozenLake-v9'"),
        (
            "minigrid:MiniGrid-Empty-5x5-v0",
            {},
            r"are Dict\(.*: pass features=, a function from a batch of them",
        ),
        ("Blackjack-v1", {}, r"are Tuple\(.*: pass features="),
        (MazeEnv("S.G"), {"n_envs": 2}, "one environment cannot be stepped 2 times at once"),
        (3, {}, "give an environment, its id, a function that makes it or an MDP, got int"),
        (
            "eigenoptions/IMaze-v0",
            {"policy": make_options(np.zeros((1, 104), int), 4)},
            "they have 104 states",
        ),
        ("Taxi-v4", {"policy": make_options(np.zeros((1, 500), int), 4)}, "they choose among 4 actions"),
    ],
    ids=str,
)
def test_bad_settings(env: Any, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        collect(env, **{"steps": 10, **given})


def test_options_of_other_dynamics(four_rooms: eo.MDP) -> None:
    other = eo.OptionSet(eo.MDP.from_successors(np.zeros((104, 4), int)), np.zeros((1, 104), int))
    for env in ("eigenoptions/FourRooms-v0", lambda: MazeEnv("four-rooms"), four_rooms):
        with pytest.raises(ValueError, match="another state space"):
            collect(env, 10, policy=other)


def test_bad_policies_say_what_is_wanted() -> None:
    with pytest.raises(CollectionStopped, match="policy must give 2 whole numbers, got float64 of shape"):
        collect("FrozenLake-v1", 10, n_envs=2, policy=lambda obs: np.zeros(2))
    with pytest.raises(CollectionStopped, match=r"policy must give 2 whole numbers, got int64 of shape \(\)"):
        collect("FrozenLake-v1", 10, n_envs=2, policy=lambda obs: 0)


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no transitions in"):
        load_transitions(tmp_path)
    (tmp_path / "file").write_text("taken")
    with pytest.raises(OSError, match=r"cannot write into .*file"):
        collect("FrozenLake-v1", 10, out=tmp_path / "file")


def test_what_collect_makes_it_closes_and_what_it_is_given_it_does_not():
    closed = []

    class Closing(gym.Wrapper):
        def close(self):
            closed.append(self)
            super().close()

    collect(lambda: Closing(gym.make("CartPole-v1")), 20, n_envs=2, rng=0)
    assert len(closed) == 2
    given = Closing(gym.make("CartPole-v1"))
    collect(given, 20, rng=0)
    assert given not in closed
