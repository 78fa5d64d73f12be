"""Draw the figures of docs/article.md: diffusion times, and verdicts by reading.

    python docs/draw_article.py

The third figure of the page is that of ``examples/stop_chance.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))

import eigenoptions as eo  # noqa: E402
from eigenoptions.plots.style import STYLE  # noqa: E402
from reproduction.claims import VERDICTS  # noqa: E402
from reproduction.drawing import add_legend, draw_lines, make_graphs  # noqa: E402
from reproduction.readings import MAIN, READINGS  # noqa: E402
from reproduction.runs.diffusion import compute_diffusion_times  # noqa: E402
from reproduction.runs.options import MAZES, make_eigenoptions  # noqa: E402
from reproduction.stored_run import read_verdicts  # noqa: E402

# Holds, partly, does not hold, not decided; marks tell them apart without colours.
COLORS = ("#4a9d6f", "#e3c14d", "#cc5a4a", "#b8bec6")
MARKS = ("", "_", "x", "$?$")


def draw_diffusion(n_options: int = 64) -> Figure:
    """Diffusion times of three mazes under four readings."""
    figure, axes = make_graphs(len(MAZES), width=7.2, ylabel="diffusion time")
    for ax, maze in zip(axes, MAZES, strict=True):
        mdp = eo.maze(maze)
        options = make_eigenoptions(mdp, n_options)
        counts = range(len(options) + 1)
        times, with_extra_step = compute_diffusion_times(mdp, options, counts)
        without_e1, _ = compute_diffusion_times(mdp, options[2:], counts[:-2])
        rarely = [
            eo.diffusion_time(mdp, options[2 : 2 + n], option_chance=0.05)
            for n in range(2, len(options) - 1, 4)
        ]
        draw_lines(
            ax,
            counts,
            {
                "as the paper counts": times,
                "k + 1 steps": with_extra_step,
                "e1 left out": _fill(without_e1, len(times)),
            },
            baseline=times[0],
            title=maze,
            yscale="log",
            xlabel="eigenoptions",
        )
        ax.plot(
            range(2, len(options) - 1, 4),
            rarely,
            color="#7b5ea7",
            lw=1.2,
            label="one decision in twenty",
        )
    return add_legend(figure, columns=5)


def _fill(times: np.ndarray, length: int) -> np.ndarray:
    """The curve, with NaN where there are no options left."""
    return np.append(times, np.full(length - len(times), np.nan))


def draw_readings() -> Figure:
    """The claims that turn under some reading, with their verdicts."""
    verdicts = read_verdicts()
    verdicts = verdicts[verdicts.section != "ours"]
    n_verdicts = verdicts.groupby("claim").verdict.nunique()
    turning = verdicts[verdicts.claim.map(n_verdicts) > 1]
    numbers = {verdict: i for i, verdict in enumerate(VERDICTS)}
    table = turning.assign(number=turning.verdict.map(numbers)).pivot(
        index="claim", columns="reading", values="number"
    )
    main = table[MAIN]
    turns = table.notna() & table.ne(main, axis=0)
    names = [name for name in READINGS if name == MAIN or turns.get(name, main).any()]
    names = [name for name in names if name in table]
    # The claims that turn under the same readings stand together.
    order = turns.sort_values(names, ascending=False).index
    return _draw_matrix(table.loc[order, names])


def _draw_matrix(table: pd.DataFrame) -> Figure:
    """A coloured cell for each claim and reading; empty where it does not apply."""
    figure = Figure(figsize=(6.5, 1.5 + 0.155 * len(table)), layout="constrained")
    ax = figure.subplots()
    for number, (color, mark) in enumerate(zip(COLORS, MARKS, strict=True)):
        rows, columns = np.nonzero(table.to_numpy() == number)
        ax.scatter(columns, rows, s=105, marker="s", color=color, linewidths=0)
        if mark:
            ax.scatter(columns, rows, s=22, marker=mark, color="white", linewidths=1)
    ax.set(xlim=(-0.6, table.shape[1] - 0.4), ylim=(len(table) - 0.4, -0.6))
    claims = [claim.replace("-", " ") for claim in table.index]
    ax.set_yticks(range(len(table)), claims, fontsize=7)
    ax.set_xticks(range(table.shape[1]), table.columns, fontsize=7)
    ax.tick_params(axis="x", rotation=90, length=0, top=True, labeltop=True)
    ax.tick_params(axis="x", bottom=False, labelbottom=False)
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    patches = [
        Patch(color=color, label=verdict)
        for color, verdict in zip(COLORS, VERDICTS, strict=True)
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=4, fontsize=7)
    return figure


def main() -> None:
    """Write both figures."""
    # Text stays text: the files are a third as large.
    style = {**STYLE, "svg.hashsalt": "eigenoptions", "svg.fonttype": "none"}
    with matplotlib.rc_context(style):
        for name, draw in (
            ("article-diffusion", draw_diffusion),
            ("article-readings", draw_readings),
        ):
            draw().savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
