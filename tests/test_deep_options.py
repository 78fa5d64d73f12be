"""Options fitted to trained features, where the best action depends on more than slow functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.deep import Dataset, learn
from eigenoptions.discovery.trained import fit_numbered
from eigenoptions.mdp import Transitions

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def turning_room() -> tuple[np.ndarray, np.ndarray, Transitions]:
    """Successors ``(S, 3)``, images and a walk of an agent that turns or goes forward in a room of 12 x 12 cells."""
    side, ahead = 12, np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    cell, heading = np.divmod(np.arange(4 * side**2), 4)
    place = np.stack(np.divmod(cell, side), axis=1)
    forward = (np.clip(place + ahead[heading], 0, side - 1) @ [side, 1]) * 4 + heading
    successors = np.stack([4 * cell + (heading - 1) % 4, 4 * cell + (heading + 1) % 4, forward], axis=1)
    images = np.zeros((len(cell), 3 * side, 3 * side), dtype=np.uint8)
    centre = 3 * place + 1
    images[np.arange(len(cell)), *centre.T] = images[np.arange(len(cell)), *(centre + ahead[heading]).T] = 255
    rng = np.random.default_rng(0)
    action, at = rng.integers(3, size=20_000), [0]
    for a in action:
        at.append(int(successors[at[-1], a]))
    return (
        successors,
        images,
        Transitions(images[at[:-1]], action, images[at[1:]], np.zeros(20_000, dtype=bool)),
    )


def test_options_turn_before_they_go(turning_room: Any) -> None:
    """An agent that looks in one of four directions: which turn is right is no slow function, but it is learned."""
    successors, images, seen = turning_room
    found = learn(seen, 3, steps=60)
    some, how = Dataset.of(seen).sample(20_000), {"n_actions": 3, "gamma": 0.9}
    options = fit_numbered(*some, eo.eigenpurposes(found), found.features, **how)
    assert options.direction.shape[1] == options.features.n_features > found.features.n_features
    f, actions = options.potential(images), options.actions(images)
    np.testing.assert_allclose(f[::2], (found.features(images) @ found.vectors[:, 1:]).T, atol=1e-9)
    for option in range(len(options)):
        state = np.arange(len(images))
        for _ in range(80):
            moves = successors[state, np.maximum(actions[option, state], 0)]
            state = np.where(actions[option, state] >= 0, moves, state)
        # With values in the last layer only it was at most 0.45.
        assert (f[option, state] - f[option]).sum() > 0.7 * (f[option].max() - f[option]).sum()
