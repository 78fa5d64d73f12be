"""Numbers of docs/atari.md, from the stored results of the studies.

``page_numbers`` compares them with the page.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reproduction.atari.claims import (  # noqa: E402
    select_main,
    select_readings,
)
from reproduction.atari.measures import find_reliable  # noqa: E402
from reproduction.atari.settings import WHOLE_GAMES  # noqa: E402
from reproduction.atari.stored import RESULTS, load_results  # noqa: E402
from reproduction.experiments.montezumarevenge import GOALS  # noqa: E402
from reproduction.lab import Data  # noqa: E402
from reproduction.readings import ARGMAX, AUTHORS_STARTS  # noqa: E402

GAMES = ("Freeway", "MontezumaRevenge", "MsPacman")


@cache
def load(game: str) -> Data:
    """The stored tables of a game."""
    return load_results(game=game)


def compare_arrivals() -> list[str]:
    """Percent of the roll-outs that arrive, of singular and of random directions."""
    numbers = []
    for game in ("MontezumaRevenge", "Freeway", "MsPacman"):
        shares = select_main(load(game)).groupby("kind").arrives.mean()
        numbers += [f"{100 * shares[kind]:.1f}" for kind in ("singular", "random")]
    return numbers


def count_goals(rollouts: pd.DataFrame, kind: str) -> list[str]:
    """Kulkarni's goals at which options of a kind arrive, by collection."""
    arrived = rollouts[(rollouts.kind == kind) & (rollouts.arrives > 0)]
    at_goals = arrived[arrived.region.isin(GOALS)]
    counts = at_goals.groupby("collection").region.nunique()
    return [f"{n}" for n in counts]


def compare_goals() -> list[str]:
    """Goals of singular and of random directions, from all starts."""
    main = select_main(load("MontezumaRevenge"))
    return [*count_goals(main, "singular"), *count_goals(main, "random")]


def compare_goals_by_reading() -> list[str]:
    """Goals by the literal argmax, by the main reading, and from the authors' start.

    All are from one start.
    """
    data = load("MontezumaRevenge")
    main = select_main(data)
    readings = select_readings(data)
    tables = (readings[ARGMAX], main[main.start == 0], readings[AUTHORS_STARTS])
    return [n for table in tables for n in count_goals(table, "singular")]


def read_fresh() -> list[str]:
    """How much more singular directions agree than random ones, fresh collections."""
    fresh = pd.read_csv(RESULTS / "fresh.csv").set_index(["game", "measure"])
    return [f"{fresh.loc[(game, 'agreement'), 'mean']:.2f}" for game in GAMES]


def count_lane_options() -> list[str]:
    """Options that go to a lane of Freeway, by collection, and random ones."""
    main = select_main(load("Freeway"))
    reliable = {}
    for kind in ("singular", "random"):
        found = find_reliable(main[main.kind == kind])
        reliable[kind] = found[found.region.str.contains("lane")]
    by_collection = reliable["singular"].groupby("collection").size()
    n_random = (main.kind == "random").sum() // main.start.nunique()
    return [
        *(f"{n}" for n in by_collection),
        f"{len(reliable['random'])}",
        f"{n_random:,}",
    ]


def compare_rows() -> list[str]:
    """Rows of V that cross the road, all of them, and the best scores."""
    long = load("Freeway")["long"]
    rows = long[long.kind == "published"]
    first = rows[rows.variant == "paper"]
    others = rows[rows.variant == "published program"]
    from_authors = rows[rows.variant == AUTHORS_STARTS]
    best = others.groupby("collection").score.max()
    numbers = [(first.score > 0).sum(), len(first), first.score.max(), *best]
    return [f"{n:,.0f}" for n in (*numbers, from_authors.score.max())]


def find_best_of_singular() -> list[str]:
    """The best points of singular vectors, also under other readings."""
    long = load("Freeway")["long"]
    is_of_paper = long.variant.isin(["paper", ARGMAX, AUTHORS_STARTS])
    return [f"{long[is_of_paper & (long.kind == 'singular')].score.max():.0f}"]


def find_best_of_one_action() -> list[str]:
    """Points of the best action that is held all the time."""
    long = load("Freeway")["long"]
    return [f"{long[long.kind == 'constant'].score.max():.0f}"]


def count_all_options() -> list[str]:
    """The least and the largest number of options that are followed, by game."""
    numbers = []
    for game in GAMES:
        counts = count_followed(game, "singular")
        numbers += [f"{counts.min()}", f"{counts.max()}"]
    return numbers


def count_followed(game: str, kind: str) -> pd.Series:
    """Options of a kind that are followed, by collection and start."""
    main = select_main(load(game))
    return main[main.kind == kind].groupby(["collection", "start"]).size()


def count_frames() -> list[str]:
    """Frames of a roll-out, by game."""
    return [f"{select_main(load(game)).frames.iloc[0]}" for game in GAMES]


def measure_growth() -> list[str]:
    """How much the share that has arrived grows in the last tenth of the frames."""
    numbers = []
    for game in GAMES:
        curves = load(game)["curves"]
        curves = curves[(curves.variant == "paper") & (curves.kind == "singular")]
        arrived = (curves.arrives * curves.n).groupby(curves.frames).sum()
        shares = arrived / curves.groupby("frames").n.sum()
        numbers.append(f"{shares.diff().iloc[-1]:.3f}")
    return numbers


def compare_places_by_reading() -> list[str]:
    """Percent of the options that arrive at places, singular and random ones.

    The places are staircases by the literal argmax, and ropes from the authors' start.
    """
    numbers = []
    readings = select_readings(load("MontezumaRevenge"))
    for reading, word in ((ARGMAX, "ladder"), (AUTHORS_STARTS, "rope")):
        table = readings[reading]
        arrives = table.region.str.contains(word) & (table.arrives > 0)
        shares = 100 * arrives.groupby(table.kind).mean()
        numbers += [f"{shares[kind]:.1f}" for kind in ("singular", "random")]
    return numbers


def select_whole_games(game: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Roll-outs and curves of the options that play until the game is over."""
    data = load(game)
    rollouts = data["rollouts"]
    curves = data["curves"]
    return (
        rollouts[rollouts.variant == WHOLE_GAMES],
        curves[curves.variant == WHOLE_GAMES],
    )


def describe_long_quest() -> list[str]:
    """Whole games of Montezuma's Revenge.

    The frames, those after which no share changes, and what arrives, by kind: percent,
    goals, and how many random options there are.
    """
    rollouts, curves = select_whole_games("MontezumaRevenge")
    shares = curves.pivot(index="frames", columns="kind", values="arrives")
    shares = shares[["singular", "random"]]
    is_final = (shares == shares.iloc[-1]).all(axis=1)
    percent = 100 * shares.iloc[-1]
    return [
        f"{rollouts.frames.iloc[0]:,}",
        f"{is_final.idxmax()}",
        f"{percent.singular:.0f}",
        *count_goals(rollouts, "singular"),
        f"{percent.random:.0f}",
        f"{(rollouts.kind == 'random').sum()}",
        *count_goals(rollouts, "random"),
    ]


def describe_long_chase() -> list[str]:
    """Whole games of Ms. Pac-Man: percent that has arrived.

    It is that of the first frames, the highest, each with the frames, and the last.
    """
    _, curves = select_whole_games("MsPacman")
    shares = 100 * curves[curves.kind == "singular"].set_index("frames").arrives
    return [
        f"{shares.iloc[0]:.0f}",
        f"{shares.index[0]}",
        f"{shares.max():.0f}",
        f"{shares.idxmax():,}",
        f"{shares.iloc[-1]:.0f}",
    ]


def describe_long_road() -> list[str]:
    """Whole episodes of Freeway: how long they are, and which options are at a lane.

    The frames, those after which the share does not change, the percentage, and how
    many random options there are. None of these is at a lane.
    """
    _, curves = select_whole_games("Freeway")
    shares = curves[curves.kind == "singular"].set_index("frames").arrives
    is_final = shares == shares.iloc[-1]
    of_random = curves[curves.kind == "random"]
    assert not of_random.arrives.any()
    return [
        f"{shares.index[-1]:,}",
        f"{is_final.idxmax():,}",
        f"{100 * shares.iloc[-1]:.1f}",
        f"{of_random.n.iloc[-1]}",
    ]


# Three numbers in a sentence.
THREE = "{}, {} and {}"

STATEMENTS: list[tuple[str, str, Callable[[], Sequence[str]]]] = [
    (
        "docs/atari.md",
        "{}% of the roll-outs arrive somewhere, and {}% of those with random "
        "directions; in Freeway {}% and {}%, in Ms. Pac-Man {}% and {}%.",
        compare_arrivals,
    ),
    (
        "docs/atari.md",
        f"reach {THREE} of Kulkarni's 7 goals (by collection); the same number of "
        f"random ones reaches {THREE}.",
        compare_goals,
    ),
    (
        "docs/atari.md",
        "(Freeway +{}, Montezuma's Revenge +{}, Ms. Pac-Man +{} of agreement)",
        read_fresh,
    ),
    (
        "docs/atari.md",
        f"holds: {THREE} of some 483 options, and {{}} of {{}} random ones in all",
        count_lane_options,
    ),
    (
        "docs/atari.md",
        "{} of its {} rows cross the road, and the best scores {} in a whole episode. "
        "Such rows score up to {} and {} in two other collections, and {} "
        "from the authors' first start.",
        compare_rows,
    ),
    (
        "docs/atari.md",
        "All true singular vectors score {}, also with",
        find_best_of_singular,
    ),
    ("docs/atari.md", "Holding UP scores {},", find_best_of_one_action),
    (
        "docs/atari.md",
        "({} to {} options in Freeway, {} to {} in Montezuma's Revenge, {} to {} in "
        "Ms. Pac-Man)",
        count_all_options,
    ),
    ("docs/atari.md", f"for {THREE} frames or one life.", count_frames),
    ("docs/atari.md", f"still grows by {THREE} (", measure_growth),
    (
        "docs/atari.md",
        f"reaches {THREE} goals there from the first start, instead of {THREE}; from "
        f"the authors' first start it is {THREE};",
        compare_goals_by_reading,
    ),
    (
        "docs/atari.md",
        "at staircases by the literal argmax ({}%, random ones {}%), and at ropes from "
        "the authors' start ({}% and {}%).",
        compare_places_by_reading,
    ),
    (
        "docs/atari.md",
        "at most {} frames. In Montezuma's Revenge the curves are flat after {} "
        "frames: {}% of the options have arrived, at {} goals, and {}% of {} random "
        "ones, at {}.",
        describe_long_quest,
    ),
    (
        "docs/atari.md",
        "{}% have arrived after {} frames, {}% after {}, and {}% in the end.",
        describe_long_chase,
    ),
    (
        "docs/atari.md",
        "In Freeway's {} frames the curve is flat after {}: {}% have arrived, and none "
        "of {} random ones.",
        describe_long_road,
    ),
]
