"""``docs/arena.md`` and ``tables.md`` beside this file, from stored runs.

The page has aggregates over tasks, the other file a row for each task.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from eigenoptions.plots.style import STYLE
from reproduction.markdown import compare_tables
from studies.arena import deep_page, tabular_page

ALL_TABLES = Path(__file__).with_name("tables.md")
PAGE = ALL_TABLES.parents[2] / "docs" / "arena.md"


def find_differences(write: bool = False) -> list[str]:
    """Return which tables are not as stored; with `write`, correct them."""
    aggregates = tabular_page.list_aggregates() | deep_page.list_aggregates()
    tables = tabular_page.list_tables() | deep_page.list_tables()
    return [
        *compare_tables(PAGE, aggregates, write),
        *compare_tables(ALL_TABLES, tables, write),
    ]


def write_page() -> None:
    """Write the tables, and draw the pictures of the page."""
    find_differences(write=True)
    with matplotlib.rc_context(STYLE):
        tabular_page.draw_picture()
        deep_page.draw_picture()
