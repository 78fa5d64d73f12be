"""What commands print: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eigenoptions._text import printable


@cache
def get_error_console() -> Console:
    """The console of notes and progress: one for both, so that a note does not break a progress bar."""
    return Console(stderr=True, highlight=False)


def print_line(
    text: str | Text, style: str = "", console: Console | None = None
) -> None:
    """Print a text: wrapped at words on a terminal, as one line elsewhere."""
    console = console or Console(highlight=False)
    line = Text(printable(text), style=style) if isinstance(text, str) else text
    console.print(line, soft_wrap=not console.is_terminal)


def print_paragraph(text: str, style: str = "") -> None:
    """Print a paragraph and an empty line."""
    print_line(text, style)
    print()


def print_log() -> None:
    """Print the library's warnings on standard error, each of them once."""
    get_error_console.cache_clear()
    printed: set[str] = set()

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note = record.getMessage()
            if note not in printed:
                printed.add(note)
                print_line(f"note: {note}", "yellow", get_error_console())

    logger = logging.getLogger("eigenoptions")
    logger.handlers, logger.propagate = [Notes(logging.WARNING)], False


@contextmanager
def show_progress(
    text: str,
) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """Show a progress bar, if standard error is a terminal; yields functions that name a task and set its progress."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

    console = get_error_console()
    columns = (
        SpinnerColumn(),
        "{task.description}",
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(text, total=None)
        yield (
            lambda text: shown.reset(task, description=text, total=None),
            lambda done, total: shown.update(task, completed=done, total=total),
        )


def print_json(answer: dict[str, Any], files: Sequence[Path] = ()) -> None:
    """Print one JSON object, which names the files that were written."""
    print(json.dumps({**answer, "files": [str(file) for file in files]}))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print a table; columns whose head begins with ``>`` are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(
            head.removeprefix(">"),
            justify="right" if head[0] == ">" else "left",
            no_wrap=True,
        )
    for row in rows:
        table.add_row(
            *(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row)
        )
    console = Console(highlight=False)
    # A terminal that is too narrow wraps lines; no cell is cut off.
    console.width = max(console.width, Console(width=1000).measure(table).maximum)
    console.print(table)
    print()


def print_end(files: Sequence[Path], *commands: str) -> None:
    """Print which files were written and what to type next."""
    for file in files:
        print_line(f"wrote {file}")
    for i, command in enumerate(commands):
        line = Text.assemble(
            ("next: " if i == 0 else "      ", "dim"), (printable(command), "bold")
        )
        Console(highlight=False).print(line, soft_wrap=True)


def check_folder(folder: Path | None) -> None:
    """Raise OSError if results cannot be written into a folder, before any work is done for them."""
    if folder is None:
        return
    existing = next(
        path for path in (folder, *folder.absolute().parents) if path.exists()
    )
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise PermissionError(
            f"cannot write into {folder}: {existing} is not a folder that can be written"
        )
