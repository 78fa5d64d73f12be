"""`MazeEnv`: a maze, or any finite `MDP`, as an environment (paper, Section 4.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from eigenoptions._colors import (
    ORANGE,
    RENDERED_GOAL,
    RENDERED_START,
    RENDERED_WALL,
    WHITE,
    to_rgb,
)
from eigenoptions._text import draw_map, layout_states
from eigenoptions._types import IndexArray
from eigenoptions._validation import check_choice, check_int
from eigenoptions.mdp import MDP
from eigenoptions.mdp import maze as read_maze
from eigenoptions.mdp.chains import sample_successor

# The red, green and blue part of each kind of cell, in the order that `render` numbers
# them: wall, free cell, start, goal, agent.
_CELL_COLORS = np.array(
    [
        to_rgb(RENDERED_WALL),
        to_rgb(WHITE),
        to_rgb(RENDERED_START),
        to_rgb(RENDERED_GOAL),
        to_rgb(ORANGE),
    ],
    dtype=np.uint8,
)


class MazeEnv(gym.Env[Any, Any]):
    """A maze, or any finite `MDP`, as a Gymnasium environment.

    ``gym.make("eigenoptions/FourRooms-v0")`` makes one, too. The observation is the
    number of the state. Reaching the goal gives reward 1 and ends the episode. Without
    a start in the map, an episode starts in a random state; without a goal it never
    ends. There is no time limit unless you give one:
    ``gym.make(..., max_episode_steps=100)``.

    Parameters
    ----------
    maze : str, Path or MDP, default="four-rooms"
        A source of `eigenoptions.maze` (a name, a map by rule, the text of a map, a
        path), or an `MDP`.
    start, goal : int, default=None
        States that replace those of the map.
    render_mode : str, default=None
        ``"rgb_array"``, ``"ansi"`` or None.

    Attributes
    ----------
    mdp : MDP
        The dynamics, with start and goal.
    state : int
        The present state.

    Examples
    --------
    >>> env = MazeEnv("S.G", render_mode="ansi")
    >>> env.reset(seed=0)
    (0, {})
    >>> print(env.render())
    █████
    █@ G█
    █████
    >>> env.step(1), env.step(1)
    ((1, 0.0, False, False, {}), (2, 1.0, True, False, {}))
    """

    # Gymnasium's own form.
    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        maze: str | Path | MDP = "four-rooms",
        *,
        start: int | None = None,
        goal: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        dynamics = maze if isinstance(maze, MDP) else read_maze(maze)
        self.mdp = dynamics.with_task(start, goal)
        self.state = 0
        self.render_mode = render_mode
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
            if self.mdp.coords is None:
                raise ValueError(
                    "an MDP without coords cannot be rendered: leave out render_mode"
                )

        self.observation_space = Discrete(self.mdp.n_states)
        self.action_space = Discrete(self.mdp.n_actions)
        self._starts = _find_starts(self.mdp)
        # Kept here, since looking them up takes longer than a step.
        self._successors = self.mdp.successors
        self._n_actions = self.mdp.n_actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Put the agent at the start.

        ``options={"start": s}`` puts it in state s for this episode.
        """
        super().reset(seed=seed)
        start = (options or {}).get("start")
        if start is None:
            start = self._starts[self.np_random.integers(len(self._starts))]
        self.state = check_int("start", start, 0, self.mdp.n_states - 1)
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        if not 0 <= action < self._n_actions:
            raise ValueError(
                f"action must be in 0..{self._n_actions - 1}, got {action!r}"
            )
        if self._successors is not None:
            self.state = int(self._successors[self.state, action])
        else:
            self.state = sample_successor(
                self.mdp, self.state, int(action), self.np_random
            )
        if self.state == self.mdp.goal:
            return self.state, 1.0, True, False, {}
        # Additional states are where episodes end without a reward.
        is_end = self.state >= self.mdp.n_listed
        return self.state, 0.0, is_end, False, {}

    def render(self) -> str | NDArray[np.uint8] | None:
        """Draw the maze.

        Returns
        -------
        str, ndarray of shape (H, W, 3) or None
            Text in mode ``"ansi"``, a picture in mode ``"rgb_array"``.
        """
        if self.mdp.coords is None:
            return None
        if self.render_mode == "ansi":
            return self._draw_text(self.mdp.coords)
        if self.render_mode == "rgb_array":
            return self._draw_pixels(self.mdp.coords)
        return None

    def _list_marks(self) -> dict[str, int | None]:
        """Return the states to mark, the last above the others."""
        return {"S": self.mdp.start, "G": self.mdp.goal, "@": self.state}

    def _draw_text(self, coords: NDArray[np.int_]) -> str:
        glyphs = [" "] * self.mdp.n_states
        for letter, state in self._list_marks().items():
            if state is not None:
                glyphs[state] = letter
        return draw_map(coords, glyphs)

    def _draw_pixels(self, coords: NDArray[np.int_]) -> NDArray[np.uint8]:
        # The number of the state in each cell, -1 in walls, with a wall around.
        grid = np.pad(layout_states(coords), 1, constant_values=-1)
        kind = np.where(grid < 0, 0, 1)
        for number, state in enumerate(self._list_marks().values(), start=2):
            if state is not None:
                kind[grid == state] = number

        pixels_per_cell = max(1, min(24, 480 // max(grid.shape)))
        colors = _CELL_COLORS[kind]
        tall = colors.repeat(pixels_per_cell, axis=0)
        return tall.repeat(pixels_per_cell, axis=1)


def _find_starts(mdp: MDP) -> IndexArray:
    """Return the states in which episodes begin, each equally often."""
    if mdp.start is not None:
        return np.array([mdp.start])
    states = np.arange(mdp.n_listed)
    if mdp.goal is None:
        return states
    return np.delete(states, mdp.goal)
