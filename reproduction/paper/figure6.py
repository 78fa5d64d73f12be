"""Figure 6: diffusion time as options are added, in the three domains, and with bottleneck options only."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.evaluation import diffusion_time
from eigenoptions.mdp import MDP, maze
from reproduction import Claim, Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import FIRST, GREATLY
from reproduction.paper.jobs import (
    BOTTLENECK,
    MAZES,
    PRIMITIVE,
    TURNED,
    agent,
    diffuse_all,
    eigen,
    reach,
)
from reproduction.tables import curve_row, grid, series, where

SETTINGS = sizes(
    {"mazes": MAZES, "n": None, "gamma": 0.9, "many": 64}, mazes=["i-maze", "four-rooms"], n=12, many=12
)
ROOMS = "four-rooms"
# The domain with repeated eigenvalues.
SQUARE = "open-room"
# Sweeps of policy evaluation end when no value changes by more, in steps.
SWEEP_ERROR = 1e-6


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time with 0, 1, 2, ... options, and mean steps to reach each state of four rooms."""
    own = eigen(settings["n"], gamma=settings["gamma"])
    agents = [agent(name, own, domain=name, kind="eigenoptions") for name in settings["mazes"]]
    agents.append(agent(ROOMS, BOTTLENECK, domain=ROOMS, kind="bottleneck"))
    others = [agent(SQUARE, eigen(settings["n"], turn=turn), basis=basis) for basis, turn in TURNED.items()]
    ways = {"primitive": PRIMITIVE, "bottleneck": BOTTLENECK, "eigenoptions": eigen(settings["many"])}
    reached = pmap(reach, [{"maze": ROOMS, "options": options} for options in ways.values()])
    steps = [
        {"kind": kind, "row": int(row), "column": int(col), "mean_steps": float(h)}
        for kind, hard in zip(ways, reached, strict=True)
        for (row, col), h in zip(np.asarray(maze(ROOMS).coords), hard, strict=True)
    ]
    by_steps = [
        {"domain": name, "swept": _swept(maze(name)), "solved": diffusion_time(maze(name))}
        for name in settings["mazes"]
    ]
    return {
        "diffusion": diffuse_all(pmap, agents),
        "reach": steps,
        "bases": diffuse_all(pmap, others),
        "dynamic_programming": by_steps,
    }


def _swept(mdp: MDP) -> float:
    """Diffusion time of primitive actions by Appendix B: policy evaluation with reward 1 per step, for each goal."""
    S, successors = mdp.n_states, np.asarray(mdp.successors)
    v, change, goals = np.zeros((S, S)), 1.0, np.arange(S)
    while change > SWEEP_ERROR:
        # v[g, s]: steps from s to g, one sweep for all goals at once.
        new = 1.0 + v[:, successors].mean(axis=2)
        new[goals, goals] = 0.0
        change, v = float(np.abs(new - v).max()), new
    return float(v.sum() / (S * (S - 1)))


def figure(results: Results) -> Any:
    """Lines on a logarithmic axis, with the diffusion time of primitive actions."""
    panels: dict[str, Any] = {}
    curves = _curves(results)
    for name, y in curves["eigenoptions"].items():
        panels[name] = {"series": {"eigenoptions": y}, "log": True}
        if name == SQUARE:
            panels[name]["threads"] = {"other bases": [basis[: len(y)] for basis in _bases(results).values()]}
    y, name = curves["bottleneck"][ROOMS], "bottleneck options"
    ticks = [str(m) for m in range(len(y))]
    panels[name] = {"series": {name: y}, "ticks": ticks, "limits": (0, 1.1 * y.max())}
    for panel in panels.values():
        (y,) = panel["series"].values()
        panel |= {"x": range(len(y)), "levels": {"primitive actions": y[0]}, "legend": True}
    row = curve_row(panels, "diffusion time", xlabel="options")
    return plots.figure(row, columns=len(row), width=1.3 * plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which options help exploration and which hurt it."""
    swept = results["dynamic_programming"]
    agree = (abs(r["swept"] - r["solved"]) < 1e-3 * r["solved"] for r in swept)
    return [
        *_about_eigenoptions(results),
        *_about_bottlenecks(results),
        judge("dynamic-programming", *agree, domains=swept),
    ]


def _about_eigenoptions(results: Results) -> list[Claim]:
    curve = _curves(results)["eigenoptions"]
    first = {name: y[list(FIRST)] for name, y in curve.items()}
    begin = {name: {m or "no options": y[m] for m in range(min(9, len(y)))} for name, y in curve.items()}
    return [
        judge(
            "first-options-hurt",
            *((first[name] > y[0]).all() for name, y in curve.items()),
            worst={name: first[name].max() / y[0] for name, y in curve.items()},
            rows=grid("steps", begin, ",.0f"),
        ),
        judge(
            "enough-options-help",
            *(y.min() <= GREATLY * y[0] for y in curve.values()),
            least={name: y.min() / y[0] for name, y in curve.items()},
            rows=[(name, y[0], y.min(), int(y.argmin()), _since(y)) for name, y in curve.items()],
        ),
    ]


def _about_bottlenecks(results: Results) -> list[Claim]:
    doors = _curves(results)["bottleneck"][ROOMS]
    corner = {}
    for kind in ("primitive", "bottleneck", "eigenoptions"):
        of = {(r["row"], r["column"]): r["mean_steps"] for r in where(results["reach"], kind=kind)}
        corner[kind] = float(np.mean([of[cell] for cell in ((1, 1), (1, 11), (11, 1), (11, 11))]))
    fewer = (corner["eigenoptions"] < corner[kind] for kind in ("bottleneck", "primitive"))
    return [
        judge("bottlenecks-increase", doors[-1] > doors[0], doors=doors),
        judge("corners-less-likely", corner["bottleneck"] > corner["primitive"], corner=corner),
        judge("mitigated", *fewer, corner=corner),
    ]


def notes(results: Results) -> list[Note]:
    """Where the harm of the first options begins and ends, and what the basis changes."""
    found = [note("steep-rise")]
    own = _curves(results)["eigenoptions"].get(SQUARE)
    if own is not None:
        curves = {"as reported": own, **_bases(results)}
        counts = [m for m in (0, 2, 3, 4, 6, 8, 16, 32, 64) if m < len(own)]
        lines = {name: {m: y[m] for m in counts} for name, y in curves.items()}
        found.append(note("diffusion-in-other-bases", grid("open room, options", lines, ",.0f")))
    return found


def _bases(results: Results) -> dict[str, Any]:
    return series(results["bases"], "diffusion_time", "basis")


def _curves(results: Results) -> dict[str, dict[str, Any]]:
    """Diffusion times with 0, 1, 2, ... options, by kind and domain."""
    return series(results["diffusion"], "diffusion_time", "kind", "domain")


def _since(y: Any) -> str:
    """Number of options from which a curve stays below its first value."""
    above = np.flatnonzero(y >= y[0])
    return f"from {int(above[-1]) + 1} options on" if above[-1] + 1 < len(y) else "never for good"


def headline(results: Results) -> tuple[str, str]:
    """The least diffusion time of four rooms."""
    y = _curves(results)["eigenoptions"][ROOMS]
    words = f"between two states of the 4-room domain with eigenoptions, {y[0]:,.0f} without"
    return f"{y.min():,.0f} steps", words


EXPERIMENT = experiment(
    "figure6", SETTINGS, run=run, figure=figure, claims=claims, notes=notes, headline=headline
)
