"""Options of the paper's mazes, and the choices that the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import MDP, OptionSet, Purpose, Spectrum
from eigenoptions._types import IntegerArray

MAZES = ("open-room", "i-maze", "four-rooms")

# Angles by which the basis of a repeated eigenvalue is turned. On a square grid, that
# of the library runs along the diagonals.
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
        As in `discover`.
    n : int, optional
        How many; by default all. With 0 the result is None.
    settings
        Those of `make_eigenoptions`, or for other methods of `discover`.
    """
    if n == 0:
        return None
    if method == "eigen":
        return make_eigenoptions(mdp, n, **settings)
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
    action_order : sequence of int, optional
        Order of the actions; of equally good ones the first is taken.
    tolerance : float, default=0.0
        Values up to this one count as zero, which is TERMINATE's, for eigenvectors of
        length 1.
    shuffle : int, optional
        Seed of a random order of the options.
    """
    spectrum = eo.spectrum(eo.graph(mdp), operator=operator)
    purposes = eo.eigenpurposes(
        turn_basis(spectrum, angle), both_signs=both_signs, skip_zero=skip_zero
    )

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
