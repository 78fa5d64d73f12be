"""Looking closer: diffusion time if options are chosen with a given chance instead of uniformly."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.evaluation import best_option_chance, diffusion_time
from eigenoptions.mdp import maze
from reproduction import Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, note
from reproduction.paper.jobs import MAZES, Job, eigenoptions
from reproduction.tables import Row, curve_row, distinct, series

CHANCES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
SETTINGS = sizes(
    {"mazes": MAZES, "options": [2, 4, 8, 16, 32, 64], "chances": CHANCES},
    mazes=["i-maze"],
    options=[2, 4],
    chances=[0.05, 0.4],
)


def run(settings: Settings, pmap: Pmap) -> Results:
    """Exact diffusion times, and the best chance, for each number of eigenoptions (eigenvalue zero left out)."""
    jobs = [
        {"maze": name, "n": n, "chances": settings["chances"]}
        for name in settings["mazes"]
        for n in settings["options"]
        if n <= 2 * (maze(name).n_states - 1)
    ]
    found = pmap(measure, jobs)
    return {"chances": [row for rows, _ in found for row in rows], "best": [row for _, row in found]}


def measure(job: Job) -> tuple[list[Row], Row]:
    """Diffusion time by chance, and at the best one, with n eigenoptions."""
    mdp = maze(job["maze"])
    options = eigenoptions(mdp, job["n"], skip_zero=True)
    key = {"domain": job["maze"], "options": job["n"]}
    rows = [
        {**key, "chance": c, "diffusion_time": float(diffusion_time(mdp, options, option_chance=c))}
        for c in job["chances"]
    ]
    best = best_option_chance(mdp, options)
    row = {
        "primitive": float(best.without),
        "uniform": float(best.uniform),
        "best_chance": float(best.chance),
        "best_time": float(best.diffusion_time),
    }
    return rows, {**key, **row}


def figure(results: Results) -> Any:
    """Diffusion time against the chance, a line per number of options."""
    panels = {}
    chances = distinct(results["chances"], "chance")
    for name, times in series(results["chances"], "diffusion_time", "domain", "options").items():
        level = distinct(results["best"], "primitive", domain=name)[0]
        lines = {f"{n} options": y for n, y in times.items()}
        high = max(float(np.min(y)) for y in lines.values()) + 3 * level
        panels[name] = {
            "x": range(len(chances)),
            "series": lines,
            "levels": {"primitive actions": level},
            "ticks": [f"{c:g}".lstrip("0") for c in chances],
            "limits": (0.0, min(high, 2.5 * level)),
        }
    row = curve_row(panels, "diffusion time", legend=False, xlabel="chance of an option")
    return plots.figure(row, width=plots.PAGE, legend=True)


def notes(results: Results) -> list[Note]:
    """Uniform choice against the best chance."""
    return [note("chances", results["best"])]


EXPERIMENT = experiment("chances", SETTINGS, run=run, figure=figure, notes=notes)
