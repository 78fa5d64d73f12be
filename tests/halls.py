"""A hall with two walls, a room with one wall, and robots that move through them."""

from __future__ import annotations

from collections.abc import Callable
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


def show_radians(pose: FloatArray) -> FloatArray:
    """The heading as an angle."""
    return pose


def show_sine_and_cosine(pose: FloatArray) -> FloatArray:
    """The heading as sine and cosine."""
    return np.array([pose[0], pose[1], np.sin(pose[2]), np.cos(pose[2])])


class TurningRobot:
    """Drives 0.4 m ahead, or turns left or right, in a room of 6 x 6 m with a wall.

    Parameters
    ----------
    turn : float
        Angle of a turn; headings are multiples of it.
    show : callable
        The observation of a pose, which is x, y and heading.
    """

    def __init__(
        self,
        turn: float,
        show: Callable[[FloatArray], FloatArray] = show_sine_and_cosine,
    ) -> None:
        self.turn = turn
        self.show = show

    def move(self, pose: FloatArray, action: int) -> FloatArray:
        """The next pose: 0 drives, 1 turns left, 2 turns right, -1 stays."""
        if action < 0:
            return pose
        x, y, heading = pose
        if action > 0:
            heading += self.turn * (3 - 2 * action)
            return np.array([x, y, (heading + np.pi) % (2 * np.pi) - np.pi])
        ahead = pose + 0.4 * np.array([np.cos(heading), np.sin(heading), 0.0])
        ahead[:2] = np.clip(ahead[:2], 0, 6)
        if abs(ahead[0] - 3) < 0.5 and ahead[1] < 4:
            return pose
        return np.asarray(ahead)

    def draw_pose(
        self, rng: np.random.Generator, is_right: bool, depth: float = 6.0
    ) -> FloatArray:
        """A pose on one side of the wall."""
        n_headings = round(2 * np.pi / self.turn)
        x, y = rng.uniform(0, (2.4, depth))
        heading = self.turn * rng.integers(n_headings) - np.pi
        return np.array([x + 3.6 * is_right, y, heading])

    def record(
        self, rng: np.random.Generator, n_episodes: int, length: int = 150
    ) -> tuple[Any, Any, Any]:
        """Random steps, in episodes that begin at random poses."""
        rows = []
        for _ in range(n_episodes):
            pose = self.draw_pose(rng, is_right=bool(rng.integers(2)))
            for action in rng.choice(3, size=length, p=[0.6, 0.2, 0.2]):
                following = self.move(pose, action)
                rows.append((self.show(pose), action, self.show(following)))
                pose = following
        obs, action, next_obs = (np.array(part) for part in zip(*rows, strict=True))
        return obs, action, next_obs
