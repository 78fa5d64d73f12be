"""Figure 7: learning to reach a goal as eigenoptions are added, in the three domains."""

from __future__ import annotations

from typing import Any

from eigenoptions import plots
from eigenoptions.experiments.experiment import Claim, Experiment, Pmap, Results, Settings, verdict
from eigenoptions.experiments.limits import FEW, ROBUST, Difference, difference
from eigenoptions.experiments.paper.jobs import eigen, learn_all
from eigenoptions.experiments.tables import column, curves_of, distinct, learning_tables, where
from eigenoptions.mdp import maze

SETTINGS: dict[str, Settings] = {
    "paper": {
        "episodes": {"open-room": 250, "i-maze": 250, "four-rooms": 500},
        "options": [0, 2, 4, 8, 16, 32, 64, 128, 256],
        "runs": 100,
        "max_steps": 100,
        "seed": 2017,
        "block": 50,
        "every": 5,
    },
}
SETTINGS["quick"] = {
    **SETTINGS["paper"],
    "episodes": {"i-maze": 30, "four-rooms": 40},
    "options": [0, 2, 16, 64],
    "runs": 4,
    "block": 2,
}
# The number of options that the paper found best.
BEST = 64


def run(settings: Settings, pmap: Pmap) -> Results:
    """Returns with each number of options; the last is all of them, both signs."""
    scenarios, keys = [], []
    for name, episodes in settings["episodes"].items():
        most = 2 * maze(name).n_states
        for n in sorted({min(n, most) for n in settings["options"]}):
            scenarios.append(
                {"maze": name, "options": eigen(n), "episodes": episodes, "max_steps": settings["max_steps"]}
            )
            keys.append({"domain": name, "options": n})
    found = learn_all(pmap, scenarios, settings["runs"], settings["block"], settings["seed"])
    return learning_tables(keys, found, settings["every"])


def figure(results: Results) -> Any:
    """Learning curves above; below, the mean return against the number of options."""
    domains = distinct(results["runs"], "domain")
    curves: list[plots.Panel] = []
    means: list[plots.Panel] = []
    for name in domains:
        rows = where(results["curves"], domain=name)
        counts = distinct(rows, "options")
        shown = [n for n in counts if n in (0, 2, 4, FEW, BEST)] + counts[-1:]
        lines = {_name(n): where(rows, options=n) for n in dict.fromkeys(shown)}
        curves.append(
            plots.curve_panel(
                title=name,
                xlabel="episode",
                ylabel="" if curves else "return",
                **curves_of(lines),
                limits=(-0.02, 1.02),
            )
        )
        means.append(
            plots.curve_panel(
                range(len(counts)),
                {"": _stack(results, name, counts)},
                "",
                xlabel="options",
                ylabel="" if means else "mean return of a run",
                levels={"primitive actions": _returns(results, name, 0).mean()},
                ticks=[str(n) for n in counts],
                limits=(-0.02, 1.02),
                legend=not means,
            )
        )
    return plots.figure([*curves, *means], columns=len(domains), width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Which numbers of options help and which hurt."""
    return [*_compared_with_primitive_actions(results), *_compared_with_each_other(results)]


def _compared_with_primitive_actions(results: Results) -> list[Claim]:
    gain = gains(results)
    exceptions = [(name, n) for (name, n), d in gain.items() if not d.better]
    improved = len(gain) - len(exceptions)
    domains = distinct(results["runs"], "domain")
    hurt = {
        name: [n for (at, n), d in gain.items() if at == name and n <= FEW and d.worse] for name in domains
    }
    fast = {name: [n for (at, n), d in gain.items() if at == name and d.better] for name in domains}
    differences = "; ".join(
        f"{name} " + ", ".join(f"{n}: {d}" for (at, n), d in gain.items() if at == name) for name in domains
    )
    return [
        Claim(
            "In most scenarios eigenoptions improve performance.",
            "4.3",
            f"in {improved} of {len(gain)} scenarios the mean return is better than with primitive actions",
            verdict(improved > len(gain) / 2),
            f"A scenario is a domain and a number of options. Differences of the mean return: {differences}.",
        ),
        Claim(
            "Exceptions occur when only a few options are added to the agent's action set.",
            "4.3",
            "not better than primitive actions: "
            + (", ".join(f"{name} with {n}" for name, n in exceptions) or "none"),
            verdict(bool(exceptions), all(n <= FEW for _, n in exceptions)),
            f"A few are at most {FEW} options. Differences to primitive actions are in the claim above.",
        ),
        Claim(
            "Few options may hurt the agents' performance while enough options speed up learning.",
            "4",
            "; ".join(
                f"{name}: worse with {_numbers(hurt[name])}, better with {_numbers(fast[name])}"
                for name in domains
            ),
            verdict(any(hurt.values()), all(fast.values())),
            "Worse in some domain with a few options, and better in every domain with some number of them.",
        ),
    ]


def _compared_with_each_other(results: Results) -> list[Claim]:
    domains = distinct(results["runs"], "domain")
    mean = {name: {n: _returns(results, name, n).mean() for n in _counts(results, name)} for name in domains}
    top = {name: max(mean[name], key=mean[name].__getitem__) for name in domains}
    beaten = {name: _beaten(results, name) for name in domains if BEST in mean[name]}
    low = {name: min(m for n, m in mean[name].items() if n > FEW) / mean[name][top[name]] for name in domains}
    means = "; ".join(
        f"{name}: " + ", ".join(f"{m:.3f} with {n}" for n, m in mean[name].items()) for name in domains
    )
    return [
        Claim(
            "The best results were obtained using 64 options.",
            "4.3",
            "; ".join(
                f"{name}: highest with {top[name]} ({mean[name][top[name]]:.3f}"
                + (f", {mean[name][BEST]:.3f} with 64)" if BEST in mean[name] else "; it has no 64)")
                for name in domains
            ),
            verdict(*(not better for better in beaten.values())),
            "It holds in a domain if no other number of options has a mean return that is better than that "
            f"of 64 by the rule. Better: {_beaters(beaten)}. The I-Maze has 19 states and therefore only 38 "
            "eigenoptions.",
        ),
        Claim(
            "The agent's performance is fairly robust across different numbers of options.",
            "4.3",
            "; ".join(f"{name}: at least {low[name]:.0%} of the best" for name in domains),
            verdict(*(share >= ROBUST for share in low.values())),
            f"With more than {FEW} options, the lowest mean return must be at least {ROBUST:.0%} of the "
            f"highest. {means}.",
        ),
    ]


def notes(results: Results) -> list[str]:
    """Other measures of performance, and how the paper may have counted."""
    measures = {
        "mean_return": "all evaluation episodes (the measure used here)",
        "late_return": "the last tenth of them",
        "learning_return": "the learning episodes, in which the behaviour explores",
    }
    domains = distinct(results["runs"], "domain")
    best = []
    for measure, words in measures.items():
        tops = []
        for name in domains:
            mean = {n: _returns(results, name, n, measure).mean() for n in _counts(results, name)}
            high = max(mean.values())
            tops.append(f"{name} {_numbers([n for n, m in mean.items() if m >= high - 0.005])} ({high:.3f})")
        best.append(f"{words}: {', '.join(tops)}")
    return [
        "Numbers of options whose mean return is within 0.005 of the highest, by what is averaged: "
        f"{'; '.join(best)}. In the last episodes nearly all agents reach the goal: the final performance "
        "does not distinguish the numbers of options, only the speed of learning does.",
        "Two things about the paper's own counting. Its authors' published code takes the first n options, "
        "both signs counted, and labels the curve 2n: what is called 64 may have been 32. It also treats "
        "walls as states, so that the I-Maze has 64 options and more, the surplus of which do nothing. "
        "Numbers that are better than 32 by the rule: "
        f"{_beaters({name: _beaten(results, name, 32) for name in domains if 32 in _counts(results, name)})}. "
        'Over all goals the answer is different: see "Looking closer: every goal".',
    ]


def gains(results: Results) -> dict[tuple[str, int], Difference]:
    """Difference to primitive actions, for each scenario."""
    pairs = [
        (name, n) for name in distinct(results["runs"], "domain") for n in _counts(results, name) if n > 0
    ]
    return {
        (name, n): difference(_returns(results, name, n), _returns(results, name, 0), len(pairs))
        for name, n in pairs
    }


def _beaten(results: Results, name: str, best: int = BEST) -> list[int]:
    """Numbers of options that are better than `best`."""
    others = [n for n in _counts(results, name) if n not in (0, best)]
    bar = _returns(results, name, best)
    return [n for n in others if difference(_returns(results, name, n), bar, len(others)).better]


def _counts(results: Results, name: str) -> list[int]:
    return distinct(where(results["runs"], domain=name), "options")


def _returns(results: Results, name: str, n: int, measure: str = "mean_return") -> Any:
    return column(where(results["runs"], domain=name, options=n), measure)


def _stack(results: Results, name: str, counts: list[int]) -> Any:
    return [list(runs) for runs in zip(*(_returns(results, name, n) for n in counts), strict=True)]


def _name(n: int) -> str:
    return f"{n} options" if n else "primitive actions"


def _numbers(counts: list[int]) -> str:
    return ", ".join(map(str, counts)) or "none"


def _beaters(beaten: dict[str, list[int]]) -> str:
    return "; ".join(f"{name}: {_numbers(counts)}" for name, counts in beaten.items())


EXPERIMENT = Experiment(
    "figure7",
    "Figure 7: accumulating reward",
    "4.3",
    "Return of a greedy agent after each episode of Q-learning over primitive actions, averaged over 100 "
    "runs, as eigenoptions (both signs) are added to the behaviour that explores.",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=80,
)
