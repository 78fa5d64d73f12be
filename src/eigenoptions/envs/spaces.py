"""Action spaces of primitive actions and options that sample an option with a given probability.

Most agents explore by ``action_space.sample()``. Uniform samples would spend most steps inside options, which undoes
the search between them (see `eigenoptions.best_option_chance`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int


class OptionSamples:
    """What the two spaces share: samples of available choices, options with probability `option_chance`.

    `mask` holds the choices that are available now, None for all; the environment sets it. `last_sample` is the last
    sample until the environment takes a step, then None.
    """

    n_primitive: int
    option_chance: float | None
    np_random: np.random.Generator
    mask: NDArray[np.int8] | None = None
    last_sample: Any = None

    def _set_choices(
        self, n_primitive: int, n_options: int, option_chance: float | None
    ) -> int:
        """Check the arguments; the number of choices."""
        self.n_primitive = check_int("n_primitive", n_primitive)
        self.option_chance = option_chance
        if option_chance is not None:
            self.option_chance = check_float(
                "option_chance", option_chance, minimum=0, maximum=1
            )
        return self.n_primitive + check_int("n_options", n_options, 0)

    def _draw(self, mask: Any, shape: tuple[int, int]) -> NDArray[np.int64]:
        """One choice per row of a mask of shape (n, choices), by default the present one."""
        mask = self.mask if mask is None else mask
        allowed = np.ones(shape, dtype=np.int8) if mask is None else np.atleast_2d(mask)
        if allowed.shape != shape:
            raise ValueError(
                f"mask must have one entry for each of {shape[1]} choices, got {np.shape(mask)}"
            )
        # The largest random number of the allowed choices wins; the kind that is drawn, if allowed, gets 1 more.
        keys = self.np_random.random(shape) * allowed
        if self.option_chance is not None:
            use_option = self.np_random.random((shape[0], 1)) < self.option_chance
            is_option = np.arange(shape[1]) >= self.n_primitive
            keys += (use_option == is_option) * allowed
        return np.asarray(keys.argmax(axis=1), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        # Where a copy is used, the environment is in another state.
        return {**self.__dict__, "mask": None}


class OptionsSpace(OptionSamples, Discrete):
    """``Discrete(n_primitive + n_options)`` whose samples are options with probability `option_chance`.

    Equal to the `Discrete` of the same size. A copy from a file or another process does not know which options are
    available: it samples from all, and `OptionsWrapper` takes a random primitive action in place of an unavailable one.

    Parameters
    ----------
    n_primitive, n_options
        Number of primitive actions, which come first, and of options.
    option_chance
        Probability that a sample is an option, where one is available. None: uniform over actions and options.
    seed
        As in `Discrete`.

    Examples
    --------
    >>> space = OptionsSpace(4, 8, option_chance=0.05, seed=0)
    >>> sum(int(space.sample()) >= 4 for _ in range(1000)) in range(30, 70), space == Discrete(12)
    (True, True)
    """

    def __init__(
        self,
        n_primitive: int,
        n_options: int,
        option_chance: Any = None,
        seed: Any = None,
    ):
        super().__init__(self._set_choices(n_primitive, n_options, option_chance), seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action or an option that a `mask` (default: the present one) allows, or by a `probability`."""
        if probability is not None:
            return super().sample(mask, probability)
        self.last_sample = self._draw(mask, (1, int(self.n)))[0]
        return self.last_sample  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        n_options = int(self.n) - self.n_primitive
        return f"OptionsSpace({self.n_primitive}, {n_options}, option_chance={self.option_chance})"


class OptionsVectorSpace(OptionSamples, MultiDiscrete):
    """Actions ``(n_envs,)`` of a vector environment: each is sampled as by `OptionsSpace`, which has the parameters.

    Examples
    --------
    >>> space = OptionsVectorSpace(4, 8, n_envs=1000, option_chance=0.05, seed=0)
    >>> int((space.sample() >= 4).sum()) in range(30, 70), space == MultiDiscrete([12] * 1000)
    (True, True)
    """

    def __init__(
        self,
        n_primitive: int,
        n_options: int,
        n_envs: int,
        option_chance: Any = None,
        seed: Any = None,
    ):
        super().__init__(
            [self._set_choices(n_primitive, n_options, option_chance)] * n_envs,
            seed=seed,
        )

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw an action or an option per environment, as `OptionsSpace.sample`; masks are ``(n_envs, n)``."""
        if probability is not None:
            return super().sample(mask, probability)
        self.last_sample = self._draw(mask, (len(self.nvec), int(self.nvec[0])))
        # A copy: agents write greedy actions into it.
        return self.last_sample.copy()  # type: ignore[no-any-return]
