"""Feature maps that cut observations into the states of a table."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.mdp import MDP
from eigenoptions.samples.features.feature_map import FeatureMap


class StateMap(FeatureMap):
    """Base class of cells and clusters: phi(s) is a unit vector.

    Each observation belongs to one of finitely many states, so options of the table of
    these states act on observations.
    """

    @property
    def n_features(self) -> int:
        """Number of states S."""
        raise NotImplementedError

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the state that each observation belongs to."""
        raise NotImplementedError

    def measure_distances(self, obs: ArrayLike) -> FloatArray:
        """How far ``(N,)`` each observation is from its state, in widths of one."""
        raise NotImplementedError

    def __call__(self, obs: ArrayLike) -> csr_array:
        """Map observations ``(N, ...)`` to features ``(N, S)``."""
        states = self.find_states(obs)
        n = len(states)
        return csr_array(
            (np.ones(n), states, np.arange(n + 1)), shape=(n, self.n_features)
        )


class StateModel(Protocol):
    """Recorded observations as a table: `VectorModel`, and its like of clusters."""

    @property
    def mdp(self) -> MDP:
        """The table of the states."""

    @property
    def visits(self) -> IndexArray:
        """How many steps ``(S,)`` of the log began in each state."""

    @property
    def examples(self) -> Any:
        """An observation ``(S, ...)`` in each state."""

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the state that each observation belongs to."""
