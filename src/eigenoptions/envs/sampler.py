"""`Sampler`: an environment, a behaviour and a seed, sampled in chunks of transitions (paper, Section 5.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int, set_readonly
from eigenoptions.envs.batch import OptionBatch
from eigenoptions.envs.fit import check_fit
from eigenoptions.envs.mazes import MazeVectorEnv
from eigenoptions.envs.spaces import choices
from eigenoptions.envs.tables import count_actions
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import batch_of_one
from eigenoptions.options.lookahead import name_of

# Transitions per chunk, or fewer where observations are large.
CHUNK_ROWS, CHUNK_BYTES = 16_384, 1 << 26
NOT_ARRAYS = (spaces.Dict, spaces.Tuple, spaces.Text, spaces.Graph, spaces.Sequence)

Source = str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | VectorEnv[Any, Any, Any] | MDP
Policy = Callable[[Any], Any]
# Actions for a batch of observations; the mask marks copies whose episode has just begun.
Behaviour = Callable[[Any, NDArray[np.bool_], np.random.Generator], NDArray[np.int64]]


class Sampling(TypedDict, total=False):
    """Settings that the sampled bytes depend on; see `collect`."""

    policy: Policy | OptionSet | Sequence[Any] | None
    n_envs: int
    rng: int | np.random.Generator
    chunk: int | None
    max_episode_steps: int | None
    features: Callable[[Any], Any] | None
    option_chance: float | None


class ChunkError(Exception):
    """A chunk could not be finished; `part` holds its transitions so far."""

    def __init__(self, message: str, part: Transitions) -> None:
        super().__init__(message)
        self.part = part


class InvalidObservationError(ValueError):
    """An observation that cannot be stored."""


class Sampler:
    """Samples an environment chunk by chunk; a chunk begins with a reset and has random numbers of its own.

    Attributes
    ----------
    counts
        Number of transitions of each chunk.
    settings
        Settings that the bytes depend on, as they are written into files.
    """

    def __init__(self, env: Source, steps: int, **given: Unpack[Sampling]) -> None:
        policy, self.features, chance = given.get("policy"), given.get("features"), given.get("option_chance")
        n_envs, chunk, limit = given.get("n_envs", 1), given.get("chunk"), given.get("max_episode_steps")
        sizes = {"steps": steps, "n_envs": n_envs, "chunk": chunk, "max_episode_steps": limit}
        for name, size in sizes.items():
            if size is not None:
                check_int(name, size)
        if chance is not None:
            chance = check_float("option_chance", chance, minimum=0, maximum=1)
        self.entropy = _entropy(given.get("rng", 0))
        self.envs, self.owned = vectorised(env, n_envs, limit)
        self.name = name_of(self.envs.envs[0] if isinstance(self.envs, SyncVectorEnv) else self.envs)
        try:
            mode = self.envs.metadata.get("autoreset_mode")
            if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
                raise ValueError(
                    f"the vector environment must reset by itself (NEXT_STEP or SAME_STEP), its mode is {mode}"
                )
            self.same_step = mode == AutoresetMode.SAME_STEP
            self.behaviour = _behaviour(self.envs, policy, chance)
            self.row_bytes = self._row_bytes()
        except BaseException:
            self.close()
            raise
        most = int(chunk or max(1, min(CHUNK_ROWS, CHUNK_BYTES // self.row_bytes)))
        self.counts = (most,) * (steps // most) + ((steps % most,) if steps % most else ())
        self.settings = {
            "env": f"MDP {env.fingerprint}" if isinstance(env, MDP) else self.name,
            "policy": _identity(policy),
            "n_envs": int(self.envs.num_envs),
            "seed": self.entropy,
            "chunk": most,
            "max_episode_steps": None if limit is None else int(limit),
            "features": _identity(self.features),
            "option_chance": chance,
        }

    def close(self) -> None:
        """Close the environment if it was made here."""
        if self.owned:
            self.envs.close()

    def chunk(self, i: int, report: Callable[[int], object]) -> Transitions:
        """Chunk number i, from a reset; `report` is called with the number of transitions so far."""
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(i,)))
        count, filled = self.counts[i], 0
        kept = obs, action, next_obs, last = _empty(count, np.empty((1, 0)))
        try:
            raw, _ = self.envs.reset(seed=int(rng.integers(2**31 - 1 - self.envs.num_envs)))
            seen = self._stored(raw)
            kept = obs, action, next_obs, last = _empty(count, seen)
            fresh = np.ones(self.envs.num_envs, dtype=np.bool_)
            over = ~fresh
            while filled < count:
                actions = self.behaviour(raw, fresh, rng)
                raw, _, terminated, truncated, infos = self.envs.step(actions)
                after = self._stored(raw)
                ended = np.logical_or(terminated, truncated)
                final = self._final(after, infos, ended) if self.same_step else after
                # Under NEXT_STEP the row after an end is the reset of that copy: no transition.
                rows = np.flatnonzero(~over)[: count - filled]
                place = slice(filled, filled + len(rows))
                obs[place], action[place] = seen[rows], actions[rows]
                next_obs[place], last[place] = final[rows], terminated[rows]
                filled += len(rows)
                seen = after
                fresh, over = (ended, over) if self.same_step else (over, ended)
                report(filled)
        except Exception as error:
            known = isinstance(error, InvalidObservationError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
            raise ChunkError(reason, head(Transitions(*set_readonly(*kept)), filled)) from error
        return Transitions(*set_readonly(*kept))

    def _stored(self, obs: Any) -> NDArray[Any]:
        """Observations as they are stored: an array of finite numbers with one row per copy."""
        array = np.asarray(obs if self.features is None else self.features(obs))
        if array.shape[:1] != (self.envs.num_envs,):
            raise InvalidObservationError(
                f"features must give a row for each of {self.envs.num_envs}, got {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            bad = array[~np.isfinite(array)][0]
            raise InvalidObservationError(f"{self.name} gave an observation with {bad}")
        return array

    def _final(self, after: NDArray[Any], infos: dict[str, Any], ended: NDArray[np.bool_]) -> NDArray[Any]:
        """Next observations under SAME_STEP, which puts the last one of an episode into the infos."""
        if not ended.any():
            return after
        final = after.copy()
        for j in np.flatnonzero(ended):
            last = infos["final_obs"][j]
            final[j] = last if self.features is None else np.asarray(self.features(batch_of_one(last)))[0]
        return final

    def _row_bytes(self) -> int:
        space = self.envs.single_observation_space
        if self.features is None and isinstance(space, NOT_ARRAYS):
            raise ValueError(
                f"observations of {self.name} are {space}: pass features=, a function from a batch of them "
                "to an array (or wrap it in gymnasium.wrappers.FlattenObservation)"
            )
        sample = np.asarray(self.envs.observation_space.sample() if self.features is None else np.zeros(64))
        return 2 * max(1, sample.nbytes // self.envs.num_envs)


def head(batch: Transitions, n: int) -> Transitions:
    """Copy of the first n transitions."""
    parts: list[Any] = [batch.obs, batch.action, batch.next_obs, batch.terminated]
    return Transitions(*set_readonly(*(part[:n].copy() for part in parts)))


def _entropy(rng: Any) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if not isinstance(rng, int | np.integer) or rng < 0:
        raise ValueError(f"rng must be a number from 0 or a numpy Generator, got {rng!r}")
    return int(rng)


def vectorised(env: Source, n_envs: int, limit: int | None) -> tuple[VectorEnv[Any, Any, Any], bool]:
    """Vector environment of a source, and whether it was made here and is to be closed here."""
    if isinstance(env, MDP):
        return MazeVectorEnv(env, n_envs, max_episode_steps=limit), True
    if isinstance(env, VectorEnv):
        if n_envs not in (1, env.num_envs) or limit is not None:
            raise ValueError("a vector environment has its own n_envs and time limit: leave them out")
        return env, False
    if isinstance(env, str):
        extra: dict[str, Any] = {} if limit is None else {"max_episode_steps": limit}
        try:
            return gym.make_vec(env, num_envs=n_envs, **extra), True
        except (gym.error.Error, ModuleNotFoundError) as error:
            raise ValueError(f"no environment {env!r}: {str(error).splitlines()[0]}") from error
    if isinstance(env, gym.Env):
        if n_envs != 1:
            raise ValueError(
                f"one environment cannot be stepped {n_envs} times at once: give its id, or a function that makes it"
            )
        return SyncVectorEnv([lambda: _limited(env, limit)]), False
    if callable(env):
        return SyncVectorEnv([lambda: _limited(env(), limit)] * n_envs), True
    raise ValueError(
        f"give an environment, its id, a function that makes it or an MDP, got {type(env).__name__}"
    )


def _limited(env: gym.Env[Any, Any], limit: int | None) -> gym.Env[Any, Any]:
    return env if limit is None else TimeLimit(env, limit)


def _option_walk(
    options: OptionSet | Sequence[Any], n_actions: int, n_envs: int, chance: float | None
) -> Behaviour:
    """Choose among the primitive actions and the options that may start, and follow options; see `spaces.choices`."""
    batch, running = OptionBatch(options, n_envs), np.full(n_envs, -1)

    def walk(obs: Any, fresh: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
        running[fresh] = -1
        actions = batch.continued(running, obs, rng)
        idle = np.flatnonzero(actions < 0)
        if len(idle):
            moves = batch.offers(obs, idle)
            allowed = np.column_stack([np.ones((len(idle), n_actions), np.bool_), moves >= 0])
            chosen = choices(allowed, n_actions, chance, rng)
            option = np.maximum(chosen - n_actions, -1)
            begins = np.full(n_envs, -1)
            begins[idle] = running[idle] = option
            batch.begin(begins, obs, rng)
            actions[idle] = np.where(option < 0, chosen, moves[np.arange(len(idle)), option])
        return actions.astype(np.int64, copy=False)

    return walk


def _behaviour(
    envs: VectorEnv[Any, Any, Any], policy: Policy | OptionSet | Sequence[Any] | None, chance: float | None
) -> Behaviour:
    """Behaviour of a policy: uniform actions, a walk with options, or a function of the user."""
    n, n_actions = envs.num_envs, count_actions(envs)
    if policy is None:
        return lambda obs, fresh, rng: rng.integers(n_actions, size=n)
    if isinstance(policy, OptionSet | Sequence):
        if not len(policy):
            raise ValueError("policy has no options: pass None for random actions")
        if isinstance(policy, OptionSet):
            check_fit(envs, policy)
        return _option_walk(policy, n_actions, n, chance)
    if not callable(policy):
        raise ValueError(
            f"policy must be None, an OptionSet or a function of observations, got {type(policy).__name__}"
        )

    def given(obs: Any, fresh: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
        actions = np.asarray(policy(obs))
        if actions.shape != (n,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"policy must give {n} whole numbers, got {actions.dtype} of shape {actions.shape}"
            )
        return actions.astype(np.int64)

    return given


def _empty(count: int, like: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Uninitialised parts of transitions whose observations look like these."""
    shape = (count, *like.shape[1:])
    obs, next_obs = np.empty(shape, like.dtype), np.empty(shape, like.dtype)
    return obs, np.empty(count, np.int64), next_obs, np.empty(count, np.bool_)


def _identity(part: Any) -> str | None:
    """Name of a behaviour or of features in a file, by which another is recognised."""
    if part is None:
        return None
    if isinstance(part, OptionSet):
        return f"options {hashlib.blake2b(part.policy.tobytes(), digest_size=8).hexdigest()}"
    kind = part if hasattr(part, "__qualname__") else type(part)
    return f"{kind.__module__}.{kind.__qualname__}"
