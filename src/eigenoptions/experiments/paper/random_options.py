"""Appendix D: options to random states against eigenoptions, in diffusion time and in learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

from eigenoptions import plots
from eigenoptions.discovery import discover
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.experiments.limits import CONFIDENCE, MAJOR, NEARLY_ALL, SEVERAL, difference
from eigenoptions.experiments.paper.jobs import PRIMITIVE, diffuse, eigen, learn_all
from eigenoptions.experiments.tables import (
    column,
    curves_of,
    diffusion_rows,
    distinct,
    learning_tables,
    where,
)
from eigenoptions.mdp import graph, maze

SETTINGS: dict[str, Settings] = {
    "paper": {
        "maze": "four-rooms",
        "sets": 24,
        "fewer": [4, 8, 16, 32],
        "options": 64,
        "runs": 100,
        "episodes": 500,
        "max_steps": 100,
        "seed": 2017,
        "block": 50,
        "every": 5,
    },
}
SETTINGS["quick"] = {
    **SETTINGS["paper"],
    "maze": "i-maze",
    "sets": 3,
    "fewer": [4, 8],
    "options": 16,
    "runs": 4,
    "episodes": 20,
    "block": 2,
}
# Steps from the goal up to which the end of an option counts as near it.
CLOSE = 2
SHUFFLED = "eigenoptions in another order"


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time of every order of random options, and learning with the first few of each order."""
    name, sets = settings["maze"], range(settings["sets"])
    kinds = [("eigenoptions", 0, eigen())]
    kinds += [("random", i, {"method": "random", "n": None, "rng": i}) for i in sets]
    kinds += [(SHUFFLED, i, eigen(shuffle=i)) for i in sets]
    curves = pmap(diffuse, [{"maze": name, "options": how} for _, _, how in kinds])
    diffusion = diffusion_rows([{"kind": kind, "set": i} for kind, i, _ in kinds], curves)

    counts = [*settings["fewer"], settings["options"]]
    agents: list[tuple[str, int, int, Any]] = [("primitive", 0, 0, PRIMITIVE)]
    for n in counts:
        agents.append(("eigenoptions", 0, n, eigen(n)))
        agents += [("random", i, n, {"method": "random", "n": n, "rng": i}) for i in sets]
    keys = [{"kind": kind, "set": i, "options": n} for kind, i, n, _ in agents]
    length = {"episodes": settings["episodes"], "max_steps": settings["max_steps"]}
    scenarios = [{"maze": name, "options": how, **length} for *_, how in agents]
    found = learn_all(pmap, scenarios, settings["runs"], settings["block"], settings["seed"])
    tables = learning_tables(keys, found, settings["every"])
    tables["curves"] = [row for row in tables["curves"] if row["options"] in (0, settings["options"])]

    mdp = maze(name)
    away = shortest_path(graph(mdp), unweighted=True)[mdp.goal]
    # The only state where a random option stops is its goal.
    ends = [discover(mdp, None, "random", rng=i).termination.argmax(axis=1) for i in sets]
    near = [
        {"set": i, "options": n, "steps_to_goal": int(away[ends[i][:n]].min())} for i in sets for n in counts
    ]
    return {"diffusion": diffusion, **tables, "ends": near, "options": settings["options"]}


def figure(results: Results) -> Any:
    """Diffusion time and learning; thin lines are the sets of random options, or the orders of eigenoptions."""
    panels = [*_diffusion_panels(results), *_learning_panels(results)]
    return plots.figure([panels[i] for i in (0, 2, 1, 3)], columns=2, width=plots.PAGE)


def _diffusion_panels(results: Results) -> list[plots.Panel]:
    own, some = _diffusion(results, "eigenoptions")[0], _diffusion(results, "random")
    axes: dict[str, Any] = {"xlabel": "options", "ylabel": "diffusion time", "log": True}
    levels = {"primitive actions": own[0]}
    most = some.shape[1]
    return [
        plots.curve_panel(
            range(most),
            {"eigenoptions": own[:most]},
            "Diffusion time",
            threads={"random options": some},
            levels=levels,
            **axes,
        ),
        plots.curve_panel(
            range(len(own)),
            {"in order of eigenvalue": own},
            "Eigenoptions in other orders",
            threads={"in a random order": _diffusion(results, SHUFFLED)},
            levels=levels,
            **axes,
        ),
    ]


def _learning_panels(results: Results) -> list[plots.Panel]:
    n = results["options"]
    rows = where(results["curves"], options=n)
    bare = where(results["curves"], kind="primitive")
    some = [column(where(rows, kind="random", set=i), "mean") for i in _sets(results)]
    counts = [m for m in distinct(results["runs"], "options") if m]
    return [
        plots.curve_panel(
            title=f"Learning with {n} options",
            xlabel="episode",
            ylabel="return",
            threads={"random options": some},
            limits=(-0.02, 1.02),
            **curves_of({"eigenoptions": where(rows, kind="eigenoptions"), "primitive actions": bare}),
        ),
        plots.curve_panel(
            range(len(counts)),
            {"eigenoptions": [_runs(results, "eigenoptions", 0, m).mean() for m in counts]},
            "Learning with fewer options",
            xlabel="options",
            ylabel="mean return of a run",
            threads={"random options": _means(results, counts).T},
            levels={"primitive actions": _runs(results, "primitive", 0, 0).mean()},
            ticks=[str(m) for m in counts],
            limits=(-0.02, 1.02),
        ),
    ]


def claims(results: Results) -> list[Claim]:
    """Whether random goals are enough."""
    about = (_about_diffusion, _about_learning, _about_fewer, _about_order)
    return [claim for claims_of in about for claim in claims_of(results)]


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
        ),
        Claim(
            "They increase it by several orders of magnitude.",
            "Appendix D",
            f"the median sequence rises to {peak:,.0f} times the diffusion time of primitive actions, the "
            f"highest to {some.max() / bare:,.0f} times",
            verdict(bool(peak >= SEVERAL), bool(peak >= 10)),
            f"Several orders: at least {SEVERAL:,.0f} times. Eigenoptions rise to {own.max() / bare:,.0f} "
            f"times, with {int(np.argmax(own))} options.",
        ),
        Claim(
            "The results clearly show that eigenoptions do more than going to a randomly selected state.",
            "Appendix D",
            f"with {n} options eigenoptions take {own[n]:,.0f} steps, random options {some[:, n].min():,.0f} "
            f"to {some[:, n].max():,.0f}",
            verdict(better == many, better > many / 2),
            f"Eigenoptions are below {better} of {many} sets of random options of the same number; all of "
            "them must be above, or most for a part.",
        ),
    ]


def _about_learning(results: Results) -> list[Claim]:
    n, sets = results["options"], _sets(results)
    ours, (theirs,) = _runs(results, "eigenoptions", 0, n), _means(results, [n])
    gaps = [difference(ours, _runs(results, "random", i, n), len(sets)) for i in sets]
    better, worse = sum(d.better for d in gaps), sum(d.worse for d in gaps)
    average = difference(ours, theirs)
    return [
        Claim(
            "We can see that no individual run is competitive to eigenoptions.",
            "Appendix D",
            f"with {n} options eigenoptions learn better than {better} of {len(sets)} sets of random options "
            f"and worse than {worse}; mean return {ours.mean():.3f} against {theirs.min():.3f} to "
            f"{theirs.max():.3f}",
            verdict(better == len(sets), better > len(sets) / 2),
            f"Each blue line is one set of {n} random options, the mean of {len(ours)} runs. All differences "
            "to eigenoptions must be above zero; partly if most are.",
        ),
        Claim(
            "On average, random options are not competitive to eigenoptions.",
            "Appendix D",
            f"eigenoptions minus the average over sets of {n} random options: {average}",
            verdict(average.better),
            "Difference of the mean return; the sets are the sample on the side of random options.",
        ),
    ]


def _about_fewer(results: Results) -> list[Claim]:
    n, sets = results["options"], _sets(results)
    fewer = [m for m in distinct(where(results["runs"], kind="random"), "options") if m != n]
    means = dict(zip((*fewer, n), _means(results, [*fewer, n]), strict=True))
    wider = {m: float(means[m].var(ddof=1) / means[n].var(ddof=1)) for m in fewer}
    bound = fdtri(len(sets) - 1, len(sets) - 1, 1 - (1 - CONFIDENCE) / len(fewer))
    near = {m: column(where(results["ends"], options=m), "steps_to_goal") <= CLOSE for m in fewer}
    apart = {
        m: difference(means[m][at], means[m][~at], len(fewer))
        for m, at in near.items()
        if min(at.sum(), (~at).sum()) > 1
    }
    lost = {
        m: np.mean(column(where(results["runs"], kind="random", options=m), "late_return") == 0)
        for m in means
    }
    bare = np.mean(column(where(results["runs"], kind="primitive"), "late_return") == 0)
    return [
        Claim(
            "When fewer options are used, the variance across individual runs is even larger.",
            "Appendix D",
            "; ".join(f"{m} options: {x:.1f} times" for m, x in wider.items()) + f" the variance with {n}",
            verdict(*(x > bound for x in wider.values())),
            f"Variance over sets of the mean return. It must be above {bound:.2f} times (an F test) for each "
            "number.",
        ),
        Claim(
            "The variance depends on whether one of the random options terminates near the goal state.",
            "Appendix D",
            "; ".join(
                f"{m} options: {d} ({near[m].sum()} sets near, {(~near[m]).sum()} not)"
                for m, d in apart.items()
            )
            or "too few sets on one side",
            verdict(*(d.better for d in apart.values())) if apart else verdict(False),
            f"Mean return of sets with an end at most {CLOSE} steps from the goal, minus that of the other "
            f"sets.{_too_few(near)}",
        ),
        Claim(
            "In some runs the agent never even learns to reach the goal.",
            "Appendix D",
            "runs that do not reach it: " + "; ".join(f"{x:.0%} with {m} options" for m, x in lost.items()),
            verdict(any(x > 0 for x in lost.values())),
            "A run has not learned if none of its last tenth of evaluation episodes reaches the goal. With "
            f"primitive actions that is {bare:.0%}.",
        ),
    ]


def notes(results: Results) -> list[str]:
    """What distinguishes good sets from bad ones."""
    n = results["options"]
    (mean,), away = _means(results, [n]), column(where(results["ends"], options=n), "steps_to_goal")
    ours = _runs(results, "eigenoptions", 0, n).mean()
    late = {
        kind: column(where(results["runs"], kind=kind, options=n), "late_return").mean()
        for kind in ("eigenoptions", "random")
    }
    groups = "; ".join(
        f"{int((away == d).sum())} sets with an option that ends "
        f"{f'{d:.0f} steps from the goal' if d else 'on the goal'}: {mean[away == d].min():.3f} to "
        f"{mean[away == d].max():.3f}"
        for d in np.unique(away)
    )
    return [
        f"Whether {n} random options compete in this task depends on one option: does any end on the goal, "
        f"or next to it? Mean return with eigenoptions {ours:.3f}; {groups}. Judged by the last tenth of the "
        f"episodes alone, eigenoptions are at {late['eigenoptions']:.3f} and random options at "
        f"{late['random']:.3f} on average.",
        "So one task says little about random options: the goal is a corner, and a set either has it or has "
        'not. The section "Looking closer: every goal" asks again with every state as the goal.',
    ]


def _about_order(results: Results) -> list[Claim]:
    n = results["options"]
    own, other = _diffusion(results, "eigenoptions")[0], _diffusion(results, SHUFFLED)
    ratio = {m: float(np.median(other[:, m]) / own[m]) for m in (n // 4, n)}
    claim = Claim(
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
    )
    return [claim]


def _diffusion(results: Results, kind: str) -> NDArray[np.float64]:
    """``(sets, options + 1)``."""
    rows = where(results["diffusion"], kind=kind)
    return column(rows, "diffusion_time").reshape(len(distinct(rows, "set")), -1)


def _sets(results: Results) -> list[int]:
    return distinct(where(results["runs"], kind="random"), "set")


def _runs(results: Results, kind: str, i: int, n: int) -> NDArray[np.float64]:
    return column(where(results["runs"], kind=kind, set=i, options=n), "mean_return")


def _means(results: Results, counts: list[int]) -> NDArray[np.float64]:
    """``(counts, sets)`` mean return of each set of random options."""
    of = {m: where(results["runs"], kind="random", options=m) for m in counts}
    return np.stack(
        [column(of[m], "mean_return").reshape(len(_sets(results)), -1).mean(axis=1) for m in counts]
    )


def _too_few(near: dict[int, NDArray[np.bool_]]) -> str:
    """Numbers of options for which one side is too small for a useful interval."""
    small = [m for m, at in near.items() if min(at.sum(), (~at).sum()) < 3]
    return (
        f" With {' or '.join(map(str, small))} options one side has too few sets to judge." if small else ""
    )


EXPERIMENT = Experiment(
    "randoms",
    "Appendix D: random options",
    "Appendix D",
    "Diffusion time (logarithmic axis) and learning curves of eigenoptions and of options that lead to "
    "random states, 24 sets of them. The lower row is not in the paper: it looks at what its text says "
    "without showing.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=100,
)
