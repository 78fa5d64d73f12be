"""MiniGrid by dead reckoning: where the agent must be, from its view and its actions.

The true state of MiniGrid holds every door and every object, which multiply the number
of states. The pose does not: it is the place and the heading, counted from the start of
the episode, the cell in front of the agent, and what it carries. All of it follows from
the view and the agent's own actions; nothing is read inside the environment.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

# MiniGrid's actions, of which all others leave the pose as it is.
_TURN_LEFT = 0
_TURN_RIGHT = 1
_FORWARD = 2

# Headings in the order of right turns: right, down, left, up.
_MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))

# The numbers of MiniGrid's objects that an agent may enter: empty, floor, goal, lava.
_ENTERED = (1, 3, 8, 9)
_DOOR = 4
_IS_OPEN = 0


class PoseTracker:
    """The pose of an agent that is followed through an episode.

    Examples
    --------
    >>> import gymnasium as gym
    >>> env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    >>> tracker = PoseTracker()
    >>> obs, info = env.reset(seed=0)
    >>> tracker.begin(env, obs)[:3]
    (0, 0, 0)
    >>> tracker.follow(env, env.step(2)[0], 2)[:3]
    (1, 0, 0)
    """

    def __init__(self) -> None:
        self._x = 0
        self._y = 0
        self._heading = 0
        self._view: NDArray[Any] = np.zeros((7, 7, 3), dtype=np.uint8)

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> Hashable:
        """Return the key of the first state of an episode, which is the origin."""
        self._x = 0
        self._y = 0
        self._heading = 0
        self._view = _find_view(obs)
        return self._describe()

    def follow(self, env: gym.Env[Any, Any], obs: Any, action: int) -> Hashable:
        """Return the key of the state that an action led to."""
        if action == _TURN_LEFT:
            self._heading = (self._heading - 1) % 4
        elif action == _TURN_RIGHT:
            self._heading = (self._heading + 1) % 4
        elif action == _FORWARD and _may_enter(_find_front(self._view)):
            dx, dy = _MOVES[self._heading]
            self._x += dx
            self._y += dy
        self._view = _find_view(obs)
        return self._describe()

    def _describe(self) -> Hashable:
        front = tuple(_find_front(self._view).tolist())
        # What the agent carries is shown in the cell where it stands.
        column = len(self._view) // 2
        carried = tuple(self._view[column, -1].tolist())
        return self._x, self._y, self._heading, front, carried


def _find_view(obs: Any) -> NDArray[Any]:
    """Return the view ``(n, n, 3)`` of an observation, also inside a dict."""
    image = obs["image"] if isinstance(obs, dict) and "image" in obs else obs
    view = np.array(image)
    if view.ndim != 3 or view.shape[0] != view.shape[1] or view.shape[2] != 3:
        raise ValueError(
            f'key="pose" reads the view (n, n, 3) of MiniGrid, got {view.shape}: leave '
            "out wrappers that change it, or give key(env, obs)"
        )
    return view


def _find_front(view: NDArray[Any]) -> NDArray[Any]:
    """Return type, colour and state of the cell in front of the agent.

    The agent stands in the middle of the last row of its view, and looks up.
    """
    front: NDArray[Any] = view[len(view) // 2, -2]
    return front


def _may_enter(cell: NDArray[Any]) -> bool:
    kind, _, state = cell.tolist()
    return kind in _ENTERED or (kind == _DOOR and state == _IS_OPEN)
