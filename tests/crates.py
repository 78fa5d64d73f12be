"""A grid world of another kind than MiniGrid, for tests of windows and maps.

Four-way moves without turning, a window in whose middle the agent stands, one code per
cell, crates that are pushed, keys that are counted, gates that take a key, and fire
that ends the episode. Every episode has a new layout.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

FLOOR, WALL, CRATE, KEY, GATE, EXIT, FIRE = range(10, 17)
SIZE = 13
REACH = 3
# Left, up, right, down, wait.
STEPS = ((0, -1), (-1, 0), (0, 1), (1, 0), (0, 0))


class Crates(gym.Env[NDArray[np.int64], int]):
    """A room with keys, behind its gate two rooms, and in one of them the exit."""

    def __init__(self, max_steps: int = 400) -> None:
        self.max_steps = max_steps
        self.action_space = gym.spaces.Discrete(len(STEPS))
        n_cells = (2 * REACH + 1) ** 2
        self.observation_space = gym.spaces.MultiDiscrete([20] * (n_cells + 1))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        super().reset(seed=seed)
        self.keys = 0
        self.n_steps = 0
        while not self._draw_layout():
            pass
        return self._observe(), {}

    def _draw_layout(self) -> bool:
        """Draw a layout; return whether there was room for everything."""
        rng = self.np_random
        self.grid = np.full((SIZE, SIZE), WALL)
        self.grid[1:-1, 1:-1] = FLOOR
        row, column = (int(n) for n in rng.integers(4, 9, 2))
        self.grid[row] = WALL
        self.grid[row + 1 :, column] = WALL
        self.grid[row, rng.integers(1, column)] = GATE
        door = CRATE if rng.random() < 0.5 else GATE
        self.grid[rng.integers(row + 1, SIZE - 1), column] = door

        for code, number in ((WALL, 6), (CRATE, 4), (FIRE, 2)):
            for place in rng.integers(1, SIZE - 1, (number, 2)):
                if self.grid[tuple(place)] == FLOOR:
                    self.grid[tuple(place)] = code

        above = (slice(1, row), slice(1, SIZE - 1))
        behind = (slice(row + 1, SIZE - 1), slice(column + 1, SIZE - 1))
        keys = [self._find_place(above, KEY) for _ in range(2)]
        self.place = self._find_place(above, FLOOR)
        exit_place = self._find_place(behind, EXIT)
        return None not in (*keys, self.place, exit_place)

    def _find_place(
        self, room: tuple[slice, slice], code: int
    ) -> tuple[int, int] | None:
        """Put something on a random free cell of a room."""
        free = np.argwhere(self.grid[room] == FLOOR)
        if not len(free):
            return None
        row, column = free[self.np_random.integers(len(free))]
        place = (int(row) + room[0].start, int(column) + room[1].start)
        self.grid[place] = code
        return place

    def _observe(self) -> NDArray[np.int64]:
        padded = np.pad(self.grid, REACH, constant_values=WALL)
        row, column = self.place
        window = padded[row : row + 2 * REACH + 1, column : column + 2 * REACH + 1]
        return np.append(window.ravel(), self.keys)

    def step(
        self, action: int
    ) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        row_step, column_step = STEPS[action]
        target = (self.place[0] + row_step, self.place[1] + column_step)
        behind = (target[0] + row_step, target[1] + column_step)
        code = self.grid[target]
        moves = code in (FLOOR, EXIT, FIRE, KEY)
        if code == KEY:
            self.keys += 1
            self.grid[target] = FLOOR
        if code == GATE and self.keys:
            self.keys -= 1
            self.grid[target] = FLOOR
            moves = True
        if code == CRATE and self.grid[behind] == FLOOR:
            self.grid[behind], self.grid[target] = CRATE, FLOOR
            moves = True
        if moves:
            self.place = target

        self.n_steps += 1
        is_won = code == EXIT
        is_over = is_won or code == FIRE
        is_late = self.n_steps >= self.max_steps
        return self._observe(), float(is_won), bool(is_over), is_late, {}


def view_crates(obs: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return the window and the number of keys: all that `MapWrapper` needs."""
    side = 2 * REACH + 1
    return obs[:-1].reshape(side, side), int(obs[-1])
