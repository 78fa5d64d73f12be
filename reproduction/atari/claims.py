"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits were written down before any roll-out of this library was looked at. An option *settles* if it spends at
least half of the second half of its frames at one place, it *arrives* if that place is not where it started, and it is
*reliable* if it settles near one place from more than half of the starts and arrives there from at least one (see
`measures`). A claim that options do something is tested by whether some do, in every collection, and where places are
concerned by whether they do so more often than random directions. That no option does something, and differences
between kinds, are concluded only from three collections or more; with fewer the claim is not decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from reproduction.atari.measures import (
    Effect,
    compare_with_random,
    find_reliable,
    mean_agreement,
)
from reproduction.lab import Block, Claim, Data

# Collections that refute, or show a difference: one has one set of starts and one basis.
MIN_COLLECTIONS = 3
# Height of a lane of Freeway, and about that of the road from pavement to pavement, in units of height.
LANE_HEIGHT, ROAD_HEIGHT = 16.0, 170.0
# Lanes by which options differ, at least.
MIN_LANES = 3
# Points of option #445 in Freeway, and of DQN (Mnih et al., 2015); "28 points", "very close": at least this share.
PAPER_SCORE, DQN_SCORE, NEARLY = 28.0, 30.3, 0.9
# Frames of an episode of Freeway.
EPISODE_FRAMES = 8_192
# Goals of Kulkarni et al. (2016) in Montezuma's Revenge; "very similar": options settle at this share of them.
GOALS = (
    "central ladder",
    "left ladder",
    "right ladder",
    "rope",
    "left door",
    "right door",
    "key",
)
SIMILAR_SHARE = 0.8
# Beginnings of the names of claims.
NAMES = {"Freeway": "freeway", "MontezumaRevenge": "montezuma", "MsPacman": "pacman"}


def judge_game(data: Data, *, game: str) -> Iterator[Claim]:
    """Claims about a game; of the paper's claims only where its protocol was followed."""
    main = select_main(data)
    enough = data["rollouts"].collection.nunique() >= MIN_COLLECTIONS
    if main.variant.iloc[0] == "paper":
        if game == "Freeway":
            yield from judge_freeway(main, data["long"], enough)
        else:
            yield from (
                judge_montezuma if game == "MontezumaRevenge" else judge_pacman
            )(main, enough)
        yield judge_intent(main, game, enough)
    for number, (variant, table) in enumerate(
        data["rollouts"].groupby("variant", sort=False)
    ):
        name = f"{NAMES[game]}-ours-{number if number or variant == 'paper' else 'way'}"
        yield judge_variant(
            table, name, game if variant == "paper" else f"{game}, {variant}", enough
        )


def describe(data: Data) -> Iterator[Block]:
    """How much was rolled out, and the means of all kinds."""
    main = select_main(data)
    n, ranks = main.collection.nunique(), sorted(set(main["rank"]))
    text = (
        f"{n} collection{'s' * (n != 1)} of transitions, {main.start.nunique()} starts each, "
        f"{main.frames.iloc[0]} frames per roll-out. From each start {count_each(main, 'singular')} singular options "
        f"(both signs; the rank of T is {join(ranks)}) and {count_each(main, 'random')} random ones. Means by kind:"
    )
    yield (
        text,
        main.groupby("kind", sort=False)[["dwell", "arrives", "died", "score"]]
        .mean()
        .reset_index(),
    )


def judge_intent(main: pd.DataFrame, game: str, enough: bool) -> Claim:
    """Whether options of the paper's protocol go to places of their own."""
    kinds = {kind: main[main.kind == kind] for kind in ("singular", "random")}
    level, random_level = map(mean_agreement, kinds.values())
    counts = [len(part) // main.start.nunique() for part in kinds.values()]
    reliable = [
        len(find_reliable(part)) / n
        for part, n in zip(kinds.values(), counts, strict=True)
    ]
    agrees, dwell = (
        compare_with_random(main, "agreement", n_intervals=2),
        main.groupby("kind").dwell.mean(),
    )
    return Claim(
        f"{NAMES[game]}-intent",
        "Even with such a myopic action selection mechanism we were able to obtain options that clearly demonstrate "
        f"intent ({game}).",
        section="5.2",
        tests=[
            level.better or level.above() if enough else None,
            is_more(agrees, enough),
        ],
        measured=f"agreement across starts {level}, random directions {random_level.mean:+.3f}",
        evidence="Two tests: from two starts an option's places are near each other more often than those of two "
        f"different options (agreement above 0), and more so than for random directions. {reliable[0]:.1%} of "
        f"{counts[0]} options are reliable, of random ones {reliable[1]:.1%}. Options spend {dwell['singular']:.0%} "
        f"of the time at one place, random walks {dwell['walk']:.0%}.",
        lesson="Options stop somewhere because a myopic agent gets stuck; options of random directions do so as well.",
        edge="The agreement is above 0, but by little."
        if level.better and not level.above()
        else "",
    )


def judge_variant(
    table: pd.DataFrame, claim_id: str, words: str, enough: bool
) -> Claim:
    """Our claim: singular directions against random ones, in one variant."""
    arrives, agrees = (
        compare_with_random(table, name, n_intervals=2)
        for name in ("arrives", "agreement")
    )
    return Claim(
        claim_id,
        f"Singular directions reach particular places better than random directions ({words}).",
        section="ours",
        tests=[is_more(arrives, enough), is_more(agrees, enough)],
        measured=f"share of options that arrive: {arrives}; agreement across starts: {agrees}",
        evidence="The paper has no such baseline. Two tests, the intervals of both held together: more options arrive, "
        "and they agree more across starts; each must hold in every collection too.",
        lesson="Followed in this way, singular directions are no better than random ones.",
        title=f"against random directions{words[words.find(',') :] if ',' in words else ''}",
    )


def judge_places(
    main: pd.DataFrame, name: str, sentence: str, places: dict[str, str], enough: bool
) -> Claim:
    """Whether options arrive more than random directions at places, given by a word in the names of their regions."""
    tests, rows = [], []
    for place, word in places.items():
        there = main.region.str.contains(word) & (main.arrives > 0)
        shares = [
            there[main.kind == kind].groupby(main.collection).mean()
            for kind in ("singular", "random")
        ]
        effect = compare_with_random(
            main.assign(there=there.astype(float)), "there", n_intervals=len(places)
        )
        exists = is_seen(shares[0].min() > 0, enough)
        tests.append(is_more(effect, enough) if exists else exists)
        rows.append(
            [
                place,
                *(", ".join(f"{x:.1%}" for x in share) for share in shares),
                str(effect),
            ]
        )
    head = [
        "roll-outs that arrive at",
        "singular directions",
        "random directions",
        "difference",
    ]
    return Claim(
        name,
        sentence,
        tests=tests,
        measured=f"roll-outs that arrive there: {', '.join(f'{row[0]} {row[1]}' for row in rows)}",
        evidence=f"One test each for {', '.join(places)}: some option arrives there in every collection, and more "
        "often than random directions do.",
        table=pd.DataFrame(rows, columns=head),
    )


def judge_pacman(main: pd.DataFrame, enough: bool) -> Iterator[Claim]:
    """Claims about Ms. Pac-Man."""
    sentence = "In Ms. Pac-Man the agent has the clear intent of reaching particular positions in the screen, such as "
    sentence += "corners and intersections."
    places = {"corners": "corner", "intersections": "junction"}
    yield judge_places(main, "pacman-places", sentence, places, enough)


def judge_montezuma(main: pd.DataFrame, enough: bool) -> Iterator[Claim]:
    """Claims about Montezuma's Revenge."""
    sentence = "In Montezuma's Revenge the agent has the clear intent of reaching particular positions on the screen, "
    sentence += "such as staircases, ropes and doors."
    places = {"staircases": "ladder", "ropes": "rope", "doors": "door"}
    yield judge_places(main, "montezuma-places", sentence, places, enough)
    reached = main.region.where((main.arrives > 0) & main.region.isin(GOALS))
    goals = reached.groupby([main.kind, main.collection]).agg(
        lambda regions: set(regions.dropna())
    )
    shares = goals["singular"].map(len) / len(GOALS)
    yield Claim(
        "montezuma-kulkarni",
        "The options we discover are very similar to those handcrafted by Kulkarni et al. (2016).",
        tests=[
            is_seen(shares.min() >= SIMILAR_SHARE, enough),
            is_seen(shares.max() >= 0.5, enough),
        ],
        measured=f"singular options arrive at {join(map(len, goals['singular']))} of their {len(GOALS)} goals by "
        f"collection ({', '.join(sorted(set().union(*goals['singular']))) or 'none'})",
        evidence=f"Goals: {', '.join(GOALS)}. Two tests: {SIMILAR_SHARE:.0%} of them in every collection, half of them "
        f"in some. Random directions ({count_each(main, 'random')} options instead of {count_each(main, 'singular')}) "
        f"arrive at {join(map(len, goals['random']))}.",
    )


def judge_freeway(
    main: pd.DataFrame, long: pd.DataFrame, enough: bool
) -> Iterator[Claim]:
    """Claims about Freeway, from roll-outs and long roll-outs."""
    tables = {
        kind: main[main.kind == kind] for kind in ("singular", "random", "published")
    }
    reliable = {kind: find_reliable(table) for kind, table in tables.items()}
    reliable = {
        kind: table[table.region.str.contains("lane")]
        for kind, table in reliable.items()
    }
    n = main.start.nunique()
    shares = {
        kind: f"{len(reliable[kind])} of {len(tables[kind]) // n}" for kind in tables
    }
    each = [
        int((reliable["singular"].collection == c).sum())
        for c in sorted(set(main.collection))
    ]
    lanes = reliable["singular"].region.nunique()
    inside = (
        tables["singular"].region.str.contains("lane")
        & (tables["singular"].arrives > 0)
    ).mean()
    yield Claim(
        "freeway-lane",
        "In Freeway we observe options in which the agent clearly wants to reach a specific lane in the street.",
        tests=[is_seen(min(each) > 0, enough), is_seen(lanes >= MIN_LANES, enough)],
        measured=f"{join(each)} of {count_each(main, 'singular')} singular options per collection go to a lane "
        f"reliably, to {lanes} different lane{'s' * (lanes != 1)}; from single starts {inside:.1%} arrive in a lane",
        evidence=f"Two tests: a reliable option with its place in a lane in every collection, and at least {MIN_LANES} "
        f"different lanes. Of random directions {shares['random']} do so, of rows of V by the published program "
        f"{shares['published']}.",
    )
    bits = long[long.variant == "paper"]
    singular, random, walk = (
        bits[bits.kind == kind] for kind in ("singular", "random", "walk")
    )
    (low, high), ends = (
        np.quantile(table.height, [0.05, 0.95]) for table in (singular, random)
    )
    bands, frames = (singular.x.dropna() // LANE_HEIGHT).nunique(), bits.frames.max()
    yield Claim(
        "freeway-heights",
        "We can clearly see how the chicken's height varies for different options.",
        tests=[
            is_seen(bool(high - low >= LANE_HEIGHT), enough),
            is_seen(bands >= MIN_LANES, enough),
        ],
        measured=f"mean height of an option: {low:.0f} to {high:.0f} (5% to 95% of options), highest "
        f"{singular.height.max():.0f}; modal heights in {bands} bands of {LANE_HEIGHT:g}",
        evidence=f"From the first start of each collection, {frames:,} frames. Two tests: the middle 90% of "
        f"options differ by at least a lane ({LANE_HEIGHT:g} units), and modal heights lie in at least {MIN_LANES} "
        f"bands of that size. Random directions: {ends[0]:.0f} to {ends[1]:.0f}, highest {random.height.max():.0f}.",
    )
    reached = walk.farthest.median()
    yield Claim(
        "freeway-walk",
        "A random walk over primitive actions does not explore the environment properly.",
        tests=[walk.score.max() == 0, reached < ROAD_HEIGHT / 2],
        measured=f"{len(walk)} walks of {frames} frames reach at most {walk.score.max():g} points and a "
        f"median distance of {reached:.0f} units, of {ROAD_HEIGHT:g}",
        evidence="Two tests: no walk crosses the road, and the median walk gets less than half across. Singular "
        f"options get {singular.farthest.median():.0f} far (median), {singular.farthest.max():.0f} at most.",
    )
    best = {
        kind: part.groupby("collection").score.max().tolist()
        for kind, part in bits.groupby("kind")
    }
    words = {"random": "random directions", "rows": "rows of V"}
    words |= {"published": "rows of V by the published program"}
    words |= {"constant": "one action all the time (UP)", "walk": "random walks"}
    others = "; ".join(
        f"{words[kind]} {join(best[kind])}" for kind in words if kind in best
    )
    # Scores never fall: a part of an episode can only pass.
    fails = False if frames >= EPISODE_FRAMES else None
    part = (
        f" An episode has {EPISODE_FRAMES:,} frames, of which {frames:,} were played."
    )
    scores = best["singular"]
    yield Claim(
        "freeway-445",
        "Remarkably, option #445 scores 28 points at the end of the episode.",
        tests=[
            True if score >= NEARLY * PAPER_SCORE else fails
            for score in (min(scores), max(scores))
        ],
        measured=f"best score of a singular option: {join(scores)} (by collection)",
        evidence=f"Two tests: at least {NEARLY * PAPER_SCORE:g} points in every collection, and in some. Best of "
        f"others: {others}. The published program takes rows of V for singular vectors, so its numbers are those of "
        f"memory bits; #445 is past the rank of T.{part}",
        lesson="True singular vectors of the memory's bits do not cross the road; the rows of V that the published "
        "program follows instead do, as does holding UP.",
    )
    yield Claim(
        "freeway-close-to-dqn",
        "This performance is very close to those obtained by state-of-the-art algorithms.",
        tests=[True if max(scores) >= NEARLY * DQN_SCORE else fails],
        measured=f"best singular option {max(scores):g}, best of the published program {max(best['published']):g}, "
        f"DQN {DQN_SCORE:g}",
        evidence=f"Very close: at least {NEARLY * DQN_SCORE:.1f} points, {NEARLY:.0%} of what DQN had (Mnih et al., "
        f"2015). Holding UP scores {join(best['constant'])}, so the game is a weak test of purpose.{part}",
        lesson="No singular option of the memory's bits scores at all; 28 points are close to what holding UP scores.",
    )
    codes = long[long.variant == "bytes"]
    kinds = [
        codes[codes.kind == kind].groupby("collection")
        for kind in ("singular", "random")
    ]
    farthest, points = (
        [part[name].max() for part in kinds] for name in ("farthest", "score")
    )
    climbs = (farthest[0] >= ROAD_HEIGHT / 2) & (farthest[1] < ROAD_HEIGHT / 2)
    yield Claim(
        "freeway-bytes",
        "With the bytes of the memory instead of its bits, and the paper's protocol otherwise, some singular vector "
        "leads the chicken up the road, and some scores, where no random direction does (Freeway).",
        section="ours",
        tests=[
            is_seen(climbs.all(), enough),
            is_seen((points[0] > points[1]).any(), enough),
        ],
        measured=f"farthest of singular options {join(farthest[0])}, of random ones {join(farthest[1])} of "
        f"{ROAD_HEIGHT:g} units; best scores {join(points[0])} and {join(points[1])} (by collection, {frames:,} "
        "frames)",
        evidence="Two tests: in every collection a singular option gets at least half across the road and no random "
        "direction does; in some collection the best singular option has more points than the best random direction.",
    )


def select_main(data: Data) -> pd.DataFrame:
    """Roll-outs of the first variant."""
    table = data["rollouts"]
    return table[table.variant == table.variant.iloc[0]]


def is_seen(passed: bool, enough: bool) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    return True if passed else False if enough else None


def is_more(effect: Effect, enough: bool) -> bool | None:
    """Whether singular directions have more of something than others; only enough collections decide."""
    if not enough:
        return None
    return True if effect.better else False if effect.above() is False else None


def count_each(table: pd.DataFrame, kind: str) -> int:
    """Options of a kind that are followed from each start."""
    part = table[table.kind == kind]
    return len(part) // part.groupby(["collection", "start"]).ngroups


def join(values: Iterable[float]) -> str:
    """Numbers as text."""
    return ", ".join(f"{value:g}" for value in values)
