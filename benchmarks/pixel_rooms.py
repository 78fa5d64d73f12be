"""Time in the second of two rooms, seen as 64 x 64 x 3 pixels: what options change.

``python -m benchmarks.pixel_rooms [ROOM ...] [--steps 15000] [--seeds 3]``. A disc
moves in two rooms. It is drawn where it is, so hardly any frame repeats. Options are
discovered in random steps, at the defaults. Then actions are drawn with
``action_space.sample()``, in episodes of 200 steps that begin in the first room.

The rooms of `TUNING` were used to choose settings, those of `REPORTED` were not.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import gymnasium as gym
import numpy as np

import eigenoptions as eo

REPORTED = {
    "side by side": """
###########
#1111#2222#
#1111#2222#
#1111.2222#
#1111#2222#
#1111#2222#
###########""",
    "corridor": """
###############
#1111#####2222#
#1111#####2222#
#1111.....2222#
#1111#####2222#
#1111#####2222#
###############""",
    "stacked": """
##########
#11111111#
#11111111#
#11111111#
######.###
#22222222#
#22222222#
#22222222#
##########""",
    "small to large": """
##############
#111#22222222#
#111#22222222#
#111#22222222#
#111.22222222#
#111#22222222#
##############""",
}

TUNING = {
    "tall": """
#########
#1111111#
#1111111#
#1111111#
#1111111#
####.####
#2222222#
#2222222#
#2222222#
#########""",
    "low door": """
#############
#1111#222222#
#1111#222222#
#1111#222222#
#1111#222222#
#1111#222222#
#1111.222222#
#############""",
}


class PixelRooms(gym.Env[Any, Any]):
    """A disc in rooms: steps of half a cell, with some noise.

    Parameters
    ----------
    text : str
        The map: 1 and 2 are the rooms, ``.`` is a way between them.
    """

    def __init__(self, text: str) -> None:
        rows = text.strip().splitlines()
        self.cells = np.array([list(row) for row in rows])
        self.observation_space = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
        self.action_space = gym.spaces.Discrete(4)

        # Pixels of a cell, and the picture of the map.
        self.scale = 64 // max(self.cells.shape)
        floor = np.kron(self.cells != "#", np.ones((self.scale, self.scale)))
        self.picture = np.full((64, 64, 3), 30, dtype=np.uint8)
        self.picture[: floor.shape[0], : floor.shape[1]][floor > 0] = (200, 200, 190)
        self.pixels = np.indices((64, 64)) + 0.5

    def draw(self) -> np.ndarray:
        """Draw the disc on the map."""
        frame = self.picture.copy()
        row, column = self.place * self.scale
        squared = (self.pixels[0] - row) ** 2 + (self.pixels[1] - column) ** 2
        frame[squared <= max(2.0, self.scale / 2) ** 2] = (220, 30, 30)
        return frame

    @property
    def room(self) -> str:
        """Where the disc is: "1", "2" or "."."""
        row, column = self.place.astype(int)
        return str(self.cells[row, column])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin in the upper left corner."""
        super().reset(seed=seed)
        self.place = 1.5 + self.np_random.uniform(-0.3, 0.3, 2)
        return self.draw(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Go up, right, down or left; walls stop."""
        direction = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)][int(action)])
        place = self.place + 0.5 * direction + self.np_random.normal(0, 0.05, 2)
        row, column = place.astype(int)
        if self.cells[row, column] != "#":
            self.place = place
        return self.draw(), 0.0, False, False, {"room": self.room}


class _Visits(gym.Wrapper[Any, Any, Any, Any]):
    """Counts the steps that end in the second room."""

    n_steps = 0
    n_second = 0

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.n_steps += 1
        self.n_second += result[4]["room"] == "2"
        return result


def make_rooms(text: str) -> gym.Env[Any, Any]:
    """Make the rooms of a map, in episodes of 200 steps."""
    return gym.wrappers.TimeLimit(PixelRooms(text), 200)


def measure_share(
    text: str, options: Any = None, n_steps: int = 4_000, seed: int = 0
) -> tuple[float, int]:
    """Share of time in the second room, and the longest run of an option."""
    visits = _Visits(make_rooms(text))
    env: Any = visits
    if options is not None:
        env = eo.OptionsWrapper(visits, options)
    env.reset(seed=seed)
    env.action_space.seed(seed)
    longest = 0
    while visits.n_steps < n_steps:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        if info.get("option", -1) >= 0:
            longest = max(longest, info["duration"])
        if terminated or truncated:
            env.reset()
    return visits.n_second / visits.n_steps, longest


def measure_rooms(name: str, text: str, n_steps: int, seeds: int) -> str:
    """One line: CPU seconds of discovery, and both shares."""
    plain = []
    with_options = []
    seconds = []
    for seed in range(seeds):
        data = eo.collect(lambda: make_rooms(text), n_steps, rng=seed)
        begin = time.process_time()
        options = eo.discover(
            data,
            features="deep",
            n_actions=4,
            space=make_rooms(text).observation_space,
            rng=seed,
        )
        seconds.append(time.process_time() - begin)
        plain.append(measure_share(text, seed=seed)[0])
        with_options.append(measure_share(text, options, seed=seed))
    shares = np.array([share for share, _ in with_options])
    longest = max(steps for _, steps in with_options)
    chance = options.exploration
    return (
        f"{name:15} plain {np.mean(plain):.3f}  options {shares.mean():.3f} "
        f"({shares.min():.3f} to {shares.max():.3f})  longest option {longest} steps  "
        f"discover {np.mean(seconds):.1f} CPU s  {chance}"
    )


def main() -> None:
    """Print a line for each room."""
    rooms = {**REPORTED, **TUNING}
    parser = argparse.ArgumentParser(description="Time in the second room.")
    parser.add_argument("rooms", nargs="*", default=list(REPORTED), metavar="ROOM")
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in arguments.rooms:
        line = measure_rooms(name, rooms[name], arguments.steps, arguments.seeds)
        print(line, flush=True)


if __name__ == "__main__":
    main()
