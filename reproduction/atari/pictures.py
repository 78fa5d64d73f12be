"""Pictures and clips of one game: its figure, and its highlighted options (paper, Figures 8 to 10).

Highlighted options are replayed from what the study kept: the actions to each start state, and those of each option.
They are chosen by the rule of `study.highlight`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import Bytes, Emulator, whereabouts
from eigenoptions.atari.games import known
from eigenoptions.atari.starts import Start
from eigenoptions.plots import save_clip, save_figure
from reproduction import panels as plots
from reproduction.atari.jobs import BIN
from reproduction.atari.measures import KINDS
from reproduction.atari.screens import screen_panel, time_panel
from reproduction.atari.statistics import chosen
from reproduction.atari.study import rolled
from reproduction.experiment import Results
from reproduction.tables import groups, where

# Frames of the game that a clip shows, and how many of them become one of its pictures.
CLIP_FRAMES, CLIP_STRIDE = 600, 3
# How often the screen is searched for the player, in games whose positions are not known.
MAX_SEARCHES = 64
# Width of one option's pictures, in inches.
CARD_WIDTH = 1.6
# A histogram has as many lines as colours.
MAX_LINES = 7
# Games whose figure has a histogram of heights.
HEIGHTS = ("Freeway",)
# Options whose screens are shown beside where all of them end.
BESIDE = 3
# The figure that is like the paper's, of all pictures of a game.
LEAD = "paper.png"
FILE_TYPES = {"heatmap": "png", "histogram": "png", "clip": "gif"}


def figure(results: Results) -> Any:
    """Figure of an experiment: groups of options in two measures, modal places, heights and scores."""
    panels = []
    if "x" in results["columns"]:
        panels = [_groups(results), _places(results)]
        panels += [_heights(results)] if "heights" in results else []
    if not panels or rolled(results, "long" if "long" in results else "rollouts", variant=0)["score"].any():
        panels.append(_scores(results))
    return plots.figure(panels, columns=2, width=plots.PAGE)


def _groups(results: Results) -> plots.Panel:
    kinds = groups(where(results["groups"], variant=results["variants"][0]), "kind")
    points = {
        kind: [[row["arrives"], row["agreement"]] for row in kinds[kind]]
        for kind in ("random", "rotated", "published", "constant", "singular")
        if kind in kinds
    }
    labels = {"xlabel": "share that arrives somewhere", "ylabel": "agreement across starts"}
    return plots.point_panel(points, "Sets of options (one basis of one collection each)", **labels)


def _places(results: Results) -> plots.Panel:
    """Where options arrive; with one coordinate, against the start."""
    table = rolled(results, variant=0)
    flat = "y" not in table
    axes = ("start", "x") if flat else ("x", "y")
    arrived = {kind: chosen(table, kind=kind, arrives=1.0) for kind in ("random", "singular")}
    points = {kind: np.stack([of[axis] for axis in axes], axis=1) for kind, of in arrived.items()}
    xlabel, ylabel = ("start", "height (memory)") if flat else ("x (memory)", "y (memory)")
    return plots.point_panel(points, "Places where options arrive", xlabel=xlabel, ylabel=ylabel)


def _heights(results: Results) -> plots.Panel:
    """Share of the time at each height, mean per kind and for the three highest singular options (Figure 8)."""
    table = rolled(results, "long", variant=0)
    counts = results["heights"][rolled(results, "long")["variant"] == 0]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    at = {kind: table["kind"] == KINDS.index(kind) for kind in ("singular", "random", "published", "walk")}
    lines = {kind: share[rows].mean(axis=0) for kind, rows in at.items() if rows.any()}
    best = np.flatnonzero(at["singular"])
    top = best[np.argsort(table["height"][best])[-3:]]
    return plots.curve_panel(
        BIN * np.arange(share.shape[1]),
        lines,
        f"The chicken's height in {results['long_frames']:,} frames",
        xlabel="height (memory)",
        ylabel="share of the time, mean",
        threads={"the three highest singular options": share[top]},
    )


def _scores(results: Results) -> plots.Panel:
    name = "long" if "long" in results else "rollouts"
    table = rolled(results, name, variant=0)
    frames = results["long_frames"] if name == "long" else results["frames"]
    parts = {
        kind: chosen(table, kind=kind) for kind in ("random", "rows", "published", "constant", "singular")
    }
    points = {
        k: np.stack([of["direction"], of["score"]], axis=1) for k, of in parts.items() if len(of["kind"])
    }
    labels = {"xlabel": "number of its direction", "ylabel": f"points in {frames:,} frames"}
    return plots.point_panel(points, "Score of each option", **labels)


def draw_highlights(
    results: Results, folder: Path, report: Callable[[str], object] = lambda message: None
) -> dict[str, Any]:
    """Draw a game's pictures: one heat map, histogram and clip per highlighted option, and overviews.

    Files in the existing `folder` are replaced, and `report` is called with a line of text before each option. Returns
    the game as in the studio's ``index.json``, with names of files relative to the folder's parent, and under
    ``"figures"`` the overviews with their captions.
    """
    game, rows = results["game"], results["highlights"]
    emulator, placed = Emulator(game), bool(known(game).position)
    starts = [Start.again(game, plain) for plain in results["reached"]["starts"]]
    screens = []
    for start in starts:
        emulator.replay(start.actions)
        screens.append(emulator.screen())
    panels = [screen_panel(screen, title=f"start {i}") for i, screen in enumerate(screens)]
    save_figure(plots.figure(panels, columns=3), folder / "starts.png")
    figures = {"starts.png": "Start states, reached by stored actions (Appendix E)."}
    lengths = (results["trace_actions"] >= 0).sum(axis=1).tolist()
    actions = [row[:n] for row, n in zip(results["trace_actions"], lengths, strict=True)]
    positions = [row[:n] for row, n in zip(results["trace_positions"], lengths, strict=True)]
    heights = {row["label"]: at[:, -1] for row, at in zip(rows, positions, strict=True)} if placed else {}
    walk = next((heights[row["label"]] for row in rows if row["kind"] == "walk" and placed), None)
    cards, panels, mine, ends = [], [], [], []
    for row, taken, at in zip(rows, actions, positions, strict=True):
        report(f"{game}: playing {row['label']}")
        emulator.replay(starts[row["start"]].actions)
        film, places = _film(emulator, taken, at)
        panels.append(screen_panel(screens[row["start"]], places, row["label"]))
        if row["kind"] == "singular" and row["variant"] == results["variants"][0]:
            mine.append(panels[-1])
            ends.append(places[len(places) // 2 :])
        samples = {row["label"]: heights[row["label"]]} if placed else {}
        if walk is not None and row["kind"] != "walk":
            samples["random walk"] = walk
        heat = screen_panel(screens[row["start"]], places)
        cards.append(_card(row, folder, heat, film, samples, game))
    save_figure(plots.figure(panels, columns=4), folder / "where.png")
    figures["where.png"] = "Where the player spends its time under the highlighted options."
    if ends:
        some = {row["label"]: heights[row["label"]] for row in rows if row["kind"] == "singular" and placed}
        some = dict(list(some.items())[: MAX_LINES - 1]) | ({} if walk is None else {"rand": walk})
        shown = [screen_panel(screens[0], np.concatenate(ends), "where options end")]
        shown += [_height_panel(some, game)] if game in HEIGHTS else mine[:BESIDE]
        save_figure(plots.figure(shown, width=plots.COLUMN * len(shown) * 0.75), folder / LEAD)
        words = "heights under them and a random walk" if game in HEIGHTS else "all frames of some of them"
        figures[LEAD] = f"Where highlighted options end, drawn on the game's screen; beside it {words}."
    if placed:
        samples = dict(list(heights.items())[: MAX_LINES - 1])
        if walk is not None:
            samples["rand"] = walk
        save_figure(_histogram(samples, game, plots.COLUMN), folder / "heights.png")
        caption = "How high the player is under highlighted options, and under a random walk (rand)."
        figures["heights.png"] = caption
    return {"name": game, "options": cards, "figures": figures}


def _card(
    row: Mapping[str, Any],
    folder: Path,
    heat: plots.Panel,
    film: Bytes,
    samples: Mapping[str, Any],
    game: str,
) -> dict[str, str]:
    """Write the pictures of one option; returns its entry in the studio's index."""
    plain = row["label"].lower().replace("+", " plus").replace("-", " minus")
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    files = {what: f"{name}-{what}.{kind}" for what, kind in FILE_TYPES.items()}
    save_figure(plots.figure([heat], width=CARD_WIDTH), folder / files["heatmap"])
    save_clip(film, folder / files["clip"], fps=60 / CLIP_STRIDE)
    if samples:
        save_figure(_histogram(samples, game, CARD_WIDTH * 1.3), folder / files["histogram"])
    else:
        del files["histogram"]
    return {
        "label": f"{row['label']} (start {row['start']})",
        "note": f"{row['reason'][0].upper()}{row['reason'][1:]}. Score {row['score']:g}.",
        **{what: f"{folder.name}/{file}" for what, file in files.items()},
    }


def card_list(options: Sequence[Mapping[str, str]], root: str = "") -> str:
    """HTML of highlighted options side by side: clip, heat map and histogram."""
    figures = []
    for option in options:
        pictures = "".join(
            f'<img src="{escape(root + option[what])}" alt="{what} of {escape(option["label"])}" loading="lazy">'
            for what in ("clip", "heatmap", "histogram")
            if what in option
        )
        text = f"<b>{escape(option['label'])}</b> {escape(option['note'])}"
        figures.append(f'<figure class="card">{pictures}<figcaption>{text}</figcaption></figure>')
    return f'<div class="cards">{"".join(figures)}</div>'


def overviews(figures: Mapping[str, str], root: str = "", style: str = "card wide") -> str:
    """HTML of the overviews."""
    return "".join(
        f'<figure class="{style}"><img src="{escape(root + name)}" alt="{escape(text)}">'
        f"<figcaption>{escape(text)}</figcaption></figure>"
        for name, text in figures.items()
    )


def _film(emulator: Emulator, actions: NDArray[np.int8], positions: Bytes) -> tuple[Bytes, NDArray[Any]]:
    """Screens of the first frames, and the player's pixel (x, y) in all of them, or in those that are searched."""
    game = known(emulator.game)
    film = [emulator.screen()]
    places: Any = []
    each = max(1, len(actions) // MAX_SEARCHES)
    for t, action in enumerate(actions.tolist()):
        if t >= CLIP_FRAMES and game.position:
            break
        emulator.act(action)
        if t < CLIP_FRAMES and t % CLIP_STRIDE == CLIP_STRIDE - 1:
            film.append(emulator.screen())
        if not game.position and t % each == 0:
            places.append(whereabouts(emulator) or (np.nan, np.nan))
    if game.position:
        places = game.to_screen(positions)
    return np.stack(film), np.asarray(places, dtype=float).reshape(-1, 2)


def _histogram(samples: Mapping[str, Bytes], game: str, width: float) -> Any:
    return plots.figure([_height_panel(samples, game)], width=width)


def _height_panel(samples: Mapping[str, Bytes], game: str) -> plots.Panel:
    most = max(float(v.max(initial=0)) for v in samples.values())
    bins = np.arange(0, most + 2 * BIN, BIN).tolist()
    byte = known(game).position[-1]
    return time_panel(samples, bins=bins, label=f"height (byte {byte})")
