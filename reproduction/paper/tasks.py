"""Appendix D: the same eigenoptions in ten tasks of the 4-room domain, beside bottleneck options."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.mdp import graph, maze
from reproduction import Claim, Note, Pmap, Results, Settings, enough, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import ALMOST_ALL, NEAR, Difference, difference
from reproduction.paper.jobs import (
    BOTTLENECK,
    LEARNING,
    PRIMITIVE,
    agent,
    eigen,
    eigenoptions,
    learn_all,
)
from reproduction.tables import curves_of, learning_tables, series, where

# (row, column) of start and goal: corners, cells beside doorways, and one of each.
PAIRS = [
    [[11, 1], [1, 11]],
    [[1, 1], [11, 11]],
    [[3, 5], [10, 7]],
    [[11, 1], [6, 9]],
    [[1, 11], [7, 2]],
]
SETTINGS = sizes(
    {
        **LEARNING,
        "maze": "four-rooms",
        "pairs": PAIRS,
        "options": 64,
        "episodes": 250,
        "seed": 2017,
        "every": 5,
    },
    pairs=PAIRS[2:4],
    runs=4,
    episodes=20,
    block=2,
)
EIGEN, DOORS, BARE = AGENTS = ("eigenoptions", "bottleneck options", "primitive actions")


def run(settings: Settings, pmap: Pmap) -> Results:
    """Returns of three agents in each task; task 2i + 1 swaps the start and goal of task 2i."""
    mdp = maze(settings["maze"])
    coords = np.array(mdp.coords)
    state = {tuple(cell): s for s, cell in enumerate(coords.tolist())}
    away = shortest_path(graph(mdp), unweighted=True)[:, rooms(mdp)[1]].min(axis=1)
    ends = [
        [state[tuple(cell)] for cell in cells] for pair in settings["pairs"] for cells in (pair, pair[::-1])
    ]
    tasks = [
        {"task": i, "start": start, "goal": goal, "goal_to_doorway": int(away[goal])}
        for i, (start, goal) in enumerate(ends, start=1)
    ]
    how = {EIGEN: eigen(settings["options"]), DOORS: BOTTLENECK, BARE: PRIMITIVE}
    agents = [
        agent(
            settings["maze"], how[name], {"start": t["start"], "goal": t["goal"]}, task=t["task"], agent=name
        )
        for t in tasks
        for name in AGENTS
    ]
    tables = learning_tables(learn_all(pmap, settings, agents), settings["every"])
    stops = eigenoptions(mdp, settings["options"]).termination.any(axis=0)
    ended = [{"states": mdp.n_states, "ends_of_options": int(stops.sum())}]
    return {"coords": coords, "tasks": tasks, "ends": ended, **tables}


def figure(results: Results) -> Any:
    """Each task as a map with S and G beside its curves; the task on the right swaps that on the left."""
    panels = []
    for task in results["tasks"]:
        marks = {task["start"]: "S", task["goal"]: "G"}
        panels.append(plots.maze_panel(results["coords"], marks, f"task {task['task']}"))
        lines = {agent: where(results["curves"], task=task["task"], agent=agent) for agent in AGENTS}
        panels.append(
            plots.curve_panel(
                xlabel="episode" if task["task"] > len(results["tasks"]) - 2 else "",
                ylabel="return",
                legend=task["task"] == 1,
                **curves_of(lines),
            )
        )
    return plots.figure(panels, columns=4, width=plots.PAGE, ratios=(1, 1.9, 1, 1.9))


def claims(results: Results) -> list[Claim]:
    """Where eigenoptions help, and where bottleneck options do."""
    doors, bare = _gaps(results, DOORS, BARE), _gaps(results, EIGEN, BARE)
    hinder, won = [(-d).above() for d in doors.values()], [d.above() for d in bare.values()]
    ends = results["ends"][0]
    left = ends["states"] - ends["ends_of_options"]
    return [
        judge(
            "bottlenecks-hinder-learning",
            enough(hinder, len(doors)),
            enough(hinder, len(doors) // 2 + 1),
            **_counted(doors),
            rows=doors,
        ),
        _about_swaps(results),
        judge(
            "outperform-primitive",
            enough(won, ALMOST_ALL * len(bare)),
            enough(won, len(bare) // 2 + 1),
            **_counted(bare),
            rows=bare,
        ),
        judge("not-all-regions", left > 0, left=left, ends=ends),
        *_about_doorways(results),
    ]


def _about_swaps(results: Results) -> Claim:
    runs = _runs(results)[EIGEN]
    pairs = {t["task"]: (runs[t["task"]], runs[t["task"] + 1]) for t in results["tasks"][::2]}
    swap = {i: difference(one, other, len(pairs)) for i, (one, other) in pairs.items()}
    same = [d.equal() for d in swap.values()]
    return judge(
        "swap-no-effect",
        *same,
        largest=max(abs(d.mean) for d in swap.values()),
        equal=same.count(True),
        same=same,
        rows=[(i, i + 1, [x.mean() for x in pairs[i]], d) for i, d in swap.items()],
    )


def _about_doorways(results: Results) -> list[Claim]:
    away = {t["task"]: t["goal_to_doorway"] for t in results["tasks"]}
    far, near = (
        _gaps(results, EIGEN, DOORS, [i for i in away if (away[i] > NEAR) == is_far])
        for is_far in (True, False)
    )
    lead = [float(np.mean([d.mean for d in gaps.values()])) for gaps in (far, near)]
    rows = [[(i, away[i], d) for i, d in gaps.items()] for gaps in (far, near)]
    tests = (d.above() for d in far.values())
    return [
        judge("outperform-bottlenecks-far", *tests, **_counted(far), rows=rows[0]),
        judge("bottlenecks-competitive-near", lead[1] < lead[0], lead=lead, rows=rows[1]),
    ]


def notes(results: Results) -> list[Note]:
    """Why swaps matter a little."""
    return [note("swaps")]


def _runs(results: Results) -> dict[str, dict[int, Any]]:
    """``(runs,)`` mean returns by agent and task."""
    return series(results["runs"], "mean_return", "agent", "task")


def _gaps(results: Results, agent: str, other: str, tasks: list[int] | None = None) -> dict[int, Difference]:
    """Difference of two agents in each task, or in some tasks that are judged together."""
    group, runs = [t["task"] for t in results["tasks"]] if tasks is None else tasks, _runs(results)
    return {i: difference(runs[agent][i], runs[other][i], len(group)) for i in group}


def _counted(gaps: dict[int, Difference]) -> dict[str, int]:
    """Number of tasks, and in how many of them the first agent is better and worse."""
    better, worse = (sum(getattr(d, name) for d in gaps.values()) for name in ("better", "worse"))
    return {"n_tasks": len(gaps), "better": better, "worse": worse}


def headline(results: Results) -> tuple[str, str]:
    """Tasks in which eigenoptions help."""
    gaps = _counted(_gaps(results, EIGEN, BARE))
    words = "tasks are learned faster with the same 64 eigenoptions than with primitive actions"
    return f"{gaps['better']} of {gaps['n_tasks']}", words


EXPERIMENT = experiment(
    "tasks", SETTINGS, run=run, figure=figure, claims=claims, notes=notes, headline=headline
)
