"""Mazes as Gymnasium environments: one at a time (`MazeEnv`) and many at once in NumPy (`MazeVectorEnv`).

The observation is the number of the state; reaching the goal gives reward 1 and ends the episode (Section 4.2).
Both accept any finite `MDP`.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from eigenoptions import _sketch as sketch
from eigenoptions._checks import whole
from eigenoptions.mdp import MDP
from eigenoptions.mdp import maze as read_maze

Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]

# Of wall, free cell, start, goal and agent.
COLOURS = np.array(
    [(70, 70, 70), (255, 255, 255), (198, 219, 239), (116, 196, 118), (230, 97, 1)], dtype=np.uint8
)


class MazeEnv(gym.Env[Any, Any]):
    """A maze (or any finite `MDP`) as a Gymnasium environment; made by ``gym.make("eigenoptions/FourRooms-v0")``.

    Without a start in the map, an episode starts in a random state; without a goal it never ends. There is no time
    limit unless one is given: ``gym.make(..., max_episode_steps=100)``.

    Parameters
    ----------
    maze
        A source of `eigenoptions.maze` (a name, a map by rule, the text of a map, a path), or an `MDP`.
    start, goal
        States that replace the map's.
    render_mode
        ``"rgb_array"``, ``"ansi"`` or None.

    Attributes
    ----------
    mdp
        The dynamics, with start and goal.
    P, initial_state_distrib
        The same as tables of Gymnasium's toy environments: ``P[s][a] = [(p, s', reward, terminated)]``.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import eigenoptions.envs
    >>> env = gym.make("eigenoptions/Maze-v0", maze="S.G", render_mode="ansi")
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
        self.mdp = _task(maze, start, goal)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f'render_mode must be None, "rgb_array" or "ansi", got {render_mode!r}')
        if render_mode is not None and self.mdp.coords is None:
            raise ValueError(
                "an MDP without coords cannot be drawn: give it coords, or leave render_mode out"
            )
        self.render_mode = render_mode
        self.observation_space = Discrete(self.mdp.n_states)
        self.action_space = Discrete(self.mdp.n_actions)
        self.state = 0
        self._goal = -1 if self.mdp.goal is None else self.mdp.goal
        successors = self.mdp.successors
        # `item` returns a plain int in one call.
        self._next = None if successors is None else successors.ravel().item
        self._below = _running_sum(self.mdp)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Put the agent at the start; ``options={"start": s}`` puts it in state s for this episode."""
        super().reset(seed=seed)
        wanted = (options or {}).get("start", self.mdp.start)
        if wanted is None:
            self.state = int(_starts(self.mdp, self.np_random, 1)[0])
        elif isinstance(wanted, int | np.integer) and 0 <= wanted < self.mdp.n_states:
            self.state = int(wanted)
        else:
            raise ValueError(f"start must be a state in 0..{self.mdp.n_states - 1}, got {wanted!r}")
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        n_actions = self.mdp.n_actions
        if not 0 <= action < n_actions:
            raise ValueError(f"action must be in 0..{n_actions - 1}, got {action!r}")
        row = self.state * n_actions + int(action)
        if self._next is not None:
            state = self._next(row)
        else:
            state = int(_draw(self.mdp, self._below, np.array([row]), self.np_random)[0])
        self.state = state
        if state == self._goal:
            return state, 1.0, True, False, {}
        return state, 0.0, False, False, {}

    def render(self) -> Any:
        """Draw the maze as text (``ansi``) or as an ``(H, W, 3)`` picture (``rgb_array``)."""
        coords = self.mdp.coords
        if self.render_mode is None or coords is None:
            return None
        if self.render_mode == "ansi":
            glyphs = [" "] * self.mdp.n_states
            for letter, state in (("S", self.mdp.start), ("G", self.mdp.goal), ("@", self.state)):
                if state is not None:
                    glyphs[state] = letter
            return sketch.text(coords, glyphs)
        grid = np.pad(sketch.layout(coords), 1, constant_values=-1)
        colour = np.where(grid < 0, 0, 1)
        for index, state in ((2, self.mdp.start), (3, self.mdp.goal), (4, self.state)):
            if state is not None:
                colour[grid == state] = index
        size = max(1, min(24, 480 // max(grid.shape)))
        return COLOURS[colour].repeat(size, axis=0).repeat(size, axis=1)

    @cached_property
    def P(self) -> Table:  # noqa: N802 (Gymnasium's name)
        """``P[s][a] = [(p, s', reward, terminated)]``; the goal is absorbing."""
        table, n = self.mdp.transition, self.mdp.n_actions
        bounds, columns, chances = table.indptr.tolist(), table.indices.tolist(), table.data.tolist()
        ended = {a: [(1.0, self._goal, 0.0, True)] for a in range(n)}
        return {
            s: dict(ended)
            if s == self._goal
            else {
                a: [
                    (chances[i], columns[i], float(columns[i] == self._goal), columns[i] == self._goal)
                    for i in range(bounds[s * n + a], bounds[s * n + a + 1])
                ]
                for a in range(n)
            }
            for s in range(self.mdp.n_states)
        }

    @cached_property
    def initial_state_distrib(self) -> NDArray[np.float64]:
        """``(S,)`` probability of each state to be the first."""
        return _first(self.mdp)


class MazeVectorEnv(gym.vector.VectorEnv[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]):
    """Many copies of a maze stepped together in NumPy; made by ``gym.make_vec("eigenoptions/FourRooms-v0", 256)``.

    Parameters are those of `MazeEnv`, with ``num_envs`` and ``max_episode_steps`` (None: no limit). The step after the
    end of an episode starts a new one (Gymnasium's ``NEXT_STEP``): its row is a reset, not a transition.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import eigenoptions.envs
    >>> envs = gym.make_vec("eigenoptions/Maze-v0", num_envs=2, maze="S.G")
    >>> envs.reset(seed=0)[0]
    array([0, 0])
    >>> envs.step(np.array([1, 0]))[0]
    array([1, 0])
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        maze: str | Path | MDP = "four-rooms",
        num_envs: int = 1,
        *,
        start: int | None = None,
        goal: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(
                'many mazes at once are not drawn: render one made with vectorization_mode="sync"'
            )
        self.num_envs = whole("num_envs", num_envs)
        if max_episode_steps is not None:
            whole("max_episode_steps", max_episode_steps)
        self.mdp = _task(maze, start, goal)
        self.single_observation_space = Discrete(self.mdp.n_states)
        self.single_action_space = Discrete(self.mdp.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = np.iinfo(np.int64).max if max_episode_steps is None else max_episode_steps
        self._goal = -1 if self.mdp.goal is None else self.mdp.goal
        successors = self.mdp.successors
        self._next = None if successors is None else successors.ravel().astype(np.int64)
        self._below = _running_sum(self.mdp)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Put every agent at the start."""
        super().reset(seed=seed)
        self._state = _starts(self.mdp, self.np_random, self.num_envs)
        self._elapsed = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        return self._state.copy(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one action in each copy; a copy whose episode is over begins a new one instead."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.min() < 0 or actions.max() >= self.mdp.n_actions:
            raise ValueError(
                f"actions must be {self.num_envs} numbers in 0..{self.mdp.n_actions - 1}, got {actions}"
            )
        rows = self._state * self.mdp.n_actions + actions
        state = _draw(self.mdp, self._below, rows, self.np_random) if self._next is None else self._next[rows]
        self._elapsed += 1
        terminated = state == self._goal
        if self._over.any():
            state[self._over] = _starts(self.mdp, self.np_random, int(self._over.sum()))
            self._elapsed[self._over] = 0
            terminated[self._over] = False
        truncated = self._elapsed >= self._limit
        self._over = terminated | truncated
        self._state = state
        return state.copy(), terminated.astype(np.float64), terminated.copy(), truncated, {}


def _task(maze: str | Path | MDP, start: int | None, goal: int | None) -> MDP:
    return (maze if isinstance(maze, MDP) else read_maze(maze)).task(start, goal)


def _first(mdp: MDP) -> NDArray[np.float64]:
    """Probability of each state to be the first: the start, or any state but the goal."""
    chance = np.zeros(mdp.n_states)
    if mdp.start is not None:
        chance[mdp.start] = 1.0
        return chance
    chance[:] = 1.0
    if mdp.goal is not None and mdp.n_states > 1:
        chance[mdp.goal] = 0.0
    chance /= chance.sum()
    return chance


def _starts(mdp: MDP, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """First states of n episodes."""
    if mdp.start is not None:
        return np.full(n, mdp.start, dtype=np.int64)
    if mdp.goal is None or mdp.n_states == 1:
        return rng.integers(mdp.n_states, size=n)
    drawn = rng.integers(mdp.n_states - 1, size=n)
    return drawn + (drawn >= mdp.goal)


def _running_sum(mdp: MDP) -> NDArray[np.float64]:
    """Running sum of the entries of a stochastic table; empty for a deterministic one."""
    return np.empty(0) if mdp.successors is not None else np.append(0.0, np.cumsum(mdp.transition.data))


def _draw(
    mdp: MDP, below: NDArray[np.float64], rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Successors drawn for rows of a stochastic table; `below` is the running sum of its entries."""
    table = mdp.transition
    low, high = table.indptr[rows], table.indptr[rows + 1]
    mark = below[low] + rng.random(len(rows)) * (below[high] - below[low])
    place = np.searchsorted(below, mark, side="right") - 1
    drawn: NDArray[np.int64] = table.indices[np.clip(place, low, high - 1)].astype(np.int64)
    return drawn
