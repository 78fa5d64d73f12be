"""Lock-step roll-outs against options rolled out alone, on real games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

from tests.reference import lonely

from eigenoptions.atari.coding import Ram, on_a_grid
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import Rollouts, lockstep

GAMES = {"Freeway": (14,), "MontezumaRevenge": (42, 43), "MsPacman": (10, 16)}


@pytest.fixture(scope="module")
def games() -> dict[str, tuple[Emulator, Any]]:
    """Each game some frames after its beginning, where the player can move."""
    found = {}
    for game, frames in (("Freeway", 20), ("MontezumaRevenge", 60), ("MsPacman", 270)):
        emulator = Emulator(game)
        for t in range(frames):
            emulator.act(1 if t % 3 else 2)
        found[game] = (emulator, emulator.save())
    return found


def directions(coding: Ram, n: int, seed: int) -> np.ndarray:
    e = np.random.default_rng(seed).normal(size=(n, coding.width))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    e[n // 2 :] = -e[: n - n // 2]  # both signs
    return e


def assert_equals_the_lonely(
    emulator: Emulator, state: Any, e: np.ndarray, coding: Ram, frames: int, **how: Any
) -> Rollouts:
    together = lockstep(emulator, state, e, coding, frames, rng=5, **how)
    for i, direction in enumerate(on_a_grid(e, coding).tolist()):
        actions, watched, stopped, score, length, died = lonely(
            emulator, state, direction, coding, frames, index=i, seed=5, **how
        )
        rest = frames - length
        assert together.actions[i].tolist() == actions + [-1] * rest
        assert together.watched[i, :length].tolist() == watched
        assert not together.watched[i, length:].any()
        assert together.stopped[i, : len(stopped)].tolist() == stopped
        assert not together.stopped[i, len(stopped) :].any()
        assert (together.score[i], together.length[i], together.died[i]) == (score, length, died)
    return together


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"after": "noop"},
        {"after": "random"},
        {"after": "stop"},
        {"hold": 4},
        {"published": True, "after": "noop"},
        {"published": True, "after": "best", "hold": 2},
    ],
    ids=str,
)
def test_together_as_alone(games: dict[str, tuple[Emulator, Any]], game: str, how: dict[str, Any]) -> None:
    emulator, state = games[game]
    found = assert_equals_the_lonely(
        emulator, state, directions(Ram(), 6, 1), Ram(), 14, watch=GAMES[game], **how
    )
    assert found.acts <= found.alone(emulator.n_actions, how.get("hold", 1)) + emulator.n_actions * len(found)


@pytest.mark.parametrize("coding", [Ram("bytes"), Ram("onehot"), Ram("thermometer", steps=16)], ids=str)
def test_every_coding_together_as_alone(games: dict[str, tuple[Emulator, Any]], coding: Ram) -> None:
    emulator, state = games["Freeway"]
    assert_equals_the_lonely(emulator, state, directions(coding, 4, 2), coding, 8, watch=(14,))
