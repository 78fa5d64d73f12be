"""Pictures of the arena: small maps of options that follow the page's colours, and curves of diffusion times."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions import plots
from eigenoptions.experiments.arena.jobs import NONE
from eigenoptions.experiments.experiment import Results
from eigenoptions.experiments.tables import distinct, where

# Corners of an arrow that points up, right, down and left, from the middle of a cell, in tenths of a cell.
ARROWS = ((0, -3, 3, 3, -3, 3), (3, 0, -3, 3, -3, -3), (0, 3, -3, -3, 3, -3), (-3, 0, 3, -3, 3, 3))
# Most panels of curves beside each other.
COLUMNS = 3


def option_map(coords: ArrayLike, policy: NDArray[Any], stops: NDArray[Any], label: str) -> str:
    """An ``<svg>`` of one option: an arrow per state where it acts, and a square where it stops.

    Three paths in whole numbers take a tenth of the bytes of a figure. Colours are classes of the page's style: `wall`,
    `floor`, `move` and `stop`; a map outside of a page has its own.

    >>> option_map([[0, 0], [0, 1]], np.array([1, -1]), np.array([False, True]), "right").count("<path")
    3
    """
    cells = np.asarray(coords) - np.min(coords, axis=0)
    high, wide = (10 * (cells.max(axis=0) + 3)).tolist()
    at = 10 * (cells[:, ::-1] + 1)
    floor = "".join(f"M{x} {y}h10v10h-10z" for x, y in at.tolist())
    ends = "".join(f"M{x} {y}h10v10h-10z" for x, y in at[stops].tolist())
    moves = "".join(
        _arrow(x + 5, y + 5, int(a)) for (x, y), a in zip(at.tolist(), policy, strict=True) if a >= 0
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(label)}">'
        f'<rect class="wall" width="{wide}" height="{high}" fill="#8a8a8a"/>'
        f'<path class="floor" fill="#fff" d="{floor}"/>'
        f'<path class="stop" fill="#d7263d" d="{ends}"/><path class="move" fill="#20508f" d="{moves}"/></svg>'
    )


def curves(results: Results, how: str) -> Any:
    """Figure of diffusion times over the number of options: one panel per domain, one line per method."""
    domains = [d for d in results["domains"] if _lines(results, d, how)]
    panels: list[plots.Panel] = []
    for domain in domains:
        lines = _lines(results, domain, how)
        counts = sorted({n for line in lines.values() for n in line})
        none = where(results["rows"], domain=domain, method=NONE)[0]["best"]
        panels.append(
            plots.curve_panel(
                np.log2(counts),
                {
                    name: [lines[name].get(n, np.nan) for n in counts]
                    for name in _names(results)
                    if name in lines
                },
                domain,
                levels={"no options": none},
                log=True,
                legend=False,
                ylabel="steps" if len(panels) % COLUMNS == 0 else "",
                ticks=[str(n) if n & (n - 1) == 0 else "" for n in counts],
            )
        )
    panels.append(_legend(results))
    return plots.figure(panels, columns=min(COLUMNS, len(panels)), width=plots.PAGE)


def _arrow(x: int, y: int, action: int) -> str:
    if action >= len(ARROWS):
        return f"M{x - 2} {y - 2}h4v4h-4z"
    a, b, c, d, e, f = ARROWS[action]
    return f"M{x + a} {y + b}L{x + c} {y + d}L{x + e} {y + f}z"


def _names(results: Results) -> list[str]:
    return [name for name in results["methods"] if name != NONE]


def _lines(results: Results, domain: str, how: str) -> dict[str, dict[int, float]]:
    """Median diffusion time over seeds, by method and number of options."""
    found: dict[str, dict[int, float]] = {}
    for name in _names(results):
        rows = where(results["rows"], domain=domain, method=name)
        by = {n: [r[how] for r in where(rows, n=n)] for n in sorted(distinct(rows, "n"))}
        line = {n: float(np.median(values)) for n, values in by.items() if all(map(isfinite, values))}
        if line:
            found[name] = line
    return found


def _legend(results: Results) -> plots.Panel:
    """An empty panel with the names of all lines."""

    def draw(ax: Any) -> None:
        for i, name in enumerate(_names(results)):
            ax.plot([], [], label=name, marker="o", markersize=2.5, **plots.line_style(i))
        ax.axis("off")
        ax.legend(loc="center", ncols=2 if len(_names(results)) > 6 else 1, frameon=False)

    return plots.Panel(draw, "", 0.72, "graph")
