"""`from_env`: the exact MDP of a finite Gymnasium environment, from its table or by breadth-first exploration.

A `Probe` identifies a state of a deterministic environment (`key`), saves it and restores it. MiniGrid's is built in;
other environments are copied, and their states identified by the observation.

`Numbered` wraps an explored environment so that its observation is the number of the state, and options found on the
MDP can act in it.
"""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs, seeding
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._checks import whole
from eigenoptions.envs.minigrid import MiniGrid
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options.lookahead import name_of

log = logging.getLogger("eigenoptions")

Progress = Callable[[int, int], object]
# Of the unwrapped environment and its observation.
Key = Callable[[Any, Any], Hashable]
Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]


TAXI_STATES = 500


class StateLimitReached(ValueError):  # noqa: N818 (a public name)
    """Exploration found more than `max_states` states; `mdp` holds the states found.

    Attributes
    ----------
    mdp
        The explored part. States that were found but not expanded stay put under every action.
    expanded
        Number of its states that have their true successors.

    Examples
    --------
    >>> try:
    ...     from_env("minigrid:MiniGrid-Empty-5x5-v0", max_states=10)
    ... except StateLimitReached as reached:
    ...     print(reached.mdp.n_states, reached.expanded)
    10 5
    """

    def __init__(self, message: str, mdp: MDP, expanded: int) -> None:
        super().__init__(message)
        self.mdp = mdp
        self.expanded = expanded


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
    other that can be copied and observes its state in whole numbers, or comes with `key`, `save` and `restore`.

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
        States keep the environment's numbers. Where an episode has ended, every action stays put. It does so too in
        states that no sequence of moves reaches (CliffWalking's cliff): the moves that a table lists there never
        happen, and would be edges of the graph. `start` is the most likely first state; `goal` the end of an episode
        with the highest reward, if there is only one; `coords` is set where the states lie on a grid. Our own mazes
        return their `MDP` as it is: there the goal is a task, not a wall.

    Examples
    --------
    >>> from_env("FrozenLake-v1")
    MDP(FrozenLake-v1: 16 states, 4 actions, stochastic, start 0, goal 15)
    """
    made = made_env(env)
    try:
        n_actions = count_actions(made)
        if count_actions(made.unwrapped) != n_actions:
            raise ValueError(
                f"a wrapper gives {name_of(made)} {n_actions} actions in place of {count_actions(made.unwrapped)}: "
                "give the environment inside"
            )
        whole("max_states", max_states)
        if key is None and save is None and restore is None:
            mdp = known_mdp(made)
            if mdp is not None:
                if mdp.n_states > max_states:
                    raise ValueError(
                        f"{name_of(made)} has {mdp.n_states} states, more than max_states={max_states}: raise it"
                    )
                return mdp
        return explore(made, probe_of(made, key, save, restore), n_actions, max_states, progress, seed)[0]
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
        raise ValueError(
            f"{name_of(env)} has actions {space}: only Discrete(n) is supported; wrap it so that an action is a "
            "number 0..n-1 (gymnasium.wrappers.TransformAction over a list of actions)"
        )
    return int(space.n)


def known_mdp(env: gym.Env[Any, Any]) -> MDP | None:
    """MDP that an environment has without being explored, or None."""
    n_actions = count_actions(env)
    # A wrapper's actions are not those of the table.
    if count_actions(env.unwrapped) != n_actions:
        return None
    if env.has_wrapper_attr("mdp") and isinstance(mdp := env.get_wrapper_attr("mdp"), MDP):
        return mdp
    table = getattr(env.unwrapped, "P", None)
    return None if table is None else _from_table(env, table, n_actions)


def _from_table(env: gym.Env[Any, Any], P: Any, n_actions: int) -> MDP:
    """MDP of ``P[s][a] = [(p, s', reward, done)]``; ends of episodes and states never reached stay put."""
    base, name, space = env.unwrapped, name_of(env), env.unwrapped.observation_space
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
    first = _first_states(base, n, np.setdiff1d(to[done], to[~done]))
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


def _first_states(base: Any, n: int, only_ends: NDArray[np.int_]) -> NDArray[np.float64]:
    """Weight of each state as the first; without a known distribution, all that are not only ends are equal."""
    given = getattr(base, "initial_state_distrib", None)
    if given is not None and np.shape(given) == (n,):
        return np.asarray(given, dtype=np.float64)
    weight = np.ones(n)
    weight[only_ends] = 0.0
    return weight


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


@dataclass(frozen=True)
class Probe:
    """How states are identified, saved and restored; `places` gives coordinates and a legend, where possible."""

    key: Key
    save: Save
    restore: Restore
    places: Callable[[list[Any]], tuple[NDArray[np.int_] | None, str]] = lambda keys: (None, "")


def probe_of(env: Any, key: Key | None, save: Save | None, restore: Restore | None) -> Probe:
    """Probe for an environment: the functions that were given, and built-in ones for the others."""
    name = name_of(env)
    if (save is None) != (restore is None):
        raise ValueError(f"save and restore go together, got only {'save' if restore is None else 'restore'}")
    base = env.unwrapped
    if MiniGrid.fits(base):
        grid = MiniGrid()
        built_in = Probe(grid.key, grid.save, grid.restore, grid.places)
    else:
        if key is None and not _finite(env.observation_space):
            raise ValueError(
                f"{name} has no transition table and its observations are not finite "
                f"({' '.join(str(env.observation_space).split())}): discover({name!r}) samples it, or give from_env a "
                "function key(env, obs) that returns a state that can be hashed"
            )
        built_in = Probe(lambda _, obs: _frozen(obs), _copied, _put_back)
    return Probe(
        key or built_in.key,
        save or built_in.save,
        restore or built_in.restore,
        built_in.places if key is None else lambda keys: (None, ""),
    )


def explore(
    env: Any, probe: Probe, n_actions: int, max_states: int, progress: Progress | None, seed: int | None
) -> tuple[MDP, dict[Hashable, int]]:
    """MDP of the states that can be reached from ``env.reset(seed=seed)``, and the number of each state's key.

    Raises `StateLimitReached` beyond `max_states`, and ValueError where the environment cannot be copied or draws
    random numbers in a step.
    """
    base, name = env.unwrapped, name_of(env)
    obs, _ = env.reset(seed=seed)
    with _silent(base):
        numbers: dict[Hashable, int] = {probe.key(base, obs): 0}
        first = _guarded(name, probe.save, base)
        _rehearse(name, base, probe, first, n_actions)
        queued = {0}
        queue: deque[tuple[int, Any]] = deque([(0, first)])
        rows: dict[int, list[int]] = {}
        full = False
        while queue and not full:
            number, saved = queue.popleft()
            row = []
            for action in range(n_actions):
                probe.restore(base, saved)
                obs, terminated = _taken(name, base, action)
                key = probe.key(base, obs)
                found = numbers.get(key, len(numbers))
                if found == max_states:
                    full = True
                    break
                numbers[key] = found
                row.append(found)
                # An ended episode has no successors.
                if not terminated and found not in queued:
                    queued.add(found)
                    queue.append((found, probe.save(base)))
            else:
                rows[number] = row
            if progress is not None and (len(rows) % 64 == 0 or not queue or full):
                progress(len(rows), len(numbers))
    coords, legend = probe.places(list(numbers))
    mdp = MDP(_table(rows, len(numbers), n_actions), coords=coords, start=0, name=name, legend=legend)
    if full:
        raise StateLimitReached(
            f"{name} has more than max_states={max_states} states: {len(rows)} of the {len(numbers)} found were "
            "expanded; raise max_states, or take the part that was found from .mdp of this error",
            mdp,
            len(rows),
        )
    log.info("%s: %d states found by exploration", name, len(numbers))
    return mdp, numbers


def _table(rows: dict[int, list[int]], n: int, n_actions: int) -> csr_array:
    """Transitions of a deterministic table; states without a row stay put under every action."""
    successors = np.repeat(np.arange(n), n_actions).reshape(n, n_actions)
    for number, row in rows.items():
        successors[number] = row
    size = successors.size
    return csr_array((np.ones(size), successors.ravel(), np.arange(size + 1)), shape=(size, n))


def _rehearse(name: str, base: Any, probe: Probe, saved: Any, n_actions: int) -> None:
    """Take each action twice from the first state, to detect a copy that does not hold the whole state."""
    for action in range(n_actions):
        seen = []
        for _ in range(2):
            _guarded(name, probe.restore, base, saved)
            obs, _ = _taken(name, base, action)
            seen.append(probe.key(base, obs))
        if seen[0] != seen[1]:
            raise ValueError(
                f"{name} cannot be put back: action {action} of the first state led to two different states; "
                "pass save= and restore= that keep its whole state"
            )


def _taken(name: str, base: Any, action: int) -> tuple[Any, bool]:
    """Take an action that must not draw random numbers: the observation, and whether the episode ended."""
    before = _generator_state(base)
    obs, _, terminated, _, _ = base.step(action)
    if _generator_state(base) != before:
        raise ValueError(
            f"{name} draws random numbers in a step: only a deterministic environment can be explored; "
            "sample this one with collect"
        )
    return obs, terminated


def _guarded(name: str, part: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return part(*arguments)
    except Exception as error:
        raise ValueError(
            f"{name} cannot be cloned ({type(error).__name__}: {error}): pass save= and restore=, "
            "or sample it with collect"
        ) from error


def _generator_state(base: Any) -> Any:
    """State of the environment's random generator; None before it has one."""
    generator = getattr(base, "_np_random", None)
    return None if generator is None else generator.bit_generator.state


def _finite(space: Any) -> bool:
    """Whether observations of a space are whole numbers, so that equal states have equal observations."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return all(map(_finite, space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces))
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iub"
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Text)


def _frozen(obs: Any) -> Hashable:
    """An observation as a key of a dictionary."""
    if isinstance(obs, dict):
        return tuple((k, _frozen(obs[k])) for k in sorted(obs))
    if isinstance(obs, tuple | list):
        return tuple(map(_frozen, obs))
    if isinstance(obs, np.ndarray):
        return obs.item() if obs.ndim == 0 else obs.tobytes()
    return obs.item() if isinstance(obs, np.generic) else obs  # type: ignore[no-any-return]


def _copied(base: Any) -> dict[str, Any]:
    return copy.deepcopy(vars(base))


def _put_back(base: Any, saved: dict[str, Any]) -> None:
    vars(base).clear()
    vars(base).update(copy.deepcopy(saved))


@contextmanager
def _silent(base: Any) -> Iterator[None]:
    """Switch rendering off, and MiniGrid's observations, which take most of its time and are not needed."""
    mode, draws = base.render_mode, hasattr(base, "gen_obs")
    base.render_mode = None
    if draws:
        base.gen_obs = dict
    try:
        yield
    finally:
        base.render_mode = mode
        if draws:
            del base.gen_obs
