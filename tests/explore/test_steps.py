"""Rewards and ends belong to steps: environments in which a state cannot carry them.

The reward that an option or a cloned agent earns is compared with what is possible.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs import FixedSeed
from eigenoptions.evaluation.behaviour import prepare_behaviour
from eigenoptions.explore.found import make_reward_mdp
from eigenoptions.samples.walking import walk
from tests.corridors import (
    ACT,
    CERTAIN,
    KINDS,
    LEFT,
    RIGHT,
    Corridor,
    Deadly,
    Door,
    Drop,
    Leave,
    Risky,
    Submit,
    Teleport,
    follow,
)

KIND = pytest.mark.parametrize("kind", CERTAIN)


def explore(kind: type[Corridor], steps: int = 600) -> Any:
    return eo.explore(kind(), steps, until="known")


@KIND
def test_the_option_of_what_was_rewarded_earns_the_reward(kind: type[Corridor]):
    found = explore(kind)
    option = found.option()
    assert len(option.policy) == found.mdp.n_states
    assert follow(kind(), option.policy) == 1.0


@KIND
def test_distances_count_the_rewarded_step(kind: type[Corridor]):
    found = explore(kind)
    # By a walk on all steps that were taken: how soon one is rewarded.
    numbers = found.numbers
    distances = np.full(found.mdp.n_states, np.inf)
    for _ in range(found.mdp.n_states):
        for step in range(len(numbers)):
            after = np.inf
            if not numbers.terminated[step]:
                after = distances[numbers.next_obs[step]]
            if numbers.reward[step] > 0:
                after = 0.0
            before = numbers.obs[step]
            distances[before] = min(distances[before], 1.0 + after)
    is_left = np.isin(np.arange(found.mdp.n_states), numbers.obs)
    np.testing.assert_array_equal(found.distances[is_left], distances[is_left])

    potential = found.potential().values
    assert len(potential) == found.mdp.n_states
    assert potential.min() >= 0.0
    assert potential.max() <= 1.0


@KIND
def test_the_table_follows_every_step(kind: type[Corridor]):
    found = explore(kind)
    mdp = found.mdp
    numbers = found.numbers
    assert mdp.n_listed == len(found.states) == found.about.numbers[1]
    goes_on = set(numbers.obs.tolist()) | set(
        numbers.next_obs[~numbers.terminated].tolist()
    )
    for state, action, next_state, is_over in zip(
        numbers.obs.tolist(),
        numbers.action.tolist(),
        numbers.next_obs.tolist(),
        numbers.terminated.tolist(),
        strict=True,
    ):
        expected = next_state
        if is_over and next_state in goes_on:
            expected = mdp.n_listed
        assert mdp.successors[state, action] == expected
    # The same by other ways: from a log, and by a search.
    log = eo.MDP.from_transitions(numbers, mdp.n_listed, mdp.n_actions)
    assert log.n_additional == mdp.n_additional
    assert (log.transition != mdp.transition).nnz == 0
    searched = eo.from_env(kind())
    seen = found.seen
    np.testing.assert_array_equal(searched.successors[seen], mdp.successors[seen])


def test_rewarded_steps_and_the_states_that_they_enter():
    found = explore(Submit)
    assert found.rewarded_steps.tolist() == [[3, ACT, 3]]
    assert found.rewarded.tolist() == [3]
    found = explore(Leave)
    assert found.rewarded_steps.tolist() == [[2, LEFT, 1], [2, RIGHT, 3]]
    assert found.rewarded.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("kind", "goal"),
    [(Submit, None), (Drop, None), (Teleport, None), (Deadly, 5), (Door, None)],
)
def test_a_goal_is_a_state_that_only_rewarded_steps_enter(kind, goal):
    assert explore(kind).mdp.goal == goal


def test_the_state_of_rewarded_steps_is_not_in_the_table():
    found = explore(Submit)
    aim = make_reward_mdp(found)
    assert aim.n_listed == found.mdp.n_listed + 1
    assert aim.successors[3, ACT] == found.mdp.n_listed
    assert found.mdp.successors[3, ACT] == found.mdp.n_listed
    assert found.mdp.n_additional == aim.n_additional == 1


def test_random_ends_lead_to_the_end_as_often_as_they_ended():
    found = eo.explore(Risky(), 3_000, seed=1, rng=1)
    numbers = found.numbers
    mdp = found.mdp
    assert mdp.n_additional == 1
    for state in range(4):
        is_step = (numbers.obs == state) & (numbers.action == RIGHT)
        share = numbers.terminated[is_step].mean()
        assert mdp.end_chances[state, RIGHT] == pytest.approx(share)
    option = found.option()
    assert (option.policy[:5] == RIGHT).all()
    earned = np.mean([follow(Risky(), option.policy, seed) for seed in range(400)])
    # The best that one can do; an end in the last step counts, too.
    assert abs(earned - 0.95**4) < 0.06


def test_ends_make_no_neighbours():
    found = explore(Submit)
    W = eo.graph(found.mdp)
    assert W.shape == (7, 7)
    assert W[[6]].nnz == W[:, [6]].nnz == 0
    corridor = eo.graph(eo.maze("S....."))
    assert (W[:6, :6] != corridor).nnz == 0
    for weights in ("transition", "incidence"):
        assert eo.graph(found.mdp, weights)[[6]].nnz == 0


def test_options_of_the_known_part_do_not_use_ends():
    found = explore(Deadly)
    options = eo.discover(found, n_options=4)
    assert options.mdp is found.mdp
    assert options.labels[0] == "e2+"
    assert not (options.policy == ACT).any()
    # The potential of an additional state has no say.
    high = np.zeros(found.mdp.n_states)
    high[-1] = 1.0
    option = eo.solve(found.mdp, eo.Purpose(high, "to the end"))[0]
    assert (option.policy == -1).all()


def test_an_action_that_only_ends_episodes_changes_no_option():
    rooms = eo.maze("four-rooms")
    n = rooms.n_states
    submit = np.full((n, 1), n)
    steps = np.concatenate([rooms.successors, submit], axis=1)
    steps = np.concatenate([steps, np.full((1, 5), n)])
    mdp = eo.MDP.from_successors(steps, n_additional=1, coords=rooms.coords)
    expected = eo.discover(rooms, 8)
    options = eo.discover(mdp, 8)
    assert options.labels == expected.labels
    np.testing.assert_array_equal(options.policy[:, :n], expected.policy)
    np.testing.assert_array_equal(options.value[:, :n], expected.value)
    # The additional state is a cell below the map.
    assert len(str(mdp).splitlines()) == len(str(rooms).splitlines()) + 2


@pytest.mark.parametrize("method", sorted(eo.methods()))
def test_every_method_takes_a_table_with_additional_states(method: str):
    found = eo.explore(Risky(), 3_000, seed=1, rng=1)
    settings: dict[str, Any] = {}
    if method == "reward-aware":
        settings["rewards"] = -np.ones(found.mdp.n_listed)
    n_options = 1 if method in ("betweenness", "bottleneck", "community") else 2
    try:
        options = eo.discover(found.mdp, n_options, method=method, **settings)
    except ValueError as error:
        # Some methods need dynamics that are certain.
        assert "deterministic" in str(error) or "n_options" in str(error)  # noqa: PT017
        return
    assert (options.policy[:, -1] == -1).all()


def test_a_random_end_is_worth_as_much_as_to_terminate():
    """By value iteration, with a reward of 0 for the step that ends the episode."""
    rng = np.random.default_rng(0)
    n, n_actions, gamma = 6, 3, 0.9
    table = rng.dirichlet(np.ones(n + 1), size=(n, n_actions))
    last = np.zeros((1, n_actions, n + 1))
    last[..., n] = 1.0
    mdp = eo.MDP(np.concatenate([table, last]), n_additional=1)
    f = rng.normal(size=n)
    value = np.zeros(n)
    for _ in range(2_000):
        gain = f[None, None] - f[:, None, None] + gamma * value[None, None]
        q = (table[..., :n] * gain).sum(axis=2)
        value = np.maximum(q.max(axis=1), 0.0)
    expected = np.where(value > 0, q.argmax(axis=1), -1)
    option = eo.solve(mdp, eo.Purpose(np.append(f, 7.0), "f"), gamma)[0]
    np.testing.assert_allclose(option.value[:n], value, atol=1e-9)
    np.testing.assert_array_equal(option.policy[:n], expected)
    assert option.policy[n] == -1


def test_additional_states_are_no_starts_and_no_goals_of_walks():
    mdp = eo.from_env(Deadly())
    times = eo.hitting_times(mdp)
    assert np.isnan(times[6]).all()
    assert np.isnan(times[:, 6]).all()
    n = 6
    mean = times[:n, :n].sum() / (n * (n - 1))
    assert eo.diffusion_time(mdp) == pytest.approx(mean)
    # By elimination: from the end one goes on at the start.
    P = np.zeros((n + 1, n + 1))
    for state in range(n):
        for action in range(3):
            P[state, mdp.successors[state, action]] += 1 / 3
    P[5] = 0.0
    P[5, 0] = P[6, 0] = 1.0
    for goal in range(n):
        others = np.delete(np.arange(n + 1), goal)
        system = np.eye(n) - P[np.ix_(others, others)]
        expected = np.linalg.solve(system, np.ones(n))
        np.testing.assert_allclose(times[others[:-1], goal], expected[:-1])
    assert prepare_behaviour(mdp, None, None, 0.0).n_goals == n


def test_a_table_without_additional_states_keeps_its_fingerprint(tmp_path):
    plain = eo.maze("S.G")
    assert plain.fingerprint == eo.MDP(plain.transition, n_additional=0).fingerprint
    found = explore(Deadly)
    other = eo.MDP(found.mdp.transition, states=None)
    assert eo.MDP(found.mdp.transition, n_additional=1).fingerprint != (
        other.fingerprint
    )
    options = eo.discover(found, n_options=2)
    options.save(tmp_path / "options.safetensors")
    loaded = eo.load_options(tmp_path / "options.safetensors")
    assert loaded.mdp.n_additional == 1
    assert loaded.mdp.fingerprint == options.mdp.fingerprint
    found.save(tmp_path / "found.safetensors")
    again = eo.load_found(tmp_path / "found.safetensors")
    assert again.mdp.fingerprint == found.mdp.fingerprint
    assert again.option().policy.tolist() == found.option().policy.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_wrappers_run_options_of_tables_with_additional_states(kind):
    found = eo.explore(kind(), 600)
    env = eo.OptionsWrapper(kind(), eo.discover(found, 4), max_duration=100)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(100):
        *_, is_over, is_cut, _ = env.step(env.action_space.sample())
        if is_over or is_cut:
            env.reset()


def test_the_dynamics_of_an_environment_with_ends_of_steps_are_its_own():
    mdp = eo.from_env(Deadly())
    eo.discover(mdp, 2).check(Deadly())
    maze = eo.envs.MazeEnv(mdp)
    maze.reset(seed=0)
    assert maze.step(ACT)[2]


def test_the_absorbing_states_of_a_table_are_checked():
    with pytest.raises(ValueError, match="absorbing"):
        eo.MDP.from_successors([[1], [0]], n_additional=1)
    with pytest.raises(ValueError, match="n_additional"):
        eo.MDP.from_successors([[1], [0]], n_additional=2)
    with pytest.raises(ValueError, match="goal"):
        eo.MDP.from_successors([[1], [1]], n_additional=1, goal=1)


def test_a_planner_does_not_go_through_an_end():
    found = explore(Deadly)
    planner = eo.Planner(found.transitions)
    assert planner.plan(0, 5).tolist() == [0, 1, 2, 3, 4, 5]
    assert planner.potential(5)[6] == -np.inf
    for potential in ("log-z", "shortest"):
        greedy = eo.Planner(found.transitions, potential=potential, greedy=True)
        assert greedy.plan(0, 5).tolist() == [0, 1, 2, 3, 4, 5]


def make_vectors(n: int, is_continuous: bool) -> dict[str, Any]:
    """A walk in a square, where steps over the bar x = 5, y < 7 end the episode."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 10, (n, 2))
    if is_continuous:
        action: Any = rng.uniform(-1, 1, (n, 2))
        change = action
    else:
        action = rng.integers(4, size=n)
        change = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[action]
    next_obs = np.clip(obs + change, 0, 10)
    crosses = (obs[:, 0] < 5) != (next_obs[:, 0] < 5)
    is_over = crosses & (obs[:, 1] < 7)
    return {
        "obs": obs,
        "action": action,
        "next_obs": next_obs,
        "terminated": is_over,
        "truncated": ~is_over,
    }


@pytest.mark.parametrize("is_continuous", [False, True])
def test_plans_of_vectors_go_round_what_ends_episodes(is_continuous):
    log = make_vectors(20_000, is_continuous)
    planner = eo.Planner(log, 1.0)
    assert planner.mdp.n_additional == 1
    way = planner.plan([1.5, 1.5], [8.5, 1.5])
    assert way[:, 1].max() > 6.5
    assert len(planner.options(3)) == 3
    log["terminated"] = np.zeros(20_000, dtype=bool)
    log["truncated"] = np.ones(20_000, dtype=bool)
    straight = eo.Planner(log, 1.0)
    assert straight.mdp.n_additional == 0
    assert straight.plan([1.5, 1.5], [8.5, 1.5])[:, 1].max() < 3.5


def test_options_of_cells_take_ends_into_account():
    log = make_vectors(20_000, is_continuous=False)
    options = eo.discover(log, 4, cell_size=1.0)
    # Just left of the bar, no option steps over it.
    for y in (1.5, 3.5, 5.5):
        for option in options:
            assert option.act(np.array([4.6, y])) != 1


@pytest.mark.parametrize("layout", range(3))
@pytest.mark.parametrize("name", ["GoToDoor-5x5", "GoToObject-6x6-N2"])
def test_the_option_says_done_where_minigrid_pays_for_it(name: str, layout: int):
    pytest.importorskip("minigrid")
    name = f"minigrid:MiniGrid-{name}-v0"
    found = eo.explore(name, 4_000, until="reward", seed=layout)
    env = eo.OptionsWrapper(
        FixedSeed(gym.make(name), layout),
        found.option(),
        option_chance=0.1,
    )
    env.reset()
    reward, is_over = env.step(env.action_space.n - 1)[1:3]
    assert reward > 0
    assert is_over


def test_walks_do_not_begin_at_an_end():
    mdp = eo.MDP.from_successors([[1, 2], [0, 1], [2, 2]], n_additional=1)
    log = walk(mdp, 200, max_episode_steps=1, rng=0)
    assert set(log.obs.tolist()) == {0, 1}
    env = eo.envs.MazeEnv(mdp)
    assert {env.reset(seed=seed)[0] for seed in range(20)} == {0, 1}
