"""Appendix D: multiple tasks.

Learning curves in the 4-room domain with 64 eigenoptions, with the four bottleneck
options and with primitive actions, for different start (S) and goal (G) states, near to
and far from doorways.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_maze
from reproduction.claims import Finding, at_least, claim
from reproduction.drawing import add_legend, draw_learning, make_graphs
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.runs.learning import (
    Learner,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.runs.options import make_eigenoptions
from reproduction.statistics import compare_means
from reproduction.thresholds import ALMOST_ALL, MARGIN, NEAR

SECTION = "Appendix D"
ORDER = 110

# Row and column.
Cell = tuple[int, int]

# Start and goal: corners, cells beside doorways, and one of each.
PAIRS = (
    ((11, 1), (1, 11)),
    ((1, 1), (11, 11)),
    ((3, 5), (10, 7)),
    ((11, 1), (6, 9)),
    ((1, 11), (7, 2)),
)
QUICK = {"pairs": PAIRS[2:4], "runs": 4, "episodes": 20}

EIGEN = "eigenoptions"
BOTTLENECK = "bottleneck options"
PRIMITIVE = "primitive actions"


def list_jobs(
    *,
    pairs: Sequence[tuple[Cell, Cell]] = PAIRS,
    options: int = 64,
    runs: int = 100,
    episodes: int = 250,
    seed: int = 2017,
) -> Jobs:
    """Learning of three agents in each task."""
    tasks = list_tasks(pairs=pairs)
    agents: dict[str, dict[str, Any]] = {
        EIGEN: {"n": options},
        BOTTLENECK: {"method": "bottleneck"},
        PRIMITIVE: {"n": 0},
    }
    learners = [
        Learner(
            "four-rooms",
            settings,
            {"task": task.task, "agent": agent},
            start=task.start,
            goal=task.goal,
        )
        for task in tasks.itertuples()
        for agent, settings in agents.items()
    ]
    return {
        "tasks": [Job(list_tasks, {"pairs": pairs})],
        "ends": [Job(count_ends, {"n": options})],
        "learning": list_learning_jobs(
            learners, runs=runs, episodes=episodes, seed=seed
        ),
    }


def list_tasks(*, pairs: Sequence[tuple[Cell, Cell]]) -> pd.DataFrame:
    """One row per task; task 2i swaps the start and goal of task 2i - 1."""
    mdp = eo.maze("four-rooms")
    cells = np.asarray(mdp.coords).tolist()
    _, doorways = find_rooms(mdp)
    distances = shortest_path(eo.graph(mdp), unweighted=True)
    to_doorway = distances[:, doorways].min(axis=1).astype(int)

    rows: list[dict[str, int]] = []
    for first, second in pairs:
        for start, goal in ((first, second), (second, first)):
            rows.append(
                {
                    "start": cells.index(list(start)),
                    "goal": cells.index(list(goal)),
                    "task": len(rows) + 1,
                }
            )
    tasks = pd.DataFrame(rows)
    return tasks.assign(goal_to_doorway=to_doorway[tasks.goal])


def count_ends(*, n: int) -> dict[str, int]:
    """How many states of the 4-room domain are the end of some option."""
    mdp = eo.maze("four-rooms")
    options = make_eigenoptions(mdp, n)
    is_end = options.termination.any(axis=0)
    return {"states": mdp.n_states, "ends_of_options": int(is_end.sum())}


def tabulate_results(results: Results) -> Data:
    """Tasks, ends of the options, and runs and curves of all agents."""
    return {
        "tasks": results["tasks"][0].value,
        "ends": pd.DataFrame([row for _, row in results["ends"]]),
        "runs": stack_runs(results["learning"]),
        "curves": stack_curves(results["learning"]),
    }


def draw_figure(data: Data) -> Figure:
    """Start and goal of each task, and the learning curves beside them."""
    tasks = data["tasks"]
    figure, axes = make_graphs(2 * len(tasks), width_ratios=(1, 1.9, 1, 1.9))
    for ax, graph, task in zip(axes[::2], axes[1::2], tasks.itertuples(), strict=True):
        draw_maze(ax, eo.maze("four-rooms"), {task.start: "S", task.goal: "G"})
        ax.set_title(f"task {task.task}")

        curves = data["curves"][data["curves"].task == task.task]
        agents = dict(iter(curves.groupby("agent", sort=False)))
        draw_learning(graph, agents, ylabel="return")
        is_in_last_row = task.task > len(tasks) - 2
        if not is_in_last_row:
            graph.set_xlabel("")
    return add_legend(figure)


def write_headline(data: Data) -> tuple[str, str]:
    """In how many tasks eigenoptions learn faster than primitive actions."""
    gains = _compare_agents(data, EIGEN, PRIMITIVE)
    n_better = sum(gain.better for gain in gains)
    words = (
        "tasks are learned faster with the same 64 eigenoptions than with primitive "
        "actions"
    )
    return f"{n_better} of {len(gains)}", words


@claim(
    "bottlenecks-hinder-learning",
    "Options traditionally used in the literature to speed up planning hinder the "
    "agents' performance if used for random exploration during learning.",
    section="1",
)
def hinder_performance(data: Data) -> Finding:
    gains = _compare_agents(data, BOTTLENECK, PRIMITIVE)
    losses = _compare_agents(data, PRIMITIVE, BOTTLENECK)
    hinders = [loss.above() for loss in losses]
    return Finding(
        tests=[at_least(hinders, len(gains)), at_least(hinders, len(gains) // 2 + 1)],
        measured=f"bottleneck options learn {_count_tasks(gains)}",
        evidence="Four bottleneck options against primitive actions. Two tests: worse "
        "in every task, worse in most.",
        lesson="Bottleneck options make a random walk slower, but they speed up "
        "learning in most tasks: the values of the way through the doors are learned "
        "off-policy.",
        table=_tabulate_tasks(gains, "bottleneck minus primitive"),
    )


@claim(
    "swap-no-effect",
    "Switching the positions of the starting and goal states have no effect in the "
    "performance of our algorithm.",
)
def have_no_effect_when_swapped(data: Data) -> Finding:
    runs = data["runs"][data["runs"].agent == EIGEN]
    returns = dict(iter(runs.groupby("task").mean_return))
    first_tasks = list(returns)[::2]
    differences = [
        compare_means(returns[task], returns[task + 1], len(first_tasks))
        for task in first_tasks
    ]
    largest = max(abs(difference.mean) for difference in differences)
    is_same = [difference.equal() for difference in differences]
    return Finding(
        tests=is_same,
        measured=f"the largest difference is {largest:.3f}; {is_same.count(True)} of "
        f"{len(is_same)} pairs are equal within {MARGIN:g}",
        evidence="The interval of the difference of the mean return must lie within "
        f"±{MARGIN:g}. The paper shows its tasks as pictures only; these five pairs "
        "and their swaps are ours.",
    )


@claim(
    "outperform-primitive",
    "In almost all settings, the agents augmented by eigenoptions outperform those "
    "equipped only with primitive actions.",
)
def outperform_primitive_actions(data: Data) -> Finding:
    gains = _compare_agents(data, EIGEN, PRIMITIVE)
    better = [gain.above() for gain in gains]
    return Finding(
        tests=[
            at_least(better, ALMOST_ALL * len(gains)),
            at_least(better, len(gains) // 2 + 1),
        ],
        measured=_count_tasks(gains),
        evidence=f"Almost all: at least {ALMOST_ALL:.0%}; partly if more than half.",
        table=_tabulate_tasks(gains, "eigenoptions minus primitive"),
    )


@claim(
    "not-all-regions",
    "64 eigenoptions may not encode all options required to go to a specific region of "
    "the state space.",
)
def leave_out_regions(data: Data) -> Finding:
    (ends,) = data["ends"].itertuples()
    n_left_out = ends.states - ends.ends_of_options
    return Finding(
        tests=[n_left_out > 0],
        measured=f"{n_left_out} of {ends.states} states are the end of none of the 64 "
        "options",
        evidence="Ends of the options of both signs of the first 32 eigenvectors.",
    )


@claim(
    "outperform-bottlenecks-far",
    "Agents equipped with eigenoptions outperform agents equipped with options leading "
    "to bottleneck states in settings in which the goal state is far from the "
    "doorways.",
)
def outperform_bottlenecks_far_from_doorways(data: Data) -> Finding:
    far, _ = _compare_with_bottlenecks(data)
    return Finding(
        tests=[gain.above() for gain in far],
        measured=_count_tasks(far),
        evidence=f"Far: more than {NEAR} step from a doorway.",
        table=_tabulate_tasks(far, "eigenoptions minus bottleneck"),
    )


@claim(
    "bottlenecks-competitive-near",
    "In scenarios where the goal state is closer to bottleneck states, the options "
    "leading to doorways are more competitive.",
)
def compete_near_doorways(data: Data) -> Finding:
    far, near = _compare_with_bottlenecks(data)
    lead_far = np.mean([gain.mean for gain in far])
    lead_near = np.mean([gain.mean for gain in near])
    return Finding(
        tests=[lead_near < lead_far],
        measured=f"eigenoptions lead by {lead_far:+.3f} on average where the goal is "
        f"far from doorways and by {lead_near:+.3f} where it is beside one",
        evidence="Mean return with eigenoptions minus that with bottleneck options, "
        "averaged over tasks.",
        table=_tabulate_tasks(near, "eigenoptions minus bottleneck"),
    )


def _compare_agents(
    data: Data, agent: str, other: str, tasks: Sequence[int] | None = None
) -> pd.Series:
    """Difference of the mean returns of two agents in each task.

    The tasks, all by default, are judged together.
    """
    if tasks is None:
        tasks = data["tasks"].task
    returns = data["runs"].set_index(["agent", "task"]).sort_index().mean_return
    differences = [
        compare_means(returns[agent, task], returns[other, task], len(tasks))
        for task in tasks
    ]
    return pd.Series(differences, index=tasks, dtype=object)


def _compare_with_bottlenecks(data: Data) -> tuple[pd.Series, pd.Series]:
    """Eigenoptions against bottleneck options, far from doorways and near to them."""
    distances = data["tasks"].set_index("task").goal_to_doorway
    far_tasks = distances.index[distances > NEAR]
    near_tasks = distances.index[distances <= NEAR]
    far = _compare_agents(data, EIGEN, BOTTLENECK, far_tasks)
    near = _compare_agents(data, EIGEN, BOTTLENECK, near_tasks)
    return far, near


def _count_tasks(differences: pd.Series) -> str:
    """In how many tasks an agent is better and worse than another, as text."""
    n_better = sum(difference.better for difference in differences)
    n_worse = sum(difference.worse for difference in differences)
    return f"better in {n_better} of {len(differences)} tasks, worse in {n_worse}"


def _tabulate_tasks(differences: pd.Series, head: str) -> pd.DataFrame:
    """Table for readers: one row per task."""
    return pd.DataFrame({"task": differences.index, head: differences.map(str)})
