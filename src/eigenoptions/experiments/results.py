"""Results of experiments: kept on a shelf, so that they are made once, and as tidy CSV for everybody else.

A kept outcome says which experiment, settings and code made it, and on which machine; for other settings or other code
it is made again, from those of its jobs that are still good (see `keeping`).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import Any

from eigenoptions.experiments.experiment import Experiment, Results, Settings
from eigenoptions.experiments.keeping import Shelf


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: its results, under which settings, the seconds it took, and where."""

    experiment: Experiment
    settings: Settings
    results: Results
    seconds: float
    made: dict[str, Any] = field(default_factory=dict)


def keep(shelf: Shelf, outcome: Outcome) -> None:
    """Put an outcome on a shelf."""
    kept = {"results": outcome.results, "seconds": outcome.seconds, "made": outcome.made}
    shelf.keep(outcome.experiment.run, dict(outcome.settings), kept)


def kept(shelf: Shelf, experiment: Experiment, settings: Settings) -> Outcome | None:
    """Find the outcome this code made under these settings, if it is there and whole."""
    found: dict[str, Any] | None = shelf.kept(experiment.run, dict(settings))
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
