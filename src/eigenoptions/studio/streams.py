"""Answers that come bit by bit: diffusion times as options are added, learning curves, and the sampled spectrum.

Each is a generator of events (plain JSON values) that the server sends as lines. Between events, and inside long
computations, `alive` is called: it raises when nobody reads any more, which ends the work.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery import discover
from eigenoptions.evaluation import diffusion_time, hitting_times
from eigenoptions.learning import LearningRecord, q_learning
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import lengths, solve
from eigenoptions.spectra import clusters, spectrum
from eigenoptions.spectra.gram import Gram
from eigenoptions.studio.answers import Alive, Answer, options_of, packed, read_maze, task_of
from eigenoptions.studio.requests import MOST_MEASURED, MOST_SAMPLED, Ask

SHOWN = 6  # eigenvectors whose convergence is shown
BLOCKS, BLOCK = 10, 4  # learning: so many times so many runs
EPISODES = 200
PACE = 0.07  # seconds between two looks at the samples: slow enough to watch


def measure(ask: Ask, alive: Alive) -> Iterator[Answer]:
    """Diffusion times as options are added, of each method and without any, and which states are hard to reach."""
    mdp = read_maze(ask.map)
    _at_most(mdp, MOST_MEASURED, "diffusion times are measured")

    def time_of(options: OptionSet | None) -> float:
        return diffusion_time(mdp, options, progress=lambda *_: alive())

    yield {"primitive": time_of(None), "reach": _reach(mdp, None, alive)}
    eigen = options_of(ask)
    sets: dict[str, OptionSet] = {"eigen": eigen}
    for method in ("bottleneck", "random"):
        many = min(len(eigen), mdp.n_states) if method == "random" else None
        try:
            sets[method] = discover(mdp, many, method, rng=ask.seed)
        except ValueError as error:
            yield {"method": method, "error": str(error)}
    plan = sorted((n, method) for method, options in sets.items() for n in _counts(len(options)))
    for n, method in plan:
        try:
            yield {"method": method, "n": n, "time": time_of(sets[method][:n])}
        except OverflowError:  # beyond 1e290: off the chart
            yield {"method": method, "n": n, "time": None}
    yield {"reach_with": _reach(mdp, eigen, alive), "n": len(eigen)}


def learn(ask: Ask, alive: Alive) -> Iterator[Answer]:
    """Learning curves of the drawn task, over more and more runs: primitive actions alone, and with options."""
    mdp = task_of(ask.map)
    options = options_of(ask)
    shortest = _shortest(mdp)
    if not np.isfinite(shortest):
        raise ValueError("no way leads from the start to the goal: erase a wall between them")
    limit = max(100, 5 * int(shortest))
    yield {"episodes": EPISODES, "max_steps": limit, "shortest": int(shortest), "n": len(options)}
    records: dict[str, LearningRecord] = {}
    for block in range(BLOCKS):
        for name, chosen in (("primitive", None), ("options", options)):
            alive()
            part = q_learning(
                mdp,
                chosen,
                runs=range(block * BLOCK, (block + 1) * BLOCK),
                episodes=EPISODES,
                max_steps=limit,
                rng=ask.seed,
            )
            record = records[name] = records[name] + part if name in records else part
            low, high = record.band()
            curves = {"mean": record.mean(), "low": low, "high": high}
            event = {key: np.round(curve, 4).tolist() for key, curve in curves.items()}
            yield {"method": name, "runs": len(record.runs), **event}


def sample(ask: Ask, alive: Alive) -> Iterator[Answer]:
    """A random walk, the rows it adds to the incidence matrix T, T'T, and its eigenvectors beside the exact ones."""
    mdp = read_maze(ask.map)
    _at_most(mdp, MOST_SAMPLED, "samples are shown")
    n = mdp.n_states
    W = graph(mdp)
    exact = spectrum(W, operator="combinatorial", coords=mdp.coords) if n <= 400 else None
    exact = exact or spectrum(W, min(n, SHOWN + 40), "combinatorial", coords=mdp.coords)
    if exact.n_zero > 1:
        raise ValueError("the maze is in several pieces, and a walk sees only one: erase a wall between them")
    shown = min(SHOWN, len(exact.values) - 1)
    yield {
        "states": n,
        "transitions": int(W.nnz),
        "eigenvalues": exact.values[1 : shown + 1].tolist(),
        "exact": packed(exact.vectors[:, 1 : shown + 1].T, "<f4"),
    }
    rng = np.random.default_rng(ask.seed)
    gram = Gram(n)
    known: set[tuple[int, int]] = set()
    here = int(rng.integers(n)) if mdp.start is None else mdp.start
    size = 12.0
    while len(gram) < W.nnz and gram.n_transitions < 3_000_000:
        began = time.perf_counter()
        walk = _wander(mdp, here, int(size), rng)
        here = walk[-1]
        # Which rows are new is asked of the walk, to draw them in order; how many are must agree with the library.
        moves = [move for move in dict.fromkeys(pairwise(walk)) if move[0] != move[1] and move not in known]
        known.update(moves)
        if gram.add(walk[:-1], walk[1:]) != len(moves):
            raise ArithmeticError("the walk and the Gram matrix disagree about which transitions are new")
        yield {**_look(gram, exact.values, exact.vectors, shown), "new": [s for move in moves for s in move]}
        alive()
        size *= 1.22
        time.sleep(max(0.0, PACE - (time.perf_counter() - began)))
    yield {"done": len(gram) == W.nnz}


def _look(gram: Gram, values: NDArray[np.float64], vectors: NDArray[np.float64], shown: int) -> Answer:
    """T'T and its first eigenvectors, and how much of each lies in the exact eigenspace (1: all of it)."""
    G = gram.matrix.tocoo()
    seen = int((gram.matrix.diagonal() > 0).sum())
    look: Answer = {
        "steps": gram.n_transitions,
        "rows": len(gram),
        "gram": packed(np.stack([G.row, G.col, G.data]), "<i2"),
        "vectors": None,
        "agreement": [0.0] * shown,
    }
    if len(gram) and seen > shown:
        found = gram.spectrum(shown + 1)
        columns = found.vectors[:, 1:]
        space = {j: (low, high) for low, high in clusters(values) for j in range(low, high)}
        agreement = []
        for j in range(shown):
            low, high = space[j + 1]
            inside = vectors[:, low:high].T @ columns[:, j]
            agreement.append(round(float(np.linalg.norm(inside)), 4))
            # Within a repeated eigenvalue the sampled vector may point anywhere; its sign is free everywhere.
            if inside[j + 1 - low] < 0:
                columns[:, j] *= -1.0
        look |= {"agreement": agreement, "vectors": packed(columns.T, "<f4")}
    return look


def _wander(mdp: MDP, state: int, steps: int, rng: np.random.Generator) -> list[int]:
    """States of a uniformly random walk, the first included."""
    assert mdp.successors is not None
    nxt = mdp.successors.tolist()
    walk = [state]
    for action in rng.integers(mdp.n_actions, size=steps).tolist():
        state = nxt[state][action]
        walk.append(state)
    return walk


def _reach(mdp: MDP, options: OptionSet | None, alive: Alive) -> str:
    """Mean steps to each state from the others, packed."""
    times = hitting_times(mdp, options, progress=lambda *_: alive())
    return packed(np.minimum(times.sum(axis=0) / (mdp.n_states - 1), 3e38), "<f4")


def _shortest(mdp: MDP) -> float:
    """Steps of the shortest way from start to goal, inf where there is none."""
    direction = np.zeros(mdp.n_states)
    direction[mdp.goal] = 1.0
    way = solve(mdp, Purpose(direction, "goal"), 1.0 - 0.5 / (mdp.n_states + 1))
    starts = way.policy[0, mdp.start] >= 0
    return float(lengths(mdp, way.policy[0])[mdp.start]) if starts else np.inf


def _counts(most: int) -> list[int]:
    """Numbers of options at which to measure: all few, then fewer and fewer."""
    steps = [*range(1, 17), *range(18, 33, 2), *range(36, 129, 4)]
    return sorted({m for m in steps if m < most} | {most})


def _at_most(mdp: MDP, most: int, what: str) -> None:
    if mdp.n_states > most:
        raise ValueError(
            f"{what} on the page for at most {most} states, got {mdp.n_states}: "
            "draw a smaller maze, or use the library in Python"
        )
