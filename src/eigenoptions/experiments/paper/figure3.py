"""Figure 3: the first options of the open room, and what the basis of its repeated eigenvalues changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments import Claim, Experiment, Note, Pmap, Results, Settings, verdict
from eigenoptions.experiments.paper import first_options as first
from eigenoptions.experiments.paper.jobs import TURNED, eigenoptions
from eigenoptions.mdp import maze

SETTINGS = first.settings("open-room", 4, 4, 4)


def run(settings: Settings, pmap: Pmap) -> Results:
    """As in Figures 4 and 5; and the options of e2 and e4 in other bases of the repeated eigenvalue of e2 and e3."""
    results = first.run(settings, pmap)
    mdp = maze(settings["maze"])
    bases, policies = [], []
    for name, turn in ({"as reported": 0} | TURNED).items():
        options = eigenoptions(mdp, 8, turn=turn)
        e2, e4 = options["e2+"], options["e4+"]
        ends = [tuple(cell) for cell in np.asarray(options.coords)[e2.termination].tolist()]
        policies.append(e2.policy)
        row = {"basis": name, "e2_stops": int(e2.termination.sum()), "e4_stops": int(e4.termination.sum())}
        row |= {"e2_length": e2.mean_length, "e4_length": e4.mean_length, "e2_ends": first.names(ends)}
        bases.append(row)
    return {**results, "bases": bases, "basis_policy": policies}


def closer(results: Results) -> Any:
    """The option of e2 in three bases of its plane, all of them equally right."""
    pairs = zip(results["bases"], results["basis_policy"], strict=True)
    return plots.figure(
        [plots.policy_panel(results["coords"], policy, f"e2+, {row['basis']}") for row, policy in pairs]
    )


def notes(results: Results) -> list[Note]:
    """What depends on the basis."""
    rows = [
        {
            "basis of the plane of e2 and e3": row["basis"],
            "e2+ ends at": row["e2_ends"],
            "ends of e4+ / e2+": f"{row['e4_stops'] / row['e2_stops']:.3g}",
            "length of e2+ / e4+": f"{row['e2_length'] / row['e4_length']:.2f}",
        }
        for row in results["bases"]
    ]
    text = (
        "A square grid has repeated eigenvalues: e2 and e3 span a plane, and any two perpendicular "
        "directions in it are as right as any other. The paper does not say which it takes; a numerical "
        "library returns whichever comes out first. The library's rule gives a diagonal that misses the goal "
        "of Figure 7; Figures 6 and 7 show what follows."
    )
    return [text, ("", rows)]


def claims(results: Results) -> list[Claim]:
    """Corners, and how often the fourth option stops."""
    labels = ("e2+", "e2-", "e3+", "e3-")
    away, ratio = {}, {}
    for operator in first.OPERATORS:
        cells = [cell for label in labels for cell in first.stops(results, label, operator)]
        away[operator] = max(min(first.steps(c, corner) for corner in first.corners(results)) for c in cells)
        e2, e4 = (first.option(results, label, operator) for label in ("e2+", "e4+"))
        ratio[operator] = e4["n_stops"] / e2["n_stops"], e2["mean_length"] / e4["mean_length"]
    stopping, length = ratio["normalized"]
    return [
        Claim(
            "We discover meaningful options, such as going to the corners of an open room.",
            "4.1",
            "; ".join(f"{label} stops at {first.names(first.stops(results, label))}" for label in labels),
            verdict(away["normalized"] == 0, away["normalized"] <= 2),
            f"They end {_away(away['normalized'])} with the normalized Laplacian, which the paper uses, and "
            f"{_away(away['combinatorial'])} with the combinatorial one. The corners are those of one basis of the "
            "repeated eigenvalue: in another one e2 and e3 end in the middle of a wall.",
            "corners",
        ),
        Claim(
            "The fourth eigenoption terminates, on expectation, twice as often as the second eigenoption.",
            "4.2",
            f"e4 stops in {stopping:.3g} times as many states as e2, and e2 runs {length:.3g} times as long "
            "as e4 on average",
            verdict(abs(stopping - 2) < 0.2, abs(length - 2) < 0.2),
            "Mean lengths are over the states where the option may start: "
            f"{_lengths(results, 'normalized')}. With the combinatorial Laplacian the two ratios are "
            f"{ratio['combinatorial'][0]:.3g} and {ratio['combinatorial'][1]:.3g} "
            f"({_lengths(results, 'combinatorial')}). Twice as many ends do not halve the way to the nearest "
            "one. In other bases of the repeated eigenvalue the length ratio is "
            + " and ".join(
                f"{r['e2_length'] / r['e4_length']:.3g} ({r['basis']})" for r in results["bases"][1:]
            )
            + ".",
            "twice-as-often",
        ),
    ]


def _away(moves: int) -> str:
    return f"{moves} steps from a corner" if moves else "on a corner"


def _lengths(results: Results, operator: str) -> str:
    return " and ".join(
        f"{first.option(results, f'{name}+', operator)['mean_length']:.2f} steps for {name}"
        for name in ("e2", "e4")
    )


EXPERIMENT = Experiment(
    "figure3",
    "Figure 3: options of the open room",
    "4.1",
    "Options of the four smallest eigenvectors in the 10 x 10 grid; the first of them has eigenvalue zero.",
    SETTINGS,
    run,
    first.figure,
    claims,
    notes,
    order=40,
    closer=closer,
)
