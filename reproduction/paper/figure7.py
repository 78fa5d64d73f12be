"""Figure 7: learning to reach a goal as eigenoptions are added, in the three domains."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction import Claim, Note, Pmap, Results, Settings, enough, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.limits import FEW, ROBUST, Difference, difference
from reproduction.paper.jobs import LEARNING, TURNED, agent, counts_for, eigen, learn_all
from reproduction.tables import (
    SHARE,
    curve_row,
    curves_of,
    grid,
    learning_tables,
    mean_returns,
    series,
    where,
)

SETTINGS = sizes(
    {**LEARNING, "seed": 2017, "every": 5},
    episodes={"i-maze": 30, "four-rooms": 40},
    options=[0, 2, 16, 64],
    runs=4,
    block=2,
)
# The number of options that the paper found best.
BEST = 64
# The domain with repeated eigenvalues.
SQUARE = "open-room"

Array = np.ndarray[Any, Any]


def run(settings: Settings, pmap: Pmap) -> Results:
    """Returns with each number of options; the last is all of them, both signs."""
    pairs = [(name, n) for name in settings["episodes"] for n in counts_for(name, settings["options"])]
    agents = [agent(name, eigen(n), domain=name, options=n) for name, n in pairs]
    others = [
        agent(name, eigen(n, turn=turn), basis=basis, options=n)
        for basis, turn in TURNED.items()
        for name, n in pairs
        if name == SQUARE and n
    ]
    return {
        **learning_tables(learn_all(pmap, settings, agents), settings["every"]),
        "bases": mean_returns(learn_all(pmap, settings, others, seed=1)),
    }


def figure(results: Results) -> Any:
    """Learning curves by number of options."""
    panels = {}
    for name, of in _returns(results).items():
        shown = [n for n in of if n in (0, 2, 4, FEW, BEST, max(of))]
        panels[name] = curves_of({_name(n): where(results["curves"], domain=name, options=n) for n in shown})
    row = curve_row(panels, "return", legend=False, xlabel="episode")
    return plots.figure(row, width=plots.PAGE, legend=True)


def closer(results: Results) -> Any:
    """The mean return against the number of options; thin lines are other bases of repeated eigenvalues."""
    panels: dict[str, Any] = {}
    for name, of in _returns(results).items():
        bare = of[0].mean()
        bases = series(results["bases"], "mean_return", "basis") if name == SQUARE else {}
        panels[name] = {
            "x": range(len(of)),
            "series": {"eigenoptions": np.transpose(list(of.values()))},
            "threads": {"other bases": [[bare, *y] for y in bases.values()]} if bases else None,
            "levels": {"primitive actions": bare},
            "ticks": [str(n) for n in of],
        }
    row = curve_row(panels, "mean return of a run", xlabel="options", limits=SHARE)
    return plots.figure(row, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which numbers of options help and which hurt."""
    return [*_compared_with_primitive_actions(results), *_compared_with_each_other(results)]


def _compared_with_primitive_actions(results: Results) -> list[Claim]:
    gain = gains(results)
    better = [d.above() for d in gain.values()]
    exceptions = [n for (_, n), d in gain.items() if not d.better]
    by = {name: {n: d for (at, n), d in gain.items() if at == name} for name, _ in gain}
    hurt = {name: [n for n, d in of.items() if n <= FEW and d.worse] for name, of in by.items()}
    fast = {name: [d.above() for d in of.values()] for name, of in by.items()}
    everywhere = all(True in tests for tests in fast.values())
    return [
        judge(
            "most-scenarios",
            enough(better, len(gain) // 2 + 1),
            better=better.count(True),
            gain=gain,
            rows=grid("minus primitive actions", _by_number(by)),
        ),
        judge(
            "exceptions-few",
            any(n <= FEW for n in exceptions),
            bool(exceptions) and all(n <= FEW for n in exceptions),
            exceptions=[key for key, d in gain.items() if not d.better],
        ),
        judge(
            "few-hurt-enough-help",
            any(hurt.values()),
            *(enough(tests, 1) for tests in fast.values()),
            hurt={name: _numbers(counts) for name, counts in hurt.items()},
            more=". Better in every domain with some number" if everywhere else "",
        ),
    ]


def _compared_with_each_other(results: Results) -> list[Claim]:
    returns = _returns(results)
    mean = _means(returns)
    top = {name: max(of, key=of.__getitem__) for name, of in mean.items()}
    low = {name: min(m for n, m in of.items() if n > FEW) / of[top[name]] for name, of in mean.items()}
    best = [
        (name, top[name], of[top[name]], f", {of[BEST]:.3f} with 64" if BEST in of else "; it has no 64")
        for name, of in mean.items()
    ]
    tests = (_best(of) for of in returns.values() if BEST in of)
    return [
        judge("best-64", *tests, best=best, rows=grid("mean return", _by_number(mean), ".3f")),
        judge("robust", *(share >= ROBUST for share in low.values()), low=low),
    ]


def notes(results: Results) -> list[Note]:
    """Other measures of performance, and other bases of repeated eigenvalues."""
    measures = {
        "mean_return": "all evaluation episodes (used here)",
        "late_return": "the last tenth of them",
        "learning_return": "the learning episodes",
    }
    best: dict[str, dict[str, str]] = {words: {} for words in measures.values()}
    for measure, words in measures.items():
        for name, of in _means(_returns(results, measure)).items():
            high = max(of.values())
            best[words][name] = f"{_numbers([n for n, m in of.items() if m >= high - 0.005])} ({high:.3f})"
    found = [note("other-measures", grid("averaged over", best))]
    if results["bases"]:
        own = _means(_returns(results))[SQUARE]
        lines = {"as reported": {n: m for n, m in own.items() if n}}
        lines |= _means(series(results["bases"], "mean_return", "basis", "options"))
        found.append(note("learning-in-other-bases", grid("open room, options", lines, ".2f")))
    return found


def gains(results: Results) -> dict[tuple[str, int], Difference]:
    """Difference to primitive actions, for each scenario."""
    returns = _returns(results)
    pairs = [(name, n) for name, of in returns.items() for n in of if n]
    return {(name, n): difference(returns[name][n], returns[name][0], len(pairs)) for name, n in pairs}


def _best(returns: dict[int, Array]) -> bool | None:
    """Whether 64 options are best: no if another number is better, yes if none is better by the margin."""
    others = [x for n, x in returns.items() if n not in (0, BEST)]
    tests = [difference(x, returns[BEST], len(others)).above() for x in others]
    return False if True in tests else None if None in tests else True


def _returns(results: Results, measure: str = "mean_return") -> dict[str, dict[int, Array]]:
    """``(runs,)`` returns by domain and number of options."""
    return series(results["runs"], measure, "domain", "options")


def _means(returns: dict[str, dict[int, Array]]) -> dict[str, dict[int, float]]:
    return {name: {n: float(x.mean()) for n, x in of.items()} for name, of in returns.items()}


def _by_number(table: dict[str, dict[int, Any]]) -> dict[str, dict[str, Any]]:
    """Lines by number of options, of values by domain and number."""
    counts = sorted({n for of in table.values() for n in of})
    return {_name(n): {name: of[n] for name, of in table.items() if n in of} for n in counts}


def _name(n: int) -> str:
    return f"{n} options" if n else "primitive actions"


def _numbers(counts: list[int]) -> str:
    return ", ".join(map(str, counts)) or "none"


def headline(results: Results) -> tuple[str, str]:
    """Learning in the last domain, four rooms."""
    *_, of = _means(_returns(results)).values()
    words = "of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions"
    return f"{of[BEST]:.0%}", f"{words}, {of[0]:.0%} without"


EXPERIMENT = experiment(
    "figure7", SETTINGS, run=run, figure=figure, claims=claims, notes=notes, closer=closer, headline=headline
)
