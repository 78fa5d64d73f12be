"""What commands print: results on standard output, the rest on standard error.

Texts are wrapped and coloured on a terminal. Elsewhere (a pipe, a file, ``NO_COLOR``)
they are plain lines.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenoptions._progress import Bar
from eigenoptions._text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


def make_console() -> Console:
    """Make the console of standard output, which tests replace."""
    from rich.console import Console

    return Console(highlight=False)


@cache
def get_error_console() -> Console:
    """The console of standard error: one for all, so that notes do not break a bar."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def has_color() -> bool:
    """Whether standard output shows colours."""
    console = make_console()
    return console.color_system is not None and not console.no_color


def print_line(text: str, style: str = "", console: Console | None = None) -> None:
    """Print a text: wrapped at words on a terminal, as one line elsewhere."""
    from rich.text import Text

    if console is None:
        console = make_console()
    console.print(
        Text(printable(text), style=style),
        soft_wrap=not console.is_terminal,
    )


def print_paragraph(text: str, style: str = "") -> None:
    """Print a text and an empty line."""
    print_line(text, style)
    print()


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print a table; columns whose head begins with ``>`` are aligned to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head in heads:
        if head.startswith(">"):
            table.add_column(head[1:], justify="right", no_wrap=True)
        else:
            table.add_column(head, justify="left", no_wrap=True)

    for row in rows:
        cells = []
        for cell in row:
            if isinstance(cell, str):
                cell = Text(printable(cell))
            cells.append(cell)
        table.add_row(*cells)

    # A terminal that is too narrow wraps lines; no cell is cut off.
    console = make_console()
    width_of_table = Console(width=1000).measure(table).maximum
    console.width = max(console.width, width_of_table)
    console.print(table)
    print()


def print_json(answer: dict[str, Any], files: Sequence[Path] = ()) -> None:
    """Print one JSON object, which also names the files that were written."""
    names = [str(file) for file in files]
    print(json.dumps({**answer, "files": names}))


def print_files(files: Sequence[Path]) -> None:
    """Print which files were written."""
    for file in files:
        print_line(f"wrote {file}")


def print_next(*commands: str) -> None:
    """Print what to type next."""
    from rich.text import Text

    lead = "next: "
    for command in commands:
        line = Text.assemble((lead, "dim"), (printable(command), "bold"))
        make_console().print(line, soft_wrap=True)
        lead = " " * len(lead)


def print_error(error: Exception) -> None:
    """Print an error as one line on standard error."""
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        # The text of a KeyError stands in quotes.
        text = str(error.args[0])
    if not text:
        text = type(error).__name__

    line = " ".join(f"error: {text}".split())
    print_line(line, "red", get_error_console())


def show_library_warnings() -> None:
    """From now on, print each of the library's warnings once, on standard error."""
    # Standard error may be another stream than in the last call.
    get_error_console.cache_clear()

    logger = logging.getLogger("eigenoptions")
    logger.handlers = [_NoteHandler(logging.WARNING)]
    logger.propagate = False


class _NoteHandler(logging.Handler):
    """Prints records of the log as notes, each text once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        note = record.getMessage()
        if note in self._printed:
            return
        self._printed.add(note)
        print_line(f"note: {note}", "yellow", get_error_console())


@contextmanager
def show_progress(text: str) -> Iterator[Bar]:
    """Show a progress bar while a block runs, if standard error is a terminal.

    Parameters
    ----------
    text : str
        The first task.

    Yields
    ------
    Bar
        Its `update` is a function that the library accepts as ``progress``.
    """
    console = get_error_console()
    bar = Bar(text, delay=0.0 if console.is_terminal else inf, console=console)
    bar.begin(text)
    try:
        yield bar
    finally:
        bar.close()


def play(frames: Iterable[RenderableType], seconds_per_frame: float) -> None:
    """Show one frame after the other in the same place of the terminal."""
    from rich.live import Live

    with Live(console=make_console(), auto_refresh=False) as live:
        for frame in frames:
            live.update(frame, refresh=True)
            time.sleep(seconds_per_frame)
