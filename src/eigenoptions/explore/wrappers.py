"""`Exploring`: agents as they are, whose random actions go to the unknown."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, IntegerArray, Randomness
from eigenoptions._validation import make_generator
from eigenoptions.envs.families import Key, find_family
from eigenoptions.envs.fixed_seed import find_fixed_seed
from eigenoptions.envs.recognisers import choose_recognition, looks_inside
from eigenoptions.envs.remote import RemoteEnv, list_single_envs
from eigenoptions.envs.rows import check_resets_itself, read_last_obs, take_row
from eigenoptions.envs.sources import count_actions, env_name, reset_env, step_env
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper
from eigenoptions.explore.found import Found
from eigenoptions.explore.knowledge import KnowledgeMaker, choose_reader
from eigenoptions.explore.spaces import (
    ExploringSpace,
    ExploringVectorSpace,
    make_exploring_space,
)
from eigenoptions.explore.walkers import AnyWalker, Knowledge, Walkers

logger = logging.getLogger("eigenoptions")


# Steps that follow several samples, and none that follows a single one, after which it
# is sure that the samples are for several environments.
_MAX_SEVERAL = 5


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
    columns : sequence of int, default=None
        As in `explore`.

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
        columns: Sequence[int] | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, key=key, rng=rng, columns=columns)
        gym.Wrapper.__init__(self, env)
        _refuse_options(env)
        self._key = key
        self._rng = make_generator(rng)
        self._reader = choose_reader(env, key)
        self._columns = columns
        self._space = make_exploring_space(env, self._choose)
        self.action_space = self._space
        # Known after the first reset.
        self._walkers: Walkers | None = None
        self._n_steps = 0
        # How the agent uses samples: how many it had drawn by the last step, and how
        # many steps followed a single new one or several.
        self._n_samples = 0
        self._n_steps_after_one = 0
        self._n_steps_after_several = 0

    @property
    def found(self) -> Found:
        """What was found so far, as `explore` returns it."""
        if self._walkers is None:
            raise gym.error.ResetNeeded("call reset before found")
        return self._knowledge.find(self._walkers)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        if self._walkers is not None:
            self._walkers.leave()
        obs, info = reset_env(self.env, seed=seed, options=options)
        if self._walkers is None:
            layout_seed = _choose_seed(self.env, seed)
            self._knowledge = KnowledgeMaker(
                self.env, self._key, layout_seed, self._reader, self._columns
            )
            self._walkers = Walkers(self._knowledge.make(), [self._rng])
        with self._walkers.changing() as (walker,):
            _check_layout(self.env, walker.experience)
            walker.begin(self.env, obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step, and add it to what was found."""
        if self._walkers is None:
            raise gym.error.ResetNeeded("call reset before step")
        with self._walkers.changing() as (walker,):
            obs, reward, terminated, truncated, info = step_env(self.env, action)
            # The table waits for the next reset after the end of an episode, which some
            # environments step past, and after an exception.
            if walker.is_in_episode:
                walker.add(
                    self.env,
                    action if self._space.is_box else int(action),
                    obs,
                    float(reward),
                    bool(terminated),
                    bool(truncated),
                )
        self._knowledge.check_repeats(self._walkers, [obs])
        self._n_steps += 1
        self._check_use_of_samples()
        return obs, float(reward), terminated, truncated, info

    def _choose(self) -> Any:
        """Return the next action to the unknown; None before the first reset."""
        if self._walkers is None:
            return None
        with self._walkers.changing() as (walker,):
            action = walker.choose() if walker.is_in_episode else None
            return None if action is None else walker.experience.give(action)

    def _check_use_of_samples(self) -> None:
        """Warn of an agent that never samples; refuse several that share one space."""
        name = env_name(self.env)
        n_new = self._space.n_samples - self._n_samples
        self._n_samples = self._space.n_samples
        self._n_steps_after_one += n_new == 1
        self._n_steps_after_several += n_new > 1

        is_shared = self._n_steps_after_several == _MAX_SEVERAL
        if is_shared and self._n_steps_after_one == 0:
            raise ValueError(
                f"action_space.sample() of {name} is called {n_new} times for each "
                "step, as for several environments: a vector of them needs one table, "
                "ExploringVector(envs)"
            )
        if self._n_steps == 1000 and self._n_samples == 0:
            logger.warning(
                "Exploring: nothing has called action_space.sample() of %s in 1,000 "
                "steps; agents that explore by their own policy, such as PPO, should "
                'explore first: found = explore(env, steps, until="reward")',
                name,
            )


class ExploringVector(gym.vector.VectorWrapper):
    """`Exploring` for a vector environment: one table for all of its environments.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        A vector environment that resets itself (``NEXT_STEP`` or ``SAME_STEP``). An
        `AsyncVectorEnv` needs a key that does not look inside the environment:
        ``"observation"`` or ``"pose"`` for MiniGrid.
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
        _refuse_options(env)
        n_actions = count_actions(env)
        self._autoreset = check_resets_itself(env)

        self._single_envs = list_single_envs(env)
        by = choose_recognition(self._single_envs[0], key)
        if looks_inside(by) and isinstance(self._single_envs[0], RemoteEnv):
            raise ValueError(
                "these states are recognised inside the environment, which another "
                'process holds: use SyncVectorEnv, or key="observation"'
            )

        self._key = key
        self._rng = make_generator(rng)
        self._space = ExploringVectorSpace(n_actions, self.num_envs, self._choose)
        self.single_action_space = ExploringSpace(n_actions, None)
        self.action_space: ExploringVectorSpace = self._space

        # Known after the first reset.
        self._walkers: Walkers | None = None
        # Where the next row begins an episode.
        self._is_over = [False] * self.num_envs

    @property
    def found(self) -> Found:
        """What was found so far in all environments, as `explore` returns it."""
        if self._walkers is None:
            raise gym.error.ResetNeeded("call reset before found")
        return self._knowledge.find(self._walkers)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment."""
        if self._walkers is not None:
            self._walkers.leave()
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        if self._walkers is None:
            first_env = self._single_envs[0]
            first_seed = seed if isinstance(seed, int) else None
            self._knowledge = KnowledgeMaker(
                first_env,
                self._key,
                _choose_seed(first_env, first_seed),
                choose_reader(first_env, self._key),
            )
            generators = self._rng.spawn(self.num_envs)
            self._walkers = Walkers(self._knowledge.make(), generators)
        with self._walkers.changing() as walkers:
            for i, walker in enumerate(walkers):
                self._begin_episode(walker, i, obs)
        self._is_over = [False] * self.num_envs
        return obs, infos

    def _begin_episode(self, walker: AnyWalker, i: int, obs: Any) -> None:
        """Begin an episode in one environment."""
        _check_layout(self._single_envs[i], walker.experience)
        walker.begin(self._single_envs[i], self._take_row(obs, i))

    def _take_row(self, obs: Any, i: int) -> Any:
        """Return the observation of one environment."""
        return take_row(self.single_observation_space, obs, i)

    def step(
        self, actions: IntegerArray
    ) -> tuple[Any, NDArray[Any], BoolArray, BoolArray, dict[str, Any]]:
        """Take a step in every environment, and add it to what was found."""
        if self._walkers is None:
            raise gym.error.ResetNeeded("call reset before step")
        was_over = self._is_over
        # After an exception nobody knows which rows begin an episode: all wait for the
        # end of the one that is running.
        self._is_over = [False] * self.num_envs
        with self._walkers.changing() as walkers:
            row = self.env.step(actions)
            for i, walker in enumerate(walkers):
                if was_over[i]:
                    # Whatever the action was.
                    self._begin_episode(walker, i, row[0])
                else:
                    self._add_step(walker, i, int(actions[i]), row)
        last_obs = [self._take_row(row[0], i) for i in range(self.num_envs)]
        self._knowledge.check_repeats(self._walkers, last_obs)
        if self._autoreset == AutoresetMode.NEXT_STEP:
            is_over = np.logical_or(row[2], row[3]) & ~np.array(was_over)
            self._is_over = is_over.tolist()
        return row

    def _add_step(
        self,
        walker: AnyWalker,
        i: int,
        action: int,
        row: tuple[Any, NDArray[Any], BoolArray, BoolArray, dict[str, Any]],
    ) -> None:
        """Add the step of one environment, and its reset if that came with it."""
        obs, rewards, terminated, truncated, infos = row
        is_over = bool(terminated[i] or truncated[i])
        is_reset = is_over and self._autoreset == AutoresetMode.SAME_STEP

        # Where the environment has reset itself, its row is of the next episode.
        next_obs = self._take_row(obs, i)
        if is_reset:
            next_obs = read_last_obs(infos, i)
        # After an exception, a walker waits for the next episode.
        if walker.is_in_episode:
            walker.add(
                self._single_envs[i],
                action,
                next_obs,
                float(rewards[i]),
                bool(terminated[i]),
                bool(truncated[i]),
            )
        if is_reset:
            self._begin_episode(walker, i, obs)

    def _choose(self) -> list[int | None]:
        """Return the next action of each environment to the unknown."""
        if self._walkers is None:
            return [None] * self.num_envs
        with self._walkers.changing() as walkers:
            actions = []
            for walker in walkers:
                actions.append(walker.choose() if walker.is_in_episode else None)
            return actions


def _refuse_options(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
) -> None:
    """Raise ValueError if some layer of wrappers adds options to the actions."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper | gym.vector.VectorWrapper):
        if isinstance(layer, OptionsWrapper | OptionsVectorWrapper):
            exploring = "Exploring(env)"
            if isinstance(layer, OptionsVectorWrapper):
                exploring = "ExploringVector(envs)"
            right_order = f"{type(layer).__name__}({exploring}, options)"
            raise ValueError(
                f"options are among the actions, but {exploring} must see primitive "
                f"steps: put it inside, {right_order}"
            )
        layer = layer.env


def _choose_seed(env: gym.Env[Any, Any], seed: int | None) -> int:
    """Return the seed of the layout: that of `FixedSeed`, or of the first reset."""
    fixed_seed = find_fixed_seed(env)
    if fixed_seed is not None:
        return fixed_seed
    return 0 if seed is None else seed


def _check_layout(env: gym.Env[Any, Any], experience: Knowledge) -> None:
    """Raise ValueError if the layout is not the one that was explored."""
    layout = experience.about.layout
    if layout is None or layout == find_family(env).identify_layout(env.unwrapped):
        return
    seed = experience.about.seed
    raise ValueError(
        f"{env_name(env)} changed its layout, and a table holds only one: make every "
        f"episode that of seed {seed}, Exploring(eo.envs.FixedSeed(env, {seed}))"
    )
