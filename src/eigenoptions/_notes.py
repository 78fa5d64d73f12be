"""Notes: one line about what was done, where nobody has configured logging.

A note is no warning, and Python shows only warnings by default. So a note is logged at
the level INFO, and where no handler and no level is set for it, it is also printed,
each text once. ``logging.getLogger("eigenoptions").setLevel(logging.WARNING)`` hides
notes, and a handler of yours gets them instead.
"""

from __future__ import annotations

import logging
import sys
from functools import cache

from eigenoptions._progress import is_main_process

logger = logging.getLogger("eigenoptions")


def show_note(text: str) -> None:
    """Log a line about what was done, and print it where logging is not configured."""
    logger.info(text)
    is_configured = logger.level != logging.NOTSET or logger.hasHandlers()
    if not is_configured and is_main_process():
        _print_once(text)


@cache
def _print_once(text: str) -> None:
    """Print a note on standard error; in a notebook, which colours that red, below."""
    stream = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    print(text, file=stream)
