"""`from_env`: the exact MDP of a finite environment, from its table or by a search."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import Progress
from eigenoptions._validation import check_int
from eigenoptions.envs.families import Key, find_family, use_functions
from eigenoptions.envs.fixed_seed import FixedSeed, choose_seed
from eigenoptions.envs.recognition import StateReader
from eigenoptions.envs.search import StateLimitReached, search_states
from eigenoptions.envs.sources import (
    PASSIVE_WRAPPERS,
    count_actions,
    env_name,
    make_env,
)
from eigenoptions.envs.tables import read_table
from eigenoptions.mdp import MDP
from eigenoptions.options.lookahead import Restore, Save

logger = logging.getLogger("eigenoptions")


@shows_progress
def from_env(
    env: str | gym.Env[Any, Any],
    *,
    max_states: int = 100_000,
    key: Key | None = None,
    save: Save | None = None,
    restore: Restore | None = None,
    progress: ProgressArgument = None,
    seed: int | None = None,
) -> MDP:
    """Return the exact MDP of a finite Gymnasium environment.

    A transition table (``env.unwrapped.P``: FrozenLake, Taxi, CliffWalking, our mazes)
    is read as it is, unless a wrapper may change actions or observations. A
    deterministic environment without a table is searched breadth first from
    ``reset(seed=seed)``: MiniGrid, and every other that can be copied and has integer
    observations, or comes with `key`, `save` and `restore`. The result is compared with
    a random walk, so an environment that is random or remembers more than it observes
    is refused.

    Parameters
    ----------
    env : str or gymnasium.Env
        An id, with its module where needed (``"minigrid:MiniGrid-FourRooms-v0"``), or
        an environment. The search leaves it in some state: reset it before use.
    max_states : int, default=100000
        Maximum number of states. Beyond it `StateLimitReached` is raised, which holds
        the states found.
    key : callable, default=None
        ``key(env.unwrapped, obs)`` returns a hashable object that identifies the state.
        None: the observation, or for MiniGrid what the grid holds.
    save, restore : callable, default=None
        ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``. None: the
        environment is copied.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of states expanded and found.
    seed : int, default=None
        Seed of the reset before the search, on which MiniGrid's layouts depend. None:
        that of `FixedSeed`, or 0.

    Returns
    -------
    MDP
        States keep the environment's numbers where it observes ``Discrete(n)``;
        elsewhere `states` holds the key of each. `start` is the most likely first
        state; `goal` the end of an episode with the highest reward, if there is only
        one.

    Notes
    -----
    Where episodes only end, every action stays put. A move that ends an episode in a
    state in which others go on leads to an additional state, which comes last and has
    no entry in `states` (see `MDP`). Actions stay put, too, in states that no
    sequence of moves reaches (CliffWalking's cliff): the moves that a table lists there
    never happen, and would be edges of the graph. Our own mazes return their `MDP` as
    it is: there the goal is a task, not a wall.

    Examples
    --------
    >>> from_env("FrozenLake-v1")
    MDP(FrozenLake-v1: 16 states, 4 actions, stochastic, start 0, goal 15)
    """
    progress = check_progress(progress)
    made = make_env(env)
    try:
        n_actions = count_actions(made)
        max_states = check_int("max_states", max_states)
        seed = choose_seed(made, seed)
        if save is not None and restore is None:
            raise ValueError("save and restore go together, got only save")
        if restore is not None and save is None:
            raise ValueError("save and restore go together, got only restore")

        # Functions of the user ask for a search, also where there is a table.
        if key is None and save is None:
            mdp = mdp_from_table(made)
            if mdp is not None:
                _check_size(mdp, max_states, env_name(made))
                return mdp
        return search_env(
            made,
            n_actions,
            max_states=max_states,
            key=key,
            save=save,
            restore=restore,
            progress=progress,
            seed=seed,
        )
    finally:
        if isinstance(env, str):
            made.close()


def _check_size(mdp: MDP, max_states: int, name: str) -> None:
    if mdp.n_states > max_states:
        raise ValueError(
            f"max_states={max_states}, but {name} has {mdp.n_states} states"
        )


def mdp_from_table(env: gym.Env[Any, Any]) -> MDP | None:
    """Return the MDP of a table that the environment has; None where it has none.

    A table is not read, either, where a wrapper may change actions or observations: the
    agent would see other transitions.
    """
    changing_wrapper = None
    layer = env
    while isinstance(layer, gym.Wrapper) and not isinstance(layer, Numbered):
        keeps_step = type(layer).step is gym.Wrapper.step
        if not keeps_step and not isinstance(layer, PASSIVE_WRAPPERS):
            changing_wrapper = layer
        layer = layer.env

    mdp = getattr(layer, "mdp", None)
    has_mdp = isinstance(mdp, MDP)
    table: Any = getattr(layer, "P", None)
    if not has_mdp and table is None:
        return None
    if changing_wrapper is not None:
        logger.info(
            "%s has a transition table, but %s may change actions or observations: "
            "pass env.unwrapped to use it",
            env_name(env),
            type(changing_wrapper).__name__,
        )
        return None
    if has_mdp:
        return mdp
    return read_table(layer, table, env_name(env))


def search_env(
    env: gym.Env[Any, Any],
    n_actions: int,
    *,
    max_states: int,
    key: Key | None = None,
    save: Save | None = None,
    restore: Restore | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> MDP:
    """Return the MDP of an environment without a table, by a search of its states.

    Parameters
    ----------
    env : gymnasium.Env
        The environment, with `n_actions` actions. It is left in some state.
    n_actions, max_states, key, save, restore, progress, seed
        Those of `from_env`, checked.

    Raises
    ------
    StateLimitReached
        If there are more than `max_states` states.
    ValueError
        If states cannot be recognised or restored, or if actions are random.
    """
    name = env_name(env)
    family = use_functions(find_family(env), key, save, restore)
    obstacle = family.find_obstacle(env)
    if obstacle is not None:
        raise ValueError(
            f"{name} has no transition table and {obstacle}: "
            f"discover({family.suggest_sampled(env)}) samples it, or give a function "
            "key(env, obs) to a hashable state"
        )

    mdp = search_states(
        family.prepare_search(env),
        family,
        n_actions,
        max_states=max_states,
        progress=progress,
        seed=seed,
    )
    logger.info("%s: %d states found by exploration", name, mdp.n_states)

    # Observations that are numbers stay the numbers of states.
    space = env.observation_space
    if family.looks_inside or not isinstance(space, Discrete) or space.n > max_states:
        return mdp
    return _keep_numbers(mdp, space)


@dataclass(frozen=True)
class SearchResult:
    """What `try_search` found.

    Attributes
    ----------
    mdp : MDP or None
        The whole environment; None if there is a problem.
    problem : ValueError or None, default=None
        Why there is no MDP.
    """

    mdp: MDP | None
    problem: ValueError | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether the search stopped at the limit of states."""
        return isinstance(self.problem, StateLimitReached)


def try_search(
    env: gym.Env[Any, Any],
    n_actions: int,
    *,
    max_states: int,
    progress: Progress | None = None,
    seed: int = 0,
) -> SearchResult:
    """Search the states of an environment as `search_env`; return a problem as a value.

    For callers that have another way if there is no MDP (`discover` samples the
    environment): ``result.problem`` says why not. Read a table first
    (`mdp_from_table`).
    """
    try:
        mdp = search_env(
            env, n_actions, max_states=max_states, progress=progress, seed=seed
        )
    except ValueError as error:
        # Ours, or the environment's own: a copy may fail where the original works.
        return SearchResult(None, error)
    return SearchResult(mdp)


def _keep_numbers(mdp: MDP, space: Discrete) -> MDP:
    """Return the same MDP with the environment's own numbers of states.

    States that were not found stay put.
    """
    low = int(space.start)
    n_states = int(space.n)
    numbers = np.array(mdp.states) - low
    if numbers.min() < 0 or numbers.max() >= n_states:
        raise ValueError(
            f"{mdp.name} has observations outside of its space {space}: correct that "
            "space"
        )

    # Additional states come last here, too.
    n_additional = mdp.n_additional
    additional = np.arange(n_states, n_states + n_additional)
    numbers = np.append(numbers, additional)
    successors = np.tile(np.arange(n_states + n_additional)[:, None], mdp.n_actions)
    successors[numbers] = numbers[mdp.successors]
    return MDP.from_successors(
        successors,
        n_additional=n_additional,
        start=int(numbers[0]),
        name=mdp.name,
        states=range(low, low + n_states),
        # Where numbers begin at 0, an observation is the number of the state.
        recognition=mdp.recognition if low else None,
    )


class Numbered(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """An environment in one layout whose observation is the number of its state.

    The numbers are those of `mdp`, so tables of values can be used.

    Parameters
    ----------
    env : str or gymnasium.Env
        A finite environment (id or object).
    seed : int, default=None
        Seed of every reset (see `FixedSeed`), and so of the layout. None: that of a
        `FixedSeed` inside, or 0.
    **settings
        Other settings of `from_env`.

    Attributes
    ----------
    mdp : MDP
        The MDP of the environment.

    Examples
    --------
    >>> env = Numbered("minigrid:MiniGrid-Empty-5x5-v0")
    >>> env.mdp
    MDP(MiniGrid-Empty-5x5-v0: 34 states, 7 actions, deterministic, start 0)
    >>> env.reset()[0], env.step(2)[0]
    (0, 3)
    """

    def __init__(
        self, env: str | gym.Env[Any, Any], seed: int | None = None, **settings: Any
    ) -> None:
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, seed=seed, **settings
        )
        made = make_env(env)
        seed = choose_seed(made, seed)
        gym.ObservationWrapper.__init__(self, FixedSeed(made, seed))
        self.mdp = from_env(made, seed=seed, **settings)
        self.observation_space = Discrete(self.mdp.n_states)
        self._reader = StateReader(self.mdp)

    def observation(self, observation: Any) -> int:
        """Return the number of the present state."""
        number: int = self._reader.read(self.env, observation)
        return number
