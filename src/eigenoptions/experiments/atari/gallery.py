"""Pictures and clips of one game's highlighted options (paper, Figures 8 to 10 and the appendix's start states).

Everything is played again from what a study kept: actions to each start state, and those of each option. What is
shown is chosen by the rule of `highlight`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.atari import Emulator, Start, known, whereabouts
from eigenoptions.experiments.experiment import Results

CLIP, EVERY = 600, 3  # frames of a clip, and how many of them make one of its pictures
LOOKS = 200  # times that the screen is searched for the player, in games whose positions are not known
CARD = 1.6  # inches: width of one option's pictures
LINES = 7  # of a histogram, which has as many colours
TALL = 8  # units of a coordinate in a histogram


def gallery(
    results: Results, folder: Path, tell: Callable[[str], object] = lambda news: None
) -> dict[str, Any]:
    """Draw a game's figures into a folder, and one picture, histogram and clip for each highlighted option.

    Parameters
    ----------
    results
        Of `study`.
    folder
        That is there; files in it are written over.
    tell
        Called with a line of news before each option.

    Returns
    -------
    dict
        The game as the studio's ``index.json`` has it; names of files are relative to the folder's parent. Under
        ``"figures"`` the files that belong to all options, with their captions.
    """
    game, starts = results["game"], results["reached"]["starts"]
    emulator = Emulator(game)
    screens = []
    for plain in starts:
        emulator.replay(Start.again(game, plain).actions)
        screens.append(emulator.screen())
    panels = [plots.screen_panel(s, title=f"start {i}") for i, s in enumerate(screens)]
    plots.save(plots.figure(panels, columns=3), folder / "starts.png")
    figures = {"starts.png": "Start states, reached by stored actions (Appendix E)."}
    placed = bool(known(game).position)
    lengths = (results["trace_actions"] >= 0).sum(axis=1).tolist()
    walks = [
        positions[:length, -1]
        for row, length, positions in zip(
            results["highlights"], lengths, results["trace_positions"], strict=True
        )
        if row["kind"] == "walk" and placed
    ]
    shown, films = [], []
    for row, played, actions, positions in zip(
        results["highlights"], lengths, results["trace_actions"], results["trace_positions"], strict=True
    ):
        tell(f"{game}: playing {row['label']}")
        emulator.replay(Start.again(game, starts[row["start"]]).actions)
        film, places = _film(emulator, actions[:played], positions[:played])
        plain = row["label"].lower().replace("+", " plus").replace("-", " minus")
        name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
        files = {what: f"{name}-{what}.{kind}" for what, kind in _FILES.items()}
        films.append((row, places, positions[:played]))
        heat = plots.screen_panel(screens[row["start"]], places)
        plots.save(plots.figure([heat], width=CARD), folder / files["heatmap"])
        plots.clip(folder / files["clip"], film, every=EVERY)
        entry = {
            "label": f"{row['label']} (start {row['start']})",
            "note": f"{row['reason'][0].upper()}{row['reason'][1:]}. Score {row['score']:g}.",
            "heatmap": f"{folder.name}/{files['heatmap']}",
            "clip": f"{folder.name}/{files['clip']}",
        }
        if placed:
            samples = {row["label"]: positions[:played, -1]}
            if walks and row["kind"] != "walk":
                samples["random walk"] = walks[0]
            plots.save(_histogram(samples, game, CARD * 1.3), folder / files["histogram"])
            entry["histogram"] = f"{folder.name}/{files['histogram']}"
        shown.append(entry)
    panels = [plots.screen_panel(screens[r["start"]], at, r["label"]) for r, at, _ in films]
    plots.save(plots.figure(panels, columns=4), folder / "where.png")
    figures["where.png"] = "Where the player spends its time under the highlighted options."
    if placed:
        samples = {r["label"]: p[:, -1] for r, _, p in films[: LINES - 1]}
        if walks:
            samples["rand"] = walks[0]
        plots.save(_histogram(samples, game, plots.COLUMN), folder / "heights.png")
        figures["heights.png"] = (
            "How high the player is under highlighted options, and under a random walk (rand)."
        )
    return {"name": game, "options": shown, "figures": figures}


_FILES = {"heatmap": "png", "histogram": "png", "clip": "gif"}


def cards(options: Sequence[Mapping[str, str]], root: str = "") -> str:
    """HTML of highlighted options side by side: clip, where the player was, and how high."""
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


def sheets(figures: Mapping[str, str], root: str = "") -> str:
    """HTML of the figures that belong to all options."""
    return "".join(
        f'<figure class="card wide"><img src="{escape(root + name)}" alt="{escape(text)}" loading="lazy">'
        f"<figcaption>{escape(text)}</figcaption></figure>"
        for name, text in figures.items()
    )


def _film(
    emulator: Emulator, actions: NDArray[np.int8], positions: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Screens of the first frames, and the player's pixel (x, y) in all of them, or as often as one looks."""
    game = known(emulator.game)
    film = [emulator.screen()]
    places: Any = []
    each = max(1, len(actions) // LOOKS)
    for t, action in enumerate(actions.tolist()):
        if t >= CLIP and game.position:
            break
        emulator.act(action)
        if t < CLIP and t % EVERY == EVERY - 1:
            film.append(emulator.screen())
        if not game.position and t % each == 0:
            places.append(whereabouts(emulator) or (np.nan, np.nan))
    if game.position:
        places = game.to_screen(positions)
    return np.stack(film), np.asarray(places, dtype=float).reshape(-1, 2)


def _histogram(samples: Mapping[str, NDArray[np.uint8]], game: str, width: float) -> Any:
    most = max(float(v.max(initial=0)) for v in samples.values())
    bins = np.arange(0, most + 2 * TALL, TALL).tolist()
    byte = known(game).position[-1]
    return plots.figure([plots.time_panel(samples, bins=bins, label=f"height (byte {byte})")], width=width)
