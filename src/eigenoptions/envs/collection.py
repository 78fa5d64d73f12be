"""Samples of an environment: `stream` them in chunks, or `collect` them in memory (paper, Section 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from eigenoptions._validation import check_int, make_generator, set_readonly
from eigenoptions.envs.sources import Source, count_actions, env_name, make_vector_env
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.mdp import Transitions
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import add_batch_axis

PARTS = ("obs", "action", "next_obs", "terminated")
# Spaces whose batches of observations are not arrays.
NOT_ARRAYS = (spaces.Dict, spaces.Tuple, spaces.Text, spaces.Graph, spaces.Sequence)


def stream(
    env: Source,
    steps: int,
    *,
    policy: Callable[[Any], Any] | OptionSet | Sequence[Any] | None = None,
    n_envs: int = 1,
    rng: int | np.random.Generator = 0,
    chunk: int = 16_384,
    max_episode_steps: int | None = None,
    features: Callable[[Any], Any] | None = None,
    option_chance: float | str | None = "auto",
    stop_chance: float = 0.0,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Transitions]:
    """Yield transitions in chunks without keeping them, so that any number of them fits in memory.

    Parameters
    ----------
    chunk
        Number of transitions per chunk; the last one may be shorter.
    env, steps, policy, n_envs, rng, max_episode_steps, features, option_chance, stop_chance, progress
        As in `collect`.

    Examples
    --------
    >>> [len(batch) for batch in stream("eigenoptions/IMaze-v0", 250, chunk=100, n_envs=8)]
    [100, 100, 50]
    """
    check_int("steps", steps)
    check_int("chunk", chunk)
    if max_episode_steps is not None:
        check_int("max_episode_steps", max_episode_steps)
    # A child: the caller's generator is not advanced.
    generator = make_generator(rng).spawn(1)[0]
    envs, owned = make_vector_env(env, check_int("n_envs", n_envs), max_episode_steps)
    try:
        if policy is not None and not callable(policy):
            envs = OptionsVectorWrapper(envs, policy, option_chance=option_chance, stop_chance=stop_chance)
        store = _choose_storage(envs, features)
        choose = _choose_behaviour(envs, policy, generator)
        mode = envs.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ValueError(
                f"the vector environment must reset by itself (NEXT_STEP or SAME_STEP), its mode is {mode}"
            )
        raw, _ = envs.reset(seed=int(generator.integers(2**31 - 1 - envs.num_envs)))
        obs, is_reset = store(raw), np.zeros(envs.num_envs, dtype=np.bool_)
        rows: list[tuple[NDArray[Any], ...]] = []
        n_rows = n_yielded = 0
        while n_yielded < steps:
            actions = choose(raw)
            raw, _, terminated, truncated, infos = envs.step(actions)
            next_obs = last_obs = store(raw)
            ended = np.logical_or(terminated, truncated)
            if mode == AutoresetMode.SAME_STEP and ended.any():
                # The last observation of an episode is in the infos.
                last_obs = next_obs.copy()
                for i in np.flatnonzero(ended):
                    last_obs[i] = store(add_batch_axis(infos["final_obs"][i]))[0]
            # Under NEXT_STEP the step after an end is a reset of that environment: no transition.
            keep = np.flatnonzero(~is_reset)[: steps - n_yielded - n_rows]
            is_reset = ended if mode == AutoresetMode.NEXT_STEP else is_reset
            taken = infos.get("primitive_action", actions)
            rows.append((obs[keep], taken[keep], last_obs[keep], np.asarray(terminated)[keep]))
            n_rows += len(keep)
            obs = next_obs
            if progress is not None and (n_rows % 1024 < len(keep) or n_yielded + n_rows == steps):
                progress(n_yielded + n_rows, steps)
            if n_rows >= min(chunk, steps - n_yielded):
                parts = [np.concatenate(part) for part in zip(*rows, strict=True)]
                n_chunk = min(chunk, steps - n_yielded)
                n_yielded, n_rows = n_yielded + n_chunk, n_rows - n_chunk
                rows = [tuple(part[n_chunk:] for part in parts)]
                yield Transitions(*set_readonly(*(part[:n_chunk].copy() for part in parts)))
    finally:
        if owned:
            envs.close()


def collect(env: Source, steps: int, **settings: Any) -> Transitions:
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
        Number of environments stepped together (1); more than one needs an id or a function.
    rng
        Seed (0) or generator.
    max_episode_steps
        Truncate episodes after this many steps (None: as the environment does).
    features
        Function from a batch of observations to an array ``(n_envs, ...)``, which is stored instead of them; needed
        for Dict observations.
    option_chance
        With options as policy: the probability that a decision is for an option, where one is available. "auto" (the
        default): this and `stop_chance` as in `OptionsWrapper`. None: uniform over actions and options (the paper's).
    stop_chance
        With options as policy: the probability that an option terminates after each of its steps (0.0).
    progress
        Called with the number of transitions collected and wanted, about once per 1,024.

    Returns
    -------
    Transitions

    Examples
    --------
    >>> batch = collect("FrozenLake-v1", 100, n_envs=4)
    >>> batch.obs.shape, batch.action.dtype, bool(batch.terminated.any())
    ((100,), dtype('int64'), True)
    """
    batches = list(stream(env, steps, **settings))
    if len(batches) == 1:
        return batches[0]
    columns = (np.concatenate([getattr(batch, part) for batch in batches]) for part in PARTS)
    return Transitions(*set_readonly(*columns))


def _choose_storage(envs: VectorEnv[Any, Any, Any], features: Any) -> Callable[[Any], NDArray[Any]]:
    """Function from observations to the array that is stored: a copy, since environments may reuse their own."""
    space = envs.single_observation_space
    name = env_name(envs.envs[0] if hasattr(envs, "envs") else envs)
    if features is None and isinstance(space, NOT_ARRAYS):
        raise ValueError(
            f"observations of {name} are {space}: pass features=, a function from a batch of them to an array (or wrap "
            "it in gymnasium.wrappers.FlattenObservation)"
        )

    def store(obs: Any) -> NDArray[Any]:
        array = np.array(obs if features is None else features(obs))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} returned an observation with {array[~np.isfinite(array)][0]}")
        return array

    return store


def _choose_behaviour(
    envs: VectorEnv[Any, Any, Any], policy: Any, rng: np.random.Generator
) -> Callable[[Any], NDArray[np.int64]]:
    """Function from a batch of observations to actions: uniform, a walk with options, or the user's."""
    n, n_actions = envs.num_envs, count_actions(envs)
    if policy is None:
        return lambda obs: rng.integers(n_actions, size=n)
    if not callable(policy):
        envs.action_space.seed(int(rng.integers(2**31)))
        return lambda obs: envs.action_space.sample()

    def user_policy(obs: Any) -> NDArray[np.int64]:
        actions = np.asarray(policy(obs))
        if actions.shape != (n,) or actions.dtype.kind not in "iu":
            raise ValueError(f"policy must return {n} integers, got {actions.dtype} of shape {actions.shape}")
        return actions.astype(np.int64)

    return user_policy
