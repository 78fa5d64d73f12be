"""Pictures of the arena: small maps of options that follow the page's colours, and curves of diffusion times."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.mdp import MDP
from reproduction import panels as plots
from reproduction.arena.jobs import NONE, ends
from reproduction.experiment import Results
from reproduction.tables import distinct, where

# Corners of an arrow that points up, right, down and left, from the middle of a cell, in tenths of a cell.
ARROWS = ((0, -3, 3, 3, -3, 3), (3, 0, -3, 3, -3, -3), (0, 3, -3, -3, 3, -3), (-3, 0, 3, -3, 3, 3))
# Most panels of curves beside each other.
COLUMNS = 3


def option_map(mdp: MDP, policy: NDArray[Any], label: str, place: str = "") -> str:
    """An ``<svg>`` of one option: an arrow per state where it acts, a red square where it ends, costly states shaded.

    Few paths in whole numbers take a tenth of the bytes of a figure. Colours are classes of the page's style: `wall`,
    `floor`, `cost`, `move` and `stop`; a map outside of a page has its own. `place` are further
    attributes of the element.

    >>> from eigenoptions.mdp import maze
    >>> option_map(maze("S."), np.array([1, -1]), "right").count("<path")
    4
    """
    assert mdp.coords is not None
    cells = np.asarray(mdp.coords) - np.min(mdp.coords, axis=0)
    costly = np.zeros(len(cells), dtype=np.bool_) if mdp.reward is None else mdp.reward < mdp.reward.max()
    high, wide = (10 * (cells.max(axis=0) + 3)).tolist()
    at = 10 * (cells[:, ::-1] + 1)
    moves = "".join(
        _arrow(x + 5, y + 5, int(a)) for (x, y), a in zip(at.tolist(), policy, strict=True) if a >= 0
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" '
        f'aria-label="{escape(label)}"{place}>'
        f'<rect class="wall" width="{wide}" height="{high}" fill="#8a8a8a"/>'
        f'<path class="floor" fill="#fff" d="{_squares(at)}"/>'
        f'<path class="cost" fill="#f3cf9b" d="{_squares(at[costly])}"/>'
        f'<path class="stop" fill="#d7263d" d="{_squares(at[ends(mdp, policy)])}"/>'
        f'<path class="move" fill="#20508f" d="{moves}"/></svg>'
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
                ticks=[str(n) for n in counts],
            )
        )
    panels.append(_legend(results))
    return plots.figure(panels, columns=min(COLUMNS, len(panels)), width=plots.PAGE)


def _squares(at: NDArray[np.int64]) -> str:
    return "".join(f"M{x} {y}h10v10h-10z" for x, y in at.tolist())


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
        # Powers of two, which all methods share, so that no line has a gap at the number of options of another.
        line = {
            n: float(np.median(values))
            for n, values in by.items()
            if n & (n - 1) == 0 and all(map(isfinite, values))
        }
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

    return plots.Panel(draw, "", 0.72)
