"""Looking closer: Figures 6 and 7 under other readings of the method.

The paper leaves six choices open: which Laplacian, whether the eigenvector of eigenvalue zero counts, one sign or
both, which values count as zero (in its authors' code those below 0.001), which basis a repeated eigenvalue gets, and
which of two equally good actions an option takes.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from eigenoptions.mdp import maze
from reproduction import Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, note
from reproduction.paper.jobs import (
    LEARNING,
    Agent,
    agent,
    counts_for,
    diffuse_all,
    eigen,
    eigenoptions,
    learn_all,
)
from reproduction.tables import SHARE, Row, curve_row, distinct, grid, series

REPORTED, ABSOLUTE, ONE = "as reported", "values below 0.001 are zero", "one sign only"
READINGS: dict[str, dict[str, Any]] = {
    REPORTED: {},
    "eigenvalue zero left out": {"skip_zero": True},
    "combinatorial Laplacian": {"operator": "combinatorial"},
    "random-walk Laplacian": {"operator": "random-walk"},
    ABSOLUTE: {"absolute": 0.001},
    ONE: {"both_signs": False},
    "repeated eigenvalues turned by 45 degrees": {"turn": 45},
    "repeated eigenvalues turned by 90 degrees": {"turn": 90},
}
SETTINGS = sizes(
    {**LEARNING, "orders": 24, "first": 64, "seed": 2018},
    episodes={"i-maze": 20},
    options=[0, 2, 16],
    orders=3,
    first=8,
    runs=4,
    block=4,
)


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time and mean return under each reading, and diffusion time for each order of equal actions."""
    mazes = list(settings["episodes"])
    orders = list(permutations(range(4)))[: settings["orders"]]
    agents = [
        agent(name, eigen(**how), domain=name, reading=reading)
        for name in mazes
        for reading, how in READINGS.items()
    ]
    tied = [
        agent(name, eigen(n, ties=list(order)), domain=name, order="".join(map(str, order)))
        for name in mazes
        for n in counts_for(name, [settings["first"]])
        for order in orders
    ]
    return {
        "diffusion": diffuse_all(pmap, agents),
        "ties": diffuse_all(pmap, tied),
        "learning": _learning(settings, pmap, agents),
        "stops": [_stops(name) for name in mazes],
    }


def _learning(settings: Settings, pmap: Pmap, agents: list[Agent]) -> list[Row]:
    """Mean returns for each reading and number of options."""
    fewer: list[Agent] = []
    for key, job in agents:
        most = len(eigenoptions(maze(job["maze"]), **READINGS[key["reading"]]))
        for n in sorted({min(n, most) for n in settings["options"]}):
            fewer.append(({**key, "options": n}, {**job, "options": {**job["options"], "n": n}}))
    return [
        {
            **key,
            "mean_return": float(returns[0].mean()),
            "final_return": float(returns[0][:, -1].mean()),
            "learning_return": float(returns[1].mean()),
        }
        for key, returns in learn_all(pmap, settings, fewer)
    ]


def _stops(name: str) -> Row:
    """Number of ends of eigenoptions that the tolerance of 0.001 changes."""
    ours, theirs = eigenoptions(maze(name)), eigenoptions(maze(name), absolute=0.001)
    changed = ours.termination != theirs.termination
    return {
        "domain": name,
        "options": len(ours),
        "ends": int(ours.termination.sum()),
        "changed": int(changed.sum()),
        "changed_first_64": int(changed[:64].sum()),
    }


def figure(results: Results) -> Any:
    """Diffusion time above, mean return below; thin lines are the orders of equal actions."""
    upper: dict[str, Any] = {}
    lower: dict[str, Any] = {}
    for name, curves in _curves(results).items():
        ties = _ties(results)[name]
        shown = min(65, ties.shape[1], *(len(y) for y in curves.values()))
        upper[name] = {
            "x": range(shown),
            "series": {reading: y[:shown] for reading, y in curves.items()},
            "threads": {"orders of equal actions": ties[:, :shown]},
            "levels": {"primitive actions": curves[REPORTED][0]},
        }
        own = _returns(results)[name]
        counts = [n for n in own[ONE] if all(n in of for of in own.values())]
        lower[name] = {
            "title": "",
            "x": range(len(counts)),
            "series": {reading: [of[n][0] for n in counts] for reading, of in own.items()},
            "ticks": [str(n) for n in counts],
        }
    panels = [
        *curve_row(upper, "diffusion time", legend=False, xlabel="options", log=True),
        *curve_row(lower, "mean return", legend=False, xlabel="options", limits=SHARE),
    ]
    return plots.figure(panels, columns=len(upper), width=plots.PAGE, legend=True)


def notes(results: Results) -> list[Note]:
    """What depends on the reading, and what does not."""
    few, many = 4, 64
    curves, returns = _curves(results), _returns(results)
    lines: dict[str, dict[str, str]] = {reading: {} for reading in READINGS}
    pairs = [(name, m) for name in curves for m in (few, many)]
    for reading, line in lines.items():
        for name, m in pairs:
            y = curves[name][reading]
            line[f"{name}, {m}"] = f"{y[min(m, len(y) - 1)]:,.0f}"
        for name, m in pairs:
            line[f"return {name}, {m}"] = f"{_learned(returns[name][reading], m):.2f}"
    never = [(reading, name) for name, of in curves.items() for reading, y in of.items() if y[-1] >= y[0]]
    largest = max(abs(_learned(of[ABSOLUTE], many) - _learned(of[REPORTED], many)) for of in returns.values())
    return [
        note("readings", grid("reading", lines), few=few, many=many),
        note("enough-but" if never else "enough", never=never),
        note("eigenvalue-zero"),
        _equal_actions(results),
        note("tolerance", stops=results["stops"], largest=largest),
    ]


def _learned(returns: dict[int, Any], most: int) -> float:
    """Mean return with the largest number of options up to this one."""
    return float(returns[max(n for n in returns if n <= most)][0])


def _equal_actions(results: Results) -> Note:
    lines: dict[str, dict[str, str]] = {}
    for name, y in _ties(results).items():
        counts = [m for m in (2, 4, 16, y.shape[1] - 1) if m < y.shape[1]]
        lines[name] = {f"{m} options": f"{y[:, m].min():,.0f} to {y[:, m].max():,.0f}" for m in counts}
    return note("equal-actions", grid("domain", lines), orders=distinct(results["ties"], "order"))


def _curves(results: Results) -> dict[str, dict[str, Any]]:
    return series(results["diffusion"], "diffusion_time", "domain", "reading")


def _ties(results: Results) -> dict[str, Any]:
    """``(orders, options + 1)`` diffusion times, by domain."""
    times = series(results["ties"], "diffusion_time", "domain", "order")
    return {name: np.stack([*of.values()]) for name, of in times.items()}


def _returns(results: Results) -> dict[str, dict[str, dict[int, Any]]]:
    """``(1,)`` mean return by domain, reading and number of options."""
    return series(results["learning"], "mean_return", "domain", "reading", "options")


EXPERIMENT = experiment("variants", SETTINGS, run=run, figure=figure, notes=notes)
