"""Figures 2 to 5: the first eigenoptions of each domain, where they stop and how long they are.

Eigenvectors are counted as the paper does, with the one of eigenvalue zero: its second PVF is e2. Options come in
pairs: e1+, e1-, e2+, e2-, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.mdp import graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum
from reproduction import Claim, Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.paper.jobs import TURNED, eigenoptions
from reproduction.tables import Row, where

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
        sp = spectrum(graph(mdp), k=settings["eigenvectors"], operator=operator)
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


def second_pvf(results: Results) -> Any:
    """Draw the PVF with the sign that is high at the top right, as in the paper, and its option."""
    e, coords = results["vectors"][:, 1], results["coords"]
    sign = _sign(results)
    # The options of e2 come third and fourth, first with a plus sign.
    at = 2 if sign > 0 else 3
    return plots.figure(
        [
            plots.surface_panel(coords, sign * e, "Second PVF"),
            plots.policy_panel(coords, results["policy"][at], f"Its option ({results['labels'][at]})"),
        ]
    )


def second_pvf_claims(results: Results) -> list[Claim]:
    """Where the options of the second PVF end."""
    up, down = ("e2+", "e2-") if _sign(results) > 0 else ("e2-", "e2+")
    high, low = stops(results, up), stops(results, down)
    room = room_of(results)
    opposite = len(high) == len(low) == 1 and _opposite(results, room[high[0]], room[low[0]])
    corner = corners(results)[1]
    away = max(steps(cell, corner) for cell in high)
    other = stops(results, up, "combinatorial") + stops(results, down, "combinatorial")
    exact = min(other, key=lambda cell: steps(cell, corner))
    inside = [cell for cell in room if room[cell] == room[corner]]
    centre = tuple(float(np.mean([cell[i] for cell in inside])) for i in (0, 1))
    off = max(abs(cell[0] - centre[0]) + abs(cell[1] - centre[1]) for cell in high)
    there = len(high) == 1 and room[high[0]] == room[corner] and away <= 2
    beside = "that share no doorway" if opposite else "next to each other"
    ends = {"up": up, "high": names(high)}
    # Whether values of the second PVF distinguish the rooms, alone or with its neighbours.
    e = results["vectors"][:, 1:]
    alone, together = (_nearest(some, results["room"]) for some in (e[:, :1], e))
    told = {"alone": alone, "together": together, "last": e.shape[1] + 1}
    return [
        judge("pvf-rooms", alone == 1, together == 1, **told),
        judge("opposite-room", opposite, **ends, down=down, low=names(low), where=beside),
        judge("peak-centre", off <= 1, off <= 3, **ends, off=off, centre=centre),
        judge("peak-corner", away == 0, there, **ends, away=away, corner=corner, exact=exact),
    ]


def _nearest(e: np.ndarray[Any, Any], room: np.ndarray[Any, Any]) -> float:
    """Share of the states whose room has the nearest mean."""
    inside = room >= 0
    means = np.stack([e[room == i].mean(axis=0) for i in range(room.max() + 1)])
    away = np.linalg.norm(e[inside][:, None] - means, axis=2)
    return float((away.argmin(axis=1) == room[inside]).mean())


def _sign(results: Results) -> float:
    """Sign with which the second PVF is highest at the top right."""
    e = results["vectors"][:, 1]
    toward = results["coords"][:, 1] - results["coords"][:, 0]
    return float(np.sign(toward[np.argmax(e)] - toward[np.argmin(e)]))


def _opposite(results: Results, a: int, b: int) -> bool:
    """Whether two are different rooms that share no doorway."""
    room = room_of(results)
    doors = ({room[cell] for cell in room if steps(cell, d) == 1} for d in doorways(results))
    return a != b and -1 not in (a, b) and not any({a, b} <= beside for beside in doors)


def run_in_bases(settings: Settings, pmap: Pmap) -> Results:
    """As in Figures 4 and 5; and the options of e2 and e4 in other bases of the repeated eigenvalue of e2 and e3."""
    results = run(settings, pmap)
    mdp = maze(settings["maze"])
    bases, policies = [], []
    for name, turn in ({"as reported": 0} | TURNED).items():
        options = eigenoptions(mdp, 8, turn=turn)
        e2, e4 = options["e2+"], options["e4+"]
        ends = [tuple(cell) for cell in np.asarray(options.coords)[e2.termination].tolist()]
        policies.append(e2.policy)
        row = {"basis": name, "e2_stops": int(e2.termination.sum()), "e4_stops": int(e4.termination.sum())}
        row |= {"e2_length": e2.mean_length, "e4_length": e4.mean_length, "e2_ends": names(ends)}
        bases.append(row)
    return {**results, "bases": bases, "basis_policy": policies}


def e2_in_bases(results: Results) -> Any:
    """The option of e2 in three bases of its plane, all of them equally right."""
    pairs = zip(results["bases"], results["basis_policy"], strict=True)
    return plots.figure(
        [plots.policy_panel(results["coords"], policy, f"e2+, {row['basis']}") for row, policy in pairs]
    )


def open_room_notes(results: Results) -> list[Note]:
    """What depends on the basis."""
    rows = [
        {**row, "ends": row["e4_stops"] / row["e2_stops"], "lengths": row["e2_length"] / row["e4_length"]}
        for row in results["bases"]
    ]
    return [note("repeated-eigenvalues"), note("bases-of-the-square", rows)]


def open_room_claims(results: Results) -> list[Claim]:
    """Corners, and how often the fourth option stops."""
    labels = ("e2+", "e2-", "e3+", "e3-")
    away, ratios, lengths = {}, [], []
    for operator in OPERATORS:
        cells = [cell for label in labels for cell in stops(results, label, operator)]
        away[operator] = max(min(steps(c, corner) for corner in corners(results)) for c in cells)
        e2, e4 = (option(results, label, operator) for label in ("e2+", "e4+"))
        ratios.append((e4["n_stops"] / e2["n_stops"], e2["mean_length"] / e4["mean_length"]))
        lengths.append(f"{e2['mean_length']:.2f} steps for e2 and {e4['mean_length']:.2f} steps for e4")
    return [
        judge(
            "corners",
            away["normalized"] == 0,
            away["normalized"] <= 2,
            ends={label: names(stops(results, label)) for label in labels},
            **{operator: f"{n} steps from a corner" if n else "on a corner" for operator, n in away.items()},
        ),
        judge(
            "twice-as-often",
            *(abs(ratio - 2) < 0.2 for ratio in ratios[0]),
            ours=ratios[0],
            other=ratios[1],
            lengths=lengths,
            bases={r["basis"]: r["e2_length"] / r["e4_length"] for r in results["bases"][1:]},
        ),
    ]


def corridor_claims(results: Results) -> list[Claim]:
    """Whether the option of the second PVF walks down the corridor, and up with the other sign."""
    signs = ("e2+", "e2-")
    ends = [stops(results, sign, operator) for operator in ("normalized", "combinatorial") for sign in signs]
    rows = results["coords"][:, 0]
    one, other = ({row for row, _ in cells} for cells in ends[:2])
    reached = len(one) == len(other) == 1 and one | other == {int(rows.min()), int(rows.max())}
    length = [option(results, sign)["mean_length"] for sign in signs]
    return [judge("corridor", reached, ends=[*map(names, ends)], length=length)]


def doorway_claims(results: Results) -> list[Claim]:
    """Which option is the first to stop at the entrance of a doorway: in it, or in a cell beside it."""
    found = {operator: _at_doors(results, operator) for operator in OPERATORS}
    earliest, listed = {}, {}
    for operator, hits in found.items():
        earliest[operator] = min((i for i, *_ in hits if i > 1), default=0)
        mine = [f"{label} at {cell}" for i, label, cell in hits if i == earliest[operator]]
        listed[operator] = ", ".join(mine) or "none of those examined"
    zero = [cell for i, _, cell in found["normalized"] if i == 1]
    room = room_of(results)
    labels = ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")
    at = {label: {room[cell] for cell in stops(results, label)} for label in labels}
    return [
        judge(
            "fifth-is-first-doorway",
            earliest["normalized"] == 5,
            ours=listed["normalized"],
            other=listed["combinatorial"],
            doors=names(doorways(results)),
            many=[len(stops(results, label)) for label in ("e1+", "e1-")],
            zero=f", also at entrances: {names(zero, 3)}." if zero else ".",
        ),
        judge(
            "first-to-rooms",
            *(len(ends) == 1 and -1 not in ends for ends in at.values()),
            ends={label: _rooms_of(ends) for label, ends in at.items()},
        ),
    ]


def _rooms_of(ends: set[int]) -> str:
    inside = sorted(i + 1 for i in ends if i >= 0)
    words = f"room{'s' * (len(inside) != 1)} {' and '.join(map(str, inside))}" if inside else ""
    return words + (" and a doorway" if -1 in ends else "")


def _at_doors(results: Results, operator: str) -> list[tuple[int, str, Cell]]:
    """Eigenvector, option and cell of every stop at an entrance, in order."""
    doors = doorways(results)
    return [
        (i // 2 + 1, label, cell)
        for i, label in enumerate(results["labels"])
        for cell in stops(results, label, operator)
        if any(steps(cell, door) <= 1 for door in doors)
    ]


EXPERIMENTS = (
    experiment(
        "figure2", settings("four-rooms", 4, 4, 2), run=run, figure=second_pvf, claims=second_pvf_claims
    ),
    experiment(
        "figure3",
        settings("open-room", 4, 4, 4),
        run=run_in_bases,
        figure=figure,
        claims=open_room_claims,
        notes=open_room_notes,
        closer=e2_in_bases,
    ),
    experiment("figure4", settings("i-maze", 4, 4, 4), run=run, figure=figure, claims=corridor_claims),
    experiment("figure5", settings("four-rooms", 16, 8, 4), run=run, figure=figure, claims=doorway_claims),
)
