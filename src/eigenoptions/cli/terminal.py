"""What all commands share: flags, messages and progress on standard error, tables and maps on standard output."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Optional

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, arg
from tyro.constructors import PrimitiveConstructorSpec

from eigenoptions._checks import printable

# Commands are classes, and Optional is not written "| None": for functions and for such unions tyro loads a
# type checker, which takes longer than all the rest of --help.
Flag = FlagCreatePairsOff[bool]
MAX_TABLE_WIDTH = 1000
Folder = Annotated[Optional[Path], arg(metavar="DIR", help_behavior_hint="")]  # noqa: UP045


def _number(kind: type, word: str, metavar: str) -> PrimitiveConstructorSpec[Any]:
    """How a flag reads a number that may be left out; tyro's own message would name Python types."""

    def read(given: list[str]) -> Any:
        try:
            return kind(given[0])
        except ValueError:
            raise ValueError(f"it takes {word}, got {given[0]!r}") from None

    return PrimitiveConstructorSpec(1, metavar, read, lambda x: True, lambda x: [str(x)])


Count = Annotated[Optional[int], _number(int, "a whole number", "N")]  # noqa: UP045
Discount = Annotated[Optional[float], _number(float, "a number", "G")]  # noqa: UP045
Chance = Annotated[Optional[float], _number(float, "a number", "P")]  # noqa: UP045


def named(names: Callable[[], Iterable[str]], default: str | None = None) -> Any:
    """Settings of a flag that takes a name of a registry, which is read only when the help is shown."""

    def hint(shown: str) -> str:
        return f"(default: {default or shown}; one of {', '.join(names())})"

    return arg(metavar="NAME", help_behavior_hint=hint)


def engines() -> Iterable[str]:
    """Names of the engines."""
    from eigenoptions.parallel import ENGINES

    return ENGINES


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Flags of commands that print results.

    Attributes
    ----------
    as_json
        Print one JSON object and nothing else.
    """

    as_json: Annotated[Flag, arg(name="json", help_behavior_hint="")] = False


@dataclass(frozen=True, kw_only=True)
class Parallel(Printed):
    """Flags of commands that can use several workers.

    Attributes
    ----------
    engine
        Where long computations run: in this process, in one process per core, or on a Ray cluster (the one of
        RAY_ADDRESS, or a local one). The results are the same.
    workers
        Number of processes or Ray tasks at the same time.
    """

    engine: Annotated[str, named(engines)] = "serial"
    workers: Annotated[Count, arg(help_behavior_hint="(default: one per core)")] = None


def print_error(error: str, notes: list[str]) -> None:
    """Print one line that names the error."""
    line = " ".join(" ".join([error, *(f"({note})" for note in notes)]).split())
    shown = Text(f"error: {printable(line)}", style="red")
    Console(stderr=True, highlight=False).print(shown, soft_wrap=True)


def print_stop(notes: list[str]) -> None:
    """Print one line after Ctrl-C: what is kept, if anything."""
    Console(stderr=True, highlight=False).print(
        ": ".join(["stopped", *notes[:1]]), soft_wrap=True, markup=False
    )


@contextmanager
def resumable(jobs: Path) -> Iterator[None]:
    """A block whose finished jobs are stored in a folder: after Ctrl-C, the line that is printed states how many."""
    try:
        yield
    except KeyboardInterrupt as stop:
        from eigenoptions.experiments.store import count_jobs

        n = count_jobs(jobs)
        stop.add_note(f"{n} job{'s' * (n != 1)} finished and kept in {jobs}; the same command continues")
        raise


def print_warnings() -> None:
    """Print the library's log messages, such as that a maze has several components, once each on standard error."""
    printed: set[str] = set()

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note = record.getMessage()
            if note not in printed:
                printed.add(note)
                text = Text(f"note: {printable(note)}", style="yellow")
                Console(stderr=True, highlight=False).print(text, soft_wrap=True)

    log = logging.getLogger("eigenoptions")
    log.handlers, log.propagate = [Notes()], False


class Bar:
    """A line on a terminal that names the current step and its progress; elsewhere plain `lines`, if wanted."""

    lines: Console | None = None

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None)
        self._text, self._quarters = "", 0

    def begin(self, text: str) -> None:
        """Begin a new step of unknown length."""
        self._shown.reset(self._task, description=text, total=None)
        self._text, self._quarters = text, 0
        self._print(text)

    def rename(self, text: str) -> None:
        """Change the text of the current step."""
        self._shown.update(self._task, description=text)

    def step(self, done: int, total: int) -> None:
        """Show the progress of the current step."""
        self._shown.update(self._task, completed=done, total=total)
        quarters = 4 * done // max(total, 1)
        if quarters > self._quarters:
            self._print(f"{self._text}: {done} of {total}")
        self._quarters = quarters

    def _print(self, text: str) -> None:
        if self.lines is not None:
            self.lines.print(printable(text), soft_wrap=True, markup=False)


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
        if lines and not console.is_terminal:
            line.lines = Console(stderr=True, highlight=False)
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
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        print(line.rstrip())


def print_line(text: str) -> None:
    """Print a line as it is, without wrapping it."""
    Console(highlight=False).print(printable(text), soft_wrap=True, markup=False)


def print_files(files: Iterable[Path]) -> None:
    """Print the names of the files that were written."""
    for file in files:
        print_line(f"wrote {file}")


def print_verdicts(claims: Sequence[tuple[str, Any]], cost: str) -> None:
    """Print the claims of experiments with their verdicts, the number of each verdict, and the cost."""
    from eigenoptions.experiments.experiment import OURS, counted

    table = Table(box=None, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    colors = {"holds": "green", "partly": "yellow", "does not hold": "red", "not decided": "magenta"}
    for name, claim in claims:
        said = claim.sentence if claim.section != OURS else f"{claim.sentence} (not in the paper)"
        table.add_row(name, Text(said), Text(claim.verdict, style=colors[claim.verdict]))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(claims)} claims: {counted([c for _, c in claims])}; {cost}")


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


def create(folder: Path) -> None:
    """Create a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot create the folder {folder}: {error.strerror or error}") from None


def save_figures(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """Write figures by file name into a folder, and return their paths."""
    from eigenoptions import plots

    for name, figure in figures.items():
        plots.save(figure, folder / name)
    return [folder / name for name in figures]


def save_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a CSV file, and return its path."""
    from eigenoptions.experiments.tables import to_csv
    from eigenoptions.files import write_bytes

    write_bytes(path, to_csv(rows).encode())
    return path


def print_side_by_side(blocks: Sequence[Sequence[str | Text]]) -> None:
    """Print blocks of lines beside each other, as many per row as the terminal is wide."""
    from eigenoptions.cli.drawing import side_by_side

    console = Console(highlight=False)
    for line in side_by_side(blocks, console.width):
        console.print(line, no_wrap=True, crop=True)


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
    console = Console(highlight=False)
    console.print(Text(printable(text), style="bold"), soft_wrap=True)
    for line in (*more, ""):
        print_line(line)


def print_next(*commands: str) -> None:
    """Print what to type next; scripts that read the output find it in its last lines."""
    console = Console(highlight=False)
    for i, command in enumerate(commands):
        line = Text("next: " if i == 0 else "      ", style="dim").append(printable(command), style="bold")
        console.print(line, soft_wrap=True)
