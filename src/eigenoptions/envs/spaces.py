"""Action spaces of primitive actions and options that sample an option with a given probability.

Most agents explore by ``action_space.sample()``. Uniform samples would spend most steps inside options, which undoes
the search between them (see `eigenoptions.best_option_chance`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
    mask
        The choices ``(n,)`` that are available now, or None for all; the environment sets it.
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
        self.mask: NDArray[np.int8] | None = None
        self.last_sample: np.int64 | None = None
        super().__init__(self.n_primitive + check_int("n_options", n_options, 0, 2**31 - 1), seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action or an option, among those that a `mask` (by default the present one) allows.

        With a `probability` this is `Discrete.sample`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        allowed = _check_mask(self.mask if mask is None else mask, (int(self.n),))
        choice = _sample(allowed[None], self.n_primitive, self.option_chance, self.np_random)[0]
        self.last_sample = self.dtype.type(choice)
        return self.last_sample

    def __getstate__(self) -> dict[str, Any]:
        # Where a copy is used, the environment is in another state.
        return {**self.__dict__, "mask": None}

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
    mask, last_sample
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
        self.mask: NDArray[np.int8] | None = None
        self.last_sample: NDArray[np.int64] | None = None
        super().__init__([self.n] * n_envs, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw an action or an option per environment, among those that the masks ``(n_envs, n)`` allow.

        With a `probability` this is `MultiDiscrete.sample`.
        """
        if probability is not None:
            return super().sample(mask, probability)
        allowed = _check_mask(self.mask if mask is None else mask, (len(self.nvec), self.n))
        self.last_sample = _sample(allowed, self.n_primitive, self.option_chance, self.np_random)
        # A copy: agents write greedy actions into it.
        return self.last_sample.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "mask": None}

    def __repr__(self) -> str:
        n_options, n_envs = self.n - self.n_primitive, len(self.nvec)
        chance = f"option_chance={self.option_chance}"
        return f"OptionsVectorSpace({self.n_primitive}, {n_options}, n_envs={n_envs}, {chance})"


def _sample(
    allowed: NDArray[Any], n_primitive: int, option_chance: float | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """One allowed choice per row of ``allowed (n, actions and options)``; see `OptionsSpace`."""
    # The largest random number of the allowed choices wins; the kind that is drawn, if allowed, gets 1 more.
    keys = rng.random(allowed.shape) * allowed
    if option_chance is not None:
        use_option = rng.random((len(allowed), 1)) < option_chance
        is_option = np.arange(allowed.shape[1]) >= n_primitive
        keys += (use_option == is_option) * allowed
    return np.asarray(keys.argmax(axis=1), dtype=np.int64)


def check_spaces(env: Any, options: OptionSet | Sequence[Any], mapped: bool = False) -> int:
    """Number of primitive actions; ValueError unless the spaces of a (vector) environment are those of the options.

    `mapped`: the options act on something else than the observations. The environment is not stepped.
    """
    n_actions = count_actions(env)
    if not hasattr(options, "__len__") or not all(hasattr(option, "act") for option in options):
        kind = type(options).__name__
        raise ValueError(f"options must be an OptionSet or a list of objects with act(obs), got {kind}")
    if len(options) == 0:
        raise ValueError("there are no options: discover at least one")
    if getattr(options, "n_actions", n_actions) != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {options.n_actions} actions, "  # type: ignore[union-attr]
            f"{env_name(env)} has {n_actions}; discover options on it"
        )
    if isinstance(options, OptionSet) and not mapped and options.mdp.recognition is None:
        space = getattr(env, "single_observation_space", env.observation_space)
        if not isinstance(space, Discrete) or space.start != 0:
            raise ValueError(
                f"these options act on the numbers of {options.n_states} states, but observations are {space}: pass "
                "state=, a function from an observation to its state's number, or discover options on this environment"
            )
        if space.n != options.n_states:
            raise ValueError(
                f"options of another environment: they have {options.n_states} states, {env_name(env)} has {space.n}; "
                "discover options on it (from_env)"
            )
    return n_actions


def _check_chance(option_chance: float | None) -> float | None:
    if option_chance is not None:
        check_float("option_chance", option_chance, minimum=0, maximum=1)
    return option_chance


def _check_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if mask is None:
        return np.ones(shape, dtype=np.int8)
    if np.shape(mask) != shape:
        raise ValueError(f"mask must have shape {shape}, got {np.shape(mask)}")
    return np.asarray(mask)
