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
from eigenoptions.experiments.claims import judge
from eigenoptions.experiments.experiment import Claim, Results

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
    kinds = {kind: chosen(table, kind=kind) for kind in ("singular", "random", "published")}
    found = {kind: _reliable_at(results, of, lanes) for kind, of in kinds.items()}
    mine, seeds = found["singular"], np.unique(table["collection"]).tolist()
    each = [sum(row["collection"] == c for row in mine) for c in seeds]
    different = len({row["region"] for row in mine})
    parked, rows = kinds["singular"], kinds["published"]
    inside = np.isin(parked["region"], lanes) & (parked["arrives"] > 0)
    return judge(
        "freeway-lane",
        seen(min(each) > 0, results),
        seen(different >= MIN_LANES, results),
        each=listed(each),
        many=each_of(parked),
        lanes=f"{different} different lane{'s' * (different != 1)}",
        inside=inside.mean(),
        MIN_LANES=MIN_LANES,
        random=share_of(found["random"], kinds["random"]),
        published=[share_of(found["published"], rows)] if len(rows["kind"]) else [],
    )


def _heights(results: Results) -> Claim:
    table = longest(results)
    singular, random = (chosen(table, kind=kind)["height"] for kind in ("singular", "random"))
    low, high = np.quantile(singular, [0.05, 0.95])
    modal = chosen(table, kind="singular")["x"]
    bands = len(np.unique(modal[~np.isnan(modal)] // LANE_HEIGHT))
    return judge(
        "freeway-heights",
        seen(bool(high - low >= LANE_HEIGHT), results),
        seen(bands >= MIN_LANES, results),
        low=low,
        high=high,
        highest=singular.max(),
        bands=bands,
        LANE_HEIGHT=LANE_HEIGHT,
        MIN_LANES=MIN_LANES,
        frames=frames_of(results),
        random=[(*np.quantile(random, [0.05, 0.95]), random.max())] if len(random) else [],
    )


def _walks(results: Results) -> Claim:
    table = longest(results)
    walk, singular = chosen(table, kind="walk"), chosen(table, kind="singular")["farthest"]
    reached, score = np.median(walk["farthest"]), walk["score"]
    return judge(
        "freeway-walk",
        score.max() == 0,
        reached < ROAD_HEIGHT / 2,
        walks=score,
        frames=frames_of(results),
        score=score.max(),
        reached=reached,
        ROAD_HEIGHT=ROAD_HEIGHT,
        singular=(np.median(singular), singular.max()),
    )


def _scores(results: Results) -> list[Claim]:
    table, frames = longest(results), frames_of(results)
    words = {
        "random": "random directions",
        "rows": "rows of V",
        "published": "rows of V by the published program",
        "constant": "one action all the time (UP)",
        "walk": "random walks",
    }
    best = {kind: best_of(chosen(table, kind=kind)) for kind in ("singular", *words)}
    mine, limit, dqn = best["singular"], NEARLY * PAPER_SCORE, NEARLY * DQN_SCORE
    last = chosen(table, kind="published")
    row445 = last["score"][last["direction"] == 445].tolist()
    # Scores never fall: a part of an episode can only pass.
    fails = False if frames >= EPISODE_FRAMES else None
    common = {"part": [] if fails is False else [(EPISODE_FRAMES, frames)]}
    return [
        judge(
            "freeway-445",
            *(True if score >= limit else fails for score in (min(mine), max(mine))),
            mine=listed(mine),
            limit=limit,
            others={words[kind]: listed(best[kind]) for kind in words if best[kind]},
            row445=[listed(row445)] if row445 else [],
            **common,
        ),
        judge(
            "freeway-close-to-dqn",
            True if max(mine) >= dqn else fails,
            best=max(mine),
            published=max(best["published"], default=float("nan")),
            DQN=DQN_SCORE,
            dqn=dqn,
            NEARLY=NEARLY,
            constant=listed(best["constant"]),
            **common,
        ),
    ]


def _bytes_cross(results: Results) -> Claim:
    """Our claim about Freeway: with bytes the paper's protocol has options that climb the road, and score."""
    table = rolled(results, "long", variant=results["long_variants"].index(BYTES_NAME))
    kinds = [chosen(table, kind=kind) for kind in ("singular", "random")]
    high, best = ([best_of(of, measure) for of in kinds] for measure in ("farthest", "score"))
    climbs = [mine >= ROAD_HEIGHT / 2 > other for mine, other in zip(*high, strict=True)]
    scores = [mine > other for mine, other in zip(*best, strict=True)]
    return judge(
        "freeway-bytes",
        seen(all(climbs), results),
        seen(any(scores), results),
        high=[*map(listed, high)],
        best=[*map(listed, best)],
        ROAD_HEIGHT=ROAD_HEIGHT,
        frames=frames_of(results),
    )


def _reliable_at(results: Results, table: Table, regions: Sequence[int]) -> list[dict[str, Any]]:
    """Reliable options whose place lies in one of these regions."""
    if not len(table["kind"]):
        return []
    rows = [{**row, "region": region(np.array(row["place"]), results["regions"])} for row in reliable(table)]
    return [row for row in rows if row["region"] in regions]
