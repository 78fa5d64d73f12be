"""What a claim about a game is judged by: parts of the results, and the two kinds of tests (see `claims`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions.experiments.atari.measures import Table
from eigenoptions.experiments.atari.statistics import Effect, effect_of
from eigenoptions.experiments.atari.study import rolled
from eigenoptions.experiments.experiment import Results

# Collections that refute, or show a difference: one has one start set and one basis.
MIN_COLLECTIONS = 3


def collections_of(results: Results) -> int:
    """Number of collections."""
    return len({row["collection"] for row in results["starts"]})


def seen(passed: bool, results: Results) -> bool | None:
    """An observation: one example shows it, its absence needs enough collections."""
    return True if passed else False if collections_of(results) >= MIN_COLLECTIONS else None


def more(found: Effect, results: Results) -> bool | None:
    """Whether singular directions have more of something than others; only enough collections decide."""
    if collections_of(results) < MIN_COLLECTIONS:
        return None
    return True if found.better else False if found.difference.above() is False else None


def longest(results: Results) -> Table:
    """Long roll-outs, where there are any; else those of the first start."""
    name, first = ("long", {}) if "long" in results else ("rollouts", {"start": 0.0})
    return rolled(results, name, variant=0, **first)


def frames_of(results: Results) -> int:
    """Frames of the longest roll-outs."""
    return int(results.get("long_frames") or results["frames"])


def best_of(table: Table, measure: str = "score") -> list[float]:
    """Largest value of a measure, by collection."""
    return [float(table[measure][table["collection"] == c].max()) for c in np.unique(table["collection"])]


def effect_in(results: Results, measure: str, against: str, variant: str | None = None) -> Effect:
    """Effect of singular directions against another kind; by default of the first variant."""
    wanted = (variant or results["variants"][0], against, measure)
    (row,) = (r for r in results["effects"] if (r["variant"], r["against"], r["measure"]) == wanted)
    return effect_of(row)


def level_in(results: Results, kind: str) -> dict[str, Any]:
    """Agreement and share of reliable options of a kind, of the first variant."""
    wanted = (results["variants"][0], kind)
    (row,) = (r for r in results["levels"] if (r["variant"], r["kind"]) == wanted)
    return dict(row)


def each_of(table: Table) -> int:
    """Options of one collection and start."""
    first = (table["collection"] == table["collection"][0]) & (table["start"] == table["start"][0])
    return int(first.sum())


def share_of(found: Sequence[Any], table: Table) -> str:
    """How many of how many options."""
    starts = len(np.unique(table["start"]))
    return f"{len(found)} of {len(table['kind']) // starts}"


def listed(values: Sequence[float]) -> str:
    """Numbers with commas between."""
    return ", ".join(f"{value:g}" for value in values)
