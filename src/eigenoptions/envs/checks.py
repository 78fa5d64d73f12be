"""Whether an environment is the one that options belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions._validation import check_int
from eigenoptions.envs.recognition import Options, StateReader
from eigenoptions.envs.sources import count_actions, env_name, reset_env, step_env
from eigenoptions.options import OptionSet


def check_spaces(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    options: Options,
    mapped: bool = False,
    n_directions: int | None = None,
) -> int:
    """Compare the spaces of a (vector) environment with the options.

    The environment is not stepped.

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        The environment.
    options : OptionSet or sequence of options
        Those of `OptionsWrapper`.
    mapped : bool, default=False
        Whether options act on something else than observations.
    n_directions : int, default=None
        Number of vectors that are the primitive actions; None if they are numbered.

    Returns
    -------
    int
        Number of primitive actions.
    """
    n_actions = n_directions
    if n_actions is None:
        n_actions = count_actions(env)
    are_options = hasattr(options, "__len__") and all(
        hasattr(option, "act") for option in options
    )
    if not are_options:
        raise ValueError(
            "options must be an OptionSet or a list of objects with act(obs), got "
            f"{type(options).__name__}"
        )
    if len(options) == 0:
        raise ValueError("there are no options: discover at least one")

    expected = getattr(options, "n_actions", n_actions)
    if n_directions is not None and isinstance(options, OptionSet):
        raise ValueError(
            f"these options choose among Discrete({expected}), but actions of "
            f"{env_name(env)} are vectors: take planner.places(n) of a Planner"
        )
    if expected != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {expected} actions, "
            f"{env_name(env)} has {n_actions}; discover options on it"
        )
    if isinstance(options, OptionSet) and not mapped:
        _check_observations(env, options)
    return n_actions


def _check_observations(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any], options: OptionSet
) -> None:
    """Raise ValueError unless observations are the numbers of the options' states.

    Options whose MDP recognises its states accept any observation.
    """
    if options.mdp.recognition is not None:
        return

    space = getattr(env, "single_observation_space", env.observation_space)
    n_states = options.mdp.n_listed
    are_states = (
        isinstance(space, Discrete) and space.start == 0 and space.n == n_states
    )
    if not are_states:
        raise ValueError(
            f"these options act on the numbers of {n_states} states, but "
            f"observations are {space}: discover options on this environment, or pass "
            "state=, a function from an observation to its state's number"
        )


def check_dynamics(
    options: OptionSet,
    env: gym.Env[Any, Any],
    *,
    state: Callable[[Any], Any] | None = None,
    steps: int = 200,
) -> None:
    """Raise ValueError if a random walk makes a move that the options' MDP cannot make.

    ``options.check(env)`` calls it. The environment takes `steps` steps: reset it
    before you use it again.

    Parameters
    ----------
    options : OptionSet
        Options of the environment.
    env : gymnasium.Env
        The environment.
    state : callable, default=None
        That of `OptionsWrapper`.
    steps : int, default=200
        Number of random steps.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=2)
    >>> check_dynamics(options, eo.envs.MazeEnv("four-rooms"))
    """
    n_actions = check_spaces(env, options, mapped=state is not None)
    check_int("steps", steps)
    rng = np.random.default_rng(0)
    reader = StateReader(options, state)

    # Options of one layout need its seed in every episode; others only a first one.
    layout_seed = None if reader.recognition is None else reader.recognition.seed
    seed: int | None = layout_seed or 0
    number = 0
    begins = True
    for _ in range(steps):
        if begins:
            obs, _ = reset_env(env, seed=seed)
            seed = layout_seed
            number = reader.read(env, obs, is_first=True)

        before = number
        action = int(rng.integers(n_actions))
        obs, _, terminated, truncated, _ = step_env(env, action)
        number = reader.read(env, obs, action=action)
        reader.check_move(before, number, action)
        begins = terminated or truncated
