"""The options that figures show, and pictures and clips of them (Figures 8 to 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist

from eigenoptions.atari import Emulator
from eigenoptions.atari.emulator import Bytes
from eigenoptions.plots import save_clip
from reproduction.atari.games import get_game, load_starts
from reproduction.atari.measures import FAR, OPTION, get_points
from reproduction.atari.settings import WHOLE_GAMES
from reproduction.drawing import make_graphs
from reproduction.lab import Data

# Which options are shown


def choose_highlights(rollouts: pd.DataFrame) -> pd.DataFrame:
    """The options of the first collection that figures and clips show, by a rule.

    Four are singular options of the first variant, four of the last one (see
    `choose_apart`); a random walk follows.
    """
    table = rollouts[rollouts.collection == rollouts.collection.iloc[0]]
    first = table.variant.iloc[0]
    last = table.variant.iloc[-1]
    shown = [first] if first == last else [first, last]

    singular = table[table.kind == "singular"]
    parts = [choose_apart(singular[singular.variant == variant]) for variant in shown]
    walks = table[(table.kind == "walk") & (table.start == 0)]
    parts.append(walks[:1].assign(reason="a random walk"))
    chosen = pd.concat(parts, ignore_index=True)

    number = chosen.direction.astype(str)
    sign = np.where(chosen.sign > 0, "+", "-")
    best = np.where(chosen.variant == first, "", " best")
    labels = "#" + number + sign + best
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
    """Roll-outs that end away from their start and from each other, one per option.

    They come in order of the number of starts from which the option settles near that
    place, and of dwell.

    Parameters
    ----------
    table : DataFrame
        Roll-outs.
    n : int, default=4
        How many, at most.
    min_distance : float, default=24.0
        Least distance between the places of two options.
    """
    points = get_points(table)
    settles = table.settles.to_numpy() > 0
    option = table.groupby(OPTION, sort=False).ngroup().to_numpy()

    # From how many starts the same option settles near the place of each roll-out.
    is_same_option = option[:, None] == option
    is_near = cdist(points, points) < FAR
    support = (is_near & is_same_option & settles).sum(axis=1) * settles

    order = np.lexsort((table.direction, -table.dwell, -support))
    is_away = table.away.to_numpy()[order] >= FAR
    taken: list[int] = []
    for i in order[is_away]:
        nearest = cdist(points[[i]], points[taken]).min(initial=np.inf)
        is_new = option[i] not in option[taken]
        if len(taken) < n and is_new and nearest >= min_distance:
            taken.append(i)

    n_starts = table.start.nunique()
    reasons = [_name_support(n_settled, n_starts) for n_settled in support[taken]]
    return table.iloc[taken].assign(reason=reasons)


def _name_support(n_settled: int, n_starts: int) -> str:
    """Why an option is shown."""
    if n_settled == 0:
        return "does not settle"
    return f"settles here from {n_settled} of {n_starts} starts"


# Figures


def draw_highlights(data: Data, *, game: str) -> Figure:
    """Where highlighted options end, on the game's screen.

    Beside it are the heights of the chicken in Freeway, and some options elsewhere; and
    how many options have arrived after how many frames.
    """
    known = get_game(game)
    highlights = data["highlights"]
    traces = dict(iter(data["traces"].groupby("label", sort=False)))
    first = highlights[highlights.variant == highlights.variant.iloc[0]]
    singular = first[first.kind == "singular"]
    paths = {label: get_points(traces[label]) for label in singular.label}

    n_others = 1 if game == "Freeway" else min(2, len(paths))
    n_curves = int("curves" in data)
    figure, axes = make_graphs(1 + n_others + n_curves, columns=4)
    left, *others = axes[: 1 + n_others]
    figure.set_figheight(2.6)
    if paths:
        late = np.concatenate([path[len(path) // 2 :] for path in paths.values()])
        screen = get_screen(highlights, game, 0)
        draw_heat_map(left, screen, known.to_screen(late), "where options end")

    if game == "Freeway":
        walks = highlights[highlights.kind == "walk"].label
        heights = {label: traces[label].x for label in [*paths, *walks]}
        draw_height_histograms(others[0], heights)
    else:
        for ax, option in zip(others, singular.itertuples(), strict=False):
            screen = get_screen(highlights, game, option.start)
            places = known.to_screen(paths[option.label])
            draw_heat_map(ax, screen, places, option.label)
    if "curves" in data:
        draw_arrivals(axes[-1], data["curves"])
    return figure


def draw_heat_map(ax: Axes, screen: Bytes, places: ArrayLike, title: str = "") -> None:
    """Draw the share of time that the player was at each place over a screen.

    `places` ``(N, 2)`` are pixels (x, y).
    """
    height, width, _ = screen.shape
    x, y = np.clip(np.asarray(places), 0, [width - 1, height - 1]).astype(int).T
    n_visits = np.bincount(y * width + x, minlength=height * width)
    time = n_visits.reshape(height, width) / len(x)

    # The player is about six pixels wide. The square root makes rare places visible.
    strength = np.sqrt(gaussian_filter(time, 3.0))
    strength /= strength.max()
    heat = colormaps["inferno"](1 - 0.85 * strength)[:, :, :3]
    cover = np.clip(1.6 * strength, 0, 1)[:, :, None]

    brightness = screen.astype(float) / 255 @ [0.3, 0.59, 0.11]
    pale = np.repeat((0.65 + 0.35 * brightness)[:, :, None], 3, axis=2)
    ax.imshow((1 - cover) * pale + cover * heat)
    ax.set(title=title)
    ax.set_axis_off()


def draw_height_histograms(ax: Axes, heights: Mapping[str, ArrayLike]) -> None:
    """Share of the time that the chicken was at each height (Figure 8, right)."""
    edges = np.arange(0, 264, 8)
    for i, (label, values) in enumerate(heights.items()):
        counts, _ = np.histogram(values, edges)
        ax.stairs(
            counts / np.size(values),
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


def draw_arrivals(ax: Axes, curves: pd.DataFrame) -> None:
    """Draw the share of options that settle away from their start, by frames.

    Where the curves are flat, longer roll-outs would say the same.
    """
    colors = {"singular": "C0", "random": "C1"}
    styles = {"paper": "-", WHOLE_GAMES: "--"}
    for variant, style in styles.items():
        for kind, color in colors.items():
            is_shown = (curves.variant == variant) & (curves.kind == kind)
            shares = curves[is_shown].groupby("frames").arrives.mean()
            # Dashed lines have one name together.
            label = kind if variant == "paper" else ""
            ax.plot(shares.index, shares, style, color=color, label=label, marker=".")

    if (curves.variant == WHOLE_GAMES).any():
        label = "until the game is over,\nfrom the first start"
        ax.plot([], [], "k--", label=label)
        # Whole games are ten times as long.
        ax.set_xscale("log")
    ax.set(xlabel="frames", ylabel="options that have arrived", ylim=(0, None))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))


def get_screen(highlights: pd.DataFrame, game: str, start: int) -> Bytes:
    """The screen at a start of the first collection.

    It is white where ale-py is not installed.
    """
    try:
        emulator = Emulator(game)
    except ImportError:
        return np.full((210, 160, 3), 255, dtype=np.uint8)
    starts = load_starts(game, highlights.collection.iloc[0])
    emulator.replay(starts[start])
    return emulator.screen()


# Clips


def save_clips(
    data: Data, game: str, folder: Path, frames: int = 600, every: int = 3
) -> list[tuple[str, str, str]]:
    """Write a clip of each highlighted option.

    Parameters
    ----------
    data : mapping
        The tables of a study.
    game : str
        Name of the game.
    folder : Path
        Where to write.
    frames : int, default=600
        Frames of a clip, at most.
    every : int, default=3
        One picture for so many frames.

    Returns
    -------
    list of tuples of str
        File, label and why it is shown.
    """
    emulator = Emulator(game)
    clips = []
    for option in data["highlights"].itertuples():
        emulator.replay(load_starts(game, option.collection)[option.start])
        pictures = [emulator.screen()]
        trace = data["traces"][data["traces"].label == option.label]
        for frame, action in enumerate(trace.action[:frames], start=1):
            emulator.act(int(action))
            if frame % every == 0:
                pictures.append(emulator.screen())

        name = option.label.lower().replace("+", " plus").replace("-", " minus")
        file = re.sub(r"[^a-z0-9]+", "-", name).strip("-") + ".gif"
        save_clip(pictures, folder / file, fps=60 / every)
        text = (
            f"{option.variant}: {option.reason}. Start {option.start}, score "
            f"{option.score:g}."
        )
        clips.append((file, option.label, text))
    return clips
