"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits below were written down before any roll-out of this library was looked at; see `later` in the rules of
``claims.toml``.
An option *settles* if it spends at least half of the second half of its frames at one place, it *arrives* if that place
is not where it started, and it is *reliable* if it settles near one place from more than half of the starts and arrives
there from at least one (see `measures` and `study.reliable`). A claim that options do something is tested by whether
some do, in every collection, and where places are concerned by whether they do so more often than random directions.
Differences are judged by intervals, see `statistics`. That no option does something, and differences between kinds, are
concluded only from MIN_COLLECTIONS collections or more; with fewer the claim is not decided.
"""

from __future__ import annotations

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
from eigenoptions.experiments.claims import judge, note
from eigenoptions.experiments.experiment import OURS, Claim, Note, Results
from eigenoptions.experiments.limits import Difference
from eigenoptions.experiments.tables import Row

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
    many, table, first = collections_of(results), rolled(results, variant=0), results["variants"][0]
    singular, random = (chosen(table, kind=kind) for kind in ("singular", "random"))
    collected = [row for row in results["collections"] if row["variant"] == first]
    ranks = sorted({row["rank"] for row in collected})
    shown = ("arrives", "agreement", "dwell", "reach")
    effects = [
        {**row, "difference": effect_of(row).difference}
        for row in results["effects"]
        if row["against"] == "random" and row["measure"] in shown
    ]
    rolls = note(
        "rolls",
        game=results["game"],
        collections=f"{many} collection{'s' * (many != 1)}",
        starts=np.unique(table["start"]),
        frames=results["frames"],
        singular=each_of(singular),
        rank=" to ".join(f"{x:g}" for x in dict.fromkeys((ranks[0], ranks[-1]))),
        features=results["collections"][0]["features"],
        random=each_of(random),
        bases=np.unique(random["basis"]),
        acts=results["acts"],
    )
    placed = "placed" if "dwell" in results["means"][0] else "unplaced"
    kinds = [row for row in results["means"] if row["variant"] == first]
    found = [rolls, note(f"means-{placed}", kinds, way=_way_of(first))]
    found += [note("effects", effects)] if effects else []
    return [*found, note("levels", results["levels"])] if results["levels"] else found


def _way_of(variant: str) -> str:
    return "the paper's way" if variant == PAPER["name"] else variant


def _places(results: Results, words: dict[str, str]) -> tuple[list[bool | None], list[Row]]:
    """For each kind of place a test, whether options arrive there more often than random directions; and a table."""
    tests: list[bool | None] = []
    rows = []
    for name, word in words.items():
        shares = {kind: _arriving(results, kind, word) for kind in ("singular", "random")}
        gain = _arrive_more(results, word, len(words))
        exists = seen(min(shares["singular"]) > 0, results)
        tests.append(more(gain, results) if exists else exists)
        texts = {kind: ", ".join(f"{x:.1%}" for x in share) for kind, share in shares.items()}
        rows.append({"place": name, **texts, "difference": gain.difference})
    return tests, rows


def _arrive_more(results: Results, word: str, among: int) -> Effect:
    table = rolled(results, variant=0)
    there = _inside(results, table, word) & (table["arrives"] > 0)
    return effect({**table, "there": there.astype(float)}, "there", among=among)


def _montezuma(results: Results) -> list[Claim]:
    tests, rows = _places(results, {"staircases": "ladder", "ropes": "rope", "doors": "door"})
    goals = {kind: _goals(results, kind) for kind in ("singular", "random")}
    mine = [len(found) / len(GOALS) for found in goals["singular"]]
    k = min(each_of(rolled(results, variant=0, kind=kind)) for kind in goals)
    return [
        judge("montezuma-places", *tests, places=rows, rows=rows),
        judge(
            "montezuma-kulkarni",
            seen(min(mine) >= SIMILAR_SHARE, results),
            seen(max(mine) >= 0.5, results),
            similar=SIMILAR_SHARE,
            goals=GOALS,
            anywhere=sorted(set().union(*goals["singular"])),
            reached={kind: listed([*map(len, found)]) for kind, found in goals.items()},
            k=k,
            of_k=[_goals_of(results, kind, k) for kind in goals],
        ),
    ]


def _pacman(results: Results) -> list[Claim]:
    words = {"corners": "corner", "intersections": "junction"}
    tests, rows = _places(results, words)
    walk = {name: _arriving(results, "walk", word, settled=False) for name, word in words.items()}
    walks = {name: "/".join(f"{x:.1%}" for x in share) for name, share in walk.items()}
    return [judge("pacman-places", *tests, places=rows, rows=rows, walks=walks)]


def _intent(results: Results) -> Claim:
    game = results["game"]
    agrees = effect_in(results, "agreement", "random")
    own, other = level_in(results, "singular"), level_in(results, "random")
    level = Difference(own["agreement"], own["low"], own["high"])
    few = collections_of(results) < MIN_COLLECTIONS
    return judge(
        "intent",
        None if few else level.above(),
        more(agrees, results),
        part="5.2" if game in NAMES else OURS,
        game=game,
        short=NAMES.get(game, game.lower()),
        level=level,
        own=own,
        other=other,
        stays=effect_in(results, "dwell", "walk"),
    )


def _further(results: Results) -> list[Claim]:
    """Our claims: singular directions against random ones, in each variant."""
    placed = "x" in results["columns"]
    return [_ours(results, i) for i in range(len(results["variants"]))] if placed else []


def _ours(results: Results, number: int) -> Claim:
    game, variant = results["game"], results["variants"][number]
    arrives, agrees, reach = (
        effect_in(results, name, "random", variant) for name in ("arrives", "agreement", "reach")
    )
    papers = variant == PAPER["name"]
    return judge(
        "against-random",
        more(arrives, results),
        more(agrees, results),
        game=game,
        short=NAMES.get(game, game.lower()),
        number=number if number or papers else "way",
        variant="" if papers else f", {variant}",
        way=_way_of(variant),
        arrives=arrives,
        agrees=agrees,
        reach=reach,
        worse=" Singular directions do worse in both." if arrives.worse and agrees.worse else "",
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
