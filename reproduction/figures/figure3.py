"""Figure 3: options of the open room.

Options of the four smallest eigenvectors in the 10 x 10 grid; the first of them has eigenvalue zero.
"""

from collections.abc import Iterator

import pandas as pd

import eigenoptions as eo
from reproduction.figures.agents import ANGLES, make_eigenoptions
from reproduction.figures.first_options import (
    distance,
    draw_options,
    find_corners,
    find_options,
    find_row,
    find_stops,
    name_cells,
)
from reproduction.lab import Claim, Data, Lab

SECTION, ORDER = "4.1", 40
CAPTION = "Red: the option stops."


def run(lab: Lab, *, maze: str = "open-room", eigenvectors: int = 4, gamma: float = 0.9) -> Data:
    """Options of the first eigenvectors; and those of e2 and e4 in other bases of the plane of e2 and e3."""
    rows = []
    for angle in ANGLES:
        options = make_eigenoptions(eo.maze(maze), 8, angle=angle, gamma=gamma)
        lengths = {"e2_length": options["e2+"].mean_length, "e4_length": options["e4+"].mean_length}
        rows.append({"basis": f"turned by {angle} degrees", **lengths})
    return {**find_options(maze, eigenvectors, gamma), "bases": pd.DataFrame(rows)}


def claims(data: Data) -> Iterator[Claim]:
    labels = ("e2+", "e2-", "e3+", "e3-")
    ends, ratios, lengths = [], [], []
    for operator in ("normalized", "combinatorial"):
        cells = [cell for label in labels for cell in find_stops(data, label, operator)]
        away = max(min(distance(cell, corner) for corner in find_corners(data)) for cell in cells)
        ends.append(away)
        e2, e4 = find_row(data, "e2+", operator), find_row(data, "e4+", operator)
        ratios.append((e4.n_stops / e2.n_stops, e2.mean_length / e4.mean_length))
        lengths.append(f"{e2.mean_length:.2f} steps for e2 and {e4.mean_length:.2f} steps for e4")
    words = [f"{away} steps from a corner" if away else "on a corner" for away in ends]
    yield Claim(
        "corners",
        "We discover meaningful options, such as going to the corners of an open room.",
        tests=[ends[0] == 0, ends[0] <= 2],
        measured="; ".join(f"{label} stops at {name_cells(find_stops(data, label))}" for label in labels),
        evidence=f"They end {words[0]} with the normalized Laplacian, which the paper uses, and {words[1]} "
        "with the combinatorial one. A square grid has repeated eigenvalues: e2 and e3 span a plane, and any basis "
        "of it is as right as any other. In another one e2 and e3 end in the middle of a wall; Figures 6 and 7 show "
        "what follows.",
    )
    others = " and ".join(f"{b.e2_length / b.e4_length:.3g} ({b.basis})" for b in data["bases"].itertuples())
    yield Claim(
        "twice-as-often",
        "The fourth eigenoption terminates, on expectation, twice as often as the second eigenoption.",
        section="4.2",
        tests=[abs(ratio - 2) < 0.2 for ratio in ratios[0]],
        measured=f"e4 stops in {ratios[0][0]:.3g} times as many states as e2, and e2 runs {ratios[0][1]:.3g} "
        "times as long as e4 on average",
        evidence=f"Mean lengths are over the states where the option may start: {lengths[0]}. With the "
        f"combinatorial Laplacian the two ratios are {ratios[1][0]:.3g} and {ratios[1][1]:.3g} ({lengths[1]}). "
        "Twice as many ends do not halve the way to the nearest one. In other bases of the repeated eigenvalue "
        f"the length ratio is {others}.",
    )


figure = draw_options
