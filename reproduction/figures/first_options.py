"""Options of the first eigenvectors of a maze, for Figures 2 to 5.

Eigenvectors are counted as the paper does, with the one of eigenvalue zero: its second PVF is e2. Options come in
pairs: e1+, e1-, e2+, e2-, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions import OptionSet
from eigenoptions.discovery.methods import bottleneck
from eigenoptions.plots import draw_policy
from reproduction.drawing import make_maps
from reproduction.lab import Data

Cell = tuple[int, int]


def find_options(maze: str, eigenvectors: int, gamma: float) -> Data:
    """Options of both signs of the first eigenvectors under two Laplacians, the eigenvectors, and the rooms."""
    mdp = eo.maze(maze)
    cells = pd.DataFrame(np.asarray(mdp.coords), columns=["row", "column"]).rename_axis("state").reset_index()
    options, policies, vectors = [], [], []
    for operator in ("normalized", "combinatorial"):
        sp = eo.spectrum(eo.graph(mdp), k=eigenvectors, operator=operator)
        found = eo.solve(mdp, eo.eigenpurposes(sp, skip_zero=False), gamma)
        options.append(describe_options(found).assign(operator=operator))
        policies += [cells.assign(operator=operator, option=o.label, action=o.policy) for o in found]
        if operator == "normalized":
            vectors = [cells.assign(eigenvector=i + 1, value=e) for i, e in enumerate(sp.vectors.T)]
    return {
        "options": pd.concat(options),
        "policies": pd.concat(policies),
        "eigenvectors": pd.concat(vectors),
        "rooms": cells.assign(room=bottleneck.find_rooms(mdp)[0], maze=maze),
    }


def describe_options(options: OptionSet) -> pd.DataFrame:
    """One row per option: the number of states it terminates in, its mean length, and where it may start."""
    return pd.DataFrame(
        {
            "option": options.labels,
            "eigenvalue": options.eigenvalues,
            "n_stops": options.termination.sum(axis=1),
            "mean_length": options.mean_length,
            "start_share": options.initiation.mean(axis=1),
        }
    )


def draw_options(data: Data) -> Any:
    """Draw the option of each of the four smallest eigenvectors, with a plus sign."""
    labels = [f"e{i}+" for i in (1, 2, 3, 4)]
    picture, axes = make_maps(len(labels))
    for ax, label in zip(axes, labels, strict=True):
        draw_policy(ax, maze_of(data), find_policy(data, label).action)
        ax.set_title(f"{label}  λ = {find_row(data, label).eigenvalue:.3g}")
    return picture


def maze_of(data: Data) -> eo.MDP:
    """The maze of the data."""
    return eo.maze(data["rooms"].maze[0])


def find_policy(data: Data, option: str, operator: str = "normalized") -> pd.DataFrame:
    """Action of an option in each cell."""
    policies = data["policies"]
    return policies[(policies.operator == operator) & (policies.option == option)]


def find_stops(data: Data, option: str, operator: str = "normalized") -> list[Cell]:
    """Cells where an option terminates."""
    policy = find_policy(data, option, operator)
    return to_cells(policy[policy.action < 0])


def find_row(data: Data, option: str, operator: str = "normalized") -> Any:
    """Row of an option."""
    options = data["options"]
    return options[(options.operator == operator) & (options.option == option)].iloc[0]


def find_rooms(data: Data) -> dict[Cell, int]:
    """Room of each cell; -1 for a doorway."""
    return dict(zip(to_cells(data["rooms"]), data["rooms"].room, strict=True))


def find_corners(data: Data) -> list[Cell]:
    """Free cells nearest to the top left, top right, bottom left and bottom right of a maze."""
    cells, signs = to_cells(data["rooms"]), (1, -1)
    return [
        min(cells, key=lambda cell: down * cell[0] + right * cell[1]) for down in signs for right in signs
    ]


def to_cells(table: pd.DataFrame) -> list[Cell]:
    """Columns ``row`` and ``column`` as pairs."""
    return list(zip(table.row.tolist(), table.column.tolist(), strict=True))


def distance(cell: Cell, other: Cell) -> int:
    """Number of moves between two cells if there are no walls."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def name_cells(cells: Sequence[Cell], most: int = 4) -> str:
    """Cells as text, at most this many.

    >>> name_cells([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    shown = [str(cell) for cell in cells[:most]]
    if len(cells) > most:
        return f"{', '.join(shown)} and {len(cells) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "no cell"
