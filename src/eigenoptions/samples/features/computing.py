"""Features of a batch, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigenoptions._types import (
    FeatureFunction,
    FeatureMatrix,
)
from eigenoptions._validation import (
    check_csr,
)
from eigenoptions.samples.features.bounded import BoundedMap


def compute_features(
    features: FeatureFunction,
    obs: Any,
    n_features: int | None = None,
    count: int | None = None,
) -> FeatureMatrix:
    """Compute the features of a batch, and check them.

    Parameters
    ----------
    features : callable
        The feature map.
    obs : batch
        Observations.
    n_features : int, optional
        Number of features d that there must be.
    count : int, optional
        Number of observations N; needed for batches without a length (Dict spaces).

    Returns
    -------
    array or csr_array (N, d)
        The features.
    """
    if not callable(features):
        raise TypeError(
            "features must be a function from a batch of observations to an array, got "
            f"{type(features).__name__}"
        )
    phi = features(obs)
    phi = check_csr("features", phi) if issparse(phi) else np.asarray(phi)

    if count is None:
        count = obs.shape[0] if hasattr(obs, "shape") else len(obs)
    has_rows = phi.ndim == 2 and phi.shape[0] == count
    if not has_rows or n_features not in (None, phi.shape[1]):
        raise ValueError(
            f"features of {count} observations must be "
            f"({count}, {n_features or 'd'}), got {phi.shape}"
        )

    # Maps with bounds return small numbers. The check takes longer than the map.
    if isinstance(features, BoundedMap):
        return phi
    if phi.dtype.kind not in "biuf":
        raise ValueError(
            f"features must be finite numbers below 1e150, got {phi.dtype}"
        )
    # Squares of larger numbers overflow.
    if phi.size and not float(abs(phi).max()) < 1e150:
        raise ValueError(
            f"features must be finite numbers below 1e150, got {float(abs(phi).max())}"
        )
    return phi
