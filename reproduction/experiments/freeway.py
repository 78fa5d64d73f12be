"""Figure 8: Freeway.

Where the chicken tends to be under highlighted options, and histograms of its height;
option #445 scores 28 points.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.atari.claims import (
    count_options,
    describe_rollouts,
    has_enough,
    is_seen,
    judge_intent,
    list_numbers,
    list_variant_claims,
    select_main,
    select_readings,
)
from reproduction.atari.measures import find_reliable
from reproduction.atari.pictures import draw_highlights
from reproduction.atari.stored import load_results
from reproduction.atari.study import run_small_study
from reproduction.claims import Claim, Finding, claim
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Lab, Results, get_tables
from reproduction.readings import ARGMAX, AUTHORS_STARTS, PUBLISHED_PROGRAM

SECTION = "5.2"
ORDER = 170
CAPTION = (
    "Stored results of python -m reproduction atari Freeway --full, unless run anew by "
    "--atari."
)

# Height of a lane, and about that of the road from pavement to pavement.
LANE_HEIGHT = 16.0
ROAD_HEIGHT = 170.0

# Lanes by which options differ, at least.
MIN_LANES = 3

# Points of option #445, and of DQN (Mnih et al., 2015). "28 points" and "very close"
# are at least this share of them.
PAPER_SCORE = 28.0
DQN_SCORE = 30.3
NEARLY = 0.9

# Frames of an episode.
EPISODE_FRAMES = 8_192


def list_jobs(*, game: str = "Freeway") -> Jobs:
    """Read the stored results."""
    return {"tables": [Job(load_results, {"game": game})]}


def tabulate_results(results: Results) -> Data:
    """The stored tables."""
    return get_tables(results["tables"])


def play_game(lab: Lab) -> Data:
    """The tables of a new, small study."""
    return run_small_study(lab, "Freeway")


def draw_figure(data: Data) -> Figure:
    """Where highlighted options end, and how long the chicken is at each height."""
    return draw_highlights(data, game="Freeway")


def write_notes(data: Data) -> Iterator[Block]:
    """How much was rolled out, and the means of all kinds."""
    return describe_rollouts(data)


@claim(
    "freeway-lane",
    "In Freeway we observe options in which the agent clearly wants to reach a "
    "specific lane in the street.",
)
def reach_specific_lane(data: Data) -> Finding:
    main = select_main(data)
    singular = main[main.kind == "singular"]

    # Options that go to one lane from more than half of the starts.
    reliable = _find_lanes(singular)
    per_collection = [
        int((reliable.collection == collection).sum())
        for collection in sorted(set(main.collection))
    ]
    n_lanes = reliable.region.nunique()
    lanes = "lane" if n_lanes == 1 else "lanes"

    # The same share of other directions.
    shares = {}
    for kind in ("random", "published"):
        rollouts = main[main.kind == kind]
        # A rollout per option and start.
        n_options = len(rollouts) // main.start.nunique()
        shares[kind] = f"{len(_find_lanes(rollouts))} of {n_options}"

    # Rollouts, whether their option is reliable or not.
    arrives = singular.region.str.contains("lane") & (singular.arrives > 0)
    return Finding(
        tests=_test_lanes(main),
        # From one start traffic cannot be told from an option that goes to a lane.
        readings={
            name: _test_lanes(table)
            for name, table in select_readings(data).items()
            if table.start.nunique() > 1
        },
        measured=f"{list_numbers(per_collection)} of {count_options(main, 'singular')} "
        f"singular options per collection go to a lane reliably, to {n_lanes} "
        f"different {lanes}; from single starts {arrives.mean():.1%} arrive in a lane",
        evidence="Two tests: a reliable option with its place in a lane in every "
        f"collection, and at least {MIN_LANES} different lanes. Of random directions "
        f"{shares['random']} do so, of rows of V by the published program "
        f"{shares['published']}.",
    )


def _find_lanes(table: pd.DataFrame) -> pd.DataFrame:
    """The reliable options whose place is in a lane."""
    options = find_reliable(table)
    return options[options.region.str.contains("lane")]


def _test_lanes(rollouts: pd.DataFrame) -> list[bool | None]:
    """Whether options go to lanes in every collection, and to several lanes."""
    enough = has_enough(rollouts)
    reliable = _find_lanes(rollouts[rollouts.kind == "singular"])
    n_collections = rollouts.collection.nunique()
    in_each = reliable.collection.nunique() == n_collections
    return [
        is_seen(in_each, enough),
        is_seen(reliable.region.nunique() >= MIN_LANES, enough),
    ]


@claim(
    "freeway-heights",
    "We can clearly see how the chicken's height varies for different options.",
)
def vary_height(data: Data) -> Finding:
    long = _select_long(data)
    enough = has_enough(data["rollouts"])
    singular = long[long.kind == "singular"]
    random = long[long.kind == "random"]
    low, high = np.quantile(singular.height, [0.05, 0.95])
    random_low, random_high = np.quantile(random.height, [0.05, 0.95])
    return Finding(
        tests=_test_heights(singular, enough),
        readings={
            name: _test_heights(table, has_enough(table))
            for name, table in _select_long_readings(data).items()
            if has_enough(table)
        },
        measured=f"mean height of an option: {low:.0f} to {high:.0f} (5% to 95% of "
        f"options), highest {singular.height.max():.0f}; modal heights in "
        f"{_count_bands(singular)} bands of {LANE_HEIGHT:g}",
        evidence=f"From the first start of each collection, {long.frames.max():,} "
        "frames. Two tests: the middle 90% of options differ by at least a lane "
        f"({LANE_HEIGHT:g} units), and modal heights lie in at least {MIN_LANES} bands "
        f"of that size. Random directions: {random_low:.0f} to {random_high:.0f}, "
        f"highest {random.height.max():.0f}.",
    )


def _test_heights(options: pd.DataFrame, enough: bool) -> list[bool | None]:
    """Whether mean heights differ by a lane, and modal heights lie in several."""
    low, high = np.quantile(options.height, [0.05, 0.95])
    return [
        is_seen(bool(high - low >= LANE_HEIGHT), enough),
        is_seen(_count_bands(options) >= MIN_LANES, enough),
    ]


def _count_bands(options: pd.DataFrame) -> int:
    """In how many bands, each as high as a lane, the modal heights lie."""
    return int((options.x.dropna() // LANE_HEIGHT).nunique())


@claim(
    "freeway-walk",
    "A random walk over primitive actions does not explore the environment properly.",
)
def explore_poorly_by_random_walk(data: Data) -> Finding:
    long = _select_long(data)
    walk = long[long.kind == "walk"]
    singular = long[long.kind == "singular"]
    most_points = walk.score.max()
    reached = walk.farthest.median()
    return Finding(
        tests=[most_points == 0, reached < ROAD_HEIGHT / 2],
        measured=f"{len(walk)} walks of {long.frames.max()} frames reach at most "
        f"{most_points:g} points and a median distance of {reached:.0f} units, of "
        f"{ROAD_HEIGHT:g}",
        evidence="Two tests: no walk crosses the road, and the median walk gets less "
        f"than half across. Singular options get {singular.farthest.median():.0f} far "
        f"(median), {singular.farthest.max():.0f} at most.",
    )


@claim(
    "freeway-445",
    "Remarkably, option #445 scores 28 points at the end of the episode.",
)
def score_28_points(data: Data) -> Finding:
    long = _select_long(data)
    scores = _find_best_scores(long)
    singular = scores["singular"]
    kinds = {
        "random": "random directions",
        "rows": "rows of V",
        "published": "rows of V by the published program",
        "constant": "one action all the time (UP)",
        "walk": "random walks",
    }
    others = [
        f"{words} {list_numbers(scores[kind])}"
        for kind, words in kinds.items()
        if kind in scores
    ]
    limit = NEARLY * PAPER_SCORE
    return Finding(
        tests=_test_points(long[long.kind == "singular"]),
        readings={
            name: _test_points(table)
            for name, table in _select_long_readings(data).items()
        },
        measured="best score of a singular option: "
        f"{list_numbers(singular)} (by collection)",
        evidence=f"Two tests: at least {limit:g} points in every collection, and in "
        f"some. Best of others: {'; '.join(others)}. The published program takes rows "
        "of V for singular vectors, so its numbers are those of memory bits; #445 is "
        f"past the rank of T. {_describe_rows(data)}{_describe_episode(long)}",
        lesson="True singular vectors of the memory's bits do not cross the road; the "
        "rows of V that the published program follows instead do, as does holding UP.",
    )


def _test_points(options: pd.DataFrame) -> list[bool | None]:
    """Whether the best option has 28 points in every collection, and in some."""
    best = options.groupby("collection").score.max()
    limit = NEARLY * PAPER_SCORE
    return [
        _test_score(best.min(), limit, options),
        _test_score(best.max(), limit, options),
    ]


@claim(
    "freeway-close-to-dqn",
    "This performance is very close to those obtained by state-of-the-art algorithms.",
)
def come_close_to_dqn(data: Data) -> Finding:
    long = _select_long(data)
    scores = _find_best_scores(long)
    best = max(scores["singular"])
    limit = NEARLY * DQN_SCORE
    return Finding(
        tests=[_test_score(best, limit, long)],
        readings={
            name: [_test_score(table.score.max(), limit, table)]
            for name, table in _select_long_readings(data).items()
        },
        measured=f"best singular option {best:g}, best of the published program "
        f"{max(scores['published']):g}, DQN {DQN_SCORE:g}",
        evidence=f"Very close: at least {limit:.1f} points, {NEARLY:.0%} of what DQN "
        "had (Mnih et al., 2015). Holding UP scores "
        f"{list_numbers(scores['constant'])}, so the game is a weak test of purpose. "
        f"{_describe_episode(long)}",
        lesson="No singular option of the memory's bits scores at all; 28 points are "
        "close to what holding UP scores.",
    )


@claim(
    "freeway-bytes",
    "With the bytes of the memory instead of its bits, and the paper's protocol "
    "otherwise, some singular vector leads the chicken up the road, and some scores, "
    "where no random direction does (Freeway).",
    section="ours",
)
def climb_road_with_bytes(data: Data) -> Finding:
    enough = has_enough(data["rollouts"])
    n_frames = _select_long(data).frames.max()
    long = data["long"][data["long"].variant == "bytes"]
    best = long.groupby(["kind", "collection"])[["farthest", "score"]].max()
    singular = best.loc["singular"]
    random = best.loc["random"]

    climbs = singular.farthest >= ROAD_HEIGHT / 2
    random_climbs = random.farthest >= ROAD_HEIGHT / 2
    return Finding(
        tests=[
            is_seen((climbs & ~random_climbs).all(), enough),
            is_seen((singular.score > random.score).any(), enough),
        ],
        measured=f"farthest of singular options {list_numbers(singular.farthest)}, of "
        f"random ones {list_numbers(random.farthest)} of {ROAD_HEIGHT:g} units; best "
        f"scores {list_numbers(singular.score)} and {list_numbers(random.score)} (by "
        f"collection, {n_frames:,} frames)",
        evidence="Two tests: in every collection a singular option gets at least half "
        "across the road and no random direction does; in some collection the best "
        "singular option has more points than the best random direction.",
    )


@claim(
    "freeway-intent",
    "Even with such a myopic action selection mechanism we were able to obtain options "
    "that clearly demonstrate intent (Freeway).",
)
def demonstrate_intent(data: Data) -> Finding:
    return judge_intent(data)


def list_further_claims(data: Data) -> Iterator[Claim]:
    """Our claims: singular directions against random ones."""
    return list_variant_claims(data, "Freeway", "freeway")


def _select_long(data: Data) -> pd.DataFrame:
    """Long roll-outs of the paper's protocol."""
    return data["long"][data["long"].variant == "paper"]


def _select_long_readings(data: Data) -> dict[str, pd.DataFrame]:
    """Long roll-outs of all options under other readings of the paper."""
    table = data["long"]
    is_singular = table.kind == "singular"
    readings = {
        ARGMAX: table[(table.variant == ARGMAX) & is_singular],
        AUTHORS_STARTS: table[(table.variant == AUTHORS_STARTS) & is_singular],
        PUBLISHED_PROGRAM: table[
            (table.variant == "paper") & (table.kind == "published")
        ],
    }
    return {name: part for name, part in readings.items() if len(part)}


def _find_best_scores(long: pd.DataFrame) -> dict[str, list[float]]:
    """The best score of each kind, by collection."""
    return {
        kind: table.groupby("collection").score.max().tolist()
        for kind, table in long.groupby("kind")
    }


def _test_score(score: float, limit: float, long: pd.DataFrame) -> bool | None:
    """Whether a score reaches a limit; undecided in a part of an episode.

    Scores never fall, so that a part of an episode can only pass.
    """
    if score >= limit:
        return True
    if long.frames.max() >= EPISODE_FRAMES:
        return False
    return None


def _describe_rows(data: Data) -> str:
    """What the rows that cross the road in collection 1 score elsewhere."""
    long = data["long"]
    rows = long[long.kind == "published"]
    others = rows[rows.variant == PUBLISHED_PROGRAM]
    from_authors = rows[rows.variant == AUTHORS_STARTS]
    if others.empty or from_authors.empty:
        return ""
    best = others.groupby("collection").score.max()
    return (
        f"Rows that cross the road in the first collection have {list_numbers(best)} "
        f"at most in others, and {from_authors.score.max():g} from the first of the "
        "authors' starts. "
    )


def _describe_episode(long: pd.DataFrame) -> str:
    """How much of an episode was played."""
    return (
        f"An episode has {EPISODE_FRAMES:,} frames, of which {long.frames.max():,} "
        "were played."
    )
