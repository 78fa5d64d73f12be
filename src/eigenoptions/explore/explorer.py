"""`explore`: a walk that always goes to what is unknown, without a map in advance.

An untried action of a known state leads to the unknown (`explore.unknown`). The walk
follows the option to it, and derives this option anew after each try, new state or
surprise. What it returns is the table so far and all steps: data for agents, and a
table for `discover`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import BoolArray, IndexArray, Randomness
from eigenoptions._validation import (
    check_choice,
    check_int,
    check_type,
    make_generator,
)
from eigenoptions.envs.families import Key
from eigenoptions.envs.fixed_seed import choose_seed
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs.recognisers import describe_key
from eigenoptions.envs.sources import (
    call_factory,
    count_actions,
    make_env,
    reset_env,
    step_env,
)
from eigenoptions.explore.experience import Experience, Promise, Walker, describe_env
from eigenoptions.explore.found import (
    About,
    Found,
    Log,
)
from eigenoptions.explore.walkers import Walkers
from eigenoptions.mdp import MDP

# What may be explored: an id, an environment, a function that makes one, or an MDP.
Explorable = str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | MDP


class Explorer:
    """A walk to the unknown that you can take step by step; `explore` takes many.

    It can be interrupted anywhere: an exception of the environment or Ctrl-C loses no
    complete step, and `step` then continues with a new episode.

    Parameters
    ----------
    env : str, gymnasium.Env, callable or MDP
        The environment, its id, a function that makes it, or an `MDP`. Its actions must
        be ``Discrete(n)``, and its states must repeat.
    key, seed, rng, known
        As in `explore`.
    promise : callable, default=None
        ``promise(obs, action)``: how likely an untried action is to show something new,
        from 0 to 1. None: learned from first tries of each action.
    max_states : int, default=1000000
        Most states, of each of which one observation is kept in memory. Beyond it, a
        step raises ValueError, and what was found stays.

    Attributes
    ----------
    env : gymnasium.Env
        The environment.
    experience : Experience
        What was seen so far.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> explorer = Explorer(eo.maze("four-rooms"))
    >>> for _ in range(50):
    ...     explorer.step()
    >>> len(explorer.found.seen) > 25
    True
    """

    def __init__(
        self,
        env: Explorable,
        *,
        key: str | Key | None = None,
        seed: int | None = None,
        rng: Randomness | None = None,
        known: Found | None = None,
        promise: Promise | None = None,
        max_states: int = 1_000_000,
    ) -> None:
        self.env = make_single_env(env)
        count_actions(self.env)
        self._seed = choose_seed(self.env, seed)
        if rng is None:
            rng = self._seed
        self._env_rng, self._walk_rng = make_generator(rng).spawn(2)
        self._max_states = check_int("max_states", max_states)
        self._key = key
        self._known = known
        self._promise = promise
        # Known after the first reset.
        self._walkers: Walkers | None = None

    @property
    def experience(self) -> Experience:
        """What was seen so far."""
        return self._meet_walkers().experience

    @property
    def found(self) -> Found:
        """What was found so far."""
        return self._meet_walkers().found

    @property
    def has_steps(self) -> bool:
        """Whether a step was taken, or is known from before."""
        return self._walkers is not None and self._walkers.experience.n_steps > 0

    @property
    def is_known(self) -> bool:
        """Whether nothing within reach is untried, or worth another try."""
        walker = self._meet_walkers()[0]
        # Between episodes, the first state stands for the starts.
        return walker.experience.is_known(max(walker.state, 0))

    def step(self) -> None:
        """Take the next step to the unknown, after a reset where an episode ended.

        Where nothing untried is within reach, but something is within reach of a start,
        a new episode begins. Where all is known, actions are random.
        """
        with self._meet_walkers().changing() as (walker,):
            self._take_step(walker)

    def leave_episode(self) -> None:
        """Leave the episode, as if its last step had been truncated."""
        self._meet_walkers().leave()

    def _take_step(self, walker: Walker) -> None:
        experience = walker.experience
        if not walker.is_in_episode:
            self._begin_episode(walker)

        action = walker.choose()
        if action is None and not experience.is_known(walker.state):
            self._begin_episode(walker)
            action = walker.choose()
        if action is None:
            action = int(self._walk_rng.integers(experience.about.n_actions))

        obs, reward, terminated, truncated, _ = step_env(self.env, action)
        walker.add(
            self.env, action, obs, float(reward), bool(terminated), bool(truncated)
        )
        experience.check_repeats()

    def _meet_walkers(self) -> Walkers:
        """Return the walkers, of which there is one; the first reset shows them."""
        if self._walkers is not None:
            return self._walkers
        obs, _ = reset_env(self.env, seed=self._seed)
        about = describe_env(self.env, self._key, self._seed)
        experience = Experience(
            about, promise=self._promise, max_states=self._max_states
        )
        if self._known is not None:
            restore(experience, self._known)
        walkers = Walkers(experience, [self._walk_rng])
        with walkers.changing() as (walker,):
            self._enter(walker, obs)
        self._walkers = walkers
        return walkers

    def _begin_episode(self, walker: Walker) -> None:
        """Reset the environment, in the layout of the seed."""
        if walker.experience.about.layout is not None:
            obs, _ = reset_env(self.env, seed=self._seed)
        else:
            obs, _ = reset_env(self.env)
        self._enter(walker, obs)

    def _enter(self, walker: Walker, obs: Any) -> None:
        """Let the walker begin at the first observation of an episode."""
        if walker.experience.about.layout is not None:
            # From here on, each episode draws numbers of its own.
            self.env.unwrapped.np_random = self._env_rng
        walker.begin(self.env, obs)


@shows_progress
def explore(
    env: Explorable,
    steps: int,
    *,
    until: str | Callable[[Found], bool] | None = None,
    key: str | Key | None = None,
    seed: int | None = None,
    rng: Randomness | None = None,
    known: Found | None = None,
    progress: ProgressArgument = None,
) -> Found:
    """Explore an environment of which nothing is known, and return what was found.

    The walk always takes the option to the unknown: an untried action promises a new
    state, as often as first tries of this action have shown one. It needs states that
    repeat and actions that are numbers, and no reward.

    Parameters
    ----------
    env : str, gymnasium.Env, callable or MDP
        The environment, its id, a function that makes it, or an `MDP`.
    steps : int
        Most steps of the walk. Every one counts; resets do not.
    until : str or callable, default=None
        When to stop before. ``"reward"``: when a reward above the most frequent one was
        received, or, where every step costs the same, when an episode ended.
        ``"known"``: when nothing within reach is untried, or, where outcomes are
        random, worth another try. Both from the 20th step on. Or a function of `Found`,
        which is asked every 100 steps. None: never.
    key : str or callable, default=None
        How states are recognised. None: by the observation, and for MiniGrid and BabyAI
        by their true state. ``"observation"``: also there by the observation, which is
        the agent's view. ``"pose"``: MiniGrid's pose by dead reckoning, the cell in
        front and what is carried, from the view and the own actions alone.
        ``key(env.unwrapped, obs)``: a function to something hashable.
    seed : int, default=None
        Seed of `reset`: of every one, if the layout depends on it (MiniGrid), otherwise
        of the first. None: that of `FixedSeed`, or 0.
    rng : int or Generator, default=None
        Decides between equal actions, and draws what is random in a layout. None: it
        follows from the seed.
    known : Found, default=None
        What was found before. The walk continues with it, and the result holds both.
        The environment, its layout and the key must be the same.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, steps)``.

    Returns
    -------
    Found
        The table so far (`mdp`), all steps (`transitions`), and what was rewarded.

    Raises
    ------
    ValueError
        If states hardly repeat, within the first 2,000 steps.

    Notes
    -----
    An exception, also that of Ctrl-C, has what was found so far as its attribute
    `found`, and you can continue with ``known=error.found``.

    One observation of each state is kept in memory, of 1,000,000 states at most;
    `Explorer` takes another limit.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = explore(eo.maze("four-rooms"), 1000, until="reward")
    >>> found.mdp.goal, len(found.rewarded)
    (9, 1)
    >>> eo.discover(found, n_options=2)
    OptionSet(2 options on 104 states: e2+, e2-)
    """
    progress = check_progress(progress)
    steps = check_int("steps", steps)
    if until is not None and not callable(until):
        check_choice("until", until, ("reward", "known"))
    explorer = Explorer(env, key=key, seed=seed, rng=rng, known=known)
    try:
        for step in range(1, steps + 1):
            explorer.step()
            if progress is not None:
                progress(step, steps)
            if _is_enough(explorer, until):
                break
        return explorer.found
    except BaseException as error:
        _attach_found(error, explorer)
        raise
    finally:
        if not isinstance(env, gym.Env):
            explorer.env.close()


def _is_enough(explorer: Explorer, until: str | Callable[[Found], bool] | None) -> bool:
    """Return whether the walk may stop."""
    experience = explorer.experience
    if until is None:
        return False
    # Of a few rewards none is the most frequent, and a few tries do not show that an
    # environment is random.
    has_begun = experience.n_steps >= 20
    if until == "reward":
        return has_begun and experience.rewards.stands_out
    if until == "known":
        return has_begun and explorer.is_known
    assert callable(until)
    return experience.n_steps % 100 == 0 and bool(until(explorer.found))


def _attach_found(error: BaseException, explorer: Explorer) -> None:
    """Let an exception carry what was found so far, if there is any.

    It takes a moment, in which an impatient second Ctrl-C changes nothing.
    """
    has_tried = False
    while not has_tried:
        try:
            _attach_found_once(error, explorer)
            has_tried = True
        except KeyboardInterrupt:
            continue


def _attach_found_once(error: BaseException, explorer: Explorer) -> None:
    if not explorer.has_steps:
        return
    explorer.leave_episode()
    found = explorer.found
    error.found = found  # type: ignore[attr-defined]
    error.add_note(
        f"{found!r} is the attribute `found` of this exception: "
        "explore(env, steps, known=error.found) continues"
    )


def make_single_env(env: Explorable) -> gym.Env[Any, Any]:
    """Return the environment of an id, a function or an MDP, or one as it is."""
    if isinstance(env, MDP):
        return MazeEnv(env)
    if not isinstance(env, gym.Env) and callable(env):
        return call_factory(env)
    return make_env(env)


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
