"""What the results of the contest mean: values per measure, ranks over domains, and the character of each method.

A method that has no options on a domain counts there as the competitor without options, which is what its user would be
left with. Where it has fewer options than a measure asks for, all it has are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.arena.jobs import NONE
from reproduction.claims import declarations
from reproduction.experiment import Results
from reproduction.tables import Row, column, distinct, groups, student, where

# Options of the facts about a method, and of the cost per step.
FEW = 8
# A place among the first or the last so many is named in the words about a method.
NAMED_PLACES = 3
# Columns of what is ranked, and where.
KEYS = ("method", "domain")


@dataclass(frozen=True)
class Value:
    """A measured value, and the ends of its interval where randomness enters (else nan)."""

    mean: float
    low: float = nan
    high: float = nan


Values = dict[tuple[str, str], Value]


@dataclass(frozen=True)
class Measure:
    """A measure: its name, its unit, a sentence about it, its values, and which end is better.

    ``against_none`` says whether a method that has no options on a domain counts as the competitor without options.
    """

    name: str
    unit: str
    about: str
    values: Callable[[Results], Values]
    higher: bool = False
    against_none: bool = True


def diffusion(results: Results, n: int, how: str) -> Values:
    """Diffusion times with n options by method and domain: median over seeds, and the lowest and highest of them."""
    found: Values = {}
    for key, rows in groups(results["rows"], *KEYS).items():
        chosen = _with(rows, n)
        # A note says why there is no finite value; other values that are missing were not measured.
        values = [inf if row["note"] else row[how] for row in chosen]
        if np.isnan(values).any():
            continue
        ends = (min(values), max(values)) if len(values) > 1 else (chosen[0]["low"], chosen[0]["high"])
        found[key] = Value(float(np.median(values)), *ends)
    return found


def returns(results: Results, n: int, how: str) -> Values:
    """Mean return of Q-learning with n options, with Student's interval over runs and seeds."""
    found: Values = {}
    for key, rows in groups(results["learning"], *KEYS).items():
        most = max((r["n"] for r in rows if r["n"] <= n), default=min(r["n"] for r in rows))
        mine = where(rows, n=most, how=how if most else "uniform")
        if mine:
            found[key] = _mean(column(mine, "mean_return"))
    return found


def online(results: Results) -> Values:
    """Steps until every state was seen: median and quartiles over seeds."""
    found: Values = {}
    for key, rows in groups(results["online"], *KEYS).items():
        steps = np.sort(column(rows, "steps"))
        # Quartiles that are no averages, because some walks may not have ended.
        at = [steps[round(q * (len(steps) - 1))] for q in (0.25, 0.5, 0.75)]
        found[key] = Value(float(at[1]), float(at[0]), float(at[2]))
    return found


def seconds(results: Results) -> Values:
    """CPU seconds of discovery."""
    rows = [row for row in results["discovery"] if isfinite(row["seconds"])]
    return {(row["method"], row["domain"]): Value(row["seconds"]) for row in rows}


def cost(results: Results) -> Values:
    """Cost per step of runs of options between cheap states; the least possible is 1."""
    found: Values = {}
    for key, rows in groups(results["rows"], *KEYS).items():
        paid = [-row["cost"] for row in _with(rows, FEW)]
        if np.isfinite(paid).any():
            found[key] = Value(float(np.nanmedian(paid)), min(paid), max(paid))
    return found


# What `kind` of a measure in ``claims.toml`` stands for.
KINDS: dict[str, Callable[..., Values]] = {
    "diffusion": diffusion,
    "returns": returns,
    "online": online,
    "cost": cost,
    "seconds": seconds,
}


def _measure(kind: str, name: str, about: str, *, unit: str = "", options: int = 0, **more: Any) -> Measure:
    """A measure as ``claims.toml`` declares it."""
    how = {"n": options, "how": more.pop("how")} if "how" in more else {}
    title, words = (text.format(options=options) for text in (name, about))
    return Measure(title, unit, words, partial(KINDS[kind], **how), **more)


MEASURES = tuple(_measure(**row) for row in declarations()["measure"])


def ranks(results: Results, measure: Measure) -> dict[str, NDArray[np.float64]]:
    """``(domains,)`` rank of each method on each domain that was measured, best 1; equal values share the mean rank."""
    from scipy.stats import rankdata

    values = measure.values(results)
    domains = [d for d in results["domains"] if any(key[1] == d for key in values)]
    names = [m for m in results["methods"] if measure.against_none or m != NONE]
    table = np.full((len(names), len(domains)), nan)
    for j, domain in enumerate(domains):
        none = values.get((NONE, domain), Value(nan)).mean if measure.against_none else nan
        x = np.array([values.get((m, domain), Value(none)).mean for m in names])
        known = ~np.isnan(x)
        if known.any():
            table[known, j] = rankdata(-x[known] if measure.higher else x[known])
    return dict(zip(names, table, strict=True))


def ranking(results: Results, measure: Measure) -> list[tuple[str, float, float]]:
    """Methods in the order of their mean rank over domains, with that rank and the mean ratio to no options."""
    values = measure.values(results)
    found = []
    for name, row in ranks(results, measure).items():
        if np.isnan(row).all():
            continue
        pairs = [
            (value.mean, values[NONE, domain].mean)
            for (method, domain), value in values.items()
            if method == name and measure.against_none and (NONE, domain) in values
        ]
        ratios = [a / b for a, b in pairs if 0 < a < inf and b > 0]
        ratio = float(np.exp(np.mean(np.log(ratios)))) if ratios and len(ratios) == len(pairs) else nan
        found.append((name, float(np.nanmean(row)), ratio))
    return sorted(found, key=lambda item: (item[1], item[0]))


def character(results: Results, method: str) -> list[str]:
    """Sentences about what a method is good and bad at, computed from the results."""
    good, bad = [], []
    for measure in MEASURES:
        order = ranking(results, measure)
        names = [name for name, _, _ in order]
        if method not in names or len(names) < 2:
            continue
        at, ratio = names.index(method), order[names.index(method)][2]
        text = f"{measure.name} ({_place(at + 1)} of {len(names)}{_against(ratio)})"
        behind = measure.against_none and at > names.index(NONE)
        if behind:
            bad.append(f"{text[:-1]}, worse than no options)")
        elif at < NAMED_PLACES:
            good.append(text)
        elif at >= len(names) - NAMED_PLACES:
            bad.append(text)
    found = [f"Good: {'; '.join(good)}." if good else "Among the first three in no measure."]
    found += [f"Weak: {'; '.join(bad)}."] if bad else []
    return [*found, *_facts(results, method)]


def _facts(results: Results, method: str) -> list[str]:
    """Where options lead and how long they are, and where there are none."""
    rows = where(results["rows"], method=method)
    known = distinct(rows, "domain")
    found = []
    if rows:
        domain = "four-rooms" if "four-rooms" in known else known[0]
        (row,) = _with(where(rows, domain=domain, seed=0), FEW)
        found.append(
            f"Its first {row['n']} options of {domain} take {row['length']:.1f} steps on average, end in "
            f"{row['stops']:.1f} states each ({row['ends']:.0f} different ones together), and may start in "
            f"{row['starts']:.0%} of the states."
        )
    refused = [
        f"{row['domain']} ({row['refused']})"
        for row in where(results["discovery"], method=method)
        if row["refused"] and row["domain"] not in known
    ]
    return [*found, f"No options: {'; '.join(refused)}."] if refused else found


def _with(rows: Sequence[Row], n: int) -> list[Row]:
    """The row with n options of each seed, or with the most below."""
    return [
        max(where(rows, seed=seed), key=lambda row: (row["n"] <= n, row["n"] if row["n"] <= n else -row["n"]))
        for seed in distinct(rows, "seed")
    ]


def _mean(x: NDArray[np.float64]) -> Value:
    half = student(x) if len(x) > 1 else nan
    return Value(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half)


def _place(n: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def _against(ratio: float) -> str:
    return "" if ratio != ratio else f", {ratio:.2g} times the value without options"
