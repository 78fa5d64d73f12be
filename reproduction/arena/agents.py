"""Agents with and without options on the same tasks, at equal primitive steps.

The steps of discovery count.

Settings of the ways to explore are chosen by `tune` on seeds from 100 on, the same grid
of agent settings for all of them, and for the baselines also one of their own; the
options' own are the defaults of the library. Every seed draws goals of its own. The
numbers of the documentation are in ``agents.csv`` beside this file.
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
from reproduction.arena.tables import train_table
from reproduction.arena.tasks import MARKS, TASKS, make_task
from reproduction.arena.training import DEEP_STEPS, train_deep
from reproduction.claims import Claim, count_verdicts, list_items
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.lab import Data, Lab
from reproduction.page import Section

# The ways to explore, and the values of their own settings among which `tune` chooses.
WAYS = {
    "plain": "random actions (PPO: its own policy)",
    "sticky": "a random action is the last one again with probability repeat",
    "repeats": "a random action lasts n steps with probability n ** -zeta: "
    "epsilon-z-greedy (Dabney et al., 2021)",
    "counts": "a bonus / sqrt(n) for entering a state n times, and initial values "
    "that are as optimistic",
    "options": "eigenoptions of the known table, by the defaults of the library",
    "found": "eigenoptions found by cycle in the first steps (their share: discovery), "
    "without a reward",
}
SETTINGS = {
    "sticky": {"repeat": (0.1, 0.25, 0.5, 0.75, 0.9)},
    "repeats": {"zeta": (1.25, 1.5, 2.0, 3.0, 5.0)},
    "counts": {"bonus": (0.1, 0.01, 0.001, 0.0001, 0.00001)},
    "found": {"discovery": (0.05, 0.2)},
}
EXPLORE_SHARES = (0.02, 0.5, 1.0)
NAMES = TABLES, *DEEP_AGENTS = ("Q-learning", "PyTorch DQN", "DQN", "PPO")
DOMAINS, QUICK_DOMAINS = TASKS, ("Taxi",)
# The bonus is not tuned: 0.1 would hide the reward of the goal, and 0.0001 be less than
# the noise of a network.
DEEP_WAYS: dict[str, dict[str, float]] = {
    "plain": {},
    "counts": {"bonus": 0.01},
    "options": {},
}
RUN = ["task", "agent", "way"]


def run(lab: Lab, names: Sequence[str], tasks: Sequence[str]) -> Data:
    """Train agents: data frames ``runs``, ``seeds``, ``tuning`` and ``summary``.

    ``seeds`` tells of states seen.
    """
    seeds, deep_seeds, goals, share = (
        (2, 2, 3, 0.05) if lab.quick else (10, 10, 10, 1.0)
    )
    lab.describe("choosing settings")
    tuning, chosen = tune(lab, tasks, *(1, 2) if lab.quick else (2, 3))
    lab.describe("training tables")
    jobs = [
        {
            "task": task,
            "way": way,
            "seed": seed,
            "goals": goals,
            "settings": chosen[way],
        }
        for task, way, seed in product(tasks, WAYS, range(seeds))
    ]
    results = lab.pmap(train_table, jobs if TABLES in names else [])
    lab.describe("training deep agents")
    jobs = [
        {
            "agent": agent,
            "task": task,
            "way": way,
            "seed": seed,
            "settings": DEEP_WAYS[way],
            "share": share,
        }
        for seed, task, agent, way in product(
            range(deep_seeds), DEEP_STEPS, DEEP_AGENTS, DEEP_WAYS
        )
        if agent in names and task in tasks
    ]
    results += lab.pmap(train_deep, jobs)
    runs, seen = (
        pd.DataFrame([row for result in results for row in result[part]])
        for part in (0, 1)
    )
    return {
        "summary": summarize(runs, seen),
        "runs": runs,
        "seeds": seen,
        "tuning": tuning,
    }


def tune(
    lab: Lab, tasks: Sequence[str], seeds: int, goals: int
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Scores of all settings, and the best of each way.

    The score is the mean share of the budget until the first goal; the least is best.

    A run that does not learn the goal counts with its whole budget. One setting serves
    all tasks.
    """
    grids = {
        way: {"explore_share": EXPLORE_SHARES, **SETTINGS.get(way, {})} for way in WAYS
    }
    grid = [
        (way, dict(zip(names, values, strict=True)))
        for way, names in grids.items()
        for values in product(*names.values())
    ]
    jobs = [
        {
            "task": task,
            "way": way,
            "seed": 100 + seed,
            "goals": goals,
            "settings": settings,
        }
        for task, seed, (way, settings) in product(tasks, range(seeds), grid)
    ]
    scores = []
    for job, (rows, _) in zip(jobs, lab.pmap(train_table, jobs), strict=True):
        score = np.mean(
            [
                row["first_goal"] / row["budget"] if row["learned"] else 1.0
                for row in rows
            ]
        )
        scores.append((job["way"], list_items("{} {:g}", job["settings"]), score))
    scores = pd.DataFrame(scores, columns=["way", "settings", "score"])
    scores = scores.groupby(["way", "settings"], sort=False).score.mean().reset_index()
    best = scores.groupby("way").score.idxmin()
    return scores.assign(chosen=scores.index.isin(best)), {
        way: grid[i][1] for way, i in best.items()
    }


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


def format_rows(summary: pd.DataFrame, agent: str = TABLES) -> list[str]:
    """The results of an agent as rows of a Markdown table.

    A cell has the mean first random goal, and the share of runs that learn it.

    Deep agents have one run per seed: the number of seeds that learn it.
    """
    rows = []
    for task, group in summary[summary.agent == agent].groupby("task", sort=False):
        cells = [task if agent == TABLES else f"{agent}, {task}"]
        for row in group.sort_values(
            "way", key=lambda ways: ways.map(list(WAYS).index)
        ).itertuples():
            steps = (
                f"{row.first_goal:,.0f}"
                if agent == TABLES or row.first_goal < row.budget
                else "never"
            )
            seeds = f"{round(row.learned * row.seeds)} of {row.seeds}"
            cells.append(
                f"{steps} ({f'{row.learned:.0%}' if agent == TABLES else seeds})"
            )
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
    settings = (
        "Settings are chosen on other seeds, one for all tasks: the least score, "
        "which is the mean share of the budget until the first goal; a run that does "
        "not learn the goal counts with its budget."
    )
    tables = [
        pd.DataFrame(
            tasks, columns=["task", "what it is", "states", "time limit", "budget"]
        ),
        pd.DataFrame(WAYS.items(), columns=["way", "what it is"]),
        (settings, data["tuning"]),
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
    if agent != TABLES:
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
