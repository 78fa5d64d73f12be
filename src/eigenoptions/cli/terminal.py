"""What all commands share: words on standard error, bars while one waits, maps beside each other."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

from rich.console import Console
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, arg

# Commands are classes, and Optional is not written "| None": for functions and for such unions tyro loads a
# type checker, which takes longer than all the rest of --help.
Flag = FlagCreatePairsOff[bool]
Json = Annotated[FlagCreatePairsOff[bool], arg(name="json", help="Print one JSON object and nothing else.")]
Folder = Annotated[Optional[Path], arg(metavar="DIR")]  # noqa: UP045
Number = Annotated[Optional[int], arg(metavar="I")]  # noqa: UP045
Names = Annotated[Optional[str], arg(metavar="NAME,...")]  # noqa: UP045
Workers = Annotated[Optional[int], arg(metavar="N")]  # noqa: UP045
Cell = Annotated[Optional[str], arg(metavar="ROW,COL")]  # noqa: UP045


def complain(error: str, notes: list[str]) -> None:
    """Say in one line what is wrong."""
    line = " ".join(" ".join([error, *(f"({note})" for note in notes)]).split())
    Console(stderr=True, highlight=False).print(Text(f"error: {line}", style="red"), soft_wrap=True)


def hear_notes() -> None:
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


class Bar:
    """A line on a terminal that says what is going on and how far it is; nothing elsewhere."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None)

    def say(self, text: str) -> None:
        """Begin something new, of unknown length."""
        self._shown.reset(self._task, description=text, total=None)

    def name(self, text: str) -> None:
        """Say more of what is going on."""
        self._shown.update(self._task, description=text)

    def step(self, done: int, total: int) -> None:
        """Say how far it is."""
        self._shown.update(self._task, completed=done, total=total)


@contextmanager
def bar(text: str) -> Iterator[Bar]:
    """Show a bar with time gone and time to go on standard error, until the block ends."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Gone
    from rich.progress import TimeRemainingColumn as ToGo

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Gone(),
        ToGo(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        line = Bar(shown)
        line.say(text)
        yield line


def verdicts(console: Console, claims: Sequence[tuple[str, Any]], cost: str) -> None:
    """Print claims, each with where it belongs, how many hold, and what that cost."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    table.add_column("the paper says", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    colors = {"holds": "green", "partly": "yellow", "does not hold": "red"}
    for name, claim in claims:
        table.add_row(name, Text(claim.sentence), Text(claim.verdict, style=colors[claim.verdict]))
    counts = ", ".join(f"{sum(c.verdict == v for _, c in claims)} {v}" for v in colors)
    console.print(table)
    console.print(f"{len(claims)} claims: {counts}; {cost}")


def writable(folder: Path) -> None:
    """Raise OSError where a folder cannot be made or written, before any work is done for it."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: it is a file; give a folder")
    near = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {folder}: {near} is a file; give another folder")
    if not os.access(near, os.W_OK):
        raise PermissionError(f"cannot write into {folder}: no permission in {near}; give another folder")


def make(folder: Path) -> None:
    """Make a folder, and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot make the folder {folder}: {error.strerror or error}") from None


def side_by_side(console: Console, blocks: list[list[str]]) -> None:
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
