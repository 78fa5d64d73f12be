"""Deep agents on eight tasks: all runs, stored in ``deep.csv`` beside this file.

``python -m studies arena deep`` computes the runs that are not stored, a seed
after the other, and stores each seed. ``docs/arena.md`` shows what is stored.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reproduction.lab import Lab, open_lab
from studies.arena.deep_page import STORED
from studies.arena.deep_tasks import TEST_SEEDS, TEST_TASKS, VIEW_TASKS
from studies.arena.deep_ways import (
    NO_AGENT,
    NUMBERED_WAYS,
    SB3_DQN,
    SB3_PPO,
    TORCH_DQN,
)
from studies.arena.page import PAGE, write_page

# The ways of each agent, those of the main comparison first.
COMPARISONS: dict[str, Sequence[str]] = {
    TORCH_DQN: (
        "plain",
        "counts",
        "explore, way",
        "explore, eigenoptions",
        "explore, random options",
        "explore",
        "Exploring",
        "known options",
        "plain, numbers",
        "explore, numbers",
    ),
    SB3_PPO: (
        "plain",
        "counts",
        "explore, cloning",
        "explore, cloning only",
        "explore, shaping",
        "known options",
    ),
    SB3_DQN: (
        "plain",
        "counts",
        "explore, way",
        "Exploring",
        "plain, numbers",
        "explore, numbers",
    ),
    NO_AGENT: ("followed", "own search, followed"),
}
_KEY = ["agent", "way", "task", "seed"]


def main(arguments: Sequence[str]) -> None:
    """Run deep agents, and store what docs/arena.md shows."""
    options = _make_parser().parse_args(arguments)
    ways = [way for way in options.ways.split(";") if way]
    stored = STORED
    tasks = list(TEST_TASKS)
    seeds = list(TEST_SEEDS)[: options.seeds]
    if options.quick:
        stored = options.out / "deep.csv"
        tasks = ["Taxi"]
        seeds = list(TEST_SEEDS)[:1]

    with open_lab(options.out, quick=options.quick) as lab:
        runs = run(lab, stored, list_jobs(tasks, seeds, ways))
    print(f"stored: {len(runs)} runs in {stored}")
    if not options.quick:
        write_page()
        print(f"page: {PAGE}")


def _make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        "python -m studies arena deep", description=main.__doc__
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one seed of one task, stored in DIR",
    )
    parser.add_argument(
        "--ways",
        default="",
        metavar="WAY;...",
        help="some of the ways, separated by semicolons (default: all)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=len(TEST_SEEDS),
        metavar="N",
        help="the first N of the seeds (default: all)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/arena-deep"),
        metavar="DIR",
        help="default: out/arena-deep",
    )
    return parser


def list_jobs(
    tasks: Sequence[str], seeds: Sequence[int], ways: Sequence[str] = ()
) -> pd.DataFrame:
    """Return all runs, one row each, a seed after the other.

    >>> jobs = list_jobs(["Taxi"], [5000, 5001], ["plain"])
    >>> jobs.agent.tolist()[:3], jobs.seed.tolist()
    (['PyTorch DQN', 'SB3 PPO', 'SB3 DQN'], [5000, 5000, 5000, 5001, 5001, 5001])
    """
    rows = []
    for seed in seeds:
        for agent, agent_ways in COMPARISONS.items():
            for way in agent_ways:
                if ways and way not in ways:
                    continue
                for task in tasks:
                    # Elsewhere the observation is the number of the state already.
                    if way not in NUMBERED_WAYS or task in VIEW_TASKS:
                        rows.append((agent, way, task, seed))
    return pd.DataFrame(rows, columns=_KEY)


def run(lab: Lab, stored: Path, jobs: pd.DataFrame) -> pd.DataFrame:
    """Compute the runs that are not stored, and return all that are.

    Parameters
    ----------
    lab : Lab
        Where they are computed.
    stored : Path
        The file, which is written after each seed.
    jobs : DataFrame
        The runs, as `list_jobs` returns them.
    """
    # Loads PyTorch, which the page does not need.
    from studies.arena.deep_training import train_deep

    runs = pd.DataFrame(columns=_KEY)
    if stored.exists():
        runs = pd.read_csv(stored)
    known = set(runs[_KEY].itertuples(index=False, name=None))
    for seed, jobs_of_seed in jobs.groupby("seed"):
        lab.describe(f"deep agents, seed {seed}")
        missing = []
        for key in jobs_of_seed.itertuples(index=False, name=None):
            if key not in known:
                missing.append(dict(zip(_KEY, key, strict=True)))
        if not missing:
            continue
        rows = pd.DataFrame(lab.pmap(train_deep, missing))
        # Seconds depend on the machine: the same runs are to give the same file.
        rows = rows.drop(columns="seconds")
        runs = pd.concat([runs, rows], ignore_index=True)
        runs.to_csv(stored, index=False)
    return runs
