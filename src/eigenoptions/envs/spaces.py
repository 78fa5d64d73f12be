"""`OptionsSpace`: actions and options as one Discrete space whose random samples are seldom options.

Most agents explore by ``action_space.sample()``. Uniform samples would spend most steps inside options, which undoes
the search between them (see `eigenoptions.best_option_chance`); so a sample is an option with a small chance only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import NDArray

from eigenoptions._validation import check_int
from eigenoptions.options.walks import check_option_chance

# Generic from Gymnasium 1.2.2 on.
if TYPE_CHECKING:
    _Discrete = Discrete[np.int64]
else:
    _Discrete = Discrete


class OptionsSpace(_Discrete):
    """``Discrete(n_primitive + n_options)`` whose samples are options with probability `option_chance`.

    Equal to the `Discrete` of the same size. A copy from a file or another process does not know which options may
    start: it samples from all, and `OptionsWrapper` takes a random primitive action in place of one that may not.

    Parameters
    ----------
    n_primitive, n_options
        Number of primitive actions, which come first, and of options.
    option_chance
        Probability that a sample is an option, where one may start. None: uniform over actions and options that may.
    seed
        As in `Discrete`.

    Attributes
    ----------
    source
        Function that gives the mask ``(n,)`` of the choices possible now, or None for all; the environment sets it.

    Examples
    --------
    >>> space = OptionsSpace(4, 8, option_chance=0.05, seed=0)
    >>> drawn = [space.sample() for _ in range(1000)]
    >>> bool(30 < sum(a >= 4 for a in drawn) < 70)
    True
    >>> space == Discrete(12)
    True
    """

    def __init__(
        self, n_primitive: int, n_options: int, option_chance: float | None = None, seed: int | None = None
    ) -> None:
        most = 2**31 - 1
        n_primitive = check_int("n_primitive", n_primitive, maximum=most)
        n_options = check_int("n_options", n_options, minimum=0, maximum=most)
        self.n_primitive = n_primitive
        self.option_chance = check_option_chance(option_chance)
        self.source: Callable[[], NDArray[np.int8] | None] | None = None
        super().__init__(n_primitive + n_options, seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action or an option, among those that a `mask` (by default the current one) allows.

        With a `probability` this is `Discrete.sample`.
        """
        if mask is None and probability is None and self.source is not None:
            mask = self.source()
        if probability is not None or self.option_chance is None or (mask is not None and not np.any(mask)):
            return super().sample(mask, probability)
        first, n = self.n_primitive, int(self.n)
        allowed = np.ones(n, np.int8) if mask is None else mask
        if np.shape(allowed) != (n,):
            raise ValueError(f"a mask must have shape {(n,)}, got {np.shape(allowed)}")
        actions, options = np.flatnonzero(allowed[:first]), first + np.flatnonzero(allowed[first:])
        use = len(options) > 0 and (len(actions) == 0 or self.np_random.random() < self.option_chance)
        menu = options if use else actions
        return self.dtype.type(menu[self.np_random.integers(len(menu))])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": None}

    def __repr__(self) -> str:
        first = self.n_primitive
        return f"OptionsSpace({first}, {int(self.n) - first}, option_chance={self.option_chance})"


class OptionsVectorSpace(MultiDiscrete):
    """Actions of the copies of a vector environment, ``(n_envs,)``: each is sampled as by `OptionsSpace`.

    Equal to the `MultiDiscrete` of the same sizes.

    Parameters
    ----------
    n_primitive, n_options, n_envs
        Number of primitive actions, of options, and of copies.
    option_chance, seed
        As in `OptionsSpace`.

    Attributes
    ----------
    source
        Function that gives the masks ``(n_envs, n)`` of the choices possible now, or None for all; the environment
        sets it.

    Examples
    --------
    >>> space = OptionsVectorSpace(4, 8, n_envs=1000, option_chance=0.05, seed=0)
    >>> bool(30 < (space.sample() >= 4).sum() < 70)
    True
    >>> space == MultiDiscrete([12] * 1000)
    True
    """

    def __init__(
        self,
        n_primitive: int,
        n_options: int,
        n_envs: int,
        option_chance: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.n_primitive, self.n = n_primitive, n_primitive + n_options
        self.option_chance = check_option_chance(option_chance)
        self.source: Callable[[], NDArray[np.int8] | None] | None = None
        super().__init__([self.n] * n_envs, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw an action or an option per copy, among those that the masks ``(n_envs, n)`` allow.

        With a `probability` this is `MultiDiscrete.sample`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        n_envs = len(self.nvec)
        if mask is None and self.source is not None:
            mask = self.source()
        allowed = np.ones((n_envs, self.n), np.int8) if mask is None else np.asarray(mask)
        if allowed.shape != (n_envs, self.n):
            raise ValueError(f"masks must have shape {(n_envs, self.n)}, got {allowed.shape}")
        return choices(allowed, self.n_primitive, self.option_chance, self.np_random)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": None}

    def __repr__(self) -> str:
        n_options = self.n - self.n_primitive
        chance = f"option_chance={self.option_chance}"
        return f"OptionsVectorSpace({self.n_primitive}, {n_options}, n_envs={len(self.nvec)}, {chance})"


def choices(
    allowed: NDArray[Any], n_primitive: int, chance: float | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``(n,)`` random choices, one per row of ``allowed (n, actions and options)``, by whether each may be chosen.

    They are uniform; or for an option with a `chance`, where one may start.

    >>> choices(np.array([[1, 1, 0], [0, 0, 1]]), 2, 1.0, np.random.default_rng(0)).tolist()
    [0, 2]
    """
    # The largest of the random numbers of the allowed choices; the kind that is drawn, if allowed, gets 1 more.
    keys = rng.random(allowed.shape) * allowed
    if chance is not None:
        use = rng.random(len(allowed)) < chance
        keys[:, :n_primitive] += ~use[:, None] * allowed[:, :n_primitive]
        keys[:, n_primitive:] += use[:, None] * allowed[:, n_primitive:]
    return np.asarray(keys.argmax(axis=1), dtype=np.int64)
