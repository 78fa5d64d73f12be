"""What the claims about Atari games have in common (Section 5.2 and Appendix E).

The limits were written down before any roll-out of this library was looked at. An
option *settles* if it spends at least half of the second half of its frames at one
place, it *arrives* if that place is not where it started, and it is *reliable* if it
settles near one place from more than half of the starts and arrives there from at least
one (see `measures`).

A claim that options do something is tested by whether some do, in every collection, and
where places are concerned by whether they do so more often than random directions. That
no option does something, and differences between kinds, are concluded only from three
collections or more; with fewer the claim is not decided.

The main reading follows all singular vectors in both signs, from six starts in three
collections. Other readings have all options too, from fewer starts: the literal argmax,
the authors' starts, and the rows of V that the published program follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from reproduction.atari.measures import (
    Effect,
    compare_with_random,
    find_reliable,
    mean_agreement,
)
from reproduction.atari.settings import WHOLE_GAMES
from reproduction.claims import Claim, Finding, Tests, list_items, make_claim
from reproduction.experiment import Block
from reproduction.lab import Data
from reproduction.readings import (
    ARGMAX,
    AUTHORS_STARTS,
    LAXER,
    NO_MARGIN,
    PUBLISHED_PROGRAM,
)
from reproduction.statistics import Difference
from reproduction.thresholds import MARGIN

# Variants that are readings of the paper's protocol.
READING_VARIANTS = (ARGMAX, AUTHORS_STARTS, PUBLISHED_PROGRAM)

# Collections that refute, or show a difference: one has a single set of starts and a
# single basis.
MIN_COLLECTIONS = 3

# What is compared between singular and random directions.
ARRIVALS = "share of options that arrive"
AGREEMENT = "agreement across starts"


def select_main(data: Data) -> pd.DataFrame:
    """Roll-outs of the first variant."""
    table = data["rollouts"]
    return table[table.variant == table.variant.iloc[0]]


def follows_paper(data: Data) -> bool:
    """Whether the first variant follows the paper's protocol."""
    return bool(data["rollouts"].variant.iloc[0] == "paper")


def has_enough(table: pd.DataFrame) -> bool:
    """Whether there are collections enough to refute a claim."""
    return bool(table.collection.nunique() >= MIN_COLLECTIONS)


def select_readings(data: Data) -> dict[str, pd.DataFrame]:
    """Roll-outs under other readings of the paper, as far as there are any.

    Rows of V take the place of singular vectors in the reading of the published
    program. The random directions beside them are those of the first variant, from the
    same starts.
    """
    table = data["rollouts"]
    readings = {}
    for name in READING_VARIANTS:
        part = table[table.variant == name]
        if part.empty:
            continue
        if name == PUBLISHED_PROGRAM:
            main = select_main(data)
            is_random = main.kind == "random"
            is_same = main.start.isin(part.start)
            is_same &= main.collection.isin(part.collection)
            part = pd.concat([part.assign(kind="singular"), main[is_random & is_same]])
        readings[name] = part
    return readings


def is_seen(passed: bool, enough: bool) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    if passed:
        return True
    if enough:
        return False
    return None


def is_more(effect: Effect, enough: bool) -> bool | None:
    """Whether singular directions have more of something than random ones.

    Only enough collections decide.
    """
    return effect.above() if enough else None


def judge_intent(data: Data) -> Finding:
    """Whether options of the paper's protocol go to places of their own."""
    main = select_main(data)
    singular = main[main.kind == "singular"]
    random = main[main.kind == "random"]
    level = mean_agreement(singular)
    random_level = mean_agreement(random)

    # What is shown beside the tests.
    n_starts = main.start.nunique()
    n_singular = len(singular) // n_starts
    n_random = len(random) // n_starts
    reliable = len(find_reliable(singular)) / n_singular
    random_reliable = len(find_reliable(random)) / n_random
    dwell = main.groupby("kind").dwell.mean()

    tests = _test_intent(main)
    readings: dict[str, Tests] = {
        NO_MARGIN: _test_intent(main, margin=0.0),
        LAXER: [_stays_longer_than_walks(main)],
    }
    for name, table in select_readings(data).items():
        # Agreement is between starts.
        if table.start.nunique() > 1:
            readings[name] = _test_intent(table)
    return Finding(
        tests=tests,
        readings=readings,
        measured=f"agreement across starts {level}, random directions "
        f"{random_level.mean:+.3f}",
        evidence="Two tests: from two starts an option's places are near each other "
        "more often than those of two different options (agreement above 0), and more "
        f"so than for random directions. {reliable:.1%} of {n_singular} options are "
        f"reliable, of random ones {random_reliable:.1%}. Options spend "
        f"{dwell['singular']:.0%} of the time at one place, random walks "
        f"{dwell['walk']:.0%}; the laxer limit asks for no more than that.",
        lesson="Options stop somewhere because a myopic agent gets stuck; options of "
        "random directions do so as well.",
    )


def _test_intent(table: pd.DataFrame, margin: float = MARGIN) -> list[bool | None]:
    """Whether options agree across starts, and more than random ones."""
    if not has_enough(table):
        return [None, None]
    level = mean_agreement(table[table.kind == "singular"])
    agrees = compare_with_random(table, "agreement", n_intervals=2)
    return [level.above(margin), agrees.above(margin)]


def _stays_longer_than_walks(table: pd.DataFrame) -> bool | None:
    """Whether options are longer at one place than random walks, in all collections."""
    dwell = table.groupby(["kind", "collection"]).dwell.mean()
    stays_longer = bool((dwell["singular"] > dwell["walk"]).all())
    return is_seen(stays_longer, has_enough(table))


def judge_places(data: Data, places: Mapping[str, str]) -> Finding:
    """Whether options arrive at places more often than random directions.

    `places` has a word that the names of their regions contain, by what they are.
    """
    main = select_main(data)
    tests, rows = _test_places(main, places)
    readings: dict[str, Tests] = {
        LAXER: [_arrive_in_each(main, word) for word in places.values()]
    }
    for name, rollouts in select_readings(data).items():
        readings[name], _ = _test_places(rollouts, places)
    table = pd.DataFrame(rows)
    arrivals = table["roll-outs that arrive at"] + " " + table["singular directions"]
    return Finding(
        tests=tests,
        readings=readings,
        measured=f"roll-outs that arrive there: {', '.join(arrivals)}",
        evidence=f"One test each for {', '.join(places)}: some option arrives there in "
        "every collection, and more often than random directions do; the laxer limit "
        "asks for the first alone.",
        table=table,
    )


def _arrive_in_each(rollouts: pd.DataFrame, word: str) -> bool | None:
    """Whether some option arrives at such a place in every collection."""
    singular = rollouts[rollouts.kind == "singular"]
    is_there = singular.region.str.contains(word) & (singular.arrives > 0)
    arrives = is_there.groupby(singular.collection).any()
    return is_seen(bool(arrives.all()), has_enough(rollouts))


def _test_places(
    rollouts: pd.DataFrame, places: Mapping[str, str]
) -> tuple[list[bool | None], list[dict[str, str]]]:
    """One test per place, and a row of numbers for each."""
    enough = has_enough(rollouts)
    tests: list[bool | None] = []
    rows = []
    for place, word in places.items():
        is_there = rollouts.region.str.contains(word) & (rollouts.arrives > 0)
        by_kind = is_there.groupby([rollouts.kind, rollouts.collection]).mean()
        effect = compare_with_random(
            rollouts.assign(there=is_there.astype(float)),
            "there",
            n_intervals=len(places),
        )

        # Some option must arrive in every collection, else there is nothing to compare.
        exists = is_seen(bool(by_kind["singular"].min() > 0), enough)
        tests.append(is_more(effect, enough) if exists else exists)
        rows.append(
            {
                "roll-outs that arrive at": place,
                "singular directions": _list_shares(by_kind["singular"]),
                "random directions": _list_shares(by_kind["random"]),
                "difference": str(effect),
            }
        )
    return tests, rows


def list_variant_claims(data: Data, game: str, name: str) -> Iterator[Claim]:
    """Our claims: singular directions against random ones.

    One is about the paper's protocol, the other about the best of the other ways to
    make options, which comes last. `describe_ways` has them all.

    Parameters
    ----------
    data : mapping
        The tables of a game.
    game : str
        The game, as the sentences name it.
    name : str
        The beginning of the claims' names.
    """
    if follows_paper(data):
        yield make_claim(
            _judge_protocol(select_main(data)),
            id=f"{name}-ours-paper",
            sentence="Singular directions reach particular places better than random "
            f"directions ({game}).",
            section="ours",
            title="against random directions",
        )

    ways = list_ways(data)
    if ways:
        *_, (variant, table) = ways.items()
        yield make_claim(
            _judge_best(table),
            id=f"{name}-ours-best",
            sentence="Singular directions reach particular places better than random "
            f"directions ({game}, {variant}).",
            section="ours",
            title=f"against random directions, {variant}",
        )


def list_ways(data: Data) -> dict[str, pd.DataFrame]:
    """Roll-outs of each way to make options that is no reading of the paper."""
    rollouts = data["rollouts"]
    of_paper = ["paper", *READING_VARIANTS, WHOLE_GAMES]
    is_way = ~rollouts.variant.isin(of_paper)
    return dict(iter(rollouts[is_way].groupby("variant", sort=False)))


def _judge_protocol(table: pd.DataFrame) -> Finding:
    """Whether more options arrive than of random directions, and agree more."""
    enough = has_enough(table)
    effects = _compare_both(table)
    return Finding(
        tests=[is_more(effect, enough) for effect in effects.values()],
        measured=list_items("{}: {}", effects),
        evidence="The paper has no such baseline. Two tests, the intervals of both "
        "held together: more options arrive, and they agree more across starts; each "
        "must hold in every collection too.",
        lesson="Followed in this way, singular directions are no better than random "
        "ones.",
    )


def _judge_best(table: pd.DataFrame) -> Finding:
    """The tests of the paper's protocol, of the best settings of ours."""
    effects = _compare_both(table)
    enough = has_enough(table)
    return Finding(
        tests=[is_more(effect, enough) for effect in effects.values()],
        measured=list_items("{}: {}", effects),
        evidence="These settings are the best of those tried. The tests are those of "
        "the paper's protocol: more options arrive, and they agree more across starts, "
        "both in every collection too.",
        lesson="That more of these options arrive than of random ones is not shown.",
    )


def _compare_both(table: pd.DataFrame) -> dict[str, Effect]:
    """How many more options arrive, and how much more they agree, than random ones."""
    return {
        ARRIVALS: compare_with_random(table, "arrives", n_intervals=2),
        AGREEMENT: compare_with_random(table, "agreement", n_intervals=2),
    }


def describe_ways(data: Data) -> Iterator[Block]:
    """Every other way to make options, against random directions."""
    rows = []
    for variant, table in list_ways(data).items():
        effects = _compare_both(table)
        n_now = table.collection.nunique()
        n_wanted = max(count_collections(effect, n_now) for effect in effects.values())
        row = {"way": variant}
        row |= {measure: str(effect) for measure, effect in effects.items()}
        row |= {
            "collections": str(n_now),
            "would decide": f"{max(n_wanted, n_now):,}",
        }
        rows.append(row)
    if rows:
        yield (
            "Other ways to make options, tried without a claim but for the last one: "
            "singular minus random directions. So many collections would decide both "
            "differences if the means stay as they are.",
            pd.DataFrame(rows),
        )


def count_collections(effect: Difference, n_now: int) -> int:
    """How many collections decide a difference if its mean stays as it is.

    An interval shrinks with the root of their number. It decides as soon as it is
    above zero, or below the margin that the mean does not reach.

    >>> count_collections(Difference(0.1, low=-0.1, high=0.3), 3)
    12
    """
    half_width = (effect.high - effect.low) / 2
    distance = effect.mean if effect.mean >= MARGIN else MARGIN - effect.mean
    return math.ceil(n_now * (half_width / distance) ** 2)


def describe_rollouts(data: Data) -> Iterator[Block]:
    """How much was rolled out, and the means of all kinds."""
    main = select_main(data)
    n_collections = main.collection.nunique()
    collections = "collection" if n_collections == 1 else "collections"
    ranks = sorted(set(main["rank"]))
    columns = ["dwell", "arrives", "died", "score"]
    means = main.groupby("kind", sort=False)[columns].mean()
    yield (
        f"{n_collections} {collections} of transitions, {main.start.nunique()} starts "
        f"each, {main.frames.iloc[0]} frames per roll-out. From each start "
        f"{count_options(main, 'singular')} singular options (both signs; the rank of "
        f"T is {list_numbers(ranks)}) and {count_options(main, 'random')} random ones. "
        "Means by kind:",
        means.reset_index(),
    )
    yield from _describe_whole_games(data["rollouts"], columns)
    yield from describe_ways(data)


def _describe_whole_games(
    rollouts: pd.DataFrame, columns: list[str]
) -> Iterator[Block]:
    """The means of all kinds when play goes on until the game is over."""
    whole = rollouts[rollouts.variant == WHOLE_GAMES]
    if whole.empty:
        return
    means = whole.groupby("kind", sort=False)[columns].mean()
    yield (
        f"The same until the game is over, or for {whole.frames.iloc[0]:,} frames, in "
        "one collection from one start. Where an option is after a lost life depends "
        "on where the game puts it.",
        means.reset_index(),
    )


def count_options(table: pd.DataFrame, kind: str) -> int:
    """Options of a kind that are followed from each start."""
    part = table[table.kind == kind]
    n_groups: int = part.groupby(["collection", "start"]).ngroups
    return len(part) // n_groups


def list_numbers(values: Iterable[float]) -> str:
    """Numbers as text.

    >>> list_numbers([1.0, 2.5])
    '1, 2.5'
    """
    return ", ".join(f"{value:g}" for value in values)


def _list_shares(shares: Iterable[float]) -> str:
    """Shares as text."""
    return ", ".join(f"{share:.1%}" for share in shares)
