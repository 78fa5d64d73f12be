"""Theorem 3.1: every eigenoption stops somewhere; and how long each one runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.experiments.limits import OFTEN
from eigenoptions.experiments.paper.first_options import option_rows
from eigenoptions.experiments.tables import distinct, where
from eigenoptions.mdp import graph, maze
from eigenoptions.options import eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum

SETTINGS: dict[str, Settings] = {
    "paper": {
        "mazes": ["open-room", "i-maze", "four-rooms"],
        "operators": ["normalized", "combinatorial", "random-walk"],
        "gammas": [0.0, 0.5, 0.9, 0.99],
        "eigenvectors": None,
    },
    "quick": {
        "mazes": ["i-maze", "four-rooms"],
        "operators": ["normalized"],
        "gammas": [0.0, 0.9],
        "eigenvectors": 8,
    },
}
# The paper's Laplacian and discount, which the figure shows.
PICTURED = ("normalized", 0.9)


def run(settings: Settings, pmap: Pmap) -> Results:
    """Options of all eigenvectors and both signs, in every domain, under every Laplacian and discount."""
    rows: list[dict[str, Any]] = []
    for name in settings["mazes"]:
        mdp = maze(name)
        for operator in settings["operators"]:
            sp = spectrum(graph(mdp), k=settings["eigenvectors"], operator=operator, coords=mdp.coords)
            for gamma in settings["gammas"]:
                options = solve(mdp, eigenpurposes(sp, skip_zero=False), gamma)
                rows += [{"domain": name, "gamma": gamma, **row} for row in option_rows(options, operator)]
    return {"options": rows}


def figure(results: Results) -> Any:
    """Mean length of the options of each eigenvector, the mean of both signs."""
    panels = []
    for name in distinct(results["options"], "domain"):
        length = np.array(_pictured(results, name)).reshape(-1, 2).mean(axis=1)
        at = np.arange(len(length)) + 1
        panels.append(
            plots.curve_panel(at, {"": length}, name, xlabel="eigenvector", ylabel="mean length (steps)")
        )
    return plots.figure(panels, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Theorem 3.1, and options of different lengths."""
    rows = results["options"]
    fewest = min(r["n_stops"] for r in rows)
    endless = sum(not np.isfinite(r["mean_length"]) for r in rows)
    domains = distinct(rows, "domain")
    longest = {name: max(_pictured(results, name)) for name in domains}
    shortest = {name: min(x for x in _pictured(results, name) if x > 0) for name in domains}
    gammas = sorted({r["gamma"] for r in rows})
    share = {name: _pictured(results, name, "start_share") for name in domains}
    # Of e2 to e4, which Figures 3 to 5 show.
    early = {name: min(share[name][2:8]) for name in domains}
    middle = {name: float(np.median(share[name])) for name in domains}
    return [
        Claim(
            "For an eigenoption and a discount below 1, in a finite MDP, the set of terminating states is "
            "nonempty.",
            "Theorem 3.1",
            f"{len(rows)} options, none with fewer than {fewest} terminating states; {endless} can run for "
            "ever",
            verdict(fewest >= 1, endless == 0),
            f"Both signs, discounts {', '.join(f'{g:g}' for g in gammas)}, Laplacians "
            f"{', '.join(dict.fromkeys(r['operator'] for r in rows))}, domains {', '.join(domains)}. An "
            "option can run forever if from some state it may miss all of its terminating states.",
        ),
        Claim(
            "Eigenoptions operate at different frequencies, with the length of a trajectory until "
            "termination varying.",
            "4.2",
            "; ".join(f"{name}: from {shortest[name]:.2f} to {longest[name]:.2f} steps" for name in domains),
            verdict(*(longest[name] >= 2 * shortest[name] for name in domains)),
            "Mean length of each option over the states where it may start (normalized Laplacian, discount "
            "0.9). It counts as varying when the longest is at least twice the shortest.",
        ),
        Claim(
            "Eigenoptions are often defined in the whole state space, allowing sequencing.",
            "4.2",
            "; ".join(
                f"{name}: e2 to e4 may start in at least {early[name]:.0%} of the states, the median of all "
                f"options in {middle[name]:.0%}"
                for name in domains
            ),
            verdict(*(x >= OFTEN for x in middle.values())),
            f"The median option must be able to start in at least {OFTEN:.0%} of the states, in each domain "
            "(normalized Laplacian, discount 0.9). An option that stops in 2 of the 19 states of the I-Maze "
            "is already below.",
        ),
    ]


def _pictured(results: Results, domain: str, what: str = "mean_length") -> list[float]:
    operator, gamma = PICTURED
    return [r[what] for r in where(results["options"], domain=domain, operator=operator, gamma=gamma)]


EXPERIMENT = Experiment(
    "theorem31",
    "Theorem 3.1: every option stops",
    "3",
    "The paper proves that an eigenoption always has a state to stop in, and says that options of different "
    "eigenvectors run for different times; the figure is not in the paper.",
    SETTINGS,
    run,
    figure,
    claims,
    order=30,
)
