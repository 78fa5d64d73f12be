"""Section 4.2: what a random walk over actions and options does, beyond its diffusion time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

from eigenoptions import plots
from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.evaluation import diffusion_time
from eigenoptions.experiments import Claim, Experiment, Note, Pmap, Results, Settings, sizes, verdict
from eigenoptions.experiments.limits import STRONG, UNLIKELY, difference
from eigenoptions.experiments.paper.jobs import BOTTLENECK, MAZES, Job, counts_for, eigen, skills
from eigenoptions.experiments.tables import Row, column, distinct, grid, where
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet

SETTINGS = sizes(
    {
        "mazes": MAZES,
        "options": [0, 2, 4, 8, 16, 32, 64],
        "walkers": 400,
        "steps": 6000,
        "short": 100,
        "seed": 2017,
    },
    mazes=["i-maze", "four-rooms"],
    options=[0, 2, 4, 16],
    walkers=30,
    steps=1500,
)
ROOMS = "four-rooms"
DOORS = "bottleneck options"
# Number of eigenoptions that counts as few.
FEW = 4
# Cells at least this far from a doorway are inside a room.
INSIDE = 3


def run(settings: Settings, pmap: Pmap) -> Results:
    """Random walks from random states, with each number of eigenoptions, and with bottleneck options in four rooms."""
    ways = []
    for name in settings["mazes"]:
        counts = counts_for(name, settings["options"])
        ways += [(name, "eigenoptions" if n else "primitive", n, eigen(n)) for n in counts]
        if name == ROOMS:
            ways.append((name, DOORS, 4, BOTTLENECK))
    size = {key: settings[key] for key in ("walkers", "steps", "short")}
    jobs = [
        {"maze": name, "options": how, **size, "seed": [settings["seed"], i]}
        for i, (name, _, _, how) in enumerate(ways)
    ]
    keys = [{"domain": name, "kind": kind, "options": n} for name, kind, n, _ in ways]
    found = list(zip(keys, pmap(measure, jobs), strict=True))
    walks = [
        {**key, "walker": i, "farthest": float(f), "steps_to_all": float(c)}
        for key, of in found
        for i, (f, c) in enumerate(zip(of["farthest"], of["covered"], strict=True))
    ]
    times = [
        {**key, "state": s, "share": float(x)}
        for key, of in found
        if key["domain"] == ROOMS
        for s, x in enumerate(of["time"])
    ]
    sets = [{**key, **of["row"]} for key, of in found]
    coords = np.array(maze(ROOMS).coords)
    return {"sets": sets, "walks": walks, "time": times, "coords": coords, "short": settings["short"]}


def measure(job: Job) -> dict[str, Any]:
    """What walkers do: time per state, distances, steps until all states are seen, changes of room."""
    mdp = maze(job["maze"])
    options = skills(mdp, job["options"])
    path = walk(mdp, options, job["walkers"], job["steps"], np.random.default_rng(job["seed"]))
    S, walkers = mdp.n_states, job["walkers"]
    away = shortest_path(graph(mdp), unweighted=True)
    seen = np.full((walkers, S), np.inf)
    for t in range(len(path) - 1, -1, -1):
        seen[np.arange(walkers), path[t]] = t
    time = np.bincount(path.ravel(), minlength=S) / path.size
    room, doors = rooms(mdp)
    row = {
        "diffusion_time": diffusion_time(mdp, options),
        "effective_states": float(np.exp(-(time[time > 0] * np.log(time[time > 0])).sum()) / S),
        "seen_in_1000": float((seen <= 1000).mean()),
        "room_changes_per_1000": float("nan"),
        "time_inside": float("nan"),
    }
    if len(doors):
        last, changes = np.full(walkers, -1), 0
        for here in room[path]:
            changes += int(((here >= 0) & (last >= 0) & (here != last)).sum())
            last = np.where(here >= 0, here, last)
        row["room_changes_per_1000"] = 1000 * changes / (walkers * (len(path) - 1))
        row["time_inside"] = float(time[away[:, doors].min(axis=1) >= INSIDE].sum())
    farthest = away[path[0], path[: job["short"] + 1]].max(axis=0)
    return {"row": row, "time": time, "farthest": farthest, "covered": seen.max(axis=1)}


def walk(
    mdp: MDP, options: OptionSet | None, walkers: int, steps: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``(steps + 1, walkers)`` states of uniformly random walks over actions and options, from random states."""
    S, A, successors = mdp.n_states, mdp.n_actions, np.asarray(mdp.successors)
    policy = np.empty((0, S), dtype=int) if options is None else options.policy.astype(int)
    many = A + (policy >= 0).sum(axis=0)
    # offered[s]: the options that may start in s, those that may not at the end.
    offered = np.argsort(policy < 0, axis=0, kind="stable").T
    path = np.empty((steps + 1, walkers), dtype=np.int64)
    path[0] = rng.integers(S, size=walkers)
    option = np.full(walkers, -1)
    for t in range(steps):
        s = path[t]
        a = np.where(option >= 0, policy[option, s], -1) if len(policy) else np.full(walkers, -1)
        choice = (rng.random(walkers) * many[s]).astype(int)
        new = a < 0
        option = np.where(new, -1, option)
        primitive, chosen = new & (choice < A), new & (choice >= A)
        a = np.where(primitive, choice, a)
        if chosen.any():
            option[chosen] = offered[s[chosen], choice[chosen] - A]
            a[chosen] = policy[option[chosen], s[chosen]]
        path[t + 1] = successors[s, a]
    return path


def figure(results: Results) -> Any:
    """Where walkers spend their time in four rooms."""
    most = max(distinct(results["sets"], "options", domain=ROOMS))
    shown = [("primitive", 0), (DOORS, 4), ("eigenoptions", FEW), ("eigenoptions", most)]
    panels = []
    for kind, n in shown:
        share = column(results["time"], "share", kind=kind, options=n)
        values = np.log10(np.maximum(share * len(share), 1e-2))
        label = "time, powers of 10 of the mean" if n == most else None
        axes: dict[str, Any] = {"signed": False, "limits": (-2.0, 1.0), "label": label}
        panels.append(plots.value_panel(results["coords"], values, _words(kind, n), **axes))
    return plots.figure(panels, columns=len(panels), width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """What Section 4.2 says about random walks."""
    return [*_about_options(results), *_about_time(results), *_about_doorways(results)]


def _about_options(results: Results) -> list[Claim]:
    domains = distinct(results["sets"], "domain")
    most = {name: max(distinct(results["sets"], "options", domain=name)) for name in domains}
    walks = [row for row in results["walks"] if row["kind"] != DOORS]
    far = {}
    for name, n in most.items():
        ours, bare = (column(walks, "farthest", domain=name, options=m) for m in (n, 0))
        far[name] = difference(ours, bare, len(domains))
    rank = {name: _rank(where(results["sets"], domain=name)) for name in domains}
    return [
        Claim(
            "Agents performing a random walk, when equipped with options, are expected to cover larger "
            "distances in the state space.",
            "4.2",
            f"farthest from the start in {results['short']} steps, more than with primitive actions: "
            + "; ".join(f"{name} {d.mean:+.1f} steps" for name, d in far.items()),
            verdict(*(d.above(margin=1.0) for d in far.values())),
            "Mean over random starts with the largest number of eigenoptions tried; one step is what matters.",
            "larger-distances",
            rows=[
                {"domain": name, "options": most[name], "difference in steps": str(d)}
                for name, d in far.items()
            ],
        ),
        Claim(
            "A small expected number of steps implies that it is more likely that the agent will reach all "
            "states with a random walk.",
            "4.2",
            "rank correlation of diffusion time and the share of states seen in 1,000 steps: "
            + ", ".join(f"{name} {r:+.2f}" for name, r in rank.items()),
            verdict(*(r <= -STRONG for r in rank.values())),
            f"Over numbers of options; at most -{STRONG:g} in each domain.",
            "diffusion-implies-coverage",
        ),
    ]


def _about_time(results: Results) -> list[Claim]:
    even: dict[str, dict[int, float]] = {}
    for row in results["sets"]:
        if row["kind"] != DOORS:
            even.setdefault(row["domain"], {})[row["options"]] = row["effective_states"]
    return [
        Claim(
            "When exploring, a uniformly random policy over options and primitive actions skews where "
            "agents spend their time.",
            "4.2",
            f"effective share of the states with {FEW} options: "
            + ", ".join(f"{name} {of[FEW]:.0%}" for name, of in even.items()),
            verdict(*(of[FEW] < of[0] for of in even.values())),
            "The effective share is 100% if all states are visited equally often (the exponential of the entropy "
            "over the "
            "number of states); with few options it must be below that of primitive actions.",
            "skewed-time",
            rows=grid("effective share of the states", even, ".0%"),
        ),
        Claim(
            "This biasing is often observed when fewer options are available.",
            "4.2",
            "; ".join(
                f"{name}: {of[FEW]:.0%} with {FEW}, {of[max(of)]:.0%} with {max(of)}"
                for name, of in even.items()
            ),
            verdict(*(of[FEW] < of[max(of)] for of in even.values())),
            "The effective share of the states must be lower with few options than with many.",
            "bias-with-few",
        ),
    ]


def _about_doorways(results: Results) -> list[Claim]:
    (bare,) = where(results["sets"], domain=ROOMS, kind="primitive")
    (doors,) = where(results["sets"], domain=ROOMS, kind=DOORS)
    steps = {k: column(results["walks"], "steps_to_all", domain=ROOMS, kind=k) for k in ("primitive", DOORS)}
    half = float(np.median(steps["primitive"]))
    done = float((steps[DOORS] <= half).mean())
    return [
        Claim(
            "With options that lead to doorways it is very likely agents will be always moving between "
            "rooms, never really exploring inside a room.",
            "4.2",
            f"{doors['room_changes_per_1000']:.0f} changes of room per 1,000 steps instead of "
            f"{bare['room_changes_per_1000']:.0f}; {doors['time_inside']:.0%} of the time inside rooms instead of "
            f"{bare['time_inside']:.0%}",
            verdict(
                doors["room_changes_per_1000"] > bare["room_changes_per_1000"],
                doors["time_inside"] < bare["time_inside"],
            ),
            f"Two tests against primitive actions: more changes of room, and less time at least {INSIDE} "
            "steps from every doorway.",
            "between-rooms",
        ),
        Claim(
            "It is very unlikely for an agent to explore the whole environment if it keeps going back and "
            "forth between similar high-level goals.",
            "4.2",
            f"in {half:,.0f} steps, in which half of the walks with primitive actions see every state, "
            f"{done:.0%} do with bottleneck options"
            if np.isfinite(half)
            else "the walks are too short: fewer than half of those with primitive actions see every state",
            verdict(done <= UNLIKELY if np.isfinite(half) else None),
            f"Random walks in the 4-room domain; very unlikely is at most {UNLIKELY:.0%}.",
            "whole-environment",
        ),
    ]


def notes(results: Results) -> list[Note]:
    """The numbers behind the maps."""
    rows = [
        {
            "4-room domain": _words(r["kind"], r["options"]),
            "diffusion time": f"{r['diffusion_time']:,.0f}",
            "seen in 1,000 steps": f"{r['seen_in_1000']:.0%}",
            "effective share": f"{r['effective_states']:.0%}",
            "room changes per 1,000": f"{r['room_changes_per_1000']:.0f}",
            "time inside rooms": f"{r['time_inside']:.0%}",
        }
        for r in where(results["sets"], domain=ROOMS)
    ]
    return [("", rows)]


def _words(kind: str, n: int) -> str:
    return f"{n} {kind}" if n else "primitive actions"


def _rank(rows: list[Row]) -> float:
    of = [(r["diffusion_time"], r["seen_in_1000"]) for r in rows if r["kind"] != DOORS]
    return float(spearmanr(*zip(*of, strict=True)).statistic)


EXPERIMENT = Experiment(
    "walks",
    "Section 4.2: random walks with options",
    "4.2",
    "The text says how options change a random walk, without a figure. This one shows where walkers spend their time.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=75,
)
