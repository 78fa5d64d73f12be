"""The first eigenoptions of a maze, as Figures 2 to 5 show them: one run for all four figures.

Eigenvectors are counted as the paper does, with the one of eigenvalue zero: its second PVF is e2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.discovery import rooms
from eigenoptions.experiments.experiment import Results, Settings
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum

Cell = tuple[int, int]


def run(settings: Settings) -> Results:
    """Options of both signs of the first eigenvectors, under each Laplacian; pictures use the first."""
    mdp = maze(settings["maze"])
    W = graph(mdp)
    tables: dict[str, list[dict[str, Any]]] = {"options": [], "stops": [], "pvfs": []}
    results: Results = {}
    for operator in settings["operators"]:
        sp = spectrum(W, k=settings["eigenvectors"], operator=operator, coords=mdp.coords)
        options = solve(mdp, eigenpurposes(sp, skip_zero=False), settings["gamma"])
        if not results:
            results = {"coords": options.coords, "policy": options.policy, "labels": list(options.labels)}
            results |= {"vectors": sp.vectors, "room": rooms(mdp)[0]}
            tables["pvfs"] = pvf_rows(mdp, sp.vectors, settings["shown"])
        tables["options"] += option_rows(options, operator)
        tables["stops"] += stop_rows(options, operator)
    return {**results, **tables, "shown": settings["shown"]}


def option_rows(options: OptionSet, operator: str) -> list[dict[str, Any]]:
    """One row an option: how many states it stops in, how long it runs, where it may start."""
    return [
        {
            "operator": operator,
            "option": o.label,
            "eigenvalue": o.eigenvalue,
            "n_stops": int(o.termination.sum()),
            "mean_length": o.mean_length,
            "start_share": float(o.initiation.mean()),
        }
        for o in options
    ]


def stop_rows(options: OptionSet, operator: str) -> list[dict[str, Any]]:
    """One row a state where an option stops."""
    assert options.coords is not None
    return [
        {"operator": operator, "option": o.label, "row": int(row), "column": int(col)}
        for o in options
        for row, col in options.coords[o.termination].tolist()
    ]


def pvf_rows(mdp: MDP, vectors: NDArray[np.float64], shown: int) -> list[dict[str, Any]]:
    """One row a state of each eigenvector that is shown."""
    assert mdp.coords is not None
    return [
        {"eigenvector": f"e{i + 1}", "row": row, "column": col, "value": float(vectors[s, i])}
        for i in range(shown)
        for s, (row, col) in enumerate(mdp.coords.tolist())
    ]


def stops(results: Results, option: str, operator: str = "normalized") -> list[Cell]:
    """Cells where an option stops."""
    return [
        (r["row"], r["column"])
        for r in results["stops"]
        if r["operator"] == operator and r["option"] == option
    ]


def option(results: Results, label: str, operator: str = "normalized") -> dict[str, Any]:
    """Row of an option."""
    row: dict[str, Any] = next(
        r for r in results["options"] if r["operator"] == operator and r["option"] == label
    )
    return row


def steps(cell: Cell, other: Cell) -> int:
    """Count the moves between two cells if no wall is in the way."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def corners(results: Results) -> list[Cell]:
    """Top left, top right, bottom left and bottom right of a maze: the free cells nearest to them."""
    cells = [(int(r), int(c)) for r, c in results["coords"]]
    return [
        min(cells, key=lambda cell: down * cell[0] + right * cell[1]) for down in (1, -1) for right in (1, -1)
    ]


def room_of(results: Results) -> dict[Cell, int]:
    """Room of each cell, as `eigenoptions.discovery.rooms` finds them; -1 for a doorway."""
    return {
        (int(r), int(c)): int(room) for (r, c), room in zip(results["coords"], results["room"], strict=True)
    }


def doorways(results: Results) -> list[Cell]:
    """Cells that part the rooms."""
    return [cell for cell, room in room_of(results).items() if room < 0]


def names(cells: Sequence[Cell], most: int = 4) -> str:
    """Cells as text, the first few of many.

    >>> names([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    shown = [str(cell) for cell in cells[:most]]
    if len(cells) > most:
        return f"{', '.join(shown)} and {len(cells) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "no cell"


def first_options(results: Results) -> Any:
    """Figures 3 to 5: the option of each of the smallest eigenvectors, with a plus sign."""
    shown = [i for i, label in enumerate(results["labels"]) if label.endswith("+")][: results["shown"]]
    return plots.figure(
        [
            plots.policy_panel(
                results["coords"],
                results["policy"][i],
                plots.caption(results["labels"][i], option(results, results["labels"][i])["eigenvalue"]),
            )
            for i in shown
        ]
    )
