"""Progress: what `progress=` means, in every function that may take long.

* a function is called as ``progress(done, total)``;
* None, the default, shows a bar after two seconds where somebody can see it: in a
  terminal, or in a notebook with ipywidgets;
* True shows a bar at once, and False shows none.

A public function is decorated with `shows_progress`, and calls `check_progress` first.
It passes the function that it gets on to what it calls, so there is one bar for all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from eigenoptions._types import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

P = ParamSpec("P")
R = TypeVar("R")

# What users may give as `progress`.
ProgressArgument: TypeAlias = Progress | bool | None

# Seconds between two changes of a bar, which the eye takes for continuous.
_INTERVAL = 0.1


def check_progress(progress: ProgressArgument) -> Progress | None:
    """Return the function to be called; TypeError for what is no progress.

    Examples
    --------
    >>> check_progress(print) is print, check_progress(False)
    (True, None)
    """
    if progress is None or isinstance(progress, bool):
        return None
    if not callable(progress):
        raise TypeError(
            "progress must be True, False or a function (done, total), "
            f"got {type(progress).__name__}"
        )
    return progress


def shows_progress(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function with a keyword `progress`, so that it may show a bar.

    Examples
    --------
    >>> @shows_progress
    ... def count(n, progress=None):
    ...     for i in range(n):
    ...         progress(i + 1, n)
    >>> count(2, progress=print)
    1 2
    2 2
    >>> count(2, progress=False)
    """

    @wraps(function)
    def show(*args: P.args, **kwargs: P.kwargs) -> R:
        wanted: Any = kwargs.get("progress")
        if wanted is None and not _has_spectators():
            wanted = False

        if wanted is None or wanted is True:
            # Nobody asked for a bar by default: quick work shows none.
            bar = Bar(_find_name(function), delay=0.0 if wanted else 2.0)
            kwargs["progress"] = bar.update
            try:
                return function(*args, **kwargs)
            finally:
                bar.close()

        if wanted is False:
            # Not None: functions that are called from here would show bars of theirs.
            kwargs["progress"] = _ignore
        return function(*args, **kwargs)

    return show


def _find_name(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class that it initializes."""
    *_, owner, name = ["", *function.__qualname__.split(".")]
    return owner if name == "__init__" else name


def _ignore(done: int, total: int) -> None:
    """Show nothing."""


def _has_spectators() -> bool:
    """Whether a bar would be seen: in a terminal, or in a notebook."""
    if not is_main_process():
        return False
    if "ipykernel" in sys.modules:
        # What rich needs to draw in a notebook: without it, it warns instead.
        return find_spec("ipywidgets") is not None
    return sys.stderr is not None and sys.stderr.isatty()


def is_main_process() -> bool:
    """Whether this is no worker, which writes to the terminal of its parent."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is None or processes.current_process().name == "MainProcess"


class Bar:
    """A bar on standard error, or in a notebook.

    Parameters
    ----------
    text : str
        What is going on.
    delay : float
        Seconds before it appears: quick work shows nothing.
    console : rich.console.Console, default=None
        Where it is drawn. None: a new console of standard error.
    """

    def __init__(self, text: str, delay: float, console: Console | None = None) -> None:
        self._text = text
        self._console = console
        self._next_change = time.monotonic() + delay
        self._display: RichProgress | None = None

    def begin(self, text: str) -> None:
        """Begin another task, which has made no progress yet."""
        self._text = text
        if self._display is None and time.monotonic() < self._next_change:
            return
        display = self._open()
        display.reset(display.task_ids[0], description=text, total=None)

    def update(self, done: int, total: int) -> None:
        """Show how much is done, at the first call after the delay and from then on."""
        now = time.monotonic()
        is_last = self._display is not None and done >= total
        if now < self._next_change and not is_last:
            return
        self._next_change = now + _INTERVAL
        display = self._open()
        display.update(display.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        """Remove the bar."""
        if self._display is not None:
            self._display.stop()

    def _open(self) -> RichProgress:
        """Return the display, which appears now if it has not."""
        if self._display is None:
            self._display = _make_display(self._console)
            self._display.start()
            self._display.add_task(self._text, total=None)
        return self._display


def _make_display(console: Console | None) -> RichProgress:
    """A display of one bar, with the time that is left."""
    # Imported here: ``import eigenoptions`` is light, and most work is quick.
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    if console is None:
        console = Console(stderr=True)
    return RichProgress(
        "{task.description}",
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
