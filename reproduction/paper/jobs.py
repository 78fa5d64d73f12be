"""Jobs of the experiments: functions of plain settings, with the same result on every engine (see `parallel`).

The options of an agent are plain settings too:

======== =====================================================================================================
method   ``"primitive"`` (none), or a method of `discover`: ``"eigen"``, ``"bottleneck"``, ``"random"``
n        number of options, or None for all
shuffle  seed of a random order in which to take them, instead of their own
rng      seed of random goals
operator, skip_zero, both_signs, gamma
         as in `discover`; eigenvalue zero is counted, as the paper does
ties     order of the actions, of which the first of equally good ones is taken
absolute tolerance within which a value ties with TERMINATE, for eigenvectors of length 1
turn     degrees by which the eigenvectors of a repeated eigenvalue are turned in their plane: another basis of it
======== =====================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.discovery import discover
from eigenoptions.discovery.methods.eigen import purposes as first_purposes
from eigenoptions.evaluation import diffusion_curve, hitting_times
from eigenoptions.learning import q_learning
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import Spectrum, spectrum
from reproduction import Pmap, Settings
from reproduction.tables import Row

Job = Mapping[str, Any]
# Columns of the rows of an agent's results, and its job: a maze, options, and what else a function takes.
Agent = tuple[Row, Job]
PRIMITIVE = {"method": "primitive"}
BOTTLENECK = {"method": "bottleneck"}
MAZES = ["open-room", "i-maze", "four-rooms"]
# Settings of Section 4.3; the last number of options stands for all, and a job has a block of runs.
LEARNING: Settings = {
    "episodes": {"open-room": 250, "i-maze": 250, "four-rooms": 500},
    "options": [0, 2, 4, 8, 16, 32, 64, 128, 256],
    "runs": 100,
    "max_steps": 100,
    "block": 50,
}
# Other bases of repeated eigenvalues, by the degrees they are turned; on a square grid that of the library is diagonal.
TURNED = {f"turned by {degrees} degrees": degrees for degrees in (45, 90)}
# Eigenvalues of these mazes that differ by less are one repeated eigenvalue.
REPEATED = 1e-9


def eigen(n: int | None = None, **how: Any) -> dict[str, Any]:
    """Settings of eigenoptions, counted as in the paper.

    >>> eigen(64)
    {'method': 'eigen', 'n': 64}
    """
    return {"method": "eigen", "n": n, **how}


def agent(maze: str, options: Job, how: Job | None = None, /, **key: Any) -> Agent:
    """Agent with options in a maze, and `how` else to run it; the other arguments are its columns.

    >>> agent("i-maze", PRIMITIVE, {"goal": 3}, kind="primitive")
    ({'kind': 'primitive'}, {'maze': 'i-maze', 'options': {'method': 'primitive'}, 'goal': 3})
    """
    return key, {"maze": maze, "options": options, **(how or {})}


def counts_for(name: str, wanted: Sequence[int]) -> list[int]:
    """Numbers of eigenoptions that a maze has among those wanted, the largest for all that are too large.

    >>> counts_for("i-maze", [0, 16, 64, 128])
    [0, 16, 38]
    """
    most = 2 * maze(name).n_states
    return sorted({min(n, most) for n in wanted})


def skills(mdp: MDP, how: Job) -> OptionSet | None:
    """Options that settings describe.

    >>> skills(maze("i-maze"), eigen(3))
    OptionSet(3 options on 19 states: e1+, e1-, e2+)
    """
    given = dict(how)
    method, n, shuffle = given.pop("method"), given.pop("n", None), given.pop("shuffle", None)
    if method == "primitive" or n == 0:
        return None
    if shuffle is not None:
        options = skills(mdp, {"method": method, **given})
        assert options is not None
        return options[np.random.default_rng(shuffle).permutation(len(options))[:n]]
    return eigenoptions(mdp, n, **given) if method == "eigen" else discover(mdp, n, method, **given)


def eigenoptions(
    mdp: MDP,
    n: int | None = None,
    *,
    ties: Sequence[int] | None = None,
    absolute: float | None = None,
    turn: float = 0.0,
    gamma: float = 0.9,
    **how: Any,
) -> OptionSet:
    """Options of the first eigenvectors; see the table above."""
    if turn:
        sp = rebased(spectrum(graph(mdp)), turn)
        return solve(mdp, eigenpurposes(sp, skip_zero=False), gamma)[:n]
    purposes = first_purposes(mdp, n, np.random.default_rng(0), **{"skip_zero": False, **how})
    if absolute is not None:
        # The tolerance of `solve` is relative to the largest entry.
        lengths = [float(np.linalg.norm(p.potential) / np.abs(p.potential).max()) for p in purposes]
        one = [solve(mdp, p, gamma, tolerance=absolute * x) for p, x in zip(purposes, lengths, strict=True)]
        return sum(one[1:], one[0])
    if ties is None:
        return solve(mdp, purposes, gamma)
    rows = (np.arange(mdp.n_states)[:, None] * mdp.n_actions + np.asarray(ties)).ravel()
    turned = solve(MDP(csr_array(mdp.transition[rows])), purposes, gamma)
    # Index -1, TERMINATE, maps to itself.
    back = np.append(np.asarray(ties), -1)
    return replace(turned, mdp=mdp, policy=back[turned.policy])


def rebased(sp: Spectrum, degrees: float) -> Spectrum:
    """The same spectrum in another basis: consecutive vectors of a repeated eigenvalue are turned in their plane.

    Any angle is as right as any other; 45 and 90 degrees are those at which a square grid looks different.

    >>> sp = spectrum(graph(maze("open-room")), k=3)
    >>> rebased(sp, 90).vectors[:, 1].round(9).tolist() == sp.vectors[:, 2].round(9).tolist()
    True
    """
    vectors, i = np.array(sp.vectors), 0
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    while i < len(sp.values) - 1:
        repeated = abs(sp.values[i + 1] - sp.values[i]) < REPEATED
        if repeated:
            vectors[:, i : i + 2] = vectors[:, i : i + 2] @ np.array([[c, -s], [s, c]])
        i += 1 + repeated
    return replace(sp, vectors=vectors)


def diffuse(job: Job) -> list[float]:
    """Diffusion time of a maze with 0, 1, 2, ... options."""
    mdp = maze(job["maze"])
    options = skills(mdp, job["options"])
    assert options is not None
    return [float(x) for x in diffusion_curve(mdp, options)]


def diffuse_all(pmap: Pmap, agents: Sequence[Agent]) -> list[Row]:
    """One row per agent and number of options, of its result of `diffuse`.

    >>> diffuse_all(lambda f, jobs: [[620.8]], [agent("four-rooms", eigen(), set=3)])
    [{'set': 3, 'options': 0, 'diffusion_time': 620.8}]
    """
    curves = pmap(diffuse, [job for _, job in agents])
    return [
        {**key, "options": m, "diffusion_time": x}
        for (key, _), curve in zip(agents, curves, strict=True)
        for m, x in enumerate(curve)
    ]


def reach(job: Job) -> NDArray[np.float64]:
    """``(S,)`` mean steps to reach each state from the others."""
    mdp = maze(job["maze"])
    return np.asarray(hitting_times(mdp, skills(mdp, job["options"])).sum(axis=0) / (mdp.n_states - 1))


def learn(job: Job) -> NDArray[np.uint8]:
    """``(2, runs, episodes)`` whether each evaluation episode and each learning episode reached the goal."""
    mdp, options = _agent(job["maze"], json.dumps(job["options"], sort_keys=True))
    record = q_learning(
        mdp,
        options,
        runs=range(*job["runs"]),
        episodes=job["episodes"],
        max_steps=job["max_steps"],
        rng=np.random.SeedSequence(job["seed"], spawn_key=tuple(job["key"])),
        start=job.get("start"),
        goal=job.get("goal"),
        follow=job.get("follow", True),
    )
    return np.stack([record.returns, record.learning_returns]).astype(np.uint8)


@lru_cache(maxsize=8)
def _agent(name: str, options: str) -> tuple[MDP, OptionSet | None]:
    mdp = maze(name)
    return mdp, skills(mdp, json.loads(options))


def learn_all(
    pmap: Pmap, settings: Settings, agents: Sequence[Agent], seed: int = 0
) -> list[tuple[Row, NDArray[np.uint8]]]:
    """Key of each agent with its result of `learn`; each agent has its own random numbers, whatever the blocks of runs.

    Parameters
    ----------
    pmap
        Map over jobs.
    settings
        ``runs``, ``max_steps``, ``seed``, ``episodes`` (a number, or one per maze), and ``block``, the runs per job.
    agents
        Their jobs have a maze, options, and perhaps a start, a goal and `follow`, as in `q_learning`.
    seed
        Added to the seed of the settings.
    """
    runs, block, episodes = settings["runs"], settings.get("block", settings["runs"]), settings["episodes"]
    same = {"max_steps": settings["max_steps"], "seed": settings["seed"] + seed}
    jobs = [
        {
            **job,
            **same,
            "episodes": episodes if isinstance(episodes, int) else episodes[job["maze"]],
            "runs": [first, min(first + block, runs)],
            "key": [i],
        }
        for i, (_, job) in enumerate(agents)
        for first in range(0, runs, block)
    ]
    # A map over nothing would report 0 of 0 jobs.
    done = pmap(learn, jobs) if jobs else []
    each = -(-runs // block)
    whole = [np.concatenate(done[i : i + each], axis=1) for i in range(0, len(done), each)]
    return [(key, returns) for (key, _), returns in zip(agents, whole, strict=True)]
