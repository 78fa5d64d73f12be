"""The arena: domains, measures of methods that agree with the library's, training runs, and the pages."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.mdp import reachable
from reproduction import arena
from reproduction.arena import agents, methods
from reproduction.arena.domains import DOMAINS, make_domain
from reproduction.arena.training import (
    AGENTS,
    EPSILON_GREEDY,
    BudgetSpentError,
    CountBonus,
    Record,
    RepeatedActions,
    train,
)

LEARNING = {"counts": [4], "goals": 3, "runs": 2, "episodes": 10}
CORRIDOR = {"maze": "S..G", "limit": 30, "gamma": 0.9}


@pytest.mark.parametrize("name", DOMAINS)
def test_domain_states_reach_each_other(name: str) -> None:
    mdp = make_domain(name)
    assert mdp.goal is None
    assert reachable(mdp.transition, [mdp.start]).all()
    assert reachable(mdp.transition, [mdp.start], backward=True).all()
    assert set(np.unique(mdp.reward)) == ({-20.0, -1.0} if name == "costly" else {-1.0})


def test_measure_agrees_with_the_library() -> None:
    mdp, options = make_domain("i-maze"), eo.discover(make_domain("i-maze"), 4)
    none, result = (methods.measure("i-maze", m, 0, [2, 4], LEARNING, {}) for m in ("none", "eigen"))
    row = result["rows"][1]
    assert row["n"] == 4
    assert row["uniform"] == eo.diffusion_time(mdp, options)
    assert row["best"] <= min(row["uniform"], none["rows"][0]["best"])
    assert_allclose(eo.diffusion_time(mdp, options, option_chance=row["chance"]), row["best"], rtol=1e-9)
    assert {(r["n"], r["how"]) for r in result["learning"]} == {(4, "uniform"), (4, "best")}


def test_measure_takes_what_a_method_has() -> None:
    few = methods.measure("i-maze", "bottleneck", 0, [2, 64], {**LEARNING, "counts": []}, {})
    assert [row["n"] for row in few["rows"]] == [2]
    refused = methods.measure("open-room", "bottleneck", 0, [2], LEARNING, {})
    assert refused["rows"] == []
    assert refused["discovery"][0]["refused"]
    assert methods.measure("i-maze", "eigen", 1, [2], LEARNING, {}) is None  # draws nothing
    assert methods.measure("i-maze", "random", 1, [2], {**LEARNING, "counts": []}, {}) is not None


def test_cost_of_reward_aware_options_is_lower() -> None:
    mdp = make_domain("costly")
    cost = {name: methods.measure_cost(mdp, eo.discover(mdp, 8, name)) for name in ("eigen", "reward-aware")}
    assert 1.0 <= cost["reward-aware"] < cost["eigen"]


@pytest.mark.parametrize("name", ["none", "covering", "random", "reward-aware"])
def test_explore_online_sees_every_state(name: str) -> None:
    results = [methods.explore_online("i-maze", name, [0, 1], 4, 0.05, 200) for _ in range(2)]
    assert results[0] == results[1]
    assert all(19 <= row["steps"] < inf for row in results[0])


def test_rank_counts_missing_options_as_the_baseline() -> None:
    columns = ["method", "domain", "best"]
    values = [("none", "x", 10.0), ("none", "y", 20.0), ("a", "x", 5.0), ("b", "x", 20.0), ("b", "y", 40.0)]
    rows = pd.DataFrame(values, columns=columns).assign(n=8, seed=0, low=nan, high=nan, note="")
    data = {"rows": rows}
    ranks, order = methods.rank(data, methods.MEASURES[0])
    assert ranks.to_dict("index") == {
        "none": {"x": 2.0, "y": 1.5}, "a": {"x": 1.0, "y": 1.5}, "b": {"x": 3.0, "y": 3.0}
    }  # fmt: skip
    assert list(order.index) == ["a", "none", "b"]
    assert_allclose(order.ratio[["a", "none", "b"]], [0.5, 1.0, 2.0])


def test_record_counts_primitive_steps() -> None:
    record = Record(MazeEnv("S..G"), budget=14, taken=4, checkpoints=[2, 6, 14])
    calls: list[int] = []
    record.at_checkpoint = lambda: calls.append(record.steps)
    env = eo.OptionsWrapper(record, eo.discover(eo.maze("S..G"), 2), option_chance=0.05)
    env.reset(seed=0)
    info = env.step(4 if env.action_masks()[4] else 5)[-1]
    assert record.steps == 4 + info["duration"] == 7
    env.reset()
    for _ in range(6):
        env.step(0)
    with pytest.raises(BudgetSpentError):
        env.step(0)
    assert (record.steps, record.first_goal, calls) == (14, 7, [6, 14])


def test_count_bonus_and_repeated_actions() -> None:
    env = CountBonus(MazeEnv("S.G"), beta=0.3)
    env.reset()
    assert_allclose([env.step(0)[1] for _ in range(4)], 0.3 / np.sqrt([1, 2, 3, 4]))
    explore, n_single = RepeatedActions(4, seed=1), 0
    for _ in range(4000):
        explore.left = 0
        explore(1.0)
        n_single += explore.left == 0
    assert abs(n_single / 4000 - 6 / np.pi**2) < 0.03
    explore.left = 0
    assert explore(0.0) is None


@pytest.mark.parametrize("agent", list(AGENTS))
def test_train_runs_every_agent_in_every_way(agent: str) -> None:
    """What a network learns in so few steps may differ between machines, so only the form of a run is checked."""
    pytest.importorskip("sb3_contrib")
    options = eo.discover(eo.maze("S..G"), 2)
    settings: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 1} if "PPO" in agent else {}
    ways: list[tuple[Any, dict[str, Any]]] = [(None, {"beta": 0.1}), (options, {"taken": 20})]
    ways += [(None, {"repeats": True})] if agent in EPSILON_GREEDY else []
    for given, way in ways:
        result = train(agent, CORRIDOR, given, steps=100, checkpoints=[50, 100], seed=1, **way, **settings)
        assert len(result["success"]) == 2
        assert result["first_goal"] == -1 or result["first_goal"] > way.get("taken", 0)


def test_train_is_repeatable_and_charges_discovery() -> None:
    options = eo.discover(eo.maze("S..G"), 2)
    settings: Any = {"steps": 600, "checkpoints": [200, 600], "taken": 250, "seed": 3}
    one, same = (train("Q-learning", CORRIDOR, options, **settings) for _ in range(2))
    assert one == same
    # The first checkpoint lies within the discovery, when the agent has not begun.
    assert (one["success"], one["greedy_steps"]) == ([0.0, 1.0], 3.0)


def test_paced_dqn_takes_gradient_steps_by_primitive_steps() -> None:
    sb3_agents = pytest.importorskip("reproduction.arena.sb3_agents")
    from reproduction.arena.training import Run, make_task

    record = Record(make_task({**CORRIDOR, "limit": 50}), budget=400, taken=100)
    env = eo.OptionsWrapper(record, eo.discover(eo.maze("S..G"), 2), option_chance=0.9)
    agent, _ = sb3_agents.make_agent("DQN", Run(env, record, 0, 0.9, option_chance=0.9))
    with pytest.raises(BudgetSpentError):
        agent.learn(10_000)
    assert 300 - 8 <= agent._n_calls < 300
    assert agent._n_updates in (agent._n_calls // 4, agent._n_calls // 4 - 1)


def test_claims_compare_with_the_plain_agent() -> None:
    goals = {
        "plain": [900, 1000, 1000, 600, 1000],
        "options": [100, 200, 300, 90, 80],
        "found": [500, 400, 600, 900, 950],
    }
    runs = pd.DataFrame(
        {"task": "four-rooms", "agent": "DQN", "exploration": way, "first_goal": goal, "reached": goal < 1000,
         "greedy": float(way != "plain" or i % 2), "budget": 1000, "seconds": 1.0}
        for way, firsts in goals.items() for i, goal in enumerate(firsts)
    )  # fmt: skip
    summary = agents.summarize(runs)
    assert summary.first_goal.tolist() == [1000.0, 100.0, 600.0]
    assert summary.wins.tolist() == [2, 5, 5]
    assert [claim.verdict for claim in agents.claims(summary)] == ["holds", "partly"]


@pytest.mark.parametrize("comparison", ["methods", "agents"])
def test_main_writes_a_page_and_continues(
    comparison: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    tiny = {**CORRIDOR, "steps": 1200, "n_options": 2, "discovery": 160, "agents": {"Q-learning": agents.ALL}}
    monkeypatch.setitem(agents.TASKS, "four-rooms", tiny)
    agents.discover_known.cache_clear()
    only, domain = {"methods": ("eigen,random", "i-maze"), "agents": ("Q-learning", "four-rooms")}[comparison]
    command = [comparison, "--quick", "--only", only, "--domains", domain, "--out", str(tmp_path / "arena")]
    with eo.parallel.using("serial"):
        arena.main(command)
        printed = capsys.readouterr().out
        arena.main(command)
    assert capsys.readouterr().out == printed
    html = (tmp_path / "arena" / "index.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in html
    for table in (tmp_path / "arena" / "data").iterdir():
        assert table.name in html
    with pytest.raises(ValueError, match="one of"):
        arena.main([*command[:3], "SARSA", *command[4:]])
