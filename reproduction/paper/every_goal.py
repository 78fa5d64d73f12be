"""Looking closer: learning to reach every state of the 4-room domain, not only the corner of Figure 7."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from eigenoptions.mdp import maze
from reproduction import Claim, Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import CONFIDENCE, Difference, difference
from reproduction.paper.jobs import agent, eigen, learn_all
from reproduction.tables import SHARE, Row, column, distinct, groups, series, where

SETTINGS = sizes(
    {
        "maze": "four-rooms",
        "options": [0, 2, 4, 8, 16, 32, 64, 128, 208],
        "many": 64,
        "runs": 20,
        "sets": 24,
        "set_runs": 10,
        "episodes": 250,
        "max_steps": 100,
        "seed": 2019,
    },
    maze="i-maze",
    options=[0, 4, 16],
    many=16,
    runs=3,
    sets=3,
    set_runs=2,
    episodes=10,
)


def run(settings: Settings, pmap: Pmap) -> Results:
    """Mean return for each goal, from one start, by number of eigenoptions and with sets of random options."""
    mdp, many = maze(settings["maze"]), settings["many"]
    coords = np.array(mdp.coords)
    goals = [(s, row, col) for s, (row, col) in enumerate(coords.tolist()) if s != mdp.start]
    own = [("eigenoptions", 0, eigen(n)) for n in settings["options"]]
    sets = [("random", i, {"method": "random", "n": many, "rng": i}) for i in range(settings["sets"])]
    rows = []
    for group, runs, seed in ((own, settings["runs"], 0), (sets, settings["set_runs"], 1)):
        agents = [
            agent(
                settings["maze"],
                how,
                {"goal": goal},
                kind=kind,
                set=i,
                options=how["n"],
                goal=goal,
                row=row,
                column=col,
            )
            for kind, i, how in group
            for goal, row, col in goals
        ]
        rows += [
            {
                **key,
                "mean_return": float(returns[0].mean()),
                "standard_error": float(returns[0].mean(axis=1).std(ddof=1) / np.sqrt(runs)),
            }
            for key, returns in learn_all(pmap, {**settings, "runs": runs}, agents, seed)
        ]
    return {"goals": rows, "many": many, "coords": coords, "corner": mdp.goal}


def figure(results: Results) -> Any:
    """Average and worst goal by number of options, and maps of the goals for three numbers."""
    by = _returns(results)
    shown = [n for n in (4, 8, results["many"]) if n in by]
    panels = [
        plots.curve_panel(
            range(len(by)),
            {
                "mean of all goals": [x.mean() for x in by.values()],
                "worst tenth of goals": [np.quantile(x, 0.1) for x in by.values()],
                "worst goal": [x.min() for x in by.values()],
            },
            "",
            xlabel="eigenoptions",
            ylabel="mean return",
            ticks=[str(n) for n in by],
            limits=SHARE,
        )
    ]
    axes: dict[str, Any] = {"signed": False, "limits": (0.0, 1.0)}
    for n in shown:
        values = np.full(len(results["coords"]), np.nan)
        values[distinct(results["goals"], "goal")] = by[n]
        label = "mean return" if n == shown[-1] else None
        title = f"each goal, {n} options"
        panels.append(plots.value_panel(results["coords"], values, title, label=label, **axes))
    return plots.figure(panels, columns=len(panels), width=plots.PAGE, ratios=(1.7, *[1] * len(shown)))


def claims(results: Results) -> list[Claim]:
    """Whether one set of options serves many tasks."""
    n, by = results["many"], _returns(results)
    ours, bare = by[n], by[0]
    gap, better = difference(ours - bare, np.zeros_like(bare)), int((ours > bare).sum())
    mean = ours.mean(), bare.mean()
    tests = gap.above(), better > len(ours) / 2
    return [judge("same-set-many-tasks", *tests, n=n, better=better, ours=ours, mean=mean, gap=gap)]


def notes(results: Results) -> list[Note]:
    """Which number is best over all goals, and how random options compare."""
    n = results["many"]
    by = {m: rows for m, rows in groups(where(results["goals"], kind="eigenoptions"), "options").items() if m}
    random = groups(where(results["goals"], kind="random"), "set").values()
    sets, lowest = (np.array([f(column(rows, "mean_return")) for rows in random]) for f in (np.mean, np.min))
    table = [
        {
            "options": m,
            "mean of all goals": f"{column(rows, 'mean_return').mean():.3f}",
            f"{n} minus this": str(_gap(by[n], rows, len(by) - 1)) if m != n else "",
            "goal of Figure 7": f"{column(rows, 'mean_return', goal=results['corner'])[0]:.3f}",
            "worst goal": f"{column(rows, 'mean_return').min():.3f}",
        }
        for m, rows in by.items()
    ]
    ours = column(by[n], "mean_return")
    return [
        note("goals-by-number", table),
        note(
            "goals-of-random-options",
            n=n,
            sets=sets,
            random=(sets.mean(), sets.min(), sets.max(), np.median(lowest)),
            ours=(ours.mean(), ours.min()),
            below=sum(_gap(by[n], rows, len(random)).better for rows in random),
        ),
    ]


def _gap(a: list[Row], b: list[Row], among: int) -> Difference:
    """Difference over all goals between two sets of options; the interval covers the noise of the runs."""
    mean = float(column(a, "mean_return").mean() - column(b, "mean_return").mean())
    squares = (column(a, "standard_error") ** 2).sum() + (column(b, "standard_error") ** 2).sum()
    half = float(ndtri(1 - (1 - CONFIDENCE) / (2 * among)) * np.sqrt(squares) / len(a))
    return Difference(mean, mean - half, mean + half)


def _returns(results: Results) -> dict[int, Any]:
    """``(goals,)`` mean returns by number of eigenoptions."""
    return series(results["goals"], "mean_return", "options", kind="eigenoptions")


EXPERIMENT = experiment("goals", SETTINGS, run=run, figure=figure, claims=claims, notes=notes)
