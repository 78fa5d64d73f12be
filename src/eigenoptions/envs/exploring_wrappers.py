"""`Exploring`: agents as they are, whose random actions go to the unknown."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, IntegerArray, Randomness
from eigenoptions._validation import make_generator
from eigenoptions.envs.experience import Experience, Walker, describe_env
from eigenoptions.envs.exploring_spaces import ExploringSpace, ExploringVectorSpace
from eigenoptions.envs.families import Key, find_family
from eigenoptions.envs.fixed_seed import FixedSeed
from eigenoptions.envs.found import Found
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.envs.wrapper import OptionsWrapper

logger = logging.getLogger("eigenoptions")


class Exploring(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose ``action_space.sample()`` is the next action to the unknown.

    Agents that are epsilon-greedy explore by samples of the action space: SB3's DQN,
    CleanRL's, your own. With this wrapper their random actions explore as `explore`
    does, and nothing else changes. The table grows with every step, whoever chose it.
    Agents that never sample, such as PPO, do not profit: use `explore` first.

    The wrapper stands alone, or inside `OptionsWrapper`, whose samples of primitive
    actions are then those of this one.

    Parameters
    ----------
    env : gymnasium.Env
        The environment, in one layout: wrap MiniGrid in ``eo.envs.FixedSeed(env)``.
    key : str or callable, default=None
        How states are recognised, as in `explore`.
    rng : int or Generator, default=0
        Decides between equal actions.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> env = Exploring(eo.envs.MazeEnv("four-rooms"))
    >>> obs, info = env.reset(seed=0)
    >>> for _ in range(300):
    ...     action = env.action_space.sample()
    ...     obs, reward, terminated, truncated, info = env.step(action)
    ...     if terminated or truncated:
    ...         obs, info = env.reset()
    >>> len(env.found.seen) > 75
    True
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        key: str | Key | None = None,
        rng: Randomness = 0,
    ) -> None:
        RecordConstructorArgs.__init__(self, key=key, rng=rng)
        gym.Wrapper.__init__(self, env)
        _refuse_options(env)
        self._key = key
        self._rng = make_generator(rng)
        self._space = ExploringSpace(count_actions(env), self._choose)
        self.action_space = self._space
        # Known after the first reset.
        self._experience: Experience | None = None
        self._walker: Walker | None = None
        self._n_steps = 0

    @property
    def found(self) -> Found:
        """What was found so far, as `explore` returns it."""
        if self._experience is None:
            raise gym.error.ResetNeeded("call reset before found")
        return self._experience.found

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        if self._experience is None or self._walker is None:
            about = describe_env(self.env, self._key, _find_seed(self.env, seed))
            self._experience = Experience(about)
            self._walker = Walker(self._experience, self._rng)
        _check_layout(self.env, self._experience)
        self._walker.begin(self.env, obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step, and add it to what was found."""
        if self._walker is None or self._experience is None:
            raise gym.error.ResetNeeded("call reset before step")
        obs, reward, terminated, truncated, info = self.env.step(action)
        # Some environments go on after the end of an episode; the table does not.
        if self._walker.is_in_episode:
            self._walker.add(
                self.env,
                int(action),
                obs,
                float(reward),
                bool(terminated),
                bool(truncated),
            )
            self._experience.check_repeats()
        self._n_steps += 1
        self._check_samples()
        return obs, float(reward), terminated, truncated, info

    def _choose(self) -> int | None:
        """Return the next action to the unknown; None before the first reset."""
        if self._walker is None or not self._walker.is_in_episode:
            return None
        return self._walker.choose()

    def _check_samples(self) -> None:
        """Warn of an agent that never samples; refuse several that share one space."""
        name = env_name(self.env)
        n_samples = self._space.n_samples
        if self._n_steps == 1000 and n_samples == 0:
            logger.warning(
                "Exploring: nothing has called action_space.sample() of %s in 1,000 "
                "steps; agents that explore by their own policy, such as PPO, should "
                'explore first: found = explore(env, steps, until="reward")',
                name,
            )
        if self._n_steps == 100 and n_samples >= 2 * self._n_steps:
            raise ValueError(
                f"action_space.sample() of {name} was called {n_samples} times in "
                f"{self._n_steps} steps, as for several environments: a vector of them "
                "needs one table, ExploringVector(envs)"
            )


class ExploringVector(gym.vector.VectorWrapper):
    """`Exploring` for a vector environment: one table for all of its environments.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        A vector environment that resets itself (``NEXT_STEP`` or ``SAME_STEP``). States
        that are recognised inside the environment need a `SyncVectorEnv`.
    key : str or callable, default=None
        How states are recognised, as in `explore`.
    rng : int or Generator, default=0
        Decides between equal actions.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> envs = gym.make_vec("eigenoptions/FourRooms-v0", num_envs=3)
    >>> envs = ExploringVector(envs)
    >>> obs, infos = envs.reset(seed=0)
    >>> for _ in range(100):
    ...     obs, *_ = envs.step(envs.action_space.sample())
    >>> len(envs.found.seen) > 60
    True
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        *,
        key: str | Key | None = None,
        rng: Randomness = 0,
    ) -> None:
        super().__init__(env)
        n_actions = count_actions(env)
        self._autoreset = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self._autoreset not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ValueError(
                "ExploringVector needs environments that reset themselves, got "
                f"autoreset_mode={self._autoreset}: make them with NEXT_STEP"
            )
        self._key = key
        self._rng = make_generator(rng)
        self._space = ExploringVectorSpace(n_actions, self.num_envs, self._choose)
        self.single_action_space = ExploringSpace(n_actions, None)
        self.action_space: ExploringVectorSpace = self._space
        self._experience: Experience | None = None
        self._walkers: list[Walker] = []

    @property
    def found(self) -> Found:
        """What was found so far in all environments, as `explore` returns it."""
        if self._experience is None:
            raise gym.error.ResetNeeded("call reset before found")
        return self._experience.found

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment."""
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        envs = self._list_envs()
        if self._experience is None:
            first_seed = seed if isinstance(seed, int) else None
            about = describe_env(envs[0], self._key, _find_seed(envs[0], first_seed))
            self._experience = Experience(about)
            self._walkers = [
                Walker(self._experience, generator)
                for generator in self._rng.spawn(self.num_envs)
            ]
        for i, walker in enumerate(self._walkers):
            _check_layout(envs[i], self._experience)
            walker.begin(envs[i], _take_row(obs, i))
        return obs, infos

    def step(
        self, actions: IntegerArray
    ) -> tuple[Any, NDArray[Any], BoolArray, BoolArray, dict[str, Any]]:
        """Take a step in every environment, and add it to what was found."""
        if self._experience is None:
            raise gym.error.ResetNeeded("call reset before step")
        was_over = [not walker.is_in_episode for walker in self._walkers]
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        envs = self._list_envs()
        for i, walker in enumerate(self._walkers):
            if was_over[i]:
                # This row is the first of an episode, whatever the action was.
                walker.begin(envs[i], _take_row(obs, i))
                continue

            is_over = bool(terminated[i] or truncated[i])
            resets_now = is_over and self._autoreset == AutoresetMode.SAME_STEP
            last_obs = infos["final_obs"][i] if resets_now else _take_row(obs, i)
            walker.add(
                envs[i],
                int(actions[i]),
                last_obs,
                float(rewards[i]),
                bool(terminated[i]),
                bool(truncated[i]),
            )
            if resets_now:
                walker.begin(envs[i], _take_row(obs, i))
        self._experience.check_repeats()
        return obs, rewards, terminated, truncated, infos

    def _choose(self) -> list[int | None]:
        """Return the next action of each environment to the unknown."""
        actions = []
        for walker in self._walkers:
            actions.append(walker.choose() if walker.is_in_episode else None)
        return actions

    def _list_envs(self) -> list[Any]:
        """Return the environments that states are recognised in."""
        envs = getattr(self.env.unwrapped, "envs", None)
        if envs:
            return list(envs)
        return [_OnlyObserved(self.env)] * self.num_envs


class _OnlyObserved:
    """An environment in another process, of which only observations are known."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.spec = envs.spec
        self.unwrapped = self


def _refuse_options(env: gym.Env[Any, Any]) -> None:
    """Raise ValueError if options are among the actions already."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, OptionsWrapper):
            raise ValueError(
                "Exploring goes inside OptionsWrapper, where it sees primitive steps: "
                "OptionsWrapper(Exploring(env), options)"
            )
        layer = layer.env


def _find_seed(env: gym.Env[Any, Any], seed: int | None) -> int:
    """Return the seed of the layout: that of `FixedSeed`, or of the first reset."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, FixedSeed):
            return layer.seed
        layer = layer.env
    return 0 if seed is None else seed


def _check_layout(env: gym.Env[Any, Any], experience: Experience) -> None:
    """Raise ValueError if the layout is not the one that was explored."""
    layout = experience.about.layout
    if layout is None or layout == find_family(env).identify_layout(env.unwrapped):
        return
    seed = experience.about.seed
    raise ValueError(
        f"{env_name(env)} changed its layout, and a table holds only one: make every "
        f"episode that of seed {seed}, Exploring(eo.envs.FixedSeed(env, {seed}))"
    )


def _take_row(obs: Any, i: int) -> Any:
    """Return the observation of one environment of a vector."""
    if isinstance(obs, dict):
        return {name: _take_row(part, i) for name, part in obs.items()}
    if isinstance(obs, tuple) and not isinstance(obs[0], str):
        return tuple(_take_row(part, i) for part in obs)
    return obs[i]
