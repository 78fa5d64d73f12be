"""Results of benchmarks that take minutes: a CSV file beside its program.

The pages of the documentation show these numbers, and ``make numbers`` compares them.
A file is written by its benchmark with ``--store``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

_FOLDER = Path(__file__).parent


def read_table(name: str) -> pd.DataFrame:
    """Read a stored table; an empty one if nothing is stored yet."""
    path = _FOLDER / f"{name}.csv"
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def store_table(name: str, table: pd.DataFrame) -> None:
    """Write a table, in place of the one that is stored."""
    temporary = _FOLDER / f"{name}.csv.tmp"
    table.to_csv(temporary, index=False)
    temporary.replace(_FOLDER / f"{name}.csv")
