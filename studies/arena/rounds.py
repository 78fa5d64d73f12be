"""Options found on the way, in rounds: walk, derive options of what was seen, again.

It is the paper's closing question: options "generated incrementally and with incomplete
graphs". `python -m studies arena doors` compares it with `explore`: rounds with
eigenoptions, with the method ``"neo"``, and covering eigenoptions (the ROD cycle of
Machado et al., JMLR 2023), which do without discovery from tables.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count, product
from typing import Any

import numpy as np
import pandas as pd
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from eigenoptions._types import FloatArray
from eigenoptions.discovery import discover
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from eigenoptions.samples import Transitions
from eigenoptions.samples.walking import walk
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    learn_representation,
)
from reproduction.lab import Job, Lab
from studies.arena.tasks import Task, make_task, measure_coverage

# Tasks on which ways to find options are compared, and their runs.
TASKS = ("CliffWalking", "Taxi", "two-keys", "rooms-5x5")
SEEDS = range(3)
WAYS = ("rounds, eigen", "rounds, neo", "covering-eigen")


def walk_in_rounds(
    mdp: MDP,
    method: str,
    *,
    n_options: int,
    round_steps: int,
    rng: int,
    option_chance: float = 0.01,
    stop_chance: float = 0.05,
    max_episode_steps: int | None = None,
    **settings: Any,
) -> Iterator[Transitions]:
    """Yield the steps of each round; every round explores with options of all before.

    Parameters
    ----------
    mdp : MDP
        Where to walk. The walk continues from round to round.
    method : str
        How options are found, as in `discover`.
    n_options : int
        How many.
    round_steps : int
        Steps of a round.
    rng : int
        Seed.
    option_chance, stop_chance : float, default=0.01 and 0.05
        Probabilities that a decision is for an option, and that an option stops.
    max_episode_steps : int, default=None
        Most steps of an episode.
    **settings
        Those of the method.
    """
    generator = np.random.default_rng(rng)
    batches: list[Transitions] = []
    options: OptionSet | None = None
    start: int | None = None
    while True:
        batch = walk(
            mdp,
            round_steps,
            options,
            begin=start,
            max_episode_steps=max_episode_steps,
            option_chance=option_chance,
            stop_chance=stop_chance,
            rng=generator,
        )
        yield batch
        start = None if batch.terminated[-1] else int(batch.next_obs[-1])
        batches.append(batch)
        options = _discover_seen(mdp, batches, n_options, method, generator, settings)


def _discover_seen(
    mdp: MDP,
    batches: list[Transitions],
    n_options: int,
    method: str,
    rng: np.random.Generator,
    settings: dict[str, Any],
) -> OptionSet | None:
    """Return options of what was seen, or all there are; None where there are none."""
    seen = Transitions.of(batches)
    child = rng.spawn(1)[0]
    for number in (n_options, None):
        with suppress(ValueError):
            options = discover(
                seen,
                number,
                method,
                space=Discrete(mdp.n_states),
                n_actions=mdp.n_actions,
                rng=child,
                **settings,
            )
            assert isinstance(options, OptionSet)
            return options[:n_options]
    return None


def walk_with_covering_options(
    mdp: MDP,
    *,
    rng: int,
    round_steps: int = 100,
    option_chance: float = 0.05,
    gamma: float = 0.99,
) -> Iterator[Transitions]:
    """Yield the steps of each round of covering eigenoptions.

    Each round learns the successor representation Psi of what it saw, and adds the
    option of the first eigenvector of ``(Psi + Psi') / 2``, with the sign that points
    away from what was visited.
    """
    generator = np.random.default_rng(rng)
    batches: list[Transitions] = []
    psi = None
    options: OptionSet | None = None
    # The caller decides after which round it has seen enough.
    for number in count(1):
        batch = walk(
            mdp, round_steps, options, option_chance=option_chance, rng=generator
        )
        yield batch
        batches.append(batch)

        # One more option, of all that was seen so far.
        psi = learn_representation(
            batch.obs, batch.next_obs, mdp.n_states, sweeps=10, begin=psi
        )
        purpose = find_covering_purpose(psi, number)
        seen = MDP.from_transitions(batches, mdp.n_states, mdp.n_actions)
        option = replace(solve(seen, purpose, gamma), mdp=mdp)
        if options is None:
            options = option
        else:
            options = options + option


def find_covering_purpose(psi: FloatArray, number: int) -> Purpose:
    """Return the first eigenvector of a representation, away from what was visited."""
    _, vectors = compute_smallest_eigenvectors(-(psi + psi.T) / 2.0, 1)
    e = vectors[:, 0]
    if e.sum() >= 0:
        e = -e
    return Purpose(e, f"round {number}")


def measure_rounds(task: str, way: str, seed: int) -> float:
    """Return the mean first visit of all states; a state not seen counts the budget."""
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    table = make_task(task)
    mdp = merge_ends(table)
    if way == "covering-eigen":
        walked = walk_with_covering_options(mdp, rng=seed)
    else:
        walked = walk_in_rounds(
            mdp,
            way.removeprefix("rounds, "),
            n_options=16,
            round_steps=1000,
            max_episode_steps=table.limit,
            rng=seed,
        )

    first_visit = np.full(mdp.n_states, -1)
    first_visit[table.start] = 0
    n_steps = 0
    for batch in walked:
        note_first_visits(first_visit, batch, n_steps)
        n_steps += len(batch)
        if n_steps >= table.budget or first_visit[table.states].min() >= 0:
            break
    return measure_coverage(table, first_visit, table.budget)["mean_goal"]


def merge_ends(table: Task) -> MDP:
    """Return a table with one end, the first of them: a walk knows one."""
    successors = np.array(table.mdp.successors)
    end = None
    if table.ends.any():
        end = int(table.ends.argmax())
        successors[table.ends[successors]] = end
    return MDP.from_successors(successors, start=table.start, goal=end)


def note_first_visits(
    first_visit: NDArray[np.int64], batch: Transitions, n_steps: int
) -> None:
    """Fill in the missing first visits (-1) with those of a round.

    Parameters
    ----------
    first_visit : ndarray of int of shape (S,)
        Changed in place.
    batch : Transitions
        The steps of the round.
    n_steps : int
        Steps before the round.
    """
    states, first = np.unique(batch.next_obs, return_index=True)
    is_new = first_visit[states] < 0
    first_visit[states[is_new]] = n_steps + first[is_new] + 1


def run(lab: Lab) -> pd.DataFrame:
    """Return one row per task, way and seed."""
    jobs = []
    tasks = TASKS[:1] if lab.quick else TASKS
    seeds = SEEDS[:1] if lab.quick else SEEDS
    for task, way, seed in product(tasks, WAYS, seeds):
        columns: dict[str, Any] = {"task": task, "way": way, "seed": seed}
        jobs.append(Job(measure_rounds, columns, columns))
    lab.describe("options found in rounds")
    results = lab.run({"doors": jobs})["doors"]
    return pd.DataFrame(
        [{**result.columns, "mean_goal": result.value} for result in results]
    )
