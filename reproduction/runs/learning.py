"""Q-learning with options over many runs (paper, Section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from reproduction.lab import Job, Result
from reproduction.runs.options import CHOICES, limit_counts, make_options
from reproduction.statistics import average_curves, summarize_runs

# Settings of Section 4.3; 256 options stand for all.
EPISODES = {"open-room": 250, "i-maze": 250, "four-rooms": 500}
COUNTS = (0, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Learner:
    """An agent that learns a task in a maze.

    Attributes
    ----------
    maze : str
        Name of the maze.
    options : mapping
        Arguments of `make_options`.
    columns : mapping
        Columns that name the agent in tables; ``domain``, the maze, comes before them.
    start, goal : int, optional
        States; by default those of the maze.
    """

    maze: str
    options: Mapping[str, Any]
    columns: Mapping[str, Any]
    start: int | None = None
    goal: int | None = None


def list_learning_jobs(
    learners: Iterable[Learner],
    *,
    runs: int,
    episodes: int | Mapping[str, int],
    seed: int,
) -> list[Job]:
    """One job per agent, each with random numbers of its own.

    Parameters
    ----------
    learners : iterable of Learner
        The agents.
    runs : int
        Runs of each agent.
    episodes : int or mapping
        Episodes of a run; they may differ by maze.
    seed : int
        Seed of all agents.
    """
    jobs = []
    for number, learner in enumerate(learners):
        n_episodes = episodes if isinstance(episodes, int) else episodes[learner.maze]
        arguments = {
            "maze": learner.maze,
            "options": learner.options,
            "start": learner.start,
            "goal": learner.goal,
            "runs": runs,
            "episodes": n_episodes,
            "seed": seed,
            "number": number,
        }
        columns = {"domain": learner.maze, **learner.columns}
        jobs.append(Job(learn, arguments, columns))
    return jobs


def list_choice_jobs(
    *,
    episodes: Mapping[str, int],
    options: Sequence[int],
    runs: int,
    seed: int,
) -> list[Job]:
    """Learning with each of the choices that the paper leaves open (`CHOICES`)."""
    learners = []
    for maze in episodes:
        for choice, settings in CHOICES.items():
            learners += [
                Learner(maze, {**settings, "n": n}, {"choice": choice, "n_options": n})
                for n in limit_counts(maze, options, **settings)
            ]
    return list_learning_jobs(learners, runs=runs, episodes=episodes, seed=seed)


def learn(
    *,
    maze: str,
    options: Mapping[str, Any],
    runs: int,
    episodes: int,
    seed: int,
    number: int,
    start: int | None = None,
    goal: int | None = None,
) -> NDArray[np.uint8]:
    """``(runs, episodes)`` whether each evaluation episode reached the goal."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    learned = eo.q_learning(
        mdp,
        found,
        start=start,
        goal=goal,
        runs=runs,
        episodes=episodes,
        rng=np.random.SeedSequence(seed, spawn_key=(number,)),
    )
    return learned.returns.astype(np.uint8)


def stack_runs(results: Sequence[Result]) -> pd.DataFrame:
    """Summaries of the runs of all agents (see `statistics.summarize_runs`)."""
    tables = [summarize_runs(returns).assign(**columns) for columns, returns in results]
    return pd.concat(tables)


def stack_curves(results: Sequence[Result]) -> pd.DataFrame:
    """Learning curves of all agents (see `statistics.average_curves`)."""
    tables = [average_curves(returns).assign(**columns) for columns, returns in results]
    return pd.concat(tables)
