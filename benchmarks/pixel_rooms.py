"""Time in the second of two rooms, seen as 64 x 64 x 3 pixels: what options change.

``python -m benchmarks.pixel_rooms [ROOM ...] [--steps 15000] [--seeds 3]``. A disc
moves in two rooms. It is drawn where it is, so hardly any frame repeats. Options are
discovered in random steps, at the defaults. Then actions are drawn with
``action_space.sample()``, in episodes of 200 steps that begin in the first room.

``--csv pixel_rooms.csv`` writes a row for each room and seed, and goes on where a file
ends; the stored one, beside this program, holds the numbers of docs/pixels.md.
``--show pixel_rooms.csv`` prints the means of a file, and measures nothing.

The rooms of `TUNING` were used to choose settings, those of `REPORTED` were not.
"""

from __future__ import annotations

import argparse
import csv
import logging
import time
from pathlib import Path
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
        # A random walk also stops options by chance.
        env = eo.OptionsWrapper(
            visits,
            options,
            option_chance=options.exploration.option_chance,
            stop_chance=options.exploration.stop_chance,
        )
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


def measure_rooms(name: str, text: str, n_steps: int, seed: int) -> dict[str, Any]:
    """One row of the table: both shares, and the CPU seconds of discovery."""
    data = eo.collect(lambda: make_rooms(text), n_steps, rng=seed)
    begin = time.process_time()
    options = eo.discover(
        data,
        features="deep",
        n_actions=4,
        space=make_rooms(text).observation_space,
        rng=seed,
    )
    seconds = time.process_time() - begin

    plain, _ = measure_share(text, seed=seed)
    share, longest = measure_share(text, options, seed=seed)
    return {
        "rooms": name,
        "steps": n_steps,
        "seed": seed,
        "plain": plain,
        "options": share,
        "longest": longest,
        "cpu_seconds": round(seconds, 1),
        "option_chance": options.exploration.option_chance,
        "stop_chance": options.exploration.stop_chance,
    }


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file that was written before."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Write a row to the end of a file."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def summarize(name: str, rows: list[Any]) -> str:
    """One line: means over the seeds of some rooms."""
    plain = np.array([float(row["plain"]) for row in rows])
    shares = np.array([float(row["options"]) for row in rows])
    seconds = np.array([float(row["cpu_seconds"]) for row in rows])
    longest = max(int(row["longest"]) for row in rows)
    return (
        f"{name:15} {len(rows)} seeds  plain {plain.mean():.3f}  "
        f"options {shares.mean():.3f} ({shares.min():.3f} to {shares.max():.3f})  "
        f"longest option {longest} steps  discover {seconds.mean():.1f} CPU s"
    )


def main() -> None:
    """Print a line for each room."""
    rooms = {**REPORTED, **TUNING}
    parser = argparse.ArgumentParser(description="Time in the second room.")
    parser.add_argument("rooms", nargs="*", default=list(REPORTED), metavar="ROOM")
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--csv", type=Path, metavar="FILE")
    parser.add_argument("--show", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)

    for name in arguments.rooms:
        if arguments.show:
            rows = [row for row in read_rows(arguments.show) if row["rooms"] == name]
        else:
            rows = measure_seeds(name, rooms[name], arguments)
        if rows:
            print(summarize(name, rows), flush=True)


def measure_seeds(name: str, text: str, arguments: argparse.Namespace) -> list[Any]:
    """The rows of all seeds of a room; what a file has is not measured again."""
    known: dict[int, Any] = {}
    if arguments.csv:
        for row in read_rows(arguments.csv):
            if row["rooms"] == name and int(row["steps"]) == arguments.steps:
                known[int(row["seed"])] = row

    for seed in range(arguments.seeds):
        if seed not in known:
            known[seed] = measure_rooms(name, text, arguments.steps, seed)
            if arguments.csv:
                append_row(arguments.csv, known[seed])
    return [known[seed] for seed in range(arguments.seeds)]


if __name__ == "__main__":
    main()
