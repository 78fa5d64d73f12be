"""Agents of the experiments and their jobs: options by settings, diffusion times, and Q-learning.

An agent is a dictionary: its ``maze``, its ``options`` (arguments of `make_options`), what else its job takes, and the
columns that name it in tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import MDP, OptionSet, Spectrum
from reproduction.lab import Data, Lab
from reproduction.statistics import learning_curve, summarize_runs

Agent = Mapping[str, Any]
MAZES = ("open-room", "i-maze", "four-rooms")
# Settings of Section 4.3; 256 options stand for all.
EPISODES = {"open-room": 250, "i-maze": 250, "four-rooms": 500}
COUNTS = (0, 2, 4, 8, 16, 32, 64, 128, 256)
# Angles by which the basis of a repeated eigenvalue is turned; on a square grid that of the library is diagonal.
ANGLES = (45, 90)
# Choices that the paper leaves open, as settings of `make_eigenoptions`.
CHOICES: dict[str, dict[str, Any]] = {
    "as reported": {},
    "eigenvalue zero left out": {"skip_zero": True},
    "combinatorial Laplacian": {"operator": "combinatorial"},
    "random-walk Laplacian": {"operator": "random-walk"},
    "values below 0.001 are zero": {"tolerance": 0.001},
    "one sign only": {"both_signs": False},
    "option discount 0.5": {"gamma": 0.5},
    "option discount 0.99": {"gamma": 0.99},
}


def counts_for(
    maze: str,
    counts: Iterable[int] = COUNTS,
    *,
    skip_zero: bool = False,
    both_signs: bool = True,
    **_: Any,
) -> list[int]:
    """Numbers of eigenoptions that a maze has among those wanted, the largest for all that are too large.

    >>> counts_for("i-maze", [0, 16, 64, 128])
    [0, 16, 38]
    """
    most = (1 + both_signs) * (eo.maze(maze).n_states - skip_zero)
    return sorted({min(n, most) for n in counts})


def make_options(
    mdp: MDP, method: str = "eigen", n: int | None = None, **settings: Any
) -> OptionSet | None:
    """Return the first `n` options of a method, with settings of `make_eigenoptions` or `discover`; None if ``n=0``."""
    if n == 0:
        return None
    if method == "eigen":
        return make_eigenoptions(mdp, n, **settings)
    return eo.discover(mdp, n, method=method, **settings)  # type: ignore[no-any-return]


def make_eigenoptions(
    mdp: MDP,
    n: int | None = None,
    *,
    operator: str = "normalized",
    skip_zero: bool = False,
    both_signs: bool = True,
    angle: float = 0.0,
    action_order: Sequence[int] | None = None,
    tolerance: float = 0.0,
    shuffle: int | None = None,
    gamma: float = 0.9,
) -> OptionSet:
    """Return eigenoptions in order of eigenvalue; eigenvalue zero is counted, as the paper does.

    Parameters
    ----------
    mdp, n, operator, skip_zero, both_signs, gamma
        As in `discover`.
    angle
        Degrees by which eigenvectors of a repeated eigenvalue are turned in their plane: another basis of it.
    action_order
        Order of the actions; of equally good ones the first is taken.
    tolerance
        Values up to this one count as zero, which is TERMINATE's, for eigenvectors of length 1.
    shuffle
        Seed of a random order of the options.
    """
    sp = turn_basis(eo.spectrum(eo.graph(mdp), operator=operator), angle)
    purposes = eo.eigenpurposes(sp, both_signs=both_signs, skip_zero=skip_zero)
    if action_order is None:
        options = eo.solve(mdp, purposes, gamma)
    else:
        # Solve with reordered actions and rename them; index -1, TERMINATE, maps to itself.
        rows = (
            np.arange(mdp.n_states)[:, None] * mdp.n_actions + np.asarray(action_order)
        ).ravel()
        options = eo.solve(MDP(csr_array(mdp.transition[rows])), purposes, gamma)
        options = replace(
            options,
            mdp=mdp,
            policy=np.append(np.asarray(action_order), -1)[options.policy],
        )
    if tolerance:
        length = np.array(
            [[np.linalg.norm(np.asarray(purpose.potential))] for purpose in purposes]
        )
        options = replace(
            options,
            policy=np.where(options.value > tolerance * length, options.policy, -1),
        )
    if shuffle is not None:
        options = options[np.random.default_rng(shuffle).permutation(len(options))]
    return options[:n]


def turn_basis(sp: Spectrum, degrees: float) -> Spectrum:
    """The same spectrum in another basis: pairs of vectors of a repeated eigenvalue are turned in their plane.

    Any angle is as right as any other; 45 and 90 degrees are those at which a square grid looks different.

    >>> sp = eo.spectrum(eo.graph(eo.maze("open-room")), k=3)
    >>> turn_basis(sp, 90).vectors[:, 1].round(9).tolist() == sp.vectors[:, 2].round(9).tolist()
    True
    """
    if not degrees:
        return sp
    vectors, turned = np.array(sp.vectors), -1
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    for i in np.flatnonzero(np.diff(sp.values) < 1e-9):
        if i > turned:
            turned = i + 1
            vectors[:, i : i + 2] = vectors[:, i : i + 2] @ np.array([[c, -s], [s, c]])
    return replace(sp, vectors=vectors)


def diffuse(
    *, maze: str, options: Agent, counts: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Diffusion time of a maze with 0, 1, 2, ... options, or with these numbers of them."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    if counts is None:
        return np.asarray(eo.diffusion_curve(mdp, found))
    return np.array([eo.diffusion_time(mdp, found[:n] if n else None) for n in counts])


def diffuse_all(lab: Lab, agents: Sequence[Agent]) -> pd.DataFrame:
    """One row per agent and number of options: the columns of the agent, and its diffusion time."""
    tables = []
    for agent, (columns, times) in zip(
        agents, run_agents(lab, diffuse, agents), strict=True
    ):
        counts = agent.get("counts", range(len(times)))
        tables.append(
            pd.DataFrame({**columns, "n_options": counts, "diffusion_time": times})
        )
    return pd.concat(tables or [pd.DataFrame()], ignore_index=True)


def learn(
    *,
    maze: str,
    options: Agent,
    runs: int,
    episodes: int,
    seed: int,
    number: int,
    start=None,
    goal=None,
) -> NDArray[np.uint8]:
    """``(runs, episodes)`` whether each evaluation episode reached the goal, by default that of the maze."""
    mdp, rng = eo.maze(maze), np.random.SeedSequence(seed, spawn_key=(number,))
    found, settings = (
        make_options(mdp, **options),
        {"runs": runs, "episodes": episodes, "rng": rng},
    )
    return eo.q_learning(mdp, found, start=start, goal=goal, **settings).returns.astype(
        np.uint8
    )


def learn_all(
    lab: Lab, agents: Iterable[Agent], *, runs: int, episodes: Any, seed: int
) -> Data:
    """Data frames ``runs`` (see `summarize_runs`) and ``curves`` (see `learning_curve`) of agents.

    Each agent has its own random numbers; `episodes` may differ by maze.
    """
    jobs = [
        {
            **agent,
            "episodes": episodes
            if isinstance(episodes, int)
            else episodes[agent["maze"]],
            "number": i,
        }
        for i, agent in enumerate(agents)
    ]
    learned = run_agents(
        lab, learn, [{**job, "runs": runs, "seed": seed} for job in jobs]
    )
    return {
        name: pd.concat(
            [tabulate(returns).assign(**columns) for columns, returns in learned]
        )
        for name, tabulate in (("runs", summarize_runs), ("curves", learning_curve))
        if learned
    }


def run_agents(
    lab: Lab, function: Callable[..., Any], agents: Sequence[Agent]
) -> list[tuple[Any, Any]]:
    """Columns of each agent (``domain`` is its maze) and its result: what a function takes are not columns."""
    names = inspect.signature(function).parameters
    results = lab.pmap(
        function, [{k: v for k, v in agent.items() if k in names} for agent in agents]
    )
    columns = [{k: v for k, v in agent.items() if k not in names} for agent in agents]
    return [
        ({"domain": a["maze"], **c}, r)
        for a, c, r in zip(agents, columns, results, strict=True)
    ]
