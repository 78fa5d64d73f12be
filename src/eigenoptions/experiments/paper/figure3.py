"""Figure 3: the first options of the open room, and what the basis of its repeated eigenvalues changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments import Claim, Note, Pmap, Results, Settings
from eigenoptions.experiments.claims import experiment, judge, note
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
        {**row, "ends": row["e4_stops"] / row["e2_stops"], "lengths": row["e2_length"] / row["e4_length"]}
        for row in results["bases"]
    ]
    return [note("repeated-eigenvalues"), note("bases-of-the-square", rows)]


def claims(results: Results) -> list[Claim]:
    """Corners, and how often the fourth option stops."""
    labels = ("e2+", "e2-", "e3+", "e3-")
    away, ratios, lengths = {}, [], []
    for operator in first.OPERATORS:
        cells = [cell for label in labels for cell in first.stops(results, label, operator)]
        away[operator] = max(min(first.steps(c, corner) for corner in first.corners(results)) for c in cells)
        e2, e4 = (first.option(results, label, operator) for label in ("e2+", "e4+"))
        ratios.append((e4["n_stops"] / e2["n_stops"], e2["mean_length"] / e4["mean_length"]))
        lengths.append(f"{e2['mean_length']:.2f} steps for e2 and {e4['mean_length']:.2f} steps for e4")
    return [
        judge(
            "corners",
            away["normalized"] == 0,
            away["normalized"] <= 2,
            ends={label: first.names(first.stops(results, label)) for label in labels},
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


EXPERIMENT = experiment(
    "figure3", SETTINGS, run=run, figure=first.figure, claims=claims, notes=notes, closer=closer
)
