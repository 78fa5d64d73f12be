"""Appendix C: the four options that lead to the doorways of the 4-room domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from eigenoptions import plots
from eigenoptions.discovery import discover
from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.mdp import graph, maze
from eigenoptions.options.solver import lengths

SETTINGS: dict[str, Settings] = {name: {"maze": "four-rooms"} for name in ("paper", "quick")}


def run(settings: Settings, pmap: Pmap) -> Results:
    """Bottleneck options; for each of their states the steps they take, and the distance to the closest doorway."""
    mdp = maze(settings["maze"])
    assert mdp.coords is not None
    options = discover(mdp, method="bottleneck")
    room, doors = rooms(mdp)
    away = shortest_path(graph(mdp), unweighted=True)[:, doors].min(axis=1)
    rows = [
        {
            "option": o.label,
            "row": int(mdp.coords[s, 0]),
            "column": int(mdp.coords[s, 1]),
            "room": int(room[s]) + 1,
            "steps": int(steps[s]),
            "closest_doorway": int(away[s]),
        }
        for o in options
        for steps in [lengths(mdp, o.policy)]
        for s in np.flatnonzero(o.initiation)
    ]
    found = {"coords": options.coords, "policy": options.policy, "labels": list(options.labels)}
    sizes = [{"room": i + 1, "states": int((room == i).sum())} for i in range(room.max() + 1)]
    return {**found, "starts": rows, "rooms": sizes}


def figure(results: Results) -> Any:
    """Arrows in the room of each option; red is where it may not start."""
    return plots.figure(
        [
            plots.policy_panel(results["coords"], policy, label)
            for policy, label in zip(results["policy"], results["labels"], strict=True)
        ]
    )


def claims(results: Results) -> list[Claim]:
    """Whether rooms and doorways are found as Appendix C draws them."""
    rows = results["starts"]
    many = len(results["labels"])
    within = {label: {r["room"] for r in rows if r["option"] == label} for label in results["labels"]}
    size = {r["room"]: r["states"] for r in results["rooms"]}
    whole = all(
        len(at) == 1 and sum(r["option"] == label for r in rows) == size[min(at)]
        for label, at in within.items()
    )
    detours = sum(r["steps"] != r["closest_doorway"] for r in rows)
    return [
        Claim(
            "Each option is defined in a room and it moves the agent toward the closest doorway.",
            "Appendix C",
            f"{many} options for {len(size)} rooms; {len(rows) - detours} of {len(rows)} states take the "
            "shortest way to the closest doorway",
            verdict(many == 4 and whole, detours == 0),
            "Rooms and doorways are found automatically (states whose neighbours do not meet again nearby); "
            "an option must be available in all of one room and nowhere else.",
        )
    ]


EXPERIMENT = Experiment(
    "bottlenecks",
    "Appendix C: options leading to doorways",
    "Appendix C",
    "The four options used as a baseline, each defined in a single room and leading to the closest doorway.",
    SETTINGS,
    run,
    figure,
    claims,
    order=90,
)
