"""Settings of the Atari studies: which options are made in which way, and how many of them are followed.

Options of a roll-out have a *kind*:

========= ============================================================================================================
singular  right singular vectors of T, non-zero values only, both signs; `n` evenly spaced ones, or all (None), or those
          of the largest or smallest singular values (`end`)
random    `bases` of random orthonormal directions on the features that ever changed, `n` of each, both signs
rotated   the same, but within the span of the singular vectors: another basis of where transitions went
rows      rows of V instead of its columns, as the published program takes them; `n` of all features, one sign
published the same with the other fault of that program, rewards relative to another state
constant  each action all the time
walk      `n` uniformly random walks
========= ============================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eigenoptions._validation import check_choice

SIZES = ("quick", "default", "paper", "full")
Kinds = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Variant:
    """One way to make options of a game and to follow them."""

    name: str
    kinds: Kinds
    frames: int  # of a roll-out
    code: str = "bits"  # of memory, see `Ram`
    frame_skip: int = 1  # frames for which an action is repeated
    lasting: bool = False  # only bytes of lasting influence count
    slow: bool = False  # directions are slow features
    graph_states: int = 0  # of the game graph on which options are planned; 0: they look one step ahead
    n_starts: int = 6
    published_starts: bool = False  # the starts are those of the authors
    seeds: tuple[int, ...] = ()  # collections that are used; empty: all
    long: bool = False  # long roll-outs of Freeway, from the first start, for points and heights


@dataclass(frozen=True)
class Study:
    """Settings of the study of one game."""

    game: str
    variants: tuple[Variant, ...]  # the first is the main one
    seeds: tuple[int, ...] = (1, 2, 3)  # one per collection of transitions
    n_starts: int = 6  # per collection
    bursts: int = 400  # of exploration, to find the starts
    transitions: int = 25_000  # of a collection, see `collect_ram`
    max_episode_frames: int = 10_000
    one_life: bool = True  # roll-outs end when a life is lost


def make_study(game: str, size: str = "full") -> Study:
    """Settings of the study of a game at one of `SIZES`.

    ``"default"``: the settings that work best of those tried, three collections, some minutes on two cores;
    ``"paper"``: the paper's protocol in a small run; ``"full"``: the paper's protocol and all variants, up to an hour,
    the one to judge by; ``"quick"``: seconds, to check that everything works.

    >>> make_study("Freeway", "quick").n_starts, make_study("MsPacman").variants[-1].graph_states
    (2, 4000)
    """
    check_choice("size", size, SIZES)
    one_life = game != "Freeway"
    best = best_variant(game)
    kinds: Kinds
    if size == "default":
        kinds = {**best.kinds, "constant": {}, "walk": {"n": 8}}
        return Study(game, (replace(best, kinds=kinds),), one_life=one_life)
    if size == "paper":
        counts = {
            "Freeway": (24, 5, 2, 8, 8),
            "MontezumaRevenge": (6, 4, 1, 3, 8),
            "MsPacman": (8, 4, 1, 4, 8),
        }
        paper = Variant("paper", _make_kinds(*counts[game]), 300 if game == "Freeway" else 160)
        return Study(game, (paper, *_long_variants(game, size)), (0,), one_life=one_life)
    if size == "quick":
        kinds = {"singular": {"n": 2, "end": "small"}, "random": {"bases": 2, "n": 1}}
        variants = [Variant("paper", _make_kinds(3, 2, 1, 2, 2), 40, n_starts=2), *_long_variants(game, size)]
        if game == "Freeway":
            variants.append(replace(best, kinds=kinds, frames=40, n_starts=2))
        elif game == "MsPacman":
            variants.append(Variant(PLANNED, kinds, 40, frame_skip=8, graph_states=60, n_starts=2))
        return Study(game, tuple(variants), (0,), 2, 40, 300, 300, one_life)
    # Fewer directions where roll-outs share less: in Freeway equal states are common, in Montezuma's Revenge rare.
    frames, kinds = {
        "Freeway": (500, _make_kinds(96, 10, 8, 32, 16, 5)),
        "MontezumaRevenge": (200, _make_kinds(32, 10, 4, 16, 32)),
        "MsPacman": (230, _make_kinds(36, 10, 4, 16, 32)),
    }[game]
    every = (Variant("paper", kinds, frames), *_other_variants(game), *_long_variants(game, size))
    return Study(game, every, one_life=one_life)


SLOW = "lasting bytes, slow features"
PLANNED = "frame skip 8, planned with gamma 0.9"


def best_variant(game: str) -> Variant:
    """The settings that work best of those tried (docs/atari.md): slow features, planned on a graph of the game.

    In Freeway, where nothing but cars stands in the way, looking one step ahead works.
    """
    if game == "Freeway":
        kinds: Kinds = {"singular": {"n": 12, "end": "small"}, "random": {"bases": 10, "n": 3}}
        return Variant(f"frame skip 8, {SLOW}", kinds, 800, frame_skip=8, lasting=True, slow=True)
    return replace(_planned(game, "small", SLOW), lasting=True, slow=True)


def _planned(game: str, end: str, words: str) -> Variant:
    """Options planned on a game graph."""
    kinds: Kinds = {"singular": {"n": 12, "end": end}, "random": {"bases": 10, "n": 6}}
    states = 4_000 if game == "MsPacman" else 2_000
    return Variant(f"{PLANNED}, {words}", kinds, 320, frame_skip=8, graph_states=states)


def _make_kinds(singular: int, bases: int, n: int, published: int, walks: int, rotated: int = 0) -> Kinds:
    """Numbers of options of each kind that are followed from every start, not counting signs."""
    kinds: dict[str, Any] = {
        "singular": {"n": singular},
        "random": {"bases": bases, "n": n},
        "published": {"n": published},
        "constant": {},
        "walk": {"n": walks},
    }
    return kinds | ({"rotated": {"bases": rotated, "n": n}} if rotated else {})


def _other_variants(game: str) -> tuple[Variant, ...]:
    """What the full size tries beside the paper's protocol; the last one is the best.

    They were chosen after a trial on one other collection per game, with other starts, measures and program.
    """
    best = best_variant(game)
    some: Kinds = {"singular": {"n": 12}, "random": {"bases": 5, "n": 2}}
    fewer: Kinds = {"singular": {"n": 8}, "random": {"bases": 4, "n": 2}}
    all_singular: Kinds = {"singular": {"n": None}, "random": {"bases": 10, "n": 4}}
    frames, kinds = (300, all_singular) if game == "Freeway" else (160, some)
    variants = (
        Variant("bytes", kinds, frames, code="bytes", n_starts=3),
        Variant("the authors' starts", fewer, frames, published_starts=True),
    )
    if game == "Freeway":
        kinds = {"singular": {"n": 12}, "random": {"bases": 10, "n": 2}}
        return (*variants, Variant("frame skip 8", kinds, 512, frame_skip=8, n_starts=3, seeds=(1,)), best)
    n, n_starts = (1, 3) if game == "MontezumaRevenge" else (2, 4)
    kinds = {"singular": {"n": 12, "end": "small"}, "random": {"bases": 10, "n": n}}
    return (
        *variants,
        replace(
            best, name=f"frame skip 8, {SLOW}", kinds=kinds, frames=240, n_starts=n_starts, graph_states=0
        ),
        _planned(game, "small", "smallest singular values"),
        _planned(game, "large", "largest singular values"),
        best,
    )


def _long_variants(game: str, size: str) -> tuple[Variant, ...]:
    """Long roll-outs of Freeway; with bytes, what climbs the road is among the smallest singular values."""
    if game != "Freeway":
        return ()
    last: Kinds = {"singular": {"n": 8, "end": "small"}, "random": {"bases": 10, "n": 1}}
    if size == "full":
        every: Kinds = {
            "singular": {"n": None},
            "random": {"bases": 10, "n": 4},
            "rows": {"n": 64},
            "constant": {},
            "walk": {"n": 8},
        }
        return (
            Variant("paper", {"published": {"n": None}}, 8_192, seeds=(1,), long=True),
            Variant("paper", every, 8_192, seeds=(1, 2), long=True),
            Variant("bytes", last, 8_192, code="bytes", long=True),
        )
    frames, kinds = 2_048, _make_kinds(24, 5, 2, 32, 4)
    if size == "quick":
        frames, kinds = 60, {"singular": {"n": 2}, "published": {"n": 2}, "constant": {}, "walk": {"n": 2}}
        last = {"singular": {"n": 2}, "random": {"bases": 1, "n": 1}}
    return (
        Variant("paper", kinds, frames, long=True),
        Variant("bytes", last, frames, code="bytes", long=True),
    )
