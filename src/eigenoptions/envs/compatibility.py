"""Whether options fit an environment: its spaces (`check_spaces`), and its dynamics (`check_dynamics`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions._validation import check_int, check_state
from eigenoptions.envs.finite import mdp_from_table
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.options import OptionSet


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


def check_dynamics(
    options: OptionSet,
    env: gym.Env[Any, Any],
    *,
    state: Callable[[Any], Any] | None = None,
    steps: int = 200,
    rng: int = 0,
) -> None:
    """Raise ValueError unless an environment moves as the MDP of the options does; ``options.check(env)`` calls it.

    Where the environment has a table, the tables are compared. Elsewhere the environment takes a random walk, and each
    of its moves must be possible in the MDP: reset it before you use it again.

    Parameters
    ----------
    options
        Options with their MDP.
    env
        The environment they shall act in.
    state
        As in `OptionsWrapper`.
    steps
        Length of the random walk.
    rng
        Seed of the walk.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=2)
    >>> check_dynamics(options, eo.envs.MazeEnv("four-rooms"))
    """
    n_actions = check_spaces(env, options, mapped=state is not None)
    mdp = mdp_from_table(env) if state is None else None
    if mdp is not None:
        options.check(mdp)
        return
    generator = np.random.default_rng(check_int("rng", rng, 0))
    table, n_states = options.mdp.transition, options.n_states

    def read_state(obs: Any) -> int:
        return check_state(obs if state is None else state(obs), n_states)

    obs, _ = env.reset(seed=rng)
    for _ in range(check_int("steps", steps)):
        before, action = read_state(obs), int(generator.integers(n_actions))
        obs, _, terminated, truncated, _ = env.step(action)
        after, row = read_state(obs), before * n_actions + action
        # An action that stays put for certain may be one that was never tried when the MDP was made.
        if table[row, after] == 0 and table[row, before] < 1:
            raise ValueError(
                f"options of another state space: in {env_name(env)} action {action} led from state {before} to {after}, "
                "which never happens in the MDP of the options; discover options on this environment"
            )
        if terminated or truncated:
            obs, _ = env.reset()
