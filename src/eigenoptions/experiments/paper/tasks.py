"""Appendix D: the same eigenoptions in ten tasks of the 4-room domain, beside bottleneck options."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from eigenoptions import plots
from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.experiments import Claim, Experiment, Note, Pmap, Results, Settings, enough, sizes, verdict
from eigenoptions.experiments.limits import ALMOST_ALL, MARGIN, NEAR, Difference, difference
from eigenoptions.experiments.paper.jobs import (
    BOTTLENECK,
    LEARNING,
    PRIMITIVE,
    eigen,
    eigenoptions,
    learn_all,
)
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
        (
            {"task": t["task"], "agent": agent},
            {"maze": settings["maze"], "options": how[agent], "start": t["start"], "goal": t["goal"]},
        )
        for t in tasks
        for agent in AGENTS
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
    return [_about_planning_options(results), *_about_swaps(results), *_about_doorways(results)]


def _about_planning_options(results: Results) -> Claim:
    gap = _gaps(results, DOORS, BARE)
    hinder = [(-d).above() for d in gap.values()]
    better = sum(d.better for d in gap.values())
    return Claim(
        "Options traditionally used in the literature to speed up planning hinder the agents' performance if used for "
        "random exploration during learning.",
        "1",
        f"bottleneck options learn better than primitive actions in {better} of {len(gap)} tasks and worse in "
        f"{sum(d.worse for d in gap.values())}",
        verdict(enough(hinder, len(gap)), enough(hinder, len(gap) // 2 + 1)),
        "Mean return with the four bottleneck options minus that with primitive actions. Two tests: worse "
        "in every task, worse in most.",
        "bottlenecks-hinder-learning",
        "Bottleneck options make a random walk slower, but they speed up learning in most tasks: the values of the way "
        "through the doors are learned off-policy.",
        [{"task": i, "bottleneck minus primitive": str(d)} for i, d in gap.items()],
    )


def _about_swaps(results: Results) -> list[Claim]:
    bare = _gaps(results, EIGEN, BARE)
    many = len(bare)
    swap = {i: difference(_runs(results, i), _runs(results, i + 1), many // 2) for i in list(bare)[::2]}
    same = [d.equal() for d in swap.values()]
    won = [d.above() for d in bare.values()]
    ends = results["ends"][0]
    left = ends["states"] - ends["ends_of_options"]
    return [
        Claim(
            "Switching the positions of the starting and goal states have no effect in the performance of "
            "our algorithm.",
            "Appendix D",
            f"the largest difference is {max(abs(d.mean) for d in swap.values()):.3f}; "
            f"{sum(s is True for s in same)} of {len(same)} pairs are equal within {MARGIN:g}",
            verdict(*same),
            f"Difference of the mean return with 64 eigenoptions; its interval must lie within ±{MARGIN:g}. The paper "
            "shows its tasks as pictures only; these five pairs and their swaps are ours.",
            "swap-no-effect",
            rows=[
                {
                    "tasks": f"{i} and {i + 1}",
                    "mean returns": " and ".join(f"{_runs(results, t).mean():.3f}" for t in (i, i + 1)),
                    "difference": str(d),
                }
                for i, d in swap.items()
            ],
        ),
        Claim(
            "In almost all settings, the agents augmented by eigenoptions outperform those equipped only "
            "with primitive actions.",
            "Appendix D",
            f"better in {sum(w is True for w in won)} of {many} tasks, worse in "
            f"{sum(d.worse for d in bare.values())}",
            verdict(enough(won, ALMOST_ALL * many), enough(won, many // 2 + 1)),
            f"Almost all: at least {ALMOST_ALL:.0%}; partly if more than half.",
            "outperform-primitive",
            rows=[{"task": i, "eigenoptions minus primitive": str(d)} for i, d in bare.items()],
        ),
        Claim(
            "64 eigenoptions may not encode all options required to go to a specific region of the state space.",
            "Appendix D",
            f"{left} of {ends['states']} states are the end of none of the 64 options",
            verdict(left > 0),
            "Ends of the options of both signs of the first 32 eigenvectors.",
            "not-all-regions",
        ),
    ]


def _about_doorways(results: Results) -> list[Claim]:
    away = {t["task"]: t["goal_to_doorway"] for t in results["tasks"]}
    far, near = [i for i in away if away[i] > NEAR], [i for i in away if away[i] <= NEAR]
    gap = _gaps(results, EIGEN, DOORS, far) | _gaps(results, EIGEN, DOORS, near)
    lead_far, lead_near = (float(np.mean([gap[i].mean for i in group])) for group in (far, near))
    rows = [
        {"task": i, "goal to doorway": f"{away[i]} steps", "eigenoptions minus bottleneck": str(gap[i])}
        for i in gap
    ]
    return [
        Claim(
            "Agents equipped with eigenoptions outperform agents equipped with options leading to bottleneck "
            "states in settings in which the goal state is far from the doorways.",
            "Appendix D",
            f"better in {sum(gap[i].better for i in far)} of {len(far)} such tasks, worse in "
            f"{sum(gap[i].worse for i in far)}",
            verdict(*(gap[i].above() for i in far)),
            f"Far: more than {NEAR} step from a doorway.",
            "outperform-bottlenecks-far",
            rows=rows[: len(far)],
        ),
        Claim(
            "In scenarios where the goal state is closer to bottleneck states, the options leading to "
            "doorways are more competitive.",
            "Appendix D",
            f"eigenoptions lead by {lead_far:+.3f} on average where the goal is far from doorways and by "
            f"{lead_near:+.3f} where it is beside one",
            verdict(lead_near < lead_far),
            "Mean return with eigenoptions minus mean return with bottleneck options, averaged over tasks.",
            "bottlenecks-competitive-near",
            rows=rows[len(far) :],
        ),
    ]


def notes(results: Results) -> list[Note]:
    """Why swaps matter a little."""
    return [
        "Pairs differ where one end is beside a doorway: a goal in a corner is not passed on the way to somewhere "
        "else, "
        "and one beside a doorway is. The differences are small compared with the gain over primitive actions."
    ]


def _runs(results: Results, task: int, agent: str = EIGEN) -> NDArray[np.float64]:
    return column(results["runs"], "mean_return", task=task, agent=agent)


def _gaps(results: Results, agent: str, other: str, tasks: list[int] | None = None) -> dict[int, Difference]:
    """Difference of two agents in each task, or in some tasks that are judged together."""
    group = [t["task"] for t in results["tasks"]] if tasks is None else tasks
    return {i: difference(_runs(results, i, agent), _runs(results, i, other), len(group)) for i in group}


def headline(results: Results) -> tuple[str, str]:
    """Tasks in which eigenoptions help."""
    gap = _gaps(results, EIGEN, BARE)
    return (
        f"{sum(d.better for d in gap.values())} of {len(gap)}",
        "tasks are learned faster with the same 64 eigenoptions than with primitive actions",
    )


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
    headline=headline,
)
