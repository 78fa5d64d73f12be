"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits were written down before any roll-out of this library was looked at; see `later` in the rules of
``claims.toml``.
An option *settles* if it spends at least half of the second half of its frames at one place, it *arrives* if that place
is not where it started, and it is *reliable* if it settles near one place from more than half of the starts and arrives
there from at least one (see `measures` and `study.reliable`). A claim that options do something is tested by whether
some do, in every collection, and where places are concerned by whether they do so more often than random directions.
Differences are judged by intervals, see `statistics`. That no option does something, and differences between kinds, are
concluded only from MIN_COLLECTIONS collections or more; with fewer the claim is not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import limits
from reproduction.atari.jobs import BYTES, PAPER
from reproduction.atari.measures import OPTION, Table, rarefied, region
from reproduction.atari.statistics import Effect, chosen, effect, effect_of
from reproduction.atari.study import reliable, rolled
from reproduction.claims import judge, note
from reproduction.experiment import OURS, Claim, Note, Results
from reproduction.tables import Row, where

# Collections that refute, or show a difference: one has one start set and one basis.
MIN_COLLECTIONS = 3
# Beginnings of the names of claims.
NAMES = {"Freeway": "freeway", "MontezumaRevenge": "montezuma", "MsPacman": "pacman"}
GOALS = ("central ladder", "left ladder", "right ladder", "rope", "left door", "right door", "key")


def claims(results: Results) -> list[Claim]:
    """Claims about the game of the results; of the paper's claims only where its way was taken."""
    if results["variants"][0] != PAPER["name"]:
        return _further(results)
    own = {"Freeway": _freeway, "MontezumaRevenge": _montezuma, "MsPacman": _pacman}.get(results["game"])
    placed = "x" in results["columns"]
    found = own(results) if own and placed else []
    return [*found, *([_intent(results)] if placed else []), *_further(results)]


def notes(results: Results) -> list[Note]:
    """The roll-outs, the baselines and the collections."""
    many, table, first = _collections_of(results), rolled(results, variant=0), results["variants"][0]
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
        singular=_each_of(singular),
        rank=" to ".join(f"{x:g}" for x in dict.fromkeys((ranks[0], ranks[-1]))),
        features=results["collections"][0]["features"],
        random=_each_of(random),
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
        exists = _seen(min(shares["singular"]) > 0, results)
        tests.append(_more(gain, results) if exists else exists)
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
    k = min(_each_of(rolled(results, variant=0, kind=kind)) for kind in goals)
    return [
        judge("montezuma-places", *tests, places=rows, rows=rows),
        judge(
            "montezuma-kulkarni",
            _seen(min(mine) >= limits.SIMILAR_SHARE, results),
            _seen(max(mine) >= 0.5, results),
            goals=GOALS,
            anywhere=sorted(set().union(*goals["singular"])),
            reached={kind: _listed([*map(len, found)]) for kind, found in goals.items()},
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
    agrees = _effect_in(results, "agreement", "random")
    first = {"variant": results["variants"][0]}
    own, other = (where(results["levels"], kind=kind, **first)[0] for kind in ("singular", "random"))
    level = limits.Difference(own["agreement"], own["low"], own["high"])
    few = _collections_of(results) < MIN_COLLECTIONS
    return judge(
        "intent",
        None if few else level.above(),
        _more(agrees, results),
        part="5.2" if game in NAMES else OURS,
        game=game,
        short=NAMES.get(game, game.lower()),
        level=level,
        own=own,
        other=other,
        stays=_effect_in(results, "dwell", "walk"),
    )


def _further(results: Results) -> list[Claim]:
    """Our claims: singular directions against random ones, in each variant."""
    placed = "x" in results["columns"]
    return [_ours(results, i) for i in range(len(results["variants"]))] if placed else []


def _ours(results: Results, number: int) -> Claim:
    game, variant = results["game"], results["variants"][number]
    arrives, agrees, reach = (
        _effect_in(results, name, "random", variant) for name in ("arrives", "agreement", "reach")
    )
    papers = variant == PAPER["name"]
    return judge(
        "against-random",
        _more(arrives, results),
        _more(agrees, results),
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
    return _by_collection(table, there, np.mean)


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
    many = _each_of(rolled(results, variant=0, kind=kind))
    return float(
        np.mean([rarefied(list(hits.values()), many, min(k, many)) for hits in _goals(results, kind)])
    )


def _freeway(results: Results) -> list[Claim]:
    """Claims about Freeway; that about bytes where they were tried."""
    ours = [_bytes_cross(results)] if BYTES["name"] in results.get("long_variants", []) else []
    return [_lanes(results), _heights(results), _walks(results), *_scores(results), *ours]


def _lanes(results: Results) -> Claim:
    table = rolled(results, variant=0)
    lanes = [i for i, name in enumerate(results["regions"]) if "lane" in name]
    kinds = {kind: chosen(table, kind=kind) for kind in ("singular", "random", "published")}
    found = {kind: _reliable_at(results, of, lanes) for kind, of in kinds.items()}
    mine, seeds = found["singular"], np.unique(table["collection"]).tolist()
    each = [sum(row["collection"] == c for row in mine) for c in seeds]
    different = len({row["region"] for row in mine})
    parked, starts = kinds["singular"], len(np.unique(table["start"]))
    shares = {kind: f"{len(found[kind])} of {len(of['kind']) // starts}" for kind, of in kinds.items()}
    inside = np.isin(parked["region"], lanes) & (parked["arrives"] > 0)
    return judge(
        "freeway-lane",
        _seen(min(each) > 0, results),
        _seen(different >= limits.MIN_LANES, results),
        each=_listed(each),
        many=_each_of(parked),
        lanes=f"{different} different lane{'s' * (different != 1)}",
        inside=inside.mean(),
        random=shares["random"],
        published=[shares["published"]] if len(kinds["published"]["kind"]) else [],
    )


def _heights(results: Results) -> Claim:
    table, frames = _longest(results)
    singular, random = (chosen(table, kind=kind)["height"] for kind in ("singular", "random"))
    low, high = np.quantile(singular, [0.05, 0.95])
    modal = chosen(table, kind="singular")["x"]
    bands = len(np.unique(modal[~np.isnan(modal)] // limits.LANE_HEIGHT))
    return judge(
        "freeway-heights",
        _seen(bool(high - low >= limits.LANE_HEIGHT), results),
        _seen(bands >= limits.MIN_LANES, results),
        low=low,
        high=high,
        highest=singular.max(),
        bands=bands,
        frames=frames,
        random=[(*np.quantile(random, [0.05, 0.95]), random.max())] if len(random) else [],
    )


def _walks(results: Results) -> Claim:
    table, frames = _longest(results)
    walk, singular = chosen(table, kind="walk"), chosen(table, kind="singular")["farthest"]
    reached, score = np.median(walk["farthest"]), walk["score"]
    return judge(
        "freeway-walk",
        score.max() == 0,
        reached < limits.ROAD_HEIGHT / 2,
        walks=score,
        frames=frames,
        score=score.max(),
        reached=reached,
        singular=(np.median(singular), singular.max()),
    )


def _scores(results: Results) -> list[Claim]:
    table, frames = _longest(results)
    words = {
        "random": "random directions",
        "rows": "rows of V",
        "published": "rows of V by the published program",
        "constant": "one action all the time (UP)",
        "walk": "random walks",
    }
    best = {kind: _best_of(chosen(table, kind=kind), "score") for kind in ("singular", *words)}
    mine, limit, dqn = best["singular"], limits.NEARLY * limits.PAPER_SCORE, limits.NEARLY * limits.DQN_SCORE
    last = chosen(table, kind="published")
    row445 = last["score"][last["direction"] == 445].tolist()
    # Scores never fall: a part of an episode can only pass.
    fails = False if frames >= limits.EPISODE_FRAMES else None
    common = {"part": [] if fails is False else [(limits.EPISODE_FRAMES, frames)]}
    return [
        judge(
            "freeway-445",
            *(True if score >= limit else fails for score in (min(mine), max(mine))),
            mine=_listed(mine),
            limit=limit,
            others={words[kind]: _listed(best[kind]) for kind in words if best[kind]},
            row445=[_listed(row445)] if row445 else [],
            **common,
        ),
        judge(
            "freeway-close-to-dqn",
            True if max(mine) >= dqn else fails,
            best=max(mine),
            published=max(best["published"], default=float("nan")),
            dqn=dqn,
            constant=_listed(best["constant"]),
            **common,
        ),
    ]


def _bytes_cross(results: Results) -> Claim:
    """Our claim about Freeway: with bytes the paper's protocol has options that climb the road, and score."""
    table = rolled(results, "long", variant=results["long_variants"].index(BYTES["name"]))
    kinds = [chosen(table, kind=kind) for kind in ("singular", "random")]
    high, best = ([_best_of(of, measure) for of in kinds] for measure in ("farthest", "score"))
    climbs = [mine >= limits.ROAD_HEIGHT / 2 > other for mine, other in zip(*high, strict=True)]
    scores = [mine > other for mine, other in zip(*best, strict=True)]
    return judge(
        "freeway-bytes",
        _seen(all(climbs), results),
        _seen(any(scores), results),
        high=[*map(_listed, high)],
        best=[*map(_listed, best)],
        frames=_longest(results)[1],
    )


def _reliable_at(results: Results, table: Table, regions: Sequence[int]) -> list[dict[str, Any]]:
    """Reliable options whose place lies in one of these regions."""
    if not len(table["kind"]):
        return []
    rows = [{**row, "region": region(np.array(row["place"]), results["regions"])} for row in reliable(table)]
    return [row for row in rows if row["region"] in regions]


def _collections_of(results: Results) -> int:
    return len({row["collection"] for row in results["starts"]})


def _seen(passed: bool, results: Results) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    return True if passed else False if _collections_of(results) >= MIN_COLLECTIONS else None


def _more(found: Effect, results: Results) -> bool | None:
    """Whether singular directions have more of something than others; only enough collections decide."""
    if _collections_of(results) < MIN_COLLECTIONS:
        return None
    return True if found.better else False if found.difference.above() is False else None


def _longest(results: Results) -> tuple[Table, int]:
    """Long roll-outs, where there are any, else those of the first start; and their frames."""
    if "long" in results:
        return rolled(results, "long", variant=0), int(results["long_frames"])
    return rolled(results, variant=0, start=0.0), int(results["frames"])


def _best_of(table: Table, measure: str) -> list[float]:
    """Largest value of a measure, by collection."""
    return _by_collection(table, table[measure], np.max)


def _by_collection(table: Table, values: NDArray[Any], of: Callable[[Any], Any]) -> list[float]:
    """A number of the values of each collection."""
    return [float(of(values[table["collection"] == c])) for c in np.unique(table["collection"])]


def _effect_in(results: Results, measure: str, against: str, variant: str | None = None) -> Effect:
    """Effect of singular directions against another kind; by default of the first variant."""
    name = variant or results["variants"][0]
    (row,) = where(results["effects"], variant=name, against=against, measure=measure)
    return effect_of(row)


def _each_of(table: Table) -> int:
    """Options of one collection and start."""
    first = (table["collection"] == table["collection"][0]) & (table["start"] == table["start"][0])
    return int(first.sum())


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
