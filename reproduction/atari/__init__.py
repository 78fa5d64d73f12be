"""Atari games (Section 5.2 and Appendix E): Freeway, Montezuma's Revenge and Ms. Pac-Man, each an experiment.

Sizes: ``"quick"`` (seconds, for tests), ``"default"`` (`eigenoptions atari GAME`: the way that works best, three
collections, some minutes on two cores), ``"paper"`` (the paper's way in a small run, one collection: ``--paper``, and
part of `reproduce`) and ``"full"`` (``--full``: the paper's way and all others, three collections, six starts, ten
random bases; the one to judge by). `settings` gives them for any game.
"""

from __future__ import annotations

from typing import Any

from eigenoptions._validation import check_choice
from reproduction.atari.claims import claims, notes
from reproduction.atari.jobs import BYTES, PAPER
from reproduction.atari.pictures import figure
from reproduction.atari.study import run as run_study
from reproduction.claims import declarations
from reproduction.experiment import Experiment, Settings

SIZES = ("quick", "default", "paper", "full")
FREEWAY_FRAMES = 8_192

Kinds = dict[str, dict[str, int | None]]


def _kinds(
    singular: int | None, bases: int, each: int, published: int, walks: int, rotated: int = 0
) -> Kinds:
    """Numbers of directions of each kind that are rolled out from every start, not counting signs."""
    kinds: Kinds = {
        "singular": {"many": singular},
        "random": {"bases": bases, "many": each},
        "published": {"many": published},
        "constant": {},
        "walk": {"many": walks},
    }
    return kinds | ({"rotated": {"bases": rotated, "many": each}} if rotated else {})


# Fewer directions where roll-outs share less: in Freeway equal states are common, in Montezuma's Revenge they are rare.
FULL: dict[str, Settings] = {
    "Freeway": {"frames": 500, "until": "game", "kinds": _kinds(96, 10, 8, 32, 16, 5)},
    "MontezumaRevenge": {"frames": 200, "until": "life", "kinds": _kinds(32, 10, 4, 16, 32)},
    "MsPacman": {"frames": 230, "until": "life", "kinds": _kinds(36, 10, 4, 16, 32)},
}
OTHER: Settings = {"frames": 230, "until": "life", "kinds": _kinds(32, 10, 5, 16, 32)}
# One collection decides little, whatever the number of options; these are enough for its figures.
SMALL: dict[str, Kinds] = {
    "Freeway": _kinds(24, 5, 2, 8, 8),
    "MontezumaRevenge": _kinds(6, 4, 1, 3, 8),
    "MsPacman": _kinds(8, 4, 1, 4, 8),
}
TINY = _kinds(3, 2, 1, 2, 2)
# Whole episodes of Freeway, for the score. With "full", one collection has all 1,024 rows of V.
SOME: Kinds = {"singular": {"many": 2}, "published": {"many": 2}, "constant": {}, "walk": {"many": 2}}
MANY: Kinds = {
    **{"singular": {"many": None}, "random": {"bases": 10, "many": 4}, "rows": {"many": 64}},
    **{"constant": {}, "walk": {"many": 8}},
}
# By the tabular rule, and in earlier trials, what climbs the road is among the smallest singular values.
LAST_BYTES: dict[str, Any] = {"singular": {"many": 8, "end": "small"}, "random": {"bases": 10, "many": 1}}
LONG: dict[str, list[Settings]] = {
    "full": [
        {"frames": FREEWAY_FRAMES, "kinds": {"published": {"many": None}}, "seeds": [1]},
        {"frames": FREEWAY_FRAMES, "kinds": MANY, "seeds": [1, 2]},
        {"frames": FREEWAY_FRAMES, "kinds": LAST_BYTES, "variant": BYTES},
    ],
    "paper": [
        {"frames": 2_048, "kinds": _kinds(24, 5, 2, 32, 4)},
        {"frames": 2_048, "kinds": LAST_BYTES, "variant": BYTES},
    ],
    "quick": [
        {"frames": 60, "kinds": SOME},
        {
            "frames": 60,
            "kinds": {"singular": {"many": 2}, "random": {"bases": 1, "many": 1}},
            "variant": BYTES,
        },
    ],
}


def _variant(
    name: str, frames: int, end: Any = None, *, each: int = 2, starts: int = 3, **how: Any
) -> Settings:
    """Another way to code, choose or follow directions, compared with random directions followed in the same way."""
    kinds = {"singular": {"many": 12, "end": end}, "random": {"bases": 10, "many": each}}
    return {"name": name, "frames": frames, "from": starts, "kinds": kinds, **how}


# What might make options more purposeful, and what was expected not to. Singular directions are the 12 of the smallest
# singular values (the tabular rule), or 12 evenly spaced ones where no end is named. They were chosen after a trial on
# one other collection per game, with other starts, measures and program; the seeds of the full size are fresh.
HELD: Settings = {"hold": 8, "bytes": "lasting", "slow": True}
# States of a chart, by game, and in other games. Freeway needs none: nothing stands in the way but cars.
CHARTED = {"MsPacman": 4_000, "MontezumaRevenge": 2_000}
CHARTED_OTHER = 1_000
PLANNED = "hold 8, planned with gamma 0.9"
SLOW = "lasting bytes, slow features"
AUTHORS = "the authors' starts"


def _planned(game: str, end: str, words: str, **how: Any) -> Settings:
    # Fewer random directions, states and frames in games that were not studied closely: a few minutes each.
    frames, each = (320, 6) if game in CHARTED else (240, 2)
    how |= {"plan": CHARTED.get(game, CHARTED_OTHER), "hold": 8, "gamma": 0.9}
    return _variant(f"{PLANNED}, {words}", frames, end, each=each, starts=6, **how)


def way(game: str) -> Settings:
    """The way that works best of those tried (docs/atari.md): slow features, planned on a chart of the game.

    In Freeway greedy choice was tried, and works.

    >>> way("Alien")["name"], way("Alien")["plan"]
    ('hold 8, planned with gamma 0.9, lasting bytes, slow features', 1000)
    """
    if game == "Freeway":
        return {**PAPER, **_variant(f"hold 8, {SLOW}", 800, "small", each=3, starts=6, **HELD)}
    return {**PAPER, **_planned(game, "small", SLOW, bytes="lasting", slow=True)}


def _variants(game: str) -> list[Settings]:
    """What the full size tries beside the paper's way; the last one is `way`."""
    if game not in GAMES:
        return [way(game)]
    # Five bases of four options: with two options each, as before, bases differ so much that little is decided.
    some = {"singular": {"many": 12}, "random": {"bases": 5, "many": 2}}
    fewer = {"singular": {"many": 8}, "random": {"bases": 4, "many": 2}}
    # All directions where roll-outs share much.
    every = {"singular": {"many": None}, "random": {"bases": 10, "many": 4}}
    frames, kinds = (300, every) if game == "Freeway" else (160, some)
    found: list[Settings] = [
        {**BYTES, "from": 3, "kinds": kinds, "frames": frames},
        {"name": AUTHORS, "starts": "authors", "kinds": fewer, "frames": frames},
    ]
    if game == "Freeway":
        found.append(_variant("hold 8", 512, hold=8, seeds=[1]))
    else:
        few = {"each": 1, "starts": 3} if game == "MontezumaRevenge" else {"starts": 4}
        found.append(_variant(f"hold 8, {SLOW}", 240, "small", **few, **HELD))
        words = {"small": "smallest singular values", "large": "largest singular values"}
        found += [_planned(game, end, text) for end, text in words.items()]
    return [*({**PAPER, **variant} for variant in found), way(game)]


def settings(game: str, size: str = "full") -> Settings:
    """Settings of the experiment of a game, any of `atari.emulator.games`, at one of `SIZES`.

    >>> settings("Freeway", "quick")["starts"], settings("Breakout")["seeds"]
    (2, [1, 2, 3])
    """
    check_choice("size", size, SIZES)
    given: dict[str, Any] = {"game": game, "seeds": [1, 2, 3] if size in ("default", "full") else [0]}
    given |= {"starts": 6, "bursts": 400, "transitions": 25_000, "longest": 10_000, **FULL.get(game, OTHER)}
    if size == "quick":
        given |= {"starts": 2, "bursts": 40, "transitions": 300, "longest": 300, "frames": 40, "kinds": TINY}
    elif size == "default":
        best = dict(way(game))
        given |= {
            "frames": best.pop("frames"),
            "kinds": {**best.pop("kinds"), "constant": {}, "walk": {"many": 8}},
        }
        given["way"] = best
    elif size == "paper":
        given |= {"kinds": SMALL.get(game, SMALL["MsPacman"])}
        given |= {"frames": min(int(given["frames"]), 300 if game == "Freeway" else 160)}
    if game == "Freeway" and size != "default":
        given["long"] = LONG[size]
    if size == "full":
        given["variants"] = _variants(game)
    elif size == "quick" and game != "MontezumaRevenge":
        few = {"singular": {"many": 2, "end": "small"}, "random": {"bases": 2, "many": 1}}
        held = {"name": f"hold 8, {SLOW}", **HELD}
        planned = {"name": PLANNED, "plan": 60, "gamma": 0.9, "hold": 8}
        how = planned if game in CHARTED else held
        given["variants"] = [{**PAPER, "kinds": few, "frames": 40, **how}]
    return given


# The games that the paper looks at.
GAMES = ("Freeway", "MontezumaRevenge", "MsPacman")


def experiment(game: str) -> Experiment:
    """The experiment of any game, at all `SIZES`.

    >>> experiment("Breakout").title
    'Breakout'
    """
    words: dict[str, Any] = {
        "title": game,
        "section": "5.2",
        "shows": "Nothing: the paper does not look at this game.",
    }
    words |= declarations()["experiment"].get(game.lower(), {})
    sizes = {size: settings(game, size) for size in SIZES}
    functions: dict[str, Any] = {"run": run_study, "figure": figure, "claims": claims, "notes": notes}
    return Experiment(game.lower(), settings=sizes, extra="atari", **words, **functions)


EXPERIMENTS = tuple(map(experiment, GAMES))
