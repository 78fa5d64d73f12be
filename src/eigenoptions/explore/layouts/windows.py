"""Windows on a grid as they are compared and stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eigenoptions.envs.families.windows import Code, View
from eigenoptions.explore.layouts.motions import Window


class Seen(NamedTuple):
    """A window and a hand as they are compared and stored."""

    window: Window
    hand: Code


def read_view(view: View, obs: Any, at: tuple[int, int]) -> Seen:
    """Return the window and the hand of an observation.

    Raises
    ------
    ValueError, TypeError
        If they are not what `MapWrapper` assumes.
    """
    try:
        window, hand = view(obs)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise TypeError(
            f"view(obs) must return (window, hand), and failed: {error!r}"
        ) from error
    cells = np.asarray(window)
    if cells.ndim == 2:
        cells = cells[:, :, np.newaxis]
    if cells.ndim != 3 or 0 in cells.shape:
        raise ValueError(
            f"a window has shape (rows, columns) or (rows, columns, channels), got "
            f"{cells.shape}: correct view="
        )
    if not np.issubdtype(cells.dtype, np.integer):
        raise TypeError(
            f"a window holds one integer code per cell, got {cells.dtype}: MapWrapper "
            "assumes a window on a grid; for positions and pictures use "
            "explore(env, steps) or eo.deep"
        )
    rows, columns, _ = cells.shape
    if not (0 <= at[0] < rows and 0 <= at[1] < columns):
        raise ValueError(
            f"at must be a cell of the window {rows} x {columns}, got {at}: give row "
            "and column of the agent in it"
        )
    return Seen(cells.astype(np.int64), tuple(int(n) for n in np.atleast_1d(hand)))
