"""`from_env`: the exact MDP of a finite Gymnasium environment, from its table or by exploration (`search`).

A table is that of the environment inside; what wrappers make of actions and observations is found by trying them.

`Numbered` wraps an explored environment so that its observation is the number of the state, and options found on the
MDP can act in it.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs, seeding
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import check_int
from eigenoptions.envs.search import (
    Key,
    Progress,
    Restore,
    Save,
    acts,
    explore,
    layers,
    probe_of,
)
from eigenoptions.envs.search import StateLimitReached as StateLimitReached
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options.lookahead import name_of

log = logging.getLogger("eigenoptions")

TAXI_STATES = 500
# Most pairs of a state and an action in which wrappers are tried.
MAX_TRIED = 100_000


def from_env(
    env: str | gym.Env[Any, Any],
    *,
    max_states: int = 100_000,
    key: Key | None = None,
    save: Save | None = None,
    restore: Restore | None = None,
    progress: Progress | None = None,
    seed: int | None = 0,
) -> MDP:
    """Exact MDP of a finite Gymnasium environment (id or object).

    A transition table (``env.unwrapped.P``: FrozenLake, Taxi, CliffWalking, our mazes) is read as it is. A
    deterministic environment without a table is explored breadth first from ``reset(seed=seed)``: MiniGrid, and every
    other that can be copied and observes its state in whole numbers, or comes with `key`, `save` and `restore`. Live
    walks are compared with what was found, so that an environment which is random or remembers more than it observes
    is refused. Wrappers count as they act: a table is that of the environment as it was given.

    Parameters
    ----------
    env
        An id, with its module where needed (``"minigrid:MiniGrid-FourRooms-v0"``), or an environment. Exploration
        leaves it in some state: reset it before use.
    max_states
        Most states to find. Beyond it `StateLimitReached` is raised, which holds the states found.
    key
        ``key(env.unwrapped, obs)`` returns a hashable object that identifies the state.
    save, restore
        ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``.
    progress
        Called with the number of states expanded and found.
    seed
        Seed of the reset before exploring; the layouts of MiniGrid depend on it.

    Returns
    -------
    MDP
        States keep the environment's numbers where it observes ``Discrete(n)`` with n up to `max_states`. Where an
        episode has ended, every action stays put. It does so too in states that no sequence of moves reaches
        (CliffWalking's cliff): the moves that a table lists there never happen, and would be edges of the graph.
        `start` is the most likely first state; `goal` the end of an episode with the highest reward, if there is only
        one; `coords` is set where the states lie on a grid. Our own mazes return their `MDP` as it is: there the goal
        is a task, not a wall.

    Examples
    --------
    >>> from_env("FrozenLake-v1")
    MDP(FrozenLake-v1: 16 states, 4 actions, stochastic, start 0, goal 15)
    """
    made = made_env(env)
    try:
        n_actions = count_actions(made)
        check_int("max_states", max_states)
        if seed is not None:
            check_int("seed", seed, 0)
        mdp = known_mdp(made) if key is None and save is None and restore is None else None
        if mdp is None:
            probe = probe_of(made, key, save, restore)
            return explore(made, probe, n_actions, max_states, progress, seed)[0]
        if mdp.n_states > max_states:
            raise ValueError(
                f"{name_of(made)} has {mdp.n_states} states, more than max_states={max_states}: raise it"
            )
        return mdp
    finally:
        if isinstance(env, str):
            made.close()


class Numbered(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose observation is the number of its state in `mdp`.

    Exploration numbers the states, but the environment does not observe these numbers. With this wrapper options found
    on the MDP can act in it, ``OptionsWrapper(Numbered(env), options)``. Every episode has the explored layout:
    ``reset`` uses `seed` whatever seed it is given.

    Parameters
    ----------
    env
        A deterministic environment (id or object).
    max_states, key, save, restore, progress, seed
        As in `from_env`.

    Examples
    --------
    >>> env = Numbered("minigrid:MiniGrid-Empty-5x5-v0")
    >>> env.mdp
    MDP(MiniGrid-Empty-5x5-v0: 34 states, 7 actions, deterministic, start 0)
    >>> env.reset()[0], env.step(2)[0]
    (0, 3)
    """

    def __init__(
        self,
        env: str | gym.Env[Any, Any],
        *,
        max_states: int = 100_000,
        key: Key | None = None,
        save: Save | None = None,
        restore: Restore | None = None,
        progress: Progress | None = None,
        seed: int = 0,
    ) -> None:
        check_int("seed", seed, 0)
        kept = {"max_states": max_states, "key": key, "save": save, "restore": restore, "seed": seed}
        # Gymnasium rebuilds the wrapper from these.
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **kept)
        gym.Wrapper.__init__(self, made_env(env))
        self._probe = probe_of(self.env, key, save, restore)
        self._seed = seed
        self.mdp, self._numbers = explore(
            self.env, self._probe, count_actions(self.env), max_states, progress, seed
        )
        self.observation_space = Discrete(self.mdp.n_states)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin again in the explored layout."""
        base = self.env.unwrapped
        generator = base.np_random if seed is None else seeding.np_random(seed)[0]
        obs, info = self.env.reset(seed=self._seed, options=options)
        # The layout's seed must not give the same random numbers in every episode.
        base.np_random = generator
        return self._number(obs), info

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        """Take one action; the observation is the number of the state it leads to."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._number(obs), reward, terminated, truncated, info

    def _number(self, obs: Any) -> int:
        number = self._numbers.get(self._probe.key(self.env.unwrapped, obs))
        if number is None:
            raise ValueError(
                f"{name_of(self.env)} is in a state that exploration did not find: its key= leaves out a part"
            )
        return number


def made_env(env: str | gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment of an id; an environment is returned as it is."""
    if isinstance(env, gym.Env):
        return env
    if not isinstance(env, str):
        raise ValueError(f"give a Gymnasium environment or its id, got {type(env).__name__}")
    try:
        return gym.make(env)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(f"no environment {env!r}: {str(error).splitlines()[0]}") from error


def count_actions(env: Any) -> int:
    """Number of actions; ValueError unless the space is ``Discrete(n)``."""
    space = getattr(env, "single_action_space", env.action_space)
    if not isinstance(space, Discrete) or space.start != 0:
        remedy = "gymnasium.wrappers.TransformAction over a list of actions"
        if isinstance(space, gym.spaces.Box):
            remedy = "gymnasium.wrappers.DiscretizeAction(env, bins=3)"
        raise ValueError(
            f"{name_of(env)} has actions {space}: only Discrete(n) is supported; wrap it so that an action is a "
            f"number 0..n-1 ({remedy})"
        )
    return int(space.n)


def known_mdp(env: gym.Env[Any, Any]) -> MDP | None:
    """MDP that an environment has without being explored, or None; wrappers count as they act."""
    count_actions(env)
    owner: Any = env
    while isinstance(owner, gym.Wrapper) and not isinstance(vars(owner).get("mdp"), MDP):
        owner = owner.env
    mdp = getattr(owner, "mdp", None)
    if not isinstance(mdp, MDP):
        table = getattr(owner, "P", None)
        if table is None:
            return None
        mdp = _from_table(owner, table, count_actions(owner), name_of(env))
    # Layers outside of the environment that has the table.
    around = layers(env)[: len(layers(env)) - len(layers(owner))]
    if not any(acts(layer) or isinstance(layer, gym.ObservationWrapper) for layer in around):
        return mdp
    try:
        return _through(env, owner, mdp)
    except ValueError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"a wrapper of {name_of(env)} cannot be tried ({what}): give the environment inside, or sample this one "
            "(discover(env, steps=...))"
        ) from error


def _through(env: Any, owner: Any, mdp: MDP) -> MDP:
    """MDP of an environment seen through its wrappers, from the table of `owner`, the environment inside.

    A copy of the wrappers is stepped in every state, with a function in place of the owner's step that notes the action
    that arrives. So the table has the wrappers' actions, and their numbers of states where they observe numbers.
    """
    name, n, n_actions = name_of(env), mdp.n_states, count_actions(env)
    if n * n_actions > MAX_TRIED:
        raise ValueError(
            f"{name} has wrappers and {n} states, too many to try them: give the environment inside"
        )
    trial = copy.deepcopy(env)
    inside, original = trial, env
    while original is not owner:
        inside, original = inside.env, original.env
    trial.reset(seed=0)
    arrived: list[int] = []
    state = 0

    def step(action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        arrived.append(int(action))
        mask = np.ones(mdp.n_actions, dtype=np.int8)
        return state, 0.0, False, False, {"prob": 1.0, "action_mask": mask}

    inside.step = step
    tries = np.empty((2, n, n_actions), dtype=np.int64)
    seen: list[Any] = []
    for attempt in tries:
        seen = []
        for state in range(n):
            for action in range(n_actions):
                # The attribute by which Gymnasium's tables and our mazes know where they are.
                setattr(inside.unwrapped, "state" if hasattr(inside.unwrapped, "state") else "s", state)
                arrived.clear()
                obs = trial.step(action)[0]
                if len(arrived) != 1 or not 0 <= arrived[0] < mdp.n_actions:
                    raise ValueError(
                        f"a wrapper of {name} takes {len(arrived)} steps for one: give the environment inside, or "
                        "sample this one (discover(env, steps=...))"
                    )
                attempt[state, action] = arrived[0]
            seen.append(obs)
    if (tries[0] != tries[1]).any():
        raise ValueError(
            f"a wrapper of {name} changes actions at random or by what went before: its table is not known; sample it "
            "(discover(env, steps=...), or collect)"
        )
    return _renumbered(env, mdp, tries[0], seen)


def _renumbered(env: gym.Env[Any, Any], mdp: MDP, taken: NDArray[np.int64], seen: list[Any]) -> MDP:
    """MDP whose action a in state s is ``taken[s, a]`` of `mdp`, with the numbers ``seen[s]`` for states."""
    n, space = mdp.n_states, env.observation_space
    number = np.arange(n)
    if isinstance(space, Discrete):
        number = np.array(seen, dtype=np.int64) - int(space.start)
        if sorted(number.tolist()) != list(range(n)):
            raise ValueError(
                f"{name_of(env)} observes {len(set(seen))} numbers in {n} states: give the environment inside its "
                "observation wrapper"
            )
    own = np.tile(np.arange(mdp.n_actions), (n, 1))
    if (number == np.arange(n)).all() and np.array_equal(taken, own):
        return mdp
    old = np.argsort(number)
    rows = (old[:, None] * mdp.n_actions + taken[old]).ravel()
    table = csr_array(mdp.transition[rows])
    table.indices = number[table.indices]
    gain = mdp.reward
    if gain is not None:
        gain = gain[old] if len(gain) == n else gain[rows]
    return MDP(
        table,
        coords=None if mdp.coords is None else mdp.coords[old],
        start=None if mdp.start is None else int(number[mdp.start]),
        goal=None if mdp.goal is None else int(number[mdp.goal]),
        name=mdp.name,
        reward=gain,
    )


def _from_table(base: Any, P: Any, n_actions: int, name: str) -> MDP:
    """MDP of ``P[s][a] = [(p, s', reward, done)]``; ends of episodes and states never reached stay put."""
    space = base.observation_space
    n = int(space.n) if isinstance(space, Discrete) else len(P)
    outcomes = [
        (int(s) * n_actions + a, int(s2), float(p), float(r), bool(done))
        for s, actions in (P.items() if isinstance(P, dict) else enumerate(P))
        for a in range(n_actions)
        for p, s2, r, done in actions[a]
        if p > 0
    ]
    row, to, p, reward, done = (np.array(part) for part in zip(*outcomes, strict=True))
    if to.min() < 0 or max(to.max(), row.max() // n_actions) >= n:
        raise ValueError(
            f"the table of {name} has a state {max(to.max(), row.max() // n_actions)}, but there are {n} states"
        )
    at = row // n_actions
    first = getattr(base, "initial_state_distrib", None)
    if first is None or np.shape(first) != (n,):
        # Without a known distribution, all states that are not only ends are equal.
        first = np.isin(np.arange(n), np.setdiff1d(to[done], to[~done]), invert=True)
    first = np.asarray(first, dtype=np.float64)
    live = reachable(_links(n, at[~done], to[~done]), first > 0) & np.isin(np.arange(n), at)
    ends = np.zeros(n, dtype=bool)
    ends[to[done & live[at]]] = True
    ends &= ~live
    # Also past the end of an episode: Taxi's drive after the delivery.
    reached = reachable(_links(n, at, to), first > 0)
    if not reached.all():
        lost = int((~reached).sum())
        log.info("%s: %d of %d states are never reached; they stay put, alone in the graph", name, lost, n)
    acting = reached & ~ends & np.isin(np.arange(n), at)
    keep = acting[at]
    stay = np.flatnonzero(~acting)
    still = np.repeat(stay * n_actions, n_actions) + np.tile(np.arange(n_actions), len(stay))
    table = csr_array(
        (
            np.concatenate([p[keep], np.ones(len(still))]),
            (np.concatenate([row[keep], still]), np.concatenate([to[keep], still // n_actions])),
        ),
        shape=(n * n_actions, n),
    )
    # The mean reward of each action; ends of episodes and states never reached have none.
    gain = np.bincount(row[keep], p[keep] * reward[keep], minlength=n * n_actions).astype(np.float64)
    best = np.full(n, -np.inf)
    np.maximum.at(best, to[done & live[at]], reward[done & live[at]])
    best[~ends] = -np.inf
    goals = np.flatnonzero((best == best.max()) & ends)
    coords, legend = _places(base, n)
    return MDP(
        table,
        coords=coords,
        legend=legend,
        start=int(np.argmax(first)),
        goal=int(goals[0]) if len(goals) == 1 else None,
        name=name,
        reward=gain,
    )


def _links(n: int, at: NDArray[np.int_], to: NDArray[np.int_]) -> csr_array:
    return csr_array((np.ones(len(at)), (at, to)), shape=(n, n))


def _places(base: Any, n: int) -> tuple[NDArray[np.int_] | None, str]:
    """Row and column of each state and a legend: cells of a rectangle row by row, or Taxi's maps."""
    desc = getattr(base, "desc", None)
    shape = np.shape(desc) if desc is not None else getattr(base, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and int(np.prod(shape)) == n:
        return np.stack(np.unravel_index(np.arange(n), shape), axis=1).astype(np.int64), ""
    if n == TAXI_STATES and all(hasattr(base, part) for part in ("decode", "locs", "max_row", "max_col")):
        row, col, passenger, to = np.array([list(base.decode(s)) for s in range(n)]).T
        high, wide = base.max_row + 2, base.max_col + 2
        legend = (
            "one map per place of the passenger (columns R, G, Y, B, taxi) and destination (rows R, G, Y, B)"
        )
        return np.stack([row + high * to, col + wide * passenger], axis=1), f"{legend}; 4 pick up, 5 drop off"
    return None, ""
