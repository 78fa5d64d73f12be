"""Draw images/deep-pixels.png and images/deep-clip.gif from what examples/pixels.py learns: `python docs/deep_clip.py`.

The clip shows the frames that the options see, beside the learned potential that each of them climbs.
"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path

import numpy as np

import eigenoptions as eo
from eigenoptions.plots import save_clip, save_figure
from reproduction.panels import PAGE, figure, policy_panel, value_panel

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "pixels.py"
# Width of a cell in the clip in pixels, and frames of a pause.
SCALE, PAUSE = 2, 6
LOW, MIDDLE, HIGH = np.array([33, 102, 172]), np.array([255, 255, 255]), np.array([230, 97, 1])


def coloured(height: np.ndarray, cells: np.ndarray, agent: int) -> np.ndarray:
    """``(78, 78, 3)`` a potential from blue to orange over the map, the agent black."""
    # In steps of a twentieth: a clip has few colours.
    share = np.round(20 * height / np.abs(height).max()) / 20
    up = np.where(share[:, None] > 0, HIGH, LOW)
    image = np.full((13, 13, 3), 138, dtype=np.uint8)
    image[tuple(cells.T)] = MIDDLE + np.abs(share)[:, None] * (up - MIDDLE)
    image[tuple(cells[agent])] = 0
    return image.repeat(6, axis=0).repeat(6, axis=1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = runpy.run_path(str(EXAMPLE))
        os.chdir(HERE)
    skills, frames, cells = found["skills"], found["frames"], found["cells"]
    heights, policies = skills.potential(frames), skills.actions(frames)
    panels = [value_panel(cells, heights[i], skills.labels[i]) for i in range(0, 8, 2)]
    panels += [policy_panel(cells, policies[i], skills.labels[i]) for i in range(0, 8, 2)]
    save_figure(figure(panels, columns=4, width=PAGE), HERE / "images" / "deep-pixels.png")
    maze, state, shots = eo.maze("four-rooms"), eo.maze("four-rooms").start, []
    for i in (0, 2, 1, 3):
        height = heights[i] - heights[i].mean()
        for _ in range(40):
            grey = np.repeat(frames[state][:, :, None], 3, axis=2)
            shots.append(np.concatenate([grey, coloured(height, cells, state)], axis=1))
            action = policies[i, state]
            if action < 0:
                break
            state = int(maze.successors[state, action])
        shots += [shots[-1]] * PAUSE
    save_clip(np.stack(shots).repeat(SCALE, 1).repeat(SCALE, 2), HERE / "images" / "deep-clip.gif", fps=7.5)


if __name__ == "__main__":
    main()
