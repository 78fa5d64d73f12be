"""Samples of an environment: transitions, and paths of options.

The paper estimates eigenpurposes from such transitions (Section 5.1), and draws the
paths of the options that they give (Section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import BoolArray, IntegerArray, Progress, Randomness
from eigenoptions._validation import (
    check_int,
    check_memory,
    make_generator,
    set_readonly,
)
from eigenoptions.envs.decisions import gather_options, tell_exploration
from eigenoptions.envs.recognition import Options, StateReader
from eigenoptions.envs.rows import check_resets_itself, read_last_obs
from eigenoptions.envs.sources import (
    Source,
    count_actions,
    env_name,
    make_env,
    make_vector_env,
)
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper
from eigenoptions.options.tuning import resolve_exploration
from eigenoptions.samples import Transitions
from eigenoptions.samples.features import add_batch_axis

# Spaces whose batches of observations are not arrays.
_NOT_ARRAYS = (spaces.Dict, spaces.Tuple, spaces.Text, spaces.Graph, spaces.Sequence)


@shows_progress
def collect(
    env: Source,
    steps: int,
    *,
    policy: Callable[[Any], Any] | Options | None = None,
    n_envs: int = 1,
    rng: Randomness = 0,
    max_episode_steps: int | None = None,
    features: Callable[[Any], Any] | None = None,
    option_chance: float | str | None = "auto",
    stop_chance: float = 0.0,
    progress: ProgressArgument = None,
) -> Transitions:
    """Collect transitions of an environment, in memory.

    Parameters
    ----------
    env : str, gymnasium.Env, callable, gymnasium.vector.VectorEnv or MDP
        An id, an environment, a function that makes one, a vector environment, or an
        `MDP`.
    steps : int
        Number of transitions, over all environments together. Resets are not
        transitions.
    policy : callable, OptionSet or sequence of options, default=None
        None: random actions, uniform within their bounds where they are vectors
        (``Box``). An `OptionSet` (or a list of objects with ``act``): a random walk
        over primitive actions and available options. Or a function from a batch of
        observations ``(n_envs, ...)`` to actions ``(n_envs, ...)``.
    n_envs : int, default=1
        Number of environments stepped together; more than one needs an id or a
        function.
    rng : int or numpy.random.Generator, default=0
        Seed or generator.
    max_episode_steps : int, default=None
        Truncate episodes after this many steps. None: as the environment does.
    features : callable, default=None
        Function from a batch of observations to an array ``(n_envs, ...)``, which is
        stored instead of them. Dict observations need one.
    option_chance : float, "auto" or None, default="auto"
        With options as policy: as in `OptionsWrapper`; but ``"auto"`` tunes
        `stop_chance`, too.
    stop_chance : float, default=0.0
        With options as policy: as in `OptionsWrapper`.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of transitions collected and wanted, about once per 1,024.

    Returns
    -------
    Transitions
        `steps` transitions.

    Examples
    --------
    >>> batch = collect("FrozenLake-v1", 100, n_envs=4)
    >>> batch.obs.shape, batch.action.dtype, bool(batch.terminated.any())
    ((100,), dtype('int64'), True)
    """
    progress = check_progress(progress)
    steps = check_int("steps", steps)
    # Each environment takes at least one step.
    n_envs = check_int("n_envs", n_envs, maximum=steps)
    if max_episode_steps is not None:
        max_episode_steps = check_int("max_episode_steps", max_episode_steps)
    # A child: the caller's generator is not advanced.
    generator = make_generator(rng).spawn(1)[0]

    envs, is_ours = make_vector_env(env, n_envs, max_episode_steps)
    try:
        if policy is not None and not callable(policy):
            count_actions(envs)
            options = gather_options(policy)
            # Every decision is random, so both probabilities may be tuned.
            chances = resolve_exploration(options, option_chance, stop_chance)
            envs = OptionsVectorWrapper(
                envs,
                options,
                option_chance=chances.option_chance,
                stop_chance=chances.stop_chance,
            )
            if isinstance(option_chance, str):
                tell_exploration(envs.env, len(options), chances)
        choose_actions = _make_policy(envs, policy, generator)
        store = _choose_storage(envs, features)
        mode = check_resets_itself(envs)
        # Gymnasium seeds the environments with consecutive numbers.
        seed = int(generator.integers(2**31 - 1 - envs.num_envs))
        obs, _ = envs.reset(seed=seed)
        return _record_transitions(
            envs, obs, choose_actions, store, steps, mode, progress
        )
    finally:
        if is_ours:
            envs.close()


def _make_policy(
    envs: VectorEnv[Any, Any, Any],
    policy: Callable[[Any], Any] | Options | None,
    generator: np.random.Generator,
) -> Callable[[Any], NDArray[Any]]:
    """Return a function from observations to one action of each environment."""
    takes_vectors = isinstance(envs.single_action_space, spaces.Box)
    if callable(policy):
        if not takes_vectors:
            count_actions(envs)

        def follow_policy(obs: Any) -> NDArray[Any]:
            return _check_actions(policy(obs), envs)

        return follow_policy

    if policy is None and not takes_vectors:
        n_actions = count_actions(envs)

        def choose_number(obs: Any) -> IntegerArray:
            return generator.integers(n_actions, size=envs.num_envs)

        return choose_number

    # Vectors within the bounds of the space, or choices among actions and options.
    envs.action_space.seed(int(generator.integers(2**31)))

    def sample_space(obs: Any) -> NDArray[Any]:
        sampled: NDArray[Any] = envs.action_space.sample()
        return sampled

    return sample_space


def _record_transitions(
    envs: VectorEnv[Any, Any, Any],
    obs: Any,
    choose_actions: Callable[[Any], NDArray[Any]],
    store: Callable[[Any], NDArray[Any]],
    steps: int,
    mode: AutoresetMode,
    progress: Progress | None,
) -> Transitions:
    """Step a vector environment from its first observations to `steps` transitions."""
    stored = store(obs)
    # Two observations per step; each row has one observation of each environment.
    n_bytes = steps * 2 * stored.nbytes / len(stored)
    check_memory(f"{steps:,} steps", n_bytes, "collect fewer at a time")

    is_reset = np.zeros(envs.num_envs, dtype=np.bool_)
    rows: list[tuple[NDArray[Any], ...]] = []
    n_rows = 0
    while n_rows < steps:
        actions = choose_actions(obs)
        obs, _, terminated, truncated, infos = envs.step(actions)
        # What the next step starts from. Under SAME_STEP it may be a new episode, and
        # this step led to another observation.
        stored_next = store(obs)
        stored_after = stored_next
        is_last = np.logical_or(terminated, truncated)
        if mode == AutoresetMode.SAME_STEP:
            stored_after = _find_last_observations(stored_next, is_last, infos, store)

        # A step that was only the reset of an environment is no transition.
        kept = np.flatnonzero(~is_reset)[: steps - n_rows]
        # With options as policy, actions may be options.
        taken = infos.get("primitive_action", actions)
        ended = np.asarray(terminated)
        rows.append((stored[kept], taken[kept], stored_after[kept], ended[kept]))
        n_rows += len(kept)

        # About once per 1,024 rows.
        has_passed_mark = n_rows % 1024 < len(kept)
        if progress is not None and (has_passed_mark or n_rows == steps):
            progress(n_rows, steps)

        stored = stored_next
        if mode == AutoresetMode.NEXT_STEP:
            is_reset = is_last

    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    return Transitions(*[set_readonly(column) for column in columns])


def _find_last_observations(
    next_obs: NDArray[Any],
    is_last: BoolArray,
    infos: dict[str, Any],
    store: Callable[[Any], NDArray[Any]],
) -> NDArray[Any]:
    """Return what the transitions of a step led to, under SAME_STEP.

    Where an episode ended, the observation is already that of the next one. The last
    one is in the infos.
    """
    if not is_last.any():
        return next_obs
    after = next_obs.copy()
    for i in np.flatnonzero(is_last):
        last_obs = add_batch_axis(read_last_obs(infos, int(i)))
        after[i] = store(last_obs)[0]
    return after


def run_options(
    env: str | gym.Env[Any, Any],
    options: Options,
    *,
    runs: int = 8,
    max_steps: int = 500,
    warm_up: int = 50,
    rng: int = 0,
) -> list[list[NDArray[Any]]]:
    """Follow each option through an environment, from the same states (Section 5.2).

    Parameters
    ----------
    env : str or gymnasium.Env
        An id or an environment.
    options : OptionSet, LinearOptionSet or sequence
        As in `OptionsWrapper`.
    runs : int, default=8
        Number of starts per option.
    max_steps : int, default=500
        Steps after which an option is stopped.
    warm_up : int, default=50
        Maximum number of steps of the random walk from a reset to a start.
    rng : int, default=0
        Seed of the random walks.

    Returns
    -------
    list of lists of ndarray
        For each option and start the observations ``(T + 1, ...)`` from its first to
        its last state. A single observation: the option was not available there, or the
        random walk had ended the episode.

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
        recognition = StateReader(options).recognition
        layout_seed = None if recognition is None else recognition.seed
        paths: list[list[NDArray[Any]]] = [[] for _ in options]
        for run in range(runs):
            for option, its_paths in enumerate(paths):
                # The same numbers for all options: they begin in the same state.
                generator = np.random.default_rng((rng, run))
                path, mask = _walk_to_start(stepped, generator, warm_up, layout_seed)
                action = stepped.n_primitive + option
                if mask is not None and mask[action]:
                    path += _follow_option(stepped, action)
                its_paths.append(np.array(path))
    finally:
        if isinstance(env, str):
            made.close()
    return paths


def _walk_to_start(
    env: OptionsWrapper,
    generator: np.random.Generator,
    warm_up: int,
    layout_seed: int | None,
) -> tuple[list[NDArray[Any]], NDArray[np.int8] | None]:
    """Take random actions from a reset on.

    Returns a path of one observation, the last before an end, and the mask there; None
    where the episode has ended.
    """
    seed = int(generator.integers(2**31))
    if layout_seed is not None:
        seed = layout_seed
    obs, info = env.reset(seed=seed)
    path = [np.array(obs["observation"])]

    for _ in range(int(generator.integers(warm_up + 1))):
        action = int(generator.integers(env.n_primitive))
        obs, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return path, None
        path = [np.array(obs["observation"])]
    return path, info["action_mask"]


def _follow_option(env: OptionsWrapper, action: int) -> list[NDArray[Any]]:
    """Take an option to its end in mode "step"; return the observations on the way."""
    path = []
    is_running = True
    while is_running:
        obs, *_ = env.step(action)
        path.append(np.array(obs["observation"]))
        is_running = obs["option"] > 0
    return path


def _choose_storage(
    envs: VectorEnv[Any, Any, Any], features: Callable[[Any], Any] | None
) -> Callable[[Any], NDArray[Any]]:
    """Return a function from observations to the array that is stored.

    It is a copy, since environments may reuse their own.
    """
    if features is not None and not callable(features):
        raise TypeError(
            "features must be a function from a batch of observations to an array, got "
            f"{type(features).__name__}"
        )
    space = envs.single_observation_space
    first_env = envs.envs[0] if hasattr(envs, "envs") else envs
    name = env_name(first_env)
    if features is None and isinstance(space, _NOT_ARRAYS):
        raise ValueError(
            f"observations of {name} are {space}: pass features=, a function from a "
            "batch of them to an array, or use FlattenObservation"
        )

    def store(obs: Any) -> NDArray[Any]:
        array = np.array(obs if features is None else features(obs))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)][0]
            raise ValueError(f"{name} returned an observation with {wrong}")
        return array

    return store


def _check_actions(actions: Any, envs: VectorEnv[Any, Any, Any]) -> NDArray[Any]:
    """Return what a policy chose: an integer or a vector for each environment."""
    array = np.asarray(actions)
    space = envs.single_action_space
    if isinstance(space, spaces.Box):
        wanted = (envs.num_envs, *space.shape)
        if array.shape != wanted or array.dtype.kind not in "iuf":
            raise ValueError(
                f"policy must return numbers of shape {wanted}, got {array.dtype} of "
                f"shape {array.shape}"
            )
        return array.astype(space.dtype)

    if array.shape != (envs.num_envs,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"policy must return {envs.num_envs} integers, got {array.dtype} of shape "
            f"{array.shape}"
        )
    return array.astype(np.int64)
