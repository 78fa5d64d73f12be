"""`VectorFound`: what `explore` found where observations are vectors.

It is a `Found`: its states are the cells that were seen, one large step wide. All steps
have their own observations, and the option is no table: it looks ahead in the model of
one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.explore.axes import Axes
from eigenoptions.explore.controls import Controls
from eigenoptions.explore.found import About, Found
from eigenoptions.explore.known_space import KnownSpace
from eigenoptions.explore.reward_paths import RewardPaths
from eigenoptions.explore.rows import VectorReader
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import find_ends
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options.files import write_arrays
from eigenoptions.samples import Transitions

# The kind of a file.
VECTORS = "found of vectors"
# Cells begin a little beside zero, a value that repeats.
_OFFSET = 0.37


class VectorLog(NamedTuple):
    """All steps, one row each."""

    obs: FloatArray
    control: FloatArray
    code: IndexArray
    next_obs: FloatArray
    reward: FloatArray
    terminated: BoolArray
    truncated: BoolArray
    is_first: BoolArray


class ImaginedPaths(NamedTuple):
    """What an option does at some observations."""

    rows: FloatArray
    actions: IndexArray  # numbers
    times: FloatArray  # steps to a reward


class VectorRewards:
    """The rewards so far, by action: which are ordinary, and whether one stands out.

    A reward counts if it is above the most frequent one of its action: what an action
    costs is no reward. Where every action costs something and no step gives more, the
    end of an episode counts, if its last step did not cost more.

    Parameters
    ----------
    n_actions : int
        Number of actions.
    goal : float, default=None
        The least reward that counts, in place of this rule.
    """

    def __init__(self, n_actions: int, goal: float | None = None) -> None:
        self._goal = goal
        self._counts: list[Counter[float]] = [Counter() for _ in range(n_actions)]
        self.ordinary = np.full(n_actions, np.nan)
        self._highest = np.full(n_actions, -np.inf)
        self._highest_at_end = np.full(n_actions, -np.inf)
        self._n_steps = 0

    def add(self, action: int, reward: float, terminated: bool) -> None:
        """Note the reward of a step."""
        # Rounding errors make no other reward.
        reward = round(reward, 9)
        counts = self._counts[action]
        counts[reward] += 1
        ordinary = self.ordinary[action]
        # Of equally frequent rewards the higher one is ordinary.
        if np.isnan(ordinary) or (counts[reward], reward) > (
            counts[ordinary],
            ordinary,
        ):
            self.ordinary[action] = reward
        self._highest[action] = max(self._highest[action], reward)
        if terminated:
            highest = max(self._highest_at_end[action], reward)
            self._highest_at_end[action] = highest
        self._n_steps += 1

    @property
    def highest(self) -> float:
        """The highest reward so far."""
        return float(self._highest.max())

    @property
    def repeat(self) -> bool:
        """Whether rewards repeat: half of the steps have the ordinary one."""
        n_ordinary = 0
        for counts, ordinary in zip(self._counts, self.ordinary, strict=True):
            n_ordinary += counts.get(float(ordinary), 0)
        return 2 * n_ordinary >= self._n_steps

    @property
    def is_costly(self) -> bool:
        """Whether every action costs something, or nothing, and some do."""
        known = self.ordinary[~np.isnan(self.ordinary)]
        return bool(len(known) and (known <= 0).all() and (known < 0).any())

    @property
    def has_higher(self) -> bool:
        """Whether a reward was above the most frequent one of its action."""
        is_used = ~np.isnan(self.ordinary)
        return bool((self._highest[is_used] > self.ordinary[is_used]).any())

    @property
    def stands_out(self) -> bool:
        """Whether something was rewarded."""
        if self._goal is not None:
            return bool(self.highest >= self._goal)
        if not self.repeat:
            return False
        if self.has_higher:
            return True
        is_used = ~np.isnan(self.ordinary)
        is_cheap = self._highest_at_end[is_used] >= self.ordinary[is_used]
        return self.is_costly and bool(is_cheap.any())

    def find_rewarded(self, log: VectorLog) -> BoolArray:
        """``(N,)`` which of all the steps are rewarded."""
        # As `add` rounds them.
        reward = log.reward.round(9)
        if self._goal is not None:
            return np.asarray(reward >= self._goal)
        # Where every reward is another number, none stands out.
        if not self.repeat:
            return np.zeros(len(reward), dtype=np.bool_)

        ordinary = self.ordinary[log.code]
        if self.has_higher:
            return np.asarray(reward > ordinary)
        # Nothing pays. If steps cost something, to end the episode without an
        # additional cost is what counts, as in MountainCar.
        ends_cheaply = log.terminated & (reward >= ordinary)
        return np.asarray(ends_cheaply & self.is_costly)


def count_rewards(
    log: VectorLog, n_actions: int, goal: float | None = None
) -> VectorRewards:
    """The rewards of all steps."""
    rewards = VectorRewards(n_actions, goal)
    columns = log.code.tolist(), log.reward.tolist(), log.terminated.tolist()
    for action, reward, terminated in zip(*columns, strict=True):
        rewards.add(action, reward, terminated)
    return rewards


class CellKey:
    """A key of `OptionsWrapper`: the cell of an observation.

    Parameters
    ----------
    reader : VectorReader
        How observations become rows.
    axes : Axes
        How rows become points.
    """

    def __init__(self, reader: VectorReader, axes: Axes) -> None:
        self._reader = reader
        self._axes = axes

    def __call__(self, env: Any, obs: Any) -> tuple[int, ...]:
        """Return the cell of an observation."""
        row = self._reader.read(obs)
        return tuple(find_cells(self._axes, row[None])[0].tolist())


def find_cells(axes: Axes, rows: FloatArray) -> IndexArray:
    """``(N, d)`` the cells of observations."""
    cells = np.floor(axes.read(rows) + _OFFSET).astype(np.int64)
    cells[:, axes.is_angle] %= axes.turns[axes.is_angle]
    return cells


@dataclass(frozen=True, eq=False, repr=False)
class VectorFound(Found):
    """What `explore` found where observations are vectors.

    States are the cells that were seen, in the order of their first visit. They are one
    large step wide, so that `mdp` holds hardly more than the steps that happened;
    `discover` and `Planner` cut `transitions` as wide as the data allow.

    Parameters
    ----------
    log : VectorLog
        All steps.
    axes : Axes
        How observations become points.
    controls : Controls
        The actions.
    reader : VectorReader
        How observations become rows.
    columns : sequence of int or None
        The columns that were asked for.
    least_reward : float or None
        The least reward that counts, if one was given.
    """

    log: VectorLog
    axes: Axes
    controls: Controls
    reader: VectorReader
    columns: Sequence[int] | None = None
    least_reward: float | None = None

    @property
    def step_observations(self) -> Sequence[Any]:
        """The observations before all steps, and then those after them."""
        steps = self.transitions
        return np.concatenate([steps.obs, steps.next_obs])  # type: ignore[return-value]

    @property
    def step_rows(self) -> tuple[IndexArray, IndexArray]:
        """``(N,)`` the observations before and after each step, as their numbers."""
        rows = np.arange(self.n_steps)
        return rows, self.n_steps + rows

    @cached_property
    def transitions(self) -> Transitions:
        """All steps, with the observations and actions that were."""
        log = self.log
        action: Any = log.code
        if self.controls.is_box:
            action = self.controls.write(log.control)
        return Transitions(
            obs=self.reader.write(log.obs),
            action=action,
            next_obs=self.reader.write(log.next_obs),
            terminated=log.terminated,
            reward=log.reward,
            truncated=log.truncated,
        )

    @property
    def numbered_transitions(self) -> Transitions:
        """All steps, with the numbers of the actions."""
        return replace(self.transitions, action=self.log.code)

    @cached_property
    def _counted(self) -> VectorRewards:
        return count_rewards(self.log, len(self.controls), self.least_reward)

    @cached_property
    def _is_rewarded(self) -> BoolArray:
        """``(N,)`` which steps are rewarded."""
        return self._counted.find_rewarded(self.log)

    @property
    def is_step_rewarded(self) -> BoolArray:
        """``(N,)`` which steps are rewarded."""
        return self._is_rewarded

    @property
    def reward_rule(self) -> str:
        """Which steps count as rewarded."""
        if self.least_reward is not None:
            return f"a reward of at least {self.least_reward:g}"
        if not self._counted.repeat:
            return "no reward repeats: give until=, a number or a function"
        above = "a reward above the most frequent one of its action"
        if self._counted.is_costly and not self._counted.has_higher:
            return f"the end of an episode (no step gave {above})"
        return above

    @cached_property
    def _reward_paths(self) -> RewardPaths:
        """Ways to what was rewarded, over steps that happened."""
        self._check_rewarded()
        known_space = KnownSpace(self.controls.vectors, self.columns)
        vectors = self.controls.vectors[self.log.code]
        is_numbered = np.abs(self.log.control - vectors).max(axis=1) < 0.05
        known_space.fit(
            self.log.obs,
            self.log.control,
            np.where(is_numbered, self.log.code, -1),
            self.log.next_obs,
            len(self.log.reward),
        )
        return RewardPaths(
            known_space,
            self.log.obs,
            self.log.next_obs,
            self.log.terminated | self.log.truncated,
            self._is_rewarded,
        )

    @cached_property
    def distances(self) -> FloatArray:
        """``(S,)`` fewest steps until one is rewarded, of the observations in a cell.

        They are 0 in the end of an episode that rewarded steps enter.
        """
        times = self._reward_paths.measure(self.log.obs)
        distances = np.full(self.mdp.n_states, np.inf)
        np.minimum.at(distances, self.numbers.obs, times)
        is_end = self._is_sure & find_ends(self.mdp)
        distances[is_end] = 0.0
        distances.flags.writeable = False
        return distances

    def potential(self) -> VectorPotential:  # type: ignore[override]
        """Return minus the time to what was rewarded, for `ShapedReward`.

        It is scaled to 0 (farthest, or no known way) to 1 (the reward was received).
        """
        return VectorPotential(self.reader, self._reward_paths)

    def option(self) -> VectorOption:  # type: ignore[override]
        """Return the way to what was rewarded, which acts on observations.

        It looks ahead in the model of one step, towards steps that happened and from
        which a way is known, and plans anew where it is led elsewhere.
        """
        return VectorOption(self.reader, self.controls, self._reward_paths)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_found` reads it."""
        space = self.controls.space
        actions: dict[str, Any] = {"n": len(self.controls)}
        if isinstance(space, Box):
            actions = {
                "low": space.low.ravel().tolist(),
                "high": space.high.ravel().tolist(),
                "shape": list(space.shape),
                "dtype": str(space.dtype),
            }
        columns = None
        if self.columns is not None:
            columns = [int(column) for column in self.columns]
        header = {
            "name": self.about.name,
            "seed": self.about.seed,
            "actions": actions,
            "form": self.reader.form,
            "axes": self.axes.to_dict(),
            "columns": columns,
            "least_reward": self.least_reward,
        }
        write_arrays(path, VECTORS, header, dict(self.log._asdict()))

    def imagine_paths(self, n_paths: int = 40, most: int = 200) -> ImaginedPaths:
        """Return what the option does on its ways, for `clone`.

        They begin at observations that were seen, some of them at starts, and go on in
        the model of one step.

        Parameters
        ----------
        n_paths : int, default=40
            Number of ways.
        most : int, default=200
            Most steps of each.
        """
        reward_paths = self._reward_paths
        log = self.log
        times = reward_paths.measure(log.obs)
        known = np.flatnonzero(np.isfinite(times))
        starts = known[log.is_first[known]]
        evenly = np.linspace(0, len(known) - 1, n_paths - n_paths // 4).astype(int)
        first = np.resize(starts, n_paths // 4) if len(starts) else known[:0]
        # No imagined observation is outside of those that were.
        low, high = log.obs.min(axis=0), log.obs.max(axis=0)
        rows, actions = [], []
        for start in [*first.tolist(), *known[evenly].tolist()]:
            row = log.obs[start]
            path = reward_paths.begin()
            for _ in range(most):
                code = path.act(row)
                if code < 0:
                    break
                rows.append(row)
                actions.append(code)
                row, is_there = reward_paths.imagine(row, code)
                row = np.clip(row, low, high)
                if is_there:
                    break
        stacked = np.array(rows)
        return ImaginedPaths(stacked, np.array(actions), reward_paths.measure(stacked))

    def __repr__(self) -> str:
        n_rewarded = int(self._is_rewarded.sum())
        rewarded = f"nothing rewarded ({self.reward_rule})"
        if n_rewarded:
            steps = "1 step" if n_rewarded == 1 else f"{n_rewarded:,} steps"
            rewarded = f"{steps} rewarded ({self.reward_rule})"
        return (
            f"Found({self.about.name}: {len(self.seen):,} cells of {self.axes} in "
            f"{self.n_steps:,} steps, {rewarded})"
        )


class VectorPotential:
    """A number for each observation: how near what was rewarded is.

    Parameters
    ----------
    reader : VectorReader
        How observations become rows.
    reward_paths : RewardPaths
        The known ways.
    """

    def __init__(self, reader: VectorReader, reward_paths: RewardPaths) -> None:
        self._reader = reader
        self._reward_paths = reward_paths

    def __call__(self, obs: Any) -> float:
        """Return the potential of an observation."""
        time = float(self._reward_paths.measure(self._reader.read(obs)[None])[0])
        if not np.isfinite(time):
            return 0.0
        return 1.0 - min(time / self._reward_paths.longest, 1.0)


class VectorOption:
    """The way to what was rewarded: ``act(obs)`` returns the next action, or -1.

    Parameters
    ----------
    reader : VectorReader
        How observations become rows.
    controls : Controls
        The actions.
    reward_paths : RewardPaths
        The known ways.
    """

    label = "rewarded"

    def __init__(
        self, reader: VectorReader, controls: Controls, reward_paths: RewardPaths
    ) -> None:
        self._reader = reader
        self._controls = controls
        self._reward_paths = reward_paths
        self._path = reward_paths.begin()

    def act(self, obs: Any) -> Any:
        """Return the action at an observation; -1 where no way is known."""
        code = self._path.act(self._reader.read(obs))
        return code if code < 0 else self._controls.given[code]

    def __repr__(self) -> str:
        return "VectorOption(to what was rewarded)"


def make_vector_found(
    about: About,
    controls: Controls,
    reader: VectorReader,
    log: VectorLog,
    axes: Axes,
    columns: Sequence[int] | None,
    goal: float | None,
) -> VectorFound:
    """Return the record of what was found, with a table of cells."""
    n_steps = len(log.reward)
    both = np.concatenate([find_cells(axes, log.obs), find_cells(axes, log.next_obs)])
    # In the order of time: the observation before a step, then the one after it.
    order = np.stack([np.arange(n_steps), n_steps + np.arange(n_steps)], 1).ravel()
    corners, first, inverse = np.unique(
        both[order], axis=0, return_index=True, return_inverse=True
    )
    rank = np.argsort(first)
    number = np.empty(len(rank), dtype=np.int64)
    number[rank] = np.arange(len(rank))
    states = number[inverse.ravel()]
    before, after = states[::2], states[1::2]
    n_states = len(corners)

    numbers = Transitions(
        obs=before,
        action=log.code,
        next_obs=after,
        terminated=log.terminated,
        reward=log.reward,
        truncated=log.truncated,
    )
    keys: list[Hashable] = [tuple(row) for row in corners[rank].tolist()]
    starts = np.bincount(before[log.is_first], minlength=n_states)
    recognition = Recognition(CellKey(reader, axes), seed=about.seed, is_partial=True)
    mdp = MDP.from_transitions(
        numbers,
        n_states,
        len(controls),
        states=tuple(keys),
        recognition=recognition,
        start=int(np.argmax(starts)),
        name=about.name,
        is_estimated=True,
    )
    untried = np.zeros((mdp.n_states, len(controls)), dtype=np.bool_)
    untried[:n_states] = True
    untried[before, log.code] = False
    untried[: len(find_ends(mdp))][find_ends(mdp)] = False
    first_visit = np.full(mdp.n_states, -1)
    first_visit[:n_states] = (np.sort(first) + 1) // 2
    rows = np.concatenate([log.obs, log.next_obs])[order][np.sort(first)]
    return VectorFound(
        about=about,
        mdp=mdp,
        numbers=numbers,
        seen=np.arange(n_states),
        observations=tuple(reader.write(rows)),
        first_visit=first_visit,
        untried=untried,
        given_up=np.zeros_like(untried),
        is_first=log.is_first,
        log=log,
        axes=axes,
        controls=controls,
        reader=reader,
        columns=columns,
        least_reward=goal,
    )
