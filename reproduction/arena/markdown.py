"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


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
