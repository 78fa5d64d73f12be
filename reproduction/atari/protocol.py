"""The protocol of the paper's Appendix E: random play from several start states.

Rounds of random episodes, one from each start state, are played until 25,000 new
transitions have been seen; those on the way to the start states count too. 25,000 of
them, drawn uniformly, are the rows ``phi(s') - phi(s)`` of the incidence matrix T. Its
right singular vectors, ``feature_spectrum(transitions, Ram(), whiten=False)``, are the
eigenpurposes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import FeatureFunction, IndexArray, Randomness
from eigenoptions._validation import check_int, make_generator
from eigenoptions.atari.emulator import Bytes, Emulator, find_game_name
from eigenoptions.atari.ram import Ram
from eigenoptions.parallel import run_jobs
from eigenoptions.samples import Transitions
from eigenoptions.samples.incidence import Incidence

# The start states of the paper's own experiments, from ale/humanStarts of
# github.com/mcmachado/options. A person played them with each action repeated for 5
# frames. A letter is an action, the number how many times it was taken.
_PUBLISHED_STARTS = {
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
        "N113 D8 R8 r4 R2 r2 R2 D10 N8 L2 N4 L2 N14 L2 N12 L1 N9 L2 N4 l2 L14 U8 L4 N2 "
        "F2 N6",
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
_ACTIONS_BY_LETTER = {
    "N": "NOOP",
    "F": "FIRE",
    "U": "UP",
    "R": "RIGHT",
    "L": "LEFT",
    "D": "DOWN",
    "r": "UPRIGHTFIRE",
    "l": "UPLEFTFIRE",
}


def published_starts(game: str) -> list[tuple[int, ...]]:
    """The six start states that the paper's authors published.

    Parameters
    ----------
    game : str
        Freeway, MontezumaRevenge or MsPacman.

    Returns
    -------
    list of tuple of int
        For each start state the actions, one per frame, that lead there from the
        beginning of the game.

    Examples
    --------
    The chicken is at different heights of the road. In the last state it has crossed
    the road, and is back.

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
    name = find_game_name(game)
    if name not in _PUBLISHED_STARTS:
        raise ValueError(
            f"start states were published of {', '.join(_PUBLISHED_STARTS)}, got {name}"
        )
    actions = Emulator(name).actions
    return [_read_start(text, actions) for text in _PUBLISHED_STARTS[name]]


# Frames for which each published action was held.
_FRAMES_PER_ACTION = 5


def _read_start(text: str, actions: tuple[str, ...]) -> tuple[int, ...]:
    """Read a start state: one action per frame."""
    taken: list[int] = []
    for letter, count in re.findall(r"(\w)(\d+)", text):
        action = actions.index(_ACTIONS_BY_LETTER[letter])
        taken += [action] * (_FRAMES_PER_ACTION * int(count))
    return tuple(taken)


@shows_progress
def collect_ram(
    game: str,
    starts: Sequence[Sequence[int]],
    n: int = 25_000,
    *,
    features: FeatureFunction | None = None,
    max_episode_frames: int = 10_000,
    max_rounds: int = 100,
    rng: Randomness = 0,
    progress: ProgressArgument = None,
) -> Transitions:
    """Sample transitions of a game's memory in random episodes (Appendix E).

    A round is one episode from each start state. A transition is new if its difference
    of features is not zero and was not seen before. The last round is played to its
    end, as in the paper, and n transitions are drawn uniformly from all new ones.

    Parameters
    ----------
    game : str
        Name of the game.
    starts : sequence of sequences of int
        For each start state the actions, one per frame, that lead there from the
        beginning of the game, such as `published_starts`. ``[()]`` is the beginning
        itself. Transitions on the way count too.
    n : int, default=25,000
        Number of new transitions to see.
    features : callable, optional
        The map phi of memory. By default the paper's bits, ``Ram()``.
    max_episode_frames : int, default=10,000
        Frames after which an episode is truncated, not counting the way to its start.
    max_rounds : int, default=100
        Largest number of rounds.
    rng : int or Generator, default=0
        Seed of the random actions and of the draw.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called after each
        round with the numbers of new transitions seen and wanted.

    Returns
    -------
    Transitions
        Memory ``(n, 128)`` before and after, in the order in which they were seen.

    Examples
    --------
    >>> starts = [(), (1,) * 60]
    >>> collect_ram("Freeway", starts, 500, max_episode_frames=400).obs.shape
    (500, 128)
    """
    progress = check_progress(progress)
    name = find_game_name(game)
    n = check_int("n", n)
    n_starts = check_int("the number of starts", len(starts))
    max_rounds = check_int("max_rounds", max_rounds)
    if features is None:
        features = Ram()
    if isinstance(rng, np.random.Generator):
        seed = int(rng.integers(2**63))
    else:
        seed = check_int("rng", rng, 0)

    T = Incidence()
    parts: list[Transitions] = []
    n_rounds = 0
    has_found_new = True
    while len(T) < n and n_rounds < max_rounds and has_found_new:
        n_before = len(T)
        jobs = [
            _EpisodeJob(name, tuple(start), max_episode_frames, seed, n_rounds, i)
            for i, start in enumerate(starts)
        ]
        for episode in run_jobs(_play_episode, jobs):
            parts.append(_add_new_transitions(T, episode, features))
        n_rounds += 1
        has_found_new = len(T) > n_before
        if progress is not None:
            progress(min(len(T), n), n)

    if len(T) < n:
        raise ValueError(
            f"{len(T)} new transitions of {name} were seen in {n_rounds} rounds of "
            f"{n_starts} episodes, n is {n}: lower n, or raise max_episode_frames or "
            "max_rounds"
        )

    chosen = np.sort(make_generator(seed).choice(len(T), n, replace=False))
    return Transitions(
        obs=np.concatenate([part.obs for part in parts])[chosen],
        action=np.concatenate([part.action for part in parts])[chosen],
        next_obs=np.concatenate([part.next_obs for part in parts])[chosen],
        terminated=np.concatenate([part.terminated for part in parts])[chosen],
    )


class _EpisodeJob(NamedTuple):
    """A random episode to be played by a worker."""

    game: str
    start: tuple[int, ...]
    max_frames: int
    seed: int
    round_number: int
    start_number: int


class _Episode(NamedTuple):
    """An episode, the way to its start included.

    Attributes
    ----------
    rams : array (T + 1, 128)
        The memory before the first frame and after each one.
    actions : array (T,)
        The actions, one per frame.
    over : bool
        Whether the game is over.
    """

    rams: Bytes
    actions: IndexArray
    over: bool


def _play_episode(job: _EpisodeJob) -> _Episode:
    """Go to a start state, and play random actions from there."""
    emulator = Emulator(job.game)
    # Each episode has random numbers of its own, whoever plays it.
    spawn_key = (job.round_number, job.start_number)
    rng = np.random.default_rng(np.random.SeedSequence(job.seed, spawn_key=spawn_key))
    random_actions = rng.integers(emulator.n_actions, size=job.max_frames)

    taken = []
    rams = [emulator.ram()]
    for action in (*job.start, *random_actions.tolist()):
        if emulator.over:
            break
        emulator.act(action)
        taken.append(action)
        rams.append(emulator.ram())
    return _Episode(np.stack(rams), np.array(taken, dtype=np.intp), emulator.over)


def _add_new_transitions(
    T: Incidence, episode: _Episode, features: FeatureFunction
) -> Transitions:
    """Add the transitions of an episode to T, and return those that are new."""
    phi = features(episode.rams)
    is_new = T.add(phi[:-1], phi[1:])

    terminated = np.zeros(len(episode.actions), dtype=np.bool_)
    if episode.over:
        terminated[-1] = True
    return Transitions(
        obs=episode.rams[:-1][is_new],
        action=episode.actions[is_new],
        next_obs=episode.rams[1:][is_new],
        terminated=terminated[is_new],
    )
