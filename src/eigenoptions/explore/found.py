"""`Found`: what `explore` found, as a record."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from eigenoptions._registry import notebook_pictures
from eigenoptions._text import count_noun, printable
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions._validation import Record, readonly
from eigenoptions.envs.families import Key, families
from eigenoptions.envs.shaping import KeyPotential
from eigenoptions.envs.tables import drop_far_places
from eigenoptions.explore.packing import pack_keys, pack_observations
from eigenoptions.explore.unknown import GrowingTable
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import find_ends, uniform_walk
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.mdp.table import count_outcomes
from eigenoptions.options import TERMINATE, Option, OptionSet, Purpose
from eigenoptions.options.files import write_arrays
from eigenoptions.options.solver import solve
from eigenoptions.samples import Transitions


@dataclass(frozen=True, eq=False)
class About:
    """What is known of an environment before the first step.

    Parameters
    ----------
    name : str
        Its id.
    n_actions : int
        Number of actions.
    by : str or callable
        How states are recognised: ``"observation"``, ``"minigrid"``, ``"pose"``, or a
        key of the user.
    seed : int
        Seed of the resets.
    layout : str or None
        What distinguishes layouts of one id; None where there is only one.
    is_partial_view : bool
        Whether states are recognised by a view that does not show all of the state.
    numbers : tuple of int or None
        The first number and how many there are, where observations are numbers.
    coords : ndarray of shape (S, 2) or None
        Where a picture shows numbered states.
    legend : str
        What the picture does not show.
    """

    name: str
    n_actions: int
    by: str | Key
    seed: int
    layout: str | None = None
    is_partial_view: bool = False
    numbers: tuple[int, int] | None = None
    coords: IndexArray | None = None
    legend: str = ""

    @property
    def has_chosen_key(self) -> bool:
        """Whether states are recognised otherwise than its family would do it."""
        return self.is_partial_view or not isinstance(self.by, str)


class Log(NamedTuple):
    """All steps, one row each: arrays, or the entries of a single step."""

    state: Any
    action: Any
    next_state: Any
    reward: Any
    terminated: Any
    truncated: Any
    is_first: Any


@dataclass(frozen=True, eq=False, repr=False)
class Found(Record):
    """What `explore` found: the table so far, and all steps. Its arrays are read-only.

    States have the numbers of `mdp`. Numbered observations keep theirs; other states
    are numbered in the order of their first visit.

    Parameters
    ----------
    about : About
        The environment, and how its states are recognised.
    mdp : MDP
        The table so far. An end is absorbing, and an untried action stays put. A step
        that ended an episode where others go on leads to an additional state.
    numbers : Transitions
        All steps as numbers of states.
    seen : ndarray of int
        The states that were seen, in the order of their first visit.
    observations : sequence
        One observation of each seen state, in the same order.
    first_visit : ndarray of int of shape (S,)
        Number of steps until each state was seen; -1 where it was not.
    untried : ndarray of bool of shape (S, A)
        Which actions were never taken in states that were seen. None of an end counts.
    given_up : ndarray of bool of shape (S, A)
        Which of them were given up, because episodes are too short to reach them.
    is_first : ndarray of bool of shape (N,)
        Which steps are the first of an episode.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = eo.explore(eo.maze("S..G"), 100, until="reward")
    >>> found.rewarded.tolist(), found.mdp.goal
    ([3], 3)
    >>> found.option().policy.tolist()
    [1, 1, 1, -1]
    >>> found.distances.tolist()
    [3.0, 2.0, 1.0, 0.0]
    """

    about: About
    mdp: MDP
    numbers: Transitions
    seen: IndexArray
    observations: Sequence[Any]
    first_visit: NDArray[np.int64]
    untried: BoolArray
    given_up: BoolArray
    is_first: BoolArray

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, readonly(value))

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.numbers)

    @property
    def states(self) -> Sequence[Any]:
        """What identifies each state of `mdp`: its key, or its number."""
        return self.mdp.states or ()

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """``(S,)`` how many states were seen before each; -1 where it was not seen."""
        ranks = np.full(self.mdp.n_states, -1)
        ranks[self.seen] = np.arange(len(self.seen))
        return readonly(ranks)

    @property
    def step_observations(self) -> Sequence[Any]:
        """The observations of all steps, each once where states repeat."""
        return self.observations

    @property
    def step_rows(self) -> tuple[IndexArray, IndexArray]:
        """``(N,)`` the observations before and after each step, as their numbers."""
        return self.ranks[self.numbers.obs], self.ranks[self.numbers.next_obs]

    @cached_property
    def transitions(self) -> Transitions:
        """All steps with observations, rewards, and how episodes ended.

        Observations that are not arrays, such as dicts, are entries of an array of
        objects. Each is that of the first visit to its state.
        """
        observations = _stack(self.observations)
        return Transitions(
            obs=observations[self.ranks[self.numbers.obs]],
            action=self.numbers.action,
            next_obs=observations[self.ranks[self.numbers.next_obs]],
            terminated=self.numbers.terminated,
            reward=self.numbers.reward,
            truncated=self.numbers.truncated,
        )

    @cached_property
    def ordinary_reward(self) -> float:
        """The most frequent reward; of equally frequent ones the highest."""
        rewards, counts = np.unique(self._rewards, return_counts=True)
        if not len(rewards):
            return 0.0
        return float(rewards[counts == counts.max()][-1])

    @property
    def reward_rule(self) -> str:
        """Which steps count as rewarded."""
        above = f"a reward above {self.ordinary_reward:g}"
        if self.ordinary_reward < 0 and not self._is_above.any():
            return f"the end of an episode (no step gave {above})"
        return above

    @cached_property
    def rewarded_steps(self) -> IndexArray:
        """``(n, 3)`` state, action and next state of the rewarded steps, each once.

        These are steps with a reward above the most frequent one. Where every step
        costs something and none gives more, they are those that ended an episode and
        did not cost more.
        """
        numbers = self.numbers
        steps = np.stack([numbers.obs, numbers.action, numbers.next_obs], axis=1)
        return readonly(np.unique(steps[self._is_rewarded], axis=0))

    @cached_property
    def rewarded(self) -> IndexArray:
        """The states that rewarded steps enter."""
        return readonly(np.unique(self.rewarded_steps[:, 2]))

    @cached_property
    def _is_rewarded(self) -> BoolArray:
        """``(N,)`` which steps are rewarded."""
        if self._is_above.any() or self.ordinary_reward >= 0:
            return self._is_above
        is_cheap = self._rewards >= self.ordinary_reward
        is_last: BoolArray = self.numbers.terminated & is_cheap
        return is_last

    @cached_property
    def _is_sure(self) -> BoolArray:
        """``(S,)`` which states were entered by rewarded steps, and never otherwise."""
        numbers = self.numbers
        # To stay in a state is not to enter it.
        is_other = ~self._is_rewarded & (numbers.obs != numbers.next_obs)
        is_sure = np.zeros(self.mdp.n_states, dtype=np.bool_)
        is_sure[self.rewarded] = True
        is_sure[numbers.next_obs[is_other]] = False
        is_sure[numbers.obs[self.is_first]] = False
        return is_sure

    @property
    def _rewards(self) -> FloatArray:
        rewards = self.numbers.reward
        assert rewards is not None
        return rewards

    @property
    def _is_above(self) -> BoolArray:
        """``(N,)`` which steps gave more than the most frequent reward."""
        is_above: BoolArray = self._rewards > self.ordinary_reward
        return is_above

    @cached_property
    def distances(self) -> FloatArray:
        """``(S,)`` fewest steps until one is rewarded; inf where no known way leads.

        They are 0 in the end of an episode that only rewarded steps enter.
        """
        self._check_rewarded()
        aim = make_reward_mdp(self)
        moves = uniform_walk(aim)
        reward_state = self.mdp.n_listed
        steps = dijkstra(moves.T, indices=reward_state, unweighted=True)

        distances = np.full(self.mdp.n_states, np.inf)
        distances[:reward_state] = steps[:reward_state]
        distances[self._is_sure & find_ends(self.mdp)] = 0.0
        return readonly(distances)

    def potential(self) -> StatePotential:
        """Return minus the distance to what was rewarded, for `ShapedReward`.

        It is scaled to 0 (farthest, or no known way) to 1 (the reward was received), so
        that it resembles the value of a state.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> env = eo.envs.MazeEnv("S..G")
        >>> found = eo.explore(env, 100, until="reward")
        >>> shaped = eo.ShapedReward(env, found.potential(), gamma=1.0)
        >>> start = shaped.reset()
        >>> round(shaped.step(1)[1], 3)
        0.333
        """
        distances = self.distances
        is_known = np.isfinite(distances)
        farthest = max(float(distances[is_known].max()), 1.0)
        values = np.where(is_known, 1.0 - distances / farthest, 0.0)
        return StatePotential(self, values)

    def option(self) -> Option:
        """Return the way to what was rewarded: a shortest path where moves are certain.

        The rewarded action is its last one. Where the episode goes on after it, so does
        the option, to the next reward. It acts on the numbers of states of `mdp`.
        """
        self._check_rewarded()
        aim = make_reward_mdp(self)
        reward_state = self.mdp.n_listed
        potential = np.zeros(aim.n_states)
        potential[reward_state] = 1.0
        # So close to 1 that the reward matters everywhere.
        gamma = 1.0 - 1.0 / (10.0 + self.mdp.n_states)
        solved = solve(aim, Purpose(potential, "rewarded", exact=True), gamma)

        policy = np.full((1, self.mdp.n_states), TERMINATE)
        policy[:, :reward_state] = solved.policy[:, :reward_state]
        value = np.zeros(policy.shape)
        value[:, :reward_state] = solved.value[:, :reward_state]
        purpose = Purpose(
            self._is_sure.astype(np.float64),
            "rewarded",
            goal=self.mdp.goal,
            exact=True,
        )
        return OptionSet(self.mdp, policy, value, [purpose], solved.provenance)[0]

    def _check_rewarded(self) -> None:
        if not len(self.rewarded):
            raise ValueError(
                f"nothing was rewarded in {count_noun(self.n_steps, 'step')}: explore "
                'further, explore(env, steps, known=found, until="reward")'
            )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_found` reads it.

        Keys of states must be numbers, text or tuples of them. A function that you gave
        as `key` is not written: give it again to `load_found`.
        """
        about = self.about
        # A function has no name that a file could hold.
        by = None
        if isinstance(about.by, str):
            by = about.by
        header: dict[str, Any] = {
            "name": about.name,
            "n_actions": about.n_actions,
            "by": by,
            "seed": about.seed,
            "layout": about.layout,
            "is_partial_view": about.is_partial_view,
            "numbers": about.numbers,
            "legend": about.legend,
        }
        keys = [self.states[number] for number in self.seen.tolist()]
        header["observations"], arrays = pack_observations(self.observations)

        arrays |= {
            "keys": pack_keys(keys),
            "first_visit": self.first_visit[self.seen],
            "given_up": self.given_up[self.seen].astype(np.uint8),
            "state": self.ranks[self.numbers.obs],
            "action": self.numbers.action,
            "next_state": self.ranks[self.numbers.next_obs],
            "reward": self._rewards,
            "terminated": self.numbers.terminated,
            "truncated": np.asarray(self.numbers.truncated),
            "is_first": self.is_first,
        }
        if about.coords is not None:
            arrays["coords"] = about.coords
        write_arrays(path, "found", header, arrays)

    def __repr__(self) -> str:
        n_untried = int(self.untried.sum())
        untried = "no action untried"
        if n_untried:
            n_pairs = len(self.seen) * self.about.n_actions
            untried = f"{n_untried:,} of {n_pairs:,} actions untried"
        rewarded = f"nothing rewarded ({self.reward_rule})"
        if len(self.rewarded):
            states = count_noun(len(self.rewarded), "state")
            rewarded = f"{states} rewarded ({self.reward_rule})"
        return (
            f"Found({printable(self.about.name)}: {len(self.seen):,} states in "
            f"{self.n_steps:,} steps, {untried}, {rewarded})"
        )

    def _repr_html_(self) -> str:
        """The map of what was seen, as a notebook shows it."""
        return notebook_pictures.find("found")(self)


@dataclass(frozen=True, eq=False, repr=False)
class StatePotential(Record, KeyPotential):
    """A number for each state that was found, for `ShapedReward`.

    Parameters
    ----------
    found : Found
        How states are recognised.
    values : ndarray of shape (S,)
        The potential of each state; others have the lowest.
    """

    found: Found
    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", readonly(self.values))

    @cached_property
    def lowest(self) -> float:
        """The lowest potential, which is that of states that were not found."""
        return float(self.values.min())

    @property
    def by(self) -> str | Key:
        """How states are recognised."""
        return self.found.about.by

    def evaluate(self, key: Hashable) -> float:
        """Return the potential of the state with a key."""
        number = self._numbers.get(key)
        if number is None:
            return self.lowest
        return float(self.values[number])

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {key: number for number, key in enumerate(self.found.states)}


def make_found(
    about: About,
    *,
    keys: list[Hashable],
    observations: list[Any],
    first_visit: list[int],
    log: Log,
    table: GrowingTable,
) -> Found:
    """Return the record of what was found, in the numbers of its MDP."""
    seen = np.arange(len(keys))
    n_states = len(keys)
    states: Sequence[Any] = keys
    if about.numbers is not None:
        low, n_states = about.numbers
        seen = np.array(keys, dtype=np.int64) - low
        if seen.min() < 0 or seen.max() >= n_states:
            raise ValueError(
                f"{about.name} has observations outside of its space: correct that "
                "space"
            )
        states = range(low, low + n_states)

    numbers = Transitions(
        obs=seen[log.state],
        action=log.action,
        next_obs=seen[log.next_state],
        terminated=log.terminated,
        reward=log.reward,
        truncated=log.truncated,
    )
    # The table may have an additional state, which was not seen.
    mdp = _make_mdp(about, table, seen, states)
    untried = np.zeros((mdp.n_states, about.n_actions), dtype=np.bool_)
    untried[seen] = table.find_untried()
    given_up = np.zeros_like(untried)
    given_up[seen] = table.find_given_up()
    visits = np.full(mdp.n_states, -1)
    visits[seen] = first_visit

    found = Found(
        about=about,
        mdp=mdp,
        numbers=numbers,
        seen=seen,
        observations=tuple(observations),
        first_visit=visits,
        untried=untried,
        given_up=given_up,
        is_first=log.is_first,
    )
    # The goal of a task is a state: of a reward that one may miss there is none.
    if len(found.rewarded) == 1 and found._is_sure[found.rewarded[0]]:
        mdp = mdp.with_task(goal=int(found.rewarded[0]))
        object.__setattr__(found, "mdp", mdp)
    return found


def make_reward_mdp(found: Found) -> MDP:
    """Return the table of what was found with a further state for rewarded steps.

    They lead there as often as they were rewarded, and it is absorbing. Its number is
    ``found.mdp.n_listed``; states before it keep theirs.

    Parameters
    ----------
    found : Found
        What was found.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = eo.explore(eo.maze("S.G"), 100, until="known")
    >>> make_reward_mdp(found).successors.tolist()
    [[0, 1, 0, 0], [1, 3, 1, 0], [2, 2, 2, 2], [3, 3, 3, 3]]
    """
    numbers = found.numbers
    reward_state = found.mdp.n_listed
    is_rewarded = found._is_rewarded
    table = count_outcomes(
        numbers.obs * found.about.n_actions + numbers.action,
        np.where(is_rewarded, reward_state, numbers.next_obs),
        numbers.terminated & ~is_rewarded,
        np.ones(len(numbers)),
        n_states=reward_state + 1,
        n_actions=found.about.n_actions,
    )
    return MDP(table, n_additional=table.shape[1] - reward_state - 1)


def _make_mdp(
    about: About, table: GrowingTable, seen: IndexArray, states: Sequence[Any]
) -> MDP:
    """Return the table so far with the numbers of the environment."""
    coords = about.coords
    headings = None
    legend = about.legend
    if (
        about.numbers is None
        and isinstance(about.by, str)
        and about.by in families.names()
    ):
        family = families.find(about.by)
        coords, legend = family.place_states(states)
        if coords is not None:
            headings = family.find_headings(states)

    # Under a key that the user chose, a state has no layout: options belong to the key,
    # and run wherever it means the same.
    layout = about.layout
    if about.has_chosen_key:
        layout = None
    recognition = None
    # Where numbers begin at 0, an observation is the number of the state.
    if about.numbers is None or about.numbers[0] != 0:
        recognition = Recognition(about.by, about.seed, layout, is_partial=True)

    starts = table.starts
    start = max(starts, key=lambda state: starts[state]) if starts else 0
    mdp = table.to_mdp(
        numbers=seen,
        n_states=len(states),
        start=int(seen[start]),
        name=about.name,
        coords=coords,
        headings=headings,
        legend=legend,
        states=states,
        recognition=recognition,
        is_estimated=True,
    )
    return drop_far_places(mdp)


def _stack(observations: Sequence[Any]) -> NDArray[Any]:
    """Return observations as rows of an array, of objects where they are no arrays."""
    first = observations[0]
    if isinstance(first, np.ndarray | np.generic | int | float):
        return np.array(observations)
    rows = np.empty(len(observations), dtype=object)
    for number, obs in enumerate(observations):
        rows[number] = obs
    return rows
