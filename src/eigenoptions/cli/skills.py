"""Commands about options: discover them, show those of a file, and list the mazes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, arg

from eigenoptions.cli.terminal import Folder, Json, Number, Workers, bar, make, side_by_side, writable

if TYPE_CHECKING:
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet

MAPS, PANELS = 32, 64  # most maps in the terminal and most panels in a figure
LARGE = 4  # most maps in the terminal of a maze that is larger than they are
LISTED = 1000  # most stops of an option that are listed
CELLS = 50_000_000  # most cells of a map that is made by rule
RULE = re.compile(r"(rooms|perfect|open):(?:(\d+)x(\d+))?.*")


@dataclass(frozen=True)
class Discover:
    """Discover the options of a maze or an environment, and show, draw and save them.

    A finite Gymnasium environment is read exactly; one with continuous observations, or any with --steps or --features,
    is sampled by a random walk.

    Attributes
    ----------
    maze
        Name of a built-in maze (see: eigenoptions mazes), a path to a map, the id of a Gymnasium environment
        (FrozenLake-v1, minigrid:MiniGrid-FourRooms-v0, MountainCar-v0), or a map made by rule: rooms:100x100 (rooms of
        10 x 10 cells), perfect:707x707 (crossings of a perfect maze), open:50x50 (cells), each with --rng as its seed.
    n_options
        How many; both signs of an eigenvector count.
    method
        Eigenoptions, shortest paths to doorways, or to random states.
    operator
        The Laplacian whose eigenvectors are used; the paper's is normalized.
    skip_zero
        Leave out eigenvalue zero, which has no direction; the paper counts it.
    gamma
        Discount in [0, 1): how far an option looks over a valley.
    features
        Of continuous observations, when an environment is sampled.
    steps
        Transitions to sample.
    rng
        Seed, for what is drawn at random.
    engine
        Who does the work that takes long: this process, one a core, or a Ray cluster. The options are the same.
    workers
        How many processes or Ray tasks at a time, by default one a core.
    out
        Folder for options.safetensors, options.svg and pvfs.svg; made if it is not there.
    as_json
        Print one JSON object and nothing else.
    """

    maze: Annotated[Positional[str], arg(metavar="MAZE")]
    n_options: Annotated[
        Optional[int],  # noqa: UP045
        arg(aliases=("-n",), metavar="N", help_behavior_hint="(default: 8; all bottleneck options)"),
    ] = None
    method: Literal["eigen", "bottleneck", "random"] = "eigen"
    operator: Literal["normalized", "combinatorial", "random-walk"] = "normalized"
    gamma: Annotated[
        Optional[float],  # noqa: UP045
        arg(metavar="G", help_behavior_hint="(default: 0.9 for eigenoptions, else close to 1)"),
    ] = None
    skip_zero: bool = True
    features: Annotated[
        Literal["fourier", "tiles", "raw", "bits", "default"], arg(help_behavior_hint="(default: fourier)")
    ] = "default"
    steps: Annotated[Optional[int], arg(metavar="N", help_behavior_hint="(default: 50000)")] = None  # noqa: UP045
    rng: int = 0
    engine: Literal["serial", "processes", "ray"] = "serial"
    workers: Workers = None
    out: Folder = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        if self.out is not None:
            writable(self.out)
        with bar("reading the maze") as status:
            from eigenoptions.cli.environments import Sampled, sample, source
            from eigenoptions.discovery import discover

            sampled = self.steps is not None or self.features != "default"
            made = None if sampled else ruled(self.maze, self.rng)
            mdp = made or source(self.maze, sampled=sampled, status=status)
            if isinstance(mdp, Sampled):
                sample(mdp, self, status)
                return
            many = 8 if self.n_options is None and self.method != "bottleneck" else self.n_options
            eigen = {"operator": self.operator, "skip_zero": self.skip_zero}
            how: dict[str, Any] = eigen if self.method == "eigen" else {}
            status.say(f"looking for options on {mdp.n_states} states")
            far: dict[str, Any] = {"engine": self.engine, "workers": self.workers, "progress": status.step}
            options = discover(mdp, many, self.method, gamma=self.gamma, rng=self.rng, **far, **how)
            files: list[Path] = []
            if self.out is not None:
                status.say("drawing")
                files = _write(self.out, mdp, options, self.operator, status.step)
        settings = {"n_options": len(options), "gamma": options.provenance["gamma"], "rng": self.rng}
        settings |= {"method": self.method, **how}
        head = {"maze": mdp.name or "map", "states": mdp.n_states, "settings": settings}
        _show(options, head, files, self.as_json)


@dataclass(frozen=True)
class Show:
    """Show the options of a file that discover wrote.

    Attributes
    ----------
    file
        The options file (.safetensors).
    only
        Number of the one option to show, from 0; the others are not read.
    as_json
        Print one JSON object and nothing else.
    """

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    only: Number = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        with bar("reading the file"):
            from eigenoptions.options import OptionSet
            from eigenoptions.options.reader import load_options

            options = load_options(self.file, only=self.only)
            if not isinstance(options, OptionSet):
                from eigenoptions.cli.environments import show_linear

                show_linear(options, self.as_json)
                return
        made = dict(options.provenance)
        head = {"maze": made.pop("mdp", ""), "states": options.n_states, "settings": made}
        _show(options, head, [], self.as_json)


@dataclass(frozen=True)
class Mazes:
    """List the built-in mazes, each with a small picture.

    Attributes
    ----------
    as_json
        Print one JSON object and nothing else.
    """

    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        from eigenoptions.mdp import maze, mazes

        found = [maze(name) for name in mazes()]
        maps = [str(m).rsplit("\n", 1)[0].split("\n") for m in found]
        if self.as_json:
            texts = ["\n".join(lines).replace("█", "#").replace(" ", ".") for lines in maps]
            rows = [{"name": m.name, **_size(m), "map": text} for m, text in zip(found, texts, strict=True)]
            print(json.dumps({"mazes": rows}))
            return
        blocks = [
            [m.name, f"{m.n_states} states", f"{_size(m)['rows']} × {_size(m)['columns']}", *lines]
            for m, lines in zip(found, maps, strict=True)
        ]
        side_by_side(Console(highlight=False), blocks)


def ruled(name: str, rng: int) -> MDP | None:
    """The MDP of a map made by rule (rooms:100x100), or None for other names."""
    rule = RULE.fullmatch(name)
    if rule is None:
        return None
    if name != f"{rule[1]}:{rule[2]}x{rule[3]}":
        raise ValueError(f"a map made by rule has rows and columns, like {rule[1]}:20x30, got {name!r}")
    from eigenoptions.mdp import maps, maze

    kind, rows, cols = rule[1], int(rule[2]), int(rule[3])
    cells = rows * cols * {"rooms": 121, "perfect": 4, "open": 1}[kind]
    if not 1 <= cells <= CELLS:
        raise ValueError(f"a map has 1 to {CELLS:,} cells, {name} has {cells:,}: give other numbers")
    if kind == "open":
        text = maps.open_map(rows, cols)
    else:
        text = (maps.rooms_map if kind == "rooms" else maps.perfect_map)(rows, cols, rng=rng)
    return replace(maze(text), name=name)


def _write(
    folder: Path, mdp: MDP | None, options: OptionSet, operator: str, progress: Any = None
) -> list[Path]:
    """Options file and figures; all are made before the first is written."""
    from eigenoptions import plots
    from eigenoptions.mdp import graph
    from eigenoptions.spectra import spectrum

    figures = {"options.svg": plots.options(options[:PANELS])} if options.coords is not None else {}
    numbers = [int(label[1:-1]) for label in options.labels if _sign(label)]
    if numbers and mdp is not None and options.coords is not None:
        # As many as are drawn: a smaller k gives the first columns of a larger one.
        k = max(numbers) if min(numbers) == 1 else min(max(numbers), min(numbers) + 7)
        sp = spectrum(graph(mdp), k=k, operator=operator, coords=mdp.coords, progress=progress)
        figures["pvfs.svg"] = plots.pvfs(sp, options.coords)
    make(folder)
    options.save(folder / "options.safetensors")
    for name, fig in figures.items():
        plots.save(fig, folder / name)
    return [folder / name for name in ("options.safetensors", *figures)]


def _show(options: OptionSet, head: dict[str, Any], files: list[Path], as_json: bool) -> None:
    """Print maps and a table, or one JSON object."""
    rows = [_row(options, i) for i in range(len(options))]
    if as_json:
        print(json.dumps({**head, "options": rows, "files": [str(f) for f in files]}))
        return
    from eigenoptions import _sketch as sketch

    console = Console(highlight=False)
    if options.coords is not None:
        low, high = options.coords.min(axis=0), options.coords.max(axis=0)
        step = -(-int((high - low).max() + 1) // sketch.CLIP)
        seen = ((options.coords - low) % step == 0).all(axis=1)  # others would not be drawn
        cells, maps = (options.coords[seen] - low) // step, MAPS if step == 1 else LARGE
        blocks = [
            [
                o.label,
                f"{o.mean_length:.1f} steps",
                *sketch.text(cells, sketch.arrows(o.policy[seen].astype(int))).split("\n"),
            ]
            for o in options[:maps]
        ]
        if seen.any():
            side_by_side(console, blocks)
            if len(options) > maps:
                console.print(f"({len(options) - maps} more maps are not shown)")
        if step > 1:
            console.print(f"(maps show one row and column in {step})")
    table = Table(box=None, pad_edge=False)
    for name in ("option", "eigenvalue", "sign", "stops at (row, col)", "mean length", "may start in"):
        table.add_column(
            name, justify="right" if name in ("eigenvalue", "mean length", "may start in") else "left"
        )
    for row in rows:
        places = row["stops"] if row["stops"] is not None else row["stop_states"]
        few = places if row["n_stops"] <= 3 else places[:2]
        where = " ".join(str(tuple(c)) if isinstance(c, list) else str(c) for c in few)
        more = f" +{row['n_stops'] - 2} more" if row["n_stops"] > 3 else ""
        table.add_row(
            Text(row["label"]),
            "" if row["eigenvalue"] is None else f"{row['eigenvalue']:.5g}",
            row["sign"] or "",
            where + more,
            "for ever" if row["mean_length"] is None else f"{row['mean_length']:.2f}",
            f"{row['start_share']:.0%}",
        )
    console.print(table)
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True, markup=False)


def _row(options: OptionSet, i: int) -> dict[str, Any]:
    """Describe an option in plain JSON values; of very many stops the first are listed."""
    o = options[i]
    states = options.stops[i][:LISTED].tolist()
    return {
        "label": o.label,
        "eigenvalue": _finite(o.eigenvalue),
        "sign": _sign(o.label),
        "stops": None if options.coords is None else options.coords[states].tolist(),
        "stop_states": states,
        "n_stops": len(options.stops[i]),
        "mean_length": _finite(o.mean_length),
        "start_share": float(o.initiation.mean()),
    }


def _sign(label: str) -> str | None:
    """Sign of an eigenoption's label (e2+); None for other options."""
    return label[-1] if label[:1] == "e" and label[1:-1].isdigit() and label[-1] in "+-" else None


def _finite(x: float) -> float | None:
    return x if abs(x) < float("inf") else None


def _size(mdp: MDP) -> dict[str, int]:
    assert mdp.coords is not None
    rows, columns = (int(n) + 1 for n in mdp.coords.max(axis=0) - mdp.coords.min(axis=0))
    return {"states": mdp.n_states, "rows": rows, "columns": columns}
