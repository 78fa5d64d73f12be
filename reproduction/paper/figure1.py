"""Figure 1: the three domains."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.mdp import maze
from reproduction import Claim, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge
from reproduction.paper.jobs import MAZES
from reproduction.tables import where

SETTINGS = sizes({"mazes": MAZES})
# Row and column changes of the actions up, right, down and left.
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def run(settings: Settings, pmap: Pmap) -> Results:
    """Read the maps."""
    results: Results = {"domains": [], "cells": []}
    for name in settings["mazes"]:
        mdp = maze(name)
        coords = np.asarray(mdp.coords)
        free = set(map(tuple, coords.tolist()))
        wanted = (coords[:, None] + MOVES).tolist()
        wall = np.array([[tuple(cell) not in free for cell in row] for row in wanted])
        stays = mdp.successors == np.arange(mdp.n_states)[:, None]
        results["domains"].append(
            {
                "domain": name,
                "states": mdp.n_states,
                "actions": mdp.n_actions,
                "deterministic": mdp.successors is not None,
                "moves_into_walls": int(wall.sum()),
                "of_these_stay": int((wall & stays).sum()),
                "start": mdp.start,
                "goal": mdp.goal,
            }
        )
        results["cells"] += [
            {"domain": name, "state": s, "row": row, "column": col}
            for s, (row, col) in enumerate(coords.tolist())
        ]
    return results


def figure(results: Results) -> Any:
    """Walls grey, S the start and G the goal of Section 4.3."""
    panels = []
    for domain in results["domains"]:
        cells = [(r["row"], r["column"]) for r in where(results["cells"], domain=domain["domain"])]
        marks = {domain["start"]: "S", domain["goal"]: "G"}
        panels.append(plots.maze_panel(cells, marks, f"{domain['domain']}, {domain['states']} states"))
    return plots.figure(panels)


def claims(results: Results) -> list[Claim]:
    """Whether the domains are what Section 4 describes."""
    domains = results["domains"]
    return [
        judge("domains", all(d["deterministic"] and d["actions"] == 4 for d in domains), domains=domains),
        judge("walls", all(d["of_these_stay"] == d["moves_into_walls"] for d in domains), domains=domains),
    ]


EXPERIMENT = experiment("figure1", SETTINGS, run=run, figure=figure, claims=claims)
