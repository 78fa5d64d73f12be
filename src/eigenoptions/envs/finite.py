"""`from_env`: the exact MDP of a finite Gymnasium environment, from its table or by exploration (`search`)."""

from __future__ import annotations

import logging
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import wrappers
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import Progress, check_int
from eigenoptions.envs import minigrid
from eigenoptions.envs.recognition import Key, StateReader
from eigenoptions.envs.search import explore, is_finite
from eigenoptions.envs.sources import count_actions, env_name, make_env
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options.lookahead import Restore, Save, copy_env

log = logging.getLogger("eigenoptions")

# Gymnasium's wrappers that count, check or render, or change rewards: actions and observations stay as they are.
_COUNTING = (wrappers.TimeLimit, wrappers.Autoreset, wrappers.RecordEpisodeStatistics)
_CHECKING = (wrappers.OrderEnforcing, wrappers.PassiveEnvChecker)
_RENDERING = (wrappers.RecordVideo, wrappers.HumanRendering, wrappers.RenderCollection)
PASSIVE_WRAPPERS = (*_COUNTING, *_CHECKING, *_RENDERING, gym.RewardWrapper)


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

    A transition table (``env.unwrapped.P``: FrozenLake, Taxi, CliffWalking, our mazes) is read as it is, unless a
    wrapper may change actions or observations. A deterministic environment without a table is explored breadth first
    from ``reset(seed=seed)``: MiniGrid, and every other that can be copied and has integer observations, or comes with
    `key`, `save` and `restore`. A random walk is compared with the result, so that an environment that is random or
    remembers more than it observes is refused.

    Parameters
    ----------
    env
        An id, with its module where needed (``"minigrid:MiniGrid-FourRooms-v0"``), or an environment. Exploration
        leaves it in some state: reset it before use.
    max_states
        Maximum number of states. Beyond it `StateLimitReached` is raised, which holds the states found.
    key
        ``key(env.unwrapped, obs)`` returns a hashable object that identifies the state.
    save, restore
        ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``; None: the environment is copied.
    progress
        Called with the number of states expanded and found.
    seed
        Seed of the reset before exploring; the layouts of MiniGrid depend on it.

    Notes
    -----
    States keep the environment's numbers where it observes ``Discrete(n)``; elsewhere `states` holds the key of each.
    Where an episode has ended, every action stays put. It does so too in states that no sequence of moves reaches
    (CliffWalking's cliff): the moves that a table lists there never happen, and would be edges of the graph. `start` is
    the most likely first state; `goal` the end of an episode with the highest reward, if there is only one. Our own
    mazes return their `MDP` as it is: there the goal is a task, not a wall.

    Examples
    --------
    >>> from_env("FrozenLake-v1")
    MDP(FrozenLake-v1: 16 states, 4 actions, stochastic, start 0, goal 15)
    """
    made = make_env(env)
    try:
        count_actions(made)
        max_states = check_int("max_states", max_states)
        if seed is not None:
            seed = check_int("seed", seed, 0)
        if (save is None) != (restore is None):
            raise ValueError(
                f"save and restore go together, got only {'save' if save else 'restore'}"
            )
        mdp = mdp_from_table(made) if key is None and save is None else None
        name, space = env_name(made), made.observation_space
        if mdp is not None:
            if mdp.n_states > max_states:
                raise ValueError(
                    f"max_states={max_states}, but {name} has {mdp.n_states} states"
                )
            return mdp
        by: str | Key = key or "observation"
        explored = made
        if minigrid.is_minigrid(made.unwrapped) and key is None and save is None:
            by, save, restore = "minigrid", minigrid.save_state, minigrid.restore_state
            explored = _leave_out_observations(made)
        elif key is None and not is_finite(space):
            kind = f"no transition table and its observations are not finite ({' '.join(str(space).split())})"
            remedy = f"discover({name!r}) samples it, or give a function key(env, obs) to a hashable state"
            raise ValueError(f"{name} has {kind}: {remedy}")
        mdp = explore(
            explored,
            by,
            save,
            restore,
            max_states=max_states,
            progress=progress,
            seed=seed,
        )
        log.info("%s: %d states found by exploration", name, mdp.n_states)
        if (
            by == "observation"
            and isinstance(space, Discrete)
            and space.n <= max_states
        ):
            return _keep_numbers(mdp, space)
        return mdp
    finally:
        if isinstance(env, str):
            made.close()


class FixedSeed(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose episodes all begin with ``reset(seed=seed)``: one layout of MiniGrid, say.

    What is random after the reset differs from episode to episode; the seed of `reset` draws it.

    Parameters
    ----------
    env, seed
        The environment, and the seed of every reset; that of `from_env` and `discover` is 0.

    Examples
    --------
    >>> env = FixedSeed(gym.make("minigrid:MiniGrid-FourRooms-v0"), 0)
    >>> len({env.reset() and tuple(map(int, env.unwrapped.agent_pos)) for _ in range(3)})
    1
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        RecordConstructorArgs.__init__(self, seed=seed)
        gym.Wrapper.__init__(self, env)
        self.seed = check_int("seed", seed, 0)
        self._rng = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the fixed seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        obs, info = self.env.reset(seed=self.seed, options=options)
        self.env.unwrapped.np_random = self._rng
        return obs, info


class Numbered(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """An environment in one layout whose observation is the number of its state in `mdp`, for tables of values.

    Parameters
    ----------
    env, seed
        A finite environment (id or object), and the seed of every reset (see `FixedSeed`) and of its layout.
    exploration
        Settings of `from_env`.

    Examples
    --------
    >>> env = Numbered("minigrid:MiniGrid-Empty-5x5-v0")
    >>> env.mdp
    MDP(MiniGrid-Empty-5x5-v0: 34 states, 7 actions, deterministic, start 0)
    >>> env.reset()[0], env.step(2)[0]
    (0, 3)
    """

    def __init__(
        self, env: str | gym.Env[Any, Any], seed: int = 0, **exploration: Any
    ) -> None:
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, seed=seed, **exploration
        )
        made = make_env(env)
        gym.ObservationWrapper.__init__(self, FixedSeed(made, seed))
        self.mdp = from_env(made, seed=seed, **exploration)
        self.observation_space = Discrete(self.mdp.n_states)
        self._reader = StateReader(self.mdp)

    def observation(self, observation: Any) -> int:
        """Number of the present state."""
        return self._reader.read(self.env, observation)  # type: ignore[no-any-return]


def mdp_from_table(env: gym.Env[Any, Any]) -> MDP | None:
    """MDP of an environment's own table, or None where it has none or a wrapper may change actions or observations."""
    changing = None
    layer: Any = env
    while isinstance(layer, gym.Wrapper) and not isinstance(layer, Numbered):
        is_passive = (
            isinstance(layer, PASSIVE_WRAPPERS) or type(layer).step is gym.Wrapper.step
        )
        changing = changing if is_passive else layer
        layer = layer.env
    mdp, table = getattr(layer, "mdp", None), getattr(layer, "P", None)
    if not isinstance(mdp, MDP) and table is None:
        return None
    if changing is not None:
        text = "%s has a transition table, but %s may change actions or observations: pass env.unwrapped to use it"
        log.info(text, env_name(env), type(changing).__name__)
        return None
    return mdp if isinstance(mdp, MDP) else _read_table(layer, table, env_name(env))


def _leave_out_observations(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """MiniGrid without observations, which take most of the time of a step, and which its key does not use."""
    layer: Any = env
    while isinstance(layer, (*PASSIVE_WRAPPERS, gym.ObservationWrapper)):
        layer = layer.env
    if layer is env.unwrapped:
        layer = copy_env(layer)
        layer.gen_obs = dict
    return layer  # type: ignore[no-any-return]


def _keep_numbers(mdp: MDP, space: Any) -> MDP:
    """The same MDP with the environment's own numbers of states; those that were not found stay put."""
    numbers = np.array(mdp.states) - int(space.start)
    if not 0 <= numbers.min() <= numbers.max() < space.n:
        raise ValueError(
            f"{mdp.name} has observations outside of its space {space}: correct that space"
        )
    successors = np.tile(np.arange(space.n)[:, None], mdp.n_actions)
    successors[numbers] = numbers[mdp.successors]
    observations = range(int(space.start), int(space.start + space.n))
    fields: Any = {
        "states": observations,
        "recognition": mdp.recognition if space.start else None,
    }
    return MDP.from_successors(
        successors, start=int(numbers[0]), name=mdp.name, **fields
    )


def _read_table(env: Any, P: Any, name: str) -> MDP:
    """MDP of ``P[s][a] = [(p, s', reward, done)]``; ends of episodes and states never reached stay put."""
    space, n_actions = env.observation_space, count_actions(env)
    n = int(space.n) if isinstance(space, Discrete) else len(P)
    outcomes = [
        (int(s) * n_actions + a, int(after), float(p), float(r), bool(done))
        for s, actions in (P.items() if isinstance(P, dict) else enumerate(P))
        for a in range(n_actions)
        for p, after, r, done in actions[a]
        if p > 0
    ]
    row, after, p, reward, done = (
        np.array(part) for part in zip(*outcomes, strict=True)
    )
    before = row // n_actions
    last = max(after.max(), before.max())
    if after.min() < 0 or last >= n:
        raise ValueError(
            f"the table of {name} has a state {last}, but there are {n} states"
        )
    has_row = np.isin(np.arange(n), before)
    first = getattr(env, "initial_state_distrib", None)
    if first is None or np.shape(first) != (n,):
        # Without a known distribution, all states that are not only ends are equal.
        first = np.isin(
            np.arange(n), np.setdiff1d(after[done], after[~done]), invert=True
        )
    first = np.asarray(first, dtype=np.float64)

    # States where episodes end: reached by a last move, and never in the middle of an episode.
    live = reachable(_link(n, before[~done], after[~done]), first > 0) & has_row
    last_move = done & live[before]
    is_end = np.zeros(n, dtype=np.bool_)
    is_end[after[last_move]] = True
    is_end &= ~live
    # Also past the end of an episode: Taxi's drive after the delivery.
    reached = reachable(_link(n, before, after), first > 0)
    if not reached.all():
        log.info(
            "%s: %d of %d states are never reached: they stay put",
            name,
            (~reached).sum(),
            n,
        )

    acting = reached & ~is_end & has_row
    keep = acting[before]
    staying = np.flatnonzero(np.repeat(~acting, n_actions))
    rows, columns = (
        np.append(row[keep], staying),
        np.append(after[keep], staying // n_actions),
    )
    table = csr_array(
        (np.append(p[keep], np.ones(len(staying))), (rows, columns)),
        shape=(n * n_actions, n),
    )
    # The mean reward of each action; ends of episodes and states never reached have none.
    mean_reward = np.bincount(
        row[keep], p[keep] * reward[keep], minlength=n * n_actions
    ).astype(np.float64)
    best = np.full(n, -np.inf)
    np.maximum.at(best, after[last_move], reward[last_move])
    best[~is_end] = -np.inf
    goals = np.flatnonzero((best == best.max()) & is_end)
    coords, legend = _place_states(env, n)
    goal = int(goals[0]) if len(goals) == 1 else None
    fields: Any = {
        "coords": coords,
        "legend": legend,
        "name": name,
        "reward": mean_reward,
    }
    return MDP(table, start=int(np.argmax(first)), goal=goal, **fields)


def _link(n: int, before: NDArray[np.int_], after: NDArray[np.int_]) -> csr_array:
    return csr_array((np.ones(len(before)), (before, after)), shape=(n, n))


def _place_states(env: Any, n: int) -> tuple[NDArray[np.int_] | None, str]:
    """Row and column of each state and a legend: cells of a rectangle row by row, or Taxi's maps."""
    desc = getattr(env, "desc", None)
    shape = np.shape(desc) if desc is not None else getattr(env, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and int(np.prod(shape)) == n:
        return np.stack(np.unravel_index(np.arange(n), shape), axis=1).astype(
            np.int64
        ), ""
    if all(hasattr(env, part) for part in ("decode", "locs", "max_row", "max_col")):
        row, column, passenger, destination = np.array(
            [list(env.decode(s)) for s in range(n)]
        ).T
        height, width = env.max_row + 2, env.max_col + 2
        legend = (
            "one map per place of the passenger (columns R, G, Y, B, taxi) and destination (rows R, G, Y, B); "
            "4 pick up, 5 drop off"
        )
        return np.stack(
            [row + height * destination, column + width * passenger], axis=1
        ), legend
    return None, ""
