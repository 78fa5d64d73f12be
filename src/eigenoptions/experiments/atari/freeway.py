"""What Section 5.2 claims about Freeway, and what we claim about its bytes; see `claims`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions.experiments.atari.evidence import (
    best_of,
    each_of,
    frames_of,
    listed,
    longest,
    seen,
    share_of,
)
from eigenoptions.experiments.atari.measures import Table, region
from eigenoptions.experiments.atari.statistics import chosen
from eigenoptions.experiments.atari.study import reliable, rolled
from eigenoptions.experiments.experiment import OURS, Claim, Results, verdict

# Points of option #445 in Freeway.
PAPER_SCORE = 28.0
# "28 points", "very close": at least this share.
NEARLY = 0.9
# Points of DQN in Freeway (Mnih et al., 2015), then the state of the art; a human tester had 29.6.
DQN_SCORE = 30.3
# Frames of an episode of Freeway.
EPISODE_FRAMES = 8_192
# Height of a lane of Freeway, and about that of the road from pavement to pavement, in units of height.
LANE_HEIGHT = 16.0
ROAD_HEIGHT = 170.0
# Lanes by which options differ, at least.
MIN_LANES = 3
# The variant with bytes for features.
BYTES_NAME = "bytes"


def freeway_claims(results: Results) -> list[Claim]:
    """Claims about Freeway; that about bytes where they were tried."""
    ours = [_bytes_cross(results)] if BYTES_NAME in results.get("long_variants", []) else []
    return [_lanes(results), _heights(results), _walks(results), *_scores(results), *ours]


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
        f"{listed(each)} of {each_of(parked)} singular options per collection go to a lane reliably, to "
        f"{len(different)} different lane{'s' * (len(different) != 1)}; from single starts {inside.mean():.1%} "
        "arrive in a lane",
        verdict(seen(min(each) > 0, results), seen(len(different) >= MIN_LANES, results)),
        f"Two tests: a reliable option with its place in a lane in every collection, and at least {MIN_LANES} "
        f"different lanes. Of random directions {share_of(found['random'], chosen(table, kind='random'))} do "
        "so" + _published_share(found["published"], chosen(table, kind="published")) + ".",
        "freeway-lane",
        "Options of the memory's bits rarely go to one lane from several starts.",
    )


def _heights(results: Results) -> Claim:
    table = longest(results)
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
        verdict(seen(bool(high - low >= LANE_HEIGHT), results), seen(lanes >= MIN_LANES, results)),
        f"From the first start of each collection, {frames_of(results)} frames. Two tests: the middle 90% of "
        f"options differ by at least a lane ({LANE_HEIGHT:g} units), and modal heights lie in at least {MIN_LANES} "
        f"bands of that size.{beside}",
        "freeway-heights",
        "With the bits of the memory a greedy option rarely leaves the lower pavement, whatever its direction.",
    )


def _walks(results: Results) -> Claim:
    table = longest(results)
    walk, singular = chosen(table, kind="walk"), chosen(table, kind="singular")
    reached = float(np.median(walk["farthest"]))
    return Claim(
        "A random walk over primitive actions does not explore the environment properly.",
        "5.2",
        f"{len(walk['kind'])} walks of {frames_of(results)} frames score {walk['score'].max():g} at most and "
        f"get {reached:.0f} units far (median), of {ROAD_HEIGHT:g}",
        verdict(bool(walk["score"].max() == 0), reached < ROAD_HEIGHT / 2),
        "Two tests: no walk crosses the road, and the median walk gets less than half across. Singular "
        f"options get {np.median(singular['farthest']):.0f} far (median), {singular['farthest'].max():.0f} "
        "at most.",
        "freeway-walk",
        "A random walk gets across the road as well.",
    )


def _scores(results: Results) -> list[Claim]:
    table = longest(results)
    best = {
        kind: best_of(chosen(table, kind=kind))
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
    others = "; ".join(f"{words[kind]} {listed(best[kind])}" for kind in words if best[kind])
    last = chosen(table, kind="published")
    row445 = last["score"][last["direction"] == 445]
    row_445 = f" Row 445 scores {listed(row445.tolist())}." if len(row445) else ""
    whole = frames_of(results) >= EPISODE_FRAMES
    part = (
        ""
        if whole
        else f" An episode has {EPISODE_FRAMES:,} frames; these are the first {frames_of(results):,} of it, in which "
        "28 points cannot be scored: --full plays whole episodes."
    )
    dqn = NEARLY * DQN_SCORE
    # Scores never fall: a part of an episode can only pass.
    enough = [True if score >= limit else (False if whole else None) for score in (min(mine), max(mine))]
    close = True if max(mine) >= dqn else (False if whole else None)
    return [
        Claim(
            "Remarkably, option #445 scores 28 points at the end of the episode.",
            "5.2",
            f"best score of a singular option: {listed(mine)} (by collection)",
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
            f"Holding UP scores {listed(best['constant'])}, so the game is a weak test of purpose.{part}",
            "freeway-close-to-dqn",
            "No singular option of the memory's bits scores at all; 28 points are close to what holding UP scores.",
        ),
    ]


def _bytes_cross(results: Results) -> Claim:
    """Our claim about Freeway: with bytes the paper's protocol has options that climb the road, and score."""
    table = rolled(results, "long", variant=results["long_variants"].index(BYTES_NAME))
    high = {kind: best_of(chosen(table, kind=kind), "farthest") for kind in ("singular", "random")}
    best = {kind: best_of(chosen(table, kind=kind)) for kind in ("singular", "random")}
    half = ROAD_HEIGHT / 2
    climbs = [mine >= half > other for mine, other in zip(*high.values(), strict=True)]
    scores = [mine > other for mine, other in zip(*best.values(), strict=True)]
    return Claim(
        "With the bytes of the memory instead of its bits, and the paper's protocol otherwise, some singular vector "
        "leads the chicken up the road, and some scores, where no random direction does (Freeway).",
        OURS,
        f"farthest of singular options {listed(high['singular'])}, of random ones {listed(high['random'])} of "
        f"{ROAD_HEIGHT:g} units; best scores {listed(best['singular'])} and {listed(best['random'])} (by collection, "
        f"{frames_of(results):,} frames)",
        verdict(seen(all(climbs), results), seen(any(scores), results)),
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


def _published_share(found: Sequence[Any], table: Table) -> str:
    return f", of rows of V by the published program {share_of(found, table)}" if len(table["kind"]) else ""
