"""The protocol of the paper's Appendix E: transitions of random play from several start states.

Rounds of random episodes, one from each start state, are played until 25,000 new transitions have been seen; those on
the way to the start states count too. 25,000 of them, drawn uniformly, are the rows ``phi(s') - phi(s)`` of the
incidence matrix T. Its right singular vectors, ``feature_spectrum(transitions, Ram(), whiten=False)``, are the
eigenpurposes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int, make_generator
from eigenoptions.atari.emulator import Bytes, Emulator, game_name
from eigenoptions.atari.ram import Ram
from eigenoptions.data import Transitions
from eigenoptions.parallel import run_jobs
from eigenoptions.spectra.incidence import Incidence

# The start states of the paper's own experiments, from ale/humanStarts of github.com/mcmachado/options. A person
# played them with each action repeated for 5 frames. A letter is an action, the number how many times it was taken.
PUBLISHED_STARTS: dict[str, tuple[str, ...]] = {
    "Freeway": (
        "N18",
        "N61 U4 N3 U1 N8",
        "N79 U5 N1 U7 N5",
        "N52 U22 N2",
        "N91 U12 N4 U15 N25",
        "N96 U39 N2",
    ),
    "MontezumaRevenge": (
        "N23",
        "N92 D5 N8 D1 N7 D4 N2 R10 r8 R4 r2 R4 D10 N2 L7 N10 L3 N4 L2 N6",
        "N109 R2 N10 r2 R8 N10",
        "N85 L1 l3 L8 N4",
        "N34 D12 R13 r3 R4 r2 R4 D10 L16 N12",
        "N113 D8 R8 r4 R2 r2 R2 D10 N8 L2 N4 L2 N14 L2 N12 L1 N9 L2 N4 l2 L14 U8 L4 N2 F2 N6",
    ),
    "MsPacman": (
        "N15",
        "N21 R40 N9 D2 N13",
        "N14 L43 N11 D2 N14",
        "N22 R41 N6 D2 R4 N5 U2 N23",
        "N32 L3 N13 L3 N16 D3 N3 L2 U5 N23",
        "N20 R4 N4 R4 N8 R2 N4 R2 N5 R2 N5 U4 N12 L4 N6",
    ),
}
LETTERS = {"N": "NOOP", "F": "FIRE", "U": "UP", "R": "RIGHT", "L": "LEFT", "D": "DOWN"}
LETTERS |= {"r": "UPRIGHTFIRE", "l": "UPLEFTFIRE"}


def published_starts(game: str) -> list[tuple[int, ...]]:
    """The six start states that the paper's authors published, of Freeway, MontezumaRevenge or MsPacman.

    Each is the sequence of actions, one per frame, that leads there from the beginning of the game.

    Examples
    --------
    The chicken at different heights of the road; from the last one it has crossed, and is back.

    >>> emulator = Emulator("Freeway")
    >>> for actions in published_starts("Freeway"):
    ...     reward = emulator.replay(actions)
    ...     print(len(actions), "frames, height", emulator.ram()[14])
    90 frames, height 6
    385 frames, height 31
    485 frames, height 66
    380 frames, height 116
    735 frames, height 141
    685 frames, height 6
    """
    name = game_name(game)
    if name not in PUBLISHED_STARTS:
        raise ValueError(
            f"start states were published of {', '.join(PUBLISHED_STARTS)}, got {name}"
        )
    actions = Emulator(name).actions
    return [
        tuple(
            actions.index(LETTERS[letter])
            for letter, count in re.findall(r"(\w)(\d+)", text)
            for _ in range(5 * int(count))
        )
        for text in PUBLISHED_STARTS[name]
    ]


def collect_ram(
    game: str,
    starts: Sequence[Sequence[int]],
    n: int = 25_000,
    *,
    features: Callable[[Any], Any] | None = None,
    max_episode_frames: int = 10_000,
    max_rounds: int = 100,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Transitions:
    """Sample transitions of a game's memory in random episodes from several start states (Appendix E).

    Parameters
    ----------
    game : str
        Name of the game.
    starts : sequence of sequences of int
        For each start state the actions, one per frame, that lead there from the beginning of the game, such as
        `published_starts`. ``[()]`` is the beginning itself. Transitions on the way count too.
    n : int, default 25,000
        Number of new transitions to see: those whose difference of features was not seen before, and is not zero. The
        last round is played to its end, as in the paper, and n transitions are drawn uniformly from all new ones.
    features : callable, optional
        The map phi of memory; None: the paper's bits, ``Ram()``.
    max_episode_frames, max_rounds : int
        Frames after which an episode is truncated, not counting the way to its start, and maximal number of rounds.
    rng : int or Generator, default 0
        Seed of the random actions and of the draw.
    progress : callable, optional
        Called with the numbers of new transitions seen and wanted, after each round.

    Returns
    -------
    Transitions
        Memory ``(n, 128)`` before and after, in the order in which they were seen.

    Examples
    --------
    >>> collect_ram("Freeway", [(), (1,) * 60], 500, max_episode_frames=400).obs.shape
    (500, 128)
    """
    name, n, n_starts = (
        game_name(game),
        check_int("n", n),
        check_int("the number of starts", len(starts)),
    )
    T, features = Incidence(), Ram() if features is None else features
    seed = (
        int(rng.integers(2**63))
        if isinstance(rng, np.random.Generator)
        else check_int("rng", rng, 0)
    )
    parts: list[tuple[Bytes, NDArray[Any], Bytes, NDArray[Any]]] = []
    for played in range(max_rounds):
        n_before = len(T)
        jobs = [
            (name, tuple(start), max_episode_frames, seed, played, i)
            for i, start in enumerate(starts)
        ]
        for ram, actions, over in run_jobs(play_episode, jobs):
            phi = features(ram)
            new = T.add(phi[:-1], phi[1:])
            terminated = np.arange(len(actions)) == (len(actions) - 1 if over else -1)
            parts.append((ram[:-1][new], actions[new], ram[1:][new], terminated[new]))
        if progress is not None:
            progress(min(len(T), n), n)
        if len(T) >= n or len(T) == n_before:
            break
    if len(T) < n:
        raise ValueError(
            f"{len(T)} new transitions of {name} were seen in {played + 1} rounds of {n_starts} episodes, "
            f"n is {n}: lower n, or raise max_episode_frames or max_rounds"
        )
    chosen = np.sort(make_generator(seed).choice(len(T), n, replace=False))
    return Transitions(
        *(np.concatenate(column)[chosen] for column in zip(*parts, strict=True))
    )


def play_episode(
    job: tuple[str, tuple[int, ...], int, int, int, int],
) -> tuple[Bytes, NDArray[np.int64], bool]:
    """Memory ``(T + 1, 128)`` and actions to a start and in a random episode, and whether the game is over."""
    game, start, max_frames, seed, *key = job
    emulator = Emulator(game)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(key)))
    actions = [*start, *rng.integers(emulator.n_actions, size=max_frames).tolist()]
    ram = [emulator.ram()]
    for action in actions:
        if emulator.over:
            break
        emulator.act(action)
        ram.append(emulator.ram())
    return (
        np.stack(ram),
        np.array(actions[: len(ram) - 1], dtype=np.int64),
        emulator.over,
    )
