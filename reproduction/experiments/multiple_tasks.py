"""Appendix D: multiple tasks.

Learning curves in the 4-room domain with 64 eigenoptions, with the four bottleneck options and with primitive
actions, for different start (S) and goal (G) states, near to and far from doorways.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_maze
from reproduction.drawing import Figure, add_legend, draw_learning, make_graphs
from reproduction.experiments.agents import learn_all, make_eigenoptions
from reproduction.lab import (
    ALMOST_ALL,
    MARGIN,
    NEAR,
    Claim,
    Claims,
    Data,
    Lab,
    at_least,
)
from reproduction.statistics import compare_means

SECTION, ORDER = "Appendix D", 110
# (row, column) of start and goal: corners, cells beside doorways, and one of each.
PAIRS = (
    ((11, 1), (1, 11)),
    ((1, 1), (11, 11)),
    ((3, 5), (10, 7)),
    ((11, 1), (6, 9)),
    ((1, 11), (7, 2)),
)
QUICK = {"pairs": PAIRS[2:4], "runs": 4, "episodes": 20}
EIGEN, DOORS, BARE = AGENTS = (
    "eigenoptions",
    "bottleneck options",
    "primitive actions",
)


def run(
    lab: Lab, *, pairs=PAIRS, options=64, runs=100, episodes=250, seed=2017
) -> Data:
    """Returns of three agents in each task; task 2i + 1 swaps the start and goal of task 2i."""
    mdp = eo.maze("four-rooms")
    state = {tuple(cell): s for s, cell in enumerate(np.asarray(mdp.coords).tolist())}
    distances = shortest_path(eo.graph(mdp), unweighted=True)[
        :, find_rooms(mdp)[1]
    ].min(axis=1)
    ends = [
        (state[tuple(a)], state[tuple(b)])
        for pair in pairs
        for a, b in (pair, pair[::-1])
    ]
    tasks = pd.DataFrame(ends, columns=["start", "goal"]).assign(
        task=range(1, len(ends) + 1)
    )
    tasks["goal_to_doorway"] = distances[tasks.goal].astype(int)
    kinds = {EIGEN: {"n": options}, DOORS: {"method": "bottleneck"}, BARE: {"n": 0}}
    agents = [
        {
            "maze": "four-rooms",
            "options": kinds[name],
            "start": start,
            "goal": goal,
            "task": i,
            "agent": name,
        }
        for i, (start, goal) in enumerate(ends, start=1)
        for name in AGENTS
    ]
    stops = make_eigenoptions(mdp, options).termination.any(axis=0)
    return {
        "tasks": tasks,
        "ends": pd.DataFrame(
            {"states": [mdp.n_states], "ends_of_options": [stops.sum()]}
        ),
        **learn_all(lab, agents, runs=runs, episodes=episodes, seed=seed),
    }


def figure(data: Data) -> Figure:
    tasks = data["tasks"]
    picture, axes = make_graphs(2 * len(tasks), width_ratios=(1, 1.9, 1, 1.9))
    for ax, graph, task in zip(axes[::2], axes[1::2], tasks.itertuples(), strict=True):
        draw_maze(ax, eo.maze("four-rooms"), {task.start: "S", task.goal: "G"})
        ax.set_title(f"task {task.task}")
        curves = data["curves"][data["curves"].task == task.task]
        draw_learning(
            graph,
            {agent: curves[curves.agent == agent] for agent in AGENTS},
            ylabel="return",
        )
        if task.task <= len(tasks) - 2:
            graph.set_xlabel("")
    return add_legend(picture)


def claims(data: Data) -> Claims:
    distances = data["tasks"].set_index("task").goal_to_doorway
    doors, gains = compare_agents(data, DOORS, BARE), compare_agents(data, EIGEN, BARE)
    hinders = [difference.above() for difference in compare_agents(data, BARE, DOORS)]
    yield Claim(
        "bottlenecks-hinder-learning",
        "Options traditionally used in the literature to speed up planning hinder the agents' performance if used for "
        "random exploration during learning.",
        section="1",
        tests=[at_least(hinders, len(doors)), at_least(hinders, len(doors) // 2 + 1)],
        measured=f"bottleneck options learn {count(doors)}",
        evidence="Four bottleneck options against primitive actions. Two tests: worse in every task, worse in most.",
        lesson="Bottleneck options make a random walk slower, but they speed up learning in most tasks: the values "
        "of the way through the doors are learned off-policy.",
        table=pd.DataFrame(
            {"task": doors.index, "bottleneck minus primitive": doors.map(str)}
        ),
    )
    returns = dict(
        list(data["runs"][data["runs"].agent == EIGEN].groupby("task").mean_return)
    )
    pairs = list(returns)[::2]
    swaps = [
        compare_means(returns[task], returns[task + 1], len(pairs)) for task in pairs
    ]
    same = [difference.equal() for difference in swaps]
    yield Claim(
        "swap-no-effect",
        "Switching the positions of the starting and goal states have no effect in the performance of our algorithm.",
        tests=same,
        measured=f"the largest difference is {max(abs(difference.mean) for difference in swaps):.3f}; "
        f"{same.count(True)} of {len(same)} pairs are equal within {MARGIN:g}",
        evidence=f"The interval of the difference of the mean return must lie within ±{MARGIN:g}. The paper shows "
        "its tasks as pictures only; these five pairs and their swaps are ours.",
    )
    better = [difference.above() for difference in gains]
    yield Claim(
        "outperform-primitive",
        "In almost all settings, the agents augmented by eigenoptions outperform those equipped only with primitive "
        "actions.",
        tests=[
            at_least(better, ALMOST_ALL * len(gains)),
            at_least(better, len(gains) // 2 + 1),
        ],
        measured=count(gains),
        evidence=f"Almost all: at least {ALMOST_ALL:.0%}; partly if more than half.",
        table=pd.DataFrame(
            {"task": gains.index, "eigenoptions minus primitive": gains.map(str)}
        ),
    )
    (ends,) = data["ends"].itertuples()
    left = ends.states - ends.ends_of_options
    yield Claim(
        "not-all-regions",
        "64 eigenoptions may not encode all options required to go to a specific region of the state space.",
        tests=[left > 0],
        measured=f"{left} of {ends.states} states are the end of none of the 64 options",
        evidence="Ends of the options of both signs of the first 32 eigenvectors.",
    )
    is_far = distances > NEAR
    far, near = (
        compare_agents(data, EIGEN, DOORS, distances.index[side])
        for side in (is_far, ~is_far)
    )
    yield Claim(
        "outperform-bottlenecks-far",
        "Agents equipped with eigenoptions outperform agents equipped with options leading to bottleneck states in "
        "settings in which the goal state is far from the doorways.",
        tests=[difference.above() for difference in far],
        measured=count(far),
        evidence=f"Far: more than {NEAR} step from a doorway.",
        table=pd.DataFrame(
            {"task": far.index, "eigenoptions minus bottleneck": far.map(str)}
        ),
    )
    lead = [np.mean([difference.mean for difference in gaps]) for gaps in (far, near)]
    yield Claim(
        "bottlenecks-competitive-near",
        "In scenarios where the goal state is closer to bottleneck states, the options leading to doorways are more "
        "competitive.",
        tests=[lead[1] < lead[0]],
        measured=f"eigenoptions lead by {lead[0]:+.3f} on average where the goal is far from doorways and by "
        f"{lead[1]:+.3f} where it is beside one",
        evidence="Mean return with eigenoptions minus that with bottleneck options, averaged over tasks.",
        table=pd.DataFrame(
            {"task": near.index, "eigenoptions minus bottleneck": near.map(str)}
        ),
    )


def headline(data: Data) -> tuple[str, str]:
    gains = compare_agents(data, EIGEN, BARE)
    words = "tasks are learned faster with the same 64 eigenoptions than with primitive actions"
    return f"{sum(difference.better for difference in gains)} of {len(gains)}", words


def compare_agents(
    data: Data, agent: str, other: str, tasks: Sequence[int] | None = None
) -> pd.Series:
    """Difference of the mean returns of two agents in each task, or in some tasks that are judged together."""
    tasks = data["tasks"].task if tasks is None else tasks
    returns = data["runs"].set_index(["agent", "task"]).sort_index().mean_return
    differences = [
        compare_means(returns[agent, task], returns[other, task], len(tasks))
        for task in tasks
    ]
    return pd.Series(differences, index=tasks, dtype=object)


def count(differences: pd.Series) -> str:
    """In how many tasks an agent is better and worse than another, as text."""
    better, worse = (
        sum(d.better for d in differences),
        sum(d.worse for d in differences),
    )
    return f"better in {better} of {len(differences)} tasks, worse in {worse}"
