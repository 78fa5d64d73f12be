"""Slow features of a game's memory: directions that lead somewhere (beyond the paper's Section 5.2).

Large singular values of T belong to the bits that flip most often, and one frame shows the joystick more than the
player. Here random actions are held, bytes count only if the player's influence on them lasts, and a direction e is
measured by how little its potential changes per step *relative to its variance over states*: slow features, which the
paper mentions as a relative of proto-value functions. docs/atari.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions.atari.emulator import Bytes, Emulator
from eigenoptions.atari.protocol import ZERO_TOLERANCE
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import HOLD_FRAMES, Start, influence
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram

# Decisions of random play, and of one episode at most.
DECISIONS = 9_000
EPISODE_DECISIONS = 100
# One state of the emulator is saved per so many decisions, and about PROBES of them are searched for lasting bytes.
SAVE_EVERY_DECISIONS = 16
PROBES = 60
# Frames without any action, after which an influence that is left counts as lasting.
REST_FRAMES = 16
# Share of the states in which a byte must show a lasting influence.
LASTING_SHARE = 0.02


def slow_directions(
    game: str,
    starts: Sequence[Start],
    *,
    hold: int = HOLD_FRAMES,
    decisions: int = DECISIONS,
    rng: int | np.random.Generator = 0,
) -> Spectrum:
    """Slow features of bytes of lasting influence, from random play with actions held.

    Parameters
    ----------
    game, starts
        Name of the game, and states in which episodes begin, in turn.
    hold, decisions, rng
        Frames that an action is held, which is one step; number of steps of random play, and seed of its actions.

    Returns
    -------
    Spectrum
        The slowest first, after `n_zero` that never change; its `features` are the bits of the bytes, for `plan` on a
        `chart` or for `lockstep` with the same `hold`.

    Examples
    --------
    >>> slow = slow_directions("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], decisions=200)
    >>> slow.operator, 14 in slow.features.addresses
    ('incidence', True)
    """
    emulator = Emulator(game)
    episodes, states = held_play(emulator, starts, hold, decisions, np.random.default_rng(rng))
    coding = Ram(addresses=lasting_bytes(emulator, states))
    return held_spectrum(episodes, coding, slow=True)[1]


def held_play(
    emulator: Emulator, starts: Sequence[Start], hold: int, decisions: int, rng: np.random.Generator
) -> tuple[list[Bytes], list[Any]]:
    """Random play with actions held: memory ``(T + 1, 128)`` of each episode by decision, and about PROBES states seen.

    Episodes begin at the starts in turn and last at most EPISODE_DECISIONS, or a life.
    """
    if not starts:
        raise ValueError("there are no starts: give at least one, such as find_starts gives")
    episodes: list[Bytes] = []
    states: list[Any] = []
    first = []
    for start in starts:
        start.reach(emulator)
        first.append(emulator.save())
    seen = 0
    while seen < decisions:
        emulator.restore(first[len(episodes) % len(first)])
        lives, ram = emulator.lives, [emulator.ram()]
        for action in rng.integers(emulator.n_actions, size=EPISODE_DECISIONS).tolist():
            if seen % SAVE_EVERY_DECISIONS == 0:
                states.append(emulator.save())
            ram.append(emulator.hold(action, hold).rams[-1])
            seen += 1
            if emulator.over or emulator.lives < lives:
                break
        episodes.append(np.stack(ram))
    return episodes, states[:: max(1, len(states) // PROBES)]


def lasting_bytes(emulator: Emulator, states: Sequence[Any], *, required: bool = True) -> tuple[int, ...]:
    """Addresses of the bytes on which the player's actions have a *lasting* influence.

    They differ between actions, REST_FRAMES after these were held, in more than LASTING_SHARE of the states: echoes of
    the joystick are gone by then, and clocks and traffic never differ. Where there are none, ValueError if they are
    `required`, else the result is empty.
    """
    found = np.flatnonzero(influence(emulator, states, rest=REST_FRAMES) > LASTING_SHARE)
    if required and not len(found):
        raise ValueError(f"no byte of {emulator.game} keeps a trace of the action held: use all bytes")
    return tuple(found.tolist())


def held_spectrum(episodes: Sequence[Bytes], coding: Ram, *, slow: bool) -> tuple[Gram, Spectrum]:
    """The differences per step in these episodes, and their spectrum; with `slow`, relative to the variance."""
    # Slowness is a mean over time, so every transition counts.
    gram = Gram(features=coding, dedupe=not slow)
    for ram in episodes:
        gram.add(ram[:-1], ram[1:])
    metric = np.cov(coding(np.concatenate(episodes)).astype(float), rowvar=False) if slow else None
    return gram, gram.spectrum(tol=ZERO_TOLERANCE, metric=metric)
