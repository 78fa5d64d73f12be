"""Agents with and without options on the same tasks, at equal primitive steps; steps of discovery count.

A run is one agent on one task with one way to explore and one seed. Settings of agents and of ways to explore were
chosen on seeds from 100 on; the seeds reported begin at 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest, quantile_test

from eigenoptions._validation import check_choice
from eigenoptions.discovery import discover
from eigenoptions.discovery.exploration import cycle
from eigenoptions.mdp import MDP, maze
from eigenoptions.mdp.maps import rooms_map
from reproduction.arena.training import AGENTS, EPSILON_GREEDY, make_task, train
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.lab import Claim, Data, Lab
from reproduction.report import Section, count_verdicts, write_page
from reproduction.statistics import CONFIDENCE

# Name of a way to explore, and what it is.
EXPLORATIONS = {
    "plain": "random actions (PPO: its own policy)",
    "options": "exact eigenoptions, chosen with small probability",
    "found": "eigenoptions found by exploring the task without its reward (cycle); these steps count",
    "counts": "a bonus beta / sqrt(n) for entering a state n times",
    "repeats": "random actions repeated for a random number of steps: epsilon-z-greedy (Dabney et al., 2021)",
}
RUN = ["task", "agent", "exploration"]
ALL = tuple(EXPLORATIONS)
CHECKPOINTS = 10


def make_rooms(side: int, size: int) -> dict[str, Any]:
    """A tiling of rooms: start in the first corner, goal in the middle of the last room."""
    text = rooms_map(side, side, size=size)
    coords: Any = maze(text).coords
    middle = np.abs(coords - (coords.max(axis=0) - size // 2)).sum(axis=1).argmin()
    return {"maze": text, "start": 0, "goal": int(middle)}


# Without options there is nothing to mask: MaskablePPO would be PPO. Where no table is known, options are found.
POLICY_GRADIENT = {"PPO": ("plain", "options"), "MaskablePPO": ("options",)}
FEATURES = {"PPO": ("plain", "found"), "PyTorch DQN": ("plain", "found", "counts", "repeats")}
# Tasks: where, the time limit, primitive steps of a run, the discount, number of options, steps of discovery, and the
# agents with their ways to explore. Slow agents run on few tasks, so that all runs take two hours on two cores.
TASKS: dict[str, dict[str, Any]] = {
    "four-rooms": {
        "maze": "four-rooms", "limit": 500, "steps": 8000, "gamma": 0.95, "n_options": 8, "discovery": 400,
        "agents": {
            "DQN": ("plain", "options", "counts", "repeats"), **POLICY_GRADIENT,
            "PyTorch DQN": ALL, "Q-learning": ALL,
        },
    },
    "rooms-5x5": {
        **make_rooms(5, 5), "limit": 1000, "steps": 15_000, "gamma": 0.97, "n_options": 8, "discovery": 3000,
        "agents": {"DQN": ("plain", "options"), **POLICY_GRADIENT, "PyTorch DQN": ALL, "Q-learning": ALL},
    },
    "rooms-10x10": {
        **make_rooms(10, 4), "limit": 2000, "steps": 50_000, "gamma": 0.98, "n_options": 8, "discovery": 8000,
        "agents": {"Q-learning": ALL},
    },
    "MultiRoom": {
        "env": "minigrid:MiniGrid-MultiRoom-N4-S5-v1", "limit": 500, "steps": 15_000, "gamma": 0.97,
        "n_options": 8, "discovery": 4000, "agents": {"Q-learning": ALL},
    },
    "KeyCorridor": {
        "env": "minigrid:MiniGrid-KeyCorridorS3R2-v0", "limit": 500, "steps": 15_000, "gamma": 0.97,
        "n_options": 8, "discovery": 4000, "agents": {"Q-learning": ALL},
    },
    "MiniGrid-FourRooms": {
        "env": "minigrid:MiniGrid-FourRooms-v0", "limit": 500, "steps": 15_000, "gamma": 0.97,
        "n_options": 32, "discovery": 4000, "agents": {"Q-learning": ALL},
    },
    "MountainCar": {
        "env": "MountainCar-v0", "steps": 30_000, "gamma": 0.99, "n_options": 8, "discovery": 10_000,
        "episodes": 3, "agents": FEATURES,
    },
    "Acrobot": {
        "env": "Acrobot-v1", "steps": 30_000, "gamma": 0.99, "n_options": 8, "discovery": 10_000,
        "episodes": 3, "agents": FEATURES,
    },
}  # fmt: skip
FULL: dict[str, Any] = {"tasks": list(TASKS), "seeds": 10, "share": 1.0}
QUICK: dict[str, Any] = {
    "tasks": ["four-rooms", "rooms-5x5", "MultiRoom", "MountainCar"], "seeds": 2, "share": 0.25
}  # fmt: skip


def run(lab: Lab, names: Sequence[str] = (), tasks: Sequence[str] = ()) -> Data:
    """Train agents; data frames ``runs``, ``curves`` and ``summary``. Agents that are named run on every task."""
    settings = QUICK if lab.quick else FULL
    for name in names:
        check_choice("agent", name, list(AGENTS))
    for name in tasks:
        check_choice("task", name, list(TASKS))
    jobs = [
        {"task": task, "agent": agent, "exploration": exploration, "seed": seed, "share": settings["share"]}
        for task in tasks or settings["tasks"]
        for agent in names or AGENTS
        for exploration in (ALL if names else TASKS[task]["agents"].get(agent, ()))
        if exists(TASKS[task], agent, exploration)
        for seed in range(settings["seeds"])
    ]
    lab.describe("training agents")
    return tabulate(jobs, lab.pmap(train_agent, jobs))


def is_numbered(task: Mapping[str, Any]) -> bool:
    """Whether the observations of a task are the numbers of states."""
    return "maze" in task or task["env"].startswith("minigrid:")


def exists(task: Mapping[str, Any], agent: str, exploration: str) -> bool:
    """Whether a run exists: a table needs numbered states, known options need a table, repeats need random actions.

    >>> exists(TASKS["MountainCar"], "Q-learning", "plain"), exists(TASKS["four-rooms"], "PPO", "repeats")
    (False, False)
    """
    if not is_numbered(task) and (agent == "Q-learning" or exploration == "options"):
        return False
    return exploration != "repeats" or agent in EPSILON_GREEDY


def train_agent(task: str, agent: str, exploration: str, seed: int, share: float) -> dict[str, Any]:
    """One run: discovery where it is asked for, then training; see `train`. With its CPU seconds."""
    start, about = time.process_time(), TASKS[task]
    steps = int(about["steps"] * share)
    checkpoints = [steps * i // CHECKPOINTS for i in range(1, CHECKPOINTS + 1)]
    settings: dict[str, Any] = {"explore_share": 0.5} if agent == "Q-learning" else {}
    options: Any = None
    if exploration == "repeats":
        settings["repeats"] = True
    elif exploration == "counts":
        # With a bonus the values explore, so that random actions may be rare; a table begins with optimistic values.
        settings["beta"] = 0.01
        if agent in EPSILON_GREEDY:
            settings["explore_share"] = 0.1
        if agent == "Q-learning":
            settings |= {"explore_share": 0.02, "initial_value": 0.01 / (1 - about["gamma"])}
    elif exploration == "options":
        options = discover_known(task)
    elif exploration == "found":
        settings["taken"] = int(about["discovery"] * share)
        options = discover_online(task, settings["taken"], seed)
    episodes = about.get("episodes", 1)
    settings |= {"steps": steps, "checkpoints": checkpoints, "episodes": episodes, "seed": seed}
    result = train(agent, about, options, **settings)
    return {**result, "checkpoints": checkpoints, "seconds": time.process_time() - start}


@lru_cache(maxsize=8)
def discover_known(task: str) -> Any:
    """Options of the table of a task, which is read or explored beforehand: no steps of the agent."""
    about = TASKS[task]
    mdp = maze(about["maze"]) if "maze" in about else make_task(about).get_wrapper_attr("mdp")
    return discover(mdp, about["n_options"])


def discover_online(task: str, steps: int, seed: int, rounds: int = 4) -> Any:
    """Options of the last of some rounds of `cycle` in the task, whose reward is not used."""
    about, limit = TASKS[task], {}
    env = make_task(about)
    if "maze" in about:
        mdp = env.unwrapped.mdp
        env, limit = (
            MDP(mdp.transition, coords=mdp.coords, start=mdp.start),
            {"max_episode_steps": about["limit"]},
        )
    settings: Any = {"n_options": about["n_options"], "steps": steps // rounds, "rounds": rounds, "rng": seed}
    *_, last = cycle(env, **settings, **limit)
    options: Any = last.options
    # Options that act on features end after eight steps without a new highest potential.
    return options if hasattr(options, "policy") else options.with_termination(patience=8)


def tabulate(jobs: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> Data:
    """Data frames of runs: ``runs`` (one row each), ``curves`` (success by checkpoint), ``summary``."""
    runs, marks = [], []
    for job, result in zip(jobs, results, strict=True):
        key, budget = {name: job[name] for name in (*RUN, "seed")}, result["checkpoints"][-1]
        is_reached = result["first_goal"] > 0
        runs.append(
            {
                **key,
                "first_goal": result["first_goal"] if is_reached else budget,
                "reached": is_reached,
                "greedy": result["success"][-1],
                "greedy_steps": result["greedy_steps"],
                "budget": budget,
                "seconds": result["seconds"],
            }
        )
        pairs = zip(result["checkpoints"], result["success"], strict=True)
        marks += [{**key, "steps": steps, "success": share} for steps, share in pairs]
    curves = [
        {**dict(zip([*RUN, "steps"], key, strict=True)), **_count_successes(rows.success)}
        for key, rows in pd.DataFrame(marks).groupby([*RUN, "steps"], sort=False)
    ]
    frame = pd.DataFrame(runs)
    return {"runs": frame, "curves": pd.DataFrame(curves), "summary": summarize(frame)}


def summarize(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per task, agent and way to explore: median first goal, successful runs, with intervals; mean CPU seconds.

    The interval of the median is exact (order statistics), that of the share is Wilson's; a run without a goal counts
    with its budget.
    """
    rows = []
    for key, group in runs.groupby(RUN, sort=False):
        first = group.first_goal
        low, high = quantile_test(first, p=0.5).confidence_interval(CONFIDENCE)
        rows.append(
            {
                **dict(zip(RUN, key, strict=True)),
                "runs": len(group),
                "first_goal": first.median(),
                "first_goal_low": low if np.isfinite(low) else first.min(),
                "first_goal_high": high if np.isfinite(high) else first.max(),
                "reached": int(group.reached.sum()),
                **_count_successes(group.greedy),
                "budget": group.budget.iloc[0],
                "seconds": group.seconds.mean(),
            }
        )
    return pd.DataFrame(rows)


def _count_successes(shares: pd.Series) -> dict[str, float]:
    """Number of runs that mostly reach the goal, their share, and Wilson's interval of it."""
    wins = int((shares > 0.5).sum())
    interval = binomtest(wins, len(shares)).proportion_ci(CONFIDENCE, method="wilson")
    return {"wins": wins, "share": wins / len(shares), "low": interval.low, "high": interval.high}


def claims(summary: pd.DataFrame) -> Iterator[Claim]:
    """Whether agents with options find the goal three times as early, and are no less successful in the end."""
    for (task, agent), rows in summary.groupby(["task", "agent"], sort=False):
        row = {way: group.iloc[0] for way, group in rows.groupby("exploration")}
        for way in ("options", "found"):
            if way not in row or "plain" not in row:
                continue
            ours, plain = row[way], row["plain"]
            source = "of the known table" if way == "options" else "found in the task"
            yield Claim(
                f"{task}-{agent}-{way}".replace(" ", "-"),
                "ours",
                f"{agent} with options {source} finds the goal of {task} in at most a third of the steps, and is no "
                "less successful.",
                # That neither learns the task is no success.
                tests=[ours.first_goal <= plain.first_goal / 3, ours.wins > 0 and ours.share >= plain.share],
                measured=f"first goal after {ours.first_goal:,.0f} steps against {plain.first_goal:,.0f} (medians); "
                f"greedy success {ours.wins} of {ours.runs} against {plain.wins} of {plain.runs}",
                evidence=f"{ours.budget:,} primitive steps per run, with those of discovery; a run without a goal "
                "counts with its budget.",
            )


# Page


def write(path: Path, data: Data, *, quick: bool, seconds: float) -> None:
    """Write the page, and print the summary."""
    summary = data["summary"]
    table = Table("task", "agent", "exploration", "first goal", "greedy success", box=None)
    for row in summary.itertuples():
        table.add_row(row.task, row.agent, row.exploration, format_first_goal(row), f"{row.wins}/{row.runs}")
    Console().print(table)
    judged = list(claims(summary))
    ways = pd.DataFrame(EXPLORATIONS.items(), columns=["way to explore", "what it is"])
    tasks = dict.fromkeys(summary.task)
    sections = [
        Section("ways", "Ways to explore", "", [ways]),
        *(_make_section(data, task, judged) for task in tasks),
    ]
    header = Markup(
        "<p>Every agent learns each task for the same number of primitive steps, by <code>python -m reproduction arena "
        "agents</code>; the steps in which options are discovered count. Settings were chosen on other seeds than the "
        "{} of this page. Do options find the goal in at most a third of the steps, and are they no less successful? "
        "Of {} comparisons {}.</p><p class='facts'>{} runs, {:.1f} minutes of CPU time. Data: {}.</p>"
    ).format(
        (QUICK if quick else FULL)["seeds"],
        len(judged),
        count_verdicts(judged),
        len(data["runs"]),
        data["runs"].seconds.sum() / 60,
        Markup(", ").join(Markup('<a href="data/{0}.csv">{0}.csv</a>').format(name) for name in data),
    )
    write_page(path, "Agents with and without options", sections, header=header)


def _make_section(data: Data, task: str, judged: Sequence[Claim]) -> Section:
    """Table, learning curves and claims of a task."""
    about, rows = TASKS[task], data["summary"][data["summary"].task == task]
    cells = rows.assign(
        cell=[f"{format_first_goal(row)}; {row.wins} of {row.runs}" for row in rows.itertuples()]
    ).pivot(index="agent", columns="exploration", values="cell")
    table = cells[[way for way in EXPLORATIONS if way in cells]].fillna("").reset_index()
    place = about["env"].removeprefix("minigrid:") if "env" in about else f"start to goal in a maze, {task}"
    text = (
        f"{place}; {rows.budget.iloc[0]:,} primitive steps per run, discount {about['gamma']}, {about['n_options']} "
        f"options (found in {about['discovery']:,} steps at full length). In each cell: median steps to the first goal "
        "with its 95% interval, and the number of runs whose greedy policy reaches the goal at the end. The figure "
        "shows the share of seeds whose greedy policy reaches the goal; bands are 95% (Wilson)."
    )
    names = {claim.id for claim in judged if claim.id.startswith(f"{task}-")}
    return Section(task, task, text, [table, draw_success(data, task)], [c for c in judged if c.id in names])


def format_first_goal(row: Any) -> str:
    """Median first goal and its interval; a median at the budget means that most runs found no goal."""
    if row.first_goal >= row.budget:
        return f"none in {row.budget:,}"
    return f"{row.first_goal:,.0f} ({row.first_goal_low:,.0f} to {row.first_goal_high:,.0f})"


def draw_success(data: Data, task: str) -> Any:
    """Learning curves of a task: one graph per agent, one line per way to explore."""
    curves = data["curves"][data["curves"].task == task]
    ways = [way for way in EXPLORATIONS if way in set(curves.exploration)]
    agents = list(dict.fromkeys(curves.agent))
    figure, axes = make_graphs(len(agents), columns=3)
    for ax, agent in zip(axes, agents, strict=False):
        rows = curves[curves.agent == agent].set_index("exploration")
        # A way that an agent does not have is an empty line, so that colours mean the same in all graphs.
        steps = sorted(set(curves.steps))
        lines = {way: rows.share.get(way, pd.Series(np.nan, index=steps)).to_numpy() for way in ways}
        shaded = [way for way in ("plain", "options") if way in rows.index]
        bands = {way: (rows.low[way].to_numpy(), rows.high[way].to_numpy()) for way in shaded}
        draw_lines(ax, steps, lines, bands=bands, title=agent, xlabel="primitive steps", ylim=(-0.02, 1.02))
    for ax in axes[len(agents) :]:
        ax.axis("off")
    axes[0].set_ylabel("greedy success")
    add_legend(figure)
    return figure
