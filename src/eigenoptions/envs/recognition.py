"""How options recognise the states of an environment, and whether the environment is the one they belong to.

`from_env` numbers states by a key of each: the observation, or what MiniGrid's grid holds. The `MDP` keeps the keys
(`states`) and how they are made (`recognition`), so that `OptionsWrapper` finds the number of the present state while
the agent keeps its own observations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions._validation import check_choice, check_int, check_state
from eigenoptions.envs import minigrid
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

# Of the unwrapped environment and its observation.
Key = Callable[[Any, Any], Hashable]


def make_hashable(obs: Any) -> Hashable:
    """An observation as a key of a dictionary, which JSON can write; large arrays as a digest.

    >>> make_hashable({"cell": np.array([1, 2]), "has_key": np.int64(0)})
    (('cell', (1, 2)), ('has_key', 0))
    """
    if isinstance(obs, dict):
        return tuple((name, make_hashable(obs[name])) for name in sorted(obs))
    if isinstance(obs, tuple | list):
        return tuple(map(make_hashable, obs))
    if isinstance(obs, np.ndarray) and obs.size > 64:
        return hashlib.blake2b(
            obs.astype(np.int64).tobytes(), digest_size=16
        ).hexdigest()
    if isinstance(obs, np.ndarray) and obs.ndim:
        return tuple(obs.ravel().tolist())
    return obs.item() if isinstance(obs, np.ndarray | np.generic) else obs  # type: ignore[no-any-return]


# Keys that a file can name.
KEYS: dict[str, Key] = {
    "observation": lambda env, obs: make_hashable(obs),
    "minigrid": lambda env, obs: minigrid.identify_state(env),
}


class StateReader:
    """What options act on in an environment: the observation, what `state` makes of it, or the number of the state.

    `options` is that of `OptionsWrapper`, or an `MDP`. The user's `state` comes before what the options remember.
    """

    def __init__(self, options: Any, state: Callable[[Any], Any] | None = None) -> None:
        self.options, self.state = options, state
        self.mdp: MDP | None = (
            options if isinstance(options, MDP) else getattr(options, "mdp", None)
        )
        self.recognition = (
            {} if self.mdp is None or state is not None else self.mdp.recognition or {}
        )
        self._n_states = 0 if self.mdp is None else self.mdp.n_states
        self._is_partial = self.recognition.get("partial", False)
        # Moves that were not sampled may still be possible.
        is_estimated = getattr(options, "provenance", {}).get("dynamics") == "estimated"
        self.checks_moves = (
            self.mdp is not None and not self._is_partial and not is_estimated
        )
        if self.mdp is not None and self.recognition:
            by = self.recognition["by"]
            self._key = (
                by if callable(by) else KEYS[check_choice("recognition", by, KEYS)]
            )
            self._numbers = {
                key: number for number, key in enumerate(self.mdp.states or ())
            }

    def read(self, env: Any, obs: Any, is_first: bool = False) -> Any:
        """What options act on at an observation of the environment; -1: a state that they do not know.

        With the first observation of an episode (`is_first`), the layout is compared with that of the options.
        """
        if self.recognition:
            layout = self.recognition.get("layout") if is_first else None
            if layout is not None and layout != minigrid.identify_layout(env.unwrapped):
                raise ValueError(
                    self._explain(env, "has another layout than that of the options")
                )
            number = self._numbers.get(self._key(env.unwrapped, obs), -1)
            if number < 0 and not self._is_partial:
                raise ValueError(
                    self._explain(env, "is in a state that these options do not know")
                )
            return number
        value = obs if self.state is None else self.state(obs)
        return value if self.mdp is None else check_state(value, self._n_states)

    def check_move(self, before: int, after: int, action: int | None = None) -> None:
        """Raise ValueError if no action (or not this one) leads from one state to the other in the options' MDP."""
        # Any action may fail to move.
        if (
            self.mdp is None
            or not self.checks_moves
            or (action is None and before == after)
        ):
            return
        row, table = before * self.mdp.n_actions, self.mdp.transition
        first, last = (
            (row, row + self.mdp.n_actions)
            if action is None
            else (row + action, row + action + 1)
        )
        successors = table.indices[table.indptr[first] : table.indptr[last]]
        # Where every action stays put, it may be that none was ever tried.
        if after not in successors and (successors != before).any():
            taken = "a step" if action is None else f"action {action}"
            remedy = (
                "discover options on this environment"
                if self.state is None
                else "correct state="
            )
            move = f"{taken} led from state {before} to {after}, which never happens in {self.mdp!r}"
            raise ValueError(f"options of another state space: {move}; {remedy}")

    def _explain(self, env: Any, problem: str) -> str:
        seed, remedy = (
            self.recognition.get("seed"),
            "discover options on this environment",
        )
        if seed is not None:
            fixed = f"OptionsWrapper(eo.envs.FixedSeed(env, {seed}), ...)"
            remedy = f"make every episode that of seed {seed}, {fixed}, or {remedy}"
        return f"{env_name(env)} {problem} ({self.mdp!r}): {remedy}"


def check_spaces(
    env: Any, options: OptionSet | Sequence[Any], mapped: bool = False
) -> int:
    """Number of primitive actions; ValueError unless the spaces of a (vector) environment are those of the options.

    `mapped`: the options act on something else than the observations. The environment is not stepped.
    """
    n_actions = count_actions(env)
    if not hasattr(options, "__len__") or not all(
        hasattr(option, "act") for option in options
    ):
        kind = type(options).__name__
        raise ValueError(
            f"options must be an OptionSet or a list of objects with act(obs), got {kind}"
        )
    if len(options) == 0:
        raise ValueError("there are no options: discover at least one")
    expected = getattr(options, "n_actions", n_actions)
    if expected != n_actions:
        sizes = f"they choose among {expected} actions, {env_name(env)} has {n_actions}"
        raise ValueError(
            f"options of another environment: {sizes}; discover options on it"
        )
    if (
        isinstance(options, OptionSet)
        and not mapped
        and options.mdp.recognition is None
    ):
        space = getattr(env, "single_observation_space", env.observation_space)
        if not isinstance(space, Discrete) or (space.start, space.n) != (
            0,
            options.n_states,
        ):
            kinds = f"the numbers of {options.n_states} states, but observations are {space}"
            remedy = "discover options on this environment, or pass state=, a function to the state's number"
            raise ValueError(f"these options act on {kinds}: {remedy}")
    return n_actions


def check_dynamics(
    options: OptionSet,
    env: gym.Env[Any, Any],
    *,
    state: Callable[[Any], Any] | None = None,
    steps: int = 200,
) -> None:
    """Raise ValueError if a random walk makes a move that is impossible in the MDP of the options.

    ``options.check(env)`` calls it. The environment takes `steps` steps: reset it before you use it again. `state` is
    that of `OptionsWrapper`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> check_dynamics(eo.discover(eo.maze("four-rooms"), n_options=2), eo.envs.MazeEnv("four-rooms"))
    """
    n_actions = check_spaces(env, options, mapped=state is not None)
    rng, reader = np.random.default_rng(0), StateReader(options, state)
    seed, ended, number = reader.recognition.get("seed", 0), True, 0
    for _ in range(check_int("steps", steps)):
        if ended:
            obs, _ = env.reset(seed=seed)
            seed, number = (
                reader.recognition.get("seed"),
                reader.read(env, obs, is_first=True),
            )
        before, action = number, int(rng.integers(n_actions))
        obs, _, terminated, truncated, _ = env.step(action)
        number, ended = reader.read(env, obs), terminated or truncated
        reader.check_move(before, number, action)
