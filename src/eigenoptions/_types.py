"""Types that the whole library shares: arrays, progress, and what others bring.

An environment, a feature map and an option need no base class of ours. The protocols
say what is asked of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

# What networks compute with.
Float32Array: TypeAlias = NDArray[np.float32]

# Numbers of states, actions or rows, as NumPy's own index functions return them.
IndexArray: TypeAlias = NDArray[np.intp]

# Integers of any width: policies are stored in the smallest type that holds them.
IntegerArray: TypeAlias = NDArray[np.integer[Any]]

# Called with how much of the work is done, and how much there is.
Progress: TypeAlias = Callable[[int, int], object]

# A seed or a generator, as `make_generator` accepts it.
Randomness: TypeAlias = int | np.random.Generator


class Environment(Protocol):
    """What is asked of an environment: the interface of `gymnasium.Env`."""

    action_space: Any
    observation_space: Any

    @property
    def unwrapped(self) -> Any:
        """The environment without its wrappers."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: its first observation, and further information."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step: observation, reward, terminated, truncated, information."""


class ActsOnObservations(Protocol):
    """What is asked of an option: the action at an observation, or TERMINATE (-1)."""

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE."""


# Features (N, d) of a batch of observations, dense or sparse.
FeatureMatrix: TypeAlias = "NDArray[Any] | csr_array"

# From a batch of observations (N, ...) to features (N, d).
FeatureFunction: TypeAlias = Callable[[Any], Any]
