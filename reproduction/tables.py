"""Tables of results: lists of rows (``{"column": value}``), their selection, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.experiment import Results
from reproduction.limits import CONFIDENCE, LAST

Row = dict[str, Any]
# Limits of an axis of shares.
SHARE = (-0.02, 1.02)


def where(rows: Sequence[Row], **values: Any) -> list[Row]:
    """Rows in which the columns have these values.

    >>> where([{"a": 1}, {"a": 2}], a=2)
    [{'a': 2}]
    """
    return [row for row in rows if all(row[k] == v for k, v in values.items())]


def column(rows: Sequence[Row], name: str, **values: Any) -> NDArray[np.float64]:
    """A column as an array, of the rows in which other columns have these values.

    >>> column([{"a": 1}, {"a": 2}], "a").tolist()
    [1.0, 2.0]
    """
    return np.array([row[name] for row in where(rows, **values)], dtype=float)


def distinct(rows: Sequence[Row], name: str, **values: Any) -> list[Any]:
    """Values of a column, each once, in the order of their first row, of rows chosen as by `where`.

    >>> distinct([{"a": 1}, {"a": 2}, {"a": 1}], "a")
    [1, 2]
    """
    return list(dict.fromkeys(row[name] for row in where(rows, **values)))


def groups(rows: Sequence[Row], *keys: str) -> dict[Any, list[Row]]:
    """Rows by the value of a column, or by the values of several, in the order of their first row.

    >>> groups([{"a": 1, "b": 3}, {"a": 2, "b": 3}], "b")
    {3: [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]}
    """
    found: dict[Any, list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        found.setdefault(key if len(keys) > 1 else key[0], []).append(row)
    return found


def series(rows: Sequence[Row], name: str, *keys: str, **values: Any) -> dict[Any, Any]:
    """A column as arrays by the values of other columns, nested in their order, of rows chosen as by `where`.

    >>> series([{"domain": "i-maze", "n": n, "time": x} for n, x in ((2, 7), (4, 5), (2, 9))], "time", "domain", "n")
    {'i-maze': {2: array([7., 9.]), 4: array([5.])}}
    """
    first, *more = keys
    parts = groups(where(rows, **values), first)
    return {key: series(of, name, *more) if more else column(of, name) for key, of in parts.items()}


def grid(head: str, lines: Mapping[Any, Mapping[Any, Any]], form: str = "") -> list[Row]:
    """Rows of a table for readers: one per line, with a column per key of any line (numbers in order), all as text.

    >>> grid("return", {"open-room": {2: 0.5}, "i-maze": {2: 0.25, 4: 1}}, ".2f")
    [{'return': 'open-room', '2': '0.50', '4': ''}, {'return': 'i-maze', '2': '0.25', '4': '1.00'}]
    """
    keys = list(dict.fromkeys(key for line in lines.values() for key in line))
    if all(isinstance(key, int) for key in keys):
        keys.sort()
    return [
        {head: name} | {f"{key}": format(line[key], form) if key in line else "" for key in keys}
        for name, line in lines.items()
    ]


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


def learning_tables(learned: Sequence[tuple[Row, NDArray[np.uint8]]], every: int) -> dict[str, list[Row]]:
    """Tables of runs and of learning curves, of agents with their keys and returns."""
    return {
        "runs": [row for key, returns in learned for row in run_rows(key, returns)],
        "curves": [row for key, returns in learned for row in curve_rows(key, returns, every)],
    }


def mean_returns(learned: Sequence[tuple[Row, NDArray[np.uint8]]]) -> list[Row]:
    """One row per agent: the mean of its evaluation returns.

    >>> mean_returns([({"set": 3}, np.array([[[0, 1]], [[0, 0]]], dtype=np.uint8))])
    [{'set': 3, 'mean_return': 0.5}]
    """
    return [{**key, "mean_return": float(returns[0].mean())} for key, returns in learned]


def curves_of(lines: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Arguments of `plots.curve_panel` for learning curves: their means, with intervals as bands."""
    return {
        "limits": SHARE,
        "x": column(next(iter(lines.values())), "episode"),
        "series": {name: column(rows, "mean") for name, rows in lines.items()},
        "bands": {name: (column(rows, "low"), column(rows, "high")) for name, rows in lines.items()},
    }


def curve_row(
    each: Mapping[str, Mapping[str, Any]], ylabel: str, *, legend: bool = True, **same: Any
) -> list[Any]:
    """Panels of curves by title, side by side: the first has the label of the vertical axis, and the legend if any."""
    from reproduction.panels import curve_panel

    rows = [
        {"title": title, "ylabel": "" if i else ylabel, "legend": legend and not i, **same, **panel}
        for i, (title, panel) in enumerate(each.items())
    ]
    return [curve_panel(**row) for row in rows]


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
    evaluated = returns[0].astype(float)
    runs, episodes = evaluated.shape
    rows = []
    for first in range(0, episodes, every):
        part = evaluated[:, first : first + every].mean(axis=1)
        mean, half = float(part.mean()), student(part) if runs > 1 else 0.0
        row = {"episode": min(first + every, episodes), "mean": mean}
        rows.append({**key, **row, "low": max(0.0, mean - half), "high": min(1.0, mean + half)})
    return rows


def student(x: NDArray[np.float64]) -> float:
    """Half of the width of Student's interval of a mean.

    >>> round(student(np.array([1.0, 2.0, 3.0])), 3)
    2.484
    """
    from scipy.special import stdtrit

    width = stdtrit(len(x) - 1, (1 + CONFIDENCE) / 2)
    return float(width * x.std(ddof=1) / np.sqrt(len(x)))
