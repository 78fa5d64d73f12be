"""One feature per state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from eigenoptions.samples.features.feature_map import FeatureMap


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """One feature per state: phi(s) is a unit vector. The result is sparse.

    Parameters
    ----------
    n_states : int
        Number of states.

    Examples
    --------
    >>> OneHot(3)(np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    n_states: int

    name: ClassVar[str] = "one-hot"

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """One feature per number of a Discrete space, or up to the largest of `obs`."""
        if space is None and obs is not None:
            return cls(int(np.max(obs)) + 1)
        # MultiBinary has n, too, but its observations are arrays.
        if not hasattr(space, "n") or space.shape:
            raise ValueError(
                f"one-hot features need Discrete observations, got {space}: use fourier"
            )
        return cls(int(space.n))

    def __call__(self, obs: ArrayLike) -> csr_array:
        """Map numbers of states ``(N,)`` to features ``(N, n_states)``."""
        states = np.asarray(obs)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(
                "one-hot features need state numbers (N,), "
                f"got {states.dtype} {states.shape}"
            )
        n = len(states)
        if n > 0 and not 0 <= states.min() <= states.max() < self.n_states:
            raise ValueError(
                f"states must be in 0..{self.n_states - 1}, "
                f"got {states.min()}..{states.max()}"
            )
        return csr_array(
            (np.ones(n), states.astype(np.int64), np.arange(n + 1)),
            shape=(n, self.n_states),
        )
