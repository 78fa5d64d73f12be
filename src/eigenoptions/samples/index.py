"""The index of a data frame: it tells where rows are missing or out of order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eigenoptions.samples.names import NAMES, find_names


def read_index(data: Mapping[str, Any], obs: Any) -> dict[str, Any]:
    """What the index of a data frame adds to data that have no next observations.

    Levels with names are columns. An index without a name counts rows: where it does
    not rise by one, rows are missing, or another frame begins.

    Parameters
    ----------
    data : Mapping
        The data, with the names of their parts.
    obs : object
        The observations, or the frame itself.

    Returns
    -------
    dict
        Further entries of the data; empty for other containers.
    """
    index: Any = getattr(obs, "index", None)
    if not hasattr(index, "get_level_values"):
        return {}
    levels = {
        name: index.get_level_values(number).to_numpy()
        for number, name in enumerate(index.names)
    }
    known = {name.lower() for names in NAMES.values() for name in names}
    named = {name: levels[name] for name in levels if str(name).lower() in known}
    if len(named) == len(index.names):
        return named

    # A counter of steps knows the order better than numbers of rows.
    if find_names(data, "step"):
        return named
    numbers = index.to_numpy()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"the index {list(index.names)} of the frame does not count its rows, so "
            "that some may be missing: frame.reset_index(drop=True) if they follow "
            "each other"
        )
    has_order = len(numbers) < 2 or bool((np.diff(numbers) >= 0).all())
    if not has_order and index.is_unique:
        raise ValueError(
            "the index of the frame says that its rows are out of order: "
            "frame.sort_index(), or frame.reset_index(drop=True) if they follow each "
            "other as they are"
        )
    return {"step": numbers}
