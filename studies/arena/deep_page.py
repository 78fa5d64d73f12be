"""The deep part of ``docs/arena.md``: its tables and its picture, from stored runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from eigenoptions._types import FloatArray
from reproduction.markdown import make_table
from studies.arena.aggregates import Aggregate, bootstrap
from studies.arena.deep_tasks import TEST_SEEDS, TEST_TASKS, VIEW_TASKS
from studies.arena.deep_ways import NO_AGENT, SB3_DQN, SB3_PPO, TORCH_DQN, WAYS

STORED = Path(__file__).with_name("deep.csv")
PICTURE = STORED.parents[2] / "docs" / "images" / "arena-deep.svg"

# Chosen on other tasks and seeds.
RECOMMENDED = {
    TORCH_DQN: "explore, way",
    SB3_DQN: "explore, way",
    SB3_PPO: "explore, cloning",
}
BASELINES = ("plain", "counts")


def read_runs() -> pd.DataFrame:
    """Return the stored runs; a goal is learned if half of the exam reaches it."""
    runs = pd.read_csv(STORED)
    runs["learned"] = (runs.reached >= 0.5).astype(float)
    runs["first_share"] = runs.first_goal / runs.budget
    return runs


def collect_scores(
    runs: pd.DataFrame, agent: str, way: str, column: str
) -> FloatArray | None:
    """Return scores ``(seeds, tasks)`` of the seeds that ran on every task."""
    chosen = runs[(runs.agent == agent) & (runs.way == way)]
    table = chosen.pivot(index="seed", columns="task", values=column)
    table = table.reindex(columns=list(TEST_TASKS)).dropna()
    if table.empty:
        return None
    scores: FloatArray = table.to_numpy(dtype=np.float64)
    return scores


def list_pairs(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return agents and ways with stored runs, in the order of the page."""
    pairs = []
    for agent in (TORCH_DQN, SB3_PPO, SB3_DQN, NO_AGENT):
        for way in WAYS:
            if collect_scores(runs, agent, way, "learned") is not None:
                pairs.append((agent, way))
    return pairs


def list_aggregates() -> dict[str, str]:
    """Return the tables of the page as Markdown, by name."""
    runs = read_runs()
    return {"deep ways": _show_ways(runs), "deep numbers": _show_numbers(runs)}


def list_tables() -> dict[str, str]:
    """Return all other tables as Markdown, by name."""
    runs = read_runs()
    return {
        "deep tasks": _show_tasks(),
        "deep aggregates": _show_aggregates(runs),
        "deep verdicts": _show_verdicts(runs),
        "deep learned": _show_learned(runs),
        "deep losses": _list_losses(runs),
    }


def draw_picture() -> None:
    """Draw the picture of the page."""
    draw_learned(read_runs()).savefig(PICTURE)


def draw_learned(runs: pd.DataFrame) -> Figure:
    """Draw the share of goals learned, with its interval: a bar per agent and way."""
    pairs = list_pairs(runs)
    figure, ax = plt.subplots(figsize=(7, 0.28 * len(pairs) + 0.8), layout="tight")
    for row, (agent, way) in enumerate(pairs):
        scores = collect_scores(runs, agent, way, "learned")
        assert scores is not None
        mean = bootstrap(scores, np.mean)
        errors = [[mean.value - mean.low], [mean.high - mean.value]]
        is_recommended = RECOMMENDED.get(agent) == way
        color = "C0" if is_recommended else "0.7"
        ax.barh(row, mean.value, xerr=errors, color=color, ecolor="0.2")
    ax.set_yticks(range(len(pairs)), [f"{agent}: {way}" for agent, way in pairs])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of goals learned")
    return figure


def _show_tasks() -> str:
    rows = []
    for name, task in TEST_TASKS.items():
        rows.append([name, task.about, f"{task.budget:,}"])
    return make_table(["task", "what it is", "steps"], rows)


def _show_ways(runs: pd.DataFrame) -> str:
    """What each way is, and how many goals an agent learns with it."""
    agents = (TORCH_DQN, SB3_DQN, SB3_PPO, NO_AGENT)
    rows = []
    for name, way in WAYS.items():
        cells = []
        for agent in agents:
            scores = collect_scores(runs, agent, name, "learned")
            count = "" if scores is None else _count(scores)
            is_recommended = RECOMMENDED.get(agent) == name
            cells.append(f"**{count}**" if is_recommended else count)
        if not any(cells):
            continue
        label = name if way.knows == "nothing" else f"*{name}*"
        rows.append([label, way.about, *cells])
    return make_table(["way", "what it is", *agents], rows)


def _count(scores: FloatArray) -> str:
    """Return how many goals were learned, and of how many if not all seeds ran."""
    n_learned = int(scores.sum())
    if len(scores) == len(TEST_SEEDS):
        return f"{n_learned}"
    return f"{n_learned} of {scores.size}"


def _show_numbers(runs: pd.DataFrame) -> str:
    """Goals learned from views, and from the number of the state instead."""
    views = runs[runs.task.isin(VIEW_TASKS)]
    rows = []
    for agent in (TORCH_DQN, SB3_DQN):
        for way in ("plain", "explore"):
            cells = []
            for name in (way, f"{way}, numbers"):
                chosen = views[(views.agent == agent) & (views.way == name)]
                n_learned = int(chosen.learned.sum())
                cells.append(f"{n_learned} of {len(chosen)}" if len(chosen) else "")
            if cells[1]:
                rows.append([f"{agent}, {way}", *cells])
    return make_table(["agent, way", "view", "number of the pose"], rows)


def measure(runs: pd.DataFrame, agent: str, way: str, column: str) -> Aggregate | None:
    """Return an aggregate: the mean of what was learned, else interquartile means."""
    scores = collect_scores(runs, agent, way, column)
    if scores is None:
        return None
    if column == "learned":
        return bootstrap(scores, np.mean)
    return bootstrap(scores)


def _show_aggregates(runs: pd.DataFrame) -> str:
    """What each way of each agent reaches; bold: recommended, italic: knows more."""
    rows = []
    for agent, way in list_pairs(runs):
        scores = collect_scores(runs, agent, way, "learned")
        assert scores is not None

        name = way
        if RECOMMENDED.get(agent) == way:
            name = f"**{way}**"
        if WAYS[way].knows != "nothing":
            name = f"*{way} ({WAYS[way].knows})*"

        n_learned = int(scores.sum())
        cells = [agent, name, f"{n_learned} of {scores.size}"]
        for column in ("learned", "reached", "first_share"):
            cells.append(str(measure(runs, agent, way, column)))
        rows.append(cells)
    head = [
        "agent",
        "way",
        "goals learned",
        "their share",
        "share of the exam, interquartile mean",
        "first goal / budget, interquartile mean",
    ]
    return make_table(head, rows)


def _show_verdicts(runs: pd.DataFrame) -> str:
    """Whether the intervals of the recommended way and the baselines are apart."""
    rows = []
    for agent, way in RECOMMENDED.items():
        for baseline in BASELINES:
            cells = [f"{agent}: {way} / {baseline}"]
            for column in ("learned", "reached", "first_share"):
                ours = measure(runs, agent, way, column)
                other = measure(runs, agent, baseline, column)
                cells.append(_compare(ours, other, less=column == "first_share"))
            rows.append(cells)
    return make_table(["", "learned", "exam", "first goal"], rows)


def _compare(ours: Aggregate | None, other: Aggregate | None, *, less: bool) -> str:
    """Return a verdict; with `less`, less is better."""
    if ours is None or other is None:
        return "not run"
    if not ours.is_apart_from(other):
        return "not decided"
    is_better = (ours.value < other.value) == less
    return "better" if is_better else "worse"


def _show_learned(runs: pd.DataFrame) -> str:
    """In how many runs of each task the goal was learned."""
    rows = []
    for agent, way in list_pairs(runs):
        scores = collect_scores(runs, agent, way, "learned")
        # Only pairs that ran are listed.
        assert scores is not None
        n_learned = [f"{int(count)}" for count in scores.sum(axis=0)]
        rows.append([f"{agent}, {way}", f"{len(scores)}", *n_learned])
    return make_table(["agent, way", "seeds", *TEST_TASKS], rows)


def _list_losses(runs: pd.DataFrame) -> str:
    """Where a recommended way learns fewer goals than a baseline."""
    lines = []
    for agent, way in RECOMMENDED.items():
        ours = collect_scores(runs, agent, way, "learned")
        for baseline in BASELINES:
            other = collect_scores(runs, agent, baseline, "learned")
            if ours is None or other is None:
                continue
            shares = zip(TEST_TASKS, ours.mean(axis=0), other.mean(axis=0), strict=True)
            for task, our_share, other_share in shares:
                if our_share < other_share:
                    lines.append(
                        f"* {agent}, {task}: {baseline} {other_share:.0%}, "
                        f"{way} {our_share:.0%}\n"
                    )
    return "".join(lines) or "* none\n"
