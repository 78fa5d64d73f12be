"""Looking closer: Figure 7 by the learner and the labels of the program that was published with the paper.

That program, in the version of its last commit, overwrites the number of a chosen option with that of the primitive
action it stands for. On the next step it therefore repeats this action, wherever it leads, and then chooses again: an
option lasts two steps. Its curves are labelled with twice the number of options. This is a port from that description.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.mdp import maze
from reproduction import Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, note
from reproduction.limits import difference
from reproduction.paper.jobs import LEARNING, agent, eigen, learn_all
from reproduction.tables import SHARE, curve_row, distinct, grid, run_rows, series

SETTINGS = sizes(
    {**LEARNING, "options": [0, 1, 2, 4, 32, 64, 128], "runs": 300, "seed": 2020},
    episodes={"i-maze": 30},
    options=[0, 1, 4, 32],
    runs=4,
    block=2,
)
# Label of the curve that the paper found best.
BEST = 64
TWO, WHOLE = WAYS = ("two steps per option", "followed to the end")


def run(settings: Settings, pmap: Pmap) -> Results:
    """Mean returns by label, with options of two steps and with options followed to their end."""
    agents = [
        agent(name, eigen(live), {"follow": way == WHOLE}, domain=name, way=way, label=2 * n, options=live)
        for name in settings["episodes"]
        for n in settings["options"]
        for live in [min(n, 2 * maze(name).n_states)]
        for way in WAYS
    ]
    learned = learn_all(pmap, settings, agents)
    return {"runs": [row for key, returns in learned for row in run_rows(key, returns)]}


def figure(results: Results) -> Any:
    """Mean return against the label."""
    panels = {}
    for name, of in _returns(results).items():
        labels = [n for n in of[TWO] if n]
        panels[name] = {
            "x": range(len(labels)),
            "series": {way: np.transpose([of[way][n] for n in labels]) for way in WAYS},
            "levels": {"primitive actions": of[TWO][0].mean()},
            "ticks": [str(n) for n in labels],
        }
    axes: dict[str, Any] = {"xlabel": "label (twice the number of options)", "limits": SHARE}
    return plots.figure(curve_row(panels, "mean return of a run", **axes), width=plots.PAGE)


def notes(results: Results) -> list[Note]:
    """Which label is best, and what is known about Figure 7, which is judged as its text describes it."""
    lines, best = {}, []
    for name, of in _returns(results).items():
        by = of[TWO]
        lines[name] = {f"label {n}" if n else "primitive": x.mean() for n, x in by.items()}
        top = max((n for n in by if n), key=lambda n: by[n].mean())
        # Labels beyond the number of options are the same agent.
        others = [n for n in by if n not in (0, BEST)]
        beaten = [str(n) for n in others if difference(by[n], by[BEST], len(others)).better]
        best.append((name, top, by[top].mean(), ", ".join(beaten) or "none"))
    runs = distinct(results["runs"], "run")
    return [
        note("labels", grid(TWO, lines, ".3f"), runs=runs, best=best),
        note("known-program"),
        note("unknown-program"),
    ]


def _returns(results: Results) -> dict[str, dict[str, dict[int, Any]]]:
    """``(runs,)`` mean returns by domain, way and label."""
    return series(results["runs"], "mean_return", "domain", "way", "label")


EXPERIMENT = experiment("published", SETTINGS, run=run, figure=figure, notes=notes)
