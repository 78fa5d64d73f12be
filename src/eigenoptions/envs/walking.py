"""Walks through a vector environment: one chunk of transitions at a time, each with random numbers of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from eigenoptions.envs.exploring import name_of
from eigenoptions.envs.mazes import MazeVectorEnv
from eigenoptions.envs.tables import count_actions, known_mdp
from eigenoptions.envs.wrapper import check_options
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet

CHUNK_ROWS, CHUNK_BYTES = 16_384, 1 << 26

Source = str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | VectorEnv[Any, Any, Any] | MDP
Policy = Callable[[Any], Any]
Behaviour = Callable[[Any, NDArray[np.bool_], np.random.Generator], NDArray[np.int64]]


class Halt(Exception):  # noqa: N818 (never leaves the package)
    """A chunk could not be finished; `part` is what there is of it."""

    def __init__(self, message: str, part: Transitions) -> None:
        super().__init__(message)
        self.part = part


class Walker:
    """An environment, a behaviour and a seed; `chunk` walks.

    Attributes
    ----------
    counts
        Transitions of each chunk.
    settings
        What the bytes depend on, as it goes into files.
    """

    def __init__(
        self,
        env: Source,
        steps: int,
        *,
        policy: Policy | OptionSet | Sequence[Any] | None = None,
        n_envs: int = 1,
        rng: int | np.random.Generator = 0,
        chunk: int | None = None,
        max_episode_steps: int | None = None,
        features: Callable[[Any], Any] | None = None,
        option_chance: float | None = None,
    ) -> None:
        for name, value in (
            ("steps", steps),
            ("n_envs", n_envs),
            ("chunk", chunk),
            ("max_episode_steps", max_episode_steps),
        ):
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        if option_chance is not None and not 0 <= option_chance <= 1:
            raise ValueError(
                f"option_chance must be in [0, 1], or None for a uniform choice, got {option_chance!r}"
            )
        self.chance = option_chance
        self.entropy = int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else rng
        if not isinstance(self.entropy, int | np.integer) or self.entropy < 0:
            raise ValueError(f"rng must be a number from 0 or a numpy Generator, got {rng!r}")
        self.envs, self.mine = _vectorised(env, n_envs, max_episode_steps)
        self.name = name_of(self.envs.envs[0] if isinstance(self.envs, SyncVectorEnv) else self.envs)
        try:
            self.n_actions = count_actions(self.envs)
            self.features = features
            self.same_step = self._autoreset() == AutoresetMode.SAME_STEP
            self.behaviour = self._behaviour(policy)
            row = self._row_bytes()
        except BaseException:
            self.close()
            raise
        most = int(chunk or max(1, min(CHUNK_ROWS, CHUNK_BYTES // row)))
        self.counts = (most,) * (steps // most) + ((steps % most,) if steps % most else ())
        self.settings = {
            "env": f"MDP {env.fingerprint}" if isinstance(env, MDP) else self.name,
            "policy": _name(policy),
            "n_envs": int(self.envs.num_envs),
            "seed": int(self.entropy),
            "chunk": most,
            "max_episode_steps": None if max_episode_steps is None else int(max_episode_steps),
            "features": _name(features),
            "option_chance": None if option_chance is None else float(option_chance),
        }

    def close(self) -> None:
        """Close what was made here; an environment that was given stays open."""
        if self.mine:
            self.envs.close()

    def chunk(self, i: int, tell: Callable[[int], None]) -> Transitions:
        """Chunk number i, from a reset."""
        dice = np.random.default_rng(np.random.SeedSequence(int(self.entropy), spawn_key=(i,)))
        count, filled = self.counts[i], 0
        kept: Transitions | None = None
        try:
            raw, _ = self.envs.reset(seed=int(dice.integers(2**31 - 1 - self.envs.num_envs)))
            seen = self._seen(raw)
            kept = _room(count, seen)
            fresh = np.ones(self.envs.num_envs, dtype=np.bool_)  # copies whose episode has just begun
            over = ~fresh
            while filled < count:
                actions = self.behaviour(raw, fresh, dice)
                raw, _, terminated, truncated, infos = self.envs.step(actions)
                after = self._seen(raw)
                ended = np.logical_or(terminated, truncated)
                final = self._final(after, infos, ended) if self.same_step else after
                # Under NEXT_STEP the row after an end is the reset of that copy: no transition.
                rows = np.flatnonzero(~over)[: count - filled]
                place = slice(filled, filled + len(rows))
                kept.obs[place], kept.action[place] = seen[rows], actions[rows]
                kept.next_obs[place], kept.terminated[place] = final[rows], terminated[rows]
                filled += len(rows)
                seen = after
                fresh, over = (ended, over) if self.same_step else (over, ended)
                tell(filled)
        except Exception as error:
            part = _room(0, np.empty((1, 0))) if kept is None else _shortened(kept, filled)
            reason = str(error) if isinstance(error, _NotNumbersError) else f"{type(error).__name__}: {error}"
            raise Halt(reason, part) from error
        return kept

    def _seen(self, obs: Any) -> NDArray[Any]:
        """Observations as they are stored: an array with a row a copy, of finite numbers."""
        array = np.asarray(obs if self.features is None else self.features(obs))
        if array.shape[:1] != (self.envs.num_envs,):
            raise _NotNumbersError(
                f"features must give a row for each of {self.envs.num_envs}, got {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise _NotNumbersError(f"{self.name} gave an observation with {array[~np.isfinite(array)][0]}")
        return array

    def _final(self, after: NDArray[Any], infos: dict[str, Any], ended: NDArray[np.bool_]) -> NDArray[Any]:
        """Under SAME_STEP the last observation of an episode is in the infos, and the first of the next is shown."""
        if not ended.any():
            return after
        final = after.copy()
        for j in np.flatnonzero(ended):
            last = infos["final_obs"][j]
            final[j] = last if self.features is None else np.asarray(self.features(_batch_of_one(last)))[0]
        return final

    def _autoreset(self) -> AutoresetMode:
        mode = self.envs.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ValueError(
                f"the vector environment must reset by itself (NEXT_STEP or SAME_STEP), its mode is {mode}"
            )
        return AutoresetMode(mode)

    def _row_bytes(self) -> int:
        space = self.envs.single_observation_space
        if self.features is None and isinstance(
            space, spaces.Dict | spaces.Tuple | spaces.Text | spaces.Graph | spaces.Sequence
        ):
            raise ValueError(
                f"observations of {self.name} are {space}: pass features=, a function from a batch of them "
                "to an array (or wrap it in gymnasium.wrappers.FlattenObservation)"
            )
        sample = np.asarray(self.envs.observation_space.sample() if self.features is None else np.zeros(64))
        return 2 * max(1, sample.nbytes // self.envs.num_envs)

    def _behaviour(self, policy: Policy | OptionSet | Sequence[Any] | None) -> Behaviour:
        n, n_actions = self.envs.num_envs, self.n_actions
        if policy is None:
            return lambda obs, fresh, dice: dice.integers(n_actions, size=n)
        if isinstance(policy, OptionSet | Sequence):
            if isinstance(policy, OptionSet):
                check_options(policy, n_actions, self.envs.single_observation_space, self._mdp())
            return Wandering(policy, n_actions, n, self.chance)
        if not callable(policy):
            raise ValueError(
                f"policy must be None, an OptionSet or a function of observations, got {type(policy).__name__}"
            )

        def given(obs: Any, fresh: NDArray[np.bool_], dice: np.random.Generator) -> NDArray[np.int64]:
            actions = np.asarray(policy(obs))
            if actions.shape != (n,) or actions.dtype.kind not in "iu":
                raise ValueError(
                    f"policy must give {n} whole numbers, got {actions.dtype} of shape {actions.shape}"
                )
            return actions.astype(np.int64)

        return given

    def _mdp(self) -> MDP | None:
        if isinstance(self.envs, MazeVectorEnv):
            return self.envs.mdp
        return known_mdp(self.envs.envs[0]) if isinstance(self.envs, SyncVectorEnv) else None


class Wandering:
    """Each decision uniform over the primitive actions and the options that may start; options run to their end.

    With a `chance`, an option is chosen with this probability where one may start, else a primitive action.
    """

    def __init__(
        self, options: OptionSet | Sequence[Any], n_actions: int, n_envs: int, chance: float | None = None
    ) -> None:
        self.options = options
        self.table = options.policy.astype(np.int64) if isinstance(options, OptionSet) else None
        self.n_actions = n_actions
        self.chance = chance
        self.running = np.full(n_envs, -1)

    def __call__(self, obs: Any, fresh: NDArray[np.bool_], dice: np.random.Generator) -> NDArray[np.int64]:
        """Actions for a batch of observations; a copy that is fresh has no option running."""
        self.running[fresh] = -1
        actions = np.full(len(self.running), -1)
        on = np.flatnonzero(self.running >= 0)
        if self.table is not None:
            actions[on] = self.table[self.running[on], obs[on]]
        else:
            actions[on] = [self.options[self.running[j]].act(_one(obs, j)) for j in on]
        idle = np.flatnonzero(actions < 0)
        if len(idle):
            if self.table is not None:
                moves = self.table[:, obs[idle]].T
            else:
                moves = np.array(
                    [[option.act(here) for option in self.options] for here in (_one(obs, j) for j in idle)],
                    dtype=np.int64,
                )
            lots = dice.random((len(idle), self.n_actions + len(self.options)))
            lots[:, self.n_actions :][moves < 0] = -1.0
            if self.chance is not None:
                use = (dice.random(len(idle)) < self.chance) & (moves >= 0).any(axis=1)
                lots[use, : self.n_actions] = -1.0
                lots[~use, self.n_actions :] = -1.0
            chosen = lots.argmax(axis=1) - self.n_actions
            self.running[idle] = np.maximum(chosen, -1)
            actions[idle] = np.where(
                chosen < 0, chosen + self.n_actions, moves[np.arange(len(idle)), np.maximum(chosen, 0)]
            )
        return actions


class _NotNumbersError(ValueError):
    """An observation that cannot be stored; its message needs no type in front."""


def _vectorised(env: Source, n_envs: int, limit: int | None) -> tuple[VectorEnv[Any, Any, Any], bool]:
    """Make a vector environment; tells also whether it is ours to close."""
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


def _room(count: int, like: NDArray[Any]) -> Transitions:
    """Space for transitions whose observations look like these."""
    shape = (count, *like.shape[1:])
    return Transitions(
        np.empty(shape, like.dtype),
        np.empty(count, np.int64),
        np.empty(shape, like.dtype),
        np.empty(count, np.bool_),
    )


def _shortened(kept: Transitions, n: int) -> Transitions:
    return Transitions(
        kept.obs[:n].copy(), kept.action[:n].copy(), kept.next_obs[:n].copy(), kept.terminated[:n].copy()
    )


def _one(obs: Any, j: Any) -> Any:
    """Observation j of a batch."""
    if isinstance(obs, dict):
        return {k: _one(v, j) for k, v in obs.items()}
    return tuple(_one(v, j) for v in obs) if isinstance(obs, tuple) else obs[j]


def _batch_of_one(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {k: np.asarray(v)[None] for k, v in obs.items()}
    return tuple(np.asarray(v)[None] for v in obs) if isinstance(obs, tuple) else np.asarray(obs)[None]


def _name(part: Any) -> str | None:
    """Name a behaviour or features in a file, so that another is noticed."""
    if part is None:
        return None
    if isinstance(part, OptionSet):
        return f"options {hashlib.blake2b(part.policy.tobytes(), digest_size=8).hexdigest()}"
    kind = part if hasattr(part, "__qualname__") else type(part)
    return f"{kind.__module__}.{kind.__qualname__}"
