"""The options that figures show, and pictures and clips of them (paper, Figures 8 to 10)."""

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
from scipy.spatial.distance import cdist

from eigenoptions.atari import Emulator
from eigenoptions.plots import save_clip
from reproduction.atari.games import get_game, load_starts
from reproduction.atari.measures import FAR, OPTION, get_points
from reproduction.drawing import make_graphs
from reproduction.lab import Data


def choose_highlights(rollouts: pd.DataFrame) -> pd.DataFrame:
    """The options of the first collection that figures and clips show, chosen by rule.

    Four are singular options of the first variant, four of the last one (see `choose_apart`); a random walk follows.
    """
    table = rollouts[rollouts.collection == rollouts.collection.iloc[0]]
    main, singular = table.variant.iloc[0], table[table.kind == "singular"]
    shown = dict.fromkeys((main, table.variant.iloc[-1]))
    parts = [choose_apart(singular[singular.variant == variant]) for variant in shown]
    walks = table[(table.kind == "walk") & (table.start == 0)]
    chosen = pd.concat(
        [*parts, walks[:1].assign(reason="a random walk")], ignore_index=True
    )
    number, best = (
        chosen.direction.astype(str),
        np.where(chosen.variant == main, "", " best"),
    )
    labels = "#" + number + np.where(chosen.sign > 0, "+", "-") + best
    labels = labels.where(chosen.kind == "singular", "walk " + number)
    columns = [
        "variant",
        "collection",
        *OPTION,
        "start",
        "dwell",
        "away",
        "region",
        "score",
        "reason",
    ]
    return chosen[columns].assign(label=labels)


def choose_apart(
    table: pd.DataFrame, n: int = 4, min_distance: float = 24.0
) -> pd.DataFrame:
    """Up to n roll-outs that end away from their start and from each other, one per option.

    They come in order of the number of starts from which the option settles near that place, and of dwell.
    """
    points, option = (
        get_points(table),
        table.groupby(OPTION, sort=False).ngroup().to_numpy(),
    )
    near = (
        (cdist(points, points) < FAR)
        & (option[:, None] == option)
        & (table.settles.to_numpy() > 0)
    )
    support = near.sum(axis=1) * (table.settles > 0)
    order = np.lexsort((table.direction, -table.dwell, -support))
    taken: list[int] = []
    for i in order[table.away.to_numpy()[order] >= FAR]:
        apart = cdist(points[[i]], points[taken]).min(initial=np.inf) >= min_distance
        if len(taken) < n and option[i] not in option[taken] and apart:
            taken.append(i)
    text = f"settles here from {{}} of {table.start.nunique()} starts"
    reasons = [text.format(n) if n else "does not settle" for n in support.iloc[taken]]
    return table.iloc[taken].assign(reason=reasons)


def draw_highlights(data: Data, *, game: str) -> Figure:
    """Where highlighted options end, on the game's screen; beside it their heights (Freeway), or some of them."""
    known, highlights = get_game(game), data["highlights"]
    traces = dict(iter(data["traces"].groupby("label", sort=False)))
    first = highlights[highlights.variant == highlights.variant.iloc[0]]
    singular = first[first.kind == "singular"]
    paths = {label: get_points(traces[label]) for label in singular.label}
    picture, axes = make_graphs(
        2 if game == "Freeway" else 1 + min(3, len(paths)), columns=4
    )
    picture.set_figheight(2.6)
    if paths:
        late = np.concatenate([path[len(path) // 2 :] for path in paths.values()])
        draw_heat_map(
            axes[0],
            get_screen(highlights, game, 0),
            known.to_screen(late),
            "where options end",
        )
    if game == "Freeway":
        shown = [*paths, *highlights[highlights.kind == "walk"].label]
        draw_height_histograms(axes[1], {label: traces[label].x for label in shown})
    else:
        for ax, label, start in zip(
            axes[1:], singular.label, singular.start, strict=False
        ):
            draw_heat_map(
                ax,
                get_screen(highlights, game, start),
                known.to_screen(paths[label]),
                label,
            )
    return picture


def draw_heat_map(
    ax: Axes, screen: NDArray[np.uint8], places: ArrayLike, title: str = ""
) -> None:
    """Draw the share of time that the player was at each of its places ``(N, 2)``, pixels (x, y), over a screen."""
    height, width = screen.shape[:2]
    grey = screen.astype(float) / 255 @ [0.3, 0.59, 0.11]
    picture = np.repeat((0.65 + 0.35 * grey)[:, :, None], 3, axis=2)
    x, y = np.clip(np.asarray(places), 0, [width - 1, height - 1]).astype(int).T
    time = np.bincount(y * width + x, minlength=height * width).reshape(
        height, width
    ) / len(x)
    # The player is about six pixels wide. The square root makes rare places visible too.
    strength = np.sqrt(gaussian_filter(time, 3.0))
    strength /= strength.max()
    cover = np.clip(1.6 * strength, 0, 1)[:, :, None]
    ax.imshow(
        (1 - cover) * picture
        + cover * colormaps["inferno"](1 - 0.85 * strength)[:, :, :3]
    )
    ax.set(title=title)
    ax.set_axis_off()


def draw_height_histograms(ax: Axes, heights: dict[str, NDArray[Any]]) -> None:
    """Share of the time that the chicken was at each height, one line per option (Figure 8, right)."""
    edges = np.arange(0, 264, 8)
    for i, (label, values) in enumerate(heights.items()):
        share = np.histogram(values, edges)[0] / len(values)
        ax.stairs(
            share,
            edges,
            orientation="horizontal",
            label=label,
            linewidth=1.1,
            color=f"C{i}",
        )
    ax.set(
        xlabel="share of the time",
        ylabel="height (byte 14)",
        xlim=(0, 1),
        ylim=(0, 184),
    )
    ax.legend()


def get_screen(highlights: pd.DataFrame, game: str, start: int) -> NDArray[np.uint8]:
    """The screen at a start of the first collection; white where ale-py is not installed."""
    try:
        emulator = Emulator(game)
    except ImportError:
        return np.full((210, 160, 3), 255, dtype=np.uint8)
    emulator.replay(load_starts(game, highlights.collection.iloc[0])[start])
    return emulator.screen()


def save_clips(
    data: Data, game: str, folder: Path, frames: int = 600, every: int = 3
) -> list[Any]:
    """Write a clip of each highlighted option; returns their files, labels and why they are shown."""
    emulator, clips = Emulator(game), []
    for option in data["highlights"].itertuples():
        emulator.replay(load_starts(game, option.collection)[option.start])
        film = [emulator.screen()]
        trace = data["traces"][data["traces"].label == option.label]
        for t, action in enumerate(trace.action[:frames]):
            emulator.act(int(action))
            if t % every == every - 1:
                film.append(emulator.screen())
        name = option.label.lower().replace("+", " plus").replace("-", " minus")
        file = re.sub(r"[^a-z0-9]+", "-", name).strip("-") + ".gif"
        save_clip(film, folder / file, fps=60 / every)
        text = f"{option.variant}: {option.reason}. Start {option.start}, score {option.score:g}."
        clips.append((file, option.label, text))
    return clips
