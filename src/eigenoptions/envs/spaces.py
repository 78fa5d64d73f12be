"""Action spaces of primitive actions and options that sample an option with a given probability.

Most agents explore by ``action_space.sample()``. Uniform samples would spend most steps inside options, which undoes
the search between them (see `eigenoptions.best_option_chance`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.options import OptionSet

# Generic from Gymnasium 1.2.2 on.
if TYPE_CHECKING:
    _Discrete = Discrete[np.int64]
else:
    _Discrete = Discrete


class OptionsSpace(_Discrete):
    """``Discrete(n_primitive + n_options)`` whose samples are options with probability `option_chance`.

    Equal to the `Discrete` of the same size. A copy from a file or another process does not know which options are
    available: it samples from all, and `OptionsWrapper` takes a random primitive action in place of an unavailable one.

    Parameters
    ----------
    n_primitive, n_options
        Number of primitive actions, which come first, and of options.
    option_chance
        Probability that a sample is an option, where one is available. None: uniform over actions and available
        options.
    seed
        As in `Discrete`.

    Attributes
    ----------
    current_mask
        Function that returns the mask ``(n,)`` of the present choices, or None for all; the environment sets it.
    last_sample
        The last sample, until the environment takes a step; None: no sample since then.

    Examples
    --------
    >>> space = OptionsSpace(4, 8, option_chance=0.05, seed=0)
    >>> samples = [space.sample() for _ in range(1000)]
    >>> bool(30 < sum(a >= 4 for a in samples) < 70)
    True
    >>> space == Discrete(12)
    True
    """

    def __init__(
        self, n_primitive: int, n_options: int, option_chance: float | None = None, seed: int | None = None
    ) -> None:
        self.n_primitive = check_int("n_primitive", n_primitive, maximum=2**31 - 1)
        self.option_chance = _check_chance(option_chance)
        self.current_mask: Callable[[], NDArray[np.int8] | None] | None = None
        self.last_sample: np.int64 | None = None
        super().__init__(self.n_primitive + check_int("n_options", n_options, 0, 2**31 - 1), seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action or an option, among those that a `mask` (by default the current one) allows.

        With a `probability` this is `Discrete.sample`.
        """
        if mask is None and probability is None and self.current_mask is not None:
            mask = self.current_mask()
        if probability is not None or self.option_chance is None or (mask is not None and not np.any(mask)):
            self.last_sample = super().sample(mask, probability)
            return self.last_sample
        n_primitive, n = self.n_primitive, int(self.n)
        mask = np.ones(n, np.int8) if mask is None else mask
        if np.shape(mask) != (n,):
            raise ValueError(f"mask must have shape {(n,)}, got {np.shape(mask)}")
        actions, options = (
            np.flatnonzero(mask[:n_primitive]),
            n_primitive + np.flatnonzero(mask[n_primitive:]),
        )
        use_option = len(options) > 0 and (len(actions) == 0 or self.np_random.random() < self.option_chance)
        choices = options if use_option else actions
        self.last_sample = self.dtype.type(choices[self.np_random.integers(len(choices))])
        return self.last_sample

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "current_mask": None}

    def __repr__(self) -> str:
        n_options = int(self.n) - self.n_primitive
        return f"OptionsSpace({self.n_primitive}, {n_options}, option_chance={self.option_chance})"


class OptionsVectorSpace(MultiDiscrete):
    """Actions of a vector environment, ``(n_envs,)``: each is sampled as by `OptionsSpace`.

    Equal to the `MultiDiscrete` of the same sizes.

    Parameters
    ----------
    n_primitive, n_options, n_envs
        Number of primitive actions, of options, and of environments.
    option_chance, seed
        As in `OptionsSpace`.

    Attributes
    ----------
    current_mask, last_sample
        As in `OptionsSpace`, with shapes ``(n_envs, n)`` and ``(n_envs,)``.

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
        self.option_chance = _check_chance(option_chance)
        self.current_mask: Callable[[], NDArray[np.int8] | None] | None = None
        self.last_sample: NDArray[np.int64] | None = None
        super().__init__([self.n] * n_envs, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw an action or an option per environment, among those that the masks ``(n_envs, n)`` allow.

        With a `probability` this is `MultiDiscrete.sample`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        shape = len(self.nvec), self.n
        if mask is None and self.current_mask is not None:
            mask = self.current_mask()
        allowed = np.ones(shape, np.int8) if mask is None else np.asarray(mask)
        if allowed.shape != shape:
            raise ValueError(f"mask must have shape {shape}, got {allowed.shape}")
        # The largest random number of the allowed choices wins; the kind that is drawn, if allowed, gets 1 more.
        keys = self.np_random.random(shape) * allowed
        if self.option_chance is not None:
            use_option = self.np_random.random((shape[0], 1)) < self.option_chance
            is_option = np.arange(self.n) >= self.n_primitive
            keys += (use_option == is_option) * allowed
        self.last_sample = keys.argmax(axis=1)
        # A copy: agents write greedy actions into it.
        return self.last_sample.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "current_mask": None}

    def __repr__(self) -> str:
        n_options, n_envs = self.n - self.n_primitive, len(self.nvec)
        chance = f"option_chance={self.option_chance}"
        return f"OptionsVectorSpace({self.n_primitive}, {n_options}, n_envs={n_envs}, {chance})"


def check_spaces(env: Any, options: OptionSet | Sequence[Any], mapped: bool = False) -> int:
    """Raise ValueError unless the actions and observations of an environment are those of the options.

    Parameters
    ----------
    env
        An environment or a vector environment. It is not stepped.
    options
        An `OptionSet`, a `LinearOptionSet`, or a sequence of objects with ``act(obs)``.
    mapped
        Whether the options act on something else than the observations.

    Returns
    -------
    int
        The number of primitive actions.
    """
    n_actions = count_actions(env)
    if not hasattr(options, "__len__"):
        raise ValueError(f"options must be an OptionSet or a list of options, got {type(options).__name__}")
    if len(options) == 0:
        raise ValueError("there are no options: discover at least one")
    if not all(callable(getattr(option, "act", None)) for option in options):
        raise ValueError("every option needs a method act(obs): give an OptionSet or objects like Option")
    if getattr(options, "n_actions", n_actions) != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {options.n_actions} actions, "  # type: ignore[union-attr]
            f"{env_name(env)} has {n_actions}; discover options on it"
        )
    if isinstance(options, OptionSet) and not mapped:
        space = getattr(env, "single_observation_space", env.observation_space)
        if not isinstance(space, Discrete) or space.start != 0:
            raise ValueError(
                f"these options act on the numbers of {options.n_states} states, but observations are {space}: pass "
                "state=, a function from an observation to its state's number (or wrap the environment in Numbered)"
            )
        if space.n != options.n_states:
            raise ValueError(
                f"options of another environment: they have {options.n_states} states, {env_name(env)} has {space.n}; "
                "discover options on it (from_env)"
            )
    return n_actions


def _check_chance(option_chance: float | None) -> float | None:
    if option_chance is None:
        return None
    return check_float("option_chance", option_chance, minimum=0, maximum=1)
