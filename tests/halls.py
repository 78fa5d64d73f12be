"""A hall with two walls, each with a gap, and robots that move through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._types import BoolArray, FloatArray

STEP = 0.4


class Hall:
    """A hall of 10 x 10 m with two walls across, whose gaps are 3 m wide.

    The first wall has its gap at the top, the second one at the bottom. A step into a
    wall does not move the robot.

    Parameters
    ----------
    thickness : float
        Of the walls, in metres.
    """

    def __init__(self, thickness: float) -> None:
        self.thickness = thickness

    def is_wall(self, position: FloatArray) -> BoolArray:
        x = position[..., 0]
        y = position[..., 1]
        in_first = (np.abs(x - 3.0) <= self.thickness / 2) & (y < 7.0)
        in_second = (np.abs(x - 7.0) <= self.thickness / 2) & (y > 3.0)
        return np.asarray(in_first | in_second)

    def move(self, position: FloatArray, action: FloatArray) -> FloatArray:
        """Positions after a step of at most 0.4 in each coordinate."""
        following = np.clip(position + STEP * action, 0.0, 10.0)
        is_blocked = self.is_wall(following)
        return np.where(is_blocked[..., None], position, following)

    def draw_free(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Free places, at random."""
        places = rng.uniform(0.0, 10.0, (4 * n + 20, 2))
        return places[~self.is_wall(places)][:n]

    def record(
        self,
        rng: np.random.Generator,
        n_steps: int,
        one_axis: bool = False,
        episode: int = 100,
    ) -> tuple[Any, Any, Any]:
        """Random steps, in episodes that begin at random places."""
        n_episodes = n_steps // episode
        position = self.draw_free(rng, n_episodes)
        rows = []
        for _ in range(episode):
            action = rng.uniform(-1.0, 1.0, position.shape)
            if one_axis:
                axis = rng.integers(2, size=(n_episodes, 1))
                action = action * (np.arange(2) == axis)
            following = self.move(position, action)
            rows.append((position, action, following))
            position = following
        obs, action, next_obs = (
            np.concatenate(part) for part in zip(*rows, strict=True)
        )
        return obs, action, next_obs
