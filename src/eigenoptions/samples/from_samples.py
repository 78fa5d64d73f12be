"""Options of samples (paper, Section 5).

Samples of numbered states become a table. Where states cannot be listed, options are
learned in a feature space.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigenoptions._registry import sample_readers
from eigenoptions._types import IndexArray
from eigenoptions.discovery.method import NoOptionsError
from eigenoptions.discovery.request import Request
from eigenoptions.discovery.tables import discover_table
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import OptionSet
from eigenoptions.samples import Transitions
from eigenoptions.samples.feature_space import discover_features
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import Samples, has_vectors


def discover_samples(samples: Samples, request: Request) -> OptionSet | LinearOptionSet:
    """Options of samples: of their table, of their cells, or in a feature space."""
    if request.features is None:
        if samples.n_states is not None:
            return _discover_sampled_table(samples, request)
        if has_vectors(samples):
            discover_vectors = sample_readers.find("vectors")
            options: LinearOptionSet = discover_vectors(samples, request)
            return options
    if not request.method.has_features:
        raise ValueError(
            f"method {request.method.name!r} needs numbered states: use "
            'method="eigen" for features'
        )
    return discover_features(samples, request)


def _discover_sampled_table(samples: Samples, request: Request) -> OptionSet:
    """Options of the table that samples of numbered states show.

    A method knows only the states that the samples connect. In the others no option may
    start.
    """
    mdp = MDP.from_transitions(
        samples.transitions,
        samples.n_states,
        samples.n_actions,
        coords=samples.coords,
    )
    states = np.flatnonzero(np.diff(graph(mdp).indptr))
    if not len(states):
        raise NoOptionsError(
            "no transition leads from one state to another: sample more"
        )

    if request.method.settings_of_samples is not None:
        visits = _count_visits(samples.transitions, mdp)
        request = request.with_settings(**request.method.settings_of_samples(visits))
    of_method = {
        name: _restrict_array(value, states, mdp.n_listed)
        for name, value in request.of_method.items()
    }
    request = replace(request, of_method=of_method)

    provenance = {"source": "samples", **samples.provenance}
    options = discover_table(mdp.restrict(states), request, provenance)
    return options.extend(mdp, states)


def _count_visits(transitions: Transitions, mdp: MDP) -> IndexArray:
    """``(S,)`` how often a step began in each state."""
    return np.bincount(transitions.obs, minlength=mdp.n_listed)


def _restrict_array(value: Any, states: IndexArray, n_states: int) -> Any:
    """A setting for some states, if it has one entry per state or per two states."""
    if np.shape(value) == (n_states,):
        return np.asarray(value)[states]
    if np.shape(value) == (n_states, n_states):
        matrix = value if issparse(value) else np.asarray(value)
        return matrix[states][:, states]
    return value
