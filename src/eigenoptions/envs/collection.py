"""Samples of an environment: transitions, and paths of options (paper, Sections 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from eigenoptions._validation import check_int, make_generator, set_readonly
from eigenoptions.data import Transitions
from eigenoptions.envs.sources import (
    Source,
    count_actions,
    env_name,
    make_env,
    make_vector_env,
)
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper
from eigenoptions.features import add_batch_axis
from eigenoptions.options import OptionSet

# Spaces whose batches of observations are not arrays.
NOT_ARRAYS = (spaces.Dict, spaces.Tuple, spaces.Text, spaces.Graph, spaces.Sequence)


def collect(
    env: Source,
    steps: int,
    *,
    policy: Callable[[Any], Any] | OptionSet | Sequence[Any] | None = None,
    n_envs: int = 1,
    rng: int | np.random.Generator = 0,
    max_episode_steps: int | None = None,
    features: Callable[[Any], Any] | None = None,
    option_chance: float | str | None = "auto",
    stop_chance: float = 0.0,
    progress: Callable[[int, int], object] | None = None,
) -> Transitions:
    """Transitions of an environment, in memory.

    Parameters
    ----------
    env
        An id, an environment, a function that makes one, a vector environment, or an `MDP`.
    steps
        Number of transitions, over all environments together. Resets are not transitions.
    policy
        None: uniformly random actions. An `OptionSet` (or a list of objects with ``act``): a random walk over primitive
        actions and available options. Or a function from a batch of observations ``(n_envs, ...)`` to actions
        ``(n_envs,)``.
    n_envs
        Number of environments stepped together; more than one needs an id or a function.
    rng
        Seed or generator.
    max_episode_steps
        Truncate episodes after this many steps; None: as the environment does.
    features
        Function from a batch of observations to an array ``(n_envs, ...)``, which is stored instead of them; needed
        for Dict observations.
    option_chance, stop_chance
        With options as policy: as in `OptionsWrapper`.
    progress
        Called with the number of transitions collected and wanted, about once per 1,024.

    Examples
    --------
    >>> batch = collect("FrozenLake-v1", 100, n_envs=4)
    >>> batch.obs.shape, batch.action.dtype, bool(batch.terminated.any())
    ((100,), dtype('int64'), True)
    """
    steps = check_int("steps", steps)
    if max_episode_steps is not None:
        max_episode_steps = check_int("max_episode_steps", max_episode_steps)
    # A child: the caller's generator is not advanced.
    generator = make_generator(rng).spawn(1)[0]
    envs, owned = make_vector_env(env, check_int("n_envs", n_envs), max_episode_steps)
    try:
        n, n_actions = envs.num_envs, count_actions(envs)
        if policy is not None and not callable(policy):
            envs = OptionsVectorWrapper(
                envs, policy, option_chance=option_chance, stop_chance=stop_chance
            )
            envs.action_space.seed(int(generator.integers(2**31)))
        store = _choose_storage(envs, features)
        mode = envs.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ValueError(
                f"the vector environment must reset by NEXT_STEP or SAME_STEP, not by {mode}"
            )
        raw, _ = envs.reset(seed=int(generator.integers(2**31 - 1 - n)))
        obs, is_reset = store(raw), np.zeros(n, dtype=np.bool_)
        rows: list[tuple[NDArray[Any], ...]] = []
        n_rows = 0
        while n_rows < steps:
            if policy is None:
                actions = generator.integers(n_actions, size=n)
            else:
                actions = (
                    _check_actions(policy(raw), n)
                    if callable(policy)
                    else envs.action_space.sample()
                )
            raw, _, terminated, truncated, infos = envs.step(actions)
            next_obs = last_obs = store(raw)
            ended = np.logical_or(terminated, truncated)
            if mode == AutoresetMode.SAME_STEP and ended.any():
                # The last observation of an episode is in the infos.
                last_obs = next_obs.copy()
                for i in np.flatnonzero(ended):
                    last_obs[i] = store(add_batch_axis(infos["final_obs"][i]))[0]
            # Under NEXT_STEP the step after an end is a reset of that environment: no transition.
            keep = np.flatnonzero(~is_reset)[: steps - n_rows]
            is_reset = ended if mode == AutoresetMode.NEXT_STEP else is_reset
            taken = infos.get("primitive_action", actions)
            rows.append(
                (obs[keep], taken[keep], last_obs[keep], np.asarray(terminated)[keep])
            )
            n_rows += len(keep)
            obs = next_obs
            if progress is not None and (n_rows % 1024 < len(keep) or n_rows == steps):
                progress(n_rows, steps)
        parts = map(np.concatenate, zip(*rows, strict=True))
        return Transitions(*map(set_readonly, parts))
    finally:
        if owned:
            envs.close()


def run_options(
    env: str | gym.Env[Any, Any],
    options: Sequence[Any],
    *,
    runs: int = 8,
    max_steps: int = 500,
    warm_up: int = 50,
    rng: int = 0,
) -> list[list[NDArray[Any]]]:
    """Paths of each option through an environment, from the same states for all (Section 5.2).

    Returns for each option and start the observations ``(T + 1, ...)`` from its first to its last state. A single
    observation: the option was not available there, or the warm-up had ended the episode.

    Parameters
    ----------
    env
        An id or an environment.
    options
        As in `OptionsWrapper`.
    runs, max_steps
        Number of starts per option, and steps after which an option is stopped.
    warm_up, rng
        Maximum number of steps of the random walk from a reset to a start, and its seed.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("i-maze"), n_options=2)
    >>> paths = run_options("eigenoptions/IMaze-v0", options, runs=1, warm_up=0)
    >>> [path[0].tolist() for path in paths]
    [[16, 17, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 1], [16, 17]]
    """
    runs = check_int("runs", runs)
    warm_up = check_int("warm_up", warm_up, 0)
    rng = check_int("rng", rng, 0)
    made = make_env(env)
    try:
        stepped = OptionsWrapper(
            made, options, mode="step", max_duration=max_steps, option_chance=None
        )
        # The layout of options that belong to one.
        layout_seed = stepped._reader.recognition.get("seed")
        paths: list[list[NDArray[Any]]] = [[] for _ in options]
        for run, (i, its_paths) in product(range(runs), enumerate(paths)):
            generator, action, ended = (
                np.random.default_rng((rng, run)),
                stepped.n_primitive + i,
                False,
            )
            first_seed = int(generator.integers(2**31))
            obs, info = stepped.reset(
                seed=first_seed if layout_seed is None else layout_seed
            )
            path = [np.array(obs["observation"])]
            for _ in range(int(generator.integers(warm_up + 1))):
                random_action = int(generator.integers(stepped.n_primitive))
                obs, _, terminated, truncated, info = stepped.step(random_action)
                if ended := terminated or truncated:
                    break
                path = [np.array(obs["observation"])]
            runs_on = not ended and info["action_mask"][action]
            while runs_on:
                obs, _, terminated, truncated, _ = stepped.step(action)
                path.append(np.array(obs["observation"]))
                runs_on = obs["option"] > 0
            its_paths.append(np.array(path))
    finally:
        if isinstance(env, str):
            made.close()
    return paths


def _choose_storage(
    envs: VectorEnv[Any, Any, Any], features: Any
) -> Callable[[Any], NDArray[Any]]:
    """Function from observations to the array that is stored: a copy, since environments may reuse their own."""
    space = envs.single_observation_space
    name = env_name(envs.envs[0] if hasattr(envs, "envs") else envs)
    if features is None and isinstance(space, NOT_ARRAYS):
        remedy = "pass features=, a function from a batch of them to an array, or use FlattenObservation"
        raise ValueError(f"observations of {name} are {space}: {remedy}")

    def store(obs: Any) -> NDArray[Any]:
        array = np.array(obs if features is None else features(obs))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(
                f"{name} returned an observation with {array[~np.isfinite(array)][0]}"
            )
        return array

    return store


def _check_actions(actions: Any, n: int) -> NDArray[np.int64]:
    array = np.asarray(actions)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"policy must return {n} integers, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)
