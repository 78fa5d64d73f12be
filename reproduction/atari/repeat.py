"""Repeat a part of the stored tables of a game, and compare it with them.

``python -m reproduction atari GAME --repeat "paper" --seeds 2 --start 4`` collects the
transitions of one collection again, follows some of its options from one start, and
compares every measure with the stored row. It takes minutes; all of it takes hours.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reproduction.atari.collection import Collection, load_collection
from reproduction.atari.games import get_game
from reproduction.atari.measures import OPTION, measure_rollouts
from reproduction.atari.settings import Variant, make_variants
from reproduction.atari.stored import load_results
from reproduction.atari.study import roll_out_options

# Stored numbers have six digits.
TOLERANCE = 1e-5


def repeat_part(
    game: str, name: str, collection: int, start: int, n_options: int
) -> tuple[int, pd.DataFrame]:
    """Follow some options again, and compare what they did with the stored rows.

    Parameters
    ----------
    game : str
        The game.
    name : str
        The variant, as in the stored tables.
    collection, start : int
        The collection of transitions, and the start.
    n_options : int
        Options of each kind, evenly spaced among the stored ones.

    Returns
    -------
    n_compared : int
        How many roll-outs were repeated.
    differences : DataFrame
        One row per measure that differs.
    """
    stored = load_results(game=game)["rollouts"]
    is_part = stored.variant == name
    is_part &= (stored.collection == collection) & (stored.start == start)
    if not is_part.any():
        raise ValueError(
            f"no stored rows of {name!r} with collection {collection} and start "
            f"{start}: {_list_parts(stored)}"
        )

    rows = [
        part.iloc[
            np.unique(np.linspace(0, len(part) - 1, n_options).round().astype(int))
        ]
        for _, part in stored[is_part].groupby("kind", sort=False)
    ]
    chosen = pd.concat(rows)
    of_game = load_collection(game, find_variant(game, name), collection)
    repeated = follow_again(of_game, start, chosen[OPTION])
    return len(chosen), compare_rows(chosen, repeated)


def find_variant(game: str, name: str) -> Variant:
    """The variant of the full study with this name."""
    (variant,) = (
        variant
        for variant in make_variants(game, "full")
        if variant.name == name and not variant.long
    )
    return variant


def follow_again(
    collection: Collection, start: int, options: pd.DataFrame
) -> pd.DataFrame:
    """The measures of some options from one start."""
    game = get_game(collection.game)
    tables = []
    for part, log in roll_out_options(collection, start, options):
        tables.append(part.reset_index(drop=True).join(measure_rollouts(log, game)))
    return pd.concat(tables)


def compare_rows(stored: pd.DataFrame, repeated: pd.DataFrame) -> pd.DataFrame:
    """The measures of repeated roll-outs that are not as stored.

    >>> row = {"kind": "walk", "basis": 0, "direction": 1, "sign": 1}
    >>> stored = pd.DataFrame([row | {"score": 2.0, "region": ""}])
    >>> repeated = pd.DataFrame([row | {"score": 3.0, "region": ""}])
    >>> differences = compare_rows(stored, repeated)
    >>> differences[["measure", "stored", "repeated"]].to_numpy().tolist()
    [['score', '2.0', '3.0']]
    """
    ours = stored.set_index(OPTION)
    theirs = repeated.set_index(OPTION)
    rows = []
    for measure in theirs.columns.intersection(ours.columns):
        for option in ours.index:
            before = ours.at[option, measure]
            now = theirs.at[option, measure]
            if not _is_equal(before, now):
                row = dict(zip(OPTION, option, strict=True))
                rows.append(
                    row
                    | {"measure": measure, "stored": f"{before}", "repeated": f"{now}"}
                )
    return pd.DataFrame(rows)


def _is_equal(before: object, now: object) -> bool:
    """Whether a number is as stored, to the digits that are stored, or a text is."""
    if isinstance(before, str):
        return before == now
    return bool(np.isclose(before, now, rtol=TOLERANCE, atol=0, equal_nan=True))


def _list_parts(stored: pd.DataFrame) -> str:
    """The variants with their collections and starts, as text."""
    parts = []
    for name, rows in stored.groupby("variant", sort=False):
        collections = ", ".join(str(number) for number in rows.collection.unique())
        parts.append(
            f"{name!r} has collections {collections} and starts 0 to {rows.start.max()}"
        )
    return "; ".join(parts)
