"""Whether options were made for an environment: sizes, the table if it has one, and otherwise the moves of a copy."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import SyncVectorEnv, VectorEnv
from scipy.sparse import csr_array

from eigenoptions.envs.mazes import MazeVectorEnv
from eigenoptions.envs.tables import count_actions, known_mdp
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

log = logging.getLogger("eigenoptions")

# Steps of a copy of the environment that are compared with the dynamics that the options were computed for.
CHECKED_STEPS = 200


def check_fit(env: Any, options: OptionSet | Sequence[Any], mapped: bool = False) -> int:
    """Raise ValueError where options of any kind were made for another environment; its number of actions.

    `env` may be a vector environment. `mapped`: the options act on something else than its observations.
    """
    n_actions = count_actions(env)
    space = None if mapped else getattr(env, "single_observation_space", env.observation_space)
    if not hasattr(options, "__len__"):
        raise ValueError(f"options must be an OptionSet or a list of options, got {type(options).__name__}")
    if len(options) == 0:
        raise ValueError("there are no options: discover at least one")
    if isinstance(options, OptionSet):
        mdp = mdp_of(env) if options.state_space else None
        _check_table(options, n_actions, space, mdp)
        if space is not None and mdp is None and isinstance(env, gym.Env):
            _check_moves(env, options)
        return n_actions
    if not all(callable(getattr(option, "act", None)) for option in options):
        raise ValueError("every option needs a method act(obs): give an OptionSet or objects like Option")
    theirs = getattr(options, "n_actions", n_actions)
    if theirs != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {theirs} actions, this one has {n_actions}; "
            "discover options here"
        )
    if hasattr(options, "potential") and space is not None:
        # Their features must accept an observation.
        try:
            options.potential(np.asarray(space.sample())[None], 1)
        except (ValueError, TypeError) as error:
            raise ValueError(f"options of another environment: {error}; discover options here") from None
    return n_actions


def mdp_of(env: Any) -> MDP | None:
    """MDP of an environment with its wrappers, or of each copy of a vector environment; None where it is not known."""
    if isinstance(env, MazeVectorEnv):
        return env.mdp
    if isinstance(env, VectorEnv):
        return mdp_of(env.envs[0]) if isinstance(env, SyncVectorEnv) else None
    try:
        return known_mdp(env)
    except ValueError:
        # Wrappers that change actions at random.
        return None


def _check_moves(env: gym.Env[Any, Any], options: OptionSet) -> None:
    """Raise ValueError where an environment without a table does not move as the options' deterministic dynamics do.

    A copy of it takes a random walk; nothing is checked where it cannot be copied.
    """
    to = options.successors
    if to is None or not options.state_space:
        return
    # The fingerprint proves that these are all of the dynamics.
    table = csr_array((np.ones(to.size), to.ravel(), np.arange(to.size + 1)), shape=(to.size, len(to)))
    if MDP(table).fingerprint != options.state_space:
        return
    other = None
    legacy = np.random.get_state()  # noqa: NPY002 (the copy may draw from it, the caller must not notice)
    try:
        trial = copy.deepcopy(env)
        rng, (obs, _) = np.random.default_rng(0), trial.reset(seed=0)
        for _ in range(CHECKED_STEPS):
            action = int(rng.integers(options.n_actions))
            before, (obs, _, terminated, truncated, _) = int(obs), trial.step(action)
            # A state that stays put may be one that was never expanded.
            if to[before, action] not in (before, int(obs)):
                other = f"leads from state {before} to {to[before, action]} where they were computed, and to {int(obs)}"
                break
            if terminated or truncated:
                obs, _ = trial.reset()
    except Exception as error:
        log.info("the moves of the environment were not compared with the options' (%s)", error)
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
    if other is not None:
        raise ValueError(
            f"options of another state space: action {action} {other} in this environment; discover options on it "
            "(from_env), or pass state="
        )


def _check_table(options: OptionSet, n_actions: int, space: gym.Space[Any] | None, mdp: MDP | None) -> None:
    """Raise ValueError where options were evidently made for another environment.

    `space` holds the observations they act on (None: they act on something else); `mdp` is the environment's, if
    known.
    """
    if options.n_actions != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {options.n_actions} actions, this one has "
            f"{n_actions}; discover options on it (from_env)"
        )
    if space is None:
        return
    if not isinstance(space, Discrete) or space.start != 0:
        raise ValueError(
            f"these options act on the numbers of {options.n_states} states, but observations are {space}: pass "
            "state=, a function from an observation to its state's number (or wrap the environment in Numbered)"
        )
    if space.n != options.n_states:
        raise ValueError(
            f"options of another environment: they have {options.n_states} states, this one has {space.n}; "
            "discover options on it (from_env, or samples with space=)"
        )
    if mdp is not None:
        options.check(mdp)
