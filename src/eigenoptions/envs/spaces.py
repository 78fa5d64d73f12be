"""Action spaces that sample an option with a given probability.

Most agents explore by ``action_space.sample()``. Uniform samples would spend most steps
inside options, which undoes the search between them (see
`eigenoptions.best_option_chance`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int


class GuidedSamples:
    """Mark of an action space whose samples lead somewhere, and are not just drawn.

    Wrappers of options take their samples of primitive actions from it, so that an
    agent which explores by ``action_space.sample()`` is led there around options, too.
    """


class OptionSamples:
    """What the two spaces share: samples of available choices.

    Attributes
    ----------
    n_primitive : int
        Number of primitive actions. They come first, then the options.
    option_chance : float or None
        Probability that a sample is an option, where one is available. None: uniform
        over actions and options.
    mask : ndarray or None
        The choices that are available now; None: all. The environment sets it.
    """

    n_primitive: int
    option_chance: float | None
    np_random: np.random.Generator
    mask: NDArray[np.int8] | None = None

    def _set_choices(
        self, n_primitive: int, n_options: int, option_chance: float | None
    ) -> int:
        """Check and keep the arguments; return the number of choices."""
        self.n_primitive = check_int("n_primitive", n_primitive, 0)
        self.option_chance = option_chance
        if option_chance is not None:
            self.option_chance = check_float(
                "option_chance", option_chance, minimum=0, maximum=1
            )
        return self.n_primitive + check_int("n_options", n_options, 0)

    def _draw(
        self, mask: NDArray[np.int8] | None, n_envs: int, n_choices: int
    ) -> NDArray[np.int64]:
        """Draw one choice per row of a mask ``(n_envs, n_choices)``.

        The default is the present mask.
        """
        shape = (n_envs, n_choices)
        mask = self.mask if mask is None else mask
        if mask is None:
            allowed = np.ones(shape, dtype=np.int8)
        else:
            allowed = np.atleast_2d(mask)
            if allowed.shape != shape:
                raise ValueError(
                    f"mask must have one entry for each of {n_choices} choices, got "
                    f"{np.shape(mask)}"
                )

        # The largest random number of the allowed choices wins. The kind that is drawn,
        # actions or options, gets 1 more where it is allowed.
        keys = self.np_random.random(shape) * allowed
        if self.option_chance is not None:
            use_option = self.np_random.random((n_envs, 1)) < self.option_chance
            is_option = np.arange(n_choices) >= self.n_primitive
            keys += (use_option == is_option) * allowed
        return np.asarray(keys.argmax(axis=1), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        # Where a copy is used, the environment is in another state.
        return {**self.__dict__, "mask": None, "primitive_space": None}


class OptionsSpace(OptionSamples, Discrete):
    """``Discrete(n_primitive + n_options)`` that samples options less often.

    It is equal to the `Discrete` of the same size. A copy from a file or another
    process does not know which options are available: it samples from all, and
    `OptionsWrapper` takes a random primitive action in place of an unavailable one.

    Parameters
    ----------
    n_primitive : int
        Number of primitive actions, which come first.
    n_options : int
        Number of options.
    option_chance : float, default=None
        Probability that a sample is an option, where one is available. None: uniform
        over actions and options.
    seed : int or numpy.random.Generator, default=None
        As in `Discrete`.

    Examples
    --------
    >>> space = OptionsSpace(4, 8, option_chance=0.05, seed=0)
    >>> n_sampled = sum(int(space.sample()) >= 4 for _ in range(1000))
    >>> 30 < n_sampled < 70, space == Discrete(12)
    (True, True)
    """

    # What primitive actions are sampled from, if it is not uniform.
    primitive_space: Space[Any] | None = None
    # The discount per primitive step of an environment whose decisions take several;
    # adapters compare it with that of their agents. None where they take one.
    gamma: float | None = None
    # What the wrapper observes; an agent may see it changed by wrappers around.
    step_space: Space[Any] | None = None

    def __init__(
        self,
        n_primitive: int,
        n_options: int,
        option_chance: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        n_choices = self._set_choices(n_primitive, n_options, option_chance)
        super().__init__(n_choices, seed)

    def sample(
        self,
        mask: NDArray[np.int8] | None = None,
        probability: NDArray[Any] | None = None,
    ) -> np.int64:
        """Draw an action or an option.

        Parameters
        ----------
        mask : ndarray of shape (n,), default=None
            The choices that are allowed. None: those that are available now.
        probability : ndarray of shape (n,), default=None
            Probability of each choice, in place of `option_chance`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        drawn: np.int64 = self._draw(mask, 1, int(self.n))[0]
        if self.primitive_space is not None and drawn < self.n_primitive:
            drawn = self.primitive_space.sample()
        return drawn

    def __repr__(self) -> str:
        n_options = int(self.n) - self.n_primitive
        return (
            f"OptionsSpace({self.n_primitive}, {n_options}, "
            f"option_chance={self.option_chance})"
        )


class OptionsVectorSpace(OptionSamples, MultiDiscrete):
    """Actions ``(n_envs,)`` of a vector environment, each sampled as by `OptionsSpace`.

    Parameters
    ----------
    n_primitive, n_options : int
        As in `OptionsSpace`.
    n_envs : int
        Number of environments.
    option_chance, seed
        As in `OptionsSpace`.

    Examples
    --------
    >>> space = OptionsVectorSpace(4, 8, n_envs=1000, option_chance=0.05, seed=0)
    >>> n_sampled = int((space.sample() >= 4).sum())
    >>> 30 < n_sampled < 70, space == MultiDiscrete([12] * 1000)
    (True, True)
    """

    # As in `OptionsSpace`.
    primitive_space: Space[Any] | None = None

    def __init__(
        self,
        n_primitive: int,
        n_options: int,
        n_envs: int,
        option_chance: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        n_choices = self._set_choices(n_primitive, n_options, option_chance)
        super().__init__([n_choices] * n_envs, seed=seed)

    def sample(
        self,
        mask: Any = None,
        probability: Any = None,
    ) -> NDArray[np.int64]:
        """Draw an action or an option per environment.

        Parameters
        ----------
        mask, probability : ndarray of shape (n_envs, n), default=None
            As in `OptionsSpace.sample`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        drawn = self._draw(mask, len(self.nvec), int(self.nvec[0]))
        if self.primitive_space is not None:
            is_primitive = drawn < self.n_primitive
            drawn[is_primitive] = self.primitive_space.sample()[is_primitive]
        return drawn
