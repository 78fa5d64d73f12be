"""The chart of a run of the benchmarks: growth with the number of states, and ratios against alternatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

OURS, THEIRS, LOST = "#1f5fa8", "#8a8a8a", "#c0392b"
CURVES = {  # series: (label, colour, line style, marker)
    "spectrum, rooms, ours": ("spectrum, k = 32, ours", OURS, "-", "o"),
    "options, rooms, ours": ("62 options, ours", OURS, "--", "s"),
    "spectrum, perfect maze, ours": ("spectrum, perfect maze, ours", "#2e9e6b", "-", "o"),
    "spectrum, rooms, scipy": ("spectrum, SciPy eigsh", "#d98200", "-", "^"),
    "spectrum, rooms, numpy": ("all eigenvectors, NumPy eigh", "#8a5fbf", "-", "v"),
    "20 options, open room, simpleoptions": ("20 options, simpleoptions", LOST, "-", "x"),
}


def draw(results: dict[str, Any], out: Path) -> None:
    """Write ``chart.png`` and ``chart.svg``; the same results give the same bytes."""
    found = [e for part in results["parts"] for e in part["entries"]]
    with mpl.rc_context(
        {"svg.hashsalt": "eigenoptions", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        rows = best_rows([e for e in found if e["kind"] == "row"])
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(12, max(4.5, 0.26 * len(rows) + 1.2)), width_ratios=(1, 1.05), layout="constrained"
        )
        curves(left, [e for e in found if e["kind"] == "point"])
        bars(right, rows)
        figure.savefig(out / "chart.png", dpi=110)
        figure.savefig(out / "chart.svg", metadata={"Date": None})
        plt.close(figure)


def best_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda e: e["ratio"])


def curves(axes: Any, points: list[dict[str, Any]]) -> None:
    """Seconds over states, both on log scales, with the promised slope beside."""
    for series, (label, colour, style, marker) in CURVES.items():
        here = sorted((e["x"], e["y"]) for e in points if e["series"] == series)
        if here:
            axes.plot(
                *zip(*here, strict=True),
                color=colour,
                linestyle=style,
                marker=marker,
                markersize=4,
                label=label,
            )
    promised = sorted(
        (e["x"], e["y"]) for e in points if e["series"] == "spectrum, rooms, ours" and e["x"] > 9e3
    )
    if len(promised) > 1:
        (x, y), last = promised[0], promised[-1][0]
        axes.plot([x, last], [3 * y, 3 * y * (last / x) ** 1.3], color="black", linewidth=0.8, linestyle=":")
        axes.annotate("$n^{1.3}$", (last, 3 * y * (last / x) ** 1.3), ha="right", va="bottom")
    axes.set(xscale="log", yscale="log", xlabel="states", ylabel="CPU seconds", title="Growth")
    axes.grid(True, which="major", linewidth=0.3)
    if axes.get_lines():
        axes.legend(frameon=False, fontsize=8)


def bars(axes: Any, rows: list[dict[str, Any]]) -> None:
    """How many times faster we are, on a log scale; to the left of 1 we lose."""
    for i, e in enumerate(rows):
        colour = OURS if e["ratio"] >= 1 else LOST
        axes.barh(i, e["ratio"] - 1, left=1, color=colour, height=0.7)
        text = f"{e['ratio']:,.0f}x" if e["ratio"] >= 10 else f"{e['ratio']:.2g}x"
        axes.annotate(
            text,
            (max(e["ratio"], 1), i),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    axes.set(xscale="log", title="Times faster than what one would use instead")
    axes.set_yticks(range(len(rows)), [f"{e['what']}\nvs {e['against']}" for e in rows], fontsize=6.5)
    axes.axvline(1, color="black", linewidth=0.8)
    if rows:
        axes.set_xlim(min(0.1, rows[0]["ratio"] / 2), max(10.0, rows[-1]["ratio"] * 6))
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)
