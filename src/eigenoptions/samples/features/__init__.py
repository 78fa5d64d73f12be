"""Feature maps: from observations ``(N, ...)`` to rows phi(s) ``(N, d)``.

Any function of a batch is a feature map (paper, Section 5.2). The classes here also
have a name, by which `discover` and options files refer to them. A new map is one
subclass of `FeatureMap` with a `name`, or of `BoundedMap` if it needs bounds of the
observations.
"""

from __future__ import annotations

from eigenoptions.samples.features.bits import Bits
from eigenoptions.samples.features.bounded import BoundedMap
from eigenoptions.samples.features.bounds import find_bounds
from eigenoptions.samples.features.computing import compute_features
from eigenoptions.samples.features.feature_map import (
    FeatureMap,
    features_from_dict,
    features_to_dict,
    get_feature_map,
    make_features,
)
from eigenoptions.samples.features.fourier import Fourier
from eigenoptions.samples.features.observations import (
    add_batch_axis,
    flatten_observations,
)
from eigenoptions.samples.features.one_hot import OneHot
from eigenoptions.samples.features.raw import Raw
from eigenoptions.samples.features.states import StateMap, StateModel
from eigenoptions.samples.features.tiles import Tiles

__all__ = [
    "FeatureMap",
    "get_feature_map",
    "make_features",
    "features_to_dict",
    "features_from_dict",
    "flatten_observations",
    "add_batch_axis",
    "find_bounds",
    "BoundedMap",
    "compute_features",
    "OneHot",
    "Bits",
    "Raw",
    "StateMap",
    "StateModel",
    "Fourier",
    "Tiles",
]
