"""The arena: domains, measures of methods, training runs, and the pages.

The measures agree with those of the library.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.mdp import reachable
from studies import arena
from studies.arena import ablation, methods, outside, rounds
from studies.arena.domains import DOMAINS, make_domain
from studies.arena.fresh_tasks import FRESH_SEEDS, FRESH_TASKS
from studies.arena.learner import (
    Way,
    choose_greedy,
    follow_greedy,
    learn,
    make_agent,
    make_dynamics,
)
from studies.arena.page import find_differences
from studies.arena.tabular import WAYS
from studies.arena.tabular_runs import (
    discover_known,
    find_way,
    run_explorer,
    run_learner,
)
from studies.arena.tasks import describe_table, draw_goals, make_table_env, make_task

LEARNING = {"goals": 3, "runs": 2, "episodes": 10}


@pytest.mark.parametrize("name", DOMAINS)
def test_domain_states_reach_each_other(name: str) -> None:
    mdp = make_domain(name)
    assert mdp.goal is None
    assert reachable(mdp.transition, [mdp.start]).all()
    assert reachable(mdp.transition, [mdp.start], backward=True).all()
    assert set(np.unique(mdp.reward)) == ({-20.0, -1.0} if name == "costly" else {-1.0})


def test_measure_agrees_with_the_library() -> None:
    mdp = make_domain("i-maze")
    options = eo.discover(make_domain("i-maze"), 4)
    (none,), (_, row) = (
        methods.measure("i-maze", m, 0, [2, 4], LEARNING) for m in ("none", "eigen")
    )
    assert row["n"] == 4
    assert_allclose(row["uniform"], eo.diffusion_time(mdp, options), rtol=1e-9)
    assert row["best"] <= min(row["uniform"], none["best"])
    assert_allclose(
        eo.diffusion_time(mdp, options, option_chance=row["chance"]),
        row["best"],
        rtol=1e-9,
    )


def test_measure_takes_what_a_method_has() -> None:
    assert [
        row["n"]
        for row in methods.measure("i-maze", "bottleneck", 0, [2, 64], LEARNING)
    ] == [2]
    assert methods.measure("open-room", "bottleneck", 0, [2], LEARNING) == []
    assert methods.measure("i-maze", "eigen", 1, [2], LEARNING) == []  # draws nothing
    assert methods.measure("i-maze", "random", 1, [2], LEARNING)


def test_cost_of_reward_aware_options_is_lower() -> None:
    mdp = make_domain("costly")
    cost = {
        name: methods.measure_cost(mdp, eo.discover(mdp, 8, name))
        for name in ("eigen", "reward-aware")
    }
    assert 1.0 <= cost["reward-aware"] < cost["eigen"]


@pytest.mark.parametrize("name", ["none", "covering", "random", "reward-aware"])
def test_explore_online_sees_every_state(name: str) -> None:
    results = [methods.explore_online("i-maze", name, [0, 1], 4, 200) for _ in range(2)]
    assert results[0] == results[1]
    assert all(19 <= row["online"] < inf for row in results[0])


def test_rank_counts_missing_options_as_the_baseline() -> None:
    columns = ["method", "domain", "best"]
    values = [
        ("none", "x", 10.0),
        ("none", "y", 20.0),
        ("a", "x", 5.0),
        ("b", "x", 20.0),
        ("b", "y", 40.0),
    ]
    rows = pd.DataFrame(values, columns=columns).assign(n=8, seed=0)
    order = methods.rank(rows, next(iter(methods.MEASURES.values())))
    assert order.to_dict() == {"a": 1.25, "none": 1.75, "b": 3.0}
    assert list(order.index) == ["a", "none", "b"]


@pytest.mark.parametrize("name", ["Taxi", "CliffWalking", "two-keys", "rooms-5x5"])
def test_tasks_have_goals_that_the_start_leads_to(name: str) -> None:
    task = make_task(name)
    options = discover_known(name)
    goals = draw_goals(task, options, 20, rng=1)
    assert len(set(goals.tolist())) == 20
    assert np.isfinite(task.distance[goals]).all()
    assert (task.distance[goals] > 0).all()
    assert not task.ends[goals].any()
    assert np.isfinite(task.distance[task.native]).all()
    if name == "rooms-5x5":
        near = eo.graph(task.mdp)[goals] != 0
        assert (options.policy[:, goals] >= 0).all()
        assert not (near @ (options.policy < 0).any(axis=0).astype(int)).any()


def test_two_keys_are_needed() -> None:
    task = make_task("two-keys")
    assert task.native.sum() == 1
    walk = eo.maze("\n".join(["." * 23] * 7))
    assert task.distance[task.native][0] > eo.mdp.distance(walk, 0, walk.n_states - 1)


def test_greedy_choice_prefers_actions() -> None:
    rng = np.random.default_rng(0)
    both = np.array([True, True])
    none = np.array([False, False])
    assert {choose_greedy(np.zeros(4), both, rng) for _ in range(50)} == {0, 1}
    assert choose_greedy(np.zeros(4), both, None) == 0
    assert {
        choose_greedy(np.array([0.0, 0.0, 1.0, 1.0]), both, rng) for _ in range(50)
    } == {2, 3}
    assert choose_greedy(np.array([0.0, 0.5, 1.0, 1.0]), none, rng) == 1


@pytest.mark.parametrize("way", [Way(), Way(0.3, 0.1), Way(zeta=2.0), Way(bonus=0.001)])
def test_tables_learn_the_shortest_path(way: Way) -> None:
    """Values of a corridor are powers of gamma, and greedy is the shortest path."""
    task = describe_table(eo.maze("S....."))
    policy = np.ascontiguousarray(eo.discover(task.mdp, 2).policy.T, dtype=np.int64)
    policy = policy if way.option_chance else policy[:, :0]
    dynamics = make_dynamics(task)
    goal = np.arange(6) == 5
    agent = make_agent(task, way, policy.shape[1])
    rng = np.random.default_rng(1)
    learn(dynamics, goal, policy, way, agent, (0, 20_000), 20_000, rng)
    assert follow_greedy(dynamics, goal, policy, agent.q, rng) == 5
    if not way.bonus:
        values = agent.q[:5].max(axis=1)
        assert_allclose(values, way.gamma ** np.arange(4.0, -1.0, -1.0), rtol=1e-6)
    assert agent.first_visit[0] == 0
    assert (agent.first_visit[1:] > agent.first_visit[:-1]).all()


def test_learner_draws_outcomes_by_their_probabilities() -> None:
    table = np.zeros((2, 1, 2))
    table[0, 0] = [0.25, 0.75]
    table[1, 0] = [1.0, 0.0]
    task = describe_table(eo.MDP(table, start=0))
    way = Way()
    agent = make_agent(task, way)
    no_goal = np.zeros(2, dtype=np.bool_)
    no_options = np.empty((2, 0), dtype=np.int64)
    rng = np.random.default_rng(0)
    learn(
        make_dynamics(task), no_goal, no_options, way, agent, (0, 20_000), 20_000, rng
    )
    # The stationary distribution of the chain is 4/7 and 3/7.
    assert_allclose(agent.visits / 20_000, [4 / 7, 3 / 7], atol=0.015)


def test_rmax_tries_every_action_of_a_corridor_once() -> None:
    task = describe_table(eo.maze("S....."))
    way = Way(tries=1, first_epsilon=0.0, last_epsilon=0.0)
    agent = make_agent(task, way)
    no_goal = np.zeros(6, dtype=np.bool_)
    no_options = np.empty((6, 0), dtype=np.int64)
    rng = np.random.default_rng(0)
    learn(make_dynamics(task), no_goal, no_options, way, agent, (0, 100), 100, rng)
    assert (agent.tries > 0).all()


def test_first_goals_are_those_of_the_run_without_a_reward() -> None:
    """All states but the start and the end are goals, so their mean is known."""
    (row,) = run_learner("CliffWalking", "plain", 3, 36, {})
    assert run_learner("CliffWalking", "plain", 3, 36, {}) == [row]
    # Of the 38 states one is the start, and one ends an episode.
    least = 36 * row["first_goal"] / 38
    assert least <= row["mean_goal"] <= least + 3800 / 38


def test_followed_way_is_that_of_explore_until_the_reward() -> None:
    """Before a goal is seen, nothing depends on where it is."""
    task = make_task("rooms-5x5")
    goal = 300
    is_goal = np.arange(task.mdp.n_states) == goal
    until = eo.explore(
        make_table_env(task, is_goal), 10_000, until="reward", seed=1, rng=1
    )
    free = eo.explore(make_table_env(task), until.n_steps, seed=1, rng=1)
    assert until.rewarded.tolist() == [goal]
    # The table without a goal goes on behind it, where no way leads through.
    expected = np.where(is_goal, -1, until.option().policy)
    assert np.array_equal(find_way(free, goal).policy, expected)


def test_explorer_sees_all_states_and_its_way_reaches_every_goal() -> None:
    explored, followed, learned = run_explorer("CliffWalking", 0, 5, {})
    assert explored["seen 1"] == 1.0
    assert followed["learned"] == 1.0
    assert 0.0 <= learned["learned"] <= 1.0


@pytest.mark.parametrize("name", FRESH_TASKS)
def test_fresh_tasks_are_what_was_committed(name: str) -> None:
    n_states = {
        "rooms": 397,
        "perfect maze": 389,
        "one-way rooms": 449,
        "locked rooms": 363,
        "other MultiRoom": 904,
        "LavaCrossing": 183,
        "slippery rooms": 440,
        "slippery maze": 263,
        "FrozenLake": 169,
        "rainy Taxi": 101,
    }
    task = make_task(name)
    assert len(task.states) == n_states[name]
    is_random = name in ("slippery rooms", "slippery maze", "FrozenLake", "rainy Taxi")
    assert (task.mdp.successors is None) == is_random
    assert list(FRESH_SEEDS) == list(range(38_000, 38_010))


@pytest.mark.parametrize("kind", ablation.KINDS)
def test_planner_sees_all_states_with_every_kind_of_options(kind: str) -> None:
    steps = ablation.explore_with("two-keys", "planner", kind, 0)
    assert 221 < steps < 1500


@pytest.mark.parametrize("way", rounds.WAYS)
def test_rounds_see_all_states(way: str) -> None:
    steps = rounds.measure_rounds("CliffWalking", way, 0)
    assert 19 < steps < 1900
    assert rounds.measure_rounds("CliffWalking", way, 0) == steps


def test_page_has_the_tables_that_are_stored() -> None:
    assert find_differences() == []


def test_main_writes_a_page_and_continues(tmp_path: Path, capsys: Any) -> None:
    command = ["methods", "--quick", "--only", "eigen,random", "--domains", "i-maze"]
    command += ["--out", str(tmp_path / "arena")]
    with eo.parallel.using("serial"):
        arena.main(command)
        printed = capsys.readouterr().out
        arena.main(command)
    assert capsys.readouterr().out == printed
    html = (tmp_path / "arena" / "index.html").read_text(encoding="utf-8")
    for table in (tmp_path / "arena" / "data").iterdir():
        assert table.name in html
    with pytest.raises(ValueError, match="one of"):
        arena.main([*command[:3], "SARSA", *command[4:]])


@pytest.mark.slow
def test_tabular_command_stores_its_tables_and_continues(
    tmp_path: Path, capsys: Any
) -> None:
    folder = tmp_path / "arena"
    command = ["tabular", "--quick", "--tasks", "CliffWalking", "--out", str(folder)]
    arena.main(command)
    runs = pd.read_csv(folder / "tabular.csv")
    assert set(runs.way) == set(WAYS)
    assert (runs.groupby("way").seed.nunique() == 2).all()
    before = (folder / "tabular.csv").read_bytes()
    arena.main(command)
    assert (folder / "tabular.csv").read_bytes() == before
    assert "stored" in capsys.readouterr().out
    with pytest.raises(ValueError, match="one of"):
        arena.main(["tabular", "--tasks", "nowhere"])


@pytest.mark.parametrize("way", [way for way in outside.WAYS if "pose" not in way])
def test_every_way_looks_for_the_reward_outside_of_the_arena(way: str) -> None:
    row = outside.find_reward("ring of one-way doors", way, 0)
    assert 0 < row["first_reward"] <= row["budget"]
    assert row == outside.find_reward("ring of one-way doors", way, 0)
    table = outside.tabulate(pd.DataFrame([row]))
    assert f"{row['first_reward']:,} (1)" in table


def test_decoy_room_opens_from_one_cell() -> None:
    mdp = outside.make_decoy(np.random.default_rng(0), 4)
    opens = mdp.successors[:-1, 4] != np.arange(16)
    assert opens.sum() == 1
    assert mdp.successors[opens.argmax(), 4] == mdp.goal
