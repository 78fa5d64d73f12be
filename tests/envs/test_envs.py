"""Mazes as environments, and environments as MDPs: tables and exploration."""

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
from gymnasium.wrappers import (
    FlattenObservation,
    RecordEpisodeStatistics,
    TransformAction,
)
from minigrid.wrappers import ImgObsWrapper
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions.envs import (
    MazeEnv,
    Numbered,
    OptionsWrapper,
    StateLimitReached,
    from_env,
)
from eigenoptions.envs.families import Family, families
from eigenoptions.samples.collection import run_options
from tests.tables import make_options

REGISTERED = {"FourRooms": "four-rooms", "OpenRoom": "open-room", "IMaze": "i-maze"}


def read_table(P: Any, n_states: int, n_actions: int) -> np.ndarray:
    """The slow twin: add up probabilities, ignore rewards and ends."""
    table = np.zeros((n_states * n_actions, n_states))
    for state in range(n_states):
        for action in range(n_actions):
            for probability, after, _, _ in P[state][action]:
                table[state * n_actions + action, after] += probability
    return table


# Mazes


@pytest.mark.parametrize("name", [*REGISTERED, "Maze"])
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_maze_env_passes_check_env(name: str, render_mode: str | None) -> None:
    check_env(gym.make(f"eigenoptions/{name}-v0", render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("name", REGISTERED)
def test_from_env_of_a_maze_returns_the_maze(name: str) -> None:
    maze = eo.maze(REGISTERED[name])
    mdp = from_env(f"eigenoptions/{name}-v0")
    assert mdp.fingerprint == maze.fingerprint
    assert mdp.start == maze.start
    assert mdp.goal == maze.goal
    np.testing.assert_array_equal(mdp.coords, maze.coords)


def test_maze_id_with_its_module_works_in_a_new_process() -> None:
    code = (
        "import gymnasium as gym; "
        "env = gym.make('eigenoptions:eigenoptions/FourRooms-v0'); "
        "print(env.reset(seed=0)[0])"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.check_output(command, timeout=100)
    assert int(printed) == eo.maze("four-rooms").start


def test_maze_env_steps_follow_the_table(
    four_rooms: eo.MDP, rng: np.random.Generator
) -> None:
    env = gym.make("eigenoptions/FourRooms-v0")
    for _ in range(20):
        start = int(rng.integers(104))
        state, _ = env.reset(options={"start": start})
        assert state == start
        for action in rng.integers(4, size=50):
            after, reward, terminated, truncated, _ = env.step(action)
            assert after == four_rooms.successors[state, action]
            is_goal = after == four_rooms.goal
            assert (reward, terminated, truncated) == (float(is_goal), is_goal, False)
            state = after
            if terminated:
                break


def test_maze_env_without_start_or_goal() -> None:
    env = MazeEnv("...G")
    assert {env.reset(seed=seed)[0] for seed in range(50)} == {0, 1, 2}
    endless = MazeEnv("S..")
    endless.reset(seed=0)
    assert not any(endless.step(1)[2] for _ in range(10))
    assert MazeEnv("four-rooms", start=3, goal=5).reset(seed=0)[0] == 3


def test_maze_env_of_a_stochastic_table_samples_it(slippery: eo.MDP) -> None:
    env = MazeEnv(slippery.with_task(start=1))
    counts = np.zeros(3)
    for seed in range(2000):
        env.reset(seed=seed)
        counts[env.step(1)[0]] += 1
    np.testing.assert_allclose(counts / 2000, [0.2, 0, 0.8], atol=0.04)


def test_maze_env_render_shows_walls_goal_and_agent() -> None:
    env = MazeEnv("S.#\n#.G", render_mode="ansi")
    env.reset(seed=0)
    env.step(1)
    assert env.render() == "█████\n█S@██\n██ G█\n█████"
    env = MazeEnv("S.#\n#.G", render_mode="rgb_array")
    env.reset(seed=0)
    # Wall, free, goal, and the agent on the start.
    colors = np.unique(env.render().reshape(-1, 3), axis=0)
    assert len(colors) == 4


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: MazeEnv("S.G").step(7), "action"),
        (lambda: MazeEnv("S.G", render_mode="human"), "render_mode"),
        (lambda: MazeEnv(eo.MDP(np.eye(2)), render_mode="ansi"), "coords"),
        (lambda: MazeEnv("S..G").reset(options={"start": 4}), "start"),
        (lambda: MazeEnv("four-roms"), "four-rooms"),
    ],
)
def test_maze_env_wrong_argument_raises(call: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call()


# Tables


@pytest.mark.parametrize(
    "name", ["FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1"]
)
def test_from_env_table_is_exact_where_states_are_reached(name: str) -> None:
    env = gym.make(name).unwrapped
    mdp = from_env(name)
    n_states = int(env.observation_space.n)
    n_actions = int(env.action_space.n)
    assert mdp.n_states == n_states
    assert mdp.n_actions == n_actions
    assert mdp.name == name

    # Rows that are not those of the environment stay put.
    table = mdp.transition.toarray()
    stay = np.repeat(np.eye(n_states), n_actions, axis=0)
    is_same = (table == read_table(env.P, n_states, n_actions)).all(axis=1)
    np.testing.assert_array_equal(table[~is_same], stay[~is_same])

    # A random walk never uses them, but at its end.
    for seed in range(5):
        state, _ = env.reset(seed=seed)
        env.action_space.seed(seed)
        for _ in range(200):
            action = env.action_space.sample()
            row = state * n_actions + action
            state, _, terminated, _, _ = env.step(action)
            assert table[row, state] > 0
            assert is_same[row]
            if terminated:
                rows = slice(state * n_actions, (state + 1) * n_actions)
                np.testing.assert_array_equal(table[rows], stay[rows])
                break


def test_from_env_cliff_walking_leaves_out_impossible_moves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "eigenoptions"):
        mdp = from_env("CliffWalking-v1")
    assert "10 of 48" in caplog.text
    edges = set(zip(*eo.graph(mdp).nonzero(), strict=True))
    cliff = set(range(37, 47))
    assert not any(cliff & set(edge) for edge in edges)
    # The table lists a fall from the goal back to the start.
    assert (47, 36) not in edges
    # A fall that does happen.
    assert (30, 36) in edges


def test_from_env_taxi_has_four_components() -> None:
    mdp = from_env("Taxi-v4")
    # Four rows of five maps of 5 x 5 cells, with a gap between them.
    assert mdp.coords.max(axis=0).tolist() == [22, 28]
    assert len(np.unique(mdp.coords, axis=0)) == 500
    # One component per destination.
    n_components, _ = connected_components(eo.graph(mdp), directed=False)
    assert n_components == 4
    ends = []
    for state in range(500):
        rows = mdp.transition[6 * state : 6 * state + 6]
        if (rows.indices == state).all():
            ends.append(state)
    assert len(ends) == 4
    # Four equal ends are no goal.
    assert mdp.goal is None


class Table(gym.Env[int, int]):
    """An environment that is nothing but its table."""

    def __init__(self, P: Any, first: Any = None, n: int | None = None) -> None:
        self.P = P
        self.observation_space = Discrete(n or len(P))
        self.action_space = Discrete(len(next(iter(P.values()))))
        if first is not None:
            self.initial_state_distrib = np.array(first)


def test_from_env_own_table() -> None:
    back = {0: [(1.0, 0, 0, False)]}
    split = {
        0: {
            0: [(0.25, np.int64(1), 0, False), (0.5, 0, 0, False), (0.25, 1, 0, False)]
        },
        1: back,
    }
    mdp = from_env(Table(split, [1, 0]))
    assert mdp.transition.toarray().tolist() == [[0.5, 0.5], [1, 0]]

    sometimes_ends = {0: {0: [(0.9, 1, 0, False), (0.1, 1, 5, True)]}, 1: back}
    mdp = from_env(Table(sometimes_ends, [1, 0]))
    assert mdp.n_additional == 1
    expected = [[0, 0.9, 0.1], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(mdp.transition.toarray(), expected)
    assert mdp.goal is None


def test_first_states_of_other_states_are_not_read() -> None:
    table = {state: {0: [(1.0, 1 - state, 0.0, False)]} for state in (0, 1)}
    assert from_env(Table(table, [0.0, 1.0])).start == 1
    # Either state may be the first, as if nothing were known.
    assert from_env(Table(table, [0.0, 1.0, 0.0])).start == 0


def test_from_env_own_table_without_first_states() -> None:
    """An end is closed; a state that nothing leads to may be the first."""
    table = {
        0: {0: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 2, 1.0, True)]},
        2: {0: [(1.0, 0, 0.0, False)]},
        3: {0: [(1.0, 0, 0.0, False)]},
    }
    mdp = from_env(Table(table))
    assert mdp.successors.tolist() == [[1], [2], [2], [0]]
    assert mdp.goal == 2

    # States without a row stay put.
    mdp = from_env(Table({0: {0: [(1.0, 2, 1, True)]}}, n=3))
    assert mdp.successors.tolist() == [[2], [1], [2]]


def test_from_env_wrappers_that_may_act_hide_the_table(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted = RecordEpisodeStatistics(gym.make("FrozenLake-v1", is_slippery=False))
    table = from_env(counted)
    mirrored = TransformAction(counted, lambda a: 3 - a, Discrete(4))
    with caplog.at_level(logging.INFO, "eigenoptions"):
        explored = from_env(mirrored)
    assert "TransformAction" in caplog.text
    reached = np.unique(explored.successors)
    np.testing.assert_array_equal(
        explored.successors[reached], table.successors[reached][:, ::-1]
    )
    options = make_options(np.zeros((1, 16), dtype=int), 4)
    with pytest.raises(ValueError, match="random"):
        from_env(OptionsWrapper(gym.make("FrozenLake-v1"), options, option_chance=0.05))


# Exploration


@pytest.mark.parametrize(
    ("name", "n_states"),
    [
        ("Empty-5x5", 34),
        ("DoorKey-5x5", 270),
        ("LavaCrossingS9N1", 183),
        ("FourRooms", 1040),
    ],
)
def test_numbered_minigrid_walks_as_its_mdp(
    name: str, n_states: int, rng: np.random.Generator
) -> None:
    env = Numbered(f"minigrid:MiniGrid-{name}-v0")
    assert env.mdp.n_states == n_states
    flat = FlattenObservation(ImgObsWrapper(gym.make(f"MiniGrid-{name}-v0")))
    assert env.mdp.fingerprint == from_env(flat).fingerprint
    for _ in range(5):
        state, _ = env.reset()
        for action in rng.integers(7, size=100):
            after, _, terminated, truncated, _ = env.step(action)
            assert after == env.mdp.successors[state, action]
            state = after
            if terminated:
                assert (env.mdp.successors[state] == state).all()
            if terminated or truncated:
                break


def test_from_env_minigrid_layout_belongs_to_its_seed() -> None:
    one, same, other = (
        from_env("minigrid:MiniGrid-FourRooms-v0", seed=seed) for seed in (0, 0, 1)
    )
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert len(np.unique(one.coords, axis=0)) == one.n_states


def test_from_env_minigrid_leaves_the_environment_as_it_was() -> None:
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0", render_mode="rgb_array")
    from_env(env)
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space
    assert env.unwrapped.render_mode == "rgb_array"
    assert env.step(2)[0]["image"].shape == (7, 7, 3)


def test_from_env_minigrid_headings_are_four_maps() -> None:
    """Turning right from one map leads to the same cell of the next.

    The maps are right and down above, left and up below.
    """
    mdp = from_env("minigrid:MiniGrid-Empty-5x5-v0")
    maps, cells = np.divmod(mdp.coords, 6)
    heading = maps @ [2, 1]
    after = mdp.successors[:, 1]
    turned = after != np.arange(mdp.n_states)
    # All but the two ends.
    assert turned.sum() == 32
    np.testing.assert_array_equal(cells[after[turned]], cells[turned])
    np.testing.assert_array_equal(heading[after[turned]], (heading[turned] + 1) % 4)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped")
def test_numbered_passes_check_env() -> None:
    check_env(Numbered("minigrid:MiniGrid-Empty-5x5-v0"), skip_render_check=True)


class Counter(gym.Env[int, int]):
    """Counts up and down between 0 and 9."""

    observation_space = Discrete(10)
    action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.count = max(self.count + (1 if action else -1), 0)
        return self.count, 0.0, self.count == 9, False, {}


def test_from_env_explores_copies() -> None:
    calls: list[tuple[int, int]] = []
    mdp = from_env(
        Counter(), progress=lambda *numbers: calls.append(numbers), seed=None
    )
    expected = [[max(i - 1, 0), i + 1] for i in range(9)]
    # Nothing leads out of the end.
    expected.append([9, 9])
    assert mdp.successors.tolist() == expected
    assert calls[-1] == (9, 10)


def test_from_env_takes_functions_of_the_user() -> None:
    mdp = from_env(Counter())
    own = from_env(
        Counter(),
        key=lambda env, obs: f"count {env.count}",
        save=lambda env: env.count,
        restore=lambda env, count: setattr(env, "count", count),
    )
    assert np.array_equal(own.successors, mdp.successors)
    assert own.states[:3] == ["count 0", "count 1", "count 2"]


class Hidden(Counter):
    """A counter that does not observe its count."""

    observation_space = Box(0, 1, (1,))

    def reset(self, **settings: Any) -> Any:
        super().reset(**settings)
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action: int) -> Any:
        _, *rest = super().step(action)
        return np.zeros(1, dtype=np.float32), *rest


def test_new_family_serves_search_wrapper_and_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    with pytest.raises(ValueError, match="not finite"):
        from_env(Hidden())

    def place_states(counts: Any) -> Any:
        return np.array([[0, count] for count in counts]), "counts"

    family = Family(
        name="hidden",
        matches=lambda env: isinstance(env.unwrapped, Hidden),
        identify_state=lambda env, obs: env.count,
        save=lambda env: env.count,
        restore=lambda env, count: setattr(env, "count", count),
        identify_layout=lambda env: "ten counts",
        place_states=place_states,
    )
    monkeypatch.setitem(families._entries, "hidden", family)
    mdp = from_env(Hidden())
    assert mdp.states == list(range(10))
    assert mdp.coords.tolist() == [[0, count] for count in range(10)]
    assert mdp.recognition.by == "hidden"

    eo.discover(mdp, n_options=2).save(tmp_path / "skills.safetensors")
    options = eo.load_options(tmp_path / "skills.safetensors")
    env = OptionsWrapper(Hidden(), options, option_chance=0.05)
    env.reset(seed=0)
    for state in (1, 2, 1):
        action = int(state > env.unwrapped.count)
        *_, info = env.step(action)
        assert (
            info["action_mask"][2:].tolist() == (options.choices(state) >= 0).tolist()
        )


def test_from_env_max_states_keeps_what_was_found() -> None:
    with pytest.raises(StateLimitReached, match="max_states") as error:
        from_env(Counter(), max_states=4)
    assert error.value.expanded == 3
    assert error.value.mdp.successors.tolist() == [[0, 1], [0, 2], [1, 3], [3, 3]]
    assert from_env(Counter(), max_states=10).n_states == 10


class Grid(gym.Env[int, int]):
    """A 5 x 5 grid that observes the number of its cell and has no table.

    `draw` replaces actions at random.
    """

    def __init__(self, low: int = 0, draw: Any = None) -> None:
        self.observation_space = Discrete(25, start=low)
        self.action_space = Discrete(4)
        self.low = low
        self.draw = draw
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 12
        self.visited = {12}
        return self.cell + self.low, {}

    def step(self, action: int) -> Any:
        self.steps += 1
        if self.draw is not None:
            action = self.draw(self, action)
        row, column = np.clip(np.add(divmod(self.cell, 5), MOVES[action]), 0, 4)
        self.cell = int(5 * row + column)
        self.visited.add(self.cell)
        return self.cell + self.low, 0.0, False, False, {}


MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
CELLS = np.stack(np.divmod(np.arange(25), 5), axis=1)
SUCCESSORS = np.stack([np.clip(CELLS + move, 0, 4) @ [5, 1] for move in MOVES], axis=1)


class Mirrored(gym.ActionWrapper[Any, Any, Any]):
    def action(self, action: Any) -> Any:
        return 3 - action


class Reversed(gym.ObservationWrapper[Any, Any, Any]):
    def observation(self, obs: Any) -> Any:
        return 24 - obs


@pytest.mark.parametrize("low", [0, 7])
def test_from_env_explored_discrete_states_keep_their_numbers(low: int) -> None:
    mdp = from_env(Grid(low))
    np.testing.assert_array_equal(mdp.successors, SUCCESSORS)
    assert mdp.start == 12
    up_and_down = from_env(TransformAction(Grid(), lambda a: 2 * a, Discrete(2)))
    np.testing.assert_array_equal(
        up_and_down.successors[2::5], SUCCESSORS[2::5, [0, 2]]
    )
    # States that are never reached stay put.
    np.testing.assert_array_equal(up_and_down.successors[:2], [[0, 0], [1, 1]])
    np.testing.assert_array_equal(
        from_env(Mirrored(Grid())).successors, SUCCESSORS[:, ::-1]
    )
    np.testing.assert_array_equal(
        from_env(Reversed(Grid())).successors, 24 - SUCCESSORS[::-1]
    )


def test_from_env_end_that_depends_on_the_move_is_an_additional_state() -> None:
    class Door(Grid):
        """Entering the corner from the left ends the episode, not from above."""

        def step(self, action: int) -> Any:
            before = self.cell
            obs, *_ = super().step(action)
            return obs, 0.0, obs == 24 and before == 23, False, {}

    mdp = from_env(Door())
    changed = np.argwhere(mdp.successors[:25] != SUCCESSORS)
    assert changed.tolist() == [[23, 1]]
    assert mdp.successors[23, 1] == 25
    assert len(mdp.states) == 25


class History(Grid):
    """A corner ends the episode if the opposite one was visited."""

    def step(self, action: int) -> Any:
        obs, *_ = super().step(action)
        return obs, 0.0, obs == 0 and 24 in self.visited, False, {}


class Alternating(gym.Wrapper[Any, Any, Any, Any]):
    """Every second action is mirrored."""

    odd = False

    def step(self, action: Any) -> Any:
        self.odd = not self.odd
        return super().step(action if self.odd else 3 - action)


@pytest.mark.parametrize(
    "name", ["BabyAI-OpenTwoDoors-v0", "BabyAI-OpenRedBlueDoors-v0"]
)
def test_numbered_babyai_remembers_what_was_done(name: str) -> None:
    """The order of the doors is part of the state.

    A walk to an end ends the episode there and not before.
    """
    env = Numbered(gym.make(f"minigrid:{name}"), seed=1)
    mdp = env.mdp
    states = np.arange(mdp.n_states)
    ends = np.flatnonzero((mdp.successors == states[:, None]).all(axis=1))
    assert len(ends) > 0
    purposes = [eo.Purpose(states == end, goal=int(end)) for end in ends[:2]]
    for option in eo.solve(mdp, purposes):
        state, _ = env.reset()
        terminated = False
        while not terminated:
            state, _, terminated, _, _ = env.step(option.act(state))
        assert state == option.goal


class Uncopyable(Grid):
    def reset(self, **settings: Any) -> Any:
        self.generator = (i for i in range(3))
        return super().reset(**settings)


def slip(env: Any, action: int) -> int:
    return env.np_random.integers(4) if env.np_random.random() < 0.05 else action


def slip_by_numpy(env: Any, action: int) -> int:
    return np.random.randint(4) if np.random.random() < 0.05 else action  # noqa: NPY002


OWN_GENERATOR = np.random.default_rng(3)


def slip_by_own_generator(env: Any, action: int) -> int:
    rng = OWN_GENERATOR
    return rng.integers(4) if rng.random() < 0.05 else action


def count(env: Any, action: int) -> int:
    return action if env.steps % 7 else 0


class Continuous(Counter):
    action_space = Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("env", "settings", "word"),
    [
        (Uncopyable(), {}, "cloned"),
        (Grid(draw=slip), {}, "random"),
        (Grid(draw=slip_by_numpy), {}, "random"),
        (Grid(draw=slip_by_own_generator), {}, "random"),
        (Grid(draw=count), {}, "remembers"),
        (History(), {}, "remembers"),
        (Alternating(Grid()), {}, "remembers"),
        ("Blackjack-v1", {}, "random"),
        (Continuous(), {}, "DiscretizeAction"),
        ("CartPole-v1", {}, "finite"),
        ("FrozenLake-v9", {}, "FrozenLake-v9"),
        ("no_such_module:Maze-v0", {}, "no_such_module"),
        (7, {}, "int"),
        (Table({0: {0: [(1.0, 5, 0, False)]}}), {}, "state 5"),
        (Counter(), {"save": lambda env: env.count}, "restore"),
        (Counter(), {"max_states": 0}, "max_states"),
        (Counter(), {"key": lambda env, obs: min(obs, 3)}, "key"),
        ("Taxi-v4", {"max_states": 499}, "max_states"),
    ],
)
def test_from_env_wrong_argument_raises(
    env: Any, settings: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word) as error:
        from_env(env, **settings)
    assert "\n" not in str(error.value)


def test_run_options_returns_paths_to_the_ends(four_rooms: eo.MDP) -> None:
    options = eo.discover(four_rooms, n_options=4)
    paths = run_options("eigenoptions/FourRooms-v0", options, runs=5, rng=1)
    for i, its_paths in enumerate(paths):
        for path in its_paths:
            expected = options.follow(i, int(path[0]))
            if four_rooms.goal in path:
                expected = expected[: len(path)]
            assert path.tolist() == list(expected)
    # The starts are the same for all options.
    starts = {tuple(int(path[0]) for path in its_paths) for its_paths in paths}
    assert len(starts) == 1


class Malformed(MazeEnv):
    """An environment whose reset or step returns what Gymnasium does not know."""

    def __init__(self, reset: Any = "right", step: Any = "right") -> None:
        super().__init__("S...")
        self.wrong_reset = reset
        self.wrong_step = step

    def reset(self, **arguments: Any) -> Any:
        returned = super().reset(**arguments)
        return returned if self.wrong_reset == "right" else self.wrong_reset

    def step(self, action: Any) -> Any:
        returned = super().step(action)
        return returned if self.wrong_step == "right" else self.wrong_step


def take_wrapped_step(env: Any) -> None:
    wrapped = eo.OptionsWrapper(env, eo.discover("S...", 2), option_chance=0.1)
    wrapped.reset()
    wrapped.step(0)


def take_exploring_step(env: Any) -> None:
    exploring = eo.Exploring(env)
    exploring.reset()
    exploring.step(0)


@pytest.mark.parametrize(
    "use",
    [
        take_wrapped_step,
        take_exploring_step,
        lambda env: eo.explore(env, 10),
        lambda env: eo.collect(env, 10),
        lambda env: eo.discover("S...", 2).check(env),
        lambda env: eo.from_env(env, key=lambda env, obs: obs),
    ],
)
@pytest.mark.parametrize(
    ("method", "returned"),
    [
        ("reset", None),
        ("reset", 0),
        ("reset", (0, None)),
        ("step", None),
        ("step", (0, 0.0, False, {})),
        ("step", (0, 0.0, False, False, None)),
    ],
)
def test_environments_that_return_other_values_are_named(
    use: Any, method: str, returned: Any
) -> None:
    with pytest.raises(TypeError, match=f"^{method} of MazeEnv|^{method} of Malformed"):
        use(Malformed(**{method: returned}))


# Notes


def test_what_was_done_is_shown_where_logging_is_not_configured() -> None:
    """In one line, once; never where a level or a handler is set."""
    code = """
import logging
import eigenoptions as eo
discover = lambda name: eo.discover(name, 4)
discover("FrozenLake-v1")
discover("FrozenLake-v1")
discover("four-rooms")
eo.OptionsWrapper(eo.envs.MazeEnv("four-rooms"), eo.discover("four-rooms", 8))
logging.getLogger("eigenoptions").setLevel(logging.WARNING)
discover("FrozenLake8x8-v1")
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    of_discover, of_wrapper = done.stderr.splitlines()
    for word in ("FrozenLake-v1", "16 states", "eigen", "normalized"):
        assert word in of_discover
    assert "option_chance=" in of_wrapper


def test_note_goes_to_a_handler_of_ones_own(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("minigrid")
    with caplog.at_level("INFO", logger="eigenoptions"):
        eo.discover("minigrid:MiniGrid-Empty-5x5-v0", 2, seed=3)
    assert "layout of seed 3" in caplog.messages[-1]
    assert capfd.readouterr().err == ""


def test_missing_prefix_is_suggested() -> None:
    for name in ("MiniGrid-FourRoms-v0", "BabyAI-Nothing-v0"):
        with pytest.raises(ValueError, match=f"'minigrid:{name}'"):
            eo.from_env(name)
    with pytest.raises(ValueError, match=r"NoSuchGame-v0.*exist\.?$"):
        eo.from_env("NoSuchGame-v0")
