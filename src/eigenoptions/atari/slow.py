"""Slow features of a game's memory: directions that lead somewhere.

Large singular values of T belong to the bits that flip most often, and one frame shows
the joystick more than the player. So here, beyond the paper's Section 5.2,

* random actions are repeated for some frames,
* bytes count only if the player's influence on them lasts,
* a direction e is measured by how little its potential changes per step *relative to
  its variance over states*: slow feature analysis, which the paper names as a relative
  of proto-value functions.

docs/atari.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._types import Randomness
from eigenoptions._validation import check_int
from eigenoptions.atari.emulator import Bytes, Emulator
from eigenoptions.atari.ram import N_BYTES, Ram
from eigenoptions.samples.incidence import incidence_spectrum
from eigenoptions.spectra import Spectrum


def slow_directions(
    game: str,
    starts: Sequence[Sequence[int]],
    *,
    frame_skip: int = 8,
    n_decisions: int = 9_000,
    rng: Randomness = 0,
) -> Spectrum:
    """Slow features of the bytes on which the player has a lasting influence.

    Parameters
    ----------
    game : str
        Name of the game.
    starts : sequence of sequences of int
        States in which episodes of random play begin, in turn: for each the actions,
        one per frame, that lead there from the beginning of the game. ``[()]`` is the
        beginning itself.
    frame_skip : int, default=8
        Frames for which an action is repeated: one step. Options made of the result act
        with the same frame skip.
    n_decisions : int, default=9,000
        Number of steps of random play.
    rng : int or Generator, default=0
        Seed of the actions.

    Returns
    -------
    Spectrum
        The slowest directions first, after `n_zero` that never change. Its `features`
        are the bits of the bytes.

    Examples
    --------
    >>> slow = slow_directions("Freeway", [()], n_decisions=200)
    >>> slow.operator, 14 in slow.features.addresses
    ('incidence', True)
    """
    emulator = Emulator(game)
    generator = np.random.default_rng(rng)
    episodes, states = play_randomly(
        emulator, starts, frame_skip, n_decisions, generator
    )

    addresses = find_lasting_bytes(emulator, states)
    if not addresses:
        raise ValueError(
            "no action has a lasting influence on the memory of "
            f"{emulator.game}: give ram_options the feature_spectrum of its steps"
        )
    return _compute_slow_spectrum(episodes, Ram(addresses=addresses))


# Decisions after which an episode ends.
_EPISODE_DECISIONS = 100

# A byte counts if it depends on the action in more than this share of the states.
_LEAST_SHARE = 0.02


def play_randomly(
    emulator: Emulator,
    starts: Sequence[Sequence[int]],
    frame_skip: int,
    n_decisions: int,
    rng: np.random.Generator,
    *,
    n_states: int = 60,
) -> tuple[list[Bytes], list[Any]]:
    """Play random actions from the starts in turn.

    Parameters
    ----------
    emulator : Emulator
        The game.
    starts : sequence of sequences of int
        As in `slow_directions`.
    frame_skip : int
        Frames for which an action is repeated: one decision.
    n_decisions : int
        Number of decisions; the last episode is played to its end. An episode ends
        after 100 of its own, or when a life is lost.
    rng : Generator
        Draws the actions.
    n_states : int, default=60
        About how many of the states seen are returned.

    Returns
    -------
    episodes : list of array (T + 1, 128)
        The memory in each episode, by decision.
    states : list
        Saved states, evenly spaced.
    """
    check_int("the number of starts", len(starts))
    first_states = []
    for start in starts:
        emulator.replay(start)
        first_states.append(emulator.save())

    episodes: list[Bytes] = []
    states = []
    n_played = 0
    while n_played < n_decisions:
        emulator.restore(first_states[len(episodes) % len(first_states)])
        lives_at_start = emulator.lives
        rams = [emulator.ram()]
        actions = rng.integers(emulator.n_actions, size=_EPISODE_DECISIONS)
        for action in actions.tolist():
            if n_played % 16 == 0:
                states.append(emulator.save())
            step = emulator.step(action, frame_skip)
            rams.append(step.rams[-1])
            n_played += 1
            if emulator.over or emulator.lives < lives_at_start:
                break
        episodes.append(np.stack(rams))

    stride = max(1, len(states) // n_states)
    return episodes, states[::stride]


def find_lasting_bytes(
    emulator: Emulator,
    states: Sequence[Any],
    *,
    frame_skip: int = 8,
    rest_frames: int = 16,
) -> tuple[int, ...]:
    """Find the bytes on which actions have a lasting influence.

    Echoes of the joystick are gone after some frames without any action. Clocks and
    traffic never depend on the action.

    Parameters
    ----------
    emulator : Emulator
        The game. It is left as it was.
    states : sequence
        Saved states, in each of which every action is tried.
    frame_skip : int, default=8
        Frames for which the action is repeated.
    rest_frames : int, default=16
        Frames without any action that follow.

    Returns
    -------
    tuple of int
        Addresses of the bytes, ascending.
    """
    here = emulator.save()
    n_dependent = np.zeros(N_BYTES)
    for state in states:
        outcomes = []
        for step in emulator.try_actions(state, frame_skip):
            if rest_frames > 0:
                step = emulator.step(0, rest_frames)
            outcomes.append(step.rams[-1])
        n_dependent += (np.stack(outcomes) != outcomes[0]).any(axis=0)
    emulator.restore(here)

    addresses = np.flatnonzero(n_dependent > _LEAST_SHARE * len(states))
    return tuple(addresses.tolist())


def _compute_slow_spectrum(episodes: Sequence[Bytes], features: Ram) -> Spectrum:
    """Directions by their mean squared change per step, relative to their variance."""
    bits = [features(rams).astype(float) for rams in episodes]
    changes = [np.diff(phi, axis=0) for phi in bits]
    return incidence_spectrum(
        csr_array(np.concatenate(changes)),
        covariance=np.cov(np.concatenate(bits), rowvar=False),
        min_variance=1e-4,
        tolerance=1e-11,
        features=features,
    )
