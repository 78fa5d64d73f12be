"""`StateNumber`: the number of the present state as the agent's observation."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from eigenoptions._validation import check_int
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognisers import choose_recognition, make_recogniser
from eigenoptions.envs.sources import env_name, reset_env, step_env


class StateNumber(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose observation is the number of its state.

    States are recognised as in `explore`, and numbered in the order in which they are
    first seen. A view of a few cells looks alike in many places; the pose that `key`
    reads from views and actions does not, and a DQN learns goals that it never learns
    from the view. The layout must be the same in every episode. (`Numbered` numbers all
    states in advance, by a search of the environment.)

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    key : str or callable, default=None
        How states are recognised, as in `explore`.
    max_states : int, default=10000
        Size of the observation space. More states are an error.
    numbers : dict, default=None
        Numbers that are known, from the key of a state to its number: the attribute of
        another of these wrappers. It is shared, so that an agent is tested with the
        numbers that it was trained with.

    Attributes
    ----------
    numbers : dict
        From the key of each state seen so far to its number.

    Examples
    --------
    >>> from eigenoptions.envs import FixedSeed
    >>> view = gym.make("minigrid:MiniGrid-FourRooms-v0")
    >>> env = StateNumber(FixedSeed(view), key="pose")
    >>> env.reset()[0], env.step(0)[0], env.step(1)[0]
    (0, 1, 0)
    >>> test_env = StateNumber(FixedSeed(view), key="pose", numbers=env.numbers)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        key: str | Key | None = None,
        max_states: int = 10_000,
        numbers: dict[Hashable, int] | None = None,
    ) -> None:
        # A copy of the numbers would not be shared.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            key=key,
            max_states=max_states,
            numbers=numbers,
        )
        gym.Wrapper.__init__(self, env)
        self.observation_space = Discrete(check_int("max_states", max_states))
        self.numbers: dict[Hashable, int] = {} if numbers is None else numbers
        self._recogniser = make_recogniser(choose_recognition(env, key))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        obs, info = reset_env(self.env, seed=seed, options=options)
        return self._find_number(self._recogniser.begin(self.env, obs)), info

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take a step."""
        obs, reward, terminated, truncated, info = step_env(self.env, action)
        key = self._recogniser.follow(self.env, obs, int(action))
        number = self._find_number(key)
        return number, float(reward), bool(terminated), bool(truncated), info

    def _find_number(self, key: Hashable) -> int:
        """Return the number of a state, which is the next one if the state is new."""
        number = self.numbers.setdefault(key, len(self.numbers))
        n_states = int(self.observation_space.n)  # type: ignore[attr-defined]
        if number >= n_states:
            raise ValueError(
                f"{env_name(self.env)} has more than max_states={n_states} states: "
                "raise max_states, give a coarser key, or fix the layout "
                "(eo.envs.FixedSeed)"
            )
        return number
