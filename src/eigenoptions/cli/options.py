"""Options in the terminal: maps, tables, and the same as plain values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from eigenoptions.cli.terminal import describe, print_heading, print_line, print_side_by_side, print_table

if TYPE_CHECKING:
    from eigenoptions.options import OptionSet
    from eigenoptions.options.linear import LinearOptionSet
    from eigenoptions.spectra import Spectrum

# Most maps in the terminal, and most maps there of a maze that is larger than they are.
MAX_MAPS, MAX_COARSE_MAPS = 32, 4
# Most states per option that are listed where it stops, and most numbers of an observation in a table.
MAX_STOPS, MAX_NUMBERS = 1000, 6


def show(head: dict[str, Any], options: OptionSet, eigenvectors: Spectrum | None = None) -> None:
    """Print options as maps and a table."""
    print_heading(describe(head["maze"], head["states"], {"n_options": len(options), **head["settings"]}))
    if options.coords is not None:
        _print_maps(options, eigenvectors)
    heads = ("option", ">eigenvalue", "sign", "stops at (row, col)", ">mean length", ">may start in")
    print_table(heads, [_cells(row(options, i)) for i in range(len(options))])
    print()


def n_maps(options: OptionSet) -> int:
    """Number of maps in the terminal; fewer of a maze that is too large for arrows."""
    return min(len(options), MAX_COARSE_MAPS if _is_large(options) else MAX_MAPS)


def _is_large(options: OptionSet) -> bool:
    from eigenoptions import _text as sketch

    coords = options.coords
    return coords is not None and int((coords.max(axis=0) - coords.min(axis=0)).max()) >= sketch.MAX_SIDE


def _level(options: OptionSet, i: int, eigenvectors: Spectrum | None) -> Any:
    """Numbers in -1..1 that colour the map of an option: its eigenvector, or what it still gains from each state."""
    from eigenoptions.cli import drawing

    index, sign = options.indices[i], options.signs[i]
    if eigenvectors is None or index is None or sign is None:
        return -drawing.levels(options.value[i])
    return drawing.levels(sign * eigenvectors.vectors[:, index - 1])


def _print_maps(options: OptionSet, eigenvectors: Spectrum | None) -> None:
    """Print the first options as maps of arrows; of a large maze only the colours."""
    from rich.console import Console

    from eigenoptions import _text as sketch
    from eigenoptions.cli import drawing

    assert options.coords is not None
    large, most = _is_large(options), n_maps(options)
    colour, width = drawing.has_colour(), Console().width
    columns = int(options.coords[:, 1].max() - options.coords[:, 1].min()) + 1
    blocks: list[list[str | Text]] = []
    used: set[str] = set()
    for i in range(most):
        level = _level(options, i, eigenvectors)
        if large:
            stops, fit = options.policy[i] < 0, drawing.fitting_columns(width, most)
            drawn = drawing.block_map(options.coords, level, stops, fit, colour=colour)
        else:
            glyphs = sketch.arrows(options.policy[i], options.moves(i))
            used.update(glyphs)
            wide = colour and 4 * (columns + 2) + 2 <= width
            drawn = drawing.cell_map(options.coords, glyphs, level, colour=colour, wide=wide)
        blocks.append([options.labels[i], f"{options.mean_length[i]:.1f} steps", *drawn])
    print_side_by_side(blocks)
    if len(options) > most:
        print_line(f"({len(options) - most} more maps are not shown)")
    low, high = (
        ("blue", "orange" if eigenvectors else "white") if colour else (drawing.SHADES[0], drawing.SHADES[-1])
    )
    climb = f"it climbs from {low} to {high}" if large or (colour and options.value.any()) else ""
    stop = "it stops at red" if colour else "it stops at ●"
    print_line("; ".join(filter(None, [sketch.key(used, options.legend), climb, stop])))
    print()


def row(options: OptionSet, i: int) -> dict[str, Any]:
    """Describe an option in plain JSON values; of many stops only the first are listed."""
    o = options[i]
    states = options.stops[i][:MAX_STOPS].tolist()
    return {
        "label": o.label,
        "eigenvalue": _finite(o.eigenvalue),
        "sign": _sign(o.sign),
        "stops": None if options.coords is None else options.coords[states].tolist(),
        "stop_states": states,
        "n_stops": len(options.stops[i]),
        "mean_length": _finite(o.mean_length),
        "start_share": float(o.initiation.mean()),
    }


def _cells(row: dict[str, Any]) -> tuple[str | Text, ...]:
    """Cells of a table."""
    places = row["stop_states"] if row["stops"] is None else [tuple(place) for place in row["stops"]]
    few, more = (places, "") if row["n_stops"] <= 3 else (places[:2], f" +{row['n_stops'] - 2} more")
    return (
        row["label"],
        "" if row["eigenvalue"] is None else f"{row['eigenvalue']:.5g}",
        row["sign"] or "",
        " ".join(map(str, few)) + more,
        "for ever" if row["mean_length"] is None else f"{row['mean_length']:.2f}",
        f"{row['start_share']:.0%}",
    )


def linear_row(options: LinearOptionSet, i: int) -> dict[str, Any]:
    """Describe an option of a feature space in plain JSON values."""
    o = options[i]
    return {"label": o.label, "eigenvalue": float(o.eigenvalue), "sign": _sign(o.sign)}


def linear_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Cells of a table."""
    return (
        row["label"],
        f"{row['eigenvalue']:.5g}",
        row["sign"] or "",
        f"{row['mean_length']:.1f}",
        f"{row['started']} of {row['runs']}",
        " ".join(f"{x:.3g}" for x in row["ends"][:MAX_NUMBERS])
        + (" ..." if len(row["ends"]) > MAX_NUMBERS else ""),
    )


def runs(paths: list[Any]) -> dict[str, Any]:
    """Describe the runs of an option in plain JSON values."""
    import numpy as np

    begun = [path for path in paths if len(path) > 1]
    ends = np.mean([np.ravel(path[-1]) for path in begun or paths], axis=0)
    return {
        "runs": len(paths),
        "started": len(begun),
        "mean_length": float(np.mean([len(path) - 1 for path in begun])) if begun else 0.0,
        "ends": ends.astype(float).round(6).tolist(),
    }


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings for JSON: of an array only its shape."""
    return {k: f"array {v.shape}" if hasattr(v, "shape") else v for k, v in settings.items()}


def _sign(sign: int | None) -> str | None:
    return None if sign is None else "+" if sign > 0 else "-"


def _finite(x: float) -> float | None:
    return x if abs(x) < float("inf") else None
