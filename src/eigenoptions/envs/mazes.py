"""`MazeEnv`: a maze, or any finite `MDP`, as a Gymnasium environment (paper, Section 4.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions._colors import (
    ORANGE,
    RENDERED_GOAL,
    RENDERED_START,
    RENDERED_WALL,
    WHITE,
    to_rgb,
)
from eigenoptions._text import draw_map, layout_states
from eigenoptions._validation import check_choice, check_int
from eigenoptions.mdp import MDP
from eigenoptions.mdp import maze as read_maze

# The red, green and blue part of each kind of cell, in the order that `render` numbers
# them: wall, free cell, start, goal, agent.
CELL_COLORS = np.array(
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
    """A maze (or any finite `MDP`) as a Gymnasium environment; made by ``gym.make("eigenoptions/FourRooms-v0")``.

    The observation is the number of the state; reaching the goal gives reward 1 and ends the episode. Without a start
    in the map, an episode starts in a random state; without a goal it never ends. There is no time limit unless one is
    given: ``gym.make(..., max_episode_steps=100)``.

    Parameters
    ----------
    maze
        A source of `eigenoptions.maze` (a name, a map by rule, the text of a map, a path), or an `MDP`. The attribute
        `mdp` holds the dynamics, with start and goal.
    start, goal
        States that replace the map's.
    render_mode
        ``"rgb_array"``, ``"ansi"`` or None.

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

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        maze: str | Path | MDP = "four-rooms",
        *,
        start: int | None = None,
        goal: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.mdp = (maze if isinstance(maze, MDP) else read_maze(maze)).with_task(
            start, goal
        )
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
            if self.mdp.coords is None:
                raise ValueError(
                    "an MDP without coords cannot be rendered: leave out render_mode"
                )
        self.render_mode, self.state = render_mode, 0
        self.observation_space = Discrete(self.mdp.n_states)
        self.action_space = Discrete(self.mdp.n_actions)
        states = np.arange(self.mdp.n_states)
        # Without a start, an episode begins in any state but the goal.
        others = (
            np.setdiff1d(states, [self.mdp.goal])
            if self.mdp.goal is not None
            else states
        )
        self._starts = (
            states[[self.mdp.start]] if self.mdp.start is not None else others
        )
        self._successors, self._n_actions = self.mdp.successors, self.mdp.n_actions

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[int, dict[str, Any]]:
        """Put the agent at the start; ``options={"start": s}`` puts it in state s for this episode."""
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
            table, row = self.mdp.transition, self.state * self._n_actions + int(action)
            outcomes = slice(table.indptr[row], table.indptr[row + 1])
            self.state = int(
                self.np_random.choice(table.indices[outcomes], p=table.data[outcomes])
            )
        if self.state == self.mdp.goal:
            return self.state, 1.0, True, False, {}
        return self.state, 0.0, False, False, {}

    def render(self) -> Any:
        """Draw the maze as text (``ansi``) or as an ``(H, W, 3)`` picture (``rgb_array``)."""
        if self.render_mode is None or self.mdp.coords is None:
            return None
        marked = {"S": self.mdp.start, "G": self.mdp.goal, "@": self.state}
        if self.render_mode == "ansi":
            glyphs = [" "] * self.mdp.n_states
            for letter, state in marked.items():
                if state is not None:
                    glyphs[state] = letter
            return draw_map(self.mdp.coords, glyphs)
        grid = np.pad(layout_states(self.mdp.coords), 1, constant_values=-1)
        color = np.where(grid < 0, 0, 1)
        for number, state in enumerate(marked.values(), start=2):
            if state is not None:
                color[grid == state] = number
        pixels_per_cell = max(1, min(24, 480 // max(grid.shape)))
        return (
            CELL_COLORS[color]
            .repeat(pixels_per_cell, axis=0)
            .repeat(pixels_per_cell, axis=1)
        )
