"""Section 4.2: what a random walk over actions and options does, beyond its diffusion time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

from eigenoptions.discovery.methods.bottleneck import rooms
from eigenoptions.evaluation import diffusion_time
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet
from reproduction import Claim, Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import INSIDE, STRONG, UNLIKELY, difference
from reproduction.paper.jobs import BOTTLENECK, MAZES, Job, agent, counts_for, eigen, skills
from reproduction.tables import column, distinct, grid, groups, series, where

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


def run(settings: Settings, pmap: Pmap) -> Results:
    """Random walks from random states, with each number of eigenoptions, and with bottleneck options in four rooms."""
    ways = []
    for name in settings["mazes"]:
        for n in counts_for(name, settings["options"]):
            kind = "eigenoptions" if n else "primitive"
            ways.append(agent(name, eigen(n), domain=name, kind=kind, options=n))
        if name == ROOMS:
            ways.append(agent(name, BOTTLENECK, domain=name, kind=DOORS, options=4))
    size = {key: settings[key] for key in ("walkers", "steps", "short")}
    jobs = [{**job, **size, "seed": [settings["seed"], i]} for i, (_, job) in enumerate(ways)]
    found = [(key, of) for (key, _), of in zip(ways, pmap(measure, jobs), strict=True)]
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
    changes = inside = np.nan
    if len(doors):
        last, changes = np.full(walkers, -1), 0
        for here in room[path]:
            changes += int(((here >= 0) & (last >= 0) & (here != last)).sum())
            last = np.where(here >= 0, here, last)
        inside = float(time[away[:, doors].min(axis=1) >= INSIDE].sum())
    row = {
        "diffusion_time": diffusion_time(mdp, options),
        "effective_states": float(np.exp(-(time[time > 0] * np.log(time[time > 0])).sum()) / S),
        "seen_in_1000": float((seen <= 1000).mean()),
        "room_changes_per_1000": 1000 * changes / (walkers * (len(path) - 1)),
        "time_inside": inside,
    }
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
    return [*_about_options(results), *_about_doorways(results)]


def _about_options(results: Results) -> list[Claim]:
    sets, walks = ([r for r in results[name] if r["kind"] != DOORS] for name in ("sets", "walks"))
    domains, farthest = groups(sets, "domain"), series(walks, "farthest", "domain", "options")
    far, rank, even = {}, {}, {}
    for name, own in domains.items():
        even[name] = {r["options"]: r["effective_states"] for r in own}
        far[name] = difference(farthest[name][max(even[name])], farthest[name][0], len(domains))
        rank[name] = float(spearmanr(column(own, "diffusion_time"), column(own, "seen_in_1000")).statistic)
    shares = [
        {"domain": name, "few": of[FEW], "none": of[0], "many": of[max(of)], "most": max(of), "FEW": FEW}
        for name, of in even.items()
    ]
    return [
        judge(
            "larger-distances",
            *(d.above(margin=1.0) for d in far.values()),
            short=results["short"],
            far=far,
            rows=[(name, max(even[name]), d) for name, d in far.items()],
        ),
        judge("diffusion-implies-coverage", *(r <= -STRONG for r in rank.values()), rank=rank),
        judge(
            "skewed-time",
            *(share["few"] < share["none"] for share in shares),
            even=shares,
            FEW=FEW,
            rows=grid("effective share of the states", even, ".0%"),
        ),
        judge("bias-with-few", *(share["few"] < share["many"] for share in shares), even=shares),
    ]


def _about_doorways(results: Results) -> list[Claim]:
    (bare,) = where(results["sets"], domain=ROOMS, kind="primitive")
    (doors,) = where(results["sets"], domain=ROOMS, kind=DOORS)
    steps = series(results["walks"], "steps_to_all", "kind", domain=ROOMS)
    half = float(np.median(steps["primitive"]))
    done = float((steps[DOORS] <= half).mean())
    # Empty where the walks are too short to say.
    seen = [(half, done)] if np.isfinite(half) else []
    return [
        judge(
            "between-rooms",
            doors["room_changes_per_1000"] > bare["room_changes_per_1000"],
            doors["time_inside"] < bare["time_inside"],
            doors=doors,
            bare=bare,
        ),
        judge("whole-environment", done <= UNLIKELY if seen else None, seen=seen),
    ]


def notes(results: Results) -> list[Note]:
    """The numbers behind the maps."""
    rows = where(results["sets"], domain=ROOMS)
    return [note("walks", [{**r, "words": _words(r["kind"], r["options"])} for r in rows])]


def _words(kind: str, n: int) -> str:
    return f"{n} {kind}" if n else "primitive actions"


EXPERIMENT = experiment("walks", SETTINGS, run=run, figure=figure, claims=claims, notes=notes)
