"""Tables of results: lists of rows (``{"column": value}``), their selection, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.experiments.experiment import Results
from eigenoptions.experiments.limits import CONFIDENCE, LAST

Row = dict[str, Any]


def where(rows: Sequence[Row], **values: Any) -> list[Row]:
    """Rows in which the columns have these values.

    >>> where([{"a": 1}, {"a": 2}], a=2)
    [{'a': 2}]
    """
    return [row for row in rows if all(row[k] == v for k, v in values.items())]


def column(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    """A column as an array.

    >>> column([{"a": 1}, {"a": 2}], "a").tolist()
    [1.0, 2.0]
    """
    return np.array([row[name] for row in rows], dtype=float)


def distinct(rows: Sequence[Row], name: str) -> list[Any]:
    """Values of a column, each once, in the order of their first row.

    >>> distinct([{"a": 1}, {"a": 2}, {"a": 1}], "a")
    [1, 2]
    """
    return list(dict.fromkeys(row[name] for row in rows))


def to_csv(rows: Sequence[Row]) -> str:
    r"""Text of a CSV file with a header.

    >>> to_csv([{"option": "e2+", "steps": 8.5}])
    'option,steps\ne2+,8.5\n'
    """
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def tables(results: Results) -> dict[str, str]:
    r"""Tables among the results, each as the text of a CSV file.

    >>> tables({"lengths": [{"option": "e2+", "steps": 8.5}], "gamma": 0.9})
    {'lengths': 'option,steps\ne2+,8.5\n'}
    """
    return {
        name: to_csv(rows)
        for name, rows in results.items()
        if isinstance(rows, list) and rows and isinstance(rows[0], dict)
    }


def diffusion_rows(keys: Sequence[Row], curves: Sequence[Sequence[float]]) -> list[Row]:
    """One row per key and number of options, of diffusion times with 0, 1, 2, ... options.

    >>> diffusion_rows([{"set": 3}], [[620.8]])
    [{'set': 3, 'options': 0, 'diffusion_time': 620.8}]
    """
    return [
        {**key, "options": m, "diffusion_time": x}
        for key, curve in zip(keys, curves, strict=True)
        for m, x in enumerate(curve)
    ]


def learning_tables(
    keys: Sequence[Row], returns: Sequence[NDArray[np.uint8]], every: int
) -> dict[str, list[Row]]:
    """Tables of runs and of learning curves, for scenarios with these keys and returns."""
    pairs = list(zip(keys, returns, strict=True))
    return {
        "runs": [row for key, found in pairs for row in run_rows(key, found)],
        "curves": [row for key, found in pairs for row in curve_rows(key, found, every)],
    }


def curves_of(lines: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Arguments of `plots.curve_panel` for learning curves: their means, with intervals as bands."""
    return {
        "x": column(next(iter(lines.values())), "episode"),
        "series": {name: column(rows, "mean") for name, rows in lines.items()},
        "bands": {name: (column(rows, "low"), column(rows, "high")) for name, rows in lines.items()},
    }


def run_rows(key: Mapping[str, Any], returns: NDArray[np.uint8]) -> list[Row]:
    """One row per run of ``(2, runs, episodes)`` evaluation and learning returns.

    ``mean_return`` is over all evaluation episodes, ``late_return`` over the last tenth, ``final_return`` that of the
    last one, and ``learning_return`` the mean over the learning episodes.

    >>> run_rows({"options": 2}, np.array([[[0, 1]], [[0, 0]]], dtype=np.uint8))[0]["mean_return"]
    0.5
    """
    evaluated, learned = returns.astype(float)
    last = max(1, round(LAST * evaluated.shape[1]))
    return [
        {
            **key,
            "run": i,
            "mean_return": float(evaluated[i].mean()),
            "late_return": float(evaluated[i, -last:].mean()),
            "final_return": float(evaluated[i, -1]),
            "learning_return": float(learned[i].mean()),
        }
        for i in range(len(evaluated))
    ]


def curve_rows(key: Mapping[str, Any], returns: NDArray[np.uint8], every: int) -> list[Row]:
    """One row per `every` episodes: the mean evaluation return and its 95% interval (Student) over runs.

    >>> curve_rows({}, np.array([[[0, 1], [1, 1]], [[0, 0], [0, 0]]], dtype=np.uint8), 2)[0]["mean"]
    0.75
    """
    from scipy.stats import t

    evaluated = returns[0].astype(float)
    runs, episodes = evaluated.shape
    width = float(t.interval(CONFIDENCE, runs - 1)[1]) if runs > 1 else 0.0
    rows = []
    for first in range(0, episodes, every):
        part = evaluated[:, first : first + every].mean(axis=1)
        mean = float(part.mean())
        half = float(width * part.std(ddof=min(1, runs - 1)) / np.sqrt(runs))
        row = {"episode": min(first + every, episodes), "mean": mean}
        rows.append({**key, **row, "low": max(0.0, mean - half), "high": min(1.0, mean + half)})
    return rows
