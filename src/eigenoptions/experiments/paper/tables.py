"""Learning as tables: one row a run and one row a point of a curve, as Figure 7 and Appendix D need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from eigenoptions.experiments.rules import LAST

Row = dict[str, Any]


def run_rows(of: Mapping[str, Any], returns: NDArray[np.uint8]) -> list[Row]:
    """One row a run of ``(2, runs, episodes)`` evaluation and learning returns.

    ``mean_return`` is over all evaluation episodes, ``late_return`` over the last tenth, ``final_return`` of the
    last one, and ``learning_return`` is the mean over the learning episodes.

    >>> run_rows({"options": 2}, np.array([[[0, 1]], [[0, 0]]], dtype=np.uint8))[0]["mean_return"]
    0.5
    """
    evaluated, learned = returns.astype(float)
    last = max(1, round(LAST * evaluated.shape[1]))
    return [
        {
            **of,
            "run": i,
            "mean_return": float(evaluated[i].mean()),
            "late_return": float(evaluated[i, -last:].mean()),
            "final_return": float(evaluated[i, -1]),
            "learning_return": float(learned[i].mean()),
        }
        for i in range(len(evaluated))
    ]


def curve_rows(of: Mapping[str, Any], returns: NDArray[np.uint8], every: int) -> list[Row]:
    """One row for each `every` episodes: the mean evaluation return and its 95% interval over runs.

    >>> curve_rows({}, np.array([[[0, 1], [1, 1]], [[0, 0], [0, 0]]], dtype=np.uint8), 2)[0]["mean"]
    0.75
    """
    evaluated = returns[0].astype(float)
    runs, episodes = evaluated.shape
    rows = []
    for first in range(0, episodes, every):
        part = evaluated[:, first : first + every].mean(axis=1)
        mean = float(part.mean())
        half = float(stdtrit(runs - 1, 0.975) * part.std(ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0
        row = {"episode": min(first + every, episodes), "mean": mean}
        rows.append({**of, **row, "low": max(0.0, mean - half), "high": min(1.0, mean + half)})
    return rows


def where(rows: Sequence[Row], **is_: Any) -> list[Row]:
    """Rows in which the columns have these values.

    >>> where([{"a": 1}, {"a": 2}], a=2)
    [{'a': 2}]
    """
    return [row for row in rows if all(row[k] == v for k, v in is_.items())]


def column(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    """A column as an array."""
    return np.array([row[name] for row in rows], dtype=float)


def distinct(rows: Sequence[Row], name: str) -> list[Any]:
    """Values of a column, each once, in order.

    >>> distinct([{"a": 1}, {"a": 2}, {"a": 1}], "a")
    [1, 2]
    """
    return list(dict.fromkeys(row[name] for row in rows))
