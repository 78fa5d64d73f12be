"""The first eigenoptions of a maze: what Figures 2 to 5 share.

Eigenvectors are counted as the paper does, with the one of eigenvalue zero: its second PVF is e2. Options come in
pairs: e1+, e1-, e2+, e2-, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eigenoptions import plots
from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.experiments import Pmap, Results, Settings, sizes
from eigenoptions.experiments.tables import Row, where
from eigenoptions.mdp import graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum

OPERATORS = ("normalized", "combinatorial")

Cell = tuple[int, int]


def settings(maze: str, paper: int, quick: int, shown: int) -> dict[str, Settings]:
    """Settings with these numbers of eigenvectors, of which `shown` are drawn."""
    same = {"maze": maze, "gamma": 0.9, "eigenvectors": paper, "shown": shown, "operators": list(OPERATORS)}
    return sizes(same, eigenvectors=quick)


def run(settings: Settings, pmap: Pmap) -> Results:
    """Options of both signs of the first eigenvectors, under each Laplacian; pictures use the first."""
    mdp = maze(settings["maze"])
    assert mdp.coords is not None
    results: Results = {"options": [], "stops": [], "pvfs": []}
    for operator in settings["operators"]:
        sp = spectrum(graph(mdp), k=settings["eigenvectors"], operator=operator, coords=mdp.coords)
        options = solve(mdp, eigenpurposes(sp, skip_zero=False), settings["gamma"])
        if not results["options"]:
            results |= {"coords": options.coords, "policy": options.policy, "labels": list(options.labels)}
            results |= {"vectors": sp.vectors, "room": rooms(mdp)[0], "shown": settings["shown"]}
            results["pvfs"] = [
                {"eigenvector": f"e{i + 1}", "row": row, "column": col, "value": float(sp.vectors[s, i])}
                for i in range(settings["shown"])
                for s, (row, col) in enumerate(mdp.coords.tolist())
            ]
        results["options"] += option_rows(options, operator)
        results["stops"] += [
            {"operator": operator, "option": o.label, "row": int(row), "column": int(col)}
            for o in options
            for row, col in mdp.coords[o.termination].tolist()
        ]
    return results


def figure(results: Results) -> Any:
    """Option of each of the smallest eigenvectors, with a plus sign."""
    panels = []
    for i in range(0, 2 * results["shown"], 2):
        label = results["labels"][i]
        caption = plots.caption(label, option(results, label)["eigenvalue"])
        panels.append(plots.policy_panel(results["coords"], results["policy"][i], caption))
    return plots.figure(panels)


def option_rows(options: OptionSet, operator: str) -> list[Row]:
    """One row per option: the number of states it stops in, its mean length, and where it may start."""
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


def stops(results: Results, option: str, operator: str = "normalized") -> list[Cell]:
    """Cells where an option stops."""
    return [(r["row"], r["column"]) for r in where(results["stops"], operator=operator, option=option)]


def option(results: Results, label: str, operator: str = "normalized") -> Row:
    """Row of an option."""
    return where(results["options"], operator=operator, option=label)[0]


def steps(cell: Cell, other: Cell) -> int:
    """Number of moves between two cells if there are no walls."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def corners(results: Results) -> list[Cell]:
    """Free cells nearest to the top left, top right, bottom left and bottom right of a maze."""
    cells = [(int(r), int(c)) for r, c in results["coords"]]
    return [
        min(cells, key=lambda cell: down * cell[0] + right * cell[1]) for down in (1, -1) for right in (1, -1)
    ]


def room_of(results: Results) -> dict[Cell, int]:
    """Room of each cell, as `discovery.methods.bottleneck.rooms` numbers them; -1 for a doorway."""
    pairs = zip(results["coords"], results["room"], strict=True)
    return {(int(r), int(c)): int(room) for (r, c), room in pairs}


def doorways(results: Results) -> list[Cell]:
    """Cells that separate the rooms."""
    return [cell for cell, room in room_of(results).items() if room < 0]


def names(cells: Sequence[Cell], most: int = 4) -> str:
    """Cells as text, at most this many.

    >>> names([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    shown = [str(cell) for cell in cells[:most]]
    if len(cells) > most:
        return f"{', '.join(shown)} and {len(cells) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "no cell"
