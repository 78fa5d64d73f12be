"""The arena of agents: what a run counts, that every agent learns a corridor, and the page of the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs.mazes import MazeEnv
from reproduction.arena.exploration import BudgetSpent, CountBonus, Record, Repeats
from reproduction.arena.training import AGENTS, EPSILON_GREEDY, make_task, train
from tests.tables import make_options

CORRIDOR = {"maze": "S..G", "limit": 30, "gamma": 0.9}
HOW: dict[str, Any] = {"steps": 100, "checkpoints": [50, 100]}


def test_a_record_counts_primitive_steps_and_ends_a_run() -> None:
    record = Record(MazeEnv("S..G"), budget=14, taken=4, checkpoints=[2, 6, 14])
    called: list[int] = []
    record.at_checkpoint = lambda: called.append(record.steps)
    env = eo.OptionsWrapper(record, eo.discover(eo.maze("S..G"), 2), record_steps=True)
    env.reset(seed=0)
    info = env.step(4 if env.action_masks()[4] else 5)[-1]
    assert record.steps == 4 + info["duration"] == 7
    env.reset()
    for _ in range(6):
        env.step(0)
    with pytest.raises(BudgetSpent):
        env.step(0)
    assert record.steps == 14
    assert called == [6, 14]
    assert record.first_goal == 4 + 3


def test_the_bonus_of_a_state_falls_with_the_root_of_its_count() -> None:
    env = CountBonus(MazeEnv("S.G"), beta=0.3)
    env.reset()
    bonus = [env.step(0)[1] for _ in range(4)]
    assert np.allclose(bonus, 0.3 / np.sqrt([1, 2, 3, 4]))
    car = CountBonus(make_task({"env": "MountainCar-v0"}), beta=1.0)
    car.reset(seed=0)
    first, second = car.step(1)[1], car.step(1)[1]
    assert (first, round(second, 6)) == (0.0, round(-1 + 2**-0.5, 6))


def test_repeats_have_a_zeta_distribution() -> None:
    explore = Repeats(4, seed=1)
    single = 0
    for _ in range(4000):
        explore.left = 0
        explore(1.0)
        single += explore.left == 0
    assert abs(single / 4000 - 6 / np.pi**2) < 0.03
    explore.left = 0
    assert explore(0.0) is None


@pytest.mark.parametrize("agent", list(AGENTS))
def test_every_agent_runs_with_every_way_to_explore(agent: str) -> None:
    """What a network learns in so few steps may differ between machines, so only the form of a run is checked."""
    pytest.importorskip("sb3_contrib")
    options = eo.discover(eo.maze("S..G"), 2)
    settings = {"n_steps": 32, "batch_size": 32, "n_epochs": 1} if "PPO" in agent else {}
    ways: list[tuple[Any, dict[str, Any]]] = [(None, {"beta": 0.1}), (options, {"taken": 20})]
    if agent in EPSILON_GREEDY:
        ways.append((None, {"repeats": True}))
    for given, how in ways:
        found = train(agent, CORRIDOR, {**HOW, "settings": settings, **how}, given, seed=1)
        assert len(found["success"]) == 2
        assert set(found["success"]) <= {0.0, 1.0}
        assert found["first_goal"] == -1 or found["first_goal"] > how.get("taken", 0)


def test_gradient_steps_are_counted_in_primitive_steps() -> None:
    """An agent with options makes fewer decisions, and learns as much per primitive step."""
    pytest.importorskip("sb3_contrib")
    from reproduction.arena.exploration import BudgetSpent, Record, Run
    from reproduction.arena.sb3_runs import dqn
    from reproduction.arena.training import make_task

    options = make_options(np.array([[1, 1, 1, -1]]), 4)
    for given in (None, options):
        record = Record(make_task({**CORRIDOR, "limit": 50}), budget=400, taken=100)
        env = record if given is None else eo.OptionsWrapper(record, given, option_chance=0.9)
        run = Run(env, record, 0, 0.9, option_chance=None if given is None else 0.9)
        agent, _ = dqn(run)
        with pytest.raises(BudgetSpent):
            agent.learn(10_000)
        assert 300 - 8 <= agent._n_calls < 300
        assert agent._n_updates == agent._n_calls // 4 or agent._n_updates == agent._n_calls // 4 - 1
        assert run.rate() == 0.0
        # A tenth of the first rate, which is 20 for numbered states.
        assert agent.policy.optimizer.param_groups[0]["lr"] < 2.0


def test_a_run_is_repeatable_and_discovery_is_charged() -> None:
    options = eo.discover(eo.maze("S..G"), 2)
    how = {"steps": 600, "checkpoints": [200, 600], "taken": 250}
    twice = [train("Q-learning", CORRIDOR, how, options, seed=3) for _ in range(2)]
    assert twice[0] == twice[1]
    assert (twice[0]["success"][1], twice[0]["greedy_steps"]) == (1.0, 3.0)
    # The first checkpoint lies within the discovery, when the agent has not begun.
    assert twice[0]["success"][0] == 0.0


def fake(task: str, exploration: str, first: list[int], greedy: list[float]) -> list[dict[str, Any]]:
    key = {"task": task, "agent": "DQN", "exploration": exploration, "budget": 1000}
    return [
        {
            **key,
            "seed": i,
            "first_goal": f,
            "reached": int(f < 1000),
            "greedy": g,
            "greedy_steps": 20.0,
            "seconds": 1.0,
        }
        for i, (f, g) in enumerate(zip(first, greedy, strict=True))
    ]


def test_summaries_and_verdicts() -> None:
    from reproduction.arena.agents import claims, summary

    plain = fake("four-rooms", "plain", [900, 1000, 1000, 600, 1000], [0, 1, 0, 1, 0])
    fast = fake("four-rooms", "options", [100, 200, 300, 90, 80], [1, 1, 1, 1, 1])
    slow = fake("four-rooms", "found", [500, 400, 600, 900, 1000], [1, 1, 1, 1, 1])
    rows = summary(plain + fast + slow)
    assert [(r["first_goal"], r["greedy"], r["reached"]) for r in rows] == [
        (1000.0, 2, 2),
        (100.0, 5, 5),
        (600.0, 5, 4),
    ]
    assert rows[1]["first_goal_low"] <= 100 <= rows[1]["first_goal_high"]
    assert rows[1]["greedy_low"] > 0.5
    assert [claim.verdict for claim in claims({"summary": rows})] == ["holds", "partly"]


def test_a_contest_is_stored_shown_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduction.arena import agents, agents_page

    tiny = {**CORRIDOR, "steps": 300, "n_options": 2, "discovery": 40}
    monkeypatch.setitem(agents.TASKS, "four-rooms", tiny)
    agents.known_options.cache_clear()
    small = {**agents.SETTINGS["quick"], "share": 1.0}
    monkeypatch.setitem(agents.SETTINGS, "quick", small)
    given = ("quick", ["Q-learning"], ["four-rooms"])
    told: list[tuple[int, int]] = []
    report = agents_page.CONTEST.run(tmp_path, *given, progress=lambda *p: told.append(p))
    assert told[-1] == (10, 10)
    assert [row[2] for row in report.rows] == list(agents.EXPLORATIONS)
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "four-rooms" in html
    assert "<svg" in html
    assert report.files == [tmp_path / "index.html"]
    assert {p.name for p in (tmp_path / "data").iterdir()} >= {"runs.csv", "summary.csv", "four-rooms.svg"}
    monkeypatch.setattr("reproduction.store.run_jobs", lambda f, jobs, *a, **k: [f(j) for j in jobs])
    again = agents_page.CONTEST.run(tmp_path, *given)
    assert again.rows == report.rows
    # A slice adds nothing and takes nothing away: the page shows all that is stored.
    part = agents_page.CONTEST.run(tmp_path, "quick", ["Q-learning:plain"], ["four-rooms"])
    assert part.rows == report.rows
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "index.html").write_text("mine")
    with pytest.raises(FileExistsError, match="thesis has other content than an arena"):
        agents_page.CONTEST.run(tmp_path / "thesis", *given)
    for wrong in ("SARSA", "DQN:dreams"):
        with pytest.raises(ValueError, match="methods must be"):
            agents_page.chosen("quick", agents=[wrong])


def test_every_task_names_its_runs() -> None:
    from reproduction.arena import agents, agents_page

    work = agents.jobs(agents.SETTINGS["default"])
    assert len({tuple(job.items()) for job in work}) == len(work)
    # Slow agents run on some tasks and in some ways, unless they are named.
    assert {j["agent"] for j in work if j["task"] == "MultiRoom"} == {"Q-learning"}
    ways = {j["exploration"] for j in work if (j["task"], j["agent"]) == ("rooms-5x5", "PPO")}
    assert ways == {"plain", "options"}
    named = agents.jobs(agents_page.chosen("default", ["DQN"], ["MultiRoom"]))
    assert {(j["task"], j["agent"]) for j in named} == {("MultiRoom", "DQN")}
    seeds = {job["seed"] for job in work}
    assert seeds == set(range(10))
    assert {job["task"] for job in work} == set(agents.TASKS)
    for name in ("rooms-5x5", "rooms-10x10"):
        task = agents.TASKS[name]
        mdp = eo.maze(task["maze"])
        assert mdp.n_states == {"rooms-5x5": 665, "rooms-10x10": 1780}[name]
        assert (np.abs(mdp.coords[task["goal"]] - mdp.coords.max(axis=0)) == {5: 2, 4: 2}[5]).all()
