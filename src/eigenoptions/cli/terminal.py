"""What commands print: results on standard output, messages and progress on standard error; and files of results."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from eigenoptions._text import printable

MAX_TABLE_WIDTH = 1000
VERDICT_COLORS = {"holds": "green", "partly": "yellow", "does not hold": "red", "not decided": "magenta"}


def print_line(text: str | Text, style: str = "", *, error: bool = False) -> None:
    """Print a line as it is, without wrapping it, on standard output or on standard error."""
    line = Text(printable(text), style=style) if isinstance(text, str) else text
    Console(stderr=error, highlight=False).print(line, soft_wrap=True)


def print_error(error: str, notes: list[str]) -> None:
    """Print one line that names the error."""
    line = " ".join(" ".join([error, *(f"({note})" for note in notes)]).split())
    print_line(f"error: {line}", "red", error=True)


def print_warnings() -> None:
    """Print the library's log messages, such as that a maze has several components, once each on standard error."""
    printed: set[str] = set()

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note = record.getMessage()
            if note not in printed:
                printed.add(note)
                print_line(f"note: {note}", "yellow", error=True)

    log = logging.getLogger("eigenoptions")
    log.handlers, log.propagate = [Notes()], False


@contextmanager
def resumable(jobs: Path) -> Iterator[None]:
    """A block whose finished jobs are stored in a folder: after Ctrl-C, the line that is printed states how many."""
    try:
        yield
    except KeyboardInterrupt as stop:
        from reproduction.store import count_jobs

        n = count_jobs(jobs)
        stop.add_note(f"{n} job{'s' * (n != 1)} finished and kept in {jobs}; the same command continues")
        raise


class Bar:
    """A line on a terminal that names the current step and its progress; elsewhere plain lines, if `lines`."""

    lines = False

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None)
        self._text, self._quarters = "", 0

    def begin(self, text: str) -> None:
        """Begin a new step of unknown length."""
        self._shown.reset(self._task, description=text, total=None)
        self._text, self._quarters = text, 0
        if self.lines:
            print_line(text, error=True)

    def rename(self, text: str) -> None:
        """Change the text of the current step."""
        self._shown.update(self._task, description=text)

    def step(self, done: int, total: int) -> None:
        """Show the progress of the current step."""
        self._shown.update(self._task, completed=done, total=total)
        quarters = 4 * done // max(total, 1)
        if self.lines and quarters > self._quarters:
            print_line(f"{self._text}: {done} of {total}", error=True)
        self._quarters = quarters

    def part(self, i: int, parts: int) -> Callable[[int, int], None]:
        """Function that shows the progress of part i of the current step, all parts of which are of equal length."""
        return lambda done, total: self.step(i * total + done, parts * total)


@contextmanager
def bar(text: str, *, lines: bool = False) -> Iterator[Bar]:
    """Show a progress bar with elapsed and remaining time on standard error until the block ends.

    Where standard error is no terminal nothing is shown, or with `lines` one line per step and quarter of it, for the
    log of a run that takes minutes.
    """
    from rich import progress

    class Counted(progress.MofNCompleteColumn):
        def render(self, task: progress.Task) -> Text:
            return Text() if task.total is None else super().render(task)

    class Elapsed(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            # Since the bar appeared; that of rich begins anew with each step.
            return Text(str(timedelta(seconds=int(monotonic() - began))), style="progress.elapsed")

    began = monotonic()
    console = Console(stderr=True)
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        Counted(),
        Elapsed(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        line = Bar(shown)
        line.begin(text)
        # The first step is short, and an error that ends it should be one line.
        line.lines = lines and not console.is_terminal
        yield line


def print_json(answer: dict[str, Any], files: Sequence[Path] | None = None) -> None:
    """Print one JSON object; its last key lists the files that were written, if any were possible."""
    print(json.dumps(answer if files is None else {**answer, "files": [str(file) for file in files]}))


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print a table; columns whose head begins with ``>`` are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head[0] == ">" else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    console = Console(highlight=False)
    # A narrow terminal wraps lines, instead of cells being cut off.
    console.width = max(console.width, Console(width=MAX_TABLE_WIDTH).measure(table).maximum)
    _print_trimmed(console, table)


def print_verdicts(claims: Sequence[tuple[str, Any]], cost: str) -> None:
    """Print the claims of experiments with their verdicts, the number of each verdict, and the cost."""
    from reproduction.experiment import OURS, counted

    table = Table(box=None, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for name, claim in claims:
        sentence = claim.sentence if claim.section != OURS else f"{claim.sentence} (not in the paper)"
        table.add_row(name, Text(sentence), Text(claim.verdict, style=VERDICT_COLORS[claim.verdict]))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(claims)} claims: {counted([c for _, c in claims])}; {cost}")


def print_side_by_side(blocks: Sequence[Sequence[str | Text]]) -> None:
    """Print blocks of lines beside each other, as many per row as the terminal is wide."""
    from eigenoptions.cli.drawing import side_by_side

    _print_trimmed(Console(highlight=False), side_by_side(blocks))


def _print_trimmed(console: Console, renderable: RenderableType) -> None:
    """Print without spaces at the ends of lines."""
    with console.capture() as printed:
        console.print(renderable)
    for line in printed.get().splitlines():
        print(line.rstrip())


def describe(name: str, states: int, settings: Mapping[str, Any]) -> str:
    """A heading: the maze, and the method, Laplacian and gamma of the options, as far as the settings hold them.

    >>> describe("i-maze", 19, {"method": "eigen", "n_options": 4, "operator": "normalized", "gamma": 0.9})
    'i-maze: 19 states; 4 eigen options, normalized Laplacian, gamma 0.9'
    """
    many = settings.get("n_options")
    words = (str(many or "no" * (many == 0)), settings.get("method"), "options" if many != 1 else "option")
    parts = [" ".join(filter(None, words))]
    if operator := settings.get("operator"):
        parts.append(f"{operator} Laplacian")
    gamma = settings.get("option_gamma", settings.get("gamma"))
    if isinstance(gamma, float):
        parts.append(f"gamma {gamma:.6g}")
    if steps := settings.get("steps"):
        parts.append(f"{steps} sampled steps")
    if (chance := settings.get("option_chance")) is not None:
        parts.append(f"chance {chance:.6g}")
    return f"{name or 'map'}: {states} states; {', '.join(parts)}"


def print_heading(text: str, *more: str) -> None:
    """Print a line that states what is shown, further lines about it, and an empty line."""
    print_line(text, "bold")
    for line in (*more, ""):
        print_line(line)


def print_end(files: Iterable[Path], *commands: str) -> None:
    """Print the files that were written, and what to type next; scripts find that in the last lines."""
    for file in files:
        print_line(f"wrote {file}")
    for i, command in enumerate(commands):
        print_line(Text.assemble(("next: " if i == 0 else "      ", "dim"), (printable(command), "bold")))


def check_writable(folder: Path | None) -> None:
    """Raise OSError if a folder cannot be created or written, before any work is done for it."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: it is a file; give a folder")
    near = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: {near} is a file; give another folder")
    if not os.access(near, os.W_OK):
        raise PermissionError(f"cannot write into {folder}: no permission in {near}; give another folder")


def save_results(folder: Path, results: Mapping[str, Any]) -> list[Path]:
    """Write results by file name into a folder, which is created if need be: options, rows (.csv) and figures."""
    from reproduction.tables import to_csv

    from eigenoptions import plots
    from eigenoptions.files import write_bytes

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot create the folder {folder}: {error.strerror or error}") from None
    paths = [folder / name for name in results]
    for path, result in zip(paths, results.values(), strict=True):
        if path.suffix == ".safetensors":
            result.save(path)
        elif path.suffix == ".csv":
            write_bytes(path, to_csv(result).encode())
        else:
            plots.save_figure(result, path)
    return paths
