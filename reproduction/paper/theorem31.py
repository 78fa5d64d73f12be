"""Theorem 3.1: every eigenoption stops somewhere; and how long each one runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum
from reproduction import Claim, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge
from reproduction.limits import DENSE, FEW, OFTEN
from reproduction.paper.first_options import option_rows
from reproduction.paper.jobs import MAZES
from reproduction.tables import Row, distinct, series, where

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
            sp = spectrum(graph(mdp), k=settings["eigenvectors"], operator=operator)
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
    for name, lengths in _pictured(results).items():
        length = lengths.reshape(-1, 2).mean(axis=1)
        points = {"": np.stack([np.arange(len(length)) + 1, length], axis=1)}
        panels.append(plots.point_panel(points, name, xlabel="eigenvector", ylabel="mean length (steps)"))
    return plots.figure(panels, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Theorem 3.1, and options of different lengths."""
    rows = results["options"]
    fewest = min(r["n_stops"] for r in rows)
    endless = sum(not np.isfinite(r["mean_length"]) for r in rows)
    lengths = [(name, x[x > 0].min(), x.max()) for name, x in _pictured(results).items()]
    # Of e2 to e4, which Figures 3 to 5 show, and of all options.
    shares = [(name, x[2:8].min(), np.median(x)) for name, x in _pictured(results, "start_share").items()]
    return [
        judge(
            "theorem-3.1",
            fewest >= 1,
            endless == 0,
            options=rows,
            fewest=fewest,
            endless=endless,
            gammas=sorted(distinct(rows, "gamma")),
            operators=distinct(rows, "operator"),
            domains=distinct(rows, "domain"),
        ),
        *_about_rewards(results),
        judge("frequencies", *(longest >= 2 * least for _, least, longest in lengths), lengths=lengths),
        judge("whole-state-space", *(middle >= OFTEN for *_, middle in shares), shares=shares),
    ]


def _about_rewards(results: Results) -> list[Claim]:
    facts = results["facts"]
    shown = where(facts, **PICTURED)
    gammas = sorted(distinct(facts, "gamma"))
    ends = (gammas[0], gammas[-1])
    by_gamma = series(results["options"], "mean_length", "domain", "gamma")
    length = {name: [of[gamma].mean() for gamma in ends] for name, of in by_gamma.items()}
    sums = ("stops", "stops_at_maxima", "options", "stop_at_the_highest")
    stops, peaks, many, top = (sum(r[name] for r in facts) for name in sums)
    several = (r[name] > 1 for name in ("fewest_in_a_state", "fewest_of_few") for r in shown)
    return [
        judge("stops-at-maxima", peaks == stops, top == many, peaks=peaks, stops=stops, top=top, many=many),
        judge("dense-reward", *(r["dense"] >= DENSE for r in shown), shown=shown),
        judge(
            "discount-timescale",
            *(last > 1.1 * first for first, last in length.values()),
            length=[(name, first, ends[0], last, ends[1]) for name, (first, last) in length.items()],
        ),
        judge("multiple-options", *several, shown=shown),
    ]


def _pictured(results: Results, name: str = "mean_length") -> dict[str, NDArray[np.float64]]:
    return series(results["options"], name, "domain", **PICTURED)


EXPERIMENT = experiment("theorem31", SETTINGS, run=run, figure=figure, claims=claims)
