"""Figure 3: options of the open room.

Options of the four smallest eigenvectors in the 10 x 10 grid; the first of them has eigenvalue zero.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions.plots import draw_policy
from reproduction.drawing import make_maps
from reproduction.figures.agents import ANGLES, make_eigenoptions
from reproduction.figures.first_options import (
    distance,
    draw_options,
    find_corners,
    find_options,
    find_row,
    find_stops,
    maze_of,
    name_cells,
)
from reproduction.lab import Block, Claim, Data, Lab

SECTION, ORDER = "4.1", 40
CAPTION = "Red: the option stops."


def run(lab: Lab, *, maze: str = "open-room", eigenvectors: int = 4, gamma: float = 0.9) -> Data:
    """Options of the first eigenvectors; and those of e2 and e4 in other bases of the plane of e2 and e3."""
    mdp = eo.maze(maze)
    rows, policies = [], []
    for angle in (0, *ANGLES):
        options = make_eigenoptions(mdp, 8, angle=angle, gamma=gamma)
        e2, e4 = options["e2+"], options["e4+"]
        basis = f"turned by {angle} degrees" if angle else "as reported"
        rows.append(
            {
                "basis": basis,
                "e2_stops": e2.termination.sum(),
                "e4_stops": e4.termination.sum(),
                "e2_length": e2.mean_length,
                "e4_length": e4.mean_length,
                "e2_ends": name_cells(
                    [tuple(cell) for cell in np.asarray(mdp.coords)[e2.termination].tolist()]
                ),
            }
        )
        policies.append(pd.DataFrame({"basis": basis, "state": range(mdp.n_states), "action": e2.policy}))
    found = find_options(maze, eigenvectors, gamma)
    return {**found, "bases": pd.DataFrame(rows), "basis_policies": pd.concat(policies)}


def closer(data: Data) -> Any:
    policies = data["basis_policies"].groupby("basis", sort=False)
    picture, axes = make_maps(len(policies))
    for ax, (basis, policy) in zip(axes, policies, strict=True):
        draw_policy(ax, maze_of(data), policy.action)
        ax.set_title(f"e2+, {basis}")
    return picture


def notes(data: Data) -> Iterator[Block]:
    yield (
        "A square grid has repeated eigenvalues: e2 and e3 span a plane, and any two perpendicular directions "
        "in it are as right as any other. The paper does not say which it takes; a numerical library returns "
        "whichever comes out first. The library's rule gives a diagonal that misses the goal of Figure 7; "
        "Figures 6 and 7 show what follows."
    )
    bases = data["bases"]
    yield pd.DataFrame(
        {
            "basis of the plane of e2 and e3": bases.basis,
            "e2+ ends at": bases.e2_ends,
            "ends of e4+ / e2+": (bases.e4_stops / bases.e2_stops).map("{:.3g}".format),
            "length of e2+ / e4+": (bases.e2_length / bases.e4_length).map("{:.2f}".format),
        }
    )


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
        "4.1",
        "We discover meaningful options, such as going to the corners of an open room.",
        tests=[ends[0] == 0, ends[0] <= 2],
        measured="; ".join(f"{label} stops at {name_cells(find_stops(data, label))}" for label in labels),
        evidence=f"They end {words[0]} with the normalized Laplacian, which the paper uses, and {words[1]} "
        "with the combinatorial one. The corners are those of one basis of the repeated eigenvalue: in another "
        "one e2 and e3 end in the middle of a wall.",
    )
    bases = data["bases"][1:]
    others = " and ".join(f"{b.e2_length / b.e4_length:.3g} ({b.basis})" for b in bases.itertuples())
    yield Claim(
        "twice-as-often",
        "4.2",
        "The fourth eigenoption terminates, on expectation, twice as often as the second eigenoption.",
        tests=[abs(ratio - 2) < 0.2 for ratio in ratios[0]],
        measured=f"e4 stops in {ratios[0][0]:.3g} times as many states as e2, and e2 runs {ratios[0][1]:.3g} "
        "times as long as e4 on average",
        evidence=f"Mean lengths are over the states where the option may start: {lengths[0]}. With the "
        f"combinatorial Laplacian the two ratios are {ratios[1][0]:.3g} and {ratios[1][1]:.3g} ({lengths[1]}). "
        "Twice as many ends do not halve the way to the nearest one. In other bases of the repeated eigenvalue "
        f"the length ratio is {others}.",
    )


figure = draw_options
