"""Figure 7: learning to reach a goal as eigenoptions are added, in the three domains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.experiments import Claim, Note, Pmap, Results, Settings, enough, sizes
from eigenoptions.experiments.claims import experiment, judge, note
from eigenoptions.experiments.limits import FEW, ROBUST, Difference, difference
from eigenoptions.experiments.paper.jobs import LEARNING, TURNED, counts_for, eigen, learn_all
from eigenoptions.experiments.tables import (
    SHARE,
    column,
    curve_row,
    curves_of,
    distinct,
    grid,
    learning_tables,
    mean_returns,
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


def run(settings: Settings, pmap: Pmap) -> Results:
    """Returns with each number of options; the last is all of them, both signs."""
    pairs = [(name, n) for name in settings["episodes"] for n in counts_for(name, settings["options"])]
    agents = [({"domain": name, "options": n}, {"maze": name, "options": eigen(n)}) for name, n in pairs]
    others = [
        ({"basis": basis, "options": n}, {"maze": name, "options": eigen(n, turn=turn)})
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
    for name in distinct(results["runs"], "domain"):
        counts = _counts(results, name)
        shown = [n for n in counts if n in (0, 2, 4, FEW, BEST, counts[-1])]
        lines = {_name(n): where(results["curves"], domain=name, options=n) for n in shown}
        panels[name] = curves_of(lines)
    row = curve_row(panels, "return", legend=False, xlabel="episode")
    return plots.figure(row, width=plots.PAGE, legend=True)


def closer(results: Results) -> Any:
    """The mean return against the number of options; thin lines are other bases of repeated eigenvalues."""
    panels: dict[str, Any] = {}
    for name in distinct(results["runs"], "domain"):
        counts, bare = _counts(results, name), _mean(results, name, 0)
        bases = distinct(results["bases"], "basis") if name == SQUARE else []
        other = [[bare, *column(results["bases"], "mean_return", basis=b)] for b in bases]
        panels[name] = {
            "x": range(len(counts)),
            "series": {"eigenoptions": np.transpose([_returns(results, name, n) for n in counts])},
            "threads": {"other bases": other} if bases else None,
            "levels": {"primitive actions": bare},
            "ticks": [str(n) for n in counts],
        }
    row = curve_row(panels, "mean return of a run", xlabel="options", limits=SHARE)
    return plots.figure(row, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which numbers of options help and which hurt."""
    return [*_compared_with_primitive_actions(results), *_compared_with_each_other(results)]


def _compared_with_primitive_actions(results: Results) -> list[Claim]:
    gain = gains(results)
    better = [d.above() for d in gain.values()]
    exceptions = [(name, n) for (name, n), d in gain.items() if not d.better]
    domains = distinct(results["runs"], "domain")
    hurt = {
        name: [n for (at, n), d in gain.items() if at == name and n <= FEW and d.worse] for name in domains
    }
    fast = {name: [d.above() for (at, _), d in gain.items() if at == name] for name in domains}
    everywhere = all(True in tests for tests in fast.values())
    lines = {
        _name(m): {name: d for (name, n), d in gain.items() if n == m} for m in sorted({n for _, n in gain})
    }
    return [
        judge(
            "most-scenarios",
            enough(better, len(gain) // 2 + 1),
            better=better.count(True),
            gain=gain,
            rows=grid("minus primitive actions", lines),
        ),
        judge(
            "exceptions-few",
            any(n <= FEW for _, n in exceptions),
            bool(exceptions) and all(n <= FEW for _, n in exceptions),
            exceptions=exceptions,
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
    domains = distinct(results["runs"], "domain")
    mean = {name: {n: _mean(results, name, n) for n in _counts(results, name)} for name in domains}
    top = {name: max(of, key=of.__getitem__) for name, of in mean.items()}
    low = {name: min(m for n, m in of.items() if n > FEW) / of[top[name]] for name, of in mean.items()}
    lines = {
        _name(n): {name: of[n] for name, of in mean.items() if n in of}
        for n in sorted({n for of in mean.values() for n in of})
    }
    best = [
        (name, top[name], of[top[name]], f", {of[BEST]:.3f} with 64" if BEST in of else "; it has no 64")
        for name, of in mean.items()
    ]
    return [
        judge(
            "best-64",
            *(_best(results, name) for name in domains if BEST in mean[name]),
            best=best,
            rows=grid("mean return", lines, ".3f"),
        ),
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
        for name in distinct(results["runs"], "domain"):
            mean = {n: _mean(results, name, n, measure) for n in _counts(results, name)}
            high = max(mean.values())
            best[words][name] = f"{_numbers([n for n, m in mean.items() if m >= high - 0.005])} ({high:.3f})"
    found = [note("other-measures", grid("averaged over", best))]
    if results["bases"]:
        lines = {"as reported": {n: _mean(results, SQUARE, n) for n in _counts(results, SQUARE) if n}}
        for row in results["bases"]:
            lines.setdefault(row["basis"], {})[row["options"]] = row["mean_return"]
        found.append(note("learning-in-other-bases", grid("open room, options", lines, ".2f")))
    return found


def gains(results: Results) -> dict[tuple[str, int], Difference]:
    """Difference to primitive actions, for each scenario."""
    pairs = [(name, n) for name in distinct(results["runs"], "domain") for n in _counts(results, name) if n]
    return {
        (name, n): difference(_returns(results, name, n), _returns(results, name, 0), len(pairs))
        for name, n in pairs
    }


def _best(results: Results, name: str) -> bool | None:
    """Whether 64 options are best: no if another number is better, yes if none is better by the margin."""
    others = [n for n in _counts(results, name) if n not in (0, BEST)]
    bar = _returns(results, name, BEST)
    tests = [difference(_returns(results, name, n), bar, len(others)).above() for n in others]
    return False if True in tests else None if None in tests else True


def _counts(results: Results, name: str) -> list[int]:
    return distinct(results["runs"], "options", domain=name)


def _returns(results: Results, name: str, n: int) -> NDArray[np.float64]:
    return column(results["runs"], "mean_return", domain=name, options=n)


def _mean(results: Results, name: str, n: int, measure: str = "mean_return") -> float:
    return float(column(results["runs"], measure, domain=name, options=n).mean())


def _name(n: int) -> str:
    return f"{n} options" if n else "primitive actions"


def _numbers(counts: list[int]) -> str:
    return ", ".join(map(str, counts)) or "none"


def headline(results: Results) -> tuple[str, str]:
    """Learning in the last domain, four rooms."""
    name = distinct(results["runs"], "domain")[-1]
    ours, bare = (_mean(results, name, n) for n in (BEST, 0))
    return (
        f"{ours:.0%}",
        f"of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions, {bare:.0%} without",
    )


EXPERIMENT = experiment(
    "figure7", SETTINGS, run=run, figure=figure, claims=claims, notes=notes, closer=closer, headline=headline
)
