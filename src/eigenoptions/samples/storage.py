"""Options of a feature space from a file, which `options.storage` reads."""

from __future__ import annotations

from typing import Any

from eigenoptions._types import FeatureFunction
from eigenoptions.options.files import Arrays
from eigenoptions.options.records import Purpose
from eigenoptions.options.tuning import Exploration
from eigenoptions.samples.features import features_from_dict
from eigenoptions.samples.linear import LinearOptionSet


def make_linear_options(
    header: dict[str, Any],
    arrays: Arrays,
    features: FeatureFunction | None,
    basis: FeatureFunction | None,
) -> LinearOptionSet:
    """Return the options that `LinearOptionSet._collect_file_contents` described."""
    phi = _make_feature_map("features", header, arrays, features)
    psi = _make_feature_map("basis", header, arrays, basis)
    purposes = []
    for direction, fields in zip(arrays["directions"], header["purposes"], strict=True):
        purposes.append(Purpose(direction, **fields))
    exploration = None
    if "exploration" in header:
        exploration = Exploration(**header["exploration"])
    return LinearOptionSet(
        purposes,
        phi,  # type: ignore[arg-type]
        n_actions=header["n_actions"],
        weights=arrays.get("weights"),
        basis=psi,
        threshold=arrays["threshold"],
        provenance=header["provenance"],
        patience=header["patience"],
        stop_chance=header["stop_chance"],
        gamma=header.get("gamma"),
        exploration=exploration,
    )


def _make_feature_map(
    name: str,
    header: dict[str, Any],
    arrays: Arrays,
    features: FeatureFunction | None,
) -> FeatureFunction | None:
    """Return the feature map that is given, or else described in the file."""
    record = header[name]
    prefix = f"{name}."
    own_arrays = {}
    for key, array in arrays.items():
        if key.startswith(prefix):
            own_arrays[key.removeprefix(prefix)] = array
    if own_arrays:
        record = {**record, "arrays": own_arrays}
    return features_from_dict(record, features)
