"""Graphs as nodes and edges: values and policies."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Colormap
from scipy.sparse.csgraph import dijkstra

from eigenoptions._colors import PRINTED_WALL, RED, WHITE
from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions.mdp import MDP, graph

# States from which the distances to all others are computed.
_MAX_LANDMARKS = 500


def has_positions(mdp: object) -> TypeGuard[MDP]:
    """Whether this is a graph that is drawn by the positions of its nodes."""
    return isinstance(mdp, MDP) and mdp.coords is None and mdp.positions is not None


def place_states(mdp: MDP) -> MDP:
    """Give states that have no place on a map a position in the plane.

    Distances in the plane are as close as possible to numbers of steps, whose
    direction does not count (multidimensional scaling; of many states, from a part of
    them).

    Parameters
    ----------
    mdp : MDP
        Any states; those with coords or positions keep them.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.MDP.from_successors([[0, 1], [0, 2], [1, 2]])
    >>> np.abs(np.diff(place_states(corridor).positions[:, 0])).round(6).tolist()
    [1.0, 1.0]
    """
    if mdp.coords is not None or mdp.positions is not None:
        return mdp

    stride = -(-mdp.n_states // _MAX_LANDMARKS)
    landmarks = np.arange(0, mdp.n_states, stride)
    steps = dijkstra(graph(mdp), directed=False, indices=landmarks, unweighted=True)
    # Parts that are not connected stand beside each other.
    is_finite = np.isfinite(steps)
    steps[~is_finite] = steps[is_finite].max() + 3

    squares = steps**2
    mean_squares = squares[:, landmarks].mean(axis=1, keepdims=True)
    products = -0.5 * (squares - mean_squares)
    products -= products.mean(axis=0)
    values, vectors = np.linalg.eigh(products[:, landmarks])

    positions = np.zeros((mdp.n_states, 2))
    for column in range(min(2, len(values))):
        value = values[-1 - column]
        vector = vectors[:, -1 - column]
        if value > 1e-9:
            # Which end is left is free: rounding does not choose it.
            largest = find_first_maximum(np.abs(vector))
            sign = np.sign(vector[largest])
            positions[:, column] = sign * (vector @ products) / np.sqrt(value)
    return replace(mdp, positions=positions)


def draw_nodes(ax: Axes, mdp: MDP, color: str | list[str]) -> FloatArray:
    """Draw edges, and nodes of one colour or one colour each; return the positions."""
    places = _prepare_axes(ax, mdp)
    ax.scatter(
        places[:, 0],
        places[:, 1],
        s=_choose_size(mdp),
        c=color,
        edgecolors="#777777",
        linewidths=0.5,
        zorder=2,
    )
    return places


def draw_node_values(
    ax: Axes,
    mdp: MDP,
    values: FloatArray,
    limits: tuple[float, float],
    cmap: Colormap,
) -> PathCollection:
    """Draw one number per node as a colour."""
    places = _prepare_axes(ax, mdp)
    return ax.scatter(
        places[:, 0],
        places[:, 1],
        s=_choose_size(mdp),
        c=values,
        cmap=cmap,
        vmin=limits[0],
        vmax=limits[1],
        edgecolors="#777777",
        linewidths=0.4,
        zorder=2,
    )


def draw_node_policy(ax: Axes, mdp: MDP, policy: IntegerArray) -> None:
    """Draw the action of each node as an arrow along its edge; red nodes terminate."""
    stops = policy < 0
    places = draw_nodes(ax, mdp, np.where(stops, RED, WHITE).tolist())

    moving = np.flatnonzero(~stops)
    after = mdp.most_likely_successors[moving, policy[moving]]
    # Arrows end before the next node, so that their heads can be seen.
    moves = 0.7 * (places[after] - places[moving])
    ax.quiver(
        places[moving, 0],
        places[moving, 1],
        moves[:, 0],
        moves[:, 1],
        angles="xy",
        scale_units="xy",
        scale=1,
        # Arrows leave their nodes: they have to be seen on every background.
        color=matplotlib.rcParams["text.color"],
        width=0.005,
        headwidth=4,
        zorder=3,
    )


def _prepare_axes(ax: Axes, mdp: MDP) -> FloatArray:
    """Draw the edges, hide the frame, and return the positions ``(S, 2)``."""
    assert mdp.positions is not None
    places = mdp.positions
    edges = graph(mdp).tocoo()
    first, second = edges.coords
    is_listed_first = first < second
    ends = np.stack([places[first], places[second]], axis=1)
    lines = LineCollection(
        list(ends[is_listed_first]), colors=PRINTED_WALL, linewidths=0.6, zorder=1
    )
    ax.add_collection(lines)
    ax.margins(0.05)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    return places


def _choose_size(mdp: MDP) -> float:
    """Area of a node in points: smaller where there are many."""
    return float(np.clip(1500 / mdp.n_states, 3, 60))
