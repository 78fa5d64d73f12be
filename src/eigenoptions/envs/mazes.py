"""Mazes as Gymnasium environments: one at a time (`MazeEnv`) and many at once in a kernel (`MazeVectorEnv`).

The observation is the number of the state; reaching the goal gives reward 1 and ends the episode (Section 4.2).
Both accept any finite `MDP`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from eigenoptions import _text as sketch
from eigenoptions._validation import check_int
from eigenoptions.mdp import MDP
from eigenoptions.mdp import maze as read_maze
from eigenoptions.options.walks import cumulate_rows, list_start_states

Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]

# The largest number of steps that the kernels can count.
MAX_STEPS = np.iinfo(np.int64).max
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
        self.starts = list_start_states(self.mdp)
        self.goal = -1 if self.mdp.goal is None else self.mdp.goal
        self.n_actions = self.mdp.n_actions
        successors = self.mdp.successors
        # An array of the standard library gives plain ints, sooner than one of NumPy; None where moves are uncertain.
        self.following = None if successors is None else array("i", successors.tobytes())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Put the agent at the start; ``options={"start": s}`` puts it in state s for this episode."""
        super().reset(seed=seed)
        wanted = (options or {}).get("start")
        if wanted is None:
            self.state = int(self.starts[self.np_random.integers(len(self.starts))])
        elif isinstance(wanted, int | np.integer) and 0 <= wanted < self.mdp.n_states:
            self.state = int(wanted)
        else:
            raise ValueError(f"start must be a state in 0..{self.mdp.n_states - 1}, got {wanted!r}")
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        if not 0 <= action < self.n_actions:
            raise ValueError(f"action must be in 0..{self.n_actions - 1}, got {action!r}")
        state = self.move(int(action))
        if state == self.goal:
            return state, 1.0, True, False, {}
        return state, 0.0, False, False, {}

    def move(self, action: int) -> int:
        """Take an action that is known to be in range, without Gymnasium's tuple: the state it leads to."""
        row = self.state * self.n_actions + action
        self.state = state = self._landed(row) if self.following is None else self.following[row]
        return state

    def follow(self, action: int, row: Sequence[int], most: int) -> tuple[int, int]:
        """Take an action and then those of a policy ``row (S,)``, to the goal, to an end, or for `most` steps.

        The policy ends where it has the number of actions in place of one. The number of steps, and the policy's choice
        in the last state.
        """
        steps, stop = 0, self.n_actions
        while True:
            state, steps = self.move(action), steps + 1
            action = row[state]
            if action == stop or state == self.goal or steps >= most:
                return steps, action

    def _landed(self, row: int) -> int:
        """End of an uncertain move."""
        from eigenoptions._kernels.walking import land

        indptr, indices, cumulative = self._moves
        bits = self.np_random.integers(2**64, dtype=np.uint64)
        return int(land(row, indptr, indices, cumulative, bits))

    @cached_property
    def _moves(self) -> tuple[NDArray[Any], ...]:
        return _moves(self.mdp)

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
        ended = {a: [(1.0, self.goal, 0.0, True)] for a in range(n)}
        return {
            s: dict(ended)
            if s == self.goal
            else {
                a: [
                    (chances[i], columns[i], float(columns[i] == self.goal), columns[i] == self.goal)
                    for i in range(bounds[s * n + a], bounds[s * n + a + 1])
                ]
                for a in range(n)
            }
            for s in range(self.mdp.n_states)
        }

    @cached_property
    def initial_state_distrib(self) -> NDArray[np.float64]:
        """``(S,)`` probability of each state to be the first."""
        chance = np.zeros(self.mdp.n_states)
        chance[self.starts] = 1.0 / len(self.starts)
        return chance


class MazeVectorEnv(gym.vector.VectorEnv[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]):
    """Many copies of a maze stepped together, compiled; made by ``gym.make_vec("eigenoptions/FourRooms-v0", 256)``.

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
        from eigenoptions._kernels.decisions import move

        if render_mode is not None:
            raise ValueError(
                'many mazes at once are not drawn: render one made with vectorization_mode="sync"'
            )
        self.num_envs = check_int("num_envs", num_envs)
        if max_episode_steps is not None:
            check_int("max_episode_steps", max_episode_steps)
        self.mdp = _task(maze, start, goal)
        self.single_observation_space = Discrete(self.mdp.n_states)
        self.single_action_space = Discrete(self.mdp.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        limit = MAX_STEPS if max_episode_steps is None else min(max_episode_steps, MAX_STEPS)
        goal = -1 if self.mdp.goal is None else self.mdp.goal
        self.starts = list_start_states(self.mdp)
        # What the kernels of `_kernels.decisions` read, and the state that they change in place.
        self.table = _moves(self.mdp)
        self.rules = np.array([self.mdp.n_actions, goal, limit])
        self.copies = np.zeros((4, self.num_envs), dtype=np.int64)
        self.n_over = 0
        self._step: Any = move
        self._uncertain = self.mdp.successors is None
        self._no_draws = np.zeros(self.num_envs, dtype=np.uint64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Put the agents at the start: all, or those of ``options["reset_mask"]`` (bool, ``(B,)``)."""
        fresh = fresh_copies(options, self.num_envs)
        super().reset(seed=seed)
        first = self._drawn(int(fresh.sum()))
        self.copies[:, fresh] = np.array([first, 0 * first, 0 * first, first])
        self.n_over = int(self.copies[2].sum())
        return self.copies[0].copy(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one action in each copy; a copy whose episode is over begins a new one instead."""
        actions, n, over = np.asarray(actions), self.num_envs, -1
        states, rewards, ends = np.empty(n, dtype=np.int64), np.empty(n), np.empty((2, n), dtype=np.bool_)
        if actions.shape == (n,) and actions.dtype.kind in "biu":
            given = self.draws(), actions.astype(np.int64)
            over = self._step(*self.table, self.rules, self.copies, *given, states, rewards, ends)
        if over < 0:
            raise ValueError(f"actions must be {n} numbers in 0..{self.mdp.n_actions - 1}, got {actions}")
        self.n_over = over
        return states, rewards, ends[0], ends[1], {}

    def draws(self) -> NDArray[np.uint64]:
        """``(B,)`` random bits for a step of uncertain moves; the states in which episodes begin are drawn too."""
        bits = self._no_draws
        if self._uncertain:
            bits = self.np_random.integers(2**64, size=self.num_envs, dtype=np.uint64)
        if self.n_over and len(self.starts) > 1:
            self.copies[3, self.copies[2] > 0] = self._drawn(self.n_over)
        return bits

    def _drawn(self, n: int) -> NDArray[np.int64]:
        """Drawn first states of n episodes."""
        drawn: NDArray[np.int64] = self.starts[self.np_random.integers(len(self.starts), size=n)]
        return drawn


def fresh_copies(options: dict[str, Any] | None, n: int) -> NDArray[np.bool_]:
    """``(n,)`` the copies that `reset` concerns: those of ``options["reset_mask"]`` as Gymnasium takes it, or all."""
    mask = (options or {}).get("reset_mask")
    if mask is None:
        return np.ones(n, dtype=np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"reset_mask must be an array of bool, got {mask!r}")
    if mask.shape != (n,) or not mask.any():
        raise ValueError(f"reset_mask must have shape {(n,)} and mark at least one copy, got {mask}")
    return mask


def _task(maze: str | Path | MDP, start: int | None, goal: int | None) -> MDP:
    return (maze if isinstance(maze, MDP) else read_maze(maze)).with_task(start, goal)


def _moves(mdp: MDP) -> tuple[NDArray[Any], ...]:
    """The table as the kernels read it: `_kernels.walking.Moves` without the number of actions."""
    table = mdp.transition
    # Copies, since arrays that may not be written to are handed to a kernel more slowly.
    return np.array(table.indptr), np.array(table.indices), cumulate_rows(table.indptr, table.data)
