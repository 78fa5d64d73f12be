"""What an agent has seen, and where it goes next.

`Experience` holds the table that grows, the key and one observation of each state, and
all steps. A `Walker` is one agent in it: it follows an episode, adds what happens to
the experience, and chooses the next action to the unknown. `Explorer` has one walker, a
vector of environments has several in one experience (`walkers`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from eigenoptions._types import IndexArray
from eigenoptions.envs.families import Key, find_family
from eigenoptions.envs.recognisers import choose_recognition, make_recogniser
from eigenoptions.envs.remote import RemoteEnv
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.envs.tables import place_states
from eigenoptions.explore.found import About, Found, Log, make_found
from eigenoptions.explore.growing import GrowingArray
from eigenoptions.explore.unknown import GrowingTable, Path, PromiseFunction
from eigenoptions.mdp import MDP

logger = logging.getLogger("eigenoptions")

# How much an untried action promises at an observation, from 0 to 1.
Promise: TypeAlias = Callable[[Any, int], float]


def describe_env(env: gym.Env[Any, Any], key: str | Key | None, seed: int) -> About:
    """Return what is known of an environment that has just been reset."""
    by = choose_recognition(env, key)
    family = find_family(env)
    space = env.observation_space
    numbers = None
    if by == "observation" and isinstance(space, Discrete):
        numbers = (int(space.start), int(space.n))

    # What only a look inside tells.
    layout = None
    coords = None
    legend = ""
    if not isinstance(env, RemoteEnv):
        layout = family.identify_layout(env.unwrapped)
        if numbers is not None:
            coords, legend = _place_numbers(env.unwrapped, numbers[1])
    return About(
        name=env_name(env),
        n_actions=count_actions(env),
        by=by,
        seed=seed,
        layout=layout,
        is_partial_view=isinstance(by, str) and by != family.name,
        numbers=numbers,
        coords=coords,
        legend=legend,
    )


def _place_numbers(unwrapped: Any, n_states: int) -> tuple[IndexArray | None, str]:
    """Return where a picture shows numbered states, and its legend."""
    mdp = getattr(unwrapped, "mdp", None)
    if isinstance(mdp, MDP) and mdp.n_states == n_states:
        return mdp.coords, mdp.legend
    return place_states(unwrapped, n_states)


@dataclass
class Rewards:
    """The rewards so far: which is the most frequent, and whether one stands out."""

    counts: Counter[float]
    most_frequent: float = 0.0
    highest: float = -np.inf
    highest_at_end: float = -np.inf

    def add(self, reward: float, terminated: bool) -> None:
        """Note the reward of a step."""
        self.counts[reward] += 1
        # Of equally frequent rewards the higher one is ordinary.
        candidates = (self.counts[reward], reward)
        if candidates > (self.counts[self.most_frequent], self.most_frequent):
            self.most_frequent = reward
        self.highest = max(self.highest, reward)
        if terminated:
            self.highest_at_end = max(self.highest_at_end, reward)

    @property
    def stands_out(self) -> bool:
        """Whether a reward was above the most frequent one.

        Where every step costs something, reaching an end counts, too.
        """
        if self.highest > self.most_frequent:
            return True
        return self.most_frequent < 0 and self.highest_at_end >= self.most_frequent


def _copy_obs(obs: Any) -> Any:
    """Return a copy of an observation, which the environment may change in place.

    Arrays of JAX and others become arrays of NumPy.
    """
    if isinstance(obs, dict):
        return {name: _copy_obs(part) for name, part in obs.items()}
    if type(obs) is tuple:
        return tuple(_copy_obs(part) for part in obs)
    if hasattr(obs, "__array__") and not isinstance(obs, np.generic):
        return np.array(obs)
    return deepcopy(obs)


class Experience:
    """What was seen of an environment: its table so far, its states and all steps.

    Parameters
    ----------
    about : About
        The environment, and how its states are recognised.
    promise : callable, default=None
        ``promise(obs, action)``: how likely an untried action is to show something new,
        from 0 to 1. None: learned from first tries.
    max_states : int, default=1000000
        Most states, of each of which one observation is kept.
    patience : int, default=3
        Episodes that end on the way to a try until it is given up.
    may_be_vectors : bool, default=False
        Whether observations could be used as vectors, if states hardly repeat.
    """

    def __init__(
        self,
        about: About,
        *,
        promise: Promise | None = None,
        max_states: int = 1_000_000,
        patience: int = 3,
        may_be_vectors: bool = False,
    ) -> None:
        self.about = about
        self.promise = promise
        self.max_states = max_states
        self.patience = patience
        self.may_be_vectors = may_be_vectors

        # One row per step, in the numbers of the table.
        self._state = GrowingArray(np.int64)
        self._action = GrowingArray(np.int64)
        self._next_state = GrowingArray(np.int64)
        self._reward = GrowingArray(np.float64)
        self._terminated = GrowingArray(np.bool_)
        self._truncated = GrowingArray(np.bool_)
        self._is_first = GrowingArray(np.bool_)
        self.n_steps = 0

        self.table = GrowingTable(self.about.n_actions, max_states=self.max_states)
        self.numbers: dict[Hashable, int] = {}
        self.observations: list[Any] = []
        self.first_visit: list[int] = []
        self.rewards = Rewards(Counter())
        self._has_warned = False
        self._has_given_up = False
        self._known_at = -1
        self._is_known = False
        # The untried action that each walker is on its way to.
        self.claims: dict[Walker, tuple[int, int]] = {}
        # How often an episode was cut on the way to a try, and which were given up.
        self._cuts: Counter[tuple[int, int]] = Counter()
        self._given_up: list[tuple[int, int]] = []

    @property
    def log(self) -> Log:
        """All steps so far."""
        n = self.n_steps
        return Log(
            state=self._state.values[:n],
            action=self._action.values[:n],
            next_state=self._next_state.values[:n],
            reward=self._reward.values[:n],
            terminated=self._terminated.values[:n],
            truncated=self._truncated.values[:n],
            is_first=self._is_first.values[:n],
        )

    @property
    def found(self) -> Found:
        """What was found so far."""
        return make_found(
            self.about,
            keys=list(self.numbers),
            observations=self.observations,
            first_visit=self.first_visit,
            log=self.log,
            table=self.table,
        )

    @property
    def uses_counts(self) -> bool:
        """Whether plans are made with probabilities: some action had two outcomes.

        A partial view is no state, so there the last outcome of an action tells more
        than how often each was seen.
        """
        return self.table.is_random and not self.about.is_partial_view

    def add_state(self, key: Hashable, obs: Any, step: int) -> tuple[int, bool]:
        """Return the number of a state, and whether it is new.

        Parameters
        ----------
        key : hashable
            What identifies the state.
        obs : object
            Its observation, which is copied if the state is new.
        step : int
            Number of steps until it was seen.
        """
        number = self.numbers.get(key)
        if number is not None:
            return number, False

        number = self.table.add_state()
        self.observations.append(_copy_obs(obs))
        self.first_visit.append(step)
        self.numbers[key] = number
        return number, True

    def add_step(
        self,
        state: int,
        action: int,
        next_state: int,
        reward: float,
        *,
        is_new: bool,
        is_first: bool,
        terminated: bool,
        truncated: bool,
    ) -> bool:
        """Add a step; return whether its outcome was a surprise."""
        # The number of steps comes last: what an interrupt leaves behind is no step.
        self._state.append(state)
        self._action.append(action)
        self._next_state.append(next_state)
        self._reward.append(reward)
        self._terminated.append(terminated)
        self._truncated.append(truncated)
        self._is_first.append(is_first)
        self.n_steps += 1

        self.rewards.add(reward, terminated)
        return self.table.add_step(
            state, action, next_state, is_new=is_new, terminated=terminated
        )

    def leave_episode(self, step: int) -> None:
        """Note that an episode was left after a step, as if it had been truncated."""
        if not self._terminated.values[step]:
            self._truncated.values[step] = True

    def is_known(self, state: int) -> bool:
        """Whether nothing within reach of a state or a start is worth a try."""
        if self.uses_counts:
            return not self.table.is_any_worth_trying(state)
        # It changes only with a new outcome.
        n_outcomes = len(self.table.outcomes.row)
        if self._known_at != n_outcomes:
            self._known_at = n_outcomes
            self._is_known = self.table.is_known(state)
        return self._is_known

    def give_up(self, state: int, action: int) -> None:
        """Note that an episode was cut on the way to an untried action.

        After some of them the action is given up.
        """
        self._cuts[state, action] += 1
        if self._cuts[state, action] < self.patience:
            return
        self._give_up(state, action)
        self._known_at = -1
        if not self._has_given_up:
            self._has_given_up = True
            logger.warning(
                "%s: an action was given up before it was tried, because %d episodes "
                "were truncated on the way to it; a longer time limit "
                "(gymnasium.make(..., max_episode_steps=...)) would reach it",
                self.about.name,
                self.patience,
            )

    def _give_up(self, state: int, action: int) -> None:
        self._given_up.append((state, action))
        self.table.give_up(state, action)

    def note_surprise(self) -> None:
        """Say once that actions have several outcomes."""
        if self._has_warned or self.about.is_partial_view:
            return
        self._has_warned = True
        logger.warning(
            "%s: an action had two outcomes in one state, so that the environment is "
            "random, or its key does not tell states apart; from now on outcomes are "
            "counted, and actions are tried again",
            self.about.name,
        )

    @property
    def is_suspicious(self) -> bool:
        """Whether hardly any state has repeated in the first 2,000 steps."""
        share_of_new = self.table.n_states / (self.n_steps + 1)
        return 200 <= self.n_steps <= 2000 and share_of_new > 0.95

    def find_neglected_action(self) -> int | None:
        """Return an action to be tried before states can be said not to repeat.

        None where every action was tried ten times, or where states repeat.
        """
        if not self.is_suspicious:
            return None
        action = int(self.table.first_tries.argmin())
        return action if self.table.first_tries[action] < 10 else None

    @property
    def hardly_repeats(self) -> bool:
        """Whether states hardly repeat, so that a table of them is useless.

        A large environment is told apart by its actions: some of them, such as those
        that lead back, show nothing new.
        """
        if self.may_be_vectors:
            # Nothing is refused, so this is asked earlier.
            return 60 <= self.n_steps <= 2000 and self.resembles_vectors
        if not self.is_suspicious or self.find_neglected_action() is not None:
            return False
        # Of the first tries of each action, the share that showed a new state.
        new_shares = self.table.wins / self.table.first_tries
        return bool(new_shares.min() > 0.95)

    @property
    def resembles_vectors(self) -> bool:
        """Whether observations are real numbers that are nearly all new."""
        n_observed = self.n_steps + 1
        return self.may_be_vectors and self.table.n_states > 0.9 * n_observed

    def check_repeats(self) -> None:
        """Raise ValueError if states hardly repeat."""
        table = self.table
        if self.hardly_repeats:
            # Every episode has one observation more than steps.
            n_episodes = sum(table.starts.values())
            share = table.n_states / (self.n_steps + n_episodes)
            raise ValueError(
                f"{100 * share:.0f}% of the observations of {self.about.name} in "
                f"{self.n_steps} steps were new, but states must repeat: give "
                "key=, a function key(env, obs) to something coarser (the cell of a "
                "grid, say), or use discover(env, features=...), without states; "
                'features="deep" is for pixels'
            )

    def restore(
        self,
        keys: list[Hashable],
        observations: list[Any],
        first_visit: list[int],
        log: Log,
        given_up: list[tuple[int, int]],
    ) -> None:
        """Begin with states and steps that were recorded before."""
        for key, obs, step in zip(keys, observations, first_visit, strict=True):
            self.add_state(key, obs, step)

        is_seen = np.zeros(len(keys), dtype=np.bool_)
        for row in zip(*(column.tolist() for column in log), strict=True):
            entry = Log(*row)
            if entry.is_first:
                self.table.add_start(entry.state)
                is_seen[entry.state] = True
            is_new = not is_seen[entry.next_state]
            is_seen[entry.next_state] = True
            self.add_step(
                entry.state,
                entry.action,
                entry.next_state,
                entry.reward,
                is_new=is_new,
                is_first=entry.is_first,
                terminated=entry.terminated,
                truncated=entry.truncated,
            )
        for state, action in given_up:
            self._give_up(state, action)

    def make_walker(self, rng: np.random.Generator) -> Walker:
        """Return an agent in this experience."""
        return Walker(self, rng)

    def give(self, action: int) -> int:
        """Return the environment's action of a number."""
        return action

    def rebuild(self) -> Experience:
        """Return an experience of the complete steps, and leave this one as it is.

        It reads only what is complete wherever an exception came from.
        """
        rebuilt = Experience(
            self.about,
            promise=self.promise,
            max_states=self.max_states,
            patience=self.patience,
            may_be_vectors=self.may_be_vectors,
        )
        # The number of a state comes after all else that is kept of it.
        n_states = len(self.numbers)
        rebuilt.restore(
            list(self.numbers),
            self.observations[:n_states],
            self.first_visit[:n_states],
            self.log,
            self._given_up,
        )
        return rebuilt


# Under a key of the user, steps without a try after which every second action is
# random: what the key does not tell may keep the agent where it is.
_PATIENCE = 10


class Walker:
    """One agent in an experience: where it is, and where it goes next.

    Parameters
    ----------
    experience : Experience
        What it has seen, perhaps together with others.
    rng : numpy.random.Generator
        Decides between equal actions.
    """

    def __init__(self, experience: Experience, rng: np.random.Generator) -> None:
        self.experience = experience
        self.rng = rng
        self._recogniser = make_recogniser(experience.about.by)
        # Its state; -1: it is in no episode.
        self.state = -1
        # Rows of its last steps in this episode, of which the second may not be
        # complete; -1: none.
        self._rows = (-1, -1)
        self._is_first = True
        # A random action, and how often it is repeated.
        self._held = (0, 0)
        # How often the way was lost since the last try, and steps since then.
        self._n_lost = 0
        self._n_idle = 0
        # The way to an untried action, and whether the episode began with it.
        self._path = Path([], -1)
        self._began_with_episode = True
        # Where outcomes are random: the action that was planned, and whether the
        # episode has done nothing yet but go to a try.
        self._planned_action: int | None = None
        self._is_on_its_way = True

    @property
    def is_in_episode(self) -> bool:
        """Whether an episode has begun and not ended."""
        return self.state >= 0

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> None:
        """Begin an episode; one that has not ended is left."""
        self.leave()
        experience = self.experience
        key = self._recogniser.begin(env, obs)
        self.state, _ = experience.add_state(key, obs, experience.n_steps)
        experience.table.add_start(self.state)
        if experience.table.n_starts > 1:
            # A way through the end of an episode was planned for another start.
            self._path = Path([], -1)

        self._is_first = True
        self._began_with_episode = True
        self._planned_action = None
        self._is_on_its_way = True

    def leave(self) -> None:
        """Leave the episode, as if its last step had been truncated."""
        last_row = self.find_last_row()
        if self.is_in_episode and last_row >= 0:
            self.experience.leave_episode(last_row)
            self._path = Path([], -1)
        self.state = -1
        self._rows = (-1, -1)

    def find_last_row(self) -> int:
        """Return the row of its last complete step in this episode; -1: none."""
        return max(row for row in self._rows if row < self.experience.n_steps)

    def choose(self) -> int | None:
        """Return the next action to the unknown, or None where nothing is in reach."""
        experience = self.experience
        table = experience.table
        promise = None
        if experience.promise is not None:
            promise = self._ask_promise

        if experience.resembles_vectors and 5 <= experience.n_steps < 60:
            # What is known of vectors begins with steps of all actions.
            return self._wander()
        neglected = experience.find_neglected_action()
        if neglected is not None:
            return neglected
        if experience.uses_counts:
            return self._choose_by_counts(promise)

        # Views that look alike may send the agent to and fro for ever.
        if self._n_lost >= 10:
            self._n_lost = 0
            return int(self.rng.integers(table.n_actions))

        path = self._path
        if path.actions and not table.is_untried(path.last_state, path.actions[-1]):
            # Another walker was there before.
            self._path = Path([], -1)
        if not self._path.actions:
            self._path = self._find_path(promise)
            self._began_with_episode = self._is_first
        if not self._path.actions:
            return None
        return self._path.actions[0]

    def _wander(self, longest: int = 10) -> int:
        """Return a random action, which is repeated up to ten times."""
        action, n_left = self._held
        if n_left == 0:
            action = int(self.rng.integers(self.experience.table.n_actions))
            n_left = int(self.rng.integers(1, longest + 1))
        self._held = (action, n_left - 1)
        return action

    def _choose_by_counts(self, promise: PromiseFunction | None) -> int | None:
        """Return the next action where outcomes are random."""
        experience = self.experience
        table = experience.table
        is_stuck = experience.about.has_chosen_key and self._n_idle >= _PATIENCE
        if is_stuck and self.rng.random() < 0.5:
            return int(self.rng.integers(table.n_actions))
        action = table.choose_action(self.state, self.rng, promise)
        self._planned_action = action
        if action is not None and table.is_worth_trying(self.state, action):
            self._is_on_its_way = False
        return action

    def _find_path(self, promise: PromiseFunction | None) -> Path:
        """Return a way to the unknown, if possible not to where another walker goes."""
        experience = self.experience
        table = experience.table
        experience.claims.pop(self, None)
        claimed = set(experience.claims.values())
        path = table.find_path(self.state, self.rng, promise, claimed)
        if not path.actions and claimed:
            path = table.find_path(self.state, self.rng, promise)
        if path.actions:
            experience.claims[self] = (path.last_state, path.actions[-1])
        return path

    def _ask_promise(self, state: int, action: int) -> float:
        """Return what the user's function promises of an action in a state."""
        promise = self.experience.promise
        assert promise is not None
        return float(promise(self.experience.observations[state], action))

    def add(
        self,
        env: gym.Env[Any, Any],
        action: int,
        obs: Any,
        reward: float,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Add the step that the agent has taken."""
        experience = self.experience
        key = self._recogniser.follow(env, obs, action)
        next_state, is_new = experience.add_state(key, obs, experience.n_steps + 1)
        is_try = experience.table.is_untried(self.state, action)
        self._rows = (self.find_last_row(), experience.n_steps)
        is_surprise = experience.add_step(
            self.state,
            action,
            next_state,
            reward,
            is_new=is_new,
            is_first=self._is_first,
            terminated=terminated,
            truncated=truncated,
        )
        if is_surprise:
            experience.note_surprise()
            self._n_lost += 1
        self._n_idle += 1
        if is_try:
            self._n_lost = 0
        if is_try or is_new:
            self._n_idle = 0

        holds = not (is_try or is_new or is_surprise)
        is_cut = truncated and not terminated
        self._advance_path(action, holds=holds, is_cut=is_cut)
        self._check_plan(action, next_state, is_cut=is_cut)

        self._is_first = False
        self.state = next_state
        if terminated or truncated:
            self.state = -1

    def _advance_path(self, action: int, *, holds: bool, is_cut: bool) -> None:
        """Take an action off the way, or drop the way.

        Parameters
        ----------
        action : int
            The action that was taken.
        holds : bool
            Whether it led where the way was planned to go.
        is_cut : bool
            Whether the episode was truncated by it.
        """
        path = self._path
        is_planned = bool(path.actions) and path.actions[0] == action
        if is_planned:
            path.actions.pop(0)

        if not is_planned or not holds:
            self._path = Path([], -1)
        elif is_cut and path.actions:
            # A way that takes longer than a whole episode will never be finished.
            if self._began_with_episode:
                self.experience.give_up(path.last_state, path.actions[-1])
            self._path = Path([], -1)

    def _check_plan(self, action: int, next_state: int, *, is_cut: bool) -> None:
        """Where outcomes are random, note an episode that was cut on its way to a try.

        The parameters are those of `_advance_path`; `next_state` is where the action
        led.
        """
        if self._planned_action != action:
            self._is_on_its_way = False
        self._planned_action = None
        if is_cut and self._is_on_its_way:
            target = self.experience.table.find_target(next_state)
            if target is not None:
                self.experience.give_up(*target)
