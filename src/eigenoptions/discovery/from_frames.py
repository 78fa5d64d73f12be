"""Options of trained features: of frames, and of whatever else cannot be listed.

Features are trained on the samples, and cut into clusters. The recorded transitions
between clusters are a table, and `solve` finds its options. So these options end and
settle like those of any table, and how often to use them is tuned on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.discovery.cells import act_on_cells
from eigenoptions.discovery.samples import Samples
from eigenoptions.discovery.tables import Request
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.solver import solve
from eigenoptions.options.tuning import tune_exploration

if TYPE_CHECKING:
    from eigenoptions.deep import Dataset, LearnedSpectrum


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of samples.

    Attributes
    ----------
    data : Dataset
        The transitions between numbered observations.
    spectrum : LearnedSpectrum
        The eigenfunctions.
    purposes : list of Purpose
        Those that were asked for: coefficients of the encoder's features.
    provenance : dict
        What the options record of it.
    """

    data: Dataset
    spectrum: LearnedSpectrum
    purposes: list[Purpose]
    provenance: dict[str, Any]


def learn_purposes(
    samples: Samples,
    request: Request,
    signs: dict[str, Any],
    settings: dict[str, Any],
    n_functions: int = 9,
) -> Learned:
    """Train features on samples, and take the purposes of their eigenfunctions.

    Parameters
    ----------
    samples : Samples
        The samples.
    request : Request
        What the caller of `discover` asks for.
    signs : dict
        `both_signs` and `skip_zero` of `eigenpurposes`.
    settings : dict
        Those of `deep.learn`; its `steps` is called `training_steps`.
    n_functions : int, default=9
        Fewest eigenfunctions that are learned: clusters need some, also where few
        options are asked for.
    """
    # Imported here: torch is optional, and takes a second.
    from eigenoptions.deep import Dataset, learn
    from eigenoptions.deep.training import warn_unresolved

    if "training_steps" in settings:
        settings = {**settings, "steps": settings["training_steps"]}
        del settings["training_steps"]
    n_vectors = 8
    if request.n_options is not None:
        n_signs = 2 if signs["both_signs"] else 1
        n_vectors = -(-request.n_options // n_signs)
    k = n_vectors + 1 if signs["skip_zero"] else n_vectors

    data = Dataset.of(samples.transitions)
    # Few distinct observations have few functions.
    n_learned = max(k, min(n_functions, len(data.observations) // 2))
    learned = learn(
        data,
        n_learned,
        rng=request.rng,
        progress=request.progress,
        warn=False,
        **settings,
    )
    warn_unresolved(learned, k)
    purposes = eigenpurposes(learned, **signs)[: request.n_options]

    assert learned.certificate is not None
    certificate = {
        "resolved": learned.certificate.resolved[:k].tolist(),
        "score": learned.certificate.score,
    }
    provenance = {"operator": "learned", "certificate": certificate}
    return Learned(data, learned, purposes, provenance)


def solve_clusters(
    learned: Learned, n_actions: int, gamma: float, provenance: dict[str, Any]
) -> LinearOptionSet:
    """Find options on the table of clusters, as options that act on observations.

    Parameters
    ----------
    learned : Learned
        What was learned.
    n_actions : int
        Number of actions.
    gamma : float
        Discount of the options' purposes.
    provenance : dict
        What the options record.
    """
    from eigenoptions.deep.clusters import find_clusters

    clusters, functions, states = find_clusters(learned.data, learned.spectrum)
    n_clusters = clusters.n_features
    mdp = _make_table(learned.data, states, n_clusters, n_actions)

    means = _average(functions, states, n_clusters)
    purposes = []
    for purpose in learned.purposes:
        assert purpose.index is not None
        assert purpose.sign is not None
        potential = purpose.sign * means[:, purpose.index - 1]
        purposes.append(replace(purpose, potential=potential))

    about = {**provenance, **learned.provenance, "learned": "table of clusters"}
    options = solve(mdp, purposes, gamma, provenance=about)
    return act_on_cells(options, clusters, gamma, tune_exploration(mdp, options))


def _make_table(
    data: Dataset, states: IndexArray, n_clusters: int, n_actions: int
) -> MDP:
    """The recorded transitions as a table of clusters."""
    log = (states[data.before], data.action, states[data.after])
    return MDP.from_transitions(log, n_clusters, n_actions)


def _average(functions: FloatArray, states: IndexArray, n_states: int) -> FloatArray:
    """Means ``(n_states, k)`` of functions over the members of each cluster."""
    sums = np.zeros((n_states, functions.shape[1]))
    np.add.at(sums, states, functions)
    sizes = np.bincount(states, minlength=n_states)
    means: FloatArray = sums / np.maximum(sizes, 1)[:, None]
    return means
