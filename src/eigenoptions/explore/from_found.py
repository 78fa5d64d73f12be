"""Options of the known part of an environment: what `explore` found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from gymnasium.spaces import Box

from eigenoptions._registry import source_readers
from eigenoptions.discovery.features import Fitted
from eigenoptions.discovery.request import Request
from eigenoptions.discovery.sources import ReadSource
from eigenoptions.discovery.tables import discover_table
from eigenoptions.explore.found import Found
from eigenoptions.explore.found_vectors import VectorFound
from eigenoptions.options import OptionSet


def read_found(found: Found, request: Request) -> ReadSource:
    """Read what was explored; its transitions, where the caller wants samples.

    Of vectors these are cut into cells that are as wide as the steps allow.
    """
    transitions = found.transitions
    if isinstance(found, VectorFound):
        transitions = found.numbered_transitions
        request = _declare_vectors(found, request)
    if request.wants_samples or isinstance(found, VectorFound):
        read: ReadSource = source_readers.find("data")(transitions, request)
        return read
    return ReadSource(
        table=None,
        kind="explored",
        request=request,
        is_environment=True,
        discover_room=partial(discover_found, found),
    )


def _declare_vectors(found: VectorFound, request: Request) -> Request:
    """The request with what is known of the steps, where the caller does not say it."""
    n_actions = request.n_actions
    if n_actions is None:
        n_actions = len(found.controls)
    space = request.space
    if space is None:
        # Bounds that were not met are not known.
        shape = found.transitions.obs.shape[1:]
        space = Box(-np.inf, np.inf, shape, np.float64)
    columns = request.columns
    features = request.features
    # A function takes whole observations.
    is_function = isinstance(features, Fitted) and callable(features.features)
    if columns is None and found.columns is not None and not is_function:
        columns = list(found.columns)
    return replace(request, n_actions=n_actions, space=space, columns=columns)


def discover_found(found: Found, request: Request) -> OptionSet:
    """Return options of the states that were seen.

    Moves that were not tried are no edges of the graph. Where observations are numbers
    of states, options have all of these numbers, and none starts in a state that was
    not seen.

    Parameters
    ----------
    found : Found
        What was found.
    request : Request
        What the caller of `discover` asks for.
    """
    request = request.with_default_number()
    provenance = {"source": "explored"}
    mdp = found.mdp
    if len(found.seen) == mdp.n_listed:
        return discover_table(mdp, request, provenance, is_environment=True)

    seen = np.sort(found.seen)
    part = mdp.restrict(seen)
    options = discover_table(part, request, provenance, is_environment=True)
    return options.extend(mdp, seen)
