"""Appendix C: the four options that lead to the doorways of the 4-room domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from eigenoptions.discovery import discover
from eigenoptions.discovery.methods.bottleneck import betweenness_of, rooms
from eigenoptions.evaluation import diffusion_time
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import lengths
from reproduction import Claim, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge
from reproduction.limits import NEAR
from reproduction.tables import distinct, where

SETTINGS = sizes({"maze": "four-rooms"})


def run(settings: Settings, pmap: Pmap) -> Results:
    """Bottleneck options; for each of their states the steps they take, and the distance to the closest doorway."""
    mdp = maze(settings["maze"])
    cells = [{"row": row, "column": col} for row, col in np.asarray(mdp.coords).tolist()]
    options = discover(mdp, method="bottleneck")
    room, doors = rooms(mdp)
    away = shortest_path(graph(mdp), unweighted=True)[:, doors].min(axis=1)
    rows = [
        {
            "option": o.label,
            **cells[s],
            "room": int(room[s]) + 1,
            "steps": int(steps[s]),
            "closest_doorway": int(away[s]),
        }
        for o in options
        for steps in [lengths(mdp, o.policy)]
        for s in np.flatnonzero(o.initiation)
    ]
    found = {"coords": options.coords, "policy": options.policy, "labels": list(options.labels)}
    states = [{"room": i + 1, "states": int((room == i).sum())} for i in range(room.max() + 1)]
    # Share of the pairs of other states whose shortest path leads through each state.
    share = betweenness_of(graph(mdp)) / ((mdp.n_states - 1) * (mdp.n_states - 2))
    busy = [
        {**cell, "betweenness": float(b), "steps_to_doorway": int(d)}
        for cell, b, d in zip(cells, share, away, strict=True)
    ]
    planning = [
        {"choices": name, **_sweeps(mdp, some), "diffusion_time": diffusion_time(mdp, some)}
        for name, some in (("primitive actions", None), ("bottleneck options", options))
    ]
    return {**found, "starts": rows, "rooms": states, "betweenness": busy, "planning": planning}


def _sweeps(mdp: MDP, options: OptionSet | None) -> dict[str, float]:
    """Sweeps of value iteration until a state has a plan (a value above 0), and until its value is exact: means.

    Over all states and goals; the reward is 1 on reaching the goal, the discount 0.9. An option that touches the
    goal on its way ends there.
    """
    S, gamma, successors = mdp.n_states, 0.9, np.asarray(mdp.successors)
    d = shortest_path(graph(mdp), unweighted=True)
    best = np.where(d > 0, gamma ** np.maximum(d - 1, 0), 0.0)
    moves = [(s, [int(t)]) for s in range(S) for t in successors[s]]
    for policy in options.policy if options is not None else ():
        for s in np.flatnonzero(policy >= 0):
            way, at = [], int(s)
            while policy[at] >= 0:
                at = int(successors[at, policy[at]])
                way.append(at)
            moves.append((int(s), way))
    # reward[m, g]: discounted reward of move m if the goal is g; rest[m, g]: discount of what follows, 0 at the goal.
    reward, rest = np.zeros((len(moves), S)), np.zeros((len(moves), S))
    for m, (_, way) in enumerate(moves):
        rest[m] = gamma ** len(way)
        for j, t in reversed(list(enumerate(way))):
            reward[m, t], rest[m, t] = gamma**j, 0.0
    start, end = np.array([s for s, _ in moves]), np.array([way[-1] for _, way in moves])
    v, planned, exact = np.zeros((S, S)), np.zeros((S, S)), np.zeros((S, S))
    for _ in range(int(d.max())):
        planned += (v == 0) & (d > 0)
        exact += (v < best - 1e-12) & (d > 0)
        new = np.zeros((S, S))
        np.maximum.at(new, start, reward + rest * v[end])
        np.fill_diagonal(new, 0.0)
        v = new
    pairs = S * (S - 1)
    return {"sweeps_to_a_plan": float(planned.sum() / pairs), "sweeps_to_exact": float(exact.sum() / pairs)}


def figure(results: Results) -> Any:
    """Arrows in the room of each option; red is where it may not start."""
    return plots.figure(
        [
            plots.policy_panel(results["coords"], policy, label)
            for policy, label in zip(results["policy"], results["labels"], strict=True)
        ]
    )


def claims(results: Results) -> list[Claim]:
    """Whether rooms and doorways are found as Appendix C draws them, and what their options are worth."""
    rows, labels = results["starts"], results["labels"]
    within = {label: distinct(rows, "room", option=label) for label in labels}
    size = {r["room"]: r["states"] for r in results["rooms"]}
    whole = all(
        len(at) == 1 and len(where(rows, option=label)) == size[min(at)] for label, at in within.items()
    )
    direct = sum(r["steps"] == r["closest_doorway"] for r in rows)
    busy = sorted(results["betweenness"], key=lambda row: -row["betweenness"])
    doors = sum(row["steps_to_doorway"] == 0 for row in busy)
    first = [row["steps_to_doorway"] for row in busy[:doors]]
    bare, ours = results["planning"]
    return [
        judge(
            "closest-doorway",
            len(labels) == 4 and whole,
            direct == len(rows),
            labels=labels,
            rooms=size,
            direct=direct,
            starts=rows,
        ),
        judge(
            "doorways-most-visited",
            max(first) == 0,
            max(first) <= NEAR,
            doors=doors,
            at=first.count(0),
            beside=sum(0 < x <= NEAR for x in first),
            rows=busy[: doors + 2],
        ),
        judge(
            "planning-not-exploration",
            ours["sweeps_to_a_plan"] < bare["sweeps_to_a_plan"],
            ours["diffusion_time"] > bare["diffusion_time"],
            ours=ours,
            bare=bare,
            rows=results["planning"],
        ),
    ]


EXPERIMENT = experiment("bottlenecks", SETTINGS, run=run, figure=figure, claims=claims)
