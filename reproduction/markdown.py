"""Tables as Markdown, and pages whose tables are compared with computed ones.

On a page, a table stands between two comments, ``<!-- table: NAME -->`` and
``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_TABLE = r"<!-- table: {} -->\n(.*?)<!-- end -->"


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    >>> print(make_table(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return text.replace("| --- |", "|---|").replace(" --- |", "---|")


def list_table_names(text: str) -> list[str]:
    """Return the names of the tables on a page.

    >>> list_table_names("<!-- table: first --> | a | <!-- end -->")
    ['first']
    """
    return re.findall("<!-- table: (.*?) -->", text)


def remove_tables(text: str) -> str:
    """Return the text of a page without its computed tables."""
    return re.sub(_TABLE.format(".*?"), "", text, flags=re.DOTALL)


def compare_tables(
    page: Path, tables: Mapping[str, str], write: bool = False
) -> list[str]:
    """Return which tables of a page are not as computed; with `write`, correct them.

    A table that the page does not have, or that is not in `tables`, is a difference,
    too.
    """
    text = page.read_text(encoding="utf-8")
    differences = []
    for name in list_table_names(text):
        if name not in tables:
            differences.append(f"{page.name}: nothing computes the table {name!r}")
    for name, table in tables.items():
        match = re.search(_TABLE.format(re.escape(name)), text, re.DOTALL)
        if match is None:
            differences.append(f"{page.name}: no table {name!r}")
        elif match[1] != table:
            differences.append(f"{page.name}: table {name!r} is not as computed")
            text = text[: match.start(1)] + table + text[match.end(1) :]
    if write:
        page.write_text(text, encoding="utf-8")
    return differences
