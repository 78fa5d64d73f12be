"""Stored results of full studies, which the report judges so that it takes no hour."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from reproduction.lab import Data

RESULTS = Path(__file__).parent / "results"


def load_results(*, game: str) -> Data:
    """The stored tables of a game."""
    data = {}
    for path in sorted(RESULTS.glob(f"{game.lower()}-*.csv.gz")):
        # A file such as freeway-rollouts.csv.gz.
        name = path.name.partition("-")[2].removesuffix(".csv.gz")
        table = pd.read_csv(path)
        for column in ("region", "regions"):
            if column in table:
                table[column] = table[column].fillna("")
        data[name] = table
    return data
