"""What the server computes for the page, through the library's public functions.

An answer is one JSON object; a stream is a generator of them, which is sent as lines. Both call `alive` inside long
computations, also as their `progress`: it raises when the client has disconnected, which ends the work. Arrays are sent
as base64 of little-endian numbers (float32 for pictures, int8 for actions): a page reads those faster than JSON.
"""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from eigenoptions._text import directions
from eigenoptions.discovery import discover
from eigenoptions.discovery.methods import get_method as declared
from eigenoptions.discovery.methods import methods
from eigenoptions.evaluation import best_option_chance, diffusion_time, hitting_times
from eigenoptions.features import OneHot
from eigenoptions.learning import LearningRecord, q_learning
from eigenoptions.mdp import MDP, distance, graph, maze, mazes
from eigenoptions.mdp.maps import GENERATORS, rooms_map
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.options.walks import walk
from eigenoptions.spectra import OPERATORS, Spectrum, spectrum
from eigenoptions.spectra.canonical import cluster_bounds
from eigenoptions.spectra.incidence import Incidence, incidence_spectrum
from eigenoptions.studio.requests import (
    MAX_CELLS,
    MAX_EIGENVECTORS,
    MAX_MEASURED_STATES,
    MAX_OPTIONS,
    MAX_SAMPLED_STATES,
    Request,
    too_large,
)

Answer = dict[str, Any]
Alive = Callable[..., None]

MAX_RACE_STEPS = 4000
# Chance of an option in the third lane of a race where the request names none: about the best on the paper's mazes.
RACE_CHANCE = 0.1
# Arguments of `_check` for mazes whose diffusion times are measured.
MEASURABLE = (MAX_MEASURED_STATES, "diffusion times are measured", "so the diffusion time is infinite")
# Methods that are measured before the others.
PAPER_METHODS = ("eigen", "bottleneck", "random")
# Chances of an option at which the diffusion time is shown.
SHOWN_CHANCES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Learning curves: number of updates, runs per update, and episodes per run.
LEARNING_UPDATES, RUNS_PER_UPDATE, EPISODES = 10, 4, 200
# Eigenvectors whose convergence is shown, and transitions after which sampling ends in any case.
SAMPLED_EIGENVECTORS, MAX_SAMPLES = 6, 3_000_000
# Up to this many states all exact eigenvectors are computed for the comparison with samples.
FULL_SPECTRUM_STATES = 400
# Seconds between two updates of the sampled view: slow enough to watch.
SAMPLING_INTERVAL = 0.07


def describe() -> Answer:
    """What the page can offer: built-in mazes and the names in the library's registries."""
    return {
        "mazes": [{"name": name, "map": drawn(maze(name))} for name in mazes()],
        "operators": list(OPERATORS),
        "methods": _offered(),
        "kinds": list(GENERATORS),
        "limits": {
            "cells": MAX_CELLS,
            "shown": MAX_EIGENVECTORS,
            "options": MAX_OPTIONS,
            "measured": MAX_MEASURED_STATES,
        },
    }


def drawn(mdp: MDP) -> list[str]:
    """The rows of a map of ``#``, ``.``, ``S`` and ``G``, with the wall around it where it had one.

    >>> drawn(maze("#S.G"))
    ['#S.G#']
    """
    assert mdp.coords is not None
    low, high = mdp.coords.min(axis=0), mdp.coords.max(axis=0)
    if high.max() >= MAX_CELLS:
        raise too_large(high[0] + 1, high[1] + 1)
    grid = np.full(tuple(np.minimum(high + 1 + (low > 0), MAX_CELLS)), "#")
    grid[tuple(mdp.coords.T)] = "."
    for state, letter in ((mdp.start, "S"), (mdp.goal, "G")):
        if state is not None:
            grid[tuple(mdp.coords[state])] = letter
    return ["".join(row) for row in grid]


def map_rows(request: Request, alive: Alive) -> Answer:
    """A map as a rectangle."""
    return {"map": drawn(read_maze(request.map))}


def random_map(request: Request, alive: Alive) -> Answer:
    """A map by rule of about this size, with start and goal in opposite corners."""
    rng = np.random.default_rng(request.seed)
    sides = (request.rows, request.cols)
    if request.kind == "rooms":
        # Rooms of a random size, of which at least two and at most six fit along the shorter side.
        short = min(sides)
        sizes = [s for s in range(3, 10) if 2 * (s + 1) < short and (short - 1) // (s + 1) <= 6]
        size = int(rng.choice(sizes or [max(min(short - 2, 9), 1)]))
        rows, cols = (max((n - 1) // (size + 1), 1) for n in sides)
        text = rooms_map(rows, cols, size, rng=rng)
    else:
        unit = 2 if request.kind == "perfect" else 1
        rows, cols = (max((n - (unit > 1)) // unit, 1) for n in sides)
        text = GENERATORS[request.kind](rows, cols, request.seed)
    mdp = read_maze(text)
    assert mdp.coords is not None
    bottom_left = int((mdp.coords[:, 0] - mdp.coords[:, 1]).argmax())
    top_right = int((mdp.coords[:, 1] - mdp.coords[:, 0]).argmax())
    return {"map": drawn(mdp.with_task(bottom_left, top_right) if bottom_left != top_right else mdp)}


def picture(request: Request, alive: Alive) -> Answer:
    """Eigenvectors, smallest eigenvalue first, and the options of both signs of each; also the time of each step."""
    ms: dict[str, float] = {}
    with _timed(ms, "maze"):
        mdp = read_maze(request.map)
    alive()
    with _timed(ms, "spectrum"):
        sp = _spectrum(request.map, request.operator, request.shown)
    alive()
    with _timed(ms, "options"):
        options = _solved(request.map, request.operator, request.shown, request.gamma)
    with _timed(ms, "pack"):
        first = sp.n_zero
        answer = {
            "states": mdp.n_states,
            "pieces": first,
            "more": len(sp.values) < mdp.n_states,
            "eigenvalues": sp.values[first:].tolist(),
            "labels": list(options.labels),
            "vectors": packed(sp.vectors[:, first:].T, "<f4"),
            "policies": packed(options.policy, "i1"),
            "moves": packed(_moves(options), "i1"),
            "values": packed(options.value, "<f4"),
            "mean_length": options.mean_length.tolist(),
            "components": packed(connected_components(graph(mdp), directed=False)[1], "<i2")
            if first > 1
            else None,
        }
    return answer | {"ms": ms}


def _moves(options: OptionSet) -> NDArray[np.int8]:
    """``(n, S)`` what to draw in each state: see `_text.directions`."""
    found = np.zeros(options.policy.shape, dtype=np.int8)
    for i, policy in enumerate(options.policy):
        moves = options.moves(i)
        assert moves is not None
        found[i] = directions(policy, moves)
    return found


def race(request: Request, alive: Alive) -> Answer:
    """Random walks from start to goal and the expected numbers of steps, without options and under two choices of them.

    The lanes are "primitive" (actions only), "uniform" (the paper's choice) and "options" (the chance asked for).
    """
    mdp, start, goal = _task(request.map)
    options = _options(request)
    chance = RACE_CHANCE if request.option_chance is None else request.option_chance
    lanes = {"primitive": (None, None), "uniform": (options, None), "options": (options, chance)}
    children = np.random.SeedSequence(request.seed).spawn(len(lanes))
    answer: Answer = {
        "start": start,
        "goal": goal,
        "labels": list(options.labels),
        "option_chance": chance,
        "ends_at_goal": [o.label for o in options if o.termination[goal] and o.initiation.any()],
        "at_start": int((options.policy[:, start] >= 0).sum()),
    }
    for (name, (chosen, c)), child in zip(lanes.items(), children, strict=True):
        how: Any = {"option_chance": c, "rng": np.random.default_rng(child)}
        steps = walk(mdp, MAX_RACE_STEPS, chosen, **how)
        by = np.full(len(steps.obs), -1)
        reached = bool(steps.terminated.any())
        end = int(steps.terminated.argmax()) + 1 if reached else MAX_RACE_STEPS
        path = [start, *steps.next_obs[:end].tolist()]
        lane = {"path": path, "by": by[:end].tolist(), "reached": reached, "expected": None}
        if mdp.n_states <= MAX_MEASURED_STATES:
            times = hitting_times(mdp, chosen, option_chance=c, progress=alive)
            lane["expected"] = float(times[start, goal])
        answer[name] = lane
        alive()
    return answer


def options_file(request: Request, alive: Alive) -> bytes:
    """The options on the screen, as the bytes of the file that `OptionSet.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "options.safetensors"
        _options(request).save(file)
        return file.read_bytes()


def _offered() -> list[str]:
    """Methods that work on a maze, which has no rewards."""
    return [name for name in methods() if not declared(name).needs_rewards]


def measure(request: Request, alive: Alive) -> Iterator[Answer]:
    """Diffusion times as options are added, for each method; which states are hard to reach; the best chance."""
    mdp = read_maze(request.map)
    _check(mdp, *MEASURABLE)
    chance = request.option_chance
    yield {"primitive": diffusion_time(mdp), "reach": _reach(mdp, None, None, alive)}
    yield from _curves(mdp, request, [m for m in _offered() if m in PAPER_METHODS], alive)
    eigen = _options(request)
    yield {"reach_with": _reach(mdp, eigen, chance, alive), "n": len(eigen)}
    for c in SHOWN_CHANCES:
        yield {"chance": c, "time": _time(mdp, eigen, c, alive)}
    best = best_option_chance(mdp, eigen, progress=alive)
    uniform = best.uniform_diffusion_time if np.isfinite(best.uniform_diffusion_time) else None
    yield {"best": best.chance, "time": best.diffusion_time, "uniform": uniform}
    yield from _curves(mdp, request, [m for m in _offered() if m not in PAPER_METHODS], alive)


def _curves(mdp: MDP, request: Request, names: list[str], alive: Alive) -> Iterator[Answer]:
    """Diffusion times of some methods, few options first, and where each method is."""
    sets: dict[str, OptionSet] = {}
    for method in names:
        yield {"discovering": method}
        try:
            sets[method] = _by_method(mdp, replace(request, method=method))
        except ValueError as error:
            yield {"method": method, "error": str(error)}
    plan = sorted((n, method) for method, options in sets.items() for n in _counts(len(options)))
    yield {"total": len(plan)}
    for n, method in plan:
        time = _time(mdp, sets[method][:n], request.option_chance, alive)
        yield {"method": method, "n": n, "time": time}


def compare(request: Request, alive: Alive) -> Iterator[Answer]:
    """The options of one method, and its diffusion times as they are added."""
    mdp = read_maze(request.map)
    options = _by_method(mdp, request)
    yield {
        "summary": declared(request.method).summary,
        "labels": list(options.labels),
        "policies": packed(options.policy, "i1"),
        "values": packed(options.value, "<f4"),
        "mean_length": options.mean_length.tolist(),
    }
    _check(mdp, *MEASURABLE)
    yield {"n": 0, "time": diffusion_time(mdp)}
    for n in _counts(len(options)):
        yield {"n": n, "time": _time(mdp, options[:n], request.option_chance, alive)}


def learn(request: Request, alive: Alive) -> Iterator[Answer]:
    """Learning curves of the drawn task over a growing number of runs, without and with options."""
    mdp, start, goal = _task(request.map)
    options = _options(request)
    shortest = distance(mdp, start, goal)
    if shortest is None:
        raise ValueError("no path leads from the start to the goal: erase a wall between them")
    limit = max(100, 5 * shortest)
    yield {"episodes": EPISODES, "max_steps": limit, "shortest": shortest, "n": len(options)}
    records: dict[str, LearningRecord] = {}
    for update in range(LEARNING_UPDATES):
        runs = range(update * RUNS_PER_UPDATE, (update + 1) * RUNS_PER_UPDATE)
        for name, chosen in (("primitive", None), ("options", options)):
            alive()
            how: Any = {
                "option_chance": None if chosen is None else request.option_chance,
                "rng": request.seed,
            }
            part = q_learning(mdp, chosen, runs=runs, episodes=EPISODES, max_steps=limit, **how)
            record = records[name] = records[name] + part if name in records else part
            low, high = record.band()
            curves = {"mean": record.mean(), "low": low, "high": high}
            event = {key: np.round(curve, 4).tolist() for key, curve in curves.items()}
            yield {"method": name, "runs": len(record.runs), **event}


def sample(request: Request, alive: Alive) -> Iterator[Answer]:
    """A random walk, the rows it adds to the incidence matrix T, T'T, and its eigenvectors beside the exact ones."""
    mdp = read_maze(request.map)
    n, W = mdp.n_states, graph(mdp)
    _check(mdp, MAX_SAMPLED_STATES, "samples are shown", "and a walk sees only one")
    k = None if n <= FULL_SPECTRUM_STATES else min(n, SAMPLED_EIGENVECTORS + 40)
    exact = spectrum(W, k, "combinatorial")
    shown = min(SAMPLED_EIGENVECTORS, len(exact.values) - 1)
    yield {
        "states": n,
        "transitions": int(W.nnz),
        "eigenvalues": exact.values[1 : shown + 1].tolist(),
        "exact": packed(exact.vectors[:, 1 : shown + 1].T, "<f4"),
    }
    rng = np.random.default_rng(request.seed)
    endless = replace(mdp, start=None, goal=None)
    T, states_to_rows, n_steps = Incidence(), OneHot(n), 0
    known: set[tuple[int, int]] = set()
    here, steps = mdp.start, 12.0
    while len(T) < W.nnz and n_steps < MAX_SAMPLES:
        began = time.perf_counter()
        walked = walk(endless, int(steps), begin=here, rng=rng)
        states = [int(walked.obs[0]), *walked.next_obs.tolist()]
        here = states[-1]
        # The new rows in the order in which the walk found them.
        moves = [m for m in dict.fromkeys(pairwise(states)) if m[0] != m[1] and m not in known]
        known.update(moves)
        T.add(states_to_rows(walked.obs), states_to_rows(walked.next_obs))
        n_steps += len(walked)
        yield {**_compared(T, n_steps, exact, shown), "new": [s for move in moves for s in move]}
        alive()
        steps *= 1.22
        time.sleep(max(0.0, SAMPLING_INTERVAL - (time.perf_counter() - began)))
    yield {"done": len(T) == W.nnz}


# Path of each endpoint under /api, what computes it, and the fields of a request that it takes.
_SKILLS = ("map", "operator", "gamma", "n_options", "option_chance", "seed")
ANSWERS = {
    "maze": (map_rows, ("map",)),
    "random": (random_map, ("kind", "rows", "cols", "seed")),
    "picture": (picture, ("map", "operator", "gamma", "shown")),
    "race": (race, _SKILLS),
    "options": (options_file, _SKILLS),
}
STREAMS = {
    "measure": (measure, _SKILLS),
    "compare": (compare, (*_SKILLS, "method")),
    "learn": (learn, _SKILLS),
    "sample": (sample, ("map", "seed")),
}


def packed(numbers: ArrayLike, kind: str) -> str:
    """An array as base64 of its numbers, row by row.

    >>> packed([1.0], "<f4")
    'AACAPw=='
    """
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=kind).tobytes()).decode("ascii")


@lru_cache(maxsize=16)
def read_maze(text: str) -> MDP:
    """The MDP of a map's text; never that of a name or a file."""
    return maze(text + "\n")


@lru_cache(maxsize=16)
def _spectrum(text: str, operator: str, shown: int) -> Spectrum:
    mdp = read_maze(text)
    W = graph(mdp)
    components = int(connected_components(W, directed=False)[0])
    if components == mdp.n_states:
        raise ValueError(
            "no free cell has a free neighbour, so there is nowhere to go: erase a wall between two cells"
        )
    return spectrum(W, min(components + shown, mdp.n_states), operator)


@lru_cache(maxsize=16)
def _solved(text: str, operator: str, shown: int, gamma: float) -> OptionSet:
    return solve(read_maze(text), eigenpurposes(_spectrum(text, operator, shown)), gamma)


@lru_cache(maxsize=16)
def _discovered(text: str, operator: str, gamma: float, n_options: int) -> OptionSet:
    mdp = read_maze(text)
    most = 2 * (mdp.n_states - _spectrum(text, operator, 1).n_zero)
    return discover(mdp, min(n_options, most), gamma=gamma, operator=operator)


def _options(request: Request) -> OptionSet:
    """The eigenoptions asked for, or all there are if those are fewer."""
    return _discovered(request.map, request.operator, request.gamma, request.n_options)


def _by_method(mdp: MDP, request: Request) -> OptionSet:
    """The options of the request's method: as many as eigenoptions, or all where the method decides on the number."""
    if request.method == "eigen":
        return _options(request)
    many = None if declared(request.method).n_options is None else min(request.n_options, mdp.n_states)
    return discover(mdp, many, request.method, rng=request.seed)


def _time(mdp: MDP, options: OptionSet, chance: float | None, alive: Alive) -> float | None:
    """The diffusion time; None beyond 1e290."""
    try:
        return diffusion_time(mdp, options, option_chance=chance, progress=alive)
    except OverflowError:
        return None


def _task(text: str) -> tuple[MDP, int, int]:
    """The MDP of a map, its start and its goal."""
    mdp = read_maze(text)
    if mdp.start is None or mdp.goal is None:
        missing = "start (S)" if mdp.start is None else "goal (G)"
        raise ValueError(f"this maze has no {missing}: place one first")
    return mdp, mdp.start, mdp.goal


def _check(mdp: MDP, most: int, what: str, consequence: str) -> None:
    """Refuse a maze that is too large for what the page shows, or that has several components."""
    if mdp.n_states > most:
        raise ValueError(
            f"{what} on the page for at most {most} states, got {mdp.n_states}: "
            "draw a smaller maze, or use the library in Python"
        )
    pieces = int(connected_components(graph(mdp), directed=False)[0])
    if pieces > 1:
        raise ValueError(
            f"the maze has {pieces} components with no path between them, {consequence}: "
            "erase a wall between them"
        )


def _counts(most: int) -> list[int]:
    """Numbers of options at which to measure: all small numbers, then fewer and fewer."""
    steps = [*range(1, 17), *range(18, 33, 2), *range(36, 129, 4)]
    return sorted({m for m in steps if m < most} | {most})


def _reach(mdp: MDP, options: OptionSet | None, chance: float | None, alive: Alive) -> str:
    """Mean steps to each state from the others, packed."""
    times = hitting_times(mdp, options, option_chance=chance, progress=alive)
    return packed(np.minimum(times.sum(axis=0) / (mdp.n_states - 1), 3e38), "<f4")


def _compared(T: Incidence, n_steps: int, exact: Spectrum, shown: int) -> Answer:
    """T'T and its first eigenvectors, and the share of each that lies in the exact eigenspace (1: all of it)."""
    G = (T.rows.T @ T.rows).tocoo()
    answer: Answer = {
        "steps": n_steps,
        "rows": len(T),
        "gram": packed(np.stack([G.row, G.col, G.data]), "<i2"),
        "vectors": None,
        "agreement": [0.0] * shown,
    }
    if len(T) and int((G.diagonal() > 0).sum()) > shown:
        columns: NDArray[np.float64] = incidence_spectrum(T.rows, shown + 1).vectors[:, 1:].copy()
        bounds = cluster_bounds(exact.values).tolist()
        eigenspace = {j: (low, high) for low, high in pairwise(bounds) for j in range(low, high)}
        for j in range(shown):
            low, high = eigenspace[j + 1]
            inside = exact.vectors[:, low:high].T @ columns[:, j]
            answer["agreement"][j] = round(float(np.linalg.norm(inside)), 4)
            # The sign of a sampled vector is arbitrary: show that of the exact one.
            if inside[j + 1 - low] < 0:
                columns[:, j] *= -1.0
        answer["vectors"] = packed(columns.T, "<f4")
    return answer


@contextmanager
def _timed(ms: dict[str, float], name: str) -> Iterator[None]:
    """Store the milliseconds that the block takes."""
    begin = time.perf_counter()
    yield
    ms[name] = round(1000 * (time.perf_counter() - begin), 2)
