"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits below were written down before any roll-out of this library was looked at; `KNOWN` is what was known then.
An option *settles* if it spends at least half of the second half of its frames at one place, it *arrives* if that place
is not where it started, and it is *reliable* if it settles near one place from more than half of the starts and arrives
there from at least one (see `measures` and `study.reliable`). A claim that options do something is tested by whether
some do, in every collection, and where places are concerned by whether they do so more often than random directions.
Differences are judged by intervals, see `statistics`. That no option does something, and differences between kinds, are
concluded only from MIN_COLLECTIONS collections or more; with fewer the claim is not decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.experiments.atari.jobs import PAPER
from eigenoptions.experiments.atari.measures import OPTION, Table, rarefied, region
from eigenoptions.experiments.atari.statistics import Effect, chosen, effect, effect_of
from eigenoptions.experiments.atari.study import reliable, rolled
from eigenoptions.experiments.experiment import OURS, Claim, Note, Results, verdict
from eigenoptions.experiments.limits import Difference

# Points of option #445 in Freeway.
PAPER_SCORE = 28.0
# "28 points", "very close": at least this share.
NEARLY = 0.9
# Points of DQN in Freeway (Mnih et al., 2015), then the state of the art; a human tester had 29.6.
DQN_SCORE = 30.3
# Collections that refute, or show a difference: one has one start set and one basis.
MIN_COLLECTIONS = 3
# Frames of an episode of Freeway.
EPISODE_FRAMES = 8_192
# Height of a lane of Freeway, and about that of the road from pavement to pavement, in units of height.
LANE_HEIGHT = 16.0
ROAD_HEIGHT = 170.0
# Lanes by which options differ, at least.
MIN_LANES = 3
# "Very similar": share of Kulkarni's goals at which options settle.
SIMILAR_SHARE = 0.8
# The variant with bytes for features.
BYTES_NAME = "bytes"
# Beginnings of the names of claims.
NAMES = {"Freeway": "freeway", "MontezumaRevenge": "montezuma", "MsPacman": "pacman"}
GOALS = ("central ladder", "left ladder", "right ladder", "rope", "left door", "right door", "key")
KNOWN = (
    "Of the Atari games, one collection and start of each had been looked at by another program (with other "
    "measures) when the limits were set: Freeway's scores with true singular vectors (0), rows of V (up to "
    "27) and always UP (21), and that one random basis behaved much like the singular one.",
    "Ways other than the paper's were chosen after a trial with one collection per game, other starts, fewer "
    "actions and other measures; there slow features (Freeway) and planning with gamma 0.9 from the "
    "smallest singular values (the other two games) did better than random directions, and the rest did "
    "not. The seeds here are other ones.",
)


def claims(results: Results) -> list[Claim]:
    """Claims about the game of the results; of the paper's claims only where its way was taken."""
    if results["variants"][0] != PAPER["name"]:
        return _further(results)
    own = {"Freeway": _freeway, "MontezumaRevenge": _montezuma, "MsPacman": _pacman}.get(results["game"])
    placed = "x" in results["columns"]
    found = own(results) if own and placed else []
    crosses = [_bytes_cross(results)] if _has_bytes(results) else []
    return [*found, *([_intent(results)] if placed else []), *_further(results), *crosses]


def notes(results: Results) -> list[Note]:
    """The roll-outs, the baselines and the collections."""
    game, many = results["game"], _collections(results)
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
        f"starts each, {results['frames']} frames per roll-out. From each start {_each(singular)} singular "
        f"options (both signs; T has rank {_range(ranks)} of {results['collections'][0]['features']}) and "
        f"{_each(random)} of {len(np.unique(random['basis']))} random bases. {results['acts']:,} frames were emulated."
    )
    tables: list[Note] = [(f"Means by kind, {_way_of(first)}:", kinds)]
    tables += [("Singular against random directions:", effects)] if effects else []
    tables += [("Agreement and reliable options:", levels)] if levels else []
    return [text, *tables, *(f"Known beforehand: {line}" for line in KNOWN)]


def _way_of(variant: str) -> str:
    return "the paper's way" if variant == PAPER["name"] else variant


def _collections(results: Results) -> int:
    return len({row["collection"] for row in results["starts"]})


def _seen(passed: bool, results: Results) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    return True if passed else False if _collections(results) >= MIN_COLLECTIONS else None


def _more(found: Effect, results: Results) -> bool | None:
    """Whether singular directions have more of something than others; only enough collections decide."""
    if _collections(results) < MIN_COLLECTIONS:
        return None
    return True if found.better else False if found.difference.above() is False else None


def _places(results: Results, words: dict[str, str]) -> tuple[list[bool | None], list[dict[str, str]]]:
    """For each kind of place a test, whether options arrive there more often than random directions; and a table."""
    tests: list[bool | None] = []
    rows = []
    for name, word in words.items():
        shares = {kind: _arriving(results, kind, word) for kind in ("singular", "random")}
        more = _arrive_more(results, word, len(words))
        exists = _seen(min(shares["singular"]) > 0, results)
        tests.append(_more(more, results) if exists else exists)
        row = {"roll-outs that arrive at": name}
        row |= {f"{kind} directions": _percent(share) for kind, share in shares.items()}
        rows.append(row | {"difference": str(more.difference)})
    return tests, rows


def _arrive_more(results: Results, word: str, among: int) -> Effect:
    table = rolled(results, variant=0)
    wanted = [i for i, name in enumerate(results["regions"]) if word in name]
    there = np.isin(table["region"], wanted) & (table["arrives"] > 0)
    return effect({**table, "there": there.astype(float)}, "there", among=among)


def _percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{x:.1%}" for x in shares)


def _freeway(results: Results) -> list[Claim]:
    return [_lanes(results), _heights(results), _walks(results), *_scores(results)]


def _lanes(results: Results) -> Claim:
    table = rolled(results, variant=0)
    lanes = [i for i, name in enumerate(results["regions"]) if "lane" in name]
    found = {
        kind: _reliable_at(results, chosen(table, kind=kind), lanes)
        for kind in ("singular", "random", "published")
    }
    mine, seeds = found["singular"], np.unique(table["collection"]).tolist()
    each = [sum(row["collection"] == c for row in mine) for c in seeds]
    different = {row["region"] for row in mine}
    parked = chosen(table, kind="singular")
    inside = np.isin(parked["region"], lanes) & (parked["arrives"] > 0)
    return Claim(
        "In Freeway we observe options in which the agent clearly wants to reach a specific lane in the "
        "street.",
        "5.2",
        f"{_list(each)} of {_each(parked)} singular options per collection go to a lane reliably, to "
        f"{len(different)} different lane{'s' * (len(different) != 1)}; from single starts {inside.mean():.1%} "
        "arrive in a lane",
        verdict(_seen(min(each) > 0, results), _seen(len(different) >= MIN_LANES, results)),
        f"Two tests: a reliable option with its place in a lane in every collection, and at least {MIN_LANES} "
        f"different lanes. Of random directions {_share(found['random'], chosen(table, kind='random'))} do "
        "so" + _published_share(found["published"], chosen(table, kind="published")) + ".",
        "freeway-lane",
    )


def _heights(results: Results) -> Claim:
    table = _longest(results)
    singular = chosen(table, kind="singular")
    low, high = np.quantile(singular["height"], [0.05, 0.95])
    modal = singular["x"][~np.isnan(singular["x"])]
    lanes = len(np.unique(modal // LANE_HEIGHT))
    random = chosen(table, kind="random")
    beside = ""
    if len(random["kind"]):
        a, b = np.quantile(random["height"], [0.05, 0.95])
        beside = f" Random directions: {a:.0f} to {b:.0f}, highest {random['height'].max():.0f}."
    return Claim(
        "We can clearly see how the chicken's height varies for different options.",
        "5.2",
        f"mean height of an option: {low:.0f} to {high:.0f} (5% to 95% of options), highest "
        f"{singular['height'].max():.0f}; modal heights in {lanes} bands of {LANE_HEIGHT:g}",
        verdict(_seen(bool(high - low >= LANE_HEIGHT), results), _seen(lanes >= MIN_LANES, results)),
        f"From the first start of each collection, {_frames(results)} frames. Two tests: the middle 90% of "
        f"options differ by at least a lane ({LANE_HEIGHT:g} units), and modal heights lie in at least {MIN_LANES} "
        f"bands of that size.{beside}",
        "freeway-heights",
        "With the bits of the memory a greedy option rarely leaves the lower pavement, whatever its direction.",
    )


def _walks(results: Results) -> Claim:
    table = _longest(results)
    walk, singular = chosen(table, kind="walk"), chosen(table, kind="singular")
    reached = float(np.median(walk["farthest"]))
    return Claim(
        "A random walk over primitive actions does not explore the environment properly.",
        "5.2",
        f"{len(walk['kind'])} walks of {_frames(results)} frames score {walk['score'].max():g} at most and "
        f"get {reached:.0f} units far (median), of {ROAD_HEIGHT:g}",
        verdict(bool(walk["score"].max() == 0), reached < ROAD_HEIGHT / 2),
        "Two tests: no walk crosses the road, and the median walk gets less than half across. Singular "
        f"options get {np.median(singular['farthest']):.0f} far (median), {singular['farthest'].max():.0f} "
        "at most.",
        "freeway-walk",
    )


def _scores(results: Results) -> list[Claim]:
    table = _longest(results)
    best = {
        kind: _best(chosen(table, kind=kind))
        for kind in ("singular", "random", "rows", "published", "constant", "walk")
    }
    mine, limit = best["singular"], NEARLY * PAPER_SCORE
    words = {
        "random": "random directions",
        "rows": "rows of V",
        "published": "rows of V by the published program",
        "constant": "one action all the time (UP)",
        "walk": "random walks",
    }
    others = "; ".join(f"{words[kind]} {_list(best[kind])}" for kind in words if best[kind])
    last = chosen(table, kind="published")
    row445 = last["score"][last["direction"] == 445]
    row_445 = f" Row 445 scores {_list(row445.tolist())}." if len(row445) else ""
    whole = _frames(results) >= EPISODE_FRAMES
    part = (
        ""
        if whole
        else f" An episode has {EPISODE_FRAMES:,} frames; these are the first {_frames(results):,} of it, in which 28 "
        "points cannot be scored: --full plays whole episodes."
    )
    dqn = NEARLY * DQN_SCORE
    # Scores never fall: a part of an episode can only pass.
    enough = [True if score >= limit else (False if whole else None) for score in (min(mine), max(mine))]
    close = True if max(mine) >= dqn else (False if whole else None)
    return [
        Claim(
            "Remarkably, option #445 scores 28 points at the end of the episode.",
            "5.2",
            f"best score of a singular option: {_list(mine)} (by collection)",
            verdict(*enough),
            f"Two tests: at least {limit:g} points in every collection, and in some. Best of others: "
            f"{others}.{row_445} The published program takes rows of V for singular vectors, so its numbers "
            f"are those of memory bits; #445 is past the rank of T.{part}",
            "freeway-445",
            "True singular vectors of the memory's bits do not cross the road; the rows of V that the published "
            "program "
            "follows instead do, as does holding UP.",
        ),
        Claim(
            "This performance is very close to those obtained by state-of-the-art algorithms.",
            "5.2",
            f"best singular option {max(mine):g}, best of the published program "
            f"{max(best['published'], default=float('nan')):g}, DQN {DQN_SCORE:g}",
            verdict(close),
            f"Very close: at least {dqn:.1f} points, {NEARLY:.0%} of what DQN had (Mnih et al., 2015). "
            f"Holding UP scores {_list(best['constant'])}, so the game is a weak test of purpose.{part}",
            "freeway-close-to-dqn",
            "No singular option of the memory's bits scores at all; 28 points are close to what holding UP scores.",
        ),
    ]


def _montezuma(results: Results) -> list[Claim]:
    words = {"staircases": "ladder", "ropes": "rope", "doors": "door"}
    tests, rows = _places(results, words)
    goals = {kind: _goals(results, kind) for kind in ("singular", "random")}
    mine = [len(found) / len(GOALS) for found in goals["singular"]]
    k = min(_each(rolled(results, variant=0, kind=kind)) for kind in goals)
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
            f"singular options arrive at {_list([len(found) for found in goals['singular']])} of their "
            f"{len(GOALS)} goals by collection ({', '.join(anywhere) or 'none'})",
            verdict(_seen(min(mine) >= SIMILAR_SHARE, results), _seen(max(mine) >= 0.5, results)),
            f"Goals: {', '.join(GOALS)}. Two tests: {SIMILAR_SHARE:.0%} of them in every collection, half of them "
            f"in some. Random directions arrive at {_list([len(found) for found in goals['random']])}. Of "
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
    stays, agrees = _effect(results, "dwell", "walk"), _effect(results, "agreement", "random")
    own, other = _level(results, "singular"), _level(results, "random")
    level = Difference(own["agreement"], own["low"], own["high"])
    few = _collections(results) < MIN_COLLECTIONS
    return Claim(
        "Even with such a myopic action selection mechanism we were able to obtain options that clearly "
        f"demonstrate intent ({game}).",
        "5.2" if game in NAMES else OURS,
        f"agreement across starts {level}, random directions {other['agreement']:+.3f}",
        verdict(None if few else level.above(), _more(agrees, results)),
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
    arrives, agrees = (_effect(results, name, "random", variant) for name in ("arrives", "agreement"))
    reach = _effect(results, "reach", "random", variant)
    papers = variant == PAPER["name"]
    way = "" if papers else f", {variant}"
    number = results["variants"].index(variant)
    return Claim(
        f"Singular directions reach particular places better than random directions ({game}{way}).",
        OURS,
        f"share of options that arrive: {arrives.difference}; agreement across starts: {agrees.difference}",
        verdict(_more(arrives, results), _more(agrees, results)),
        "The paper has no such baseline. Two tests, the intervals of both held together: more options "
        "arrive, and they agree more across starts; each must hold in every collection too. Above "
        f"{arrives.above} and {agrees.above} of {arrives.groups} random bases. Different places that as "
        f"many options arrive at: {reach}."
        + (" Singular directions do worse in both." if arrives.worse and agrees.worse else ""),
        f"{NAMES.get(game, game.lower())}-ours-{number if number or papers else 'way'}",
        f"Followed in {_way_of(variant)}, singular directions are no better than random ones.",
    )


def _has_bytes(results: Results) -> bool:
    return BYTES_NAME in results.get("long_variants", [])


def _bytes_cross(results: Results) -> Claim:
    """Our claim about Freeway: with bytes the paper's protocol has options that climb the road, and score."""
    table = rolled(results, "long", variant=results["long_variants"].index(BYTES_NAME))
    high = {kind: _best(chosen(table, kind=kind), "farthest") for kind in ("singular", "random")}
    best = {kind: _best(chosen(table, kind=kind)) for kind in ("singular", "random")}
    half = ROAD_HEIGHT / 2
    climbs = [mine >= half > other for mine, other in zip(*high.values(), strict=True)]
    scores = [mine > other for mine, other in zip(*best.values(), strict=True)]
    return Claim(
        "With the bytes of the memory instead of its bits, and the paper's protocol otherwise, some singular vector "
        "leads the chicken up the road, and some scores, where no random direction does (Freeway).",
        OURS,
        f"farthest of singular options {_list(high['singular'])}, of random ones {_list(high['random'])} of "
        f"{ROAD_HEIGHT:g} units; best scores {_list(best['singular'])} and {_list(best['random'])} (by collection, "
        f"{_frames(results):,} frames)",
        verdict(_seen(all(climbs), results), _seen(any(scores), results)),
        "Two tests: in every collection a singular option gets at least half across the road and no random direction "
        "does; in some collection the best singular option has more points than the best random direction.",
        "freeway-bytes",
        "Bits hide the height of the chicken behind binary carries; on bytes the same protocol does not get stuck.",
    )


def _reliable_at(results: Results, table: Table, regions: Sequence[int]) -> list[dict[str, Any]]:
    """Reliable options whose place lies in one of these regions."""
    if not len(table["kind"]):
        return []
    rows = [{**row, "region": region(np.array(row["place"]), results["regions"])} for row in reliable(table)]
    return [row for row in rows if row["region"] in regions]


def _arriving(results: Results, kind: str, word: str, settled: bool = True) -> list[float]:
    """Share of roll-outs, by collection, that arrive (unless `settled`: are mostly) in a region with this word."""
    table = rolled(results, variant=0, kind=kind)
    wanted = [i for i, name in enumerate(results["regions"]) if word in name]
    there = np.isin(table["region"], wanted) & ((table["arrives"] > 0) | (not settled))
    return [float(there[table["collection"] == c].mean()) for c in np.unique(table["collection"])]


def _goals(results: Results, kind: str) -> list[set[str]]:
    """Kulkarni's goals at which some option arrives from some start, by collection."""
    table = rolled(results, variant=0, kind=kind)
    names, there = _names(results, table), table["arrives"] > 0
    return [
        {name for name in GOALS if ((names == name) & there & (table["collection"] == c)).any()}
        for c in np.unique(table["collection"])
    ]


def _goals_of(results: Results, kind: str, k: int) -> float:
    """How many of the goals k options arrive at from some start, on average over choices of k and collections."""
    table = rolled(results, variant=0, kind=kind)
    names, there = _names(results, table), table["arrives"] > 0
    found = []
    for c in np.unique(table["collection"]):
        inside = table["collection"] == c
        options = np.stack([table[key] for key in OPTION])[:, inside]
        n = len(np.unique(options, axis=1).T)
        hits = [
            len(np.unique(options[:, (names == name)[inside] & there[inside]], axis=1).T) for name in GOALS
        ]
        found.append(rarefied(hits, n, min(k, n)))
    return float(np.mean(found))


def _names(results: Results, table: Table) -> NDArray[Any]:
    names: NDArray[Any] = np.array(["", *results["regions"]])
    found: NDArray[Any] = names[table["region"].astype(int) + 1]
    return found


def _longest(results: Results) -> Table:
    """Long roll-outs, where there are any; else those of the first start."""
    name, first = ("long", {}) if "long" in results else ("rollouts", {"start": 0.0})
    return rolled(results, name, variant=0, **first)


def _frames(results: Results) -> int:
    return int(results.get("long_frames") or results["frames"])


def _best(table: Table, measure: str = "score") -> list[float]:
    return [float(table[measure][table["collection"] == c].max()) for c in np.unique(table["collection"])]


def _effect(results: Results, measure: str, against: str, variant: str | None = None) -> Effect:
    wanted = (variant or results["variants"][0], against, measure)
    (row,) = (r for r in results["effects"] if (r["variant"], r["against"], r["measure"]) == wanted)
    return effect_of(row)


def _level(results: Results, kind: str) -> dict[str, Any]:
    wanted = (results["variants"][0], kind)
    (row,) = (r for r in results["levels"] if (r["variant"], r["kind"]) == wanted)
    return dict(row)


def _each(table: Table) -> int:
    """Options of one collection and start."""
    first = (table["collection"] == table["collection"][0]) & (table["start"] == table["start"][0])
    return int(first.sum())


def _share(found: Sequence[Any], table: Table) -> str:
    starts = len(np.unique(table["start"]))
    return f"{len(found)} of {len(table['kind']) // starts}"


def _published_share(found: Sequence[Any], table: Table) -> str:
    return f", of rows of V by the published program {_share(found, table)}" if len(table["kind"]) else ""


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _named(shares: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {'/'.join(f'{x:.1%}' for x in share)}" for name, share in shares.items())
