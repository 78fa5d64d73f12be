"""Appendix D: the same eigenoptions in ten tasks of the 4-room domain, beside bottleneck options."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from eigenoptions import plots
from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.experiments.limits import ALMOST_ALL, NEAR, Difference, difference
from eigenoptions.experiments.paper.jobs import PRIMITIVE, eigen, learn_all
from eigenoptions.experiments.tables import column, curves_of, learning_tables, where
from eigenoptions.mdp import graph, maze

# (row, column) of start and goal: corners, cells beside doorways, and one of each.
PAIRS = [
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
}
SETTINGS["quick"] = {**SETTINGS["paper"], "pairs": PAIRS[2:4], "runs": 4, "episodes": 20, "block": 2}
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
    tables = learning_tables(keys, found, settings["every"])
    return {"coords": np.array(mdp.coords), "tasks": tasks, **tables}


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
                limits=(-0.02, 1.02),
                legend=task["task"] == 1,
                **curves_of(lines),
            )
        )
    return plots.figure(panels, columns=4, width=plots.PAGE, ratios=(1, 1.9, 1, 1.9))


def claims(results: Results) -> list[Claim]:
    """Where eigenoptions help, and where bottleneck options do."""
    return [*_about_swaps_and_primitive_actions(results), *_about_doorways(results)]


def _about_swaps_and_primitive_actions(results: Results) -> list[Claim]:
    number = [t["task"] for t in results["tasks"]]
    many = len(number)
    swap = [difference(_runs(results, i), _runs(results, i + 1), many // 2) for i in number[::2]]
    same = [not (d.better or d.worse) for d in swap]
    bare = {i: difference(_runs(results, i), _runs(results, i, 2), many) for i in number}
    won = sum(d.better for d in bare.values())
    return [
        Claim(
            "Switching the positions of the starting and goal states have no effect in the performance of "
            "our algorithm.",
            "Appendix D",
            f"{sum(same)} of {len(same)} pairs show no difference: "
            + "; ".join(f"tasks {2 * i + 1} and {2 * i + 2}: {d}" for i, d in enumerate(swap)),
            verdict(*same),
            "Difference of the mean return with 64 eigenoptions; its interval must contain zero. The paper "
            "shows its tasks as pictures only; these five pairs and their swaps are ours.",
        ),
        Claim(
            "In almost all settings, the agents augmented by eigenoptions outperform those equipped only "
            "with primitive actions.",
            "Appendix D",
            f"better in {won} of {many} tasks, worse in {sum(d.worse for d in bare.values())}",
            verdict(won >= ALMOST_ALL * many, won > many / 2),
            f"Differences: {_by_task(bare)}. Almost all: at least {ALMOST_ALL:.0%}; partly if more than half.",
        ),
    ]


def _about_doorways(results: Results) -> list[Claim]:
    away = {t["task"]: t["goal_to_doorway"] for t in results["tasks"]}
    far, near = [i for i in away if away[i] > NEAR], [i for i in away if away[i] <= NEAR]
    gap = {
        i: difference(_runs(results, i), _runs(results, i, 1), len(group))
        for group in (far, near)
        for i in group
    }
    lead_far, lead_near = (float(np.mean([gap[i].mean for i in group])) for group in (far, near))
    better, worse = sum(gap[i].better for i in far), sum(gap[i].worse for i in far)
    return [
        Claim(
            "Agents equipped with eigenoptions outperform agents equipped with options leading to bottleneck "
            "states in settings in which the goal state is far from the doorways.",
            "Appendix D",
            f"better in {better} of {len(far)} such tasks, worse in {worse}",
            verdict(*(gap[i].better for i in far)),
            f"Differences: {_by_task({i: gap[i] for i in far})}. Far: more than {NEAR} step from a doorway; "
            f"here {', '.join(map(str, sorted({away[i] for i in far})))} steps.",
        ),
        Claim(
            "In scenarios where the goal state is closer to bottleneck states, the options leading to "
            "doorways are more competitive.",
            "Appendix D",
            f"eigenoptions lead by {lead_far:+.3f} on average where the goal is far from doorways and by "
            f"{lead_near:+.3f} where it is beside one",
            verdict(lead_near < lead_far),
            "Mean return with eigenoptions minus mean return with bottleneck options: "
            f"{_by_task({i: gap[i] for i in near})} beside a doorway.",
        ),
    ]


def _by_task(differences: dict[int, Difference]) -> str:
    return "; ".join(f"task {i}: {d}" for i, d in differences.items())


def notes(results: Results) -> list[str]:
    """Size of the effect of a swap, and a likely cause."""
    swaps, apart = [], []
    pairs = list(zip(results["tasks"][::2], results["tasks"][1::2], strict=True))
    for a, b in pairs:
        means = [_runs(results, t["task"]).mean() for t in (a, b)]
        doors = [_steps(t["goal_to_doorway"]) for t in (a, b)]
        names = f"{a['task']} and {b['task']}"
        swaps.append(
            f"tasks {names}: {means[0]:.3f} (goal {doors[0]} from a doorway) and {means[1]:.3f} (goal "
            f"{doors[1]})"
        )
        gap = difference(_runs(results, a["task"]), _runs(results, b["task"]), len(pairs))
        if gap.better or gap.worse:
            apart.append(f"{names} ({abs(gap.mean):.3f})")
    return [
        f"Mean returns with eigenoptions, before and after the swap: {'; '.join(swaps)}. The pairs that "
        f"differ by the rule: {', '.join(apart) or 'none'}. These differences are small compared with the "
        "gain over primitive actions. A likely reason: a goal in a corner is not passed on the way to "
        "somewhere else, and one beside a doorway is."
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
