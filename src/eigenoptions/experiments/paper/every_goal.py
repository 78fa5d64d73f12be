"""Looking closer: learning to reach every state of the 4-room domain, not only the corner of Figure 7."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from eigenoptions import plots
from eigenoptions.experiments import Claim, Note, Pmap, Results, Settings, sizes
from eigenoptions.experiments.claims import experiment, judge, note
from eigenoptions.experiments.limits import CONFIDENCE, Difference, difference
from eigenoptions.experiments.paper.jobs import eigen, learn_all
from eigenoptions.experiments.tables import SHARE, Row, column, distinct, where
from eigenoptions.mdp import maze

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
    own = [("eigenoptions", 0, eigen(n)) for n in settings["options"]]
    sets = [("random", i, {"method": "random", "n": many, "rng": i}) for i in range(settings["sets"])]
    rows = []
    for group, runs, seed in ((own, settings["runs"], 0), (sets, settings["set_runs"], 1)):
        agents = [
            (
                {"kind": kind, "set": i, "options": how["n"], "goal": goal},
                {"maze": settings["maze"], "options": how, "goal": goal},
            )
            for kind, i, how in group
            for goal in range(mdp.n_states)
            if goal != mdp.start
        ]
        rows += [
            {
                **key,
                "row": int(coords[key["goal"], 0]),
                "column": int(coords[key["goal"], 1]),
                "mean_return": float(returns[0].mean()),
                "standard_error": float(returns[0].mean(axis=1).std(ddof=1) / np.sqrt(runs)),
            }
            for key, returns in learn_all(pmap, {**settings, "runs": runs}, agents, seed)
        ]
    return {"goals": rows, "many": many, "coords": coords, "corner": mdp.goal}


def figure(results: Results) -> Any:
    """Average and worst goal by number of options, and maps of the goals for three numbers."""
    counts = _counts(results)
    by = {n: _returns(results, n) for n in counts}
    shown = [n for n in (4, 8, results["many"]) if n in counts]
    panels = [
        plots.curve_panel(
            range(len(counts)),
            {
                "mean of all goals": [by[n].mean() for n in counts],
                "worst tenth of goals": [np.quantile(by[n], 0.1) for n in counts],
                "worst goal": [by[n].min() for n in counts],
            },
            "",
            xlabel="eigenoptions",
            ylabel="mean return",
            ticks=[str(n) for n in counts],
            limits=SHARE,
        )
    ]
    for n in shown:
        values = np.full(len(results["coords"]), np.nan)
        values[column(_rows(results, n), "goal").astype(int)] = by[n]
        last = n == shown[-1]
        panels.append(
            plots.value_panel(
                results["coords"],
                values,
                f"each goal, {n} options",
                signed=False,
                limits=(0.0, 1.0),
                label="mean return" if last else None,
            )
        )
    return plots.figure(panels, columns=len(panels), width=plots.PAGE, ratios=(1.7, *[1] * len(shown)))


def claims(results: Results) -> list[Claim]:
    """Whether one set of options serves many tasks."""
    n = results["many"]
    ours, bare = _returns(results, n), _returns(results, 0)
    gap, better = difference(ours - bare, np.zeros_like(bare)), int((ours > bare).sum())
    mean = ours.mean(), bare.mean()
    tests = gap.above(), better > len(ours) / 2
    return [judge("same-set-many-tasks", *tests, n=n, better=better, ours=ours, mean=mean, gap=gap)]


def notes(results: Results) -> list[Note]:
    """Which number is best over all goals, and how random options compare."""
    counts = [m for m in _counts(results) if m]
    by = {m: _rows(results, m) for m in counts}
    n = results["many"]
    random = [_rows(results, n, "random", i) for i in distinct(results["goals"], "set", kind="random")]
    sets, lowest = (np.array([f(column(rows, "mean_return")) for rows in random]) for f in (np.mean, np.min))
    table = [
        {
            "options": m,
            "mean of all goals": f"{column(rows, 'mean_return').mean():.3f}",
            f"{n} minus this": str(_gap(by[n], rows, len(counts) - 1)) if m != n else "",
            "goal of Figure 7": f"{column(rows, 'mean_return', goal=results['corner'])[0]:.3f}",
            "worst goal": f"{column(rows, 'mean_return').min():.3f}",
        }
        for m, rows in by.items()
    ]
    ours = _returns(results, n)
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


def _rows(results: Results, n: int, kind: str = "eigenoptions", i: int = 0) -> list[Row]:
    return where(results["goals"], kind=kind, set=i, options=n)


def _returns(results: Results, n: int) -> NDArray[np.float64]:
    return column(_rows(results, n), "mean_return")


def _counts(results: Results) -> list[int]:
    return distinct(results["goals"], "options", kind="eigenoptions")


EXPERIMENT = experiment("goals", SETTINGS, run=run, figure=figure, claims=claims, notes=notes)
