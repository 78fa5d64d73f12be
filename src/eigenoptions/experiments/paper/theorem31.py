"""Theorem 3.1: every eigenoption stops somewhere; and how long each one runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.experiments import Claim, Experiment, Pmap, Results, Settings, sizes, verdict
from eigenoptions.experiments.limits import DENSE, FEW, OFTEN
from eigenoptions.experiments.paper.first_options import option_rows
from eigenoptions.experiments.paper.jobs import MAZES
from eigenoptions.experiments.tables import Row, column, distinct, where
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum

OPERATORS = ["normalized", "combinatorial", "random-walk"]
SETTINGS = sizes(
    {"mazes": MAZES, "operators": OPERATORS, "gammas": [0.0, 0.5, 0.9, 0.99], "eigenvectors": None},
    mazes=["i-maze", "four-rooms"],
    operators=["normalized"],
    gammas=[0.0, 0.9],
    eigenvectors=8,
)
# Differences of eigenvector entries below this are rounding errors.
ROUNDING = 1e-9
# The paper's Laplacian and discount, which the figure shows.
PICTURED = {"operator": "normalized", "gamma": 0.9}


def run(settings: Settings, pmap: Pmap) -> Results:
    """Options of all eigenvectors and both signs, in every domain, under every Laplacian and discount."""
    results: Results = {"options": [], "facts": []}
    for name in settings["mazes"]:
        mdp = maze(name)
        for operator in settings["operators"]:
            sp = spectrum(graph(mdp), k=settings["eigenvectors"], operator=operator, coords=mdp.coords)
            for gamma in settings["gammas"]:
                options = solve(mdp, eigenpurposes(sp, skip_zero=False), gamma)
                rows = option_rows(options, operator)
                results["options"] += [{"domain": name, "gamma": gamma, **row} for row in rows]
                key = {"domain": name, "operator": operator, "gamma": gamma}
                results["facts"].append({**key, **_facts(mdp, sp.vectors, options)})
    return results


def _facts(mdp: MDP, vectors: NDArray[np.float64], options: OptionSet) -> Row:
    """How dense the rewards are, where options stop, and how many may start in a state.

    A stop is a local maximum if no move leads to a higher value; differences below ROUNDING are rounding.
    """
    there = np.asarray(mdp.successors)
    moved = there != np.arange(mdp.n_states)[:, None]
    signed = np.stack([sign * e for e in vectors.T for sign in (1.0, -1.0)])
    rise = signed[:, there] - signed[:, :, None]
    varied = np.ptp(signed, axis=1) > ROUNDING
    dense = (np.abs(rise) > ROUNDING)[:, moved].mean(axis=1)
    peak = (rise <= ROUNDING).all(axis=2)
    stops = options.termination
    top = signed >= signed.max(axis=1, keepdims=True) - ROUNDING
    return {
        "dense": float(np.median(dense[varied])),
        "stops": int(stops[varied].sum()),
        "stops_at_maxima": int((stops & peak)[varied].sum()),
        "options": int(varied.sum()),
        "stop_at_the_highest": int((stops & top)[varied].any(axis=1).sum()),
        "fewest_in_a_state": int((~stops).sum(axis=0).min()),
        "fewest_of_few": int((~stops[:FEW]).sum(axis=0).min()),
    }


def figure(results: Results) -> Any:
    """Mean length of the options of each eigenvector, the mean of both signs."""
    panels = []
    for name in distinct(results["options"], "domain"):
        length = _pictured(results, name).reshape(-1, 2).mean(axis=1)
        points = {"": np.stack([np.arange(len(length)) + 1, length], axis=1)}
        panels.append(plots.point_panel(points, name, xlabel="eigenvector", ylabel="mean length (steps)"))
    return plots.figure(panels, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Theorem 3.1, and options of different lengths."""
    rows = results["options"]
    fewest = min(r["n_stops"] for r in rows)
    endless = sum(not np.isfinite(r["mean_length"]) for r in rows)
    domains = distinct(rows, "domain")
    length = {name: _pictured(results, name) for name in domains}
    shortest = {name: x[x > 0].min() for name, x in length.items()}
    longest = {name: x.max() for name, x in length.items()}
    gammas = sorted(distinct(rows, "gamma"))
    share = {name: _pictured(results, name, "start_share") for name in domains}
    # Of e2 to e4, which Figures 3 to 5 show.
    early = {name: share[name][2:8].min() for name in domains}
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
            f"{', '.join(distinct(rows, 'operator'))}, domains {', '.join(domains)}. An option can run "
            "forever if from some state it may miss all of its terminating states. Other finite MDPs are "
            "under Appendix A.",
            "theorem-3.1",
        ),
        *_about_rewards(results),
        Claim(
            "Eigenoptions operate at different frequencies, with the length of a trajectory until "
            "termination varying.",
            "4.2",
            "; ".join(f"{name}: from {shortest[name]:.2f} to {longest[name]:.2f} steps" for name in domains),
            verdict(*(longest[name] >= 2 * shortest[name] for name in domains)),
            "Mean length of each option over the states where it may start (normalized Laplacian, discount "
            "0.9). It counts as varying when the longest is at least twice the shortest.",
            "frequencies",
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
            "whole-state-space",
        ),
    ]


def _about_rewards(results: Results) -> list[Claim]:
    facts = results["facts"]
    shown = where(facts, **PICTURED)
    gammas = sorted(distinct(facts, "gamma"))
    length = {
        name: [column(results["options"], "mean_length", domain=name, gamma=g).mean() for g in gammas]
        for name in distinct(facts, "domain")
    }
    sums = ("stops", "stops_at_maxima", "options", "stop_at_the_highest")
    stops, peaks, many, top = (sum(r[name] for r in facts) for name in sums)
    return [
        Claim(
            "Options terminate when the agent reaches the state with largest value in the eigenpurpose, or "
            "a local maximum when the discount is below 1.",
            "3",
            f"{peaks:,} of {stops:,} terminating states are local maxima; {top:,} of {many:,} options stop "
            "at the largest value",
            verdict(peaks == stops, top == many),
            "All domains, Laplacians and discounts. Two tests: every terminating state has no neighbour of "
            "larger value, and the state of the largest value is one of them.",
            "stops-at-maxima",
        ),
        Claim(
            "This reward function tends to be dense.",
            "3",
            "rewards that are not zero, median option: "
            + ", ".join(f"{r['domain']} {r['dense']:.0%}" for r in shown),
            verdict(*(r["dense"] >= DENSE for r in shown)),
            f"Share of the moves that change the state (normalized Laplacian); at least {DENSE:.0%} in each domain.",
            "dense-reward",
        ),
        Claim(
            "The discount rate impacts the timescale the option encodes.",
            "3",
            "; ".join(
                f"{name}: {x[0]:.1f} steps with {gammas[0]:g}, {x[-1]:.1f} with {gammas[-1]:g}"
                for name, x in length.items()
            ),
            verdict(*(x[-1] > 1.1 * x[0] for x in length.values())),
            "Mean length of all options; it must grow by more than a tenth from the smallest to the largest "
            "discount, in each domain.",
            "discount-timescale",
        ),
        Claim(
            "Because our options are defined across the whole state space, multiple options are available in "
            "every state.",
            "1",
            "fewest options in any state: "
            + ", ".join(
                f"{r['domain']} {r['fewest_in_a_state']} ({r['fewest_of_few']} of the first {FEW})"
                for r in shown
            ),
            verdict(*(r["fewest_in_a_state"] > 1 for r in shown), *(r["fewest_of_few"] > 1 for r in shown)),
            f"Of all eigenoptions, and of the first {FEW}; more than one in every state of each domain.",
            "multiple-options",
        ),
    ]


def _pictured(results: Results, domain: str, what: str = "mean_length") -> NDArray[np.float64]:
    return column(results["options"], what, domain=domain, **PICTURED)


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
