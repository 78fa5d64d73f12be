"""Settings of the Atari studies: which options are made how, and how many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from reproduction.readings import ARGMAX, AUTHORS_STARTS, PUBLISHED_PROGRAM

# What follows the paper's protocol until the game is over, or until this frame.
WHOLE_GAMES = "until the game is over"
WHOLE_GAME_FRAMES = 2_048

# Rows of V by which the published program crosses the road of Freeway: 13 in collection
# 1, and two from its authors' starts.
ROWS_THAT_CROSS = (
    *(32, 321, 364, 373, 405, 426, 434, 440, 442),
    *(714, 889, 899, 900, 971, 972),
)

# Frames at the authors' first start of Ms. Pac-Man in which nobody can move.
OPENING_FRAMES = 190

SLOW = "lasting bytes, slow features"
PLANNED = "frame skip 8, planned with gamma 0.9"


class Kind(NamedTuple):
    """Options of one kind.

    ========= =====================================================================
    singular  right singular vectors of T, non-zero values only, both signs
    random    random orthonormal directions on the features that ever changed, both
              signs
    rows      rows of V instead of its columns, as the published program takes them;
              one sign
    published the same with the other fault of that program, rewards relative to
              another state
    constant  each action all the time
    walk      uniformly random walks
    ========= =====================================================================

    Attributes
    ----------
    name : str
        The kind.
    n : int, optional
        How many directions of each basis, evenly spaced; by default all.
    bases : int, default=1
        How many bases.
    end : {"", "small", "large"}
        Take those of the smallest or of the largest singular values instead.
    numbers : tuple of int
        Take directions of these numbers instead.
    """

    name: str
    n: int | None = None
    bases: int = 1
    end: str = ""
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One way to make options of a game and to follow them.

    Attributes
    ----------
    name : str
        Name of the variant.
    kinds : tuple of Kind
        The options.
    frames : int
        Length of a roll-out.
    code : str, default="bits"
        Code of the memory, see `Ram`.
    frame_skip : int, default=1
        Frames for which an action is repeated.
    slow : bool, default=False
        Whether directions are slow features of the bytes of lasting influence.
    graph_states : int, default=0
        States of the game graph on which options are planned; with 0 options look one
        step ahead.
    n_starts : int, default=6
        Starts from which options are followed.
    published_starts : bool, default=False
        Whether the starts are those of the authors.
    collections : tuple of int, default=(1, 2, 3)
        Seeds of the collections of transitions.
    rule : {"wait", "argmax"}, default="wait"
        What an option does where no action is positive, see `look_ahead`.
    one_life : bool, default=True
        Whether a lost life ends a roll-out; otherwise the end of the game does.
    long : bool, default=False
        Whether these are long roll-outs of Freeway, from the first start, for points
        and heights.
    transitions, max_episode_frames : int
        Size of a collection with frame skip 1, see `collect_ram`.
    decisions : int
        Size of a collection with another frame skip, see `play_randomly`.
    """

    name: str
    kinds: tuple[Kind, ...]
    frames: int
    code: str = "bits"
    frame_skip: int = 1
    slow: bool = False
    graph_states: int = 0
    n_starts: int = 6
    published_starts: bool = False
    collections: tuple[int, ...] = (1, 2, 3)
    rule: str = "wait"
    one_life: bool = True
    long: bool = False
    transitions: int = 25_000
    max_episode_frames: int = 10_000
    decisions: int = 9_000


def make_variants(game: str, size: str = "full") -> list[Variant]:
    """The variants of the study of a game; the first is the main one.

    Parameters
    ----------
    game : str
        Name of the game.
    size : {"default", "paper", "full", "quick"}
        ``"default"`` has the settings that work best of those tried, and takes some
        minutes on two cores. ``"paper"`` is the paper's protocol in a small run.
        ``"full"`` is the paper's protocol with all options and all variants, and takes
        hours; judge by this one. ``"quick"`` takes seconds and checks that everything
        works.
    """
    if size == "default":
        best = make_best_variant(game)
        kinds = (*best.kinds, Kind("constant"), Kind("walk", 8))
        return [replace(best, kinds=kinds)]
    if size == "paper":
        return make_paper_variants(game)
    if size == "quick":
        return make_quick_variants(game)
    return make_full_variants(game)


def make_best_variant(game: str) -> Variant:
    """The settings that work best of those tried (docs/atari.md).

    They are slow features, planned on a graph of the game. In Freeway, where nothing
    but cars stands in the way, looking one step ahead works.
    """
    slowest = Kind("singular", 12, end="small")
    if game == "Freeway":
        return Variant(
            name=f"frame skip 8, {SLOW}",
            kinds=(slowest, Kind("random", 3, bases=10)),
            frames=800,
            frame_skip=8,
            slow=True,
        )
    return Variant(
        name=f"{PLANNED}, {SLOW}",
        kinds=(slowest, Kind("random", 6, bases=10)),
        frames=320,
        frame_skip=8,
        slow=True,
        graph_states=4_000 if game == "MsPacman" else 2_000,
    )


def make_paper_variants(game: str) -> list[Variant]:
    """The paper's protocol with few options and one collection."""
    kinds = make_kinds(singular=8, bases=4, random=1, published=4, walks=8)
    variants = [Variant("paper", kinds, 160)]
    if game == "Freeway":
        kinds = make_kinds(singular=24, bases=5, random=2, published=32, walks=4)
        variants += make_long_variants(kinds, 2_048)
    return [replace(variant, collections=(1,)) for variant in variants]


def make_quick_variants(game: str) -> list[Variant]:
    """The paper's protocol and the best settings in seconds."""
    kinds = make_kinds(singular=3, bases=2, random=1, published=2, walks=2)
    variants = [Variant("paper", kinds, 40)]
    if game == "Freeway":
        kinds = make_kinds(singular=2, bases=2, random=1, published=2, walks=2)
        variants += make_long_variants(kinds, 60)

    best = make_best_variant(game)
    variants.append(
        replace(
            best,
            kinds=(Kind("singular", 2, end="small"), Kind("random", 1, bases=2)),
            frames=40,
            graph_states=min(best.graph_states, 60),
        )
    )
    return [
        replace(
            variant,
            collections=(1,),
            transitions=300,
            max_episode_frames=300,
            decisions=200,
            n_starts=2,
        )
        for variant in variants
    ]


def make_full_variants(game: str) -> list[Variant]:
    """All options of the paper's protocol, its readings, and what is tried beside it.

    The number of frames was chosen on a part, where the shares of options that settle
    and arrive grew little further (docs/atari.md). What is tried beside was chosen
    after a trial on one other collection per game, with other starts, measures and
    program.
    """
    if game == "Freeway":
        return _make_full_freeway()
    if game == "MontezumaRevenge":
        frames = 128
        n_waiting = 0
        n_slow = 1
        n_starts = 3
    else:
        frames = 160
        n_waiting = OPENING_FRAMES
        n_slow = 2
        n_starts = 4

    # A random basis has as many vectors as that of T.
    both = (Kind("singular"), Kind("random"))
    kinds = (*both, Kind("constant"), Kind("walk", 32))
    paper = Variant("paper", kinds, frames)
    best = make_best_variant(game)
    some = (Kind("singular", 12), Kind("random", 2, bases=5))
    slowest = (Kind("singular", 12, end="small"), Kind("random", n_slow, bases=10))
    largest = (Kind("singular", 12, end="large"), Kind("random", 6, bases=10))
    return [
        paper,
        *make_readings(paper, n_waiting),
        Variant("bytes", some, 160, code="bytes", n_starts=3),
        Variant(
            f"frame skip 8, {SLOW}",
            slowest,
            240,
            frame_skip=8,
            slow=True,
            n_starts=n_starts,
        ),
        replace(best, name=f"{PLANNED}, smallest singular values", slow=False),
        replace(
            best,
            name=f"{PLANNED}, largest singular values",
            slow=False,
            kinds=largest,
        ),
        best,
    ]


def make_readings(paper: Variant, n_waiting: int = 0) -> list[Variant]:
    """All options under other readings of the paper's protocol, from one start.

    Beside them are as many random directions, and few where whole games take long. The
    authors' first start needs `n_waiting` frames more.
    """
    both = (Kind("singular"), Kind("random"))
    few = (Kind("singular"), Kind("random", 4, bases=10))
    reading = replace(paper, kinds=both, n_starts=1)
    return [
        replace(reading, name=ARGMAX, rule="argmax"),
        replace(
            reading,
            name=AUTHORS_STARTS,
            published_starts=True,
            frames=paper.frames + n_waiting,
        ),
        replace(reading, name=PUBLISHED_PROGRAM, kinds=(Kind("published"),)),
        replace(
            paper,
            name=WHOLE_GAMES,
            kinds=(*few, Kind("walk", 8)),
            frames=WHOLE_GAME_FRAMES,
            one_life=False,
            collections=(1,),
            n_starts=1,
        ),
    ]


def _make_full_freeway() -> list[Variant]:
    """The variants of Freeway, with long roll-outs at the end."""
    every = (Kind("singular"), Kind("random", 4, bases=10))
    some = (Kind("singular", 12), Kind("random", 2, bases=10))
    others = (Kind("rows", 64), Kind("constant"), Kind("walk", 8))
    long, long_bytes = make_long_variants((*every, *others), 8_192)
    both = (Kind("singular"), Kind("random"))
    kinds = (*both, Kind("published", 32), Kind("constant"), Kind("walk", 16))
    paper = Variant("paper", kinds, 500)
    argmax, authors, published, _ = make_readings(paper)
    rows = Kind("published", numbers=ROWS_THAT_CROSS)
    rows_again = replace(
        long, name=PUBLISHED_PROGRAM, kinds=(rows,), collections=(2, 3)
    )
    return [
        paper,
        argmax,
        authors,
        published,
        Variant("bytes", every, 300, code="bytes", n_starts=3),
        Variant("frame skip 8", some, 512, frame_skip=8, n_starts=3, collections=(1,)),
        make_best_variant("Freeway"),
        replace(long, kinds=(Kind("published"),), collections=(1,)),
        rows_again,
        replace(
            long,
            name=AUTHORS_STARTS,
            published_starts=True,
            kinds=(Kind("singular"), rows),
            collections=(1,),
        ),
        replace(
            long,
            name=ARGMAX,
            rule="argmax",
            kinds=(Kind("singular"),),
            collections=(1,),
        ),
        replace(long, collections=(1, 2)),
        long_bytes,
    ]


def make_kinds(
    *, singular: int, bases: int, random: int, published: int, walks: int
) -> tuple[Kind, ...]:
    """Options of all kinds, in these numbers, not counting signs.

    `random` directions are taken of each of so many random `bases`.
    """
    return (
        Kind("singular", singular),
        Kind("random", random, bases),
        Kind("published", published),
        Kind("constant"),
        Kind("walk", walks),
    )


def make_long_variants(kinds: tuple[Kind, ...], frames: int) -> tuple[Variant, Variant]:
    """Long roll-outs of Freeway, with the bits and with the bytes of the memory.

    With bytes, what climbs the road is among the smallest singular values.
    """
    long = Variant("paper", kinds, frames, long=True)
    smallest = (Kind("singular", 8, end="small"), Kind("random", 1, bases=10))
    return long, replace(long, name="bytes", kinds=smallest, code="bytes")
