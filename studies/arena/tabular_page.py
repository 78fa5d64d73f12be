"""The tabular part of ``docs/arena.md``: its tables and its picture, from stored runs.

Aggregates over tasks are for the page, tables by task for ``tables.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.markdown import make_table
from studies.arena import ablation, outside, rounds, views
from studies.arena.aggregates import Aggregate, bootstrap, bootstrap_tasks
from studies.arena.fresh_tasks import FRESH_TASKS
from studies.arena.tabular import ALL_TASKS, WAYS
from studies.arena.tasks import MARKS, TASKS, make_task

FOLDER = Path(__file__).parent
PICTURE = FOLDER.parents[1] / "docs" / "images" / "arena.svg"

SUITES: dict[str, Sequence[str]] = {
    "ten tasks": tuple(TASKS),
    "fresh tasks": tuple(FRESH_TASKS),
}
BASELINES = ("count bonus", "strong count bonus", "R-max", "known options")
# Ways whose mean first visit is their own; that of the others is explore's.
_EXPLORERS = (
    "plain",
    "epsilon-z",
    "count bonus",
    "strong count bonus",
    "R-max",
    "explore",
    "known options",
)
_AGENTS = (
    "plain",
    "epsilon-z",
    "count bonus",
    "strong count bonus",
    "Exploring",
    "found options",
    "followed",
    "known options",
)


def read(name: str) -> pd.DataFrame:
    """Return a stored table."""
    return pd.read_csv(FOLDER / f"{name}.csv")


def list_aggregates() -> dict[str, str]:
    """Return the tables of the page as Markdown, by name."""
    runs = read("tabular")
    return {
        "ratios": _show_ratios(runs),
        "losses": _list_losses(runs),
        "outside": outside.tabulate(read("outside")),
        "ways": _show_ways(runs),
    }


def list_tables() -> dict[str, str]:
    """Return the tables by task as Markdown, by name."""
    runs = read("tabular")
    tables = {}
    for suite, tasks in SUITES.items():
        tables[f"first visits, {suite}"] = _show_first_visits(runs, tasks)
        tables[f"goals, {suite}"] = _show_goals(runs, tasks)
        tables[f"learned, {suite}"] = _show_learned(runs, tasks)
    tables["views"] = _show_views(read("views"))
    tables["ablation ratios"] = _show_ablation_ratios(read("ablation"))
    tables["ablation"] = _show_ablation(read("ablation"))
    tables["doors"] = _show_doors(read("doors"), runs)
    return tables


def draw_picture() -> None:
    """Draw the picture of the page."""
    draw_coverage(read("coverage")).savefig(PICTURE)


def summarize_coverage(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean share of states seen at each mark, by task and way.

    The number of states and the budget of each task stand beside it.
    """
    columns = [f"seen {mark:g}" for mark in MARKS]
    seen = runs[runs.way.isin(_EXPLORERS)]
    means = seen.groupby(["task", "way"], sort=False)[columns].mean().reset_index()
    tasks = means.task.map(make_task)
    means["states"] = [len(task.states) for task in tasks]
    means["budget"] = [task.budget for task in tasks]
    return means


def draw_coverage(coverage: pd.DataFrame) -> Figure:
    """Share of states seen over the steps: a graph per task, a line per way."""
    tasks = [*TASKS, *FRESH_TASKS]
    figure, axes = make_graphs(len(tasks), width=9, columns=5, sharey=True)
    # The last row may have axes to spare.
    for ax, task in zip(axes, tasks, strict=False):
        rows = coverage[coverage.task == task].set_index("way")
        steps = np.array(MARKS) * rows.budget.iloc[0]
        lines = {}
        for way in _EXPLORERS:
            lines[way] = [rows.loc[way, f"seen {mark:g}"] for mark in MARKS]
        draw_lines(ax, steps, lines, title=task, ylim=(0, 1.02))
        ax.set_xscale("log")
    axes[0].set_ylabel("states seen")
    return add_legend(figure, columns=4)


def _name_columns(ways: Sequence[str]) -> list[str]:
    """Return the heads of columns, which say what needs the table in advance."""
    heads = []
    for way in ways:
        needs_table = WAYS[way].knows != "nothing"
        heads.append(f"*{way} (the table)*" if needs_table else way)
    return heads


def _show_first_visits(runs: pd.DataFrame, tasks: Sequence[str]) -> str:
    """The step at which a state is first seen, mean over states and runs."""
    # Every state counts as a goal: `mean_goal` is the mean over states, of one run.
    mean_steps = _pivot(runs, tasks, "mean_goal")
    states = read("coverage").groupby("task").states.first()
    rows = []
    for task in tasks:
        n_states = states[task]
        cells = [f"{mean_steps.loc[task, way]:,.0f}" for way in _EXPLORERS]
        rows.append([f"{task} ({n_states:,})", *cells])
    return make_table(["task (states)", *_name_columns(_EXPLORERS)], rows)


def measure_ratios(
    runs: pd.DataFrame, baseline: str, tasks: Sequence[str] = ALL_TASKS
) -> pd.Series:
    """Return the mean first visit of explore, divided by a baseline's, by task."""
    means = _pivot(runs, tasks, "mean_goal")
    ratios: pd.Series = means["explore"] / means[baseline]
    return ratios


def _show_ratios(runs: pd.DataFrame) -> str:
    """How much sooner `explore` is than others, on both sets of tasks and on all."""
    rows = []
    for baseline in BASELINES:
        means = []
        for tasks in (ALL_TASKS, *SUITES.values()):
            means.append(str(bootstrap_tasks(measure_ratios(runs, baseline, tasks))))
        ratios = measure_ratios(runs, baseline)
        span = f"{ratios.min():.2f} to {ratios.max():.2f} ({ratios.idxmax()})"
        n_won = int((ratios < 1).sum())
        rows.append([baseline, *means, span, f"{n_won} of {len(ratios)}"])
    head = ["explore against", "all twenty", *SUITES, "by task", "below 1"]
    return make_table(head, rows)


def _show_goals(runs: pd.DataFrame, tasks: Sequence[str]) -> str:
    """Mean steps to random goals."""
    ways = [way for way in _AGENTS if way not in ("followed", "found options")]
    ways.insert(4, "explore")
    means = _pivot(runs, tasks, "first_goal")
    rows = []
    for task in tasks:
        rows.append([task, *(_format_steps(means.loc[task, way]) for way in ways)])
    return make_table(["task", *_name_columns(ways)], rows)


def _show_learned(runs: pd.DataFrame, tasks: Sequence[str]) -> str:
    """Share of random goals that are learned."""
    means = _pivot(runs, tasks, "learned")
    rows = []
    for task in tasks:
        rows.append([task, *(_format_share(means.loc[task, way]) for way in _AGENTS)])
    return make_table(["task", *_name_columns(_AGENTS)], rows)


def measure_learned(
    runs: pd.DataFrame, tasks: Sequence[str], way: str
) -> Aggregate | None:
    """Return the interquartile mean of the share of goals that are learned.

    It is over the tasks that all ways were run on, with equally many seeds; None if the
    way learns no goals.
    """
    if way not in _AGENTS:
        return None
    counts = runs.dropna(subset="learned").groupby(["task", "way"]).size().unstack()
    full = [task for task in tasks if (counts.loc[task, list(_AGENTS)] == 10).all()]
    scores = [_find_scores(runs, task, way, "learned") for task in full]
    return bootstrap(np.transpose(scores))


def _show_ways(runs: pd.DataFrame) -> str:
    """What each way is and knows, and how many goals it learns."""
    rows = []
    for way, column in WAYS.items():
        shares = []
        for tasks in SUITES.values():
            share = measure_learned(runs, tasks, way)
            shares.append("" if share is None else str(share))
        name = way if column.knows == "nothing" else f"*{way}*"
        rows.append([name, column.about, *shares])
    return make_table(["way", "what it is", *SUITES], rows)


def _list_losses(runs: pd.DataFrame) -> str:
    """Where `explore` sees states later than another way, by however little."""
    lines = []
    for tasks in SUITES.values():
        means = _pivot(runs, tasks, "mean_goal")
        for task in tasks:
            ours = means.loc[task, "explore"]
            for way in _EXPLORERS:
                other = means.loc[task, way]
                if other < ours:
                    lines.append(f"* {task}: {way} {other:,.0f}, explore {ours:,.0f}\n")
    return "".join(lines)


def measure_views(table: pd.DataFrame, name: str) -> float:
    """Return states that `explore` sees by views, over those of the best count."""
    means = table[table.env == name].groupby("way").states.mean()
    best = max(means["count bonus"], means["strong count bonus"])
    return float(means["explore, view"] / best)


def _show_views(table: pd.DataFrame) -> str:
    means = table.pivot_table(index="env", columns="way", values="states")
    rows = []
    for name, steps in views.STEPS.items():
        states = [f"{means.loc[name, way]:,.0f}" for way in views.WAYS]
        rows.append([f"{name}, {steps:,} steps", *states])
    return make_table(["", *views.WAYS], rows)


def measure_ablation(table: pd.DataFrame, walker: str, kind: str) -> pd.Series:
    """Return first visits relative to the same walker without options, by task."""
    means = table.pivot_table(
        index=["walker", "kind"], columns="task", values="mean_goal"
    )
    return means.loc[(walker, kind)] / means.loc[(walker, "none")]


def _show_ablation_ratios(table: pd.DataFrame) -> str:
    """First visits with options relative to the same walker without them."""
    rows = []
    for kind in ablation.KINDS:
        if kind == "none":
            continue
        cells = []
        for walker in ablation.WALKERS:
            ratios = measure_ablation(table, walker, kind)
            span = f"({ratios.min():.2f}–{ratios.max():.2f})"
            cells.append(f"{average(ratios):.2f} {span}")
        rows.append([kind, *cells])
    return make_table(["options", *ablation.WALKERS], rows)


def measure_doors(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return first visits relative to `explore`, a row per task, a column per way."""
    means = _join_first_visits(table, runs)
    return means.drop(columns="explore").div(means["explore"], axis=0)


def average(ratios: pd.Series) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


def _show_ablation(table: pd.DataFrame) -> str:
    means = table.pivot_table(
        index=["walker", "kind"], columns="task", values="mean_goal"
    )
    rows = []
    for walker in ablation.WALKERS:
        for kind in ablation.KINDS:
            steps = [
                f"{means.loc[(walker, kind), task]:,.0f}" for task in ablation.TASKS
            ]
            rows.append([walker, kind, *steps])
    return make_table(["walker", "options", *ablation.TASKS], rows)


def _show_doors(table: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The step at which a state is first seen, with options found in rounds."""
    means = _join_first_visits(table, runs)
    rows = []
    for task, steps in means.iterrows():
        rows.append([task, *[f"{mean:,.0f}" for mean in steps]])
    return make_table(["task", *means.columns], rows)


def _join_first_visits(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean first visits: a row per task and a column per way.

    The ways are those of the rounds, of `table`, between two of the arena, of `runs`.
    """
    means = _pivot(table, rounds.TASKS, "mean_goal")[list(rounds.WAYS)]
    arena_means = _pivot(runs, rounds.TASKS, "mean_goal")
    means.insert(0, "plain", arena_means["plain"])
    means["explore"] = arena_means["explore"]
    return means


def _pivot(runs: pd.DataFrame, tasks: Sequence[str], column: str) -> pd.DataFrame:
    """Return means over seeds, one row per task and one column per way."""
    chosen = runs[runs.task.isin(list(tasks))]
    table = chosen.pivot_table(index="task", columns="way", values=column)
    return table.loc[list(tasks)]


def _find_scores(runs: pd.DataFrame, task: str, way: str, column: str) -> Any:
    """Return the scores of the runs of one way on one task."""
    rows = runs[(runs.task == task) & (runs.way == way)]
    return rows[column].dropna().to_numpy()


def _format_steps(steps: float) -> str:
    return "" if np.isnan(steps) else f"{steps:,.0f}"


def _format_share(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.0%}"


def store(tables: Mapping[str, pd.DataFrame], folder: Path = FOLDER) -> None:
    """Write the tables that the page is made of."""
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
