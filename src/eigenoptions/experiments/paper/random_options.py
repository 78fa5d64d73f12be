"""Appendix D: options to random states against eigenoptions, in diffusion time and in learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

from eigenoptions import plots
from eigenoptions.discovery import discover
from eigenoptions.experiments import Claim, Experiment, Note, Pmap, Results, Settings, enough, sizes, verdict
from eigenoptions.experiments.limits import CONFIDENCE, MAJOR, NEARLY_ALL, SEVERAL, difference
from eigenoptions.experiments.paper.jobs import LEARNING, PRIMITIVE, diffuse_all, eigen, learn_all
from eigenoptions.experiments.tables import (
    SHARE,
    Row,
    column,
    curves_of,
    distinct,
    grid,
    learning_tables,
    mean_returns,
    where,
)
from eigenoptions.mdp import graph, maze

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
# Fewest sets on one side of a comparison that can decide.
MIN_SETS = 10
# Steps from the goal up to which the end of an option counts as near it.
CLOSE = 2
SHUFFLED = "eigenoptions in another order"


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time of every order of random options, and learning with the first few of each order."""
    name, sets = settings["maze"], range(settings["sets"])
    orders = [("eigenoptions", 0, eigen())]
    orders += [("random", i, _random(i)) for i in sets]
    orders += [(SHUFFLED, i, eigen(shuffle=i)) for i in sets]
    diffusing = [({"kind": kind, "set": i}, {"maze": name, "options": how}) for kind, i, how in orders]

    counts = [*settings["fewer"], settings["options"]]
    ways = [("primitive", 0, 0, PRIMITIVE)]
    for n in counts:
        ways += [("eigenoptions", 0, n, eigen(n)), *(("random", i, n, _random(i, n)) for i in sets)]
    learning = [
        ({"kind": kind, "set": i, "options": n}, {"maze": name, "options": how}) for kind, i, n, how in ways
    ]
    tables = learning_tables(learn_all(pmap, settings, learning), settings["every"])
    tables["curves"] = [row for row in tables["curves"] if row["options"] in (0, settings["options"])]

    numbers = {"options": settings["options"], "runs_of_many": settings["many_runs"]}
    many = _many(settings, pmap, counts)
    return {"diffusion": diffuse_all(pmap, diffusing), **tables, "many": many, **numbers}


def _random(seed: int, n: int | None = None) -> dict[str, Any]:
    return {"method": "random", "n": n, "rng": seed}


def _many(settings: Settings, pmap: Pmap, counts: list[int]) -> list[Row]:
    """Mean return of many sets with few runs each, and the distance of the goal from the nearest end of a set."""
    mdp = maze(settings["maze"])
    away = shortest_path(graph(mdp), unweighted=True)[mdp.goal]
    sets, few = range(settings["many_sets"]), settings["many_runs"]
    # The only state where a random option stops is its goal.
    ends = [discover(mdp, None, "random", rng=i).termination.argmax(axis=1) for i in sets]
    agents = [
        ({"set": i, "options": n}, {"maze": settings["maze"], "options": _random(i, n)})
        for i in sets
        for n in counts
    ]
    rows = mean_returns(learn_all(pmap, {**settings, "runs": few, "block": few}, agents, seed=1))
    return [{**row, "steps_to_goal": int(away[ends[row["set"]][: row["options"]]].min())} for row in rows]


def figure(results: Results) -> Any:
    """Diffusion time and learning; thin lines are the sets of random options."""
    n = results["options"]
    rows = where(results["curves"], options=n)
    lines = {
        "eigenoptions": where(rows, kind="eigenoptions"),
        "primitive actions": where(results["curves"], kind="primitive"),
    }
    some = [column(rows, "mean", kind="random", set=i) for i in _sets(results)]
    learning = plots.curve_panel(
        title=f"Learning with {n} options",
        xlabel="episode",
        ylabel="return",
        threads={"random options": some},
        **curves_of(lines),
    )
    others = {"random options": _diffusion(results, "random")}
    diffusion = _diffusion_panel(results, "eigenoptions", "Diffusion time", others)
    return plots.figure([diffusion, learning], width=plots.PAGE)


def closer(results: Results) -> Any:
    """Orders of eigenoptions, and learning with fewer options."""
    counts = [m for m in distinct(results["runs"], "options") if m]
    learning = plots.curve_panel(
        range(len(counts)),
        {"eigenoptions": [_runs(results, "eigenoptions", 0, m).mean() for m in counts]},
        "Learning with fewer options",
        xlabel="options",
        ylabel="mean return of a run",
        threads={"random options": np.transpose([_means(results, m) for m in counts])},
        levels={"primitive actions": _runs(results, "primitive", 0, 0).mean()},
        ticks=[str(m) for m in counts],
        limits=SHARE,
    )
    orders = {"in a random order": _diffusion(results, SHUFFLED)}
    diffusion = _diffusion_panel(results, "in order of eigenvalue", "Eigenoptions in other orders", orders)
    return plots.figure([diffusion, learning], width=plots.PAGE)


def _diffusion_panel(results: Results, name: str, title: str, others: dict[str, Any]) -> plots.Panel:
    own, most = _diffusion(results, "eigenoptions")[0], next(iter(others.values())).shape[1]
    axes: dict[str, Any] = {"xlabel": "options", "ylabel": "diffusion time", "log": True}
    levels = {"primitive actions": own[0]}
    return plots.curve_panel(range(most), {name: own[:most]}, title, threads=others, levels=levels, **axes)


def claims(results: Results) -> list[Claim]:
    """Whether random goals are enough."""
    return [
        *_about_diffusion(results),
        *_about_learning(results),
        *_about_fewer(results),
        _about_failures(results),
        _about_order(results),
    ]


def _about_diffusion(results: Results) -> list[Claim]:
    some, own = _diffusion(results, "random"), _diffusion(results, "eigenoptions")[0]
    bare, n = own[0], results["options"]
    many, most = len(some), some.shape[1] - 1
    half = int((some[:, most // 2] >= bare).sum())
    since = np.array([np.flatnonzero(y >= bare).max() + 1 for y in some])
    peak = np.median(some.max(axis=1)) / bare
    better = int((own[n] < some[:, n]).sum())
    return [
        Claim(
            "Most of the obtained sequences of random options fail to reduce the agent's diffusion time "
            "until having enough options available to the point that the graph is almost fully connected.",
            "Appendix D",
            f"with half of all options {half} of {many} sequences are still above primitive actions; the "
            f"median sequence is below them for good from {np.median(since):g} options on ({since.min()} to "
            f"{since.max()}) of {most}",
            verdict(half > many / 2, float(np.median(since)) >= NEARLY_ALL * most),
            "Two tests: most sequences fail with half of the options, and the median sequence needs at least "
            f"{NEARLY_ALL:.0%} of them. Eigenoptions are below primitive actions for good from "
            f"{int(np.flatnonzero(own >= bare).max()) + 1} options on.",
            "random-fail-to-reduce",
        ),
        Claim(
            "They increase it by several orders of magnitude.",
            "Appendix D",
            f"the median sequence rises to {peak:,.0f} times the diffusion time of primitive actions, the "
            f"highest to {some.max() / bare:,.0f} times",
            verdict(bool(peak >= SEVERAL), bool(peak >= 10)),
            f"Several orders: at least {SEVERAL:,.0f} times. Eigenoptions rise to {own.max() / bare:,.0f} "
            f"times, with {int(np.argmax(own))} options.",
            "orders-of-magnitude",
        ),
        Claim(
            "The results clearly show that eigenoptions do more than going to a randomly selected state.",
            "Appendix D",
            f"with {n} options eigenoptions take {own[n]:,.0f} steps, random options {some[:, n].min():,.0f} "
            f"to {some[:, n].max():,.0f}",
            verdict(better == many, better > many / 2),
            f"Eigenoptions are below {better} of {many} sets of random options of the same number; all of "
            "them must be above, or most for a part.",
            "more-than-random-states",
        ),
    ]


def _about_learning(results: Results) -> list[Claim]:
    n, sets = results["options"], _sets(results)
    ours, theirs = _runs(results, "eigenoptions", 0, n), _means(results, n)
    gaps = [difference(ours, _runs(results, "random", i, n), len(sets)) for i in sets]
    better = [d.above() for d in gaps]
    many = _many_means(results, n)
    average, small = difference(ours, many), difference(ours, theirs)
    table = [
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
    return [
        Claim(
            "We can see that no individual run is competitive to eigenoptions.",
            "Appendix D",
            f"eigenoptions learn better than {sum(b is True for b in better)} of {len(sets)} sets of {n} random "
            f"options; {(many > ours.mean()).mean():.0%} of {len(many)} sets have a higher mean return",
            verdict(enough(better, len(sets)), enough(better, len(sets) // 2 + 1)),
            f"Each thin line is one set of {n} random options, the mean of {len(ours)} runs. Eigenoptions "
            "must be better than every set by the rule; partly if better than most.",
            "no-run-competitive",
            "Most sets of 64 random options have one that ends on or beside the goal, and those learn as fast as "
            "eigenoptions.",
            table,
        ),
        Claim(
            "On average, random options are not competitive to eigenoptions.",
            "Appendix D",
            f"eigenoptions minus the average over {len(many)} sets of {n} random options: {average}; over "
            f"{len(theirs)} sets, as many as in the paper: {small}",
            verdict(average.above()),
            f"Difference of the mean return; sets are the sample. {len(theirs)} sets decide nothing. With "
            f"{len(many)} the "
            "average of random options is lower because some sets have no option near the goal; the median set is not.",
            "random-not-competitive",
            rows=table,
        ),
    ]


def _about_fewer(results: Results) -> list[Claim]:
    n = results["options"]
    fewer = [m for m in distinct(results["many"], "options") if m != n]
    means = {m: _many_means(results, m) for m in (*fewer, n)}
    wider = {m: float(means[m].var(ddof=1) / means[n].var(ddof=1)) for m in fewer}
    few_n = _means(results, n)
    small = {m: float(_means(results, m).var(ddof=1) / few_n.var(ddof=1)) for m in fewer}
    level = 1 - (1 - CONFIDENCE) / len(fewer)
    bound = float(fdtri(len(means[n]) - 1, len(means[n]) - 1, level))
    near = {m: column(results["many"], "steps_to_goal", options=m) <= CLOSE for m in fewer}
    apart = {
        m: difference(means[m][at], means[m][~at], len(fewer))
        for m, at in near.items()
        if min(at.sum(), (~at).sum()) >= min(MIN_SETS, len(at) // 3)
    }
    return [
        Claim(
            "When fewer options are used, the variance across individual runs is even larger.",
            "Appendix D",
            "; ".join(f"{m} options: {x:.1f} times" for m, x in wider.items()) + f" the variance with {n}",
            verdict(*(True if x > bound else False if x < 1 / bound else None for x in wider.values())),
            f"Variance over {len(means[n])} sets of the mean return. It must be above {bound:.2f} times (an F "
            "test) for "
            f"each number; below {1 / bound:.2f} it is smaller, and in between the sample does not decide.",
            "fewer-options-vary",
            rows=grid(
                "sets",
                {
                    f"{sets}": {f"{m} options": x for m, x in of.items()}
                    for sets, of in ((len(few_n), small), (len(means[n]), wider))
                },
                ".1f",
            ),
        ),
        Claim(
            "The variance depends on whether one of the random options terminates near the goal state.",
            "Appendix D",
            "; ".join(f"{m} options: {d.mean:+.2f}" for m, d in apart.items()) or "too few sets on one side",
            verdict(*(d.above() for d in apart.values())),
            f"Mean return of sets with an end at most {CLOSE} steps from the goal, minus that of the other "
            f"sets; a number of options with fewer than {MIN_SETS} sets on one side is left out.",
            "near-goal-matters",
            rows=[
                {
                    "options": m,
                    "sets with an end near the goal": int(near[m].sum()),
                    "others": int((~near[m]).sum()),
                    "difference": str(apart[m]) if m in apart else "too few sets",
                }
                for m in fewer
            ],
        ),
    ]


def _about_failures(results: Results) -> Claim:
    lost = {
        m: float((column(results["runs"], "late_return", kind="random", options=m) == 0).mean())
        for m in distinct(results["runs"], "options", kind="random")
    }
    bare = (column(results["runs"], "late_return", kind="primitive") == 0).mean()
    return Claim(
        "In some runs the agent never even learns to reach the goal.",
        "Appendix D",
        "runs that do not reach it: " + "; ".join(f"{x:.0%} with {m} options" for m, x in lost.items()),
        verdict(any(x > 0 for x in lost.values())),
        "A run has not learned if none of its last tenth of evaluation episodes reaches the goal. With "
        f"primitive actions that is {bare:.0%}.",
        "never-learns",
    )


def notes(results: Results) -> list[Note]:
    """What distinguishes good sets from bad ones."""
    n = results["options"]
    mean, away = _many_means(results, n), column(results["many"], "steps_to_goal", options=n)
    ours = float(_runs(results, "eigenoptions", 0, n).mean())
    rows = [
        {
            "nearest end of the set": f"{d:.0f} steps from the goal" if d else "on the goal",
            "sets": int((away == d).sum()),
            "mean return": f"{mean[away == d].mean():.3f}",
            "lowest": f"{mean[away == d].min():.3f}",
        }
        for d in np.unique(away)
    ]
    return [
        (
            f"Whether {n} random options compete in this task depends on one option: does any end on the goal, or "
            "next to "
            f"it? Mean return with eigenoptions {ours:.3f}. So one task says little about random options; "
            '"Looking closer: every goal" asks again with every state as the goal.',
            rows,
        )
    ]


def _about_order(results: Results) -> Claim:
    n = results["options"]
    own, other = _diffusion(results, "eigenoptions")[0], _diffusion(results, SHUFFLED)
    ratio = {m: float(np.median(other[:, m]) / own[m]) for m in (n // 4, n)}
    return Claim(
        "The ordering in which the eigenoptions are discovered can have a major impact on the agents' "
        "performance.",
        "Appendix D",
        "; ".join(
            f"with {m} options {own[m]:,.0f} steps in order of eigenvalue, {np.median(other[:, m]):,.0f} in "
            "the median of random orders"
            for m in ratio
        ),
        verdict(*(x >= MAJOR or x <= 1 / MAJOR for x in ratio.values())),
        f"Diffusion time of {len(other)} random orders of all eigenoptions; major is a factor of {MAJOR:g} "
        "up or down.",
        "order-matters",
    )


def _diffusion(results: Results, kind: str) -> NDArray[np.float64]:
    """``(sets, options + 1)``."""
    rows = where(results["diffusion"], kind=kind)
    return column(rows, "diffusion_time").reshape(len(distinct(rows, "set")), -1)


def _sets(results: Results) -> list[int]:
    return distinct(results["runs"], "set", kind="random")


def _runs(results: Results, kind: str, i: int, n: int) -> NDArray[np.float64]:
    return column(results["runs"], "mean_return", kind=kind, set=i, options=n)


def _means(results: Results, n: int) -> NDArray[np.float64]:
    """``(sets,)`` mean return of each set of random options."""
    returns = column(results["runs"], "mean_return", kind="random", options=n)
    return np.asarray(returns.reshape(len(_sets(results)), -1).mean(axis=1))


def _many_means(results: Results, n: int) -> NDArray[np.float64]:
    """``(sets,)`` mean return of each of the many sets."""
    return column(results["many"], "mean_return", options=n)


EXPERIMENT = Experiment(
    "randoms",
    "Appendix D: random options",
    "Appendix D",
    "Diffusion time (logarithmic axis) and learning curves of eigenoptions and of options that lead to "
    "random states, 24 sets of them.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=100,
    closer=closer,
)
