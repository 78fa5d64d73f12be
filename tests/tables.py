"""Options made by hand, for tests in which their dynamics do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import MDP, OptionSet


def make_options(policy: Any, n_actions: int, **fields: Any) -> OptionSet:
    """Options with this policy ``(n, S)`` whose table is unknown, so that they fit every one of the same size."""
    rows = np.asarray(policy)
    stay = np.repeat(np.arange(rows.shape[1])[:, None], n_actions, axis=1)
    provenance = {"dynamics": "estimated"}
    return OptionSet(MDP.from_successors(stay), rows, provenance=provenance, **fields)


def same(first: OptionSet, second: OptionSet) -> bool:
    """Whether two sets hold the same options of the same dynamics, to the last bit."""
    return all(
        a == b
        for a, b in (
            (first.policy.tobytes(), second.policy.tobytes()),
            (first.policy.dtype, second.policy.dtype),
            (first.value.tobytes(), second.value.tobytes()),
            (first.eigenvalues.tobytes(), second.eigenvalues.tobytes()),
            (first.labels, second.labels),
            (first.mdp.fingerprint, second.mdp.fingerprint),
        )
    )
