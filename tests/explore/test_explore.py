"""`explore`: closed forms on corridors, the slow twin, determinism, bad input."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from pickle import dumps, loads
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.envs.families import find_family
from eigenoptions.envs.poses import PoseTracker
from eigenoptions.explore import Explorer
from eigenoptions.explore.experience import Experience
from eigenoptions.explore.growing import GrowingArray
from eigenoptions.explore.unknown import GrowingTable
from eigenoptions.mdp import MDP
from tests.unknown import make_unknown_mdp

CORRIDOR = eo.maze("S.........G")
FOUR_ROOMS = eo.maze("four-rooms")


def fill_table(mdp: MDP, steps: int, rng: int, **settings: float) -> GrowingTable:
    """The table of a random walk, whose episodes end in some states."""
    generator = np.random.default_rng(rng)
    table = GrowingTable(mdp.n_actions, **settings)  # type: ignore[arg-type]
    numbers = {0: table.add_state()}
    table.add_start(0)
    state = 0
    for _ in range(steps):
        action = int(generator.integers(mdp.n_actions))
        row = state * mdp.n_actions + action
        after = int(
            generator.choice(mdp.n_states, p=mdp.transition[[row]].toarray()[0])
        )
        is_new = after not in numbers
        if is_new:
            numbers[after] = table.add_state()
        ends = after % 11 == 7
        table.add_step(
            numbers[state], action, numbers[after], is_new=is_new, terminated=ends
        )
        state = 0 if ends else after
    return table


def make_slippery(mdp: MDP, chance: float = 0.3) -> MDP:
    table = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    return MDP((1 - chance) * table + chance * table.mean(axis=1, keepdims=True))


class Noisy(gym.Env[Any, Any]):
    """Observations that never repeat, or an error in a step."""

    observation_space = Box(-1.0, 1.0, (3,))
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.random(3), {}

    def step(self, action: int) -> Any:
        return self.np_random.random(3), 0.0, False, False, {}


class Fails(MazeEnv):
    """An environment that raises once."""

    def __init__(self, at: int, error: type[BaseException] = OSError) -> None:
        super().__init__("four-rooms")
        self.at = at
        self.error = error
        self.n_steps = 0

    def step(self, action: int) -> Any:
        self.n_steps += 1
        if self.n_steps == self.at:
            raise self.error("the simulator is gone")
        return super().step(action)


class Trap(gym.Env[Any, Any]):
    """A pit that nothing leads out of, beside a corridor: state 0 falls or goes on."""

    observation_space = Discrete(4)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = 0
        return self.state, {}

    def step(self, action: int) -> Any:
        if self.state == 0:
            self.state = 1 if action == 0 else 2
        elif self.state == 2:
            self.state = 3 if action == 1 else 2
        return self.state, 0.0, False, False, {}


def take_steps(explorer: Explorer, n_steps: int) -> None:
    for _ in range(n_steps):
        explorer.step()


def list_bytes(found: eo.Found) -> list[bytes]:
    batch = found.transitions
    columns = (batch.obs, batch.action, batch.next_obs, batch.reward, batch.terminated)
    return [np.asarray(column).tobytes() for column in columns]


def test_growing_array_keeps_its_rows() -> None:
    array = GrowingArray(np.int64, width=2)
    for number in range(1000):
        array.append((number, -number))
    assert np.array_equal(array.values[:, 0], np.arange(1000))
    array.truncate(3)
    assert array.values.tolist() == [[0, 0], [1, -1], [2, -2]]


@pytest.mark.parametrize("rng", range(5))
def test_the_path_has_the_value_of_the_option_that_solve_derives(rng: int) -> None:
    table = fill_table(eo.maze("rooms:2x2", rng=rng), 200, rng)
    mdp, purpose = make_unknown_mdp(table)
    value = eo.solve(mdp, purpose, gamma=table.gamma).value[0]
    for state in range(table.n_states):
        path = table.find_path(state, np.random.default_rng(rng))
        promise = table.promises[path.actions[-1]]
        assert promise * table.gamma ** (len(path.actions) - 1) == pytest.approx(
            value[state]
        )
        assert table.is_untried(path.last_state, path.actions[-1])


@pytest.mark.parametrize("rng", range(3))
def test_sweeps_have_the_values_of_the_option_that_solve_derives(rng: int) -> None:
    table = fill_table(make_slippery(eo.maze("rooms:2x2", rng=rng)), 300, rng, retry=0)
    assert table.is_random
    mdp, purpose = make_unknown_mdp(table)
    value = eo.solve(mdp, purpose, gamma=table.gamma).value[0]
    swept = table.sweep_values(tolerance=1e-12).max(axis=1)
    assert swept == pytest.approx(value[: table.n_states], abs=1e-6)


def test_a_corridor_is_known_as_soon_as_every_action_was_tried() -> None:
    found = eo.explore(CORRIDOR, 1000, until="known")
    assert not found.untried.any()
    assert np.array_equal(found.mdp.successors[:-1], CORRIDOR.successors[:-1])
    # The goal ends the episode: there every action stays put.
    assert (found.mdp.successors[-1] == 10).all()
    # Each of the ten cells has four actions, and the way back is at most as long again.
    assert 40 <= found.n_steps <= 100
    assert found.mdp.start == 0
    assert found.mdp.goal == 10
    assert found.rewarded.tolist() == [10]


def test_what_was_found_is_what_happened() -> None:
    found = eo.explore(FOUR_ROOMS, 400)
    batch = found.transitions
    assert len(batch) == found.n_steps == 400
    assert np.array_equal(
        FOUR_ROOMS.successors[batch.obs, batch.action], batch.next_obs
    )
    assert np.array_equal(batch.reward, batch.next_obs == FOUR_ROOMS.goal)
    assert not batch.truncated.any()
    first = np.full(104, -1)
    first[found.mdp.start] = 0
    for step, state in enumerate(batch.next_obs.tolist(), start=1):
        if first[state] < 0:
            first[state] = step
    assert np.array_equal(first, found.first_visit)
    tried = np.zeros((104, 4), dtype=bool)
    tried[batch.obs, batch.action] = True
    is_open = (first >= 0) & (np.arange(104) != FOUR_ROOMS.goal)
    assert np.array_equal(found.untried, ~tried & is_open[:, None])


def test_it_needs_a_fraction_of_the_steps_of_random_actions() -> None:
    mean_visits = [
        np.where(visits < 0, 2000, visits).mean()
        for visits in (
            eo.explore(FOUR_ROOMS, 2000, rng=r).first_visit for r in range(3)
        )
    ]
    batch = eo.collect(FOUR_ROOMS, 2000, rng=0)
    seen, first = np.unique(batch.next_obs, return_index=True)
    random_visits = np.full(104, 2000)
    random_visits[seen] = first + 1
    assert np.mean(mean_visits) < 0.5 * random_visits.mean()


def test_the_same_seeds_give_the_same_bytes() -> None:
    for env in (FOUR_ROOMS, "FrozenLake-v1", "minigrid:MiniGrid-DoorKey-5x5-v0"):
        first, second = (eo.explore(env, 300, rng=3) for _ in range(2))
        assert first.numbers.obs.tobytes() == second.numbers.obs.tobytes()
        assert first.numbers.action.tobytes() == second.numbers.action.tobytes()
    assert list_bytes(eo.explore(FOUR_ROOMS, 300, rng=3)) != list_bytes(
        eo.explore(FOUR_ROOMS, 300, rng=4)
    )


def test_everything_follows_from_the_seed_unless_rng_is_given() -> None:
    walks = [list_bytes(eo.explore(FOUR_ROOMS, 300, seed=s)) for s in range(4)]
    assert len({walk[0] for walk in walks}) == 4
    assert walks[0] == list_bytes(eo.explore(FOUR_ROOMS, 300))
    assert walks[3] == list_bytes(eo.explore(FOUR_ROOMS, 300, rng=3))
    assert walks[3] == list_bytes(eo.explore(FOUR_ROOMS, 300, seed=5, rng=3))


def make_fixed(seed: int = 3) -> gym.Env[Any, Any]:
    return eo.envs.FixedSeed(gym.make("minigrid:MiniGrid-DoorKey-5x5-v0"), seed)


def test_a_fixed_seed_is_known_without_saying_it_again(
    tmp_path: Path, caplog: Any
) -> None:
    bare = "minigrid:MiniGrid-DoorKey-5x5-v0"
    found = eo.explore(make_fixed(), 300)
    again = eo.explore(bare, 300, seed=3)
    assert found.about.seed == 3
    assert found.about.layout == again.about.layout
    found.save(tmp_path / "found")
    assert eo.load_found(tmp_path / "found").about.seed == 3
    assert Explorer(make_fixed(), seed=3).found.about.seed == 3

    with caplog.at_level("INFO", logger="eigenoptions"):
        options = eo.discover(make_fixed(), 2)
    assert "layout of seed 3" in caplog.text
    for other in (
        eo.discover(make_fixed, 2),
        eo.discover(make_fixed(), 2, key="pose", steps=100),
        eo.discover(found, 2),
    ):
        assert other.mdp is not None
        assert other.mdp.recognition.seed == 3
    assert options.mdp.states == eo.from_env(bare, seed=3).states  # type: ignore[union-attr]
    wrapped = eo.OptionsWrapper(make_fixed(), options)
    wrapped.reset(seed=0)
    with pytest.raises(ValueError, match=r"FixedSeed\(env, 3\)"):
        eo.OptionsWrapper(make_fixed(4), options).reset(seed=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: eo.explore(make_fixed(), 300, seed=4),
        lambda: eo.explore(make_fixed(), 300, seed=0),
        lambda: eo.discover(make_fixed(), seed=4),
        lambda: eo.discover(make_fixed, seed=4),
        lambda: eo.discover(make_fixed(), key="pose", seed=4),
        lambda: eo.from_env(make_fixed(), seed=4),
        lambda: eo.envs.FixedSeed(make_fixed(), 4),
    ],
)
def test_contradicting_seeds_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="FixedSeed"):
        call()


def test_numbered_observations_keep_their_numbers() -> None:
    found = eo.explore("CliffWalking-v1", 2000, until="known")
    exact = eo.from_env("CliffWalking-v1")
    assert found.mdp.n_states == 48
    seen = np.sort(found.seen)
    assert np.array_equal(found.mdp.successors[seen], exact.successors[seen])
    assert np.array_equal(found.mdp.coords, exact.coords)
    assert len(found.states) == 48


def test_an_end_is_rewarded_where_every_step_costs_something() -> None:
    found = eo.explore("CliffWalking-v1", 2000, until="reward")
    assert found.rewarded.tolist() == [47]
    assert "end of an episode" in found.reward_rule
    assert found.n_steps < 200
    lake = eo.explore("FrozenLake-v1", 4000, until="reward")
    assert lake.rewarded.tolist() == [15]
    assert "above 0" in repr(lake)


def test_an_end_without_a_reward_is_no_reward_where_steps_cost_nothing() -> None:
    found = eo.explore(Trap(), 20)
    assert found.reward_rule == "a reward above 0"


def test_until_may_be_a_function() -> None:
    found = eo.explore(FOUR_ROOMS, 5000, until=lambda found: len(found.seen) >= 60)
    assert found.n_steps % 100 == 0
    assert 60 <= len(found.seen) < 104


def test_a_trap_is_left_by_a_new_episode() -> None:
    found = eo.explore(Trap(), 200, until="known")
    assert not found.untried.any()
    assert found.is_first.sum() > 1
    # An episode that was left is one that was truncated.
    assert found.transitions.truncated.sum() == found.is_first.sum() - 1


def test_several_starts() -> None:
    found = eo.explore(eo.maze("....\n....\n"), 2000, until="known")
    assert not found.untried.any()
    taxi = eo.explore("Taxi-v4", 3000)
    assert len(taxi.seen) > 200


def test_a_frontier_beyond_the_time_limit_is_given_up(caplog: Any) -> None:
    env = gym.wrappers.TimeLimit(MazeEnv("S..........................."), 8)
    found = eo.explore(env, 3000, until="known")
    assert found.n_steps < 1000
    assert found.given_up.any()
    assert found.first_visit[9:].max() == -1
    assert "given up" in caplog.text
    # What was given up stays untried, and stays given up.
    assert (found.untried | ~found.given_up).all()
    again = eo.explore(env, 100, known=found, until="known")
    assert again.n_steps == found.n_steps + 1


def test_a_frontier_beyond_the_time_limit_is_given_up_on_slippery_floor(
    caplog: Any,
) -> None:
    corridor = make_slippery(eo.maze("S..........................."), 0.2)
    env = gym.wrappers.TimeLimit(MazeEnv(corridor.with_task(start=0)), 8)
    found = eo.explore(env, 4000, until="known", rng=1)
    assert found.mdp.successors is None
    # Nothing within reach is left, and nobody can reach more than eight cells.
    assert found.n_steps < 2000
    assert found.given_up.any()
    assert found.first_visit[9:].max() == -1
    assert "given up" in caplog.text


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_step_may_show_a_new_state_of_a_random_environment(seed: int) -> None:
    env = gym.make("FrozenLake8x8-v1", max_episode_steps=10)
    assert eo.explore(env, 3000, seed=seed, rng=seed).n_steps == 3000


def test_sweeps_know_nothing_of_later_states() -> None:
    table = fill_table(make_slippery(FOUR_ROOMS), steps=500, rng=0)
    assert table.choose_action(0, np.random.default_rng(0)) is not None
    later = table.add_state()
    table.add_step(0, 0, later, is_new=True)
    assert table.find_target(later) is None
    assert table.find_target(0) != (later, 0)


class CountedRows(list[list[int]]):
    """A list that counts how often somebody reads an entry."""

    n_reads = 0

    def __getitem__(self, i: Any) -> Any:
        self.n_reads += 1
        return super().__getitem__(i)


def test_what_is_known_is_not_searched_again() -> None:
    explorer = Explorer(CORRIDOR)
    while not (explorer.has_steps and explorer.is_known):
        explorer.step()
    take_steps(explorer, 1)
    table = explorer.experience.table
    table._successors = CountedRows(table._successors)
    take_steps(explorer, 50)
    # Each step reads the present state, and searches none.
    assert table._successors.n_reads <= 200
    # Until something changes.
    later = table.add_state()
    table.add_step(0, 3, later, is_new=True)
    assert table.find_path(0, np.random.default_rng(0)).actions[0] == 3
    assert not explorer.is_known


def test_what_is_known_is_not_swept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = GrowingTable(n_actions=1, least_value=0.1)
    rng = np.random.default_rng(0)
    for _ in range(2):
        table.add_state()
    table.add_start(0)
    for after in (0, 1, 0, 1):
        table.add_step(0, 0, after, is_new=after == 1)
        table.add_step(1, 0, after)
    while table.choose_action(0, rng) is not None:
        pass
    with monkeypatch.context() as patch:
        patch.setattr(GrowingTable, "sweep_values", refuse)
        assert table.choose_action(1, rng) is None
        assert not table.is_any_worth_trying(0)
    # A new state is worth a try.
    table.add_step(0, 0, table.add_state(), is_new=True)
    assert table.is_any_worth_trying(0)


def refuse(*args: Any, **settings: Any) -> Any:
    raise AssertionError("nobody should ask")


def test_the_target_of_sweeps_is_a_try_that_the_option_leads_to() -> None:
    table = fill_table(make_slippery(eo.maze("rooms:2x2", rng=1)), 300, 1)
    values = table.sweep_values(tolerance=1e-12)
    for state in range(table.n_states):
        target = table.find_target(state)
        assert target is not None
        assert table.is_worth_trying(*target)
        assert values[target] >= values[state].max() - 1e-9


def test_random_outcomes_are_counted_after_one_warning(caplog: Any) -> None:
    found = eo.explore("FrozenLake-v1", 2000)
    assert sum("two outcomes" in record.message for record in caplog.records) == 1
    assert found.mdp.successors is None
    exact = eo.from_env("FrozenLake-v1").transition.toarray()
    error = np.abs(found.mdp.transition.toarray() - exact)[found.seen * 4]
    assert error.max() < 0.5


def test_observations_that_never_repeat_are_refused() -> None:
    with pytest.raises(ValueError, match=r"noise.* key=") as error:
        eo.explore(Noisy(), 10_000)
    assert error.value.found.n_steps <= 2000  # type: ignore[attr-defined]
    found = eo.explore(Noisy(), 2100, key=lambda env, obs: (obs > 0.5).tobytes())
    assert len(found.seen) == 8


class Tree(gym.Env[Any, Any]):
    """An endless tree: every action leads to a new place, the first one nowhere."""

    observation_space = Box(0, 2**31, (1,), np.int64)
    action_space = Discrete(60)

    def __init__(self) -> None:
        self.children: dict[tuple[int, int], int] = {}
        self.place = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return np.array([0]), {}

    def step(self, action: int) -> Any:
        if action > 0:
            number = len(self.children) + 1
            self.place = self.children.setdefault((self.place, action), number)
        return np.array([self.place]), 0.0, False, False, {}


def test_large_environments_are_told_from_states_that_never_repeat() -> None:
    found = eo.explore(Tree(), 1500)
    assert len(found.seen) > 0.95 * 1500


def test_states_that_are_observed_by_number_need_no_recognition() -> None:
    assert eo.explore(FOUR_ROOMS, 50).mdp.recognition is None
    counted = eo.explore(FOUR_ROOMS, 50, key=lambda env, obs: int(obs) + 1)
    assert counted.mdp.recognition is not None


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_nothing_is_lost_by_an_exception(error: type[BaseException]) -> None:
    env = Fails(at=120, error=error)
    with pytest.raises(error, match="simulator") as caught:
        eo.explore(env, 1000)
    found = caught.value.found  # type: ignore[attr-defined]
    assert found.n_steps == 119
    more = eo.explore(env, 200, known=found)
    assert more.n_steps == 319
    assert np.array_equal(more.numbers.action[:119], found.numbers.action)
    assert len(more.seen) > len(found.seen)


def test_an_explorer_continues_after_an_exception() -> None:
    explorer = Explorer(Fails(at=50))
    for _ in range(60):
        try:
            explorer.step()
        except OSError:
            assert explorer.found.n_steps == 49
    assert explorer.found.n_steps == 59


def check_complete(found: eo.Found) -> None:
    """Every recorded step is in the table, and every state has been reached."""
    tried = np.zeros((104, 4), dtype=bool)
    tried[found.numbers.obs, found.numbers.action] = True
    assert not (found.untried & tried).any()
    assert np.array_equal(
        FOUR_ROOMS.successors[found.numbers.obs, found.numbers.action],
        found.numbers.next_obs,
    )
    assert len(found.observations) == len(found.seen) == (found.first_visit >= 0).sum()


class ForeignArray:
    """What an array of JAX is to us: no NumPy array, without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.array(numbers)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.numbers, dtype)


class Foreign(gym.ObservationWrapper[Any, Any, Any]):
    """Four rooms, seen as an array of another library inside a dict."""

    def observation(self, observation: Any) -> Any:
        return {"cell": ForeignArray([observation // 10, observation % 10])}


def test_arrays_of_other_libraries_are_read() -> None:
    space = Dict({"cell": Box(0, 20, (2,), np.int64)})
    env = Foreign(MazeEnv("four-rooms"))
    env.observation_space = space
    found = eo.explore(env, 2000, until="known")
    assert len(found.seen) == 104
    assert found.observations[3]["cell"].dtype == np.int64
    options = eo.discover(env, 2)
    assert isinstance(options, eo.OptionSet)
    assert options.n_states == 104


@pytest.mark.parametrize("value", [np.nan, np.array([0.0, np.nan]), np.float32("nan")])
def test_observations_of_nan_are_refused(value: Any) -> None:
    env = Noisy()
    env.step = lambda action: (value, 0.0, False, False, {})  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="nan"):
        eo.explore(env, 100)
    known = eo.explore(env, 100, key=lambda env, obs: bool(np.isnan(obs).any()))
    assert len(known.seen) == 2


class Interrupted:
    """A block in which Ctrl-C comes at one of the lines of the library."""

    def __init__(self, line: int) -> None:
        self.n_lines = line

    def __enter__(self) -> None:
        self.tracer = sys.gettrace()
        sys.settrace(self._enter_call)

    def __exit__(self, *exception: object) -> None:
        sys.settrace(self.tracer)

    def _enter_call(self, frame: FrameType, event: str, value: Any) -> Any:
        is_ours = "eigenoptions" in Path(frame.f_code.co_filename).parts
        return self._count_line if is_ours else None

    def _count_line(self, frame: FrameType, event: str, value: Any) -> Any:
        self.n_lines -= 1
        if self.n_lines == 0:
            raise KeyboardInterrupt
        return self._count_line


class Short(MazeEnv):
    """Four rooms in episodes of seven steps."""

    def reset(self, **arguments: Any) -> Any:
        self.n_left = 7
        return super().reset(**arguments)

    def step(self, action: int) -> Any:
        self.n_left -= 1
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, self.n_left <= 0, info


def check_episodes(found: eo.Found) -> None:
    """An episode begins where the last one ended, and nowhere else."""
    batch = found.numbers
    assert batch.truncated is not None
    is_over = batch.terminated | batch.truncated
    assert np.array_equal(found.is_first[1:], is_over[:-1])
    goes_on = ~is_over[:-1]
    assert np.array_equal(batch.obs[1:][goes_on], batch.next_obs[:-1][goes_on])


def make_walk(kind: str) -> tuple[Any, Any]:
    """Something that explores, and a function that takes a step with it."""
    if kind == "explorer":
        explorer = Explorer(Short("four-rooms"))
        return explorer, explorer.step
    if kind == "wrapper":
        env = eo.Exploring(Short("four-rooms"))
        env.reset(seed=0)

        def step() -> None:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

        return env, step
    envs = gym.vector.SyncVectorEnv(
        [lambda: Short("four-rooms")] * 2, autoreset_mode=AutoresetMode(kind)
    )
    vector = eo.ExploringVector(envs)
    vector.reset(seed=0)
    return vector, lambda: vector.step(vector.action_space.sample())


@pytest.mark.parametrize("kind", ["explorer", "wrapper", "NextStep", "SameStep"])
def test_interrupts_anywhere_leave_complete_steps(kind: str) -> None:
    walk, step = make_walk(kind)
    rng = np.random.default_rng(0)
    n_steps = 0
    for _ in range(50):
        for _ in range(10):
            step()
        n_complete = 0
        with suppress(KeyboardInterrupt), Interrupted(int(rng.integers(1, 500))):
            for _ in range(3):
                step()
                n_complete += 1
        # Again, while what was found is put together.
        with suppress(KeyboardInterrupt), Interrupted(int(rng.integers(1, 2000))):
            _ = walk.found

        found = walk.found
        check_complete(found)
        if kind in ("explorer", "wrapper"):
            check_episodes(found)
        if kind == "explorer":
            assert found.n_steps >= n_steps + 10 + n_complete
        assert found.n_steps > n_steps
        n_steps = found.n_steps


def test_a_second_interrupt_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild = Experience.rebuild
    n_calls = 0

    def interrupt_once(experience: Experience) -> Experience:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise KeyboardInterrupt("impatient")
        return rebuild(experience)

    monkeypatch.setattr(Experience, "rebuild", interrupt_once)
    with pytest.raises(KeyboardInterrupt, match="simulator") as caught:
        eo.explore(Fails(at=120, error=KeyboardInterrupt), 1000)
    assert n_calls == 2
    assert caught.value.found.n_steps == 119  # type: ignore[attr-defined]


def test_the_last_step_before_an_exception_is_truncated() -> None:
    def stop(found: eo.Found) -> bool:
        raise RuntimeError("enough")

    for env, until in ((Fails(at=120), None), (MazeEnv(CORRIDOR), stop)):
        with pytest.raises((OSError, RuntimeError)) as caught:
            eo.explore(env, 1000, until=until)
        found = caught.value.found  # type: ignore[union-attr]
        assert found.numbers.truncated[-1] or found.numbers.terminated[-1]
        check_episodes(found)
        check_episodes(eo.explore(env, 100, known=found))
    # Also where nothing was raised, and another walk continues.
    part = eo.explore(FOUR_ROOMS, 100)
    check_episodes(eo.explore(FOUR_ROOMS, 100, known=part))


def test_an_exception_in_reset_key_or_until_loses_nothing() -> None:
    class Stubborn(MazeEnv):
        n_resets = 0

        def reset(self, **arguments: Any) -> Any:
            self.n_resets += 1
            if self.n_resets == 3:
                raise OSError("the simulator is gone")
            return super().reset(**arguments)

    def fail_late(env: Any, obs: Any) -> int:
        if obs == 60:
            raise RuntimeError("this cell has no name")
        return int(obs)

    def fail(found: eo.Found) -> bool:
        raise RuntimeError("a mistake")

    settings: list[Any] = [
        (Stubborn("S..G"), {}),
        (MazeEnv(FOUR_ROOMS), {"key": fail_late}),
        (MazeEnv(FOUR_ROOMS), {"until": fail}),
    ]
    for env, arguments in settings:
        with pytest.raises((OSError, RuntimeError)) as caught:
            eo.explore(env, 1000, **arguments)
        found = caught.value.found
        assert found.n_steps > 0
        assert "known=error.found" in caught.value.__notes__[0]


class Boxes(gym.Env[Any, Any]):
    """A ring of six cells, whose observation is a dict, a tuple or an array."""

    action_space = Discrete(2)

    def __init__(self, kind: str) -> None:
        self.kind = kind
        cells = Box(0, 5, (2,), np.int64)
        spaces = {"dict": Dict(cell=cells), "tuple": Tuple([cells]), "array": cells}
        spaces["floats"] = Box(0.0, 5.0, (2,))
        self.observation_space = spaces[kind]
        # Written in place, as fast environments do.
        dtype = np.float32 if kind == "floats" else np.int64
        self.memory = np.zeros(2, dtype=dtype)

    def observe(self) -> Any:
        self.memory[:] = [self.cell, 5 - self.cell]
        if self.kind == "dict":
            return {"cell": self.memory}
        return (self.memory,) if self.kind == "tuple" else self.memory

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self.observe(), {}

    def step(self, action: int) -> Any:
        self.cell = (self.cell + (1 if action else -1)) % 6
        return self.observe(), float(self.cell == 3), False, False, {}


@pytest.mark.parametrize("kind", ["dict", "tuple", "array", "floats"])
def test_every_kind_of_observation_that_repeats(kind: str) -> None:
    found = eo.explore(Boxes(kind), 200, until="known")
    assert len(found.seen) == 6
    assert not found.untried.any()
    assert len(found.rewarded) == 1
    # One copy of each observation, though the environment writes in place.
    first, *_, last = found.transitions.obs
    assert repr(found.observations[0]) == repr(Boxes(kind).reset()[0])
    assert repr(first) != repr(last) or found.numbers.obs[-1] == 0
    wrapped = eo.OptionsWrapper(Boxes(kind), found.option())
    wrapped.reset(seed=0)
    assert wrapped.step(2)[1] > 0


class Lottery(gym.Wrapper[Any, Any, Any, Any]):
    """Draws a number of the environment's generator in each step."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.drawn: list[int] = []

    def step(self, action: Any) -> Any:
        self.drawn.append(int(self.env.unwrapped.np_random.integers(2**40)))
        return self.env.step(action)


def test_episodes_of_one_layout_draw_numbers_of_their_own() -> None:
    env = Lottery(gym.make("minigrid:MiniGrid-Empty-5x5-v0", max_episode_steps=3))
    eo.explore(env, 60, seed=3)
    assert len(set(env.drawn)) == 60


def test_an_environment_without_a_layout_keeps_its_generator() -> None:
    env = Lottery(gym.wrappers.TimeLimit(MazeEnv("S...G"), 3))
    eo.explore(env, 60, seed=3)
    generator, _ = gym.utils.seeding.np_random(3)
    assert env.drawn == generator.integers(2**40, size=60).tolist()


def test_every_episode_has_the_layout_of_the_seed() -> None:
    class Witness(gym.Wrapper[Any, Any, Any, Any]):
        def __init__(self, env: gym.Env[Any, Any]) -> None:
            super().__init__(env)
            self.layouts: set[str | None] = set()
            self.starts: list[Any] = []

        def reset(self, **arguments: Any) -> Any:
            self.starts.append(arguments)
            returned = self.env.reset(**arguments)
            layout = find_family(self.env).identify_layout(self.env.unwrapped)
            self.layouts.add(layout)
            return returned

    env = Witness(gym.make("minigrid:MiniGrid-FourRooms-v0", max_episode_steps=20))
    found = eo.explore(env, 200, seed=3)
    assert len(env.starts) >= 10
    assert env.starts == [{"seed": 3}] * len(env.starts)
    assert env.layouts == {found.about.layout}
    other = eo.explore("minigrid:MiniGrid-FourRooms-v0", 5, seed=4)
    assert other.about.layout not in env.layouts


@pytest.mark.parametrize(
    ("env", "settings", "error", "word"),
    [
        ("FrozenLake-v1", {"key": lambda env, obs: [obs]}, TypeError, "hashable"),
        ("FrozenLake-v1", {"key": "pose"}, ValueError, "minigrid"),
        ("FrozenLake-v1", {"key": "place"}, ValueError, "key"),
        ("FrozenLake-v1", {"until": "goal"}, ValueError, "until"),
        ("FrozenLake-v1", {"seed": -1}, ValueError, "seed"),
        ("NoSuchEnvironment-v0", {}, ValueError, "NoSuchEnvironment"),
        (17, {}, ValueError, "int"),
    ],
)
def test_bad_input(env: Any, settings: Any, error: Any, word: str) -> None:
    with pytest.raises(error, match=word):
        eo.explore(env, 100, **settings)


def test_steps_and_states_are_limited() -> None:
    with pytest.raises(ValueError, match="steps"):
        eo.explore(FOUR_ROOMS, 0)
    explorer = Explorer(FOUR_ROOMS, max_states=10)
    with pytest.raises(ValueError, match="max_states=10"):
        take_steps(explorer, 100)
    assert len(explorer.found.seen) == 10


def halve(env: Any, obs: Any) -> int:
    return int(obs) // 2


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (
            ("minigrid:MiniGrid-Empty-5x5-v0", {}),
            ("minigrid:MiniGrid-Empty-8x8-v0", {}),
            "another",
        ),
        (("FrozenLake-v1", {}), ("FrozenLake8x8-v1", {}), "another"),
        ((FOUR_ROOMS, {}), (eo.maze("open-room"), {}), "another"),
        ((eo.maze("...."), {}), (eo.maze("..\n.."), {}), "another"),
        ((FOUR_ROOMS, {"key": halve}), (FOUR_ROOMS, {}), "function halve"),
        (
            ("minigrid:MiniGrid-Empty-5x5-v0", {}),
            ("minigrid:MiniGrid-Empty-5x5-v0", {"key": "pose"}),
            "'minigrid', not by 'pose'",
        ),
    ],
)
def test_known_of_another_environment_or_key_is_refused(
    first: Any, second: Any, word: str
) -> None:
    found = eo.explore(first[0], 10, **first[1])
    with pytest.raises(ValueError, match=word):
        eo.explore(second[0], 10, known=found, **second[1])


def test_a_promise_of_the_user_takes_the_place_of_the_learned_one() -> None:
    explorer = Explorer(CORRIDOR, promise=lambda obs, action: float(action == 1))
    take_steps(explorer, 10)
    assert explorer.found.numbers.action.tolist() == [1] * 10


@pytest.mark.parametrize("key", [None, "observation", "pose"])
def test_keys_of_minigrid(key: str | None, tmp_path: Path) -> None:
    name = "minigrid:MiniGrid-DoorKey-5x5-v0"
    found = eo.explore(name, 400, key=key)
    assert len(found.seen) > 40
    assert found.transitions.obs[0]["image"].shape == (7, 7, 3)
    found.save(tmp_path / "found")
    loaded = eo.load_found(tmp_path / "found")
    assert repr(loaded) == repr(found)
    assert loaded.states == found.states
    image = loaded.transitions.next_obs[-1]["image"]
    assert np.array_equal(image, found.transitions.next_obs[-1]["image"])
    assert eo.explore(name, 50, key=key, known=loaded).n_steps == 450


def test_a_pose_is_the_place_of_the_agent() -> None:
    env = gym.make("minigrid:MiniGrid-FourRooms-v0")
    tracker = PoseTracker()
    obs, _ = env.reset(seed=3)
    start = np.array(env.unwrapped.agent_pos)  # type: ignore[attr-defined]
    heading = env.unwrapped.agent_dir  # type: ignore[attr-defined]
    tracker.begin(env, obs)
    # As seen from the first heading, which is called right.
    turned = {0: (1, 0, 0, 1), 1: (0, 1, -1, 0), 2: (-1, 0, 0, -1), 3: (0, -1, 1, 0)}
    a, b, c, d = turned[heading]
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = int(rng.integers(3))
        obs, *_ = env.step(action)
        x, y, turn, *_ = tracker.follow(env, obs, action)  # type: ignore[misc]
        moved = np.array(env.unwrapped.agent_pos) - start  # type: ignore[attr-defined]
        assert x == a * moved[0] + b * moved[1]
        assert y == c * moved[0] + d * moved[1]
        assert turn == (env.unwrapped.agent_dir - heading) % 4  # type: ignore[attr-defined]


def test_files_ask_again_for_a_key_of_the_user(tmp_path: Path) -> None:
    found = eo.explore(FOUR_ROOMS, 100, key=halve)
    found.save(tmp_path / "found")
    with pytest.raises(ValueError, match="key"):
        eo.load_found(tmp_path / "found")
    loaded = eo.load_found(tmp_path / "found", key=halve)
    assert list_bytes(loaded) == list_bytes(found)
    assert eo.explore(FOUR_ROOMS, 50, key=halve, known=loaded).n_steps == 150

    eo.explore(FOUR_ROOMS, 10).save(tmp_path / "numbers")
    with pytest.raises(ValueError, match="leave out key"):
        eo.load_found(tmp_path / "numbers", key=halve)

    objects = eo.explore(FOUR_ROOMS, 10, key=lambda env, obs: frozenset([int(obs)]))
    with pytest.raises(ValueError, match="keys"):
        objects.save(tmp_path / "other")
    eo.discover(FOUR_ROOMS, 2).save(tmp_path / "options")
    with pytest.raises(ValueError, match="options"):
        eo.load_found(tmp_path / "options")


def test_the_way_to_the_reward_is_a_shortest_path() -> None:
    found = eo.explore(FOUR_ROOMS, 5000, until="known")
    option = found.option()
    state = int(found.mdp.start or 0)
    n_steps = 0
    while option.act(state) >= 0:
        state = int(FOUR_ROOMS.successors[state, option.act(state)])
        n_steps += 1
    assert state == FOUR_ROOMS.goal
    assert n_steps == found.distances[found.mdp.start] == 20
    with pytest.raises(ValueError, match="nothing was rewarded"):
        eo.explore(FOUR_ROOMS, 5).option()


@pytest.mark.parametrize("key", [None, "observation", "pose"])
def test_the_potential_shapes_the_reward(key: str | None) -> None:
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    found = eo.explore(env, 2000, until="reward", key=key)
    shaped = eo.ShapedReward(eo.envs.FixedSeed(env), found.potential(), gamma=1.0)
    shaped.reset()
    rewards = [shaped.step(action)[1] for action in (2, 2, 1, 2)]
    assert (np.array(rewards) >= 0).all()
    assert sum(rewards) == pytest.approx(0.4)


@pytest.mark.parametrize("copied", [deepcopy, lambda it: loads(dumps(it))])
def test_copies_of_a_potential_are_read_only_and_equal(copied: Any) -> None:
    potential = eo.explore(eo.maze("S..G"), 100, until="reward").potential()
    twin = copied(potential)
    assert not twin.values.flags.writeable
    assert [twin.evaluate(key) for key in (0, 3, 99)] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("key", [None, "observation", "pose"])
def test_options_of_what_was_found_run_in_the_environment(key: str | None) -> None:
    env = gym.make("minigrid:MiniGrid-FourRooms-v0")
    found = eo.explore(env, 600, key=key)
    options = eo.discover(found, 4)
    assert options.provenance["source"] == "explored"
    wrapped = eo.OptionsWrapper(eo.envs.FixedSeed(env), options, option_chance=0.5)
    wrapped.action_space.seed(0)
    wrapped.reset(seed=0)
    durations = []
    for _ in range(60):
        *_, terminated, truncated, info = wrapped.step(wrapped.action_space.sample())
        durations.append(info["duration"])
        if terminated or truncated:
            wrapped.reset()
    assert max(durations) > 3


def test_the_way_to_the_reward_is_an_action_of_the_wrapper() -> None:
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    for key in (None, "observation", "pose"):
        found = eo.explore(env, 2000, until="reward", key=key)
        wrapped = eo.OptionsWrapper(eo.envs.FixedSeed(env), found.option())
        wrapped.reset()
        _, _, terminated, _, info = wrapped.step(7)
        assert terminated
        assert info["duration"] == found.distances[found.mdp.start]

    # Numbered states, of which not all moves are known, and the option in a list.
    found = eo.explore(FOUR_ROOMS, 2000, until="reward")
    wrapped = eo.OptionsWrapper(MazeEnv(FOUR_ROOMS), [found.option()])
    wrapped.reset(seed=0)
    assert wrapped.step(4)[2]


def test_options_of_numbered_states_know_only_what_was_seen() -> None:
    found = eo.explore(FOUR_ROOMS, 150)
    options = eo.discover(found, 4)
    assert options.labels == ("e2+", "e2-", "e3+", "e3-")
    assert options.n_states == 104
    assert not options.initiation[:, found.first_visit < 0].any()
    wrapped = eo.OptionsWrapper(MazeEnv(FOUR_ROOMS), options, option_chance=0.5)
    wrapped.action_space.seed(0)
    wrapped.reset(seed=0)
    for _ in range(200):
        _, _, terminated, _, _ = wrapped.step(wrapped.action_space.sample())
        if terminated:
            wrapped.reset()


def test_records_are_read_only_and_can_be_copied() -> None:
    found = eo.explore(FOUR_ROOMS, 50)
    for array in (found.first_visit, found.untried, found.seen, found.numbers.obs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert "50 steps" in repr(found)


@pytest.fixture(autouse=True)
def hear_warnings(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, logger="eigenoptions")


def run_samples(env: gym.Env[Any, Any], n_steps: int) -> None:
    """Take sampled actions, as an agent does that is all exploration."""
    env.reset(seed=0)
    for _ in range(n_steps):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


def test_samples_of_exploring_go_to_the_unknown() -> None:
    env = eo.Exploring(MazeEnv(FOUR_ROOMS))
    assert env.action_space == Discrete(4)
    assert env.observation_space == Discrete(104)
    run_samples(env, 400)
    walk = eo.explore(FOUR_ROOMS, 400)
    assert len(env.found.seen) == pytest.approx(len(walk.seen), abs=8)
    assert env.found.n_steps == 400


def test_exploring_learns_from_every_action_and_passes_the_check() -> None:
    from gymnasium.utils.env_checker import check_env

    env = eo.Exploring(MazeEnv(FOUR_ROOMS))
    with pytest.warns(UserWarning, match="unwrapped"):
        check_env(env, skip_render_check=True)
    env = eo.Exploring(MazeEnv(CORRIDOR))
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.int64(1))
    assert env.found.seen.tolist() == [0, 1, 2, 3, 4, 5]


def test_exploring_inside_options_and_not_outside() -> None:
    options = eo.discover(FOUR_ROOMS, 4)
    env = eo.OptionsWrapper(eo.Exploring(MazeEnv(FOUR_ROOMS)), options, option_chance=0)
    run_samples(env, 400)
    alone = eo.Exploring(MazeEnv(FOUR_ROOMS))
    run_samples(alone, 400)
    found = env.get_wrapper_attr("found")
    assert len(found.seen) == pytest.approx(len(alone.found.seen), abs=8)
    with pytest.raises(ValueError, match=r"OptionsWrapper\(Exploring"):
        eo.Exploring(eo.OptionsWrapper(MazeEnv(FOUR_ROOMS), options))
    # Also where another wrapper stands between them.
    with_options = eo.OptionsWrapper(MazeEnv(FOUR_ROOMS), options)
    between = gym.wrappers.TimeLimit(with_options, 9)
    with pytest.raises(ValueError, match=r"OptionsWrapper\(Exploring"):
        eo.Exploring(between)


def test_a_vector_explores_inside_options_and_not_outside() -> None:
    options = eo.discover(FOUR_ROOMS, 4)
    envs = gym.make_vec("eigenoptions/FourRooms-v0", num_envs=4)
    vector = eo.OptionsVectorWrapper(
        eo.ExploringVector(envs), options, option_chance=0.0
    )
    vector.reset(seed=0)
    for _ in range(100):
        vector.step(vector.action_space.sample())
    inner = vector.env
    assert isinstance(inner, eo.ExploringVector)
    assert len(inner.found.seen) > 90
    with pytest.raises(ValueError, match=r"OptionsVectorWrapper\(ExploringVector"):
        eo.ExploringVector(eo.OptionsVectorWrapper(envs, options, option_chance=0.1))


def test_exploring_warns_of_agents_that_never_sample(caplog: Any) -> None:
    env = eo.Exploring(MazeEnv(FOUR_ROOMS))
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(1100):
        if env.step(int(rng.integers(4)))[2]:
            env.reset()
    assert sum("explore first" in record.message for record in caplog.records) == 1


def test_exploring_refuses_vectors_and_other_layouts() -> None:
    with pytest.raises(ValueError, match="ExploringVector"):
        gym.vector.SyncVectorEnv([lambda: eo.Exploring(MazeEnv("i-maze"))] * 2)
    env = eo.Exploring(gym.make("minigrid:MiniGrid-FourRooms-v0"))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="FixedSeed"):
        env.reset(seed=1)
    envs = gym.vector.SyncVectorEnv([lambda: MazeEnv("i-maze")] * 2)
    for new, action in (
        (eo.Exploring(MazeEnv("i-maze")), 0),
        (eo.ExploringVector(envs), np.zeros(2, dtype=int)),
    ):
        with pytest.raises(gym.error.ResetNeeded):
            _ = new.found
        with pytest.raises(gym.error.ResetNeeded):
            new.step(action)
        # A sample is drawn all the same.
        assert np.all(new.action_space.sample() < 4)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_vector_shares_one_table(mode: str) -> None:
    envs = gym.make_vec(
        "eigenoptions/FourRooms-v0",
        num_envs=4,
        max_episode_steps=50,
        vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode(mode)},
    )
    vector = eo.ExploringVector(envs)
    vector.reset(seed=0)
    for _ in range(200):
        vector.step(vector.action_space.sample())
    found = vector.found
    assert len(found.seen) >= 100
    batch = found.numbers
    assert np.array_equal(
        FOUR_ROOMS.successors[batch.obs, batch.action], batch.next_obs
    )
    assert batch.truncated is not None
    assert batch.truncated.any()


def make_door_key() -> gym.Env[Any, Any]:
    """One layout, and views without the mission, which processes cannot share."""
    from minigrid.wrappers import ImgObsWrapper

    env = eo.envs.FixedSeed(gym.make("minigrid:MiniGrid-DoorKey-5x5-v0"))
    view: gym.Env[Any, Any] = ImgObsWrapper(env)
    return view


def test_a_vector_follows_the_pose_of_each_environment() -> None:
    envs = gym.vector.SyncVectorEnv([make_door_key] * 2)
    vector = eo.ExploringVector(envs, key="pose")
    vector.reset(seed=0)
    for _ in range(150):
        vector.step(vector.action_space.sample())
    alone = eo.explore(make_door_key(), 300, key="pose")
    assert len(vector.found.seen) == pytest.approx(len(alone.seen), rel=0.3)
    # Every pose that the vector recognised is one of this environment.
    complete = eo.explore(make_door_key(), 4000, key="pose", until="known")
    assert set(vector.found.states) <= set(complete.states)


def test_environments_in_other_processes_are_explored_by_what_they_show() -> None:
    envs = gym.vector.AsyncVectorEnv([make_door_key] * 2)
    try:
        for key in (None, lambda env, obs: 0):
            with pytest.raises(ValueError, match="SyncVectorEnv"):
                eo.ExploringVector(envs, key=key)
        founds = []
        for key in ("pose", "observation"):
            vector = eo.ExploringVector(envs, key=key)
            vector.reset(seed=0)
            for _ in range(60):
                vector.step(vector.action_space.sample())
            founds.append(vector.found)
    finally:
        envs.close()
    for found in founds:
        assert found.about.is_partial_view
        assert len(found.seen) > 20


def test_numbered_states_are_explored_in_other_processes() -> None:
    envs = gym.make_vec(
        "Taxi-v4", num_envs=2, vectorization_mode=gym.VectorizeMode.ASYNC
    )
    try:
        vector = eo.ExploringVector(envs)
        vector.reset(seed=0)
        for _ in range(60):
            vector.step(vector.action_space.sample())
        assert len(vector.found.seen) > 30
    finally:
        envs.close()


def test_a_vector_that_changes_its_layout_is_refused() -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.make("minigrid:MiniGrid-FourRooms-v0", max_episode_steps=5)

    vector = eo.ExploringVector(gym.vector.SyncVectorEnv([make]))
    vector.reset(seed=0)
    for _ in range(5):
        vector.step(np.zeros(1, dtype=np.int64))
    # The next step is a reset, to another layout.
    with pytest.raises(ValueError, match="FixedSeed"):
        vector.step(np.zeros(1, dtype=np.int64))


def test_dqn_explores_without_knowing_of_it() -> None:
    sb3 = pytest.importorskip("stable_baselines3")

    env = eo.Exploring(gym.wrappers.TimeLimit(MazeEnv(FOUR_ROOMS), 200))
    agent = sb3.DQN("MlpPolicy", env, learning_starts=300, buffer_size=1000, seed=0)
    agent.learn(500)
    assert env.found.n_steps == 500
    assert len(env.found.seen) > 70

    several = [lambda: eo.Exploring(MazeEnv(FOUR_ROOMS)) for _ in range(3)]
    vector = sb3.common.vec_env.DummyVecEnv(several)
    agent = sb3.DQN("MlpPolicy", vector, learning_starts=500, buffer_size=1000)
    with pytest.raises(ValueError, match="ExploringVector"):
        agent.learn(500)
    assert vector.envs[0].found.n_steps == 5
