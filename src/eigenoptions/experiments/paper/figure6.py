"""Figure 6: diffusion time as options are added, in the three domains, and with bottleneck options only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.evaluation import diffusion_time
from eigenoptions.experiments import Claim, Experiment, Note, Pmap, Results, Settings, sizes, verdict
from eigenoptions.experiments.limits import FIRST, GREATLY
from eigenoptions.experiments.paper.jobs import (
    BOTTLENECK,
    MAZES,
    PRIMITIVE,
    TURNED,
    Agent,
    diffuse_all,
    eigen,
    reach,
)
from eigenoptions.experiments.tables import column, distinct, grid, where
from eigenoptions.mdp import MDP, maze

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
    agents: list[Agent] = [
        ({"domain": name, "kind": "eigenoptions"}, {"maze": name, "options": own})
        for name in settings["mazes"]
    ]
    agents.append(({"domain": ROOMS, "kind": "bottleneck"}, {"maze": ROOMS, "options": BOTTLENECK}))
    others: list[Agent] = [
        ({"basis": basis}, {"maze": SQUARE, "options": eigen(settings["n"], turn=turn)})
        for basis, turn in TURNED.items()
    ]
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
    panels: list[plots.Panel] = []
    for name, kind in dict.fromkeys((r["domain"], r["kind"]) for r in results["diffusion"]):
        y, ours = _curve(results, name, kind), kind == "eigenoptions"
        other = {"other bases": [_basis(results, b)[: len(y)] for b in distinct(results["bases"], "basis")]}
        panels.append(
            plots.curve_panel(
                range(len(y)),
                {kind if ours else "bottleneck options": y},
                name if ours else "bottleneck options",
                xlabel="options",
                ylabel="" if panels else "diffusion time",
                log=ours,
                threads=other if ours and name == SQUARE else None,
                levels={"primitive actions": y[0]},
                ticks=None if ours else [str(m) for m in range(len(y))],
                limits=None if ours else (0, 1.1 * y.max()),
            )
        )
    return plots.figure(panels, columns=len(panels), width=1.3 * plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which options help exploration and which hurt it."""
    return [*_about_eigenoptions(results), *_about_bottlenecks(results), _about_sweeps(results)]


def _about_eigenoptions(results: Results) -> list[Claim]:
    curve = {name: _curve(results, name) for name in distinct(results["diffusion"], "domain")}
    first = {name: y[list(FIRST)] for name, y in curve.items()}
    best = {name: int(np.argmin(y)) for name, y in curve.items()}
    return [
        Claim(
            "The first options added hurt exploration.",
            "4.2",
            f"with {FIRST[0]} to {FIRST[-1]} options the diffusion time is up to "
            + ", ".join(f"{first[name].max() / y[0]:,.0f} times ({name})" for name, y in curve.items())
            + " that of primitive actions",
            verdict(*(bool((first[name] > y[0]).all()) for name, y in curve.items())),
            f"Diffusion times with {FIRST[0]} to {FIRST[-1]} options must all be above that of primitive actions, in "
            "each domain. In the I-Maze the fourth option ends the harm; in the open room the fourth does so in one "
            "basis of the repeated eigenvalue and not in others. It is a consequence of the uniform choice: see "
            '"Looking closer: a chance of an option".',
            "first-options-hurt",
            rows=grid(
                "steps",
                {name: {m or "no options": y[m] for m in range(min(9, len(y)))} for name, y in curve.items()},
                ",.0f",
            ),
        ),
        Claim(
            "When enough options are added, exploration is greatly improved when compared to a random walk "
            "using only primitive actions.",
            "4.2",
            "; ".join(f"{name}: {y[best[name]] / y[0]:.2f} of the time without" for name, y in curve.items()),
            verdict(*(bool(y.min() <= GREATLY * y[0]) for y in curve.values())),
            f"Greatly: at most {GREATLY:g} of the diffusion time of primitive actions, in each domain.",
            "enough-options-help",
            rows=[
                {
                    "domain": name,
                    "no options": f"{y[0]:,.1f}",
                    "least": f"{y[best[name]]:,.1f}",
                    "with": best[name],
                    "below primitive actions": _since(y),
                }
                for name, y in curve.items()
            ],
        ),
    ]


def _about_bottlenecks(results: Results) -> list[Claim]:
    doors = _curve(results, ROOMS, "bottleneck")
    corner = {}
    for kind in ("primitive", "bottleneck", "eigenoptions"):
        of = {(r["row"], r["column"]): r["mean_steps"] for r in where(results["reach"], kind=kind)}
        corner[kind] = float(np.mean([of[cell] for cell in ((1, 1), (1, 11), (11, 1), (11, 11))]))
    return [
        Claim(
            "The diffusion time in the 4-room domain is increased when only bottleneck options are used.",
            "4.2",
            " → ".join(f"{x:,.0f}" for x in doors) + " steps with 0 to 4 bottleneck options",
            verdict(bool(doors[-1] > doors[0])),
            "The four options of Appendix C, added room by room.",
            "bottlenecks-increase",
        ),
        Claim(
            "If the only options available are those leading the agent to doorways, it is less likely the "
            "agent will reach the outer corners.",
            "4.2",
            f"the four corners take {corner['bottleneck']:,.0f} steps on average with bottleneck options and "
            f"{corner['primitive']:,.0f} without",
            verdict(bool(corner["bottleneck"] > corner["primitive"])),
            "Expected steps from all other states to each corner of the map, by the same exact computation.",
            "corners-less-likely",
        ),
        Claim(
            "These issues are mitigated with eigenoptions.",
            "4.2",
            f"the four corners take {corner['eigenoptions']:,.0f} steps on average with the eigenoptions, "
            f"{corner['bottleneck']:,.0f} with bottleneck options",
            verdict(
                corner["eigenoptions"] < corner["bottleneck"], corner["eigenoptions"] < corner["primitive"]
            ),
            "The same expected steps with 64 eigenoptions. Two tests: fewer than with bottleneck options, and fewer "
            "than with primitive actions.",
            "mitigated",
        ),
    ]


def _about_sweeps(results: Results) -> Claim:
    rows = results["dynamic_programming"]
    return Claim(
        "In tabular domains, we can easily compute the diffusion time with dynamic programming: reward +1 per step, "
        "no discount, averaged over all goals.",
        "Appendix B",
        ", ".join(f"{r['domain']} {r['swept']:,.2f}" for r in rows) + " steps, as by linear equations",
        verdict(*(abs(r["swept"] - r["solved"]) < 1e-3 * r["solved"] for r in rows)),
        "Sweeps of policy evaluation until no value changes, against the exact solution that all other numbers use; "
        "they must agree to a thousandth.",
        "dynamic-programming",
    )


def notes(results: Results) -> list[Note]:
    """Where the harm of the first options begins and ends, and what the basis changes."""
    found: list[Note] = [
        "A likely reason for the steep rise with few options: they are taken as often as primitive actions, so a state "
        "away from where they end is reached only by several primitive actions in a row, and its time grows "
        "exponentially with the distance. The rise ends as soon as there is an option towards each end of the maze; a "
        "corridor has only two.",
    ]
    if SQUARE in distinct(results["diffusion"], "domain"):
        curves = {"as reported": _curve(results, SQUARE)}
        curves |= {name: _basis(results, name) for name in distinct(results["bases"], "basis")}
        text = (
            "Thin lines in the open room: other bases of its repeated eigenvalues, which are equally right. With four "
            "options one of them is already below primitive actions, the others ten times above."
        )
        counts = [m for m in (0, 2, 3, 4, 6, 8, 16, 32, 64) if m < len(curves["as reported"])]
        lines = {name: {m: y[m] for m in counts} for name, y in curves.items()}
        found.append((text, grid("open room, options", lines, ",.0f")))
    return found


def _basis(results: Results, name: str) -> NDArray[np.float64]:
    return column(results["bases"], "diffusion_time", basis=name)


def _curve(results: Results, domain: str, kind: str = "eigenoptions") -> NDArray[np.float64]:
    return column(results["diffusion"], "diffusion_time", domain=domain, kind=kind)


def _since(y: Any) -> str:
    """Number of options from which a curve stays below its first value."""
    above = np.flatnonzero(y >= y[0])
    return f"from {int(above[-1]) + 1} options on" if above[-1] + 1 < len(y) else "never for good"


def headline(results: Results) -> tuple[str, str]:
    """The least diffusion time of four rooms."""
    y = _curve(results, ROOMS)
    return (
        f"{y.min():,.0f} steps",
        f"between two states of the 4-room domain with eigenoptions, {y[0]:,.0f} without",
    )


EXPERIMENT = Experiment(
    "figure6",
    "Figure 6: diffusion time",
    "4.2",
    "Expected number of steps between any two states when following a random walk over actions and options, "
    "as eigenoptions are added in order of eigenvalue; and the same with options that look for doorways.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=70,
    headline=headline,
)
