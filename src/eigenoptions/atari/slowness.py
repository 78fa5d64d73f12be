"""Slow features of a game's memory: directions that lead somewhere (beyond the paper's Section 5.2).

Large singular values of T belong to bits that flip most, and one frame shows the joystick more than the player. Here
random actions are held, bytes count only if what the player does to them lasts, and a direction e is measured by how
little its potential changes in a step *for its variance over states*: slow features, which the paper names as a
relative of proto-value functions. docs/atari.md has what that is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.protocol import TOL
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import Start, influence
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram

HOLD = 8  # frames
DECISIONS = 9_000  # of random play
EPISODE = 100  # decisions, at most
PROBES = 60  # states in which bytes of lasting influence are looked for
REST = 16  # frames without any action, after which an influence that is left lasts
LASTING = 0.02  # of these states

Bytes = NDArray[np.uint8]


def slow_directions(
    game: str,
    starts: Sequence[Start],
    *,
    hold: int = HOLD,
    decisions: int = DECISIONS,
    rng: int | np.random.Generator = 0,
) -> Spectrum:
    """Slow features of bytes of lasting influence, from random play with actions held.

    Parameters
    ----------
    game
        Its name.
    starts
        Where episodes begin, in turn.
    hold
        Frames that an action is held: one step.
    decisions
        Steps of random play.
    rng
        Of the actions.

    Returns
    -------
    Spectrum
        The slowest first, after `n_zero` that never change; its `features` are the bits of the bytes, for `plan` on a
        `chart` or for `lockstep` with the same `hold`.

    Examples
    --------
    >>> start = Start("Freeway", (0,) * 60, (14,), (6,))
    >>> slow = slow_directions("Freeway", [start], decisions=200)
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
    """Random play in which each action is held: memory ``(T + 1, 128)`` of each episode, decision by decision.

    Episodes begin at the starts in turn and last at most EPISODE decisions, or a life. Beside them, about PROBES states
    of the emulator seen on the way.
    """
    if not starts:
        raise ValueError("there are no starts: give at least one, such as find_starts gives")
    episodes: list[Bytes] = []
    states: list[Any] = []
    begun = []
    for start in starts:
        start.reach(emulator)
        begun.append(emulator.save())
    seen = 0
    while seen < decisions:
        emulator.restore(begun[len(episodes) % len(begun)])
        lives, ram = emulator.lives, [emulator.ram()]
        for action in rng.integers(emulator.n_actions, size=EPISODE).tolist():
            if seen % 16 == 0:
                states.append(emulator.save())
            for _ in range(hold):
                emulator.act(action)
            ram.append(emulator.ram())
            seen += 1
            if emulator.over or emulator.lives < lives:
                break
        episodes.append(np.stack(ram))
    return episodes, states[:: max(1, len(states) // PROBES)]


def lasting_bytes(emulator: Emulator, states: Sequence[Any]) -> tuple[int, ...]:
    """Addresses of bytes on which what the player did has a *lasting* influence.

    From each state every action is held for 8 frames and nothing is done for REST more. A byte counts if it then
    differs between actions in more than LASTING of the states: echoes of the joystick are gone by then, clocks and
    traffic never differ.
    """
    found = np.flatnonzero(influence(emulator, states, rest=REST) > LASTING)
    if not len(found):
        raise ValueError(f"no byte of {emulator.game} keeps a trace of the action held: use all bytes")
    return tuple(found.tolist())


def held_spectrum(episodes: Sequence[Bytes], coding: Ram, *, slow: bool) -> tuple[Gram, Spectrum]:
    """The stream of differences that a step makes in these episodes, and its spectrum; `slow`: against the variance."""
    gram = Gram(
        features=coding, dedupe=not slow
    )  # slowness is a mean over time: there every transition counts
    for ram in episodes:
        gram.add(ram[:-1], ram[1:])
    metric = np.cov(coding(np.concatenate(episodes)).astype(float), rowvar=False) if slow else None
    return gram, gram.spectrum(tol=TOL, metric=metric)
