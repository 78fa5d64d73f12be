"""Appendix D: multiple tasks.

Learning curves in the 4-room domain with 64 eigenoptions, with the four bottleneck
options and with primitive actions, for different start (S) and goal (G) states, near to
and far from doorways.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from scipy.special import ndtri

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_maze
from reproduction.claims import Finding, Tests, at_least, claim, move_limit
from reproduction.drawing import add_legend, draw_learning, make_graphs
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.readings import (
    BOTTLENECKS,
    COMBINATORIAL,
    FINAL,
    HIGH_DISCOUNT,
    LOW_DISCOUNT,
    MAIN,
    NO_MARGIN,
    PUBLISHED_LEARNER,
    STRICTER,
    TOLERANCE,
    WITHOUT_E1,
)
from reproduction.runs.learning import (
    Learner,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.runs.options import (
    OPTION_READINGS,
    load_authors_table,
    make_eigenoptions,
)
from reproduction.runs.published import learn_in_two_steps
from reproduction.statistics import (
    CONFIDENCE,
    Difference,
    IsBetter,
    compare_means,
    is_above_zero,
)
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

# Readings that change the first 64 options of the 4-room domain.
READINGS = (WITHOUT_E1, COMBINATORIAL, LOW_DISCOUNT, HIGH_DISCOUNT, TOLERANCE)
QUICK = {
    "pairs": PAIRS[2:4],
    "runs": 4,
    "swap_runs": 4,
    "reading_runs": 4,
    "final_runs": 4,
    "episodes": 20,
    "readings": READINGS[:1],
}

# Runs of all agents in all tasks: a row per run.
Runs: TypeAlias = pd.DataFrame

EIGEN = "eigenoptions"
BOTTLENECK = "bottleneck options"
PRIMITIVE = "primitive actions"


def list_jobs(
    *,
    pairs: Sequence[tuple[Cell, Cell]] = PAIRS,
    options: int = 64,
    runs: int = 100,
    swap_runs: int = 1000,
    reading_runs: int = 200,
    final_runs: int = 400,
    episodes: int = 250,
    readings: Sequence[str] = READINGS,
    seed: int = 2017,
) -> Jobs:
    """Learning of three agents in each task, also under other readings.

    Tasks and their swaps are compared with `swap_runs` further runs of eigenoptions,
    with e1 and without. Final performance, which varies most, is judged with these and
    `final_runs` further runs of primitive actions.
    """
    tasks = list_tasks(pairs=pairs)
    agents: dict[str, dict[str, Any]] = {
        EIGEN: {"n": options},
        BOTTLENECK: {"method": "bottleneck"},
        PRIMITIVE: {"n": 0},
    }
    learners = [
        learner
        for agent, settings in agents.items()
        for learner in _list_learners(tasks, agent, settings)
    ]
    others = [
        learner
        for reading in readings
        for learner in _list_learners(
            tasks, EIGEN, {"n": options, **OPTION_READINGS[reading]}, reading=reading
        )
    ]
    swapped = [
        *_list_learners(tasks, EIGEN, {"n": options}, reading=MAIN),
        *_list_learners(
            tasks, EIGEN, {"n": options, "skip_zero": True}, reading=WITHOUT_E1
        ),
    ]
    # By the labels of the published program, half as many options.
    agents_by_label = {**agents, EIGEN: {"n": options // 2}}
    published = _list_published_jobs(
        tasks,
        agents_by_label,
        {"runs": reading_runs, "episodes": episodes, "seed": seed},
    )
    ends = {MAIN: {}} | {reading: OPTION_READINGS[reading] for reading in readings}
    return {
        "tasks": [Job(list_tasks, {"pairs": pairs})],
        "ends": [
            Job(count_ends, {"n": options, "settings": settings}, {"reading": reading})
            for reading, settings in ends.items()
        ],
        "learning": list_learning_jobs(
            learners, runs=runs, episodes=episodes, seed=seed
        ),
        "swapped": list_learning_jobs(
            swapped, runs=swap_runs, episodes=episodes, seed=seed + 1
        ),
        "primitive": list_learning_jobs(
            _list_learners(tasks, PRIMITIVE, {"n": 0}, reading=MAIN),
            runs=final_runs,
            episodes=episodes,
            seed=seed + 4,
        ),
        "readings": [
            *list_learning_jobs(
                others, runs=reading_runs, episodes=episodes, seed=seed + 2
            ),
            *published,
        ],
    }


def _list_learners(
    tasks: pd.DataFrame, agent: str, settings: Mapping[str, Any], **columns: Any
) -> list[Learner]:
    """An agent in each task; `settings` are those of its options."""
    return [
        Learner(
            "four-rooms",
            settings,
            {"task": task.task, "agent": agent, **columns},
            start=task.start,
            goal=task.goal,
        )
        for task in tasks.itertuples()
    ]


def _list_published_jobs(
    tasks: pd.DataFrame,
    agents: Mapping[str, Mapping[str, Any]],
    shared: Mapping[str, int],
) -> list[Job]:
    """Agents in each task, with the learner of the published program."""
    jobs = []
    for task in tasks.itertuples():
        for agent, settings in agents.items():
            arguments = {
                "maze": "four-rooms",
                "options": settings,
                "start": task.start,
                "goal": task.goal,
                **shared,
            }
            columns = {
                "domain": "four-rooms",
                "task": task.task,
                "agent": agent,
                "reading": PUBLISHED_LEARNER,
            }
            jobs.append(Job(learn_in_two_steps, arguments, columns))
    return jobs


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


def count_ends(*, n: int, settings: Mapping[str, Any]) -> dict[str, int]:
    """How many states of the 4-room domain are the end of an option, or beside one."""
    mdp = eo.maze("four-rooms")
    options = make_eigenoptions(mdp, n, **settings)
    is_end = options.termination.any(axis=0)
    is_beside = is_end | (eo.graph(mdp) @ is_end > 0)
    return {
        "states": mdp.n_states,
        "ends_of_options": int(is_end.sum()),
        "ends_or_beside": int(is_beside.sum()),
    }


def tabulate_results(results: Results) -> Data:
    """Tasks, ends of the options, and runs and curves of all agents."""
    return {
        "tasks": results["tasks"][0].value,
        "ends": pd.DataFrame([{**names, **row} for names, row in results["ends"]]),
        "runs": stack_runs(results["learning"]),
        "curves": stack_curves(results["learning"]),
        "further": stack_runs([*results["swapped"], *results["primitive"]]),
        "readings": stack_runs(results["readings"]),
        "authors": load_authors_table("learning"),
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
    gains = _compare_agents(data["runs"], EIGEN, PRIMITIVE)
    n_better = [gain.above() for gain in gains].count(True)
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
    def judge(runs: Runs, is_worse: IsBetter = Difference.above) -> Tests:
        losses = _compare_agents(runs, PRIMITIVE, BOTTLENECK)
        hinders = [is_worse(loss) for loss in losses]
        n_tasks = len(losses)
        return [at_least(hinders, n_tasks), at_least(hinders, n_tasks // 2 + 1)]

    gains = _compare_agents(data["runs"], BOTTLENECK, PRIMITIVE)
    return Finding(
        tests=judge(data["runs"]),
        readings={
            NO_MARGIN: judge(data["runs"], is_above_zero),
            **_judge_readings(data, judge, agent=BOTTLENECK),
        },
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
    def compare(runs: Runs) -> list[Difference]:
        own = runs[runs.agent == EIGEN]
        returns = dict(iter(own.groupby("task").mean_return))
        first_tasks = list(returns)[::2]
        return [
            compare_means(returns[task], returns[task + 1], len(first_tasks))
            for task in first_tasks
        ]

    def judge(runs: Runs, margin: float = MARGIN) -> Tests:
        return [difference.equal(margin) for difference in compare(runs)]

    further = data["further"]
    swapped = further[further.reading == MAIN]
    without_e1 = further[further.reading == WITHOUT_E1]
    differences = compare(swapped)
    largest = max(abs(difference.mean) for difference in differences)
    is_same = [difference.equal() for difference in differences]
    return Finding(
        tests=is_same,
        readings={
            **_judge_readings(data, judge, agent=EIGEN),
            WITHOUT_E1: judge(without_e1),
            NO_MARGIN: judge(swapped, margin=0.0),
        },
        measured=f"the largest difference is {largest:.3f}; {is_same.count(True)} of "
        f"{len(is_same)} pairs are equal within {MARGIN:g}",
        evidence="The interval of the difference of the mean return must lie within "
        f"±{MARGIN:g}; {swapped.run.nunique():,} runs of each task. The paper "
        "shows its tasks as pictures only; these five pairs and their swaps are ours.",
    )


@claim(
    "outperform-primitive",
    "In almost all settings, the agents augmented by eigenoptions outperform those "
    "equipped only with primitive actions.",
)
def outperform_primitive_actions(data: Data) -> Finding:
    def judge(
        runs: Runs,
        is_better: IsBetter = Difference.above,
        almost_all: float = ALMOST_ALL,
    ) -> Tests:
        gains = _compare_agents(runs, EIGEN, PRIMITIVE)
        better = [is_better(gain) for gain in gains]
        return [
            at_least(better, almost_all * len(gains)),
            at_least(better, len(gains) // 2 + 1),
        ]

    def move(limit: float) -> Tests:
        return judge(data["runs"], almost_all=limit)

    gains = _compare_agents(data["runs"], EIGEN, PRIMITIVE)
    return Finding(
        tests=judge(data["runs"]),
        readings={
            NO_MARGIN: judge(data["runs"], is_above_zero),
            **_judge_readings(data, judge, agent=EIGEN),
            **move_limit("ALMOST_ALL", move),
        },
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
    ends = data["ends"].set_index("reading")
    n_left_out = ends.states - ends.ends_of_options
    n_regions = ends.states - ends.ends_or_beside
    tests = {
        reading: [n_left_out[reading] > 0, n_regions[reading] > 0]
        for reading in ends.index
    }
    return Finding(
        tests=tests.pop(MAIN),
        readings=tests,
        measured=f"{n_left_out[MAIN]} of {ends.states[MAIN]} states are the end of "
        f"none of the 64 options; {n_regions[MAIN]} of them have no end beside them, "
        "either",
        evidence="Ends of the options of both signs of the first 32 eigenvectors. Two "
        "tests: some state is left out, and some region, a state with its neighbours.",
    )


@claim(
    "outperform-bottlenecks-far",
    "Agents equipped with eigenoptions outperform agents equipped with options leading "
    "to bottleneck states in settings in which the goal state is far from the "
    "doorways.",
)
def outperform_bottlenecks_far_from_doorways(data: Data) -> Finding:
    def judge(
        runs: Runs, near: float = NEAR, is_better: IsBetter = Difference.above
    ) -> Tests:
        far, _ = _compare_with_bottlenecks(data["tasks"], runs, near)
        return [is_better(gain) for gain in far]

    runs = data["runs"]
    far, _ = _compare_with_bottlenecks(data["tasks"], runs)
    return Finding(
        tests=judge(runs),
        readings={
            NO_MARGIN: judge(runs, is_better=is_above_zero),
            **_judge_readings(data, judge),
            STRICTER: judge(runs, near=0),
        },
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
    def judge(runs: Runs, is_better: IsBetter = Difference.above) -> Tests:
        return [is_better(_compare_leads(data["tasks"], runs))]

    far, near = _compare_with_bottlenecks(data["tasks"], data["runs"])
    lead_far = _average_lead(far)
    lead_near = _average_lead(near)
    loss = _compare_leads(data["tasks"], data["runs"])
    return Finding(
        tests=judge(data["runs"]),
        readings={
            NO_MARGIN: judge(data["runs"], is_above_zero),
            **_judge_readings(data, judge),
        },
        measured=f"eigenoptions lead by {lead_far:+.3f} on average where the goal is "
        f"far from doorways and by {lead_near:+.3f} where it is beside one",
        evidence="Mean return with eigenoptions minus that with bottleneck options, "
        f"averaged over tasks; far minus near {loss}.",
        table=_tabulate_tasks(near, "eigenoptions minus bottleneck"),
    )


def _judge_readings(
    data: Data, judge: Callable[[Runs], Tests], agent: str | None = None
) -> dict[str, Tests]:
    """The tests under other measures, options and learners.

    Readings that change the options of another agent than `agent` are left out; None
    stands for all agents.
    """
    runs = data["runs"]
    further = data["further"]
    all_runs = pd.concat([runs, further[further.reading == MAIN]])
    tests = {FINAL: judge(all_runs.assign(mean_return=all_runs.late_return))}
    theirs = data["authors"].assign(reading=BOTTLENECKS)
    for reading, changed in pd.concat([data["readings"], theirs]).groupby(
        "reading", sort=False
    ):
        agents = set(changed.agent)
        if agent is None or agent in agents:
            is_changed = runs.agent.isin(agents)
            tests[reading] = judge(pd.concat([runs[~is_changed], changed]))
    return tests


def _compare_agents(
    runs: Runs, agent: str, other: str, tasks: Sequence[int] | None = None
) -> pd.Series:
    """Difference of the mean returns of two agents in each task.

    The tasks, all by default, are judged together.
    """
    returns = dict(iter(runs.groupby(["agent", "task"]).mean_return))
    if tasks is None:
        of_agent = {task for name, task in returns if name == agent}
        tasks = sorted(task for name, task in returns if name == other)
        tasks = [task for task in tasks if task in of_agent]
    differences = [
        compare_means(returns[agent, task], returns[other, task], len(tasks))
        for task in tasks
    ]
    return pd.Series(differences, index=tasks, dtype=object)


def _compare_with_bottlenecks(
    tasks: pd.DataFrame, runs: Runs, near: float = NEAR
) -> tuple[pd.Series, pd.Series]:
    """Eigenoptions against bottleneck options, far from doorways and near to them."""
    is_far = tasks.goal_to_doorway > near
    far = _compare_agents(runs, EIGEN, BOTTLENECK, list(tasks.task[is_far]))
    close = _compare_agents(runs, EIGEN, BOTTLENECK, list(tasks.task[~is_far]))
    return far, close


def _compare_leads(tasks: pd.DataFrame, runs: Runs) -> Difference:
    """The lead of eigenoptions far from doorways minus that near to them.

    The interval covers the noise of the runs; the tasks are as they are.
    """
    is_far = tasks.set_index("task").goal_to_doorway > NEAR
    # Far tasks count for the lead and others against it.
    weights = is_far / is_far.sum() - ~is_far / (~is_far).sum()
    mean = 0.0
    variance = 0.0
    for (agent, task), returns in runs.groupby(["agent", "task"]).mean_return:
        if agent != PRIMITIVE and task in weights:
            sign = 1 if agent == EIGEN else -1
            mean += sign * weights[task] * returns.mean()
            variance += weights[task] ** 2 * returns.var() / len(returns)
    half = float(ndtri(1 - (1 - CONFIDENCE) / 2)) * variance**0.5
    return Difference(mean, mean - half, mean + half)


def _average_lead(differences: pd.Series) -> float:
    """The mean of differences over tasks."""
    return float(np.mean([difference.mean for difference in differences]))


def _count_tasks(differences: pd.Series) -> str:
    """In how many tasks an agent is better and worse than another, as text."""
    n_better = [difference.above() for difference in differences].count(True)
    n_worse = [difference.below() for difference in differences].count(True)
    return f"better in {n_better} of {len(differences)} tasks, worse in {n_worse}"


def _tabulate_tasks(differences: pd.Series, head: str) -> pd.DataFrame:
    """Table for readers: one row per task."""
    return pd.DataFrame({"task": differences.index, head: differences.map(str)})
