"""Outcomes of experiments, which the store keeps, and their tables as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import Any

from eigenoptions.experiments.experiment import Experiment, Results, Settings
from eigenoptions.experiments.store import Store


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: its results, under which settings, the seconds it took, and where."""

    experiment: Experiment
    settings: Settings
    results: Results
    seconds: float
    made: dict[str, Any] = field(default_factory=dict)


def put(store: Store, outcome: Outcome) -> None:
    """Store an outcome."""
    record = {"results": outcome.results, "seconds": outcome.seconds, "made": outcome.made}
    store.put(outcome.experiment.run, dict(outcome.settings), record)


def get(store: Store, experiment: Experiment, settings: Settings) -> Outcome | None:
    """Return the outcome of this version of the code under these settings, or None if it is not stored."""
    found: dict[str, Any] | None = store.get(experiment.run, dict(settings))
    return None if found is None else Outcome(experiment, settings, **found)


def tables(results: Results) -> dict[str, str]:
    r"""Tables among the results (lists of rows), each as the text of a CSV file.

    >>> tables({"lengths": [{"option": "e2+", "steps": 8.5}], "gamma": 0.9})
    {'lengths': 'option,steps\ne2+,8.5\n'}
    """
    texts = {}
    for name, rows in results.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            texts[name] = text.getvalue()
    return texts
