"""How options recognise the states of an environment whose observations are not the numbers of states.

`from_env` numbers the states by a key of each: the observation, or what MiniGrid's grid holds. The `MDP` keeps the keys
(`states`) and how they are made (`recognition`), so that `OptionsWrapper` finds the number of the present state while
the agent keeps its own observations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any

import gymnasium as gym
import numpy as np

from eigenoptions._validation import check_choice, check_int, check_state
from eigenoptions.envs import minigrid
from eigenoptions.envs.sources import env_name
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
        return hashlib.blake2b(obs.astype(np.int64).tobytes(), digest_size=16).hexdigest()
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

    Parameters
    ----------
    options
        As in `OptionsWrapper`.
    state
        The user's function, which comes before the recognition that the options remember.
    """

    def __init__(self, options: Any, state: Callable[[Any], Any] | None = None) -> None:
        self.state = state
        self.mdp: MDP | None = options.mdp if isinstance(options, OptionSet) else None
        self._n_states = 0 if self.mdp is None else self.mdp.n_states
        self.recognition = (getattr(self.mdp, "recognition", None) if state is None else None) or {}
        # Moves that were not sampled may still be possible.
        is_exact = self.mdp is not None and options.provenance.get("dynamics") != "estimated"
        self._checks_moves = is_exact and not self.recognition.get("partial", False)
        if self.recognition:
            by = self.recognition["by"]
            self._key = by if callable(by) else KEYS[check_choice("recognition", by, KEYS)]
            self._numbers = {key: number for number, key in enumerate(self.mdp.states or ())}  # type: ignore[union-attr]

    def read(self, env: Any, obs: Any) -> Any:
        """What options act on at an observation of the unwrapped environment; -1: a state that they do not know."""
        if self.recognition:
            number = self._numbers.get(self._key(env, obs), -1)
            if number < 0 and not self.recognition.get("partial", False):
                raise ValueError(self._explain(env, "is in a state that these options do not know"))
            return number
        value = obs if self.state is None else self.state(obs)
        return value if self.mdp is None else check_state(value, self._n_states)

    def read_first(self, env: Any, obs: Any) -> Any:
        """The same after a reset: the episode must have the layout in which the options were discovered."""
        layout = self.recognition.get("layout")
        if layout is not None and not (minigrid.is_minigrid(env) and minigrid.identify_layout(env) == layout):
            raise ValueError(self._explain(env, "has another layout than that of the options"))
        return self.read(env, obs)

    def is_unknown(self, value: Any) -> bool:
        """Whether this is a state outside the part that the options know."""
        return self.mdp is not None and value < 0

    def check_move(self, before: int, after: int) -> None:
        """Raise ValueError if no action leads from one state to the other in the MDP of the options."""
        if not self._checks_moves or before == after:
            return
        mdp = self.mdp
        assert mdp is not None
        first, last = mdp.transition.indptr[[before * mdp.n_actions, (before + 1) * mdp.n_actions]]
        successors = mdp.transition.indices[first:last]
        # Nothing is known of a state where every action stays put, such as one that was never reached.
        if after not in successors and (successors != before).any():
            remedy = "discover options on this environment" if self.state is None else "correct state="
            raise ValueError(
                f"options of another state space: a step led from state {before} to {after}, which no action does in "
                f"{mdp!r}; {remedy}"
            )

    def _explain(self, env: Any, problem: str) -> str:
        seed = self.recognition.get("seed")
        remedy = "discover options on this environment"
        if seed is not None:
            remedy = f"make every episode that of seed {seed}, OptionsWrapper(eo.envs.FixedSeed(env, {seed}), ...), or "
            remedy += "discover options on this environment"
        return f"{env_name(env)} {problem} ({self.mdp!r}): {remedy}"


class FixedSeed(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """An environment whose episodes all begin with ``reset(seed=seed)``: one layout of MiniGrid, say.

    What is random after the reset differs from episode to episode; the seed of `reset` draws it.

    Parameters
    ----------
    env
        The environment.
    seed
        Seed of every reset; that of `from_env` and `discover` is 0.

    Examples
    --------
    >>> env = FixedSeed(gym.make("minigrid:MiniGrid-FourRooms-v0"), 0)
    >>> places = [env.reset() and tuple(map(int, env.unwrapped.agent_pos)) for _ in range(3)]
    >>> len(set(places))
    1
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, seed=seed)
        gym.Wrapper.__init__(self, env)
        self.seed = check_int("seed", seed, 0)
        self._rng = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the fixed seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        obs, info = self.env.reset(seed=self.seed, options=options)
        self.env.unwrapped.np_random = self._rng
        return obs, info
