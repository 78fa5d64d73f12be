"""What Section 5.2 and Appendix E claim about Atari games, and the tests of each claim.

The limits were written down before any roll-out of this library was looked at. An option *settles* if it spends at
least half of the second half of its frames at one place, it *arrives* if that place is not where it started, and it is
*reliable* if it settles near one place from more than half of the starts and arrives there from at least one (see
`measures`). A claim that options do something is tested by whether some do, in every collection, and where places are
concerned by whether they do so more often than random directions. Differences are judged by intervals, see
`statistics`. That no option does something, and differences between kinds, are concluded only from three collections or
more; with fewer the claim is not decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from reproduction.atari.measures import find_reliable, rarefy
from reproduction.atari.statistics import Effect, compare_kinds
from reproduction.atari.study import OPTION
from reproduction.lab import Block, Claim, Data
from reproduction.statistics import Difference

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
GOALS = ("central ladder", "left ladder", "right ladder", "rope", "left door", "right door", "key")
SIMILAR_SHARE = 0.8
# Beginnings of the names of claims.
NAMES = {"Freeway": "freeway", "MontezumaRevenge": "montezuma", "MsPacman": "pacman"}


def judge_game(data: Data, *, game: str) -> list[Claim]:
    """Claims about a game; of the paper's claims only where its protocol was followed."""
    claims: list[Claim] = []
    if data["rollouts"].variant.iloc[0] == "paper":
        own = {"Freeway": _judge_freeway, "MontezumaRevenge": _judge_montezuma, "MsPacman": _judge_pacman}
        claims = [*own[game](data), _judge_intent(data, game)]
    variants = data["rollouts"].variant.unique()
    return claims + [_compare_with_random(data, game, number, name) for number, name in enumerate(variants)]


def describe(data: Data) -> Iterator[Block]:
    """The roll-outs, the baselines, the differences and the agreement of all kinds."""
    table, n_collections = _select(data), data["starts"].collection.nunique()
    variant, random = table.variant.iloc[0], table[table.kind == "random"]
    sizes = data["collections"][data["collections"].variant == variant]
    ranks = f"{sizes['rank'].min()} to {sizes['rank'].max()}"
    yield (
        f"{n_collections} collection{'s' * (n_collections != 1)} of transitions, {table.start.nunique()} starts each, "
        f"{table.frames.iloc[0]} frames per roll-out. From each start {_count_each(table[table.kind == 'singular'])} "
        f"singular options (both signs; T has rank {ranks} of "
        f"{sizes.features.iloc[0]}) and {_count_each(random)} of {random.basis.nunique()} random bases."
    )
    columns = ["kind", "dwell", "arrives", "places", "died", "score", "stopped"]
    yield f"Means by kind, {variant}:", data["means"][data["means"].variant == variant][columns]
    effects = data["effects"][data["effects"].against == "random"]
    text = [str(Difference(e.mean, e.low, e.high)) for e in effects.itertuples()]
    above = [f"{e.n_above} of {e.n_groups} bases" for e in effects.itertuples()]
    yield (
        "Singular directions minus random ones:",
        effects[["variant", "measure"]].assign(difference=text, above=above),
    )
    levels = data["levels"]
    text = [str(Difference(row.agreement, row.low, row.high)) for row in levels.itertuples()]
    reliable = [f"{row.reliable:.1%} of {row.options}" for row in levels.itertuples()]
    yield (
        "Agreement and reliable options:",
        levels[["variant", "kind"]].assign(agreement=text, reliable=reliable),
    )


# All games


def _judge_intent(data: Data, game: str) -> Claim:
    agrees, stays = _effect(data, "agreement"), _effect(data, "dwell", "walk")
    levels = data["levels"][data["levels"].variant == "paper"].set_index("kind")
    own, other = levels.loc["singular"], levels.loc["random"]
    level = Difference(own.agreement, own.low, own.high)
    return Claim(
        f"{NAMES[game]}-intent",
        "Even with such a myopic action selection mechanism we were able to obtain options that clearly demonstrate "
        f"intent ({game}).",
        section="5.2",
        tests=[level.better or level.above() if _are_enough(data) else None, _is_more(agrees, data)],
        measured=f"agreement across starts {level}, random directions {other.agreement:+.3f}",
        evidence="Two tests: from two starts an option's places are near each other more often than those of two "
        f"different options (agreement above 0), and more so than for random directions. {own.reliable:.1%} of "
        f"{own.options:.0f} options are reliable, of random ones {other.reliable:.1%}. Time at the modal place, "
        f"options against random walks: {stays.describe()}.",
        lesson="Options stop somewhere because a myopic agent gets stuck; options of random directions do so as well.",
        edge="The agreement is above 0, but by little." if level.better and not level.above() else "",
    )


def _compare_with_random(data: Data, game: str, number: int, variant: str) -> Claim:
    """Our claim: singular directions against random ones, in one variant."""
    arrives, agrees, reach = (_effect(data, m, variant=variant) for m in ("arrives", "agreement", "reach"))
    is_paper = variant == "paper"
    worse = " Singular directions do worse in both." if arrives.worse and agrees.worse else ""
    return Claim(
        f"{NAMES[game]}-ours-{number if number or is_paper else 'way'}",
        "Singular directions reach particular places better than random directions "
        f"({game}{'' if is_paper else f', {variant}'}).",
        section="ours",
        tests=[_is_more(arrives, data), _is_more(agrees, data)],
        measured=f"share of options that arrive: {arrives}; agreement across starts: {agrees}",
        evidence="The paper has no such baseline. Two tests, the intervals of both held together: more options arrive, "
        f"and they agree more across starts; each must hold in every collection too. Above {arrives.n_above} and "
        f"{agrees.n_above} of {arrives.n_groups} random bases. Different places that as many options arrive at: "
        f"{reach.describe()}.{worse}",
        lesson=f"Followed in {'the way of the paper' if is_paper else variant}, singular directions are no better than "
        "random ones.",
        title=f"against random directions{'' if is_paper else f', {variant}'}",
    )


def _compare_places(data: Data, words: dict[str, str]) -> tuple[list[bool | None], pd.DataFrame]:
    """For each kind of place a test, whether options arrive there more often than random directions; and a table."""
    tests: list[bool | None] = []
    rows = []
    table = _select(data)
    for name, word in words.items():
        there = table.region.str.contains(word) & (table.arrives > 0)
        shares = {
            kind: there[table.kind == kind].groupby(table.collection).mean()
            for kind in ("singular", "random")
        }
        gain = compare_kinds(table.assign(there=there.astype(float)), "there", n_intervals=len(words))
        exists = _is_seen(shares["singular"].min() > 0, data)
        tests.append(_is_more(gain, data) if exists else exists)
        texts = [", ".join(f"{x:.1%}" for x in share) for share in shares.values()]
        rows.append([name, *texts, str(gain)])
    head = ["roll-outs that arrive at", "singular directions", "random directions", "difference"]
    return tests, pd.DataFrame(rows, columns=head)


# Montezuma's Revenge and Ms. Pac-Man


def _judge_montezuma(data: Data) -> Iterator[Claim]:
    tests, table = _compare_places(data, {"staircases": "ladder", "ropes": "rope", "doors": "door"})
    yield Claim(
        "montezuma-places",
        "In Montezuma's Revenge the agent has the clear intent of reaching particular positions on the screen, such as "
        "staircases, ropes and doors.",
        section="5.2",
        tests=tests,
        measured=f"roll-outs that arrive there: {_list_places(table)}",
        evidence="Three tests, one each for staircases, ropes and doors: some option arrives there in every "
        "collection, and more often than random directions do.",
        lesson="Options of the memory's bits reach ladders and ropes now and then, and random directions do so as "
        "often.",
        table=table,
    )
    goals = {kind: list(_count_goals(data, kind)) for kind in ("singular", "random")}
    shares = [len(hits) / len(GOALS) for hits in goals["singular"]]
    sizes = {kind: _count_each(_select(data, kind)) for kind in goals}
    k = min(sizes.values())
    of_k = [np.mean([rarefy(list(hits.values()), sizes[kind], k) for hits in goals[kind]]) for kind in goals]
    reached = {kind: ", ".join(f"{len(hits)}" for hits in goals[kind]) for kind in goals}
    yield Claim(
        "montezuma-kulkarni",
        "The options we discover are very similar to those handcrafted by Kulkarni et al. (2016).",
        section="5.2",
        tests=[_is_seen(min(shares) >= SIMILAR_SHARE, data), _is_seen(max(shares) >= 0.5, data)],
        measured=f"singular options arrive at {reached['singular']} of their {len(GOALS)} goals by collection "
        f"({', '.join(sorted(set().union(*goals['singular']))) or 'none'})",
        evidence=f"Goals: {', '.join(GOALS)}. Two tests: {SIMILAR_SHARE:.0%} of them in every collection, half of them "
        f"in some. Random directions arrive at {reached['random']}. Of as many options ({k}) singular ones arrive at "
        f"{of_k[0]:.1f} goals, random ones at {of_k[1]:.1f} (mean over choices of them).",
        lesson="Fewer than half of the goals chosen by hand are reached, and random directions reach more.",
    )


def _count_goals(data: Data, kind: str) -> Iterator[dict[str, int]]:
    """By collection, at which of Kulkarni's goals options arrive from some start, and how many of them."""
    for _, part in _select(data, kind).groupby("collection"):
        arrived = part[part.arrives > 0]
        counts = {goal: len(arrived[arrived.region == goal][OPTION].drop_duplicates()) for goal in GOALS}
        yield {goal: count for goal, count in counts.items() if count}


def _judge_pacman(data: Data) -> Iterator[Claim]:
    words = {"corners": "corner", "intersections": "junction"}
    tests, table = _compare_places(data, words)
    walk = _select(data, "walk")
    walks = {
        name: "/".join(f"{x:.1%}" for x in walk.region.str.contains(word).groupby(walk.collection).mean())
        for name, word in words.items()
    }
    yield Claim(
        "pacman-places",
        "In Ms. Pac-Man the agent has the clear intent of reaching particular positions in the screen, such as corners "
        "and intersections.",
        section="Appendix E",
        tests=tests,
        measured=f"roll-outs that arrive there: {_list_places(table)}",
        evidence="Two tests, one for corners and one for intersections: some option arrives there in every collection, "
        "and more often than random directions do. Modal places of random walks, settled or not: "
        f"{', '.join(f'{name} {shares}' for name, shares in walks.items())}.",
        lesson="Options do end in corners and at intersections, and random directions end there as often.",
        table=table,
    )


def _list_places(table: pd.DataFrame) -> str:
    return ", ".join(f"{row[0]} {row[1]}" for row in table.itertuples(index=False))


# Freeway


def _judge_freeway(data: Data) -> Iterator[Claim]:
    yield _judge_lanes(data)
    yield _judge_heights(data)
    yield _judge_walks(data)
    yield from _judge_scores(data)
    if "long" in data and (data["long"].variant == "bytes").any():
        yield _judge_bytes(data)


def _judge_lanes(data: Data) -> Claim:
    tables = {kind: _select(data, kind) for kind in ("singular", "random", "published")}
    found = {kind: find_reliable(table) for kind, table in tables.items() if len(table)}
    found = {kind: table[table.region.str.contains("lane")] for kind, table in found.items()}
    singular = tables["singular"]
    each = [int((found["singular"].collection == c).sum()) for c in sorted(singular.collection.unique())]
    lanes = found["singular"].region.nunique()
    inside = (singular.region.str.contains("lane") & (singular.arrives > 0)).mean()
    n_starts = singular.start.nunique()
    shares = {kind: f"{len(found[kind])} of {len(tables[kind]) // n_starts}" for kind in found}
    published = (
        f", of rows of V by the published program {shares['published']}" if "published" in shares else ""
    )
    return Claim(
        "freeway-lane",
        "In Freeway we observe options in which the agent clearly wants to reach a specific lane in the street.",
        section="5.2",
        tests=[_is_seen(min(each) > 0, data), _is_seen(lanes >= MIN_LANES, data)],
        measured=f"{_list(each)} of {_count_each(singular)} singular options per collection go to a lane reliably, to "
        f"{lanes} different lane{'s' * (lanes != 1)}; from single starts {inside:.1%} arrive in a lane",
        evidence=f"Two tests: a reliable option with its place in a lane in every collection, and at least {MIN_LANES} "
        f"different lanes. Of random directions {shares['random']} do so{published}.",
        lesson="Options of the memory's bits rarely go to one lane from several starts.",
    )


def _judge_heights(data: Data) -> Claim:
    table = _select_long(data)
    singular, random = (table[table.kind == kind] for kind in ("singular", "random"))
    low, high = np.quantile(singular.height, [0.05, 0.95])
    bands = (singular.x.dropna() // LANE_HEIGHT).nunique()
    other = ""
    if len(random):
        ends = np.quantile(random.height, [0.05, 0.95])
        other = f" Random directions: {ends[0]:.0f} to {ends[1]:.0f}, highest {random.height.max():.0f}."
    return Claim(
        "freeway-heights",
        "We can clearly see how the chicken's height varies for different options.",
        section="5.2",
        tests=[_is_seen(bool(high - low >= LANE_HEIGHT), data), _is_seen(bands >= MIN_LANES, data)],
        measured=f"mean height of an option: {low:.0f} to {high:.0f} (5% to 95% of options), highest "
        f"{singular.height.max():.0f}; modal heights in {bands} bands of {LANE_HEIGHT:g}",
        evidence=f"From the first start of each collection, {table.frames.max()} frames. Two tests: the middle 90% of "
        f"options differ by at least a lane ({LANE_HEIGHT:g} units), and modal heights lie in at least {MIN_LANES} "
        f"bands of that size.{other}",
        lesson="With the bits of the memory a greedy option rarely leaves the lower pavement, whatever its direction.",
    )


def _judge_walks(data: Data) -> Claim:
    table = _select_long(data)
    walk, singular = table[table.kind == "walk"], table[table.kind == "singular"]
    reached = walk.farthest.median()
    return Claim(
        "freeway-walk",
        "A random walk over primitive actions does not explore the environment properly.",
        section="5.2",
        tests=[walk.score.max() == 0, reached < ROAD_HEIGHT / 2],
        measured=f"{len(walk)} walks of {table.frames.max()} frames reach at most {walk.score.max():g} points and a "
        f"median distance of {reached:.0f} units, of {ROAD_HEIGHT:g}",
        evidence="Two tests: no walk crosses the road, and the median walk gets less than half across. Singular "
        f"options get {singular.farthest.median():.0f} far (median), {singular.farthest.max():.0f} at most.",
        lesson="A random walk gets across the road as well.",
    )


def _judge_scores(data: Data) -> Iterator[Claim]:
    table = _select_long(data)
    words = {
        "random": "random directions",
        "rows": "rows of V",
        "published": "rows of V by the published program",
        "constant": "one action all the time (UP)",
        "walk": "random walks",
    }
    best = {kind: part.groupby("collection").score.max().tolist() for kind, part in table.groupby("kind")}
    mine, frames = best["singular"], table.frames.max()
    row = table[(table.kind == "published") & (table.direction == 445)].score.tolist()
    # Scores never fall: a part of an episode can only pass.
    fails: bool | None = False
    part = ""
    if frames < EPISODE_FRAMES:
        fails = None
        part = f" An episode has {EPISODE_FRAMES:,} frames; these are the first {frames:,} of it, in which 28 points "
        part += "cannot be scored: --full plays whole episodes."
    yield Claim(
        "freeway-445",
        "Remarkably, option #445 scores 28 points at the end of the episode.",
        section="5.2",
        tests=[True if score >= NEARLY * PAPER_SCORE else fails for score in (min(mine), max(mine))],
        measured=f"best score of a singular option: {_list(mine)} (by collection)",
        evidence=f"Two tests: at least {NEARLY * PAPER_SCORE:g} points in every collection, and in some. Best of "
        f"others: {'; '.join(f'{words[kind]} {_list(best[kind])}' for kind in words if kind in best)}."
        f"{f' Row 445 scores {_list(row)}.' if row else ''} The published program takes rows of V for singular "
        f"vectors, so its numbers are those of memory bits; #445 is past the rank of T.{part}",
        lesson="True singular vectors of the memory's bits do not cross the road; the rows of V that the published "
        "program follows instead do, as does holding UP.",
    )
    yield Claim(
        "freeway-close-to-dqn",
        "This performance is very close to those obtained by state-of-the-art algorithms.",
        section="5.2",
        tests=[True if max(mine) >= NEARLY * DQN_SCORE else fails],
        measured=f"best singular option {max(mine):g}, best of the published program "
        f"{max(best.get('published', [np.nan])):g}, DQN {DQN_SCORE:g}",
        evidence=f"Very close: at least {NEARLY * DQN_SCORE:.1f} points, {NEARLY:.0%} of what DQN had (Mnih et al., "
        f"2015). Holding UP scores {_list(best.get('constant', []))}, so the game is a weak test of purpose.{part}",
        lesson="No singular option of the memory's bits scores at all; 28 points are close to what holding UP scores.",
    )


def _judge_bytes(data: Data) -> Claim:
    """Our claim about Freeway: with bytes the paper's protocol has options that climb the road, and score."""
    table = data["long"][data["long"].variant == "bytes"]
    kinds = [table[table.kind == kind].groupby("collection") for kind in ("singular", "random")]
    high, best = ([part[name].max() for part in kinds] for name in ("farthest", "score"))
    climbs = (high[0] >= ROAD_HEIGHT / 2) & (high[1] < ROAD_HEIGHT / 2)
    return Claim(
        "freeway-bytes",
        "With the bytes of the memory instead of its bits, and the paper's protocol otherwise, some singular vector "
        "leads the chicken up the road, and some scores, where no random direction does (Freeway).",
        section="ours",
        tests=[_is_seen(climbs.all(), data), _is_seen((best[0] > best[1]).any(), data)],
        measured=f"farthest of singular options {_list(high[0])}, of random ones {_list(high[1])} of {ROAD_HEIGHT:g} "
        f"units; best scores {_list(best[0])} and {_list(best[1])} (by collection, {table.frames.max():,} frames)",
        evidence="Two tests: in every collection a singular option gets at least half across the road and no random "
        "direction does; in some collection the best singular option has more points than the best random direction.",
        lesson="Bits hide the height of the chicken behind binary carries; on bytes the same protocol does not get "
        "stuck.",
    )


# Tables and tests


def _select(data: Data, kind: str | None = None) -> pd.DataFrame:
    """Roll-outs of the first variant, and of one kind."""
    table = data["rollouts"]
    table = table[table.variant == table.variant.iloc[0]]
    return table if kind is None else table[table.kind == kind]


def _select_long(data: Data) -> pd.DataFrame:
    """Long roll-outs of the paper's protocol, where there are any, else those of the first start."""
    if "long" in data:
        return data["long"][data["long"].variant == "paper"]
    return _select(data)[_select(data).start == 0]


def _effect(data: Data, measure: str, against: str = "random", variant: str = "paper") -> Effect:
    """Effect of singular directions against another kind."""
    keys = {"variant": variant, "against": against, "measure": measure}
    rows = data["effects"].query(" and ".join(f"{name} == @keys[{name!r}]" for name in keys))
    return Effect(**rows.drop(columns=list(keys)).to_dict("records")[0])


def _are_enough(data: Data) -> bool:
    return bool(data["starts"].collection.nunique() >= MIN_COLLECTIONS)


def _is_seen(passed: bool, data: Data) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    return True if passed else False if _are_enough(data) else None


def _is_more(effect: Effect, data: Data) -> bool | None:
    """Whether singular directions have more of something than others; only enough collections decide."""
    if not _are_enough(data):
        return None
    return True if effect.better else False if effect.above() is False else None


def _count_each(table: pd.DataFrame) -> int:
    """Options of one collection and start."""
    return len(table[(table.collection == table.collection.iloc[0]) & (table.start == table.start.iloc[0])])


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
