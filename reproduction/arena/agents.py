"""Agents with and without options on the same tasks, at equal primitive steps.

The steps of discovery count.

The options' settings are the defaults of the library. Every seed draws goals of its
own. The numbers of the documentation are in ``agents.csv`` beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from markupsafe import Markup

from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.plots.style import STYLE
from reproduction.arena.tasks import MARKS, TASKS, make_task
from reproduction.arena.training import DEEP_STEPS, train_deep
from reproduction.claims import Claim, count_verdicts
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.lab import Data, Lab
from reproduction.page import Section

WAYS = {
    "plain": "random actions (PPO: its own policy)",
    "counts": "a bonus / sqrt(n) for entering a state n times",
    "options": "eigenoptions of the known table, by the defaults of the library",
    "found": "eigenoptions of the part that was found",
}
DEEP_AGENTS = NAMES = ("PyTorch DQN", "DQN", "PPO")
DOMAINS = TASKS
QUICK_DOMAINS = ("Taxi",)
# The bonus is not tuned: 0.1 would hide the reward of the goal, and 0.0001 be less than
# the noise of a network.
DEEP_WAYS: dict[str, dict[str, float]] = {
    "plain": {},
    "counts": {"bonus": 0.01},
    "options": {},
}
RUN = ["task", "agent", "way"]


def run(lab: Lab, names: Sequence[str], tasks: Sequence[str]) -> Data:
    """Train agents: data frames ``runs``, ``seeds`` and ``summary``.

    ``seeds`` tells of states seen.
    """
    n_seeds = 2 if lab.quick else 10
    share = 0.05 if lab.quick else 1.0
    lab.describe("training deep agents")
    jobs = []
    for seed, task, agent, way in product(
        range(n_seeds), DEEP_STEPS, DEEP_AGENTS, DEEP_WAYS
    ):
        if agent not in names or task not in tasks:
            continue
        job = {"agent": agent, "task": task, "way": way, "seed": seed}
        jobs.append({**job, "settings": DEEP_WAYS[way], "share": share})
    results = lab.pmap(train_deep, jobs)
    runs = pd.DataFrame([row for rows, _ in results for row in rows])
    seen = pd.DataFrame([row for _, rows in results for row in rows])
    return {"summary": summarize(runs, seen), "runs": runs, "seeds": seen}


# Summary and claims


def summarize(runs: pd.DataFrame, seen: pd.DataFrame) -> pd.DataFrame:
    """One row per task, agent and way: means over seeds.

    Those of random goals have Student's 95% intervals.

    ``first_goal`` and ``learned`` are the mean over the random goals of a seed;
    ``median_first_goal`` is over all runs, ``native_goal`` and ``native_learned`` are
    of the native goal, ``mean_goal`` and ``median_goal`` over all states.
    """
    rows = []
    for key, group in runs.groupby(RUN, sort=False):
        drawn, native, budget = (
            group[group.goal >= 0],
            group[group.goal < 0],
            int(group.budget.iloc[0]),
        )
        row = dict(zip(RUN, key, strict=True)) | {
            "seeds": group.seed.nunique(),
            "budget": budget,
        }
        for name, limit in (("first_goal", budget), ("learned", 1)):
            means = drawn.groupby("seed")[name].mean()
            low, high = np.clip(mean_interval(means), 0, limit)
            row |= {name: means.mean(), f"{name}_low": low, f"{name}_high": high}
        row |= {
            "median_first_goal": drawn.first_goal.median(),
            "native_goal": native.first_goal.mean(),
        }
        rows.append(row | {"native_learned": native.learned.mean()})
    coverage = seen.drop(columns="seed").groupby(RUN, sort=False).mean().reset_index()
    return pd.DataFrame(rows).merge(coverage, on=RUN)


def claims(data: Data, agent: str) -> Iterator[Claim]:
    """Whether options find random goals sooner than the baselines, and lose no task.

    They are compared with plain alone and with all. A task is lost if only plain solves
    it.
    """
    rows = data["summary"][data["summary"].agent == agent].set_index(["way", "task"])
    runs = data["runs"][(data["runs"].agent == agent) & (data["runs"].goal >= 0)]
    means = runs.groupby(["way", "task", "seed"]).first_goal.mean()
    ours = [way for way in ("options", "found") if way in rows.index]
    baselines = [way for way in WAYS if way in rows.index and way not in ours]
    for way in ours:
        tasks = rows.loc[way].index
        for name, others in (("plain", ["plain"]), ("every baseline", baselines)):
            gains = {
                task: [means[other, task] - means[way, task] for other in others]
                for task in tasks
            }
            later = [
                task for task in tasks if min(gain.mean() for gain in gains[task]) <= 0
            ]
            surely = sum(
                min(mean_interval(gain)[0] for gain in gains[task]) > 0
                for task in tasks
            )
            yield Claim(
                id=f"{agent}-{way}-before-{name}".replace(" ", "-"),
                sentence=f"{agent} with options ({way}) finds random goals sooner than "
                f"{name}, on at least 80% of the tasks.",
                section="ours",
                tests=[len(later) <= 0.2 * len(tasks)],
                measured="the mean first goal is earlier on "
                f"{len(tasks) - len(later)} of {len(tasks)} tasks, on "
                f"{surely} of them beyond the error of measurement",
                evidence=f"Not on: {', '.join(later) or 'none'}.",
            )
        solved = {
            name: rows.loc[name, ["learned", "native_learned"]] > 0.5
            for name in ("plain", way)
        }
        lost = tasks[(solved["plain"] & ~solved[way]).any(axis=1)]
        yield Claim(
            id=f"{agent}-{way}-loses-none".replace(" ", "-"),
            sentence=f"There is no task that {agent} solves without options and does "
            f"not with options ({way}).",
            section="ours",
            tests=[not len(lost)],
            measured=f"lost: {', '.join(lost) or 'none'}",
            evidence="A task is solved where more than half of the runs learn random "
            "goals, or the native one.",
        )


# Page


def format_rows(summary: pd.DataFrame, agent: str) -> list[str]:
    """The results of an agent as rows of a Markdown table.

    A cell has the mean first random goal, and the number of seeds that learn it.
    """
    rows = []
    for task, group in summary[summary.agent == agent].groupby("task", sort=False):
        cells = [f"{agent}, {task}"]
        for row in group.sort_values(
            "way", key=lambda ways: ways.map(list(WAYS).index)
        ).itertuples():
            steps = "never"
            if row.first_goal < row.budget:
                steps = f"{row.first_goal:,.0f}"
            n_learned = round(row.learned * row.seeds)
            cells.append(f"{steps} ({n_learned} of {row.seeds})")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def describe(data: Data, *, quick: bool) -> tuple[str, Markup, list[Section]]:
    """Title, introduction and sections of the page; prints the summary."""
    summary, columns = (
        data["summary"],
        [*RUN, "learned", "first_goal", "native_goal", "median_goal"],
    )
    print(summary[columns].round(2).to_string(index=False))
    tasks = [
        (name, TASKS[name][0], len(task.states), task.limit, task.budget)
        for name, task in (
            (name, make_task(name)) for name in dict.fromkeys(summary.task)
        )
    ]
    about = (
        "Reaching the goal gives reward 1 and ends the episode. The native goal is "
        "where the environment ends an episode, or the state farthest from the start. "
        "Each seed draws its random goals from the states that are not an end of one "
        "of the known table's options or beside one; where all are (CliffWalking), "
        "from all states. An episode lasts at most twenty times as long as the way to "
        "the farthest state. Deep agents have fewer steps and one random goal per "
        "seed, observe the number of the state, and their value functions (but PPO's) "
        "have one weight per state and choice; their count bonus begins with values "
        "near 0."
    )
    tables = [
        pd.DataFrame(
            tasks, columns=["task", "what it is", "states", "time limit", "budget"]
        ),
        pd.DataFrame(WAYS.items(), columns=["way", "what it is"]),
    ]
    sections = [_make_section(data, agent) for agent in dict.fromkeys(summary.agent)]
    judged = [claim for section in sections for claim in section.claims]
    sections.append(
        Section("protocol", "Tasks, ways to explore, settings", about, tables)
    )
    introduction = Markup(
        "Every agent learns each task for the same number of primitive steps, by "
        "<code>python -m reproduction arena agents</code>; the steps in which options "
        "are found count. {} claims: {}."
    ).format(len(judged), count_verdicts(judged))
    return "Agents with and without options", introduction, sections


def _make_section(data: Data, agent: str) -> Section:
    """Tables, coverage and claims of an agent."""
    rows = data["summary"][data["summary"].agent == agent]
    tasks = list(dict.fromkeys(rows.task))
    ways = [way for way in WAYS if way in set(rows.way)]
    captions = [
        (
            "Mean steps to the first of the random goals, with its 95% interval; "
            "a run without a goal counts with its budget.",
            "{0.first_goal:,.0f} ({0.first_goal_low:,.0f} to {0.first_goal_high:,.0f})",
        ),
        ("Median of the same.", "{0.median_first_goal:,.0f}"),
        (
            "Share of runs whose greedy policy reaches the random goal at the end, "
            "with its 95% interval.",
            "{0.learned:.0%} ({0.learned_low:.0%} to {0.learned_high:.0%})",
        ),
        (
            "The native goal: mean steps to the first, and share of the seeds that "
            "learn it.",
            "{0.native_goal:,.0f} ({0.native_learned:.0%})",
        ),
        (
            "Every state as the goal: mean, and median over the states, of the steps "
            "to the first.",
            "{0.mean_goal:,.0f}; {0.median_goal:,.0f}",
        ),
    ]
    captions = captions[:3]

    shown: list[Any] = []
    for caption, text in captions:
        cells = [text.format(row) for row in rows.itertuples()]
        table = rows.assign(cell=cells).pivot(
            index="task", columns="way", values="cell"
        )
        shown.append((caption, table.loc[tasks, ways].reset_index()))

    with matplotlib.rc_context(STYLE):
        figure = draw_coverage(rows, tasks, ways)
    shown += ["States seen over time:", figure]

    return Section(
        agent.replace(" ", "-"),
        agent,
        f"{rows.seeds.iloc[0]:.0f} seeds.",
        shown,
        list(claims(data, agent)),
    )


def draw_coverage(rows: pd.DataFrame, tasks: Sequence[str], ways: Sequence[str]) -> Any:
    """Share of states seen over the steps: one graph per task, one line per way."""
    figure, axes = make_graphs(len(tasks), width=9, columns=5, sharey=True)
    for ax, task in zip(axes, tasks, strict=False):
        chosen = rows[rows.task == task].set_index("way")
        steps = np.array(MARKS) * chosen.budget.iloc[0]
        lines = {
            way: [chosen.loc[way, f"seen {mark:g}"] for mark in MARKS] for way in ways
        }
        draw_lines(ax, steps, lines, title=task, ylim=(0, 1.02))
        ax.set_xscale("log")
    for ax in axes[len(tasks) :]:
        ax.axis("off")
    axes[0].set_ylabel("states seen")
    return add_legend(figure, columns=6)
