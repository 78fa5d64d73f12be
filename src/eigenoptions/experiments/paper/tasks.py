"""Appendix D: the same eigenoptions in ten tasks of the 4-room domain, beside bottleneck options."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from eigenoptions import plots
from eigenoptions.discovery import rooms
from eigenoptions.experiments.experiment import (
    ALMOST_ALL,
    NEAR,
    Claim,
    Experiment,
    Pmap,
    Results,
    Settings,
    difference,
    verdict,
)
from eigenoptions.experiments.paper.jobs import PRIMITIVE, eigen, learn_all
from eigenoptions.experiments.tables import column, curve_rows, run_rows, where
from eigenoptions.mdp import graph, maze

PAIRS = [  # (row, column) of start and goal: corners, cells beside doorways, and one of each
    [[11, 1], [1, 11]],
    [[1, 1], [11, 11]],
    [[3, 5], [10, 7]],
    [[11, 1], [6, 9]],
    [[1, 11], [7, 2]],
]
SETTINGS: dict[str, Settings] = {
    "paper": {
        "maze": "four-rooms",
        "pairs": PAIRS,
        "options": 64,
        "runs": 100,
        "episodes": 250,
        "max_steps": 100,
        "seed": 2017,
        "block": 50,
        "every": 5,
    },
    "quick": {
        "maze": "four-rooms",
        "pairs": PAIRS[2:4],
        "options": 64,
        "runs": 4,
        "episodes": 20,
        "max_steps": 100,
        "seed": 2017,
        "block": 2,
        "every": 5,
    },
}
AGENTS = ("eigenoptions", "bottleneck options", "primitive actions")


def run(settings: Settings, pmap: Pmap) -> Results:
    """Returns of three agents in each task; task 2i + 1 swaps the start and goal of task 2i."""
    mdp = maze(settings["maze"])
    assert mdp.coords is not None
    state = {(int(r), int(c)): s for s, (r, c) in enumerate(mdp.coords)}
    away = shortest_path(graph(mdp), unweighted=True)[:, rooms(mdp)[1]].min(axis=1)
    cells = [ends for pair in settings["pairs"] for ends in (pair, pair[::-1])]
    tasks = [
        {
            "task": i + 1,
            "start": state[tuple(a)],
            "goal": state[tuple(b)],
            "goal_to_doorway": int(away[state[tuple(b)]]),
        }
        for i, (a, b) in enumerate(cells)
    ]
    how = dict(zip(AGENTS, (eigen(settings["options"]), {"method": "bottleneck"}, PRIMITIVE), strict=True))
    length = {"episodes": settings["episodes"], "max_steps": settings["max_steps"]}
    keys = [{"task": task["task"], "agent": agent} for task in tasks for agent in how]
    scenarios = [
        {"maze": settings["maze"], "options": options, "start": t["start"], "goal": t["goal"], **length}
        for t in tasks
        for options in how.values()
    ]
    found = learn_all(pmap, scenarios, settings["runs"], settings["block"], settings["seed"])
    pairs = list(zip(keys, found, strict=True))
    return {
        "coords": np.array(mdp.coords),
        "tasks": tasks,
        "runs": [row for key, returns in pairs for row in run_rows(key, returns)],
        "curves": [row for key, returns in pairs for row in curve_rows(key, returns, settings["every"])],
    }


def figure(results: Results) -> Any:
    """Each task as a map with S and G beside its curves; the task on the right swaps that on the left."""
    panels = []
    for task in results["tasks"]:
        marks = {task["start"]: "S", task["goal"]: "G"}
        panels.append(plots.maze_panel(results["coords"], marks, f"task {task['task']}"))
        lines = {agent: where(results["curves"], task=task["task"], agent=agent) for agent in AGENTS}
        panels.append(
            plots.curve_panel(
                column(lines[AGENTS[0]], "episode"),
                {agent: column(rows, "mean") for agent, rows in lines.items()},
                "",
                xlabel="episode" if task["task"] > len(results["tasks"]) - 2 else "",
                ylabel="return",
                bands={agent: (column(rows, "low"), column(rows, "high")) for agent, rows in lines.items()},
                limits=(-0.02, 1.02),
                legend=task["task"] == 1,
            )
        )
    return plots.figure(panels, columns=4, width=plots.PAGE, ratios=(1, 1.9, 1, 1.9))


def claims(results: Results) -> list[Claim]:
    """Say where eigenoptions help, and where bottleneck options do."""
    tasks = results["tasks"]
    many = len(tasks)
    number = [t["task"] for t in tasks]
    swap = [difference(_runs(results, i), _runs(results, i + 1), many // 2) for i in range(1, many, 2)]
    same = [not (d.better or d.worse) for d in swap]
    bare = [difference(_runs(results, i), _runs(results, i, 2), many) for i in number]
    won = sum(d.better for d in bare)
    near = [t["goal_to_doorway"] <= NEAR for t in tasks]
    far = [i for i, close in zip(number, near, strict=True) if not close]
    beside = [i for i, close in zip(number, near, strict=True) if close]
    doors = {i: difference(_runs(results, i), _runs(results, i, 1), len(far)) for i in far}
    lead = {
        name: float(np.mean([_runs(results, i).mean() - _runs(results, i, 1).mean() for i in which]))
        for name, which in (("far", far), ("near", beside))
    }
    chosen = "The paper shows its tasks as pictures only; these five pairs and their swaps are ours."
    return [
        Claim(
            "Switching the positions of the starting and goal states have no effect in the performance of "
            "our algorithm.",
            "Appendix D",
            f"{sum(same)} of {len(same)} pairs show no difference: "
            + "; ".join(f"tasks {2 * i + 1} and {2 * i + 2}: {d}" for i, d in enumerate(swap)),
            verdict(*same),
            f"Difference of the mean return with 64 eigenoptions; its interval must hold zero. {chosen}",
        ),
        Claim(
            "In almost all settings, the agents augmented by eigenoptions outperform those equipped only "
            "with primitive actions.",
            "Appendix D",
            f"better in {won} of {many} tasks, worse in {sum(d.worse for d in bare)}",
            verdict(won >= ALMOST_ALL * many, won > many / 2),
            "Differences: "
            + "; ".join(f"task {i}: {d}" for i, d in zip(number, bare, strict=True))
            + f". Almost all: at least {ALMOST_ALL:.0%}; most for a part.",
        ),
        Claim(
            "Agents equipped with eigenoptions outperform agents equipped with options leading to bottleneck "
            "states in settings in which the goal state is far from the doorways.",
            "Appendix D",
            f"better in {sum(d.better for d in doors.values())} of {len(far)} such tasks, worse in "
            f"{sum(d.worse for d in doors.values())}",
            verdict(*(d.better for d in doors.values())),
            "Differences: "
            + "; ".join(f"task {i}: {d}" for i, d in doors.items())
            + f". Far: more than {NEAR} step from a doorway; here "
            + ", ".join(str(d) for d in sorted({t["goal_to_doorway"] for t in tasks if t["task"] in far}))
            + " steps.",
        ),
        Claim(
            "In scenarios where the goal state is closer to bottleneck states, the options leading to "
            "doorways are more competitive.",
            "Appendix D",
            f"eigenoptions lead by {lead['far']:+.3f} on average where the goal is far from doorways and by "
            f"{lead['near']:+.3f} where it is beside one",
            verdict(lead["near"] < lead["far"]),
            "Mean return with eigenoptions minus mean return with bottleneck options: "
            + "; ".join(
                f"task {i}: {difference(_runs(results, i), _runs(results, i, 1), len(beside))}"
                for i in beside
            )
            + " beside a doorway.",
        ),
    ]


def notes(results: Results) -> list[str]:
    """How large the effect of a swap is, and where it comes from."""
    told, apart = [], []
    pairs = list(zip(results["tasks"][::2], results["tasks"][1::2], strict=True))
    for a, b in pairs:
        means = [_runs(results, t["task"]).mean() for t in (a, b)]
        doors = [_steps(t["goal_to_doorway"]) for t in (a, b)]
        names = f"{a['task']} and {b['task']}"
        told.append(
            f"tasks {names}: {means[0]:.3f} (goal {doors[0]} from a doorway) and {means[1]:.3f} (goal "
            f"{doors[1]})"
        )
        gap = difference(_runs(results, a["task"]), _runs(results, b["task"]), len(pairs))
        if gap.better or gap.worse:
            apart.append(f"{names} ({abs(gap.mean):.3f})")
    return [
        f"Mean returns with eigenoptions, before and after the swap: {'; '.join(told)}. The pairs that "
        f"differ by the rule: {', '.join(apart) or 'none'}. These differences are small beside the gain over "
        "primitive actions. A likely reason: a goal in a corner is not passed on the way to somewhere else, "
        "and one beside a doorway is."
    ]


def _steps(n: int) -> str:
    return f"{n} step" if n == 1 else f"{n} steps"


def _runs(results: Results, task: int, agent: int = 0) -> NDArray[np.float64]:
    return column(where(results["runs"], task=task, agent=AGENTS[agent]), "mean_return")


EXPERIMENT = Experiment(
    "tasks",
    "Appendix D: multiple tasks",
    "Appendix D",
    "Learning curves in the 4-room domain with 64 eigenoptions, with the four bottleneck options and with "
    "primitive actions, for different start (S) and goal (G) states, near to and far from doorways.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=110,
)
