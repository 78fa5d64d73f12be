"""The tabular part of ``docs/arena.md``: its tables and its picture, from stored runs.

Each table stands between two comments, ``<!-- arena: NAME -->`` and ``<!-- end -->``.
`find_differences` says which of them are not as stored, and can put them right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from eigenoptions.plots.style import STYLE
from reproduction.arena import ablation, deep_page, rounds, views
from reproduction.arena.aggregates import Aggregate, bootstrap, bootstrap_ratio
from reproduction.arena.fresh_tasks import FRESH_TASKS
from reproduction.arena.markdown import make_table
from reproduction.arena.tabular import WAYS
from reproduction.arena.tasks import MARKS, TASKS, make_task
from reproduction.drawing import add_legend, draw_lines, make_graphs

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "arena.md"
PICTURE = PAGE.parent / "images" / "arena.svg"

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


def list_tables() -> dict[str, str]:
    """Return every table of the page as Markdown, by its name."""
    runs = read("tabular")
    tables = {"ways": _describe_ways()}
    for suite, tasks in SUITES.items():
        tables[f"first visits, {suite}"] = _show_first_visits(runs, tasks)
        tables[f"ratios, {suite}"] = _show_ratios(runs, tasks)
        tables[f"goals, {suite}"] = _show_goals(runs, tasks)
        tables[f"learned, {suite}"] = _show_learned(runs, tasks)
    tables["losses"] = _list_losses(runs)
    tables["views"] = _show_views(read("views"))
    tables["ablation"] = _show_ablation(read("ablation"))
    tables["doors"] = _show_doors(read("doors"), runs)
    return tables | deep_page.list_tables()


def find_differences(write: bool = False) -> list[str]:
    """Return which tables of the page are not as stored; with `write`, correct them."""
    text = PAGE.read_text(encoding="utf-8")
    differences = []
    for name, table in list_tables().items():
        begin = f"<!-- arena: {name} -->\n"
        pattern = re.escape(begin) + "(.*?)" + re.escape("<!-- end -->")
        match = re.search(pattern, text, re.DOTALL)
        if match is None:
            differences.append(f"docs/arena.md: no table {name!r}")
            continue
        if match[1] != table:
            differences.append(f"docs/arena.md: table {name!r} is not as stored")
            text = text[: match.start(1)] + table + text[match.end(1) :]
    if write:
        PAGE.write_text(text, encoding="utf-8")
    return differences


def write_page() -> None:
    """Write the tables into the page, and draw its picture."""
    find_differences(write=True)
    with matplotlib.rc_context(STYLE):
        draw_coverage(read("coverage")).savefig(PICTURE)
    deep_page.draw_picture()


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


def _describe_ways() -> str:
    rows = []
    for way, column in WAYS.items():
        rows.append([way, column.knows, column.about])
    return make_table(["column", "knows in advance", "what it is"], rows)


def _name_columns(ways: Sequence[str]) -> list[str]:
    """Return the heads of columns, which say what needs the table in advance."""
    heads = []
    for way in ways:
        needs_table = WAYS[way].knows != "nothing"
        heads.append(f"*{way} (the table)*" if needs_table else way)
    return heads


def _show_first_visits(runs: pd.DataFrame, tasks: Sequence[str]) -> str:
    """Mean over states and runs of the step of the first visit."""
    means = _pivot(runs, tasks, "mean_goal")
    states = read("coverage").groupby("task").states.first()
    rows = []
    for task in tasks:
        n_states = states[task]
        cells = [f"{means.loc[task, way]:,.0f}" for way in _EXPLORERS]
        rows.append([f"{task} ({n_states:,})", *cells])
    return make_table(["task (states)", *_name_columns(_EXPLORERS)], rows)


def measure_ratio(
    runs: pd.DataFrame, tasks: Sequence[str], baseline: str
) -> tuple[Aggregate, pd.Series]:
    """Return the geometric mean of explore / baseline, and the ratio of each task."""
    scores = []
    others = []
    for task in tasks:
        scores.append(_find_scores(runs, task, "explore", "mean_goal"))
        others.append(_find_scores(runs, task, baseline, "mean_goal"))
    means = _pivot(runs, tasks, "mean_goal")
    return bootstrap_ratio(scores, others), means["explore"] / means[baseline]


def _show_ratios(runs: pd.DataFrame, tasks: Sequence[str]) -> str:
    rows = []
    for baseline in BASELINES:
        mean, by_task = measure_ratio(runs, tasks, baseline)
        best = f"{by_task.min():.2f} ({by_task.idxmin()})"
        worst = f"{by_task.max():.2f} ({by_task.idxmax()})"
        n_won = int((by_task < 1).sum())
        won = f"{n_won} of {len(tasks)}"
        rows.append([f"explore / {baseline}", str(mean), best, worst, won])
    head = ["", "geometric mean (95% interval)", "lowest", "highest", "below 1"]
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
    """Share of random goals that are learned, and its interquartile mean."""
    means = _pivot(runs, tasks, "learned")
    rows = []
    for task in tasks:
        rows.append([task, *(_format_share(means.loc[task, way]) for way in _AGENTS)])

    # Over the tasks that all ways were run on, with equally many seeds.
    counts = runs.dropna(subset="learned").groupby(["task", "way"]).size().unstack()
    full = [task for task in tasks if (counts.loc[task, list(_AGENTS)] == 10).all()]
    aggregates = []
    for way in _AGENTS:
        scores = [_find_scores(runs, task, way, "learned") for task in full]
        result = bootstrap(np.transpose(scores))
        aggregates.append(f"{result.value:.2f} ({result.low:.2f} to {result.high:.2f})")
    rows.append([f"interquartile mean, {len(full)} tasks", *aggregates])
    return make_table(["task", *_name_columns(_AGENTS)], rows)


def _list_losses(runs: pd.DataFrame) -> str:
    """Where `explore` sees states later than another way, beyond or within error."""
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


def _show_views(table: pd.DataFrame) -> str:
    means = table.pivot_table(index="env", columns="way", values="states")
    rows = []
    for name, steps in views.STEPS.items():
        states = [f"{means.loc[name, way]:,.0f}" for way in views.WAYS]
        best = max(
            means.loc[name, "count bonus"], means.loc[name, "strong count bonus"]
        )
        ratio = means.loc[name, "explore, view"] / best
        rows.append([name, f"{steps:,}", *states, f"{ratio:.1f}"])
    head = ["", "steps", *views.WAYS, "explore, view / best count bonus"]
    return make_table(head, rows)


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
    means = table.pivot_table(index="task", columns="way", values="mean_goal")
    ours = _pivot(runs, rounds.TASKS, "mean_goal")
    rows = []
    for task in rounds.TASKS:
        steps = [f"{means.loc[task, way]:,.0f}" for way in rounds.WAYS]
        plain = f"{ours.loc[task, 'plain']:,.0f}"
        rows.append([task, plain, *steps, f"{ours.loc[task, 'explore']:,.0f}"])
    return make_table(["task", "plain", *rounds.WAYS, "explore"], rows)


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
