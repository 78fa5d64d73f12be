"""Appendix D: options to random states against eigenoptions, in diffusion time and in learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

from eigenoptions.discovery import discover
from eigenoptions.mdp import graph, maze
from reproduction import Claim, Note, Pmap, Results, Settings, enough, limits, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import difference
from reproduction.paper.jobs import LEARNING, PRIMITIVE, agent, diffuse_all, eigen, learn_all
from reproduction.tables import (
    SHARE,
    Row,
    curves_of,
    grid,
    groups,
    learning_tables,
    mean_returns,
    series,
    where,
)

SETTINGS = sizes(
    {
        **LEARNING,
        "maze": "four-rooms",
        "episodes": 500,
        "sets": 24,
        "many_sets": 400,
        "many_runs": 10,
        "fewer": [4, 8, 16, 32],
        "options": 64,
        "seed": 2017,
        "every": 5,
    },
    maze="i-maze",
    sets=3,
    many_sets=6,
    many_runs=2,
    fewer=[4, 8],
    options=16,
    runs=4,
    episodes=20,
    block=2,
)
SHUFFLED = "eigenoptions in another order"


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time of every order of random options, and learning with the first few of each order."""
    name, sets = settings["maze"], range(settings["sets"])
    orders = [("eigenoptions", 0, eigen())]
    orders += [("random", i, _random(i)) for i in sets]
    orders += [(SHUFFLED, i, eigen(shuffle=i)) for i in sets]
    diffusing = [agent(name, how, kind=kind, set=i) for kind, i, how in orders]

    counts = [*settings["fewer"], settings["options"]]
    ways = [("primitive", 0, 0, PRIMITIVE)]
    for n in counts:
        ways += [("eigenoptions", 0, n, eigen(n)), *(("random", i, n, _random(i, n)) for i in sets)]
    learning = [agent(name, how, kind=kind, set=i, options=n) for kind, i, n, how in ways]
    tables = learning_tables(learn_all(pmap, settings, learning), settings["every"])
    tables["curves"] = [row for row in tables["curves"] if row["options"] in (0, settings["options"])]

    numbers = {"options": settings["options"], "runs_of_many": settings["many_runs"]}
    many = _many_sets(settings, pmap, counts)
    return {"diffusion": diffuse_all(pmap, diffusing), **tables, "many": many, **numbers}


def _random(seed: int, n: int | None = None) -> dict[str, Any]:
    return {"method": "random", "n": n, "rng": seed}


def _many_sets(settings: Settings, pmap: Pmap, counts: list[int]) -> list[Row]:
    """Mean return of many sets with few runs each, and the distance of the goal from the nearest end of a set."""
    mdp = maze(settings["maze"])
    away = shortest_path(graph(mdp), unweighted=True)[mdp.goal]
    sets, few = range(settings["many_sets"]), settings["many_runs"]
    # The only state where a random option stops is its goal.
    ends = [discover(mdp, None, "random", rng=i).termination.argmax(axis=1) for i in sets]
    agents = [agent(settings["maze"], _random(i, n), set=i, options=n) for i in sets for n in counts]
    rows = mean_returns(learn_all(pmap, {**settings, "runs": few, "block": few}, agents, seed=1))
    return [{**row, "steps_to_goal": int(away[ends[row["set"]][: row["options"]]].min())} for row in rows]


def figure(results: Results) -> Any:
    """Diffusion time and learning; thin lines are the sets of random options."""
    n = results["options"]
    kinds = groups(where(results["curves"], options=n), "kind")
    lines = {
        "eigenoptions": kinds["eigenoptions"],
        "primitive actions": where(results["curves"], kind="primitive"),
    }
    learning = plots.curve_panel(
        title=f"Learning with {n} options",
        xlabel="episode",
        ylabel="return",
        threads={"random options": [*series(kinds["random"], "mean", "set").values()]},
        **curves_of(lines),
    )
    diffusion = _diffusion_panel(results, "eigenoptions", "Diffusion time", "random", "random options")
    return plots.figure([diffusion, learning], width=plots.PAGE)


def closer(results: Results) -> Any:
    """Orders of eigenoptions, and learning with fewer options."""
    runs = _runs(results)
    counts = list(runs["random"])
    learning = plots.curve_panel(
        range(len(counts)),
        {"eigenoptions": [runs["eigenoptions"][m][0].mean() for m in counts]},
        "Learning with fewer options",
        xlabel="options",
        ylabel="mean return of a run",
        threads={"random options": np.transpose([_means(results, m) for m in counts])},
        levels={"primitive actions": runs["primitive"][0][0].mean()},
        ticks=[str(m) for m in counts],
        limits=SHARE,
    )
    title = "Eigenoptions in other orders"
    diffusion = _diffusion_panel(results, "in order of eigenvalue", title, SHUFFLED, "in a random order")
    return plots.figure([diffusion, learning], width=plots.PAGE)


def _diffusion_panel(results: Results, name: str, title: str, kind: str, words: str) -> plots.Panel:
    """The curve of eigenoptions, and those of all sets of another kind."""
    others = _diffusion(results, kind)
    own, most = _diffusion(results, "eigenoptions")[0], others.shape[1]
    axes: dict[str, Any] = {"xlabel": "options", "ylabel": "diffusion time", "log": True}
    axes |= {"threads": {words: others}, "levels": {"primitive actions": own[0]}}
    return plots.curve_panel(range(most), {name: own[:most]}, title, **axes)


def claims(results: Results) -> list[Claim]:
    """Whether random goals are enough."""
    return [
        *_about_diffusion(results),
        *_about_learning(results),
        *_about_fewer(results),
        *_about_failures_and_order(results),
    ]


def _about_diffusion(results: Results) -> list[Claim]:
    some, own = _diffusion(results, "random"), _diffusion(results, "eigenoptions")[0]
    bare, n = own[0], results["options"]
    many, most = len(some), some.shape[1] - 1
    half = (some[:, most // 2] >= bare).sum()
    since = [np.flatnonzero(y >= bare).max() + 1 for y in some]
    median = float(np.median(since))
    peak = np.median(some.max(axis=1)) / bare
    better = (own[n] < some[:, n]).sum()
    return [
        judge(
            "random-fail-to-reduce",
            half > many / 2,
            median >= limits.NEARLY_ALL * most,
            half=half,
            many=many,
            most=most,
            median=median,
            since=(min(since), max(since)),
            ours=np.flatnonzero(own >= bare).max() + 1,
        ),
        judge(
            "orders-of-magnitude",
            peak >= limits.SEVERAL,
            peak >= 10,
            peak=peak,
            highest=some.max() / bare,
            own=own.max() / bare,
            at=own.argmax(),
        ),
        judge(
            "more-than-random-states",
            better == many,
            better > many / 2,
            n=n,
            better=better,
            many=many,
            own=own[n],
            range=(some[:, n].min(), some[:, n].max()),
        ),
    ]


def _about_learning(results: Results) -> list[Claim]:
    n, runs = results["options"], _runs(results)
    ours, sets = runs["eigenoptions"][n][0], runs["random"][n]
    theirs, many = _means(results, n), _many(results)[n]
    better = [difference(ours, x, len(sets)).above() for x in sets.values()]
    average, small = difference(ours, many), difference(ours, theirs)
    rows = [
        {
            "sets": f"{len(of)} sets of {runs} runs",
            "eigenoptions minus mean": str(gap),
            "mean": f"{of.mean():.3f}",
            "median": f"{np.median(of):.3f}",
            "lowest": f"{of.min():.3f}",
            "above eigenoptions": f"{(of > ours.mean()).mean():.0%}",
        }
        for of, gap, runs in ((theirs, small, len(ours)), (many, average, results["runs_of_many"]))
    ]
    known = {"n": n, "many": many, "sets": sets, "rows": rows}
    return [
        judge(
            "no-run-competitive",
            enough(better, len(sets)),
            enough(better, len(sets) // 2 + 1),
            better=better.count(True),
            above=(many > ours.mean()).mean(),
            ours=ours,
            **known,
        ),
        judge("random-not-competitive", average.above(), average=average, small=small, **known),
    ]


def _about_fewer(results: Results) -> list[Claim]:
    n, many = results["options"], _many(results)
    fewer = [m for m in many if m != n]
    few = {m: _means(results, m) for m in many}
    small, wider = ({m: float(of[m].var(ddof=1) / of[n].var(ddof=1)) for m in fewer} for of in (few, many))
    level = 1 - (1 - limits.CONFIDENCE) / len(fewer)
    bound = float(fdtri(len(many[n]) - 1, len(many[n]) - 1, level))
    away = _many(results, "steps_to_goal")
    near = {m: away[m] <= limits.CLOSE for m in fewer}
    apart = {
        m: difference(many[m][at], many[m][~at], len(fewer))
        for m, at in near.items()
        if min(at.sum(), (~at).sum()) >= min(limits.MIN_SETS, len(at) // 3)
    }
    lines = {
        f"{len(of[n])}": {f"{m} options": x for m, x in ratio.items()}
        for of, ratio in ((few, small), (many, wider))
    }
    return [
        judge(
            "fewer-options-vary",
            *(True if x > bound else False if x < 1 / bound else None for x in wider.values()),
            wider=wider,
            n=n,
            sets=many[n],
            bound=bound,
            below=1 / bound,
            rows=grid("sets", lines, ".1f"),
        ),
        judge(
            "near-goal-matters",
            *(d.above() for d in apart.values()),
            apart=apart,
            rows=[
                (m, int(at.sum()), int((~at).sum()), str(apart.get(m, "too few sets")))
                for m, at in near.items()
            ],
        ),
    ]


def _about_failures_and_order(results: Results) -> list[Claim]:
    late = series(results["runs"], "late_return", "kind", "options")
    lost = {m: float((x == 0).mean()) for m, x in late["random"].items()}
    bare = (late["primitive"][0] == 0).mean()
    own, other = _diffusion(results, "eigenoptions")[0], _diffusion(results, SHUFFLED)
    median = [(m, own[m], np.median(other[:, m])) for m in (results["options"] // 4, results["options"])]
    ratios = (theirs / ours for _, ours, theirs in median)
    tests = (x >= limits.MAJOR or x <= 1 / limits.MAJOR for x in ratios)
    return [
        judge("never-learns", any(lost.values()), lost=lost, bare=bare),
        judge("order-matters", *tests, median=median, other=other),
    ]


def notes(results: Results) -> list[Note]:
    """What distinguishes good sets from bad ones."""
    n = results["options"]
    mean, away = _many(results)[n], _many(results, "steps_to_goal")[n]
    by = {f"{d:.0f} steps from the goal" if d else "on the goal": mean[away == d] for d in np.unique(away)}
    rows = [(place, len(of), of.mean(), of.min()) for place, of in by.items()]
    return [note("nearest-end", rows, n=n, ours=_runs(results)["eigenoptions"][n][0].mean())]


def _diffusion(results: Results, kind: str) -> NDArray[np.float64]:
    """``(sets, options + 1)``."""
    return np.stack([*series(results["diffusion"], "diffusion_time", "set", kind=kind).values()])


def _runs(results: Results) -> dict[str, dict[int, dict[int, Any]]]:
    """``(runs,)`` mean returns by kind, number of options and set."""
    return series(results["runs"], "mean_return", "kind", "options", "set")


def _means(results: Results, n: int) -> NDArray[np.float64]:
    """``(sets,)`` mean return of each set of random options."""
    return np.array([x.mean() for x in _runs(results)["random"][n].values()])


def _many(results: Results, name: str = "mean_return") -> dict[int, Any]:
    """``(sets,)`` mean return of each of the many sets, or its distance to the goal, by number of options."""
    return series(results["many"], name, "options")


EXPERIMENT = experiment(
    "randoms", SETTINGS, run=run, figure=figure, claims=claims, notes=notes, closer=closer
)
