"""Breadth-first exploration of a deterministic environment, and the replay that checks its result.

A `Probe` identifies a state (`key`), saves it and restores it. MiniGrid's is built in; other environments are copied,
wrappers included, and their states identified by the observation. Wrappers are stepped as they were given, except those
that only count, check or render.

A copy holds the environment's random generators too, so each action seems to have one outcome even where it is random.
`explore` therefore takes random walks in the live environment afterwards and compares them with the table.
"""

from __future__ import annotations

import copy
import logging
import random
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.envs.minigrid import MiniGrid
from eigenoptions.mdp import MDP
from eigenoptions.options.lookahead import name_of

log = logging.getLogger("eigenoptions")

Progress = Callable[[int, int], object]
# Of the unwrapped environment and its observation.
Key = Callable[[Any, Any], Hashable]
Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]
# Least number of live steps that are compared with the table, their share of all state-action pairs, and their limit.
REPLAY_STEPS, REPLAY_SHARE, MAX_REPLAY_STEPS = 1_000, 0.25, 20_000
# Steps after which a live walk begins again.
STEPS_PER_WALK = 250


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
    >>> from eigenoptions.envs import from_env
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


@dataclass(frozen=True)
class Probe:
    """How states are identified, saved and restored.

    `places` gives coordinates and a legend, where possible; `own` whether the observation is the number of the state.
    """

    key: Key
    save: Save
    restore: Restore
    places: Callable[[list[Any]], tuple[NDArray[np.int_] | None, str]] = lambda keys: (None, "")
    own: bool = False


def probe_of(env: Any, key: Key | None, save: Save | None, restore: Restore | None) -> Probe:
    """Probe for an environment: the functions that were given, and built-in ones for the others."""
    name = name_of(env)
    if (save is None) != (restore is None):
        raise ValueError(f"save and restore go together, got only {'save' if restore is None else 'restore'}")
    if MiniGrid.fits(env.unwrapped):
        grid = MiniGrid()
        built_in = Probe(grid.key, grid.save, grid.restore, grid.places)
    else:
        if key is None and not _finite(env.observation_space):
            raise ValueError(
                f"{name} has no transition table and its observations are not finite "
                f"({' '.join(str(env.observation_space).split())}): discover({name!r}) samples it, or give from_env a "
                "function key(env, obs) that returns a state that can be hashed"
            )
        own = key is None and isinstance(env.observation_space, Discrete)
        built_in = Probe(lambda _, obs: _frozen(obs), _copied, _put_back, own=own)
    if key is not None:
        built_in = replace(built_in, key=key, places=Probe.places)
    return built_in if save is None or restore is None else replace(built_in, save=save, restore=restore)


def layers(env: Any) -> list[Any]:
    """Wrappers of an environment that may change what an action does or what is observed, outermost first.

    `Record` and Gymnasium's wrappers that count, check or render are left out, and those that do not define `step`.
    """
    from gymnasium import wrappers

    from reproduction.arena.exploration import Record

    passive = (
        Record,
        wrappers.TimeLimit,
        wrappers.OrderEnforcing,
        wrappers.PassiveEnvChecker,
        wrappers.RecordEpisodeStatistics,
        wrappers.Autoreset,
        wrappers.RecordVideo,
        wrappers.HumanRendering,
        wrappers.RenderCollection,
    )
    found = []
    while isinstance(env, gym.Wrapper):
        known = type(env) in passive or type(env).__name__ == "Monitor" or type(env).step is gym.Wrapper.step
        if not known:
            found.append(env)
        env = env.env
    return found


def acts(wrapper: Any) -> bool:
    """Whether a wrapper may change what an action does: not if it only maps observations or rewards."""
    kinds = (gym.ObservationWrapper, gym.RewardWrapper)
    return not any(isinstance(wrapper, kind) and type(wrapper).step is kind.step for kind in kinds)


def explore(
    env: Any, probe: Probe, n_actions: int, max_states: int, progress: Progress | None, seed: int | None
) -> tuple[MDP, dict[Hashable, int]]:
    """MDP of the states that can be reached from ``env.reset(seed=seed)``, and the number of each state's key.

    Raises `StateLimitReached` beyond `max_states`, and ValueError where the environment cannot be copied, draws random
    numbers in a step, or does not follow the table when it is replayed.
    """
    space = env.observation_space
    own = probe.own and space.n <= max_states
    search = _Search(env, probe, n_actions, int(space.start) if own else None)
    name, rows, numbers = search.name, search.rows, search.numbers
    first = search.begin(seed)
    with search.silent():
        saved = search.guarded(search.save)
        search.rehearse(saved)
        full = search.expand(first, saved, max_states, progress)
    n = int(space.n) if own else len(numbers)
    if not 0 <= min(numbers.values()) <= max(numbers.values()) < n:
        raise ValueError(f"{name} has observations outside of its space {space}: correct that space")
    coords, legend = (None, "") if own else probe.places(list(numbers))
    # The legend names MiniGrid's own actions.
    legend = "" if any(map(acts, search.layers)) else legend
    # States that were not expanded stay put under every action.
    successors = np.repeat(np.arange(n), n_actions).reshape(n, n_actions)
    for number, row in rows.items():
        successors[number] = row
    size = successors.size
    table = csr_array((np.ones(size), successors.ravel(), np.arange(size + 1)), shape=(size, n))
    mdp = MDP(table, coords=coords, start=numbers[first], name=name, legend=legend)
    if full:
        raise StateLimitReached(
            f"{name} has more than max_states={max_states} states: {len(rows)} of the {len(numbers)} found "
            "were expanded; raise max_states, or take the part that was found from .mdp of this error",
            mdp,
            len(rows),
        )
    log.info("%s: %d states found by exploration", name, len(numbers))

    def again() -> Hashable:
        if seed is not None:
            return search.begin(seed)
        # Every reset would be another layout.
        search.restore(saved)
        return first

    search.replay(again)
    return mdp, numbers


class _Search:
    """A breadth-first search of an environment, which is stepped with its wrappers.

    It finds `numbers` of keys, successors of states (`rows`), and the actions that end an episode (`ends`). With `low`,
    keys are observations of a space that starts there, and keep their numbers.
    """

    def __init__(self, env: Any, probe: Probe, n_actions: int, low: int | None) -> None:
        self.env, self.base, self.probe, self.name = env, env.unwrapped, probe, name_of(env)
        self.n_actions, self.low = n_actions, low
        self.layers = layers(env)
        if MiniGrid.fits(self.base):
            # Observations are not needed, and take most of the time.
            self.layers = [layer for layer in self.layers if acts(layer)]
        self.outer = self.layers[0] if self.layers else self.base
        self.numbers: dict[Hashable, int] = {}
        self.rows: dict[int, list[int]] = {}
        self.ends: set[tuple[int, int]] = set()

    def save(self) -> Any:
        """The present state, for `restore`, with that of the wrappers."""
        return self.probe.save(self.base), [self._copied(vars(layer)) for layer in self.layers]

    def restore(self, saved: Any) -> None:
        """Return to a saved state."""
        self.probe.restore(self.base, saved[0])
        for layer, state in zip(self.layers, saved[1], strict=True):
            inside = layer.env
            vars(layer).clear()
            vars(layer).update(self._copied(state), env=inside)

    def _copied(self, state: dict[str, Any]) -> dict[str, Any]:
        """A copy of a wrapper's attributes; references to the environments inside stay references."""
        memo: dict[int, Any] = {id(part): part for part in (*self.layers, self.base)}
        return {name: copy.deepcopy(value, memo) for name, value in state.items() if name != "env"}

    def take(self, action: int) -> tuple[Hashable, bool]:
        """Take an action that must not draw random numbers: key of the next state, and whether the episode ended."""
        before = _generator_state(self.base)
        obs, _, terminated, _, _ = self.outer.step(action)
        if _generator_state(self.base) != before:
            raise self.randomness("draws random numbers in a step")
        return self.probe.key(self.base, obs), bool(terminated)

    def begin(self, seed: int | None) -> Hashable:
        """Reset the environment; the key of its first state."""
        obs, _ = self.env.reset(seed=seed)
        return self.probe.key(self.base, obs)

    def randomness(self, what: str) -> ValueError:
        """The error for an environment that is not deterministic."""
        return ValueError(
            f"{self.name} {what}: only a deterministic environment can be explored; sample this one "
            "(discover(env, steps=...), or collect)"
        )

    def guarded(self, part: Callable[..., Any], *arguments: Any) -> Any:
        """Call `save` or `restore` for the first time; ValueError where the environment has none."""
        try:
            return part(*arguments)
        except Exception as error:
            raise ValueError(
                f"{self.name} cannot be cloned ({type(error).__name__}: {error}): pass save= and restore=, "
                "or sample it with collect"
            ) from error

    def rehearse(self, saved: Any) -> None:
        """Take each action twice from the first state, to detect a copy that does not hold the whole state."""
        for action in range(self.n_actions):
            seen = []
            for _ in range(2):
                self.guarded(self.restore, saved)
                seen.append(self.take(action)[0])
            if seen[0] != seen[1]:
                raise ValueError(
                    f"{self.name} cannot be put back: action {action} of the first state led to two different states; "
                    "pass save= and restore= that keep its whole state, or, if it is random, sample this one (collect)"
                )

    def number(self, key: Any) -> int:
        """Number of a state, the next free one if it is new."""
        return self.numbers.get(key, len(self.numbers)) if self.low is None else int(key) - self.low

    def expand(self, first: Hashable, saved: Any, max_states: int, progress: Progress | None) -> bool:
        """Search from the first state; whether it was given up because of more than `max_states` states."""
        self.numbers[first] = start = self.number(first)
        queued, queue = {start}, deque([(start, saved)])
        full = False
        while queue and not full:
            number, saved = queue.popleft()
            row: list[int] = []
            for action in range(self.n_actions):
                self.restore(saved)
                key, terminated = self.take(action)
                found = self.number(key)
                if found == max_states and self.low is None:
                    full = True
                    break
                self.numbers[key] = found
                row.append(found)
                if terminated:
                    # An ended episode has no successors.
                    self.ends.add((number, action))
                elif found not in queued:
                    queued.add(found)
                    queue.append((found, self.save()))
            else:
                self.rows[number] = row
            if progress is not None and (len(self.rows) % 64 == 0 or not queue or full):
                progress(len(self.rows), len(self.numbers))
        return full

    def replay(self, again: Callable[[], Hashable]) -> None:
        """Compare random walks in the live environment with the table; ValueError where they differ.

        `again` begins an episode and returns the key of its first state. Ends of episodes that a table of states cannot
        express are reported as a warning.
        """
        rng, rows = np.random.default_rng(0), self.rows
        steps = int(np.clip(REPLAY_SHARE * len(rows) * self.n_actions, REPLAY_STEPS, MAX_REPLAY_STEPS))
        for _ in range(-(-steps // STEPS_PER_WALK)):
            at = self.numbers.get(again())
            if at is None:
                raise self.randomness(
                    "does not repeat itself: a reset led to a state that exploration did not find"
                )
            with self.silent():
                before = _generators((*self.layers, self.base))
                for _ in range(STEPS_PER_WALK):
                    if at not in rows:
                        break
                    action = int(rng.integers(self.n_actions))
                    key, terminated = self.take(action)
                    to = self.numbers.get(key)
                    if to != rows[at][action] or terminated != ((at, action) in self.ends):
                        other = "led to another state or did not end the episode"
                        what = "ended the episode" if terminated else other
                        raise self.randomness(
                            f"does not repeat itself: action {action} in state {at} {what}, other than when it was "
                            "explored; it is random, or remembers what its observation (key=) leaves out"
                        )
                    at = None if terminated else to
                now = _generators((*self.layers, self.base))
                for name, state in before.items():
                    if now.get(name, state) != state:
                        raise self.randomness(f"draws random numbers in a step ({name})")
        lost = sum(rows[s][a] in rows for s, a in self.ends)
        if lost:
            log.warning(
                "%s: %d actions end the episode in a state where it goes on if that is reached otherwise; the table "
                "has states only, so there it goes on",
                self.name,
                lost,
            )

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Switch rendering off, and MiniGrid's observations where nothing uses them."""
        base = self.base
        mode, draws = base.render_mode, hasattr(base, "gen_obs") and not self.layers
        base.render_mode = None
        if draws:
            base.gen_obs = dict
        try:
            yield
        finally:
            base.render_mode = mode
            if draws:
                del base.gen_obs


def _generators(parts: tuple[Any, ...]) -> dict[str, Any]:
    """States of the random generators that a step could use: the global ones, and those in attributes of the parts."""
    # The global generator is looked at, not used.
    found: dict[str, Any] = {"random": random.getstate()}
    found["numpy.random"] = _state(np.random.get_state())  # noqa: NPY002
    for part in parts:
        for name, value in vars(part).items():
            state = _generator(value)
            if state is not None:
                found[f"{type(part).__name__}.{name}"] = state
    return found


def _generator(value: Any) -> Any:
    """State of a random generator, None for other objects."""
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return _state(value.get_state())
    return value.getstate() if isinstance(value, random.Random) else None


def _state(parts: Any) -> Any:
    """State of a legacy NumPy generator, in a form that can be compared."""
    return tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in parts)


def _generator_state(base: Any) -> Any:
    """State of the environment's own random generator; None before it has one."""
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
