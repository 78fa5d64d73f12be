"""What is known so far: of states that repeat, or of vectors.

Both kinds have one interface: `found`, `rewards`, `is_known`, `make_walker`, `rebuild`.
Here it is chosen which of them an environment needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from eigenoptions._types import BoolArray, IndexArray
from eigenoptions._validation import check_type
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognisers import choose_recognition, describe_key
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.explore.controls import Controls
from eigenoptions.explore.experience import Experience, Promise, describe_env
from eigenoptions.explore.found import About, Found, Log
from eigenoptions.explore.found_vectors import VectorFound
from eigenoptions.explore.rows import (
    MOST_COLUMNS,
    VectorReader,
    describe_space,
    reads_vectors,
)
from eigenoptions.explore.vectors import VectorExperience, describe_vectors, take_over
from eigenoptions.explore.walkers import Knowledge, Walkers


class KnowledgeMaker:
    """Makes what is known of an environment before the first step.

    Observations of real numbers are states at first. If nearly all of them are new,
    they are vectors.

    Parameters
    ----------
    env : gymnasium.Env
        The environment, which has been reset.
    key, columns
        As in `explore`.
    seed : int
        Seed of the resets.
    reader : VectorReader or None
        What `choose_reader` returns.
    promise, max_states
        As in `Explorer`.
    least_reward : float, default=None
        The least reward that counts. None: one above the most frequent one.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        key: str | Key | None,
        seed: int,
        reader: VectorReader | None,
        columns: Sequence[int] | None = None,
        *,
        promise: Promise | None = None,
        max_states: int = 1_000_000,
        least_reward: float | None = None,
    ) -> None:
        self._env = env
        self._key = key
        self._seed = seed
        self._reader = reader
        self._columns = columns
        self._promise = promise
        self._max_states = max_states
        self._least_reward = least_reward

    def make(self, known: Found | None = None) -> Knowledge:
        """Return what is known before the first step."""
        if self._reader is not None:
            is_box = isinstance(self._env.action_space, Box)
            is_known = isinstance(known, VectorFound)
            if is_box or is_known or self._columns is not None:
                vectors = self._make_vectors()
                if known is not None:
                    restore_vectors(vectors, known)
                return vectors
        elif self._columns is not None:
            raise ValueError(
                f"columns= is for vectors of at most {MOST_COLUMNS} real numbers, not "
                f"for {env_name(self._env)}: leave it out"
            )
        about = describe_env(self._env, self._key, self._seed)
        experience = Experience(
            about,
            promise=self._promise,
            max_states=self._max_states,
            may_be_vectors=self._reader is not None,
        )
        if known is not None:
            restore(experience, known)
        return experience

    def _make_vectors(self) -> VectorExperience:
        assert self._reader is not None
        return VectorExperience(
            describe_vectors(self._env, self._seed),
            Controls(self._env.action_space, env_name(self._env)),
            self._reader,
            self._columns,
            self._least_reward,
        )

    def find(self, walkers: Walkers) -> Found:
        """Return what was found so far.

        A walk may end before it is decided whether observations are vectors.
        """
        experience = walkers.experience
        if not isinstance(experience, Experience) or experience.n_steps >= 60:
            return walkers.found
        if experience.n_steps < 10 or not experience.resembles_vectors:
            return walkers.found
        vectors = self._make_vectors()
        take_over(experience, vectors)
        return vectors.found

    def check_repeats(self, walkers: Walkers, last_obs: Sequence[Any]) -> None:
        """Where states hardly repeat, go on with vectors, or raise ValueError.

        Parameters
        ----------
        walkers : Walkers
            The agents.
        last_obs : sequence
            The last observation of each.
        """
        experience = walkers.experience
        if experience.hardly_repeats and self._reader is not None:
            walkers.turn_to_vectors(self._make_vectors, last_obs)
        else:
            experience.check_repeats()


def choose_reader(env: gym.Env[Any, Any], key: str | Key | None) -> VectorReader | None:
    """Return a reader of vectors, where observations are some; None: only states."""
    space = env.observation_space
    is_box = isinstance(env.action_space, Box)
    if not is_box:
        count_actions(env)
    if choose_recognition(env, key) != "observation" or not reads_vectors(space):
        if is_box:
            count_actions(env)
        return None
    return VectorReader(describe_space(space), env_name(env))


def restore_vectors(experience: VectorExperience, found: Found) -> None:
    """Begin an experience of vectors with what was found before."""
    about = experience.about
    is_same = (
        isinstance(found, VectorFound)
        and found.about.name == about.name
        and found.about.n_actions == about.n_actions
        and found.reader.width == experience.reader.width
    )
    if not is_same:
        raise ValueError(
            f"known={found!r} belongs to another environment than {about.name}: give "
            "the environment that it was found in"
        )
    assert isinstance(found, VectorFound)
    truncated = _leave_last_episode(found)
    experience.restore(found.log._replace(truncated=truncated))


def restore(experience: Experience, found: Found) -> None:
    """Begin an experience with what was found before."""
    check_type("known", found, Found, "give what explore returned")
    _check_same_states(found, experience.about)
    numbers = found.numbers
    log = Log(
        state=found.ranks[numbers.obs],
        action=numbers.action,
        next_state=found.ranks[numbers.next_obs],
        reward=numbers.reward,
        terminated=numbers.terminated,
        truncated=_leave_last_episode(found),
        is_first=found.is_first,
    )
    given_up = np.argwhere(found.given_up[found.seen])
    experience.restore(
        [found.states[number] for number in found.seen.tolist()],
        list(found.observations),
        found.first_visit[found.seen].tolist(),
        log,
        [(int(state), int(action)) for state, action in given_up],
    )


def _leave_last_episode(found: Found) -> BoolArray:
    """Return ``(N,)`` which steps were truncated, also the last unless it ended."""
    truncated = np.array(found.numbers.truncated)
    if len(truncated):
        truncated[-1] |= not found.numbers.terminated[-1]
    return truncated


def _check_same_states(found: Found, about: About) -> None:
    """Raise ValueError if what was found has other states than an environment."""
    before = found.about
    if before.by != about.by:
        raise ValueError(
            f"known={found!r} has states by {describe_key(before.by)}, not by "
            f"{describe_key(about.by)}: give the same key=, which is "
            "known.about.by"
        )
    is_same = (
        before.name == about.name
        and before.layout == about.layout
        and before.n_actions == about.n_actions
        and before.numbers == about.numbers
        and _are_same_places(before.coords, about.coords)
    )
    if not is_same:
        raise ValueError(
            f"known={found!r} belongs to another environment or layout than "
            f"{about.name}: give the environment and the seed it was found with"
        )


def _are_same_places(first: IndexArray | None, second: IndexArray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)
