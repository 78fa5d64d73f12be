"""The arena of agents as a command: runs, tables, pictures of learning curves and one page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from eigenoptions._validation import check_choice
from reproduction import panels as plots
from reproduction.arena import Contest, Report
from reproduction.arena.agents import (
    EXPLORATIONS,
    SETTINGS,
    TASKS,
    claims,
    jobs,
    left_out,
    play,
    tabulated,
)
from reproduction.experiment import UNDECIDED, Claim, Pmap, Results, Settings
from reproduction.page import CLASSES, duration, files_of, inline, sheet, terms, versions
from reproduction.store import Store
from reproduction.tables import Row, column, distinct, where

log = logging.getLogger("eigenoptions")


def study(settings: Settings, store: Store, pmap: Pmap, tell: Callable[[str], object]) -> Results:
    """Train agents with and without options.

    By default each task has its own agents and their ways to explore (`agents.TASKS`): all five agents on four rooms
    and on the 5 x 5 rooms, the faster ones on the others. Agents that are named (``"DQN:options"``: with one way) run
    on every task. Whatever is named, the results are those of all runs of this size that are stored.
    """
    for agent, why in left_out(settings).items():
        log.warning("%s is left out: it %s", agent, why)
    able = {a: ways for a, ways in settings["agents"].items() if a not in left_out(settings)}
    tell("training agents")
    pmap(play, jobs({**settings, "agents": able}))
    every = jobs({**SETTINGS[settings["size"]], "every_task": True})
    work = [job for job in every if store.get(play, job) is not None]
    return tabulated(work, store.pmap(play, work))


def report(results: Results, settings: Settings, _: float) -> Report:
    """First goals and successes, and the page; seconds are those of the processor."""
    seconds, judged = float(column(results["runs"], "seconds").sum()), claims(results)
    tasks = distinct(results["summary"], "task")
    texts = {f"data/{task}.svg": plots.svg(figure(results, task)) for task in tasks}
    texts["index.html"] = page(results, judged, SETTINGS[settings["size"]], seconds)
    heads = ("task", "agent", "exploration", ">first goal", ">greedy success")
    rows = [
        (r["task"], r["agent"], r["exploration"], _first(r), f"{r['greedy']}/{r['runs']}")
        for r in results["summary"]
    ]
    data = {"summary": results["summary"], "claims": [vars(claim) for claim in judged], "seconds": seconds}
    return Report(heads, rows, data, texts)


def chosen(size: str, agents: Sequence[str] = (), tasks: Sequence[str] = ()) -> Settings:
    """Settings of a size, for some agents and tasks.

    >>> chosen("quick", ["DQN:plain", "DQN:options"], ["four-rooms"])["agents"]
    {'DQN': ['plain', 'options']}
    """
    settings = SETTINGS[check_choice("size", size, tuple(SETTINGS))]
    for task in tasks:
        check_choice("domains", task, tuple(TASKS))
    named: dict[str, list[str]] = {}
    for name in agents:
        agent, _, way = name.partition(":")
        ways = named.setdefault(check_choice("methods", agent, tuple(settings["agents"])), [])
        ways += [check_choice("methods", way, tuple(EXPLORATIONS))] if way else EXPLORATIONS
    return {
        **settings,
        "size": size,
        "agents": named or settings["agents"],
        "every_task": bool(agents),
        "tasks": list(tasks) or settings["tasks"],
    }


def figure(results: Results, task: str) -> Any:
    """Learning curves of a task: one panel per agent, one line per way to explore."""
    rows = where(results["curves"], task=task)
    ways = [way for way in EXPLORATIONS if where(rows, exploration=way)]
    steps = distinct(rows, "steps")
    nothing = [{"mean": np.nan, "low": np.nan, "high": np.nan}] * len(steps)
    panels: list[plots.Panel] = []
    for agent in distinct(rows, "agent"):
        # A way that an agent does not have is an empty line, so that colours mean the same in all panels.
        lines = {way: where(rows, agent=agent, exploration=way) or nothing for way in ways}
        panels.append(
            plots.curve_panel(
                steps,
                {way: column(points, "mean") for way, points in lines.items()},
                agent,
                bands={
                    way: (column(points, "low"), column(points, "high"))
                    for way, points in lines.items()
                    if way in ("plain", "options")
                },
                xlabel="primitive steps",
                ylabel="" if panels else "greedy success",
                limits=(-0.02, 1.02),
                legend=not panels,
            )
        )
    return plots.figure(panels, columns=min(3, len(panels)), width=plots.PAGE)


def page(results: Results, judged: list[Claim], settings: Settings, seconds: float) -> str:
    """HTML of all tasks, from results."""
    n = settings["seeds"][1] - settings["seeds"][0]
    tasks = distinct(results["summary"], "task")
    title = "Agents with and without options"
    body = f"""<header><h1>{title}</h1>
<p>By <code>eigenoptions arena agents</code>: every agent learns each task for the same number of primitive steps, and
the steps in which options are discovered count. Settings were chosen on other seeds than the {n} of this page; a dash
is a run that does not exist or was not made.</p>
<p class="facts">{len(results["runs"])} runs, <b>{duration(seconds)}</b> of CPU time; {escape(versions())}.</p></header>
<main><section><h2>Ways to explore</h2><dl>{terms(EXPLORATIONS)}</dl></section>
<section id="claims"><h2>Do options help?</h2>{_verdicts(judged)}</section>
{"".join(_section(results, task, judged) for task in tasks)}
<details><summary>Settings and data</summary><dl>{terms(settings)}</dl>
<p>{files_of(results)}</p></details>
</main>"""
    return sheet(title, body)


def _verdicts(judged: list[Claim]) -> str:
    """Numbers of claims per verdict; the claims themselves stand with their tasks."""
    chips = " ".join(
        f'<span class="chip {kind}">{sum(c.verdict == v for c in judged)} {v}</span>'
        for v, kind in CLASSES.items()
        if v != UNDECIDED
    )
    return (
        f"<p>{chips}</p><p>One question per task and agent: is the median first goal at most a third of the plain "
        "agent's, and are at least as many runs successful in the end?</p>"
    )


def _section(results: Results, task: str, judged: list[Claim]) -> str:
    """Table, learning curves and claims of a task."""
    rows = where(results["summary"], task=task)
    ways = [way for way in EXPLORATIONS if where(rows, exploration=way)]
    lines = "".join(
        f"<tr><td>{escape(agent)}</td>{''.join(_cell(rows, agent, way) for way in ways)}</tr>"
        for agent in distinct(rows, "agent")
    )
    about = TASKS[task]
    drawn = inline(plots.svg(figure(results, task)), task, f"Learning curves of {task}")
    evidence = "".join(
        f'<li><span class="chip {CLASSES[c.verdict]}">{c.verdict}</span> {escape(f"{c.sentence} {c.measured}.")}</li>'
        for c in judged
        if c.section == task
    )
    place = about["env"].removeprefix("minigrid:") if "env" in about else f"start to goal in a maze, {task}"
    return f"""<section id="{task}"><h2>{escape(task)}</h2>
<p>{escape(place)}; {rows[0]["budget"]:,} primitive steps per run, discount {about["gamma"]}, {about["n_options"]}
options (found in {about["discovery"]:,} steps at full length). In each cell: median steps to the first goal with its
95% interval, and the number of runs whose greedy policy reaches the goal at the end.</p>
<div style="overflow-x:auto"><table><thead><tr><th>agent</th>{"".join(f"<th>{way}</th>" for way in ways)}</tr></thead>
<tbody>{lines}</tbody></table></div>
<figure><div class="sheet">{drawn}</div><figcaption>Share of seeds whose greedy policy reaches the goal. Bands: 95%
(Wilson).</figcaption></figure><ul class="evidence">{evidence}</ul></section>
"""


def _cell(rows: list[Row], agent: str, way: str) -> str:
    mine = where(rows, agent=agent, exploration=way)
    if not mine:
        return "<td>–</td>"
    r = mine[0]
    return f'<td style="white-space:nowrap">{_first(r)}<br>{r["greedy"]} of {r["runs"]}</td>'


def _first(row: Row) -> str:
    """Median first goal and its interval; a median at the budget means that most runs found no goal."""
    if row["first_goal"] >= row["budget"]:
        return f"none in {row['budget']:,}"
    return f"{row['first_goal']:,.0f} ({row['first_goal_low']:,.0f} to {row['first_goal_high']:,.0f})"


CONTEST = Contest(
    "agents", "agents with and without options, at equal primitive steps", chosen, study, report
)
