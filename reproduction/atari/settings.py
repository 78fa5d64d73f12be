"""Settings of the Atari studies: which options are made in which way, and how many of them are followed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

SLOW = "lasting bytes, slow features"
PLANNED = "frame skip 8, planned with gamma 0.9"


class Kind(NamedTuple):
    """Options of one kind, `n` (None: all) of each of some bases, evenly spaced or those of one `end`.

    ========= ========================================================================================================
    singular  right singular vectors of T, non-zero values only, both signs
    random    random orthonormal directions on the features that ever changed, both signs
    rows      rows of V instead of its columns, as the published program takes them; one sign
    published the same with the other fault of that program, rewards relative to another state
    constant  each action all the time
    walk      uniformly random walks
    ========= ========================================================================================================
    """

    name: str
    n: int | None = None
    bases: int = 1
    end: str = ""  # "small" or "large" singular values


@dataclass(frozen=True)
class Variant:
    """One way to make options of a game and to follow them."""

    name: str
    kinds: tuple[Kind, ...]
    frames: int  # of a roll-out
    code: str = "bits"  # of memory, see `Ram`
    frame_skip: int = 1  # frames for which an action is repeated
    slow: bool = False  # directions are slow features of the bytes of lasting influence
    graph_states: int = (
        0  # of the game graph on which options are planned; 0: they look one step ahead
    )
    n_starts: int = 6  # from which options are followed
    published_starts: bool = False  # the starts are those of the authors
    collections: tuple[int, ...] = (1, 2, 3)  # of transitions: their seeds
    long: bool = (
        False  # long roll-outs of Freeway, from the first start, for points and heights
    )
    transitions: int = 25_000  # of a collection with frame skip 1, see `collect_ram`
    max_episode_frames: int = 10_000
    decisions: int = (
        9_000  # of a collection with another frame skip, see `play_randomly`
    )


def make_variants(game: str, size: str = "full") -> list[Variant]:
    """The variants of the study of a game at a size; the first is the main one.

    ``"default"``: the settings that work best of those tried, some minutes on two cores; ``"paper"``: the paper's
    protocol in a small run; ``"full"``: the paper's protocol and all variants, up to an hour, the one to judge by;
    ``"quick"``: seconds, to check that everything works.
    """
    best = make_best_variant(game)
    if size == "default":
        return [replace(best, kinds=(*best.kinds, Kind("constant"), Kind("walk", 8)))]
    if size == "paper":
        variants = [Variant("paper", make_kinds(8, 4, 1, 4, walks=8), 160)]
        if game == "Freeway":
            variants += make_long_variants(make_kinds(24, 5, 2, 32, walks=4), 2_048)
        return [replace(variant, collections=(1,)) for variant in variants]
    if size == "quick":
        variants = [Variant("paper", make_kinds(3, 2, 1, 2, walks=2), 40)]
        if game == "Freeway":
            variants += make_long_variants(make_kinds(2, 2, 1, 2, walks=2), 60)
        some = (Kind("singular", 2, end="small"), Kind("random", 1, bases=2))
        variants.append(
            replace(
                best, kinds=some, frames=40, graph_states=min(best.graph_states, 60)
            )
        )
        small = {
            "transitions": 300,
            "max_episode_frames": 300,
            "decisions": 200,
            "n_starts": 2,
        }
        return [replace(variant, collections=(1,), **small) for variant in variants]
    return make_full_variants(game)


def make_best_variant(game: str) -> Variant:
    """The settings that work best of those tried (docs/atari.md): slow features, planned on a graph of the game.

    In Freeway, where nothing but cars stands in the way, looking one step ahead works.
    """
    slow, states = (
        Kind("singular", 12, end="small"),
        4_000 if game == "MsPacman" else 2_000,
    )
    if game == "Freeway":
        kinds = (slow, Kind("random", 3, bases=10))
        return Variant(f"frame skip 8, {SLOW}", kinds, 800, frame_skip=8, slow=True)
    kinds = (slow, Kind("random", 6, bases=10))
    return Variant(
        f"{PLANNED}, {SLOW}", kinds, 320, frame_skip=8, slow=True, graph_states=states
    )


def make_kinds(
    singular: int, bases: int, n: int, published: int, *, walks: int
) -> tuple[Kind, ...]:
    """Numbers of options of each kind that are followed from every start, not counting signs."""
    directions = (
        Kind("singular", singular),
        Kind("random", n, bases),
        Kind("published", published),
    )
    return *directions, Kind("constant"), Kind("walk", walks)


def make_long_variants(kinds: tuple[Kind, ...], frames: int) -> list[Variant]:
    """Long roll-outs of Freeway; with bytes, what climbs the road is among the smallest singular values."""
    last = (Kind("singular", 8, end="small"), Kind("random", 1, bases=10))
    long = Variant("paper", kinds, frames, long=True)
    return [long, replace(long, name="bytes", kinds=last, code="bytes")]


def make_full_variants(game: str) -> list[Variant]:
    """The paper's protocol, and what is tried beside it.

    The others were chosen after a trial on one other collection per game, with other starts, measures and program.
    There are fewer directions where roll-outs share less: in Freeway equal states are common, in Montezuma's Revenge
    rare.
    """
    best, fewer = (
        make_best_variant(game),
        (Kind("singular", 8), Kind("random", 2, bases=4)),
    )
    if game == "Freeway":
        every = (Kind("singular"), Kind("random", 4, bases=10))
        some = (Kind("singular", 12), Kind("random", 2, bases=10))
        others = (Kind("rows", 64), Kind("constant"), Kind("walk", 8))
        long, long_bytes = make_long_variants((*every, *others), 8_192)
        return [
            Variant("paper", make_kinds(96, 10, 8, 32, walks=16), 500),
            Variant("bytes", every, 300, code="bytes", n_starts=3),
            Variant("the authors' starts", fewer, 300, published_starts=True),
            Variant(
                "frame skip 8", some, 512, frame_skip=8, n_starts=3, collections=(1,)
            ),
            best,
            replace(long, kinds=(Kind("published"),), collections=(1,)),
            replace(long, collections=(1, 2)),
            long_bytes,
        ]
    singular, frames, n_starts, n = (
        (32, 200, 3, 1) if game == "MontezumaRevenge" else (36, 230, 4, 2)
    )
    some = (Kind("singular", 12), Kind("random", 2, bases=5))
    slow = (Kind("singular", 12, end="small"), Kind("random", n, bases=10))
    large = (Kind("singular", 12, end="large"), Kind("random", 6, bases=10))
    return [
        Variant("paper", make_kinds(singular, 10, 4, 16, walks=32), frames),
        Variant("bytes", some, 160, code="bytes", n_starts=3),
        Variant("the authors' starts", fewer, 160, published_starts=True),
        Variant(
            f"frame skip 8, {SLOW}",
            slow,
            240,
            frame_skip=8,
            slow=True,
            n_starts=n_starts,
        ),
        replace(best, name=f"{PLANNED}, smallest singular values", slow=False),
        replace(
            best, name=f"{PLANNED}, largest singular values", slow=False, kinds=large
        ),
        best,
    ]
