"""Mazes as environments, and environments as MDPs."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from scipy.sparse.csgraph import breadth_first_order, connected_components

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, MazeVectorEnv, Numbered, OptionsWrapper, StateLimitReached, from_env
from tests.tables import make_options

REGISTERED = {"FourRooms": "four-rooms", "OpenRoom": "open-room", "IMaze": "i-maze"}


def read(P: Any, n_states: int, n_actions: int) -> np.ndarray:
    """The plain way to read a table: add up the chances, forget rewards and ends."""
    table = np.zeros((n_states * n_actions, n_states))
    for state in range(n_states):
        for action in range(n_actions):
            for chance, after, _, _ in P[state][action]:
                table[state * n_actions + action, after] += chance
    return table


def edges(mdp: eo.MDP) -> set[tuple[int, int]]:
    return set(zip(*eo.graph(mdp).nonzero(), strict=True))


# Our mazes


@pytest.mark.parametrize("name", [*REGISTERED, "Maze"])
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_mazes_pass_gymnasiums_checks(name: str, render_mode: str | None) -> None:
    check_env(gym.make(f"eigenoptions/{name}-v0", render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("name", REGISTERED)
def test_a_maze_and_back(name: str) -> None:
    there, back = eo.maze(REGISTERED[name]), from_env(f"eigenoptions/{name}-v0")
    assert back.fingerprint == there.fingerprint
    assert (back.start, back.goal) == (there.start, there.goal)
    np.testing.assert_array_equal(back.coords, there.coords)


def test_a_maze_is_found_by_its_module_in_a_new_process() -> None:
    code = "import gymnasium as gym; print(gym.make('eigenoptions.envs:eigenoptions/FourRooms-v0').reset(seed=0)[0])"
    assert (
        int(subprocess.check_output([sys.executable, "-W", "error", "-c", code]))
        == eo.maze("four-rooms").start
    )


def test_steps_follow_the_table_and_the_goal_ends_it(four_rooms: eo.MDP, rng: np.random.Generator) -> None:
    env = gym.make("eigenoptions/FourRooms-v0")
    for _ in range(20):
        start = int(rng.integers(104))
        state, _ = env.reset(options={"start": start})
        assert state == start
        for action in rng.integers(4, size=50):
            after, reward, terminated, truncated, _ = env.step(action)
            assert after == four_rooms.successors[state, action]
            assert (reward, terminated, truncated) == (
                float(after == four_rooms.goal),
                after == four_rooms.goal,
                False,
            )
            state = after
            if terminated:
                break


def test_the_table_of_a_maze_tells_the_task(four_rooms: eo.MDP) -> None:
    env = MazeEnv("four-rooms")
    table = read(env.P, 104, 4)
    elsewhere = np.arange(104 * 4) // 4 != four_rooms.goal
    np.testing.assert_array_equal(table[elsewhere], four_rooms.transition.toarray()[elsewhere])
    assert all(env.P[four_rooms.goal][a] == [(1.0, four_rooms.goal, 0.0, True)] for a in range(4))
    ends = [
        (s, a) for s in range(104) for a in range(4) for _, _, r, done in env.P[s][a] if r == 1.0 and done
    ]
    assert (
        len(ends)
        == sum(np.count_nonzero(four_rooms.successors[s] == four_rooms.goal) for s in range(104)) - 2
    )
    assert env.initial_state_distrib.argmax() == four_rooms.start
    assert env.initial_state_distrib.sum() == 1


def test_without_start_or_goal() -> None:
    env = MazeEnv("...G")
    starts = {env.reset(seed=seed)[0] for seed in range(50)}
    assert starts == {0, 1, 2}
    assert env.initial_state_distrib.tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    endless = MazeEnv("S..")
    endless.reset(seed=0)
    assert not any(endless.step(1)[2] for _ in range(10))
    assert MazeEnv("four-rooms", start=3, goal=5).reset(seed=0)[0] == 3


def test_stochastic_tables_are_drawn_from(slippery: eo.MDP) -> None:
    env, many = (
        MazeEnv(slippery.with_task(start=1)),
        MazeVectorEnv(slippery.with_task(start=1), 5000, max_episode_steps=1),
    )
    counts = np.zeros(3)
    for seed in range(2000):
        env.reset(seed=seed)
        counts[env.step(1)[0]] += 1
    np.testing.assert_allclose(counts / 2000, [0.2, 0, 0.8], atol=0.04)
    many.reset(seed=0)
    drawn = many.step(np.ones(5000, dtype=int))[0]
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 5000, [0.2, 0, 0.8], atol=0.03)


def test_pictures_show_walls_goal_and_agent() -> None:
    env = MazeEnv("S.#\n#.G", render_mode="ansi")
    env.reset(seed=0)
    env.step(1)
    assert env.render() == "█████\n█S@██\n██ G█\n█████"
    env = MazeEnv("S.#\n#.G", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 4  # wall, free, goal, agent on the start


@pytest.mark.parametrize("limit", [None, 7])
def test_many_mazes_at_once_are_many_mazes(limit: int | None, rng: np.random.Generator) -> None:
    """Step for step what Gymnasium's own vector environment does, resets in their rows included."""
    ours = gym.make_vec("eigenoptions/Maze-v0", 6, maze="S..\n#.G", max_episode_steps=limit)
    theirs = gym.make_vec("eigenoptions/Maze-v0", 6, "sync", maze="S..\n#.G", max_episode_steps=limit)
    assert isinstance(ours, MazeVectorEnv)
    np.testing.assert_array_equal(ours.reset(seed=0)[0], theirs.reset(seed=0)[0])
    for _ in range(200):
        actions = rng.integers(4, size=6)
        for mine, other in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(mine, other)
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: MazeEnv("S.G").step(7), "action must be in 0..3, got 7"),
        (lambda: MazeEnv("S.G", render_mode="human"), 'render_mode must be None, "rgb_array" or "ansi"'),
        (lambda: MazeEnv(eo.MDP(np.eye(2)), render_mode="ansi"), "without coords cannot be drawn"),
        (lambda: MazeEnv("S.G").reset(options={"start": 9}), "start must be a state in 0..2, got 9"),
        (lambda: MazeEnv("four-roms"), "did you mean 'four-rooms'"),
        (lambda: MazeVectorEnv("S.G", 0), "num_envs must be a whole number from 1, got 0"),
        (lambda: MazeVectorEnv("S.G", 2, render_mode="ansi"), "are not drawn"),
    ],
)
def test_bad_mazes(make: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


def test_bad_actions_of_many(rng: np.random.Generator) -> None:
    envs = MazeVectorEnv("S.G", 2)
    envs.reset(seed=0)
    for actions in ([0], [0, 4], [-1, 0]):
        with pytest.raises(ValueError, match=r"actions must be 2 numbers in 0\.\.3"):
            envs.step(np.array(actions))


# Tables


@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1"])
def test_tables_are_read_exactly_where_anything_can_happen(name: str) -> None:
    env = gym.make(name).unwrapped
    mdp = from_env(name)
    n, m = int(env.observation_space.n), int(env.action_space.n)
    assert (mdp.n_states, mdp.n_actions, mdp.name) == (n, m, name)
    table, plain = mdp.transition.toarray(), read(env.P, n, m)
    still = np.repeat(np.eye(n), m, axis=0)
    same = (table == plain).all(axis=1)
    np.testing.assert_array_equal(table[~same], still[~same])
    # Walk the true environment: its next states are the ones the MDP allows.
    for seed in range(5):
        state, _ = env.reset(seed=seed)
        env.action_space.seed(seed)
        for _ in range(200):
            action = env.action_space.sample()
            after, _, terminated, _, _ = env.step(action)
            assert table[state * m + action, after] > 0
            assert same[state * m + action]
            state = after
            if terminated:
                np.testing.assert_array_equal(
                    table[after * m : after * m + m], still[after * m : after * m + m]
                )
                break


def test_frozen_lake_is_its_table_whole() -> None:
    env = gym.make("FrozenLake-v1").unwrapped
    mdp = from_env(env)
    np.testing.assert_allclose(mdp.transition.toarray(), read(env.P, 16, 4))
    assert (mdp.start, mdp.goal) == (0, 15)
    np.testing.assert_array_equal(mdp.coords, [(i // 4, i % 4) for i in range(16)])
    absorbing = [s for s in range(16) if (mdp.transition.toarray()[4 * s : 4 * s + 4, s] == 1).all()]
    assert absorbing == [5, 7, 11, 12, 15]  # four holes and the goal


def test_cliff_walking_has_no_way_out_of_the_goal_and_none_into_the_cliff(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "eigenoptions"):
        mdp = from_env("CliffWalking-v1")
    assert "10 of 48 states are never reached" in caplog.text
    assert (mdp.n_states, mdp.start, mdp.goal) == (48, 36, 47)
    cliff = set(range(37, 47))
    assert not any(cliff & set(edge) for edge in edges(mdp))
    assert (47, 36) not in edges(mdp)  # the table lists a fall from the goal back to the start
    assert (30, 36) in edges(mdp)  # a fall that does happen; the graph counts it both ways
    assert len(breadth_first_order(sum(mdp.transition[a::4] for a in range(4)), 36)[0]) == 38


def test_taxi_has_four_parts_and_four_ends() -> None:
    mdp = from_env("Taxi-v4")
    assert connected_components(eo.graph(mdp), directed=False)[0] == 4  # one a destination
    stays = [s for s in range(500) if (mdp.transition[6 * s : 6 * s + 6].indices == s).all()]
    assert len(stays) == 4  # the passenger is delivered
    assert eo.spectrum(eo.graph(mdp), k=6).n_zero == 4
    assert mdp.goal is None  # four equal ends
    assert mdp.start == gym.make("Taxi-v4").unwrapped.initial_state_distrib.argmax()


class Table(gym.Env[int, int]):
    """An environment that is nothing but its table."""

    def __init__(self, P: Any, first: Any = None, n: int | None = None, actions: Any = None) -> None:
        self.P = P
        self.observation_space = Discrete(n or len(P))
        self.action_space = actions or Discrete(len(next(iter(P.values()))))
        if first is not None:
            self.initial_state_distrib = np.array(first)


def test_chances_of_one_successor_add_up_and_numpy_numbers_are_taken() -> None:
    P = {
        0: {0: [(0.25, np.int64(1), 0, False), (0.5, 0, 0, False), (0.25, 1, 0, False)]},
        1: {0: [(1.0, 0, 0, False)]},
    }
    mdp = from_env(Table(P, [1, 0]))
    assert mdp.transition.toarray().tolist() == [[0.5, 0.5], [1, 0]]
    assert mdp.name == "Table"


def test_a_state_that_only_sometimes_ends_the_episode_goes_on() -> None:
    P = {0: {0: [(0.9, 1, 0, False), (0.1, 1, 5, True)]}, 1: {0: [(1.0, 0, 0, False)]}}
    assert from_env(Table(P, [1, 0])).successors.tolist() == [[1], [0]]


def test_without_a_first_state_only_ends_are_closed() -> None:
    """States that nothing leads to may still be first states; an end that the table lists moves out of is closed."""
    P = {
        0: {0: [(1.0, 1, 0, False)]},
        1: {0: [(1.0, 2, 1, True)]},
        2: {0: [(1.0, 0, 0, False)]},
        3: {0: [(1.0, 0, 0, False)]},
    }
    mdp = from_env(Table(P))
    assert mdp.successors.tolist() == [[1], [2], [2], [0]]
    assert mdp.goal == 2


def test_states_that_the_table_leaves_out_stay_put() -> None:
    mdp = from_env(Table({0: {0: [(1.0, 2, 1, True)]}}, n=3))
    assert mdp.successors.tolist() == [[2], [1], [2]]


# Exploration


@pytest.mark.parametrize(
    ("name", "states"),
    [("Empty-5x5", 34), ("DoorKey-5x5", 270), ("LavaCrossingS9N1", 183), ("FourRooms", 1040)],
)
def test_minigrid_is_explored_and_walks_as_its_mdp(name: str, states: int, rng: np.random.Generator) -> None:
    env = Numbered(f"minigrid:MiniGrid-{name}-v0")
    assert env.mdp.n_states == states
    assert env.mdp.fingerprint == from_env(f"minigrid:MiniGrid-{name}-v0").fingerprint
    for _ in range(10):
        state, _ = env.reset()
        for action in rng.integers(7, size=100):
            after, _, terminated, truncated, _ = env.step(action)
            assert after == env.mdp.successors[state, action]
            state = after
            if terminated:
                assert (env.mdp.successors[state] == state).all()
            if terminated or truncated:
                break


def test_a_key_must_be_carried_to_the_door() -> None:
    """In DoorKey all ways into the second room go through states that carry the key and open the door."""
    env = Numbered("minigrid:MiniGrid-DoorKey-5x5-v0", seed=3)
    base = env.unwrapped
    env.reset()
    door = (
        next(i for i, thing in enumerate(base.grid.grid) if thing is not None and thing.type == "door")
        % base.width
    )
    found = {number: key for key, number in env._numbers.items()}
    beyond = {number for number, (*_, x, _, _) in found.items() if x > door}
    assert beyond
    assert all(found[number][1] == ((True, False),) or found[number][1][0][1] is False for number in beyond)
    assert not found[0][2]  # nothing is carried at first


def test_a_layout_belongs_to_its_seed() -> None:
    one, same, other = (from_env("minigrid:MiniGrid-FourRooms-v0", seed=seed) for seed in (0, 0, 1))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert len(np.unique(one.coords, axis=0)) == one.n_states


def test_exploring_leaves_the_environment_whole() -> None:
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0", render_mode="rgb_array")
    from_env(env)
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space
    assert env.unwrapped.render_mode == "rgb_array"
    assert env.step(2)[0]["image"].shape == (7, 7, 3)


def test_numbered_environments_pass_gymnasiums_checks() -> None:
    with pytest.warns(UserWarning, match="different from the unwrapped"):
        check_env(Numbered("minigrid:MiniGrid-Empty-5x5-v0"), skip_render_check=True)


class Counter(gym.Env[int, int]):
    """Counts up and down between 0 and 9; shows its count, or a picture of it."""

    observation_space = Discrete(10)
    action_space = Discrete(2)
    lock: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.count = max(self.count + (1 if action else -1), 0)
        return self.count, 0.0, self.count == 9, False, {}


def test_any_environment_that_can_be_copied_is_explored() -> None:
    calls: list[tuple[int, int]] = []
    mdp = from_env(Counter(), progress=lambda *numbers: calls.append(numbers))
    assert mdp.successors.tolist() == [[max(i - 1, 0), i + 1] for i in range(9)] + [[9, 9]]
    assert calls[-1] == (9, 10)  # the end is found, but nothing leads out of it


def test_own_key_save_and_restore() -> None:
    halves = from_env(
        Counter(),
        key=lambda env, obs: env.count,
        save=lambda env: env.count,
        restore=lambda env, count: setattr(env, "count", count),
    )
    assert halves.fingerprint == from_env(Counter()).fingerprint


def test_the_state_limit_keeps_what_was_found() -> None:
    with pytest.raises(
        StateLimitReached, match=r"more than max_states=4 states: 3 of the 4 found were expanded"
    ) as limit:
        from_env(Counter(), max_states=4)
    assert limit.value.expanded == 3
    assert limit.value.mdp.successors.tolist() == [[0, 1], [0, 2], [1, 3], [3, 3]]
    assert from_env(Counter(), max_states=10).n_states == 10
    with pytest.raises(ValueError, match="Taxi-v4 has 500 states, more than max_states=499"):
        from_env("Taxi-v4", max_states=499)


class Locked(Counter):
    def reset(self, **given: Any) -> Any:
        self.lock = (i for i in range(3))  # a generator cannot be copied
        return super().reset(**given)


class Elsewhere(Counter):
    """Keeps a part of its state where a copy does not find it."""

    place: dict[str, int] = {}  # noqa: RUF012

    def step(self, action: int) -> Any:
        self.place["steps"] = self.place.get("steps", 0) + 1
        return self.place["steps"] % 10, 0.0, False, False, {}


class Noisy(Counter):
    def step(self, action: int) -> Any:
        return super().step(int(self.np_random.integers(2)))


class Pushed(Counter):
    action_space = Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        (Locked(), "Locked cannot be cloned .*: pass save= and restore=, or sample it with collect"),
        (
            Elsewhere(),
            "Elsewhere cannot be put back: action 0 of the first state led to two different states",
        ),
        (Noisy(), "Noisy draws random numbers in a step: only a deterministic environment can be explored"),
        (Pushed(), r"Pushed has actions Box\(-1.0, 1.0, \(2,\), float32\): only Discrete\(n\) is supported"),
        ("CartPole-v1", r"CartPole-v1 has no transition table and its observations are not finite"),
        ("Blackjack-v1", "Blackjack-v1 draws random numbers in a step"),
        ("FrozenLake-v9", "no environment 'FrozenLake-v9'"),
        ("no_such_module:Maze-v0", "no environment 'no_such_module:Maze-v0'"),
        (7, "give a Gymnasium environment or its id, got int"),
        (Table({0: {0: [(1.0, 5, 0, False)]}}), "the table of Table has a state 5, but there are 1 states"),
        (Table({0: {0: [(0.5, 0, 0, False)]}}), "transition rows must sum to 1"),
    ],
    ids=str,
)
def test_what_cannot_be_read_says_why(env: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        from_env(env)
    assert "\n" not in str(error.value)


def test_options_of_a_wrapper_are_not_actions_of_the_table() -> None:
    with pytest.raises(ValueError, match=r"a wrapper of FrozenLake-v1 takes \d+ steps for one"):
        from_env(OptionsWrapper(gym.make("FrozenLake-v1"), make_options(np.zeros((1, 16), dtype=int), 4)))


def test_save_without_restore_and_a_limit_of_nothing() -> None:
    with pytest.raises(ValueError, match="save and restore go together, got only save"):
        from_env(Counter(), save=lambda env: env.count)
    with pytest.raises(ValueError, match="max_states must be a whole number from 1, got 0"):
        from_env(Counter(), max_states=0)


def test_a_key_that_leaves_out_a_part_is_noticed() -> None:
    with pytest.raises(ValueError, match=r"remembers what its observation \(key=\) leaves out"):
        Numbered(Counter(), key=lambda env, obs: min(obs, 3))
    env = Numbered(Counter(), key=lambda env, obs: obs)
    env.reset()
    assert [env.step(1)[0] for _ in range(2)] == [1, 2]
    env._numbers.pop(3)
    with pytest.raises(ValueError, match="a state that exploration did not find"):
        env.step(1)


def test_headings_of_minigrid_are_four_maps_in_two_rows() -> None:
    """Turning right from one map leads to the same cell of the next: right, down; left, up."""
    pytest.importorskip("minigrid")
    mdp = from_env("minigrid:MiniGrid-Empty-5x5-v0")
    assert mdp.coords is not None
    assert mdp.successors is not None
    maps, cells = np.divmod(mdp.coords, 6)
    assert sorted(set(map(tuple, maps.tolist()))) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    heading = maps @ [2, 1]
    after = mdp.successors[:, 1]
    turned = after != np.arange(mdp.n_states)
    assert turned.sum() == 32, "all but the two ends"
    np.testing.assert_array_equal(cells[after[turned]], cells[turned])
    np.testing.assert_array_equal(heading[after[turned]], (heading[turned] + 1) % 4)
