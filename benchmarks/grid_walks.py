"""Random walks on the 13 grids of the literature, and their true eigenvectors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.samples.walking import walk

EPISODE_STEPS = 50
_GRIDS = Path(__file__).resolve().parent / "grids"


def list_grids() -> list[str]:
    """List the names of the grids."""
    return sorted(path.stem for path in _GRIDS.glob("*.txt"))


@cache
def load_grid(name: str) -> eo.MDP:
    """Load the largest component of a grid, without start and goal."""
    mdp = eo.maze(_GRIDS / f"{name}.txt")
    assert mdp.coords is not None
    _, components = connected_components(eo.graph(mdp))
    largest = np.bincount(components).argmax()
    cells = mdp.coords[components == largest]

    grid = np.full(cells.max(axis=0) + 1, "X")
    grid[tuple(cells.T)] = " "
    return eo.maze("\n".join("".join(row) for row in grid))


def observe_states(name: str, kind: str) -> NDArray[Any]:
    """Make what is seen in each state of a grid.

    Parameters
    ----------
    name : str
        Name of the grid.
    kind : {"xy", "jitter", "frame"}
        The position, or with ``"frame"`` an image of one pixel per cell.
    """
    cells = np.asarray(load_grid(name).coords)
    if kind != "frame":
        return cells.astype(np.float64)

    # Walls are black, free cells grey, the agent white. A wall stands around the map.
    height, width = cells.max(axis=0) + 3
    images = np.zeros((len(cells), height, width), dtype=np.uint8)
    row, column = cells.T + 1
    images[:, row, column] = 100
    images[np.arange(len(cells)), row, column] = 255
    return images


def sample_transitions(name: str, kind: str, n: int, seed: int) -> eo.Transitions:
    """Sample transitions of a random walk.

    With ``"jitter"``, a position is anywhere within its cell, and stays the same until
    the next step.
    """
    steps = walk(load_grid(name), n, rng=seed, max_episode_steps=EPISODE_STEPS)
    observations = observe_states(name, kind)
    before = observations[steps.obs]
    after = observations[steps.next_obs]
    if kind == "jitter":
        rng = np.random.default_rng(seed)
        before = before + rng.uniform(-0.5, 0.5, before.shape)
        after = after + rng.uniform(-0.5, 0.5, after.shape)
        is_inside_episode = np.arange(n) % EPISODE_STEPS > 0
        inside = np.flatnonzero(is_inside_episode)
        before[inside] = after[inside - 1]
    return eo.Transitions(before, steps.action, after, steps.terminated)


def measure_mean_cosine(name: str, functions: FloatArray) -> float:
    """Measure how well learned functions match the true eigenvectors of a grid.

    Parameters
    ----------
    name : str
        Name of the grid.
    functions : ndarray of shape (S, k)
        Learned functions, smoothest first, without the constant one.

    Returns
    -------
    float
        Mean over the k functions of the cosine between a function and the space of all
        true eigenvectors with its eigenvalue.
    """
    eigenvalues, eigenvectors = _solve_walk(name)
    cosines = []
    for i, function in enumerate(functions.T, start=1):
        is_same = np.abs(eigenvalues - eigenvalues[i]) < 1e-9
        eigenspace = eigenvectors[:, is_same]
        centred = function - function.mean()
        length = max(float(np.linalg.norm(centred)), 1e-300)
        projection = eigenspace.T @ centred
        cosines.append(np.linalg.norm(projection) / length)
    return float(np.mean(cosines))


@cache
def _solve_walk(name: str) -> tuple[FloatArray, FloatArray]:
    """Solve for eigenvalues and eigenvectors of I - P of the uniform random walk."""
    mdp = load_grid(name)
    table = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    P = table.mean(axis=1)
    eigenvalues, eigenvectors = np.linalg.eigh(np.eye(mdp.n_states) - P)
    return eigenvalues, eigenvectors
