"""The command line: each command reads its arguments, calls one public function, and shows what came out.

Results go to standard output, notes and progress to standard error. What is wrong with the input is said in
one line, with exit code 2. Heavy modules are imported inside the commands: ``--help`` answers at once.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro import cli
from tyro.conf import FlagCreatePairsOff, Positional, arg, subcommand

if TYPE_CHECKING:
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet

# Commands are classes, and Optional is not written "| None": for functions and for such unions tyro loads a
# type checker, which takes longer than all the rest of --help.
Flag = FlagCreatePairsOff[bool]
Json = Annotated[FlagCreatePairsOff[bool], arg(name="json", help="Print one JSON object and nothing else.")]
Folder = Annotated[Optional[Path], arg(metavar="DIR")]  # noqa: UP045
Number = Annotated[Optional[int], arg(metavar="I")]  # noqa: UP045
Names = Annotated[Optional[str], arg(metavar="NAME,...")]  # noqa: UP045
MAPS, PANELS = 32, 64  # most maps in the terminal and most panels in a figure


@dataclass(frozen=True)
class Discover:
    """Discover the options of a maze, and show, draw and save them.

    Attributes
    ----------
    maze
        Name of a built-in maze (see: eigenoptions mazes), or a path to a map.
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
    rng
        Seed, for methods that draw at random.
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
    rng: int = 0
    out: Folder = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        if self.out is not None:
            _writable(self.out)
        with _progress("reading the maze") as status:
            from eigenoptions.discovery import discover
            from eigenoptions.mdp import maze

            mdp = maze(self.maze)
            many = 8 if self.n_options is None and self.method != "bottleneck" else self.n_options
            how = {"operator": self.operator, "skip_zero": self.skip_zero} if self.method == "eigen" else {}
            status.update(f"looking for options on {mdp.n_states} states")
            options = discover(mdp, many, self.method, gamma=self.gamma, rng=self.rng, **how)
            files: list[Path] = []
            if self.out is not None:
                status.update("drawing")
                files = _write(self.out, mdp, options, self.operator)
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
        with _progress("reading the file"):
            from eigenoptions.options import load_options

            options = load_options(self.file, only=self.only)
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
        _side_by_side(Console(highlight=False), blocks)


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's experiments and write a report. Goes on where it was interrupted.

    Attributes
    ----------
    only
        Experiments to run (figure1, ...), all by default; those with results stay in the report.
    out
        Folder of the report, index.html; made if it is not there.
    settings
        The paper's own settings, or quick ones to see that all works.
    fresh
        Also run again what has results.
    as_json
        Print one JSON object and nothing else.
    """

    only: Names = None
    out: Annotated[Path, arg(metavar="DIR")] = Path("report")
    settings: Literal["paper", "quick"] = "paper"
    fresh: Flag = False
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        with _progress("reading the paper") as status:
            from eigenoptions.paper.report import reproduce

            names = [name.strip() for name in self.only.split(",")] if self.only is not None else []
            outcomes = reproduce(self.out, self.settings, names, fresh=self.fresh, tell=status.update)
            claims = [
                (o.experiment.name, claim) for o in outcomes for claim in o.experiment.claims(o.results)
            ]
        page = self.out / "index.html"
        if self.as_json:
            rows = [{"experiment": name, **vars(claim)} for name, claim in claims]
            print(json.dumps({"settings": self.settings, "claims": rows, "files": [str(page)]}))
            return
        table = Table(box=None, pad_edge=False)
        for column in ("experiment", "the paper says", "measured"):
            table.add_column(column, overflow="fold")
        table.add_column("verdict", no_wrap=True)
        colors = {"holds": "green", "partly": "yellow", "does not hold": "red"}
        for name, claim in claims:
            verdict = Text(claim.verdict, style=colors[claim.verdict])
            table.add_row(name, Text(claim.sentence), Text(claim.measured), verdict)
            table.add_row()
        console = Console(highlight=False)
        console.print(table)
        console.print(f"report: {page}", soft_wrap=True, markup=False)


@dataclass(frozen=True)
class Studio:
    """Open the studio in the browser: draw a maze and watch its skills appear.

    Attributes
    ----------
    maze
        Name of a built-in maze, or a path to a map, to begin with.
    port
        Where to listen; if it is taken, the next free one is used.
    host
        Address to listen at; only this machine can reach the default.
    no_browser
        Only print the address.
    atari
        Folder with results of the Atari part, shown if it is there.
    """

    maze: Annotated[Positional[str], arg(metavar="MAZE")] = "four-rooms"
    port: int = 8017
    host: str = "127.0.0.1"
    no_browser: Flag = False
    atari: Annotated[Path, arg(metavar="DIR")] = Path("out/atari")

    def __call__(self) -> None:
        """Run the command."""
        from eigenoptions.studio import serve

        serve(self.maze, host=self.host, port=self.port, browser=not self.no_browser, atari=self.atari)


COMMANDS = (Discover, Show, Mazes, Reproduce, Studio)


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 for bad input, 130 after Ctrl-C.

    >>> main(["mazes", "--json"])  # doctest: +ELLIPSIS
    {"mazes": [{"name": "four-rooms", "states": 104, "rows": 11, "columns": 11, "map": "#############...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode gets question marks, not an error
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if args is None else args)
    if given == ["--version"]:
        from eigenoptions import __version__

        print(f"eigenoptions {__version__}")
        return 0
    _hear_notes()
    try:
        commands = tuple(Annotated[c, subcommand(c.__name__.lower(), prefix_name=False)] for c in COMMANDS)
        any_of: Any = Union[commands]  # noqa: UP007
        command: Any = cli(
            any_of,
            prog="eigenoptions",
            description="Skills that no reward taught: eigenoptions from mazes (Machado et al., ICML 2017).",
            args=given or ["--help"],
        )
        command()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _complain("stopped")
        return 130
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        _complain(" ".join(str(error).split()) or type(error).__name__)
        return 2
    return 0


def _complain(line: str) -> None:
    Console(stderr=True, highlight=False).print(Text(f"error: {line}", style="red"), soft_wrap=True)


def _hear_notes() -> None:
    """Show what the library notes (several components, say) on standard error."""
    said: set[str] = set()

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note = record.getMessage()
            if note not in said:
                said.add(note)
                text = Text(f"note: {note}", style="yellow")
                Console(stderr=True, highlight=False).print(text, soft_wrap=True)

    log = logging.getLogger("eigenoptions")
    log.handlers, log.propagate = [Notes()], False


def _progress(text: str) -> Any:
    """Spinner on a terminal, nothing elsewhere."""
    return Console(stderr=True).status(text)


def _writable(folder: Path) -> None:
    """Raise OSError where a folder cannot be made or written, before any work is done for it."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: it is a file; give a folder")
    near = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: {near} is a file; give another folder")
    if not os.access(near, os.W_OK):
        raise PermissionError(f"cannot write into {folder}: no permission in {near}; give another folder")


def _write(folder: Path, mdp: MDP, options: OptionSet, operator: str) -> list[Path]:
    """Options file and figures; all are made before the first is written."""
    from eigenoptions import plots
    from eigenoptions.mdp import graph
    from eigenoptions.spectra import spectrum

    figures = {"options.svg": plots.options(options[:PANELS])} if options.coords is not None else {}
    numbers = [int(label[1:-1]) for label in options.labels if _sign(label)]
    if numbers and options.coords is not None:
        sp = spectrum(graph(mdp), k=max(numbers), operator=operator, coords=mdp.coords)
        figures["pvfs.svg"] = plots.pvfs(sp, options.coords)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot make the folder {folder}: {error.strerror or error}") from None
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
    from eigenoptions import sketch

    console = Console(highlight=False)
    if options.coords is not None:
        blocks = [
            [
                o.label,
                f"{o.mean_length:.1f} steps",
                *sketch.text(options.coords, sketch.arrows(o.policy.astype(int))).split("\n"),
            ]
            for o in options[:MAPS]
        ]
        _side_by_side(console, blocks)
        if len(options) > MAPS:
            console.print(f"({len(options) - MAPS} more maps are not shown)")
        step = -(-int((options.coords.max(axis=0) - options.coords.min(axis=0)).max() + 1) // sketch.CLIP)
        if step > 1:
            console.print(f"(maps show one row and column in {step})")
    table = Table(box=None, pad_edge=False)
    for name in ("option", "eigenvalue", "sign", "stops at (row, col)", "mean length", "may start in"):
        table.add_column(
            name, justify="right" if name in ("eigenvalue", "mean length", "may start in") else "left"
        )
    for row in rows:
        cells = row["stops"] if row["stops"] is not None else row["stop_states"]
        few = cells if len(cells) <= 3 else cells[:2]
        where = " ".join(str(tuple(c)) if isinstance(c, list) else str(c) for c in few)
        more = f" +{len(cells) - 2} more" if len(cells) > 3 else ""
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
    """Describe an option in plain JSON values."""
    o = options[i]
    states = [int(s) for s in options.stops[i]]
    return {
        "label": o.label,
        "eigenvalue": _finite(o.eigenvalue),
        "sign": _sign(o.label),
        "stops": None if options.coords is None else options.coords[states].tolist(),
        "stop_states": states,
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


def _side_by_side(console: Console, blocks: list[list[str]]) -> None:
    """Print blocks of lines next to each other, as many as the terminal is wide."""
    for row in _rows_that_fit(blocks, console.width):
        height = max(map(len, row))
        for y in range(height):
            line = Text()
            for block in row:
                wide = max(map(len, block))
                for c in (block[y] if y < len(block) else "").ljust(wide + 2):
                    line.append(c, style={"●": "bold red", "█": "bright_black"}.get(c))
            line.rstrip()
            console.print(line, no_wrap=True, crop=True)
        console.print()


def _rows_that_fit(blocks: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    row: list[list[str]] = []
    used = 0
    for block in blocks:
        wide = max(map(len, block)) + 2
        if row and used + wide - 2 > width:
            yield row
            row, used = [], 0
        row.append(block)
        used += wide
    if row:
        yield row
