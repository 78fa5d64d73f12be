"""`discover(env, key=...)`: options of an abstraction, on which dynamics may be random.

Closed forms: under a key that leaves out noise, options are those without the noise.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import eigenoptions as eo
from eigenoptions.envs import FixedSeed, MazeEnv
from eigenoptions.explore.from_key import explore_key
from tests.tables import make_options

FOUR_ROOMS = "minigrid:MiniGrid-FourRooms-v0"


@pytest.fixture(autouse=True)
def hear_warnings(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, logger="eigenoptions")


class Weather(gym.Env[Any, Any]):
    """Seven cells in a row, and a weather that changes at random and does nothing."""

    observation_space = MultiDiscrete([7, 1000])
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self._observe(), {}

    def step(self, action: int) -> Any:
        self.cell = int(np.clip(self.cell + (1 if action else -1), 0, 6))
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> Any:
        return np.array([self.cell, self.np_random.integers(1000)])


def find_cell(env: Any, obs: Any) -> int:
    return int(obs[0])


def find_pose(env: Any, obs: Any) -> tuple[int, int, int]:
    x, y = env.agent_pos
    return int(x), int(y), int(env.agent_dir)


@pytest.fixture(scope="module")
def pose_options() -> eo.OptionSet:
    """Of the layout of seed 0, which has walls where others have none."""
    options = eo.discover(FOUR_ROOMS, 4, key=find_pose, steps=3000)
    assert isinstance(options, eo.OptionSet)
    return options


def run_options(env: eo.OptionsWrapper, seed: int, n_steps: int = 60) -> list[int]:
    """Choose options where some are available; return their durations."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    durations = []
    for _ in range(n_steps):
        mask = info["action_mask"]
        choice = int(rng.choice(np.flatnonzero(mask)))
        *_, terminated, truncated, info = env.step(choice)
        if info["option"] >= 0:
            durations.append(info["duration"])
        if terminated or truncated:
            _, info = env.reset(seed=seed)
    return durations


def test_a_key_leaves_out_what_does_not_matter() -> None:
    options = eo.discover(Weather(), 4, key=find_cell)
    assert options.provenance["source"] == "explored"
    assert options.mdp.states == list(range(7))
    steps = np.clip(np.arange(7)[:, None] + [-1, 1], 0, 6)
    exact = eo.discover(eo.MDP.from_successors(steps, start=0), 4)
    assert np.array_equal(options.mdp.successors, exact.mdp.successors)
    assert np.array_equal(options.policy, exact.policy)

    env = eo.OptionsWrapper(Weather(), options, option_chance=0.1)
    env.reset(seed=0)
    *_, info = env.step(3)
    assert info["duration"] == len(exact.follow("e2-", 0)) - 1 > 3


def test_dynamics_under_a_key_may_be_random(caplog: Any) -> None:
    # Balls roll about at random, and the key does not know where they are.
    name = "minigrid:MiniGrid-Dynamic-Obstacles-6x6-v0"
    with pytest.raises(ValueError, match="key="):
        eo.discover(name)
    options = eo.discover(name, 4, key=find_pose, steps=1500)
    assert options.mdp.successors is None
    assert "two outcomes" in caplog.text
    env = eo.OptionsWrapper(gym.make(name), options, option_chance=0.1)
    assert max(run_options(env, seed=3)) > 1


@pytest.mark.parametrize("seed", [7, 8])
def test_options_run_in_other_layouts(pose_options: eo.OptionSet, seed: int) -> None:
    env = eo.OptionsWrapper(gym.make(FOUR_ROOMS), pose_options, option_chance=0.1)
    assert max(run_options(env, seed)) > 5
    # The exact state is that of one layout.
    exact = eo.discover(eo.explore(FOUR_ROOMS, 300), 4)
    env = eo.OptionsWrapper(gym.make(FOUR_ROOMS), exact, option_chance=0.1)
    with pytest.raises(ValueError, match="layout"):
        env.reset(seed=seed)


@pytest.mark.parametrize("key", ["observation", "pose"])
def test_named_keys_run_in_other_layouts_and_from_files(
    key: str, tmp_path: Path
) -> None:
    options = eo.discover(FOUR_ROOMS, 4, key=key, steps=1500)
    options.save(tmp_path / "options")
    loaded = eo.load_options(tmp_path / "options")
    for given in (None, key):
        env = eo.OptionsWrapper(
            gym.make(FOUR_ROOMS), loaded, option_chance=0.1, key=given
        )
        assert max(run_options(env, seed=7)) > 1


def test_a_key_of_the_user_is_asked_for_again(
    pose_options: eo.OptionSet, tmp_path: Path
) -> None:
    pose_options.save(tmp_path / "options")
    loaded = eo.load_options(tmp_path / "options")
    assert isinstance(loaded, eo.OptionSet)
    with pytest.raises(ValueError, match="key"):
        eo.OptionsWrapper(gym.make(FOUR_ROOMS), loaded)

    durations = []
    for options in (pose_options, loaded):
        env = eo.OptionsWrapper(
            gym.make(FOUR_ROOMS), options, key=find_pose, option_chance=0.1
        )
        durations.append(run_options(env, seed=7))
    assert durations[0] == durations[1]

    sets = eo.discover(Weather(), 2, key=lambda env, obs: frozenset([int(obs[0])]))
    with pytest.warns(UserWarning, match="states"):
        sets.save(tmp_path / "sets")


def test_no_option_is_available_where_the_key_was_never_seen(caplog: Any) -> None:
    options = eo.discover(Weather(), 2, key=lambda env, obs: int(obs[0]) // 2)
    # A longer row: its last cells have other keys.
    env = Weather()
    wrapped = eo.OptionsWrapper(
        env, options, option_chance=0.1, key=lambda env, obs: 10 + int(obs[0])
    )
    for _ in range(3):
        _, info = wrapped.reset(seed=0)
        assert info["action_mask"].tolist() == [1, 1, 0, 0]
        *_, info = wrapped.step(2)
        assert info["unavailable"]
    messages = [record.message for record in caplog.records]
    assert sum("not seen" in message for message in messages) == 1


@pytest.mark.parametrize(
    ("source", "settings", "error", "word"),
    [
        (Weather(), {"key": "place"}, ValueError, "key"),
        (Weather(), {"key": "pose"}, ValueError, "minigrid"),
        (Weather(), {"key": lambda env, obs: [1]}, TypeError, "hashable"),
        (Weather(), {"key": find_cell, "features": "raw"}, ValueError, "features"),
        (Weather(), {"key": find_cell, "steps": 0}, ValueError, "steps"),
        (Weather(), {"key": find_cell, "n_envs": 2}, TypeError, "n_envs"),
        (([0, 1], [0, 0], [1, 0]), {"key": find_cell}, ValueError, "environment"),
        (gym.make_vec("FrozenLake-v1", 2), {"key": find_cell}, ValueError, "single"),
        (eo.explore("FrozenLake-v1", 50), {"key": find_cell}, ValueError, "already"),
    ],
)
def test_bad_keys_of_discover(
    source: Any, settings: Any, error: Any, word: str
) -> None:
    with pytest.raises(error, match=word):
        eo.discover(source, 2, **settings)


def test_bad_keys_of_the_wrapper(pose_options: eo.OptionSet) -> None:
    env = gym.make(FOUR_ROOMS)
    with pytest.raises(ValueError, match="one of them"):
        eo.OptionsWrapper(env, pose_options, key=find_pose, state=lambda obs: 0)
    with pytest.raises(ValueError, match="a key of yours"):
        eo.OptionsWrapper(env, pose_options, key="pose", option_chance=0.1)
    numbered = eo.discover("four-rooms", 2)
    with pytest.raises(ValueError, match="observation"):
        eo.OptionsWrapper(MazeEnv("four-rooms"), numbered, key=find_pose)
    eo.OptionsWrapper(MazeEnv("four-rooms"), numbered, key="observation")
    wrapped = eo.OptionsWrapper(
        env, pose_options, key=lambda env, obs: [0], option_chance=0.1
    )
    with pytest.raises(TypeError, match="hashable"):
        wrapped.reset()


def test_a_maze_has_keys_too() -> None:
    rows = eo.maze("four-rooms").coords
    assert rows is not None
    options = eo.discover("four-rooms", 2, key=lambda env, obs: int(rows[obs][0]))
    assert options.n_states == 11


def make_four_rooms() -> gym.Env[Any, Any]:
    return FixedSeed(gym.make(FOUR_ROOMS), 7)


def make_views() -> gym.Env[Any, Any]:
    """Without the mission, which other processes cannot share."""
    from minigrid.wrappers import ImgObsWrapper

    view: gym.Env[Any, Any] = ImgObsWrapper(make_four_rooms())
    return view


def test_a_vector_takes_keys(pose_options: eo.OptionSet) -> None:
    envs = SyncVectorEnv([make_four_rooms] * 2)
    vector = eo.OptionsVectorWrapper(
        envs, pose_options, key=find_pose, option_chance=0.5
    )
    vector.action_space.seed(0)
    vector.reset(seed=0)
    options = set()
    for _ in range(100):
        infos = vector.step(vector.action_space.sample())[-1]
        options |= set(infos["option"][infos["complete"]].tolist())
    assert len(options) > 1


def test_environments_in_other_processes_have_poses_but_no_inside(
    pose_options: eo.OptionSet,
) -> None:
    envs = AsyncVectorEnv([make_views] * 2)
    try:
        with pytest.raises(ValueError, match="SyncVectorEnv"):
            eo.OptionsVectorWrapper(envs, pose_options, option_chance=0.5)
        by_pose = eo.discover(FOUR_ROOMS, 4, key="pose", steps=600)
        vector = eo.OptionsVectorWrapper(envs, by_pose, option_chance=0.5)
        vector.reset(seed=0)
        vector.step(np.array([0, 7]))
    finally:
        envs.close()


def test_the_automatic_setting_says_once_that_it_uses_no_options(caplog: Any) -> None:
    # The option pushes against the wall, once.
    useless = make_options([[0] + [eo.TERMINATE] * 6], 4)
    env = eo.OptionsWrapper(MazeEnv("S......"), useless)
    assert env.option_chance == 0
    messages = [record.message for record in caplog.records]
    assert sum("samples none" in message for message in messages) == 1
    caplog.clear()
    envs = SyncVectorEnv([lambda: MazeEnv("S......")] * 2)
    eo.OptionsVectorWrapper(envs, useless)
    assert sum("samples none" in record.message for record in caplog.records) == 1
    caplog.clear()
    eo.OptionsWrapper(MazeEnv("S......"), useless, option_chance=0.0)
    assert not caplog.records


def test_the_program_notes_what_became_of_environments(tmp_path: Path) -> None:
    from studies.environments import count_outcomes, main, try_environment

    table = tmp_path / "environments.csv"
    main(["--quick", "--out", str(table), "--seen", str(tmp_path / "seen.csv")])
    assert table.read_text().count("\n") == 3
    assert "UnlockPickup" in (tmp_path / "seen.csv").read_text()

    # Random under its whole state: refused, and the message names a remedy.
    refused = try_environment("MiniGrid-Dynamic-Obstacles-5x5-v0")
    assert refused["outcome"] == "refused"
    assert "key=" in refused["said"]
    counts = count_outcomes(pd.DataFrame([refused]))
    assert counts.silent.tolist() == [0]


def test_other_seeds_explore_otherwise_and_rng_decides_if_given() -> None:
    def list_steps(**settings: Any) -> list[int]:
        found = explore_key(
            eo.maze("four-rooms"), "observation", steps=20_000, **settings
        )
        return found.numbers.action.tolist()

    first = list_steps(seed=None, rng=None)
    assert first == list_steps(seed=0, rng=None)
    assert first != list_steps(seed=1, rng=None)
    assert list_steps(seed=1, rng=None) == list_steps(seed=2, rng=1)


def test_what_a_method_draws_follows_from_the_seed() -> None:
    def list_goals(**settings: Any) -> list[str]:
        lake = "FrozenLake8x8-v1"
        return eo.discover(lake, 4, method="random", **settings).labels

    assert list_goals() == list_goals(seed=0)
    assert list_goals(seed=1) == list_goals(rng=1)
    assert list_goals(seed=1) != list_goals(seed=2)
    assert list_goals(seed=2, rng=1) == list_goals(rng=1)
