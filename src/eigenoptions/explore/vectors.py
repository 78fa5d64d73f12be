"""What an agent has seen where nothing repeats, and where it goes next.

`VectorExperience` is to vectors what `experience.Experience` is to states that repeat:
it holds all steps, and a `KnownSpace` that says what is known. A `VectorWalker` is one
agent in it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.envs.sources import env_name
from eigenoptions.explore.axes import choose_axes
from eigenoptions.explore.controls import Controls
from eigenoptions.explore.experience import Experience
from eigenoptions.explore.found import About
from eigenoptions.explore.found_vectors import (
    VectorFound,
    VectorLog,
    VectorRewards,
    count_rewards,
    make_vector_found,
)
from eigenoptions.explore.growing import GrowingArray
from eigenoptions.explore.known_space import KnownSpace, Leg
from eigenoptions.explore.rows import VectorReader

logger = logging.getLogger("eigenoptions")

# Steps before the first fit, of all actions and of each.
FIRST_FIT = 60
FIRST_FIT_PER_ACTION = 5
# A way ends where it leads so many large steps elsewhere.
LOST = 2.0
# A wall: a coordinate that was to move this far, in large steps, and did not.
EXPECTED = 0.5
STOOD = 0.02


class VectorExperience:
    """What was seen of an environment whose observations are vectors.

    Parameters
    ----------
    about : About
        The environment.
    controls : Controls
        Its actions.
    reader : VectorReader
        How observations become rows of numbers.
    columns : sequence of int, default=None
        The columns to use. None: all that move.
    goal : float, default=None
        The least reward that counts. None: one above the most frequent of its action.
    """

    def __init__(
        self,
        about: About,
        controls: Controls,
        reader: VectorReader,
        columns: Sequence[int] | None = None,
        goal: float | None = None,
    ) -> None:
        self.about = about
        self.controls = controls
        self.reader = reader
        self.columns = columns
        self.goal = goal
        self.known_space = KnownSpace(controls.vectors, columns)
        n_controls = controls.vectors.shape[1]
        self._obs = GrowingArray(np.float64, reader.width)
        self._control = GrowingArray(np.float64, n_controls)
        self._code = GrowingArray(np.int64)
        self._next_obs = GrowingArray(np.float64, reader.width)
        self._reward = GrowingArray(np.float64)
        self._terminated = GrowingArray(np.bool_)
        self._truncated = GrowingArray(np.bool_)
        self._is_first = GrowingArray(np.bool_)
        self._columns = (
            self._obs,
            self._control,
            self._code,
            self._next_obs,
            self._reward,
            self._terminated,
            self._truncated,
            self._is_first,
        )
        self.n_steps = 0
        self.n_cuts = 0
        self._told: set[int] = set()
        self.rewards = VectorRewards(len(controls), goal)
        self._next_fit = max(FIRST_FIT, FIRST_FIT_PER_ACTION * len(controls))

    @property
    def log(self) -> VectorLog:
        """All steps so far."""
        return VectorLog._make(c.values[: self.n_steps] for c in self._columns)

    @property
    def found(self) -> VectorFound:
        """What was found so far."""
        log = VectorLog._make(column.copy() for column in self.log)
        axes = self.known_space.axes
        if axes is None:
            axes = choose_axes(log.obs, log.next_obs, log.control, self.columns)
        return make_vector_found(
            self.about,
            self.controls,
            self.reader,
            log,
            axes,
            self.columns,
            self.goal,
        )

    def is_known(self, state: int) -> bool:
        """Whether nothing within reach is new."""
        return self.known_space.is_known

    def add_step(
        self,
        row: FloatArray,
        action: Any,
        next_row: FloatArray,
        reward: float,
        *,
        is_first: bool,
        terminated: bool,
        truncated: bool,
    ) -> int:
        """Add a step; return the number of its action, -1 if it has none."""
        control, code = self.controls.read(action)
        entries = (
            row,
            control,
            code,
            next_row,
            reward,
            terminated,
            truncated,
            is_first,
        )
        n = self.n_steps
        for column, entry in zip(self._columns, entries, strict=True):
            # What an interrupt has left behind is no step.
            column.truncate(n)
            column.append(entry)
        self.n_steps = n + 1
        self.rewards.add(code, reward, terminated)
        is_numbered = np.abs(control - self.controls.vectors[code]).max() < 0.05
        return code if is_numbered else -1

    def update(self, code: int) -> None:
        """Learn from the last step; fit all anew from time to time."""
        if self.n_steps >= self._next_fit:
            self.fit()
        elif self.known_space.is_ready:
            axes = self.known_space.axes
            assert axes is not None
            last = self.n_steps - 1
            rows = np.stack([self._obs.values[last], self._next_obs.values[last]])
            before, after = axes.read(rows)
            self.known_space.learn(before, code, after)

    def fit(self) -> None:
        """Fit all that is known to all steps."""
        self._next_fit = int(1.15 * self.n_steps) + 20
        log = self.log
        vectors = self.controls.vectors[log.code]
        is_numbered = np.abs(log.control - vectors).max(axis=1) < 0.05
        is_cut = self.known_space.fit(
            log.obs,
            log.control,
            np.where(is_numbered, log.code, -1),
            log.next_obs,
            self._next_fit,
        )
        self.n_cuts += is_cut
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        """Name once the columns that are left out."""
        axes = self.known_space.axes
        assert axes is not None
        if axes.left_out and set(axes.left_out) - self._told:
            self._told |= set(axes.left_out)
            logger.warning(
                "%s: %s does not count as new; columns= says which columns do",
                self.about.name,
                axes.describe_left_out(),
            )

    def leave_episode(self, step: int) -> None:
        """Note that an episode was left after a step, as if it had been truncated."""
        if step < self.n_steps and not self._terminated.values[step]:
            self._truncated.values[step] = True

    hardly_repeats = False

    def check_repeats(self) -> None:
        """Nothing has to repeat here."""

    def give(self, action: int) -> Any:
        """Return the environment's action of a number."""
        return self.controls.given[action]

    def make_walker(self, rng: np.random.Generator) -> VectorWalker:
        """Return an agent in this experience."""
        return VectorWalker(self, rng)

    def restore(self, log: VectorLog) -> None:
        """Begin with steps that were recorded before."""
        for column, rows in zip(self._columns, log, strict=True):
            column.extend(rows)
        self.n_steps = len(log.reward)
        self.rewards = count_rewards(log, len(self.controls), self.goal)
        if self.n_steps >= self._next_fit:
            self.fit()

    def rebuild(self) -> VectorExperience:
        """Return an experience of the complete steps, and leave this one as it is."""
        rebuilt = VectorExperience(
            self.about, self.controls, self.reader, self.columns, self.goal
        )
        rebuilt.restore(VectorLog._make(column.copy() for column in self.log))
        return rebuilt


class VectorWalker:
    """One agent in an experience of vectors: where it is, and where it goes next.

    Parameters
    ----------
    experience : VectorExperience
        What it has seen, perhaps together with others.
    rng : numpy.random.Generator
        Decides between equal actions.
    """

    def __init__(self, experience: VectorExperience, rng: np.random.Generator) -> None:
        self.experience = experience
        self.rng = rng
        # The last observation as a row; None outside of an episode.
        self._row: FloatArray | None = None
        self._is_first = True
        self._last_row = -1
        # The way: what is left of it, and where the last leg was to lead.
        self._legs: list[Leg] = []
        self._expected: FloatArray | None = None
        self._target: FloatArray | None = None
        self._n_cuts = 0
        # Where the last wall was met.
        self._wall: FloatArray | None = None
        # Before there is a model: an action, and how often it is repeated.
        self._held = (0, 0)

    @property
    def is_in_episode(self) -> bool:
        """Whether an episode has begun and not ended."""
        return self._row is not None

    @property
    def state(self) -> int:
        """There are no numbered states; -1 outside of an episode."""
        return 0 if self.is_in_episode else -1

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> None:
        """Begin an episode; one that has not ended is left."""
        self.leave()
        self._row = self.experience.reader.read(obs)
        self._is_first = True
        self._last_row = -1

    def go_on(self, obs: Any, last_row: int) -> None:
        """Be in an episode whose last step has a number; -1: it has none yet."""
        self._row = self.experience.reader.read(obs)
        self._is_first = last_row < 0
        self._last_row = last_row

    def leave(self) -> None:
        """Leave the episode, as if its last step had been truncated."""
        if self.is_in_episode and self._last_row >= 0:
            self.experience.leave_episode(self._last_row)
        self._row = None
        self._drop_path()
        self._held = (0, 0)

    def choose(self) -> int | None:
        """Return the number of the next action."""
        known_space = self.experience.known_space
        if not known_space.is_ready:
            return self._wander()
        assert self._row is not None
        assert known_space.axes is not None
        if self._n_cuts != self.experience.n_cuts:
            # Points have changed their meaning.
            self._n_cuts = self.experience.n_cuts
            self._drop_path()
            self._wall = None
        point = known_space.axes.read(self._row[None])[0]
        self._check_path(point)
        if not self._legs:
            self._legs = known_space.find_path(point, self.rng)
            if not self._legs:
                return self._wander()
            self._target = self._legs[-1].point

        leg = self._legs.pop(0)
        if leg.n_steps > 1:
            self._legs.insert(0, leg._replace(n_steps=leg.n_steps - 1))
        else:
            self._expected = leg.point
        return leg.action

    def _check_path(self, point: FloatArray) -> None:
        """At the end of a leg: drop the way if it has led elsewhere."""
        if self._expected is None:
            return
        axes = self.experience.known_space.axes
        assert axes is not None
        off = np.abs(axes.subtract(point[None], self._expected[None]))
        self._expected = None
        if off.max() > LOST:
            assert self._target is not None
            self.experience.known_space.give_up(self._target)
            self._legs = []

    def _drop_path(self) -> None:
        self._legs = []
        self._expected = None
        self._target = None

    def _wander(self, longest: int = 10) -> int:
        """Return a random action, which is repeated up to ten times."""
        action, n_left = self._held
        if n_left == 0:
            action = int(self.rng.integers(len(self.experience.controls)))
            n_left = int(self.rng.integers(1, longest + 1))
        self._held = (action, n_left - 1)
        return action

    def add(
        self,
        env: gym.Env[Any, Any],
        action: Any,
        obs: Any,
        reward: float,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Add the step that the agent has taken."""
        experience = self.experience
        assert self._row is not None
        next_row = experience.reader.read(obs)
        code = experience.add_step(
            self._row,
            action,
            next_row,
            reward,
            is_first=self._is_first,
            terminated=terminated,
            truncated=truncated,
        )
        self._last_row = experience.n_steps - 1
        self._is_first = False
        if code >= 0 and self._target is not None:
            self._notice_wall(self._row, code, next_row)
        experience.update(code)
        self._row = next_row
        if terminated or truncated:
            self._row = None
            self._drop_path()
            self._held = (0, 0)

    def _notice_wall(self, row: FloatArray, code: int, next_row: FloatArray) -> None:
        """Drop the way where a coordinate was to move and did not.

        The next way knows the wall. Where that is met again at once, the target is
        given up.
        """
        known_space = self.experience.known_space
        axes = known_space.axes
        if axes is None or self._n_cuts != self.experience.n_cuts:
            return
        before, after = axes.read(np.stack([row, next_row]))
        foreseen = known_space.expect(before, code)
        expected = np.abs(axes.subtract(foreseen[None], before[None]))[0]
        moved = np.abs(axes.subtract(after[None], before[None]))[0]
        if not ((expected > EXPECTED) & (moved < STOOD)).any():
            return
        is_again = self._wall is not None and np.abs(before - self._wall).max() < 1.5
        if is_again and self._target is not None:
            known_space.give_up(self._target)
        self._wall = before
        self._drop_path()


def describe_vectors(env: gym.Env[Any, Any], seed: int) -> About:
    """Return what is known of an environment with vectors before the first step."""
    return About(
        name=env_name(env),
        n_actions=len(Controls(env.action_space, env_name(env))),
        by="observation",
        seed=seed,
    )


def take_over(experience: Experience, vectors: VectorExperience) -> None:
    """Let an experience of vectors begin with the steps of one of states."""
    log = experience.log
    rows = np.array([vectors.reader.read(obs) for obs in experience.observations])
    steps = VectorLog(
        obs=rows[log.state],
        control=vectors.controls.vectors[log.action],
        code=log.action,
        next_obs=rows[log.next_state],
        reward=log.reward,
        terminated=log.terminated,
        truncated=log.truncated,
        is_first=log.is_first,
    )
    vectors.restore(steps)
