"""Figure 6: diffusion time as options are added, in the three domains, and with bottleneck options only."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.experiments.limits import FIRST, GREATLY
from eigenoptions.experiments.paper.jobs import PRIMITIVE, diffuse, eigen, reach
from eigenoptions.experiments.tables import column, diffusion_rows, distinct, where
from eigenoptions.mdp import maze

SETTINGS: dict[str, Settings] = {
    "paper": {"mazes": ["open-room", "i-maze", "four-rooms"], "n": None, "gamma": 0.9},
    "quick": {"mazes": ["i-maze", "four-rooms"], "n": 12, "gamma": 0.9},
}
ROOMS = "four-rooms"
BOTTLENECK = {"method": "bottleneck"}


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time with 0, 1, 2, ... options, and mean steps to reach each state of four rooms."""
    jobs = [
        {"maze": name, "options": eigen(settings["n"], gamma=settings["gamma"])} for name in settings["mazes"]
    ]
    curves = pmap(diffuse, [*jobs, {"maze": ROOMS, "options": BOTTLENECK}])
    keys = [{"domain": name, "kind": "eigenoptions"} for name in settings["mazes"]]
    rows = diffusion_rows([*keys, {"domain": ROOMS, "kind": "bottleneck"}], curves)
    ways = {"primitive": PRIMITIVE, "bottleneck": BOTTLENECK}
    reached = pmap(reach, [{"maze": ROOMS, "options": options} for options in ways.values()])
    coords = maze(ROOMS).coords
    assert coords is not None
    steps = [
        {"kind": kind, "row": int(row), "column": int(col), "mean_steps": float(h)}
        for kind, hard in zip(ways, reached, strict=True)
        for (row, col), h in zip(coords, hard, strict=True)
    ]
    return {"diffusion": rows, "reach": steps}


def figure(results: Results) -> Any:
    """Lines on a logarithmic axis, with the diffusion time of primitive actions."""
    panels: list[plots.Panel] = []
    for name, kind in _curves(results):
        rows = where(results["diffusion"], domain=name, kind=kind)
        y = column(rows, "diffusion_time")
        ours = kind == "eigenoptions"
        panels.append(
            plots.curve_panel(
                column(rows, "options"),
                {kind if ours else "bottleneck options": y},
                name if ours else f"{name}, bottleneck options",
                xlabel="options",
                ylabel="" if len(panels) % 2 else "diffusion time",
                log=ours,
                levels={"primitive actions": y[0]},
                ticks=None if ours else [str(m) for m in range(len(y))],
                limits=None if ours else (0, 1.1 * y.max()),
            )
        )
    return plots.figure(panels, columns=2, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which options help exploration and which hurt it."""
    curve = {name: _curve(results, name) for name in distinct(results["diffusion"], "domain")}
    first = {name: y[list(FIRST)] for name, y in curve.items()}
    best = {name: int(np.argmin(y)) for name, y in curve.items()}
    doors = _curve(results, ROOMS, "bottleneck")
    corner = {
        kind: np.mean([_steps(results, kind, cell) for cell in ((1, 1), (1, 11), (11, 1), (11, 11))])
        for kind in ("primitive", "bottleneck")
    }
    return [
        Claim(
            "The first options added hurt exploration.",
            "4.2",
            "; ".join(
                f"{name}: {y[0]:,.0f} steps without options, "
                + ", ".join(f"{x:,.0f} with {m}" for m, x in zip(FIRST, first[name], strict=True))
                for name, y in curve.items()
            ),
            verdict(*(bool((first[name] > y[0]).all()) for name, y in curve.items())),
            f"Diffusion time with {FIRST[0]} and with {FIRST[1]} options must both be above that of "
            "primitive actions, in each domain. The worst are "
            + ", ".join(
                f"{y.max():,.0f} steps with {int(np.argmax(y))} options ({name})" for name, y in curve.items()
            )
            + ".",
        ),
        Claim(
            "When enough options are added, exploration is greatly improved when compared to a random walk "
            "using only primitive actions.",
            "4.2",
            "; ".join(
                f"{name}: {y[best[name]]:,.1f} steps with {best[name]} options, {y[best[name]] / y[0]:.2f} "
                "of the time without"
                for name, y in curve.items()
            ),
            verdict(*(bool(y.min() <= GREATLY * y[0]) for y in curve.values())),
            f"Greatly: at most {GREATLY:g} of the diffusion time of primitive actions, in each domain. It is "
            "lower " + "; ".join(f"in {name} {_since(y)}" for name, y in curve.items()) + ".",
        ),
        Claim(
            "The diffusion time in the 4-room domain is increased when only bottleneck options are used.",
            "4.2",
            " → ".join(f"{x:,.0f}" for x in doors) + " steps with 0 to 4 bottleneck options",
            verdict(bool(doors[-1] > doors[0])),
            "The four options of Appendix C, added room by room.",
        ),
        Claim(
            "If the only options available are those leading the agent to doorways, it is less likely the "
            "agent will reach the outer corners.",
            "4.2",
            f"the four corners take {corner['bottleneck']:,.0f} steps on average with bottleneck options and "
            f"{corner['primitive']:,.0f} without",
            verdict(bool(corner["bottleneck"] > corner["primitive"])),
            "Expected steps from all other states to each corner of the map, by the same exact computation.",
        ),
    ]


def notes(results: Results) -> list[str]:
    """Where the harm of the first options begins and ends."""
    curves = [
        f"{name}: " + ", ".join(f"{x:,.0f}" for x in _curve(results, name)[:9])
        for name in distinct(results["diffusion"], "domain")
    ]
    return [
        f"Diffusion time with 0 to 8 options, in steps. {'; '.join(curves)}. A likely reason for the steep "
        "rise: options are taken as often as primitive actions, so a state away from where they end is "
        "reached only by several primitive actions in a row, and its time grows exponentially with the "
        "distance. The rise ends as soon as there is an option towards each end of the maze; a corridor has "
        "only two.",
        'The first two options belong to the eigenvector of eigenvalue zero; "Looking closer: other '
        'readings" shows the curves without it, with other Laplacians, and how much they depend on ties '
        "between equally good actions.",
    ]


def _curves(results: Results) -> list[tuple[str, str]]:
    return list(dict.fromkeys((r["domain"], r["kind"]) for r in results["diffusion"]))


def _curve(results: Results, domain: str, kind: str = "eigenoptions") -> Any:
    return column(where(results["diffusion"], domain=domain, kind=kind), "diffusion_time")


def _since(y: Any) -> str:
    """Number of options from which a curve stays below its first value."""
    above = np.flatnonzero(y >= y[0])
    return (
        f"with {int(above[-1]) + 1} options or more" if above[-1] + 1 < len(y) else "at no number to the end"
    )


def _steps(results: Results, kind: str, cell: tuple[int, int]) -> float:
    (row,) = where(results["reach"], kind=kind, row=cell[0], column=cell[1])
    return float(row["mean_steps"])


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
)
