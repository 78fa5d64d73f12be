"""Options of the paper's mazes, and the choices that the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import MDP, OptionSet, Purpose, Spectrum
from eigenoptions._types import FloatArray, IntegerArray
from reproduction.readings import (
    AUTHORS_BASIS,
    COMBINATORIAL,
    HIGH_DISCOUNT,
    LOW_DISCOUNT,
    ONE_SIGN,
    RANDOM_BASES,
    TOLERANCE,
    TURNED_BASIS,
    WALLS,
    WITHOUT_E1,
)

# Results of runs with the authors' data.
AUTHORS = Path(__file__).parent.parent / "authors"

MAZES = ("open-room", "i-maze", "four-rooms")

# Angles by which the basis of a repeated eigenvalue is turned. On a square grid, that
# of the library runs along the diagonals.
ANGLES = (45, 90)

# The seeds of the random bases of repeated eigenvalues, by reading.
SEEDS = {name: seed for seed, name in enumerate(RANDOM_BASES, start=1)}

# Readings of the paper that change the options, as settings of `make_eigenoptions`.
OPTION_READINGS: dict[str, dict[str, Any]] = {
    WITHOUT_E1: {"skip_zero": True},
    COMBINATORIAL: {"operator": "combinatorial"},
    LOW_DISCOUNT: {"gamma": 0.5},
    HIGH_DISCOUNT: {"gamma": 0.99},
    TOLERANCE: {"tolerance": 0.001},
    WALLS: {"walls": True},
    TURNED_BASIS: {"angle": 45},
    AUTHORS_BASIS: {"basis": "authors"},
    **{name: {"basis": seed} for name, seed in SEEDS.items()},
}

# Those that change the basis of repeated eigenvalues, and nothing else.
BASIS_READINGS = (TURNED_BASIS, AUTHORS_BASIS, *RANDOM_BASES)

# The only mazes in which a reading changes any of the first 64 options. Only the open
# room has repeated eigenvalues among them, and only the I-Maze has eigenvalue 1.
CHANGED_MAZES = {WALLS: ("i-maze",), **dict.fromkeys(BASIS_READINGS, ("open-room",))}

# Choices that the paper leaves open, as settings of `make_eigenoptions`.
CHOICES: dict[str, dict[str, Any]] = {
    "as reported": {},
    WITHOUT_E1: OPTION_READINGS[WITHOUT_E1],
    COMBINATORIAL: OPTION_READINGS[COMBINATORIAL],
    "random-walk": {"operator": "random-walk"},
    TOLERANCE: OPTION_READINGS[TOLERANCE],
    ONE_SIGN: {"both_signs": False},
    LOW_DISCOUNT: OPTION_READINGS[LOW_DISCOUNT],
    HIGH_DISCOUNT: OPTION_READINGS[HIGH_DISCOUNT],
}


def limit_counts(
    maze: str,
    counts: Iterable[int],
    *,
    skip_zero: bool = False,
    both_signs: bool = True,
    **others: Any,
) -> list[int]:
    """Those numbers of eigenoptions that a maze has; all of them for what is more.

    The settings are those of `make_eigenoptions`; `others` do not change the number.

    >>> limit_counts("i-maze", [0, 16, 64, 128])
    [0, 16, 38]
    """
    n_eigenvectors = eo.maze(maze).n_states
    if skip_zero:
        n_eigenvectors -= 1
    n_signs = 2 if both_signs else 1
    return sorted({min(n, n_signs * n_eigenvectors) for n in counts})


def make_options(
    mdp: MDP, method: str = "eigen", n: int | None = None, **settings: Any
) -> OptionSet | None:
    """The first options of a method.

    Parameters
    ----------
    mdp : MDP
        Where options are found.
    method : str, default="eigen"
        As in `discover`, or "files" (see `read_options`).
    n : int, optional
        How many; by default all. With 0 the result is None.
    settings
        Those of `make_eigenoptions` or `read_options`, or for other methods of
        `discover`.
    """
    if n == 0:
        return None
    if method == "eigen":
        return make_eigenoptions(mdp, n, **settings)
    if method == "files":
        return read_options(mdp, **settings)
    options: OptionSet = eo.discover(mdp, n, method=method, **settings)
    return options


def make_eigenoptions(
    mdp: MDP,
    n: int | None = None,
    *,
    operator: str = "normalized",
    skip_zero: bool = False,
    both_signs: bool = True,
    angle: float = 0.0,
    basis: int | str | None = None,
    walls: bool = False,
    action_order: Sequence[int] | None = None,
    tolerance: float = 0.0,
    shuffle: int | None = None,
    gamma: float = 0.9,
) -> OptionSet:
    """Eigenoptions in order of eigenvalue; eigenvalue zero counts, as in the paper.

    Parameters
    ----------
    mdp, n, operator, skip_zero, both_signs, gamma
        As in `discover`.
    angle : float, default=0.0
        Degrees by which the eigenvectors of a repeated eigenvalue are turned.
    basis : int or "authors", optional
        Another basis of each repeated eigenvalue: a random one with this seed, or, in
        the open room, the one that the published program found.
    walls : bool, default=False
        Whether walls are states, as in the published program (see `add_walls`).
    action_order : sequence of int, optional
        Order of the actions; of equally good ones the first is taken.
    tolerance : float, default=0.0
        Values up to this one count as zero, which is TERMINATE's, for eigenvectors of
        length 1.
    shuffle : int, optional
        Seed of a random order of the options.
    """
    spectrum = eo.spectrum(eo.graph(mdp), operator=operator)
    spectrum = turn_basis(spectrum, angle)
    if basis == "authors":
        spectrum = take_authors_basis(spectrum, mdp)
    elif basis is not None:
        spectrum = draw_basis(spectrum, int(basis))
    if walls:
        spectrum = add_walls(spectrum, mdp)
    purposes = eo.eigenpurposes(spectrum, both_signs=both_signs, skip_zero=skip_zero)

    if action_order is None:
        options = eo.solve(mdp, purposes, gamma)
    else:
        options = _solve_reordered(mdp, purposes, gamma, np.asarray(action_order))

    if tolerance:
        options = _ignore_small_values(options, purposes, tolerance)
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(len(options))
        options = options[order]
    return options[:n]


def read_options(mdp: MDP, *, folder: str) -> OptionSet:
    """The four bottleneck options of the published program, from its files.

    They are ``4rooms_split_1.mdp`` to ``4rooms_split_4.mdp``, maps of the 4-room domain
    with a letter per cell: U, R, D and L are moves, and T terminates. They are not part
    of this repository.
    """
    policies = []
    for number in range(1, 5):
        text = (Path(folder) / f"4rooms_split_{number}.mdp").read_text()
        _, *rows = text.splitlines()
        letters = [rows[row][column] for row, column in np.asarray(mdp.coords)]
        policies.append(["URDL".find(letter) for letter in letters])
    ours: OptionSet = eo.discover(mdp, method="bottleneck")
    return replace(ours, policy=np.array(policies, dtype=ours.policy.dtype))


def load_authors_table(name: str) -> pd.DataFrame:
    """A table of `reproduction/authors`: results of runs with the authors' data."""
    return pd.read_csv(AUTHORS / f"{name}.csv")


def describe_options(options: OptionSet) -> pd.DataFrame:
    """One row per option: where it stops, how long it runs, where it may start."""
    return pd.DataFrame(
        {
            "option": options.labels,
            "n_stops": options.termination.sum(axis=1),
            "mean_length": options.mean_length,
            "start_share": options.initiation.mean(axis=1),
        }
    )


def turn_basis(spectrum: Spectrum, degrees: float) -> Spectrum:
    """The same spectrum in another basis.

    The two eigenvectors of a repeated eigenvalue are turned in their plane. Any angle
    is as right as any other; at 45 and 90 degrees a square grid looks different.

    >>> spectrum = eo.spectrum(eo.graph(eo.maze("open-room")), k=3)
    >>> turned = turn_basis(spectrum, 90)
    >>> bool(np.allclose(turned.vectors[:, 1], spectrum.vectors[:, 2]))
    True
    """
    if not degrees:
        return spectrum

    angle = np.deg2rad(degrees)
    rotation = np.array(
        [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    )
    vectors = np.array(spectrum.vectors)
    next_free = 0
    for first in np.flatnonzero(np.diff(spectrum.values) < 1e-9).tolist():
        # A vector that was turned with the one before it is not turned again.
        if first >= next_free:
            pair = slice(first, first + 2)
            vectors[:, pair] = vectors[:, pair] @ rotation
            next_free = first + 2
    return replace(spectrum, vectors=vectors)


def draw_basis(spectrum: Spectrum, seed: int) -> Spectrum:
    """The same spectrum in a random basis of each repeated eigenvalue.

    >>> spectrum = eo.spectrum(eo.graph(eo.maze("open-room")), k=4)
    >>> drawn = draw_basis(spectrum, 1)
    >>> bool(np.allclose(drawn.vectors.T @ drawn.vectors, np.eye(4)))
    True
    >>> [bool(np.allclose(drawn.vectors[:, i], spectrum.vectors[:, i])) for i in (0, 1)]
    [True, False]
    """
    rng = np.random.default_rng(seed)
    vectors = np.array(spectrum.vectors)
    for cluster in find_clusters(spectrum):
        size = cluster.stop - cluster.start
        rotation, _ = np.linalg.qr(rng.normal(size=(size, size)))
        vectors[:, cluster] = vectors[:, cluster] @ rotation
    return replace(spectrum, vectors=vectors)


def take_authors_basis(spectrum: Spectrum, mdp: MDP) -> Spectrum:
    """The same spectrum in the basis that the published program finds.

    That program solves for eigenvectors without using symmetry, so that those of a
    repeated eigenvalue depend on its linear algebra, and are not orthogonal. Of the
    paper's mazes only the open room has any but eigenvalue 1; others stay as they are.
    """
    if not np.array_equal(mdp.coords, eo.maze("open-room").coords):
        return spectrum

    coefficients = load_authors_table("basis")
    vectors = np.array(spectrum.vectors)
    for first, pair in coefficients.groupby("first"):
        columns = slice(first - 1, first + 1)
        vectors[:, columns] = vectors[:, columns] @ pair[["own", "next"]].to_numpy().T
    return replace(spectrum, vectors=vectors)


def add_walls(spectrum: Spectrum, mdp: MDP) -> Spectrum:
    """The spectrum if walls are states, with one-way edges to the free cells beside.

    No walker is ever in a wall, so only the entries of free cells matter. There the
    eigenvectors are the same, but each wall adds one of eigenvalue 1 that is zero in
    all free cells: its options do nothing. Edges from walls also spoil most
    eigenvectors of free cells with eigenvalue 1: there are no more of these in the
    I-Maze and in the 4-room domain.

    >>> i_maze = eo.maze("i-maze")
    >>> add_walls(eo.spectrum(eo.graph(i_maze)), i_maze)
    Spectrum(85 of dimension 19, normalized: 0, 0.01539, 0.06312, 0.1459, 0.2644, ...)
    """
    is_one = np.isclose(spectrum.values, 1.0, atol=1e-9)
    edges = find_edges_from_walls(mdp)
    degree = np.asarray(eo.graph(mdp).sum(axis=1))

    # Those that stay are orthogonal to the edges of each wall.
    spoiled = (edges / np.sqrt(degree)) @ spectrum.vectors[:, is_one]
    _, sigma, rotation = np.linalg.svd(spoiled)
    n_spoiled = int((sigma > 1e-9).sum())
    kept = spectrum.vectors[:, is_one] @ rotation[n_spoiled:].T

    idle = np.zeros((mdp.n_states, len(edges) + n_spoiled))
    n_before = int((spectrum.values[~is_one] < 1).sum())
    before, after = np.split(spectrum.vectors[:, ~is_one], [n_before], axis=1)
    ones = np.ones(kept.shape[1] + idle.shape[1])
    values = np.insert(spectrum.values[~is_one], n_before, ones)
    vectors = np.hstack([before, kept, idle, after])
    return replace(spectrum, values=values, vectors=vectors)


def find_clusters(spectrum: Spectrum) -> list[slice]:
    """The columns of each repeated eigenvalue."""
    is_new = np.diff(spectrum.values, prepend=-np.inf) > 1e-9
    firsts = np.flatnonzero(is_new).tolist()
    ends = [*firsts[1:], len(spectrum.values)]
    return [
        slice(first, end)
        for first, end in zip(firsts, ends, strict=True)
        if end - first > 1
    ]


def list_walls(mdp: MDP) -> IntegerArray:
    """``(walls, 2)`` cells of a maze and its border that are not free."""
    cells = np.asarray(mdp.coords)
    low = cells.min(axis=0) - 1
    is_free = np.zeros(cells.max(axis=0) + 2 - low, dtype=bool)
    is_free[tuple((cells - low).T)] = True
    walls: IntegerArray = np.argwhere(~is_free) + low
    return walls


def find_edges_from_walls(mdp: MDP) -> FloatArray:
    """``(walls, S)`` edges to the free cells beside each wall.

    Walls of the border have none, as in the published program.
    """
    cells = np.asarray(mdp.coords)
    walls = list_walls(mdp)
    is_beside = np.abs(walls[:, None] - cells).sum(axis=2) == 1
    is_inner = (walls > walls.min(axis=0)) & (walls < walls.max(axis=0))
    edges: FloatArray = (is_beside & is_inner.all(axis=1)[:, None]).astype(float)
    return edges


def _solve_reordered(
    mdp: MDP, purposes: Sequence[Purpose], gamma: float, order: IntegerArray
) -> OptionSet:
    """Options that take the first of equally good actions in another order."""
    states = np.arange(mdp.n_states)[:, None]
    rows = (states * mdp.n_actions + order).ravel()
    reordered = MDP(csr_array(mdp.transition[rows]))
    options = eo.solve(reordered, purposes, gamma)

    # Give actions their own numbers again; -1, TERMINATE, stays -1.
    numbers = np.append(order, -1)
    return replace(options, mdp=mdp, policy=numbers[options.policy])


def _ignore_small_values(
    options: OptionSet, purposes: Sequence[Purpose], tolerance: float
) -> OptionSet:
    """The same options, which terminate where the value is at most the tolerance."""
    lengths = [np.linalg.norm(np.asarray(purpose.potential)) for purpose in purposes]
    is_large = options.value > tolerance * np.array(lengths)[:, None]
    return replace(options, policy=np.where(is_large, options.policy, -1))
