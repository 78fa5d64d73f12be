"""Answers that come at once: the spectrum and options of a maze, a race, a random maze, an options file.

Everything is computed by the library's public functions; here it is only asked for and packed. Arrays travel as base64
of little-endian numbers (float32 for pictures, int8 for actions), because a page reads those faster than JSON.
"""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery import discover
from eigenoptions.evaluation import hitting_times
from eigenoptions.mdp import MDP, graph, maze, mazes
from eigenoptions.mdp.maps import open_map, perfect_map, rooms_map
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import Spectrum, spectrum
from eigenoptions.studio.requests import MOST_CELLS, MOST_MEASURED, Ask

Answer = dict[str, Any]
Alive = Callable[[], None]  # raises when nobody waits for the answer any more

RACE = 4000  # steps after which a race is called off


@lru_cache(maxsize=16)
def read_maze(text: str) -> MDP:
    """The MDP of a map's text; never a file, whatever the text looks like."""
    return maze(text + "\n")


def drawn(mdp: MDP) -> list[str]:
    """The rows of a map of ``#``, ``.``, ``S`` and ``G``, with the wall around it where it had one.

    >>> drawn(maze("#S.G"))
    ['#S.G#']
    """
    assert mdp.coords is not None
    low, high = mdp.coords.min(axis=0), mdp.coords.max(axis=0)
    if high.max() >= MOST_CELLS:
        raise ValueError(
            f"the studio draws mazes of at most {MOST_CELLS} x {MOST_CELLS} cells, got {high[0] + 1} x {high[1] + 1}: "
            "use the library in Python for larger ones"
        )
    grid = np.full(tuple(np.minimum(high + 1 + (low > 0), MOST_CELLS)), "#")
    grid[tuple(mdp.coords.T)] = "."
    for state, letter in ((mdp.start, "S"), (mdp.goal, "G")):
        if state is not None:
            grid[tuple(mdp.coords[state])] = letter
    return ["".join(row) for row in grid]


def built_in() -> list[Answer]:
    """The built-in mazes, each as a normal map."""
    return [{"name": name, "map": drawn(maze(name))} for name in mazes()]


def normal(ask: Ask, alive: Alive) -> Answer:
    """A map as a rectangle."""
    return {"map": drawn(read_maze(ask.map))}


def random_maze(ask: Ask, alive: Alive) -> Answer:
    """A maze made by rule, of about the size asked for, with a start and a goal in far corners."""
    rows, cols = ask.rows, ask.cols
    if ask.kind == "open":
        text = open_map(rows, cols)
    elif ask.kind == "perfect":
        text = perfect_map(max((rows - 1) // 2, 1), max((cols - 1) // 2, 1), rng=ask.seed)
    else:
        rng = np.random.default_rng(ask.seed)
        short = min(rows, cols)
        sides = [
            s for s in (3, 4, 5, 6, 7, 8, 9) if 2 * (s + 1) + 1 <= short and (short - 1) // (s + 1) <= 6
        ] or [max(min(short - 2, 9), 1)]
        side = int(rng.choice(sides))
        many = [max((n - 1) // (side + 1), 1) for n in (rows, cols)]
        text = rooms_map(many[0], many[1], side, rng=rng)
    mdp = maze(text + "\n")
    assert mdp.coords is not None
    last = int((mdp.coords[:, 0] - mdp.coords[:, 1]).argmax())  # bottom left
    first = int((mdp.coords[:, 1] - mdp.coords[:, 0]).argmax())  # top right
    return {"map": drawn(mdp.task(start=last, goal=first) if first != last else mdp)}


def picture(ask: Ask, alive: Alive) -> Answer:
    """Eigenvectors, smallest eigenvalue first, and the options of both signs of each."""
    ms: dict[str, float] = {}
    with _clock(ms, "maze"):
        mdp = read_maze(ask.map)
    alive()
    with _clock(ms, "spectrum"):
        sp = _spectrum(ask.map, ask.operator, ask.shown)
    alive()
    with _clock(ms, "options"):
        options = _solved(ask.map, ask.operator, ask.shown, ask.gamma)
    with _clock(ms, "pack"):
        first = sp.n_zero
        answer = {
            "states": mdp.n_states,
            "pieces": first,
            "more": len(sp.values) < mdp.n_states,
            "eigenvalues": sp.values[first:].tolist(),
            "labels": list(options.labels),
            "vectors": packed(sp.vectors[:, first:].T, "<f4"),
            "policies": packed(options.policy, "i1"),
            "values": packed(options.value, "<f4"),
            "mean_length": options.mean_length.tolist(),
        }
    return answer | {"ms": ms}


def race(ask: Ask, alive: Alive) -> Answer:
    """Two walks from start to goal: one over primitive actions, one over actions and options, and what to expect."""
    mdp = task_of(ask.map)
    options = options_of(ask)
    children = np.random.SeedSequence(ask.seed).spawn(2)
    answer: Answer = {"start": mdp.start, "goal": mdp.goal, "labels": list(options.labels)}
    for name, chosen, child in zip(("primitive", "options"), (None, options), children, strict=True):
        path, by, reached = _walk(mdp, chosen, np.random.default_rng(child))
        lane = {"path": path, "by": by, "reached": reached, "expected": None}
        if mdp.n_states <= MOST_MEASURED:
            times = hitting_times(mdp, chosen, progress=lambda *_: alive())
            lane["expected"] = float(times[mdp.start, mdp.goal])
        answer[name] = lane
        alive()
    return answer


def task_of(text: str) -> MDP:
    """The MDP of a map that has a start and a goal."""
    mdp = read_maze(text)
    for what, state in (("start (S)", mdp.start), ("goal (G)", mdp.goal)):
        if state is None:
            raise ValueError(f"this maze has no {what}: place one first")
    return mdp


def options_file(ask: Ask) -> bytes:
    """The options on the screen, as the bytes of the file that `OptionSet.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "options.safetensors"
        options_of(ask).save(file)
        return file.read_bytes()


def options_of(ask: Ask) -> OptionSet:
    """The eigenoptions asked for, or all there are if those are fewer."""
    return _discovered(ask.map, ask.operator, ask.gamma, ask.n_options)


def packed(numbers: ArrayLike, kind: str) -> str:
    """An array as base64 of its numbers, row by row.

    >>> packed([1.0], "<f4")
    'AACAPw=='
    """
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=kind).tobytes()).decode("ascii")


@lru_cache(maxsize=16)
def _spectrum(text: str, operator: str, shown: int) -> Spectrum:
    mdp = read_maze(text)
    W = graph(mdp)
    pieces = int(connected_components(W, directed=False)[0])
    if pieces == mdp.n_states:
        raise ValueError(
            "no free cell has a free neighbour, so there is nowhere to go: erase a wall between two cells"
        )
    return spectrum(W, min(pieces + shown, mdp.n_states), operator, coords=mdp.coords)


@lru_cache(maxsize=16)
def _solved(text: str, operator: str, shown: int, gamma: float) -> OptionSet:
    return solve(read_maze(text), eigenpurposes(_spectrum(text, operator, shown)), gamma)


@lru_cache(maxsize=16)
def _discovered(text: str, operator: str, gamma: float, n_options: int) -> OptionSet:
    mdp = read_maze(text)
    most = 2 * (mdp.n_states - _spectrum(text, operator, 1).n_zero)
    return discover(mdp, min(n_options, most), gamma=gamma, operator=operator)


def _walk(mdp: MDP, options: OptionSet | None, rng: np.random.Generator) -> tuple[list[int], list[int], bool]:
    """States passed on the way to the goal, the option behind each step (-1: none), and whether it got there."""
    assert mdp.successors is not None
    nxt = mdp.successors.tolist()
    policy = [] if options is None else options.policy.tolist()
    offered = [[o for o, row in enumerate(policy) if row[s] >= 0] for s in range(mdp.n_states)]
    assert mdp.start is not None
    s, running, choice = mdp.start, -1, 0
    path: list[int] = [s]
    by: list[int] = []
    while s != mdp.goal and len(by) < RACE:
        if running >= 0 and policy[running][s] < 0:
            running = -1
        if running < 0:
            choice = int(rng.integers(mdp.n_actions + len(offered[s])))
            if choice >= mdp.n_actions:
                running = offered[s][choice - mdp.n_actions]
        action = policy[running][s] if running >= 0 else choice
        s = nxt[s][action]
        path.append(s)
        by.append(running)
    return path, by, s == mdp.goal


@contextmanager
def _clock(ms: dict[str, float], name: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    ms[name] = round(1000 * (time.perf_counter() - begin), 2)
