"""Counts and motions as plain values, which a file of rules holds as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.explore.layouts.changes import Change
from eigenoptions.explore.layouts.counts import Counts, Tally
from eigenoptions.explore.layouts.motions import Motion, Motions


def pack_text(value: Any) -> NDArray[np.uint8]:
    """Return plain values as an array of the bytes of JSON."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpack_text(array: NDArray[np.uint8]) -> Any:
    """Return the plain values of such an array."""
    return json.loads(array.tobytes())


def pack_changes(changes: tuple[Change | None, ...]) -> list[Any]:
    """Return descriptions as plain values."""
    return [None if change is None else [*change] for change in changes]


def unpack_changes(values: list[Any]) -> tuple[Change | None, ...]:
    """Return descriptions from plain values."""
    return tuple(None if v is None else Change(*map(_freeze, v)) for v in values)


def pack_counts(counts: Counts) -> dict[str, Any]:
    """Return what followed in which context as plain values.

    >>> unpack_counts(pack_counts(Counts()))
    Counts(tallies={}, pairs={}, things=())
    """
    rows = []
    for (action, kind), tallies in counts.tallies.items():
        for features, tally in tallies.items():
            parts = [[[*change, n] for change, n in p.items()] for p in tally.parts]
            rows.append([action, kind, features, parts, tally.n, tally.last])
    pairs = [[*key, *pair] for key, pair in counts.pairs.items()]
    return {"tallies": rows, "pairs": pairs, "things": counts.things}


def unpack_counts(values: dict[str, Any]) -> Counts:
    """Return counts from plain values."""
    counts = Counts(things=_freeze(values["things"]))
    for action, kind, features, parts, n, last in values["tallies"]:
        tallies = counts.tallies.setdefault((action, kind), {})
        tallies[tuple(features)] = Tally([_unpack_part(p) for p in parts], n, last)
    for *key, n_different, n_compared in values["pairs"]:
        counts.pairs[tuple(key)] = (n_different, n_compared)
    return counts


def _unpack_part(part: list[list[Any]]) -> Counter[Change]:
    return Counter({Change(*map(_freeze, change)): n for *change, n in part})


def _freeze(value: Any) -> Any:
    """Return lists of JSON as tuples."""
    if isinstance(value, list):
        return tuple(map(_freeze, value))
    return value


def pack_motions(motions: Motions) -> dict[str, Any]:
    """Return motions and what speaks for them as plain values."""
    return {
        "motions": motions.motions,
        "is_ready": motions.is_ready,
        "evidence": [
            [
                evidence.contradicted.tolist(),
                evidence.n_pairs,
                evidence.n_tries,
            ]
            for evidence in motions.evidence
        ],
    }


def unpack_motions(values: dict[str, Any]) -> Motions:
    """Return motions from plain values."""
    motions = Motions(len(values["motions"]))
    motions.motions = [Motion(turns, tuple(step)) for turns, step in values["motions"]]
    motions.is_ready = values["is_ready"]
    for evidence, row in zip(motions.evidence, values["evidence"], strict=True):
        contradicted, evidence.n_pairs, evidence.n_tries = row
        evidence.contradicted = np.array(contradicted, dtype=np.float64)
    return motions
