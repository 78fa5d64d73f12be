"""Slow features of a game's memory: directions that lead somewhere (beyond the paper's Section 5.2).

Large singular values of T belong to the bits that flip most often, and one frame shows the joystick more than the
player. Here random actions are repeated for some frames, bytes count only if the player's influence on them lasts, and
a direction e is measured by how little its potential changes per step *relative to its variance over states*: slow
feature analysis, which the paper names as a relative of proto-value functions. docs/atari.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._validation import check_int
from eigenoptions.atari.emulator import Bytes, Emulator
from eigenoptions.atari.ram import N_BYTES, Ram
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.incidence import incidence_spectrum


def slow_directions(
    game: str,
    starts: Sequence[Sequence[int]],
    *,
    frame_skip: int = 8,
    n_decisions: int = 9_000,
    rng: int | np.random.Generator = 0,
) -> Spectrum:
    """Slow features of the bytes on which the player has a lasting influence, from random play.

    Parameters
    ----------
    game : str
        Name of the game.
    starts : sequence of sequences of int
        States in which episodes begin, in turn, as in `collect_ram`.
    frame_skip : int, default 8
        Frames for which an action is repeated: one step. Options made of the result act with the same frame skip.
    n_decisions : int, default 9,000
        Number of steps of random play.
    rng : int or Generator, default 0
        Seed of the actions.

    Returns
    -------
    Spectrum
        The slowest directions first, after `n_zero` that never change; its `features` are the bits of the bytes.

    Examples
    --------
    >>> slow = slow_directions("Freeway", [()], n_decisions=200)
    >>> slow.operator, 14 in slow.features.addresses
    ('incidence', True)
    """
    emulator = Emulator(game)
    episodes, states = play_randomly(
        emulator, starts, frame_skip, n_decisions, np.random.default_rng(rng)
    )
    addresses = find_lasting_bytes(emulator, states)
    if not addresses:
        raise ValueError(
            f"no action has a lasting influence on the memory of {emulator.game}: use collect_ram"
        )
    return compute_slow_spectrum(episodes, Ram(addresses=addresses))


def play_randomly(
    emulator: Emulator,
    starts: Sequence[Sequence[int]],
    frame_skip: int,
    n_decisions: int,
    rng: np.random.Generator,
    *,
    max_episode_decisions: int = 100,
    n_states: int = 60,
) -> tuple[list[Bytes], list[Any]]:
    """Play random actions from the starts in turn; an episode ends when a life is lost.

    Returns the memory ``(T + 1, 128)`` of each episode by decision, and about `n_states` of the states seen.
    """
    check_int("the number of starts", len(starts))
    episodes: list[Bytes] = []
    first, states = [], []
    for actions in starts:
        emulator.replay(actions)
        first.append(emulator.save())
    played = 0
    while played < n_decisions:
        emulator.restore(first[len(episodes) % len(first)])
        lives, ram = emulator.lives, [emulator.ram()]
        for action in rng.integers(
            emulator.n_actions, size=max_episode_decisions
        ).tolist():
            if played % 16 == 0:
                states.append(emulator.save())
            ram.append(emulator.step(action, frame_skip).rams[-1])
            played += 1
            if emulator.over or emulator.lives < lives:
                break
        episodes.append(np.stack(ram))
    return episodes, states[:: max(1, len(states) // n_states)]


def find_lasting_bytes(
    emulator: Emulator,
    states: Sequence[Any],
    *,
    frame_skip: int = 8,
    rest_frames: int = 16,
    min_share: float = 0.02,
) -> tuple[int, ...]:
    """Addresses of the bytes that, in more than a share of the states, depend on the action repeated from there.

    They must do so after `rest_frames` without any action: echoes of the joystick are gone by then, and clocks and
    traffic never depend on the action. The emulator is left as it was.
    """
    here = emulator.save()
    count = np.zeros(N_BYTES)
    for state in states:
        after = []
        for step in emulator.try_actions(state, frame_skip):
            after.append(
                (emulator.step(0, rest_frames) if rest_frames else step).rams[-1]
            )
        count += (np.stack(after) != after[0]).any(axis=0)
    emulator.restore(here)
    return tuple(np.flatnonzero(count > min_share * len(states)).tolist())


def compute_slow_spectrum(episodes: Sequence[Bytes], features: Ram) -> Spectrum:
    """Directions by their mean squared change per step, relative to their variance over the states of the episodes."""
    bits = [features(ram).astype(float) for ram in episodes]
    T = csr_array(np.concatenate([np.diff(phi, axis=0) for phi in bits]))
    covariance = np.cov(np.concatenate(bits), rowvar=False)
    return incidence_spectrum(
        T, covariance=covariance, min_variance=1e-4, tolerance=1e-11, features=features
    )
