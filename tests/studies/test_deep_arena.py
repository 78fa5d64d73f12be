"""The deep part of the arena: tasks, budget, bonus, exam, ways and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from studies import arena
from studies.arena import deep, deep_page
from studies.arena.deep_budget import Budget, BudgetSpentError, CountBonus, take_exam
from studies.arena.deep_tasks import (
    DEVELOPMENT_SEEDS,
    DEVELOPMENT_TASKS,
    TEST_SEEDS,
    TEST_TASKS,
    make_keys,
    make_rooms,
)
from studies.arena.deep_ways import SB3_PPO, TORCH_DQN, WAYS
from studies.arena.own_search import OwnSearch


def test_tasks_of_the_results_are_not_those_of_development() -> None:
    assert list(TEST_SEEDS) == list(range(5000, 5020))
    assert not set(TEST_SEEDS) & set(DEVELOPMENT_SEEDS)
    assert not set(TEST_TASKS) & set(DEVELOPMENT_TASKS)


@pytest.mark.parametrize("name", [*TEST_TASKS, *DEVELOPMENT_TASKS])
def test_a_seed_draws_the_same_task_again(name: str) -> None:
    pytest.importorskip("minigrid")
    task = (TEST_TASKS | DEVELOPMENT_TASKS)[name]
    first, _ = task.make(7).reset(seed=1)
    again, _ = task.make(7).reset(seed=2)
    assert np.array_equal(first, again)


def test_last_room_needs_all_keys() -> None:
    mdp = make_keys(3, n_rooms=3, size=3)
    closed = eo.explore(mdp, 5000, until="known")
    assert closed.rewarded.tolist() == [mdp.goal]
    # Two keys and the way to the goal.
    assert closed.distances[mdp.start] > 8


def test_slippery_rooms_have_a_far_goal() -> None:
    mdp = make_rooms(5, rows=2, cols=2, size=3, slip=0.2)
    assert_allclose(mdp.transition.sum(axis=1), 1.0)
    assert mdp.successors is None
    assert mdp.start != mdp.goal


def test_budget_counts_primitive_steps_and_the_first_goal() -> None:
    budget = Budget(MazeEnv("S..G"), 10)
    options = eo.discover(eo.maze("S..G"), 2)
    env = eo.OptionsWrapper(budget, options, option_chance=0.05)
    env.reset(seed=0)
    choice = 4 if env.action_masks()[4] else 5
    info = env.step(choice)[-1]
    assert budget.steps == info["duration"] == 3
    assert budget.first_goal == 3
    env.reset()
    for _ in range(6):
        env.step(0)
    with pytest.raises(BudgetSpentError):
        env.step(0)


def test_count_bonus_falls_with_the_visits() -> None:
    env = CountBonus(MazeEnv("S..G"), bonus=0.1)
    env.reset(seed=0)
    rewards = [env.step(action)[1] for action in (1, 3, 1, 3, 1, 1, 1)]
    bonuses = 0.1 / np.sqrt([1, 1, 2, 2, 3, 1, 1])
    goal_rewards = np.array([0, 0, 0, 0, 0, 0, 1])
    assert_allclose(rewards, bonuses + goal_rewards)


def test_exam_tells_a_good_policy_from_a_bad_one() -> None:
    task = DEVELOPMENT_TASKS["one key"]
    env = task.make(100)
    way = env.unwrapped.mdp
    found = eo.explore(way, 5000, until="reward").option()
    assert take_exam(task.make(100), lambda obs, mask: max(found.act(obs), 0), 0) == 1.0
    assert take_exam(task.make(100), lambda obs, mask: 0, 0) == 0.0


@pytest.mark.parametrize("agent", [TORCH_DQN, "SB3 DQN", SB3_PPO])
def test_every_agent_runs_in_its_ways(agent: str, monkeypatch: Any) -> None:
    """Only the form of a run: what a network learns in few steps may differ."""
    training = pytest.importorskip("studies.arena.deep_training")
    short = deep.COMPARISONS[agent][2:4]
    kind = DEVELOPMENT_TASKS["CliffWalking"]
    few = type(kind)(kind.about, kind.make, 300)
    monkeypatch.setitem(training.DEEP_TASKS, "CliffWalking", few)
    for way in short:
        row = training.train_deep(agent, "CliffWalking", way, 100)
        assert 0 < row["first_goal"] <= 300
        assert 0.0 <= row["reached"] <= 1.0


def test_own_search_goes_the_shortest_known_way() -> None:
    env = MazeEnv("four-rooms")
    search = OwnSearch(env, seed=0)
    search.explore(lambda: len(search.outcomes) == 4 * 104 - 4)
    # All but the four of the goal were tried, so that every way is known.
    state, _ = env.reset()
    n_steps = 0
    is_over = False
    while not is_over:
        state, _, is_over, _, _ = env.step(search.choose(state))
        n_steps += 1
    mdp = env.mdp
    found = eo.explore(MazeEnv("four-rooms"), 4000, until="known")
    assert n_steps == found.distances[mdp.start]


def test_dqn_learns_after_exploring() -> None:
    """A table is enough for exact statements: the goal is learned in a short maze."""
    pytest.importorskip("torch")
    from studies.arena.deep_dqn import TorchDQN

    budget = Budget(MazeEnv("S....G"), 1000)
    found = eo.explore(budget, 200, until="reward")
    agent = TorchDQN(budget, budget, seed=0)
    agent.replay.fill(found, 0.99, None)
    assert agent.replay.size == found.n_steps == budget.steps
    agent.learn()
    assert [agent.choose(state) for state in range(5)] == [1] * 5


def test_options_of_the_known_table_are_labelled() -> None:
    knows = {name for name, way in WAYS.items() if way.knows != "nothing"}
    assert knows == {"known options"}


def test_verdicts_need_intervals_that_are_apart() -> None:
    rows = []
    for way, reached in (("plain", 0.0), ("counts", 1.0), ("explore, cloning", 1.0)):
        for seed in (5000, 5001):
            for task in TEST_TASKS:
                row = {"agent": SB3_PPO, "way": way, "task": task, "seed": seed}
                row |= {"reached": reached, "learned": reached, "first_share": 0.5}
                rows.append(row)
    text = deep_page._show_verdicts(pd.DataFrame(rows))
    assert "cloning / plain | better | better | not decided" in text
    assert "cloning / counts | not decided" in text
    assert "PyTorch DQN: explore, way / plain | not run" in text


@pytest.mark.slow
def test_command_stores_runs_and_continues(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("stable_baselines3")
    folder = tmp_path / "deep"
    command = ["deep", "--quick", "--ways", "plain", "--out", str(folder)]
    with eo.parallel.using("serial"):
        arena.main(command)
        stored = (folder / "deep.csv").read_bytes()
        arena.main(command)
    assert (folder / "deep.csv").read_bytes() == stored
    assert "3 runs" in capsys.readouterr().out
