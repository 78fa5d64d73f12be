"""Pictures and clips of the highlighted options of one game (paper, Figures 8 to 10)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from eigenoptions.atari import Emulator
from eigenoptions.plots import save_clip
from reproduction.atari.games import get_game
from reproduction.atari.measures import get_points
from reproduction.atari.starts import Start
from reproduction.atari.study import BIN
from reproduction.drawing import make_graphs
from reproduction.lab import Data


def draw_highlights(data: Data, *, game: str) -> Figure:
    """Where highlighted options end, on the game's screen; beside it their heights (Freeway), or some of them."""
    known, highlights, traces = (
        get_game(game),
        data["highlights"],
        data["traces"].groupby("label", sort=False),
    )
    first = highlights[highlights.variant == highlights.variant.iloc[0]]
    singular = [label for label in first[first.kind == "singular"].label if label in traces.groups]
    ends = [get_points(traces.get_group(label)) for label in singular]
    picture, axes = make_graphs(2 if game == "Freeway" else 1 + min(3, len(singular)), columns=4)
    picture.set_figheight(2.6)
    if ends:
        late = np.concatenate([path[len(path) // 2 :] for path in ends])
        draw_heat_map(axes[0], get_screen(data, game, 0), known.to_screen(late), "where options end")
    if game == "Freeway":
        shown = [*singular, *highlights[highlights.kind == "walk"].label]
        _draw_height_histograms(axes[1], {name: traces.get_group(name).x.to_numpy() for name in shown})
    else:
        starts = highlights.set_index("label").start
        for ax, label, path in zip(axes[1:], singular, ends, strict=False):
            draw_heat_map(ax, get_screen(data, game, starts[label]), known.to_screen(path), label)
    return picture


def draw_heat_map(ax: Axes, screen: NDArray[np.uint8], places: ArrayLike, title: str = "") -> None:
    """Draw the share of time that the player was at each of its places ``(N, 2)``, pixels (x, y), over a screen."""
    height, width = screen.shape[:2]
    grey = screen.astype(float) / 255 @ [0.3, 0.59, 0.11]
    picture = np.repeat((0.65 + 0.35 * grey)[:, :, None], 3, axis=2)
    x, y = np.clip(np.asarray(places), 0, [width - 1, height - 1]).astype(int).T
    time = np.bincount(y * width + x, minlength=height * width).reshape(height, width) / len(x)
    # The player is about six pixels wide. The square root makes rare places visible too.
    strength = np.sqrt(gaussian_filter(time, 3.0))
    strength /= strength.max()
    cover = np.clip(1.6 * strength, 0, 1)[:, :, None]
    ax.imshow((1 - cover) * picture + cover * colormaps["inferno"](1 - 0.85 * strength)[:, :, :3])
    ax.set(title=title)
    ax.set_axis_off()


def get_screen(data: Data, game: str, start: int) -> NDArray[np.uint8]:
    """The screen at a start of the first collection; white where ale-py is not installed."""
    try:
        emulator = Emulator(game)
    except ImportError:
        return np.full((210, 160, 3), 255, dtype=np.uint8)
    emulator.replay(Start.parse_actions(data["starts"].actions[start]))
    return emulator.screen()


def save_clips(data: Data, game: str, folder: Path, *, frames: int = 600, every: int = 3) -> pd.DataFrame:
    """Write a clip of each highlighted option; returns their files, labels and why they are shown."""
    emulator, rows = Emulator(game), []
    traces = data["traces"].groupby("label", sort=False)
    for option in data["highlights"].itertuples():
        if option.label not in traces.groups:
            continue
        emulator.replay(Start.parse_actions(data["starts"].actions[option.start]))
        film = [emulator.screen()]
        for t, action in enumerate(traces.get_group(option.label).action[:frames]):
            emulator.act(int(action))
            if t % every == every - 1:
                film.append(emulator.screen())
        name = option.label.lower().replace("+", " plus").replace("-", " minus")
        file = re.sub(r"[^a-z0-9]+", "-", name).strip("-") + ".gif"
        save_clip(film, folder / file, fps=60 / every)
        text = f"{option.variant}: {option.reason}, from start {option.start}. Score {option.score:g}."
        rows.append({"file": file, "label": option.label, "text": text})
    return pd.DataFrame(rows)


def _draw_height_histograms(ax: Axes, heights: dict[str, NDArray[Any]]) -> None:
    """Share of the time that the chicken was at each height, one line per option (Figure 8, right)."""
    edges = np.arange(0, 256 + BIN, BIN)
    for i, (label, values) in enumerate(heights.items()):
        share = np.histogram(values, edges)[0] / len(values)
        ax.stairs(share, edges, orientation="horizontal", label=label, linewidth=1.1, color=f"C{i}")
    ax.set(xlabel="share of the time", ylabel="height (byte 14)", xlim=(0, 1), ylim=(0, 184))
    if heights:
        ax.legend()
