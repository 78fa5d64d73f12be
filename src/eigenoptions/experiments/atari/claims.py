"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits below were written down before any roll-out of this library was looked at; see `limits.LATER`.
An option *settles* if it spends at least half of the second half of its frames at one place, it *arrives* if that place
is not where it started, and it is *reliable* if it settles near one place from more than half of the starts and arrives
there from at least one (see `measures` and `study.reliable`). A claim that options do something is tested by whether
some do, in every collection, and where places are concerned by whether they do so more often than random directions.
Differences are judged by intervals, see `statistics`. That no option does something, and differences between kinds, are
concluded only from MIN_COLLECTIONS collections or more; with fewer the claim is not decided.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eigenoptions.experiments.atari.evidence import (
    MIN_COLLECTIONS,
    collections_of,
    each_of,
    effect_in,
    level_in,
    listed,
    more,
    seen,
)
from eigenoptions.experiments.atari.freeway import freeway_claims
from eigenoptions.experiments.atari.jobs import PAPER
from eigenoptions.experiments.atari.measures import OPTION, Table, rarefied
from eigenoptions.experiments.atari.statistics import Effect, chosen, effect, effect_of
from eigenoptions.experiments.atari.study import rolled
from eigenoptions.experiments.experiment import OURS, Claim, Note, Results, verdict
from eigenoptions.experiments.limits import Difference

# "Very similar": share of Kulkarni's goals at which options settle.
SIMILAR_SHARE = 0.8
# Beginnings of the names of claims.
NAMES = {"Freeway": "freeway", "MontezumaRevenge": "montezuma", "MsPacman": "pacman"}
GOALS = ("central ladder", "left ladder", "right ladder", "rope", "left door", "right door", "key")


def claims(results: Results) -> list[Claim]:
    """Claims about the game of the results; of the paper's claims only where its way was taken."""
    if results["variants"][0] != PAPER["name"]:
        return _further(results)
    own = {"Freeway": freeway_claims, "MontezumaRevenge": _montezuma, "MsPacman": _pacman}.get(
        results["game"]
    )
    placed = "x" in results["columns"]
    found = own(results) if own and placed else []
    return [*found, *([_intent(results)] if placed else []), *_further(results)]


def notes(results: Results) -> list[Note]:
    """The roll-outs, the baselines and the collections."""
    game, many = results["game"], collections_of(results)
    table, first = rolled(results, variant=0), results["variants"][0]
    singular, random = (chosen(table, kind=kind) for kind in ("singular", "random"))
    ranks = [row["rank"] for row in results["collections"] if row["variant"] == first]
    kinds = [
        {
            "kind": row["kind"],
            "stay at one place": f"{row['dwell']:.2f}" if "dwell" in row else "",
            "arrive": f"{row['arrives']:.1%}" if "arrives" in row else "",
            "places": f"{row['places']:.0f}" if "places" in row else "",
            "died": f"{row['died']:.0%}",
            "score": f"{row['score']:.3g}",
            "no positive action": f"{row['stopped']:.0%}",
        }
        for row in results["means"]
        if row["variant"] == first
    ]
    effects = [
        {
            "variant": row["variant"],
            "singular against": row["against"],
            "measure": row["measure"],
            "difference": str(effect_of(row).difference),
            "above": f"{row['above']} of {row['groups']} bases",
        }
        for row in results["effects"]
        if row["against"] == "random" and row["measure"] in ("arrives", "agreement", "dwell", "reach")
    ]
    levels = [
        {
            "variant": row["variant"],
            "kind": row["kind"],
            "agreement across starts": f"{row['agreement']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})",
            "reliable": f"{row['reliable']:.1%} of {row['options']}",
        }
        for row in results["levels"]
    ]
    text = (
        f"{game}: {many} collection{'s' * (many != 1)} of transitions, {len(np.unique(table['start']))} "
        f"starts each, {results['frames']} frames per roll-out. From each start {each_of(singular)} singular "
        f"options (both signs; T has rank {_range(ranks)} of {results['collections'][0]['features']}) and "
        f"{each_of(random)} of {len(np.unique(random['basis']))} random bases. {results['acts']:,} frames were "
        "emulated."
    )
    found: list[Note] = [text, (f"Means by kind, {_way_of(first)}:", kinds)]
    found += [("Singular against random directions:", effects)] if effects else []
    found += [("Agreement and reliable options:", levels)] if levels else []
    return found


def _way_of(variant: str) -> str:
    return "the paper's way" if variant == PAPER["name"] else variant


def _places(results: Results, words: dict[str, str]) -> tuple[list[bool | None], list[dict[str, str]]]:
    """For each kind of place a test, whether options arrive there more often than random directions; and a table."""
    tests: list[bool | None] = []
    rows = []
    for name, word in words.items():
        shares = {kind: _arriving(results, kind, word) for kind in ("singular", "random")}
        gain = _arrive_more(results, word, len(words))
        exists = seen(min(shares["singular"]) > 0, results)
        tests.append(more(gain, results) if exists else exists)
        row = {"roll-outs that arrive at": name}
        row |= {f"{kind} directions": _percent(share) for kind, share in shares.items()}
        rows.append(row | {"difference": str(gain.difference)})
    return tests, rows


def _arrive_more(results: Results, word: str, among: int) -> Effect:
    table = rolled(results, variant=0)
    there = _inside(results, table, word) & (table["arrives"] > 0)
    return effect({**table, "there": there.astype(float)}, "there", among=among)


def _percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{x:.1%}" for x in shares)


def _montezuma(results: Results) -> list[Claim]:
    words = {"staircases": "ladder", "ropes": "rope", "doors": "door"}
    tests, rows = _places(results, words)
    goals = {kind: _goals(results, kind) for kind in ("singular", "random")}
    mine = [len(found) / len(GOALS) for found in goals["singular"]]
    k = min(each_of(rolled(results, variant=0, kind=kind)) for kind in goals)
    anywhere = sorted(set().union(*goals["singular"]))
    return [
        Claim(
            "In Montezuma's Revenge the agent has the clear intent of reaching particular positions on the "
            "screen, such as staircases, ropes and doors.",
            "5.2",
            "roll-outs that arrive there: "
            + ", ".join(f"{r['roll-outs that arrive at']} {r['singular directions']}" for r in rows),
            verdict(*tests),
            "Three tests, one each for staircases, ropes and doors: some option arrives there in every collection, and "
            "more often than random directions do.",
            "montezuma-places",
            "Options of the memory's bits reach ladders and ropes now and then, and random directions do so as often.",
            rows,
        ),
        Claim(
            "The options we discover are very similar to those handcrafted by Kulkarni et al. (2016).",
            "5.2",
            f"singular options arrive at {listed([len(found) for found in goals['singular']])} of their "
            f"{len(GOALS)} goals by collection ({', '.join(anywhere) or 'none'})",
            verdict(seen(min(mine) >= SIMILAR_SHARE, results), seen(max(mine) >= 0.5, results)),
            f"Goals: {', '.join(GOALS)}. Two tests: {SIMILAR_SHARE:.0%} of them in every collection, half of them "
            f"in some. Random directions arrive at {listed([len(found) for found in goals['random']])}. Of "
            f"as many options ({k}) singular ones arrive at {_goals_of(results, 'singular', k):.1f} goals, "
            f"random ones at {_goals_of(results, 'random', k):.1f} (mean over choices of them).",
            "montezuma-kulkarni",
            "Fewer than half of the goals chosen by hand are reached, and random directions reach more.",
        ),
    ]


def _pacman(results: Results) -> list[Claim]:
    words = {"corners": "corner", "intersections": "junction"}
    tests, rows = _places(results, words)
    walk = {name: _arriving(results, "walk", word, settled=False) for name, word in words.items()}
    return [
        Claim(
            "In Ms. Pac-Man the agent has the clear intent of reaching particular positions in the screen, "
            "such as corners and intersections.",
            "Appendix E",
            "roll-outs that arrive there: "
            + ", ".join(f"{r['roll-outs that arrive at']} {r['singular directions']}" for r in rows),
            verdict(*tests),
            "Two tests, one for corners and one for intersections: some option arrives there in every collection, and "
            f"more often than random directions do. Modal places of random walks, settled or not: {_named(walk)}.",
            "pacman-places",
            "Options do end in corners and at intersections, and random directions end there as often.",
            rows,
        )
    ]


def _intent(results: Results) -> Claim:
    game = results["game"]
    stays, agrees = effect_in(results, "dwell", "walk"), effect_in(results, "agreement", "random")
    own, other = level_in(results, "singular"), level_in(results, "random")
    level = Difference(own["agreement"], own["low"], own["high"])
    few = collections_of(results) < MIN_COLLECTIONS
    return Claim(
        "Even with such a myopic action selection mechanism we were able to obtain options that clearly "
        f"demonstrate intent ({game}).",
        "5.2" if game in NAMES else OURS,
        f"agreement across starts {level}, random directions {other['agreement']:+.3f}",
        verdict(None if few else level.above(), more(agrees, results)),
        "Two tests: from two starts an option's places are near each other more often than those of two different "
        "options "
        "(agreement above 0), and more so than for random directions. "
        f"{own['reliable']:.1%} of {own['options']} options are reliable, of random ones {other['reliable']:.1%}. "
        "Time at "
        f"the modal place, options against random walks: {stays}.",
        f"{NAMES.get(game, game.lower())}-intent",
        "Options stop somewhere because a myopic agent gets stuck; options of random directions do so as well.",
    )


def _further(results: Results) -> list[Claim]:
    """Our claims: singular directions against random ones, in each variant."""
    placed = "x" in results["columns"]
    return [_ours(results, variant) for variant in results["variants"]] if placed else []


def _ours(results: Results, variant: str) -> Claim:
    game = results["game"]
    arrives, agrees = (effect_in(results, name, "random", variant) for name in ("arrives", "agreement"))
    reach = effect_in(results, "reach", "random", variant)
    papers = variant == PAPER["name"]
    way = "" if papers else f", {variant}"
    number = results["variants"].index(variant)
    return Claim(
        f"Singular directions reach particular places better than random directions ({game}{way}).",
        OURS,
        f"share of options that arrive: {arrives.difference}; agreement across starts: {agrees.difference}",
        verdict(more(arrives, results), more(agrees, results)),
        "The paper has no such baseline. Two tests, the intervals of both held together: more options "
        "arrive, and they agree more across starts; each must hold in every collection too. Above "
        f"{arrives.above} and {agrees.above} of {arrives.groups} random bases. Different places that as "
        f"many options arrive at: {reach}."
        + (" Singular directions do worse in both." if arrives.worse and agrees.worse else ""),
        f"{NAMES.get(game, game.lower())}-ours-{number if number or papers else 'way'}",
        f"Followed in {_way_of(variant)}, singular directions are no better than random ones.",
    )


def _inside(results: Results, table: Table, word: str) -> NDArray[np.bool_]:
    """Which roll-outs have their modal place in a region with this word."""
    wanted = [i for i, name in enumerate(results["regions"]) if word in name]
    return np.isin(table["region"], wanted)


def _arriving(results: Results, kind: str, word: str, settled: bool = True) -> list[float]:
    """Share of roll-outs, by collection, that arrive (unless `settled`: are mostly) in a region with this word."""
    table = rolled(results, variant=0, kind=kind)
    there = _inside(results, table, word) & ((table["arrives"] > 0) | (not settled))
    return [float(there[table["collection"] == c].mean()) for c in np.unique(table["collection"])]


def _goals(results: Results, kind: str) -> list[dict[str, int]]:
    """By collection, at which of Kulkarni's goals options arrive from some start, and how many of them."""
    table = rolled(results, variant=0, kind=kind, arrives=1.0)
    found = []
    for c in np.unique(rolled(results, variant=0, kind=kind)["collection"]):
        part = chosen(table, collection=c)
        at = {goal: np.stack([part[key][_inside(results, part, goal)] for key in OPTION]) for goal in GOALS}
        found.append({goal: len(np.unique(keys, axis=1).T) for goal, keys in at.items() if keys.size})
    return found


def _goals_of(results: Results, kind: str, k: int) -> float:
    """How many of the goals k options arrive at from some start, on average over choices of k and collections."""
    many = each_of(rolled(results, variant=0, kind=kind))
    return float(
        np.mean([rarefied(list(hits.values()), many, min(k, many)) for hits in _goals(results, kind)])
    )


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _named(shares: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {'/'.join(f'{x:.1%}' for x in share)}" for name, share in shares.items())
