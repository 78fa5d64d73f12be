"""`explore`: a walk that always goes to what is unknown, without a map in advance.

An untried action of a known state leads to the unknown (`explore.unknown`). The walk
follows the option to it, and derives this option anew after each try, new state or
surprise. What it returns is the table so far and all steps: data for agents, and a
table for `discover`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import Randomness
from eigenoptions._validation import (
    check_choice,
    check_float,
    check_int,
    make_generator,
)
from eigenoptions.envs.families import Key
from eigenoptions.envs.fixed_seed import choose_seed
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs.sources import (
    call_factory,
    make_env,
    reset_env,
    step_env,
)
from eigenoptions.explore.experience import Experience, Promise
from eigenoptions.explore.found import (
    Found,
)
from eigenoptions.explore.knowledge import KnowledgeMaker, choose_reader
from eigenoptions.explore.vectors import VectorExperience
from eigenoptions.explore.walkers import AnyWalker, Walkers
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
        The environment, its id, a function that makes it, or an `MDP`.
    key, seed, rng, known, columns
        As in `explore`.
    promise : callable, default=None
        ``promise(obs, action)``: how likely an untried action is to show something new,
        from 0 to 1. None: learned from first tries of each action.
    max_states : int, default=1000000
        Most states, of each of which one observation is kept in memory. Beyond it, a
        step raises ValueError, and what was found stays.
    least_reward : float, default=None
        The least reward of vectors that counts. None: one above the most frequent one
        of its action.

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
        columns: Sequence[int] | None = None,
        least_reward: float | None = None,
    ) -> None:
        self.env = make_single_env(env)
        self._reader = choose_reader(self.env, key)
        self._seed = choose_seed(self.env, seed)
        if rng is None:
            rng = self._seed
        self._env_rng, self._walk_rng = make_generator(rng).spawn(2)
        self._max_states = check_int("max_states", max_states)
        self._key = key
        self._known = known
        self._promise = promise
        self._columns = columns
        self._least_reward = least_reward
        # Known after the first reset.
        self._walkers: Walkers | None = None

    @property
    def experience(self) -> Experience | VectorExperience:
        """What was seen so far."""
        return self._meet_walkers().experience

    @property
    def found(self) -> Found:
        """What was found so far."""
        walkers = self._meet_walkers()
        return self._knowledge.find(walkers)

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
        walkers = self._meet_walkers()
        with walkers.changing() as (walker,):
            obs = self._take_step(walker)
        self._knowledge.check_repeats(walkers, [obs])

    def leave_episode(self) -> None:
        """Leave the episode, as if its last step had been truncated."""
        self._meet_walkers().leave()

    def _take_step(self, walker: AnyWalker) -> Any:
        """Take a step; return the observation after it."""
        experience = walker.experience
        if not walker.is_in_episode:
            self._begin_episode(walker)

        action = walker.choose()
        if action is None and not experience.is_known(walker.state):
            self._begin_episode(walker)
            action = walker.choose()
        if action is None:
            action = int(self._walk_rng.integers(experience.about.n_actions))

        given = experience.give(action)
        obs, reward, terminated, truncated, _ = step_env(self.env, given)
        walker.add(
            self.env, given, obs, float(reward), bool(terminated), bool(truncated)
        )
        return obs

    def _meet_walkers(self) -> Walkers:
        """Return the walkers, of which there is one; the first reset shows them."""
        if self._walkers is not None:
            return self._walkers
        obs, _ = reset_env(self.env, seed=self._seed)
        self._knowledge = KnowledgeMaker(
            self.env,
            self._key,
            self._seed,
            self._reader,
            self._columns,
            promise=self._promise,
            max_states=self._max_states,
            least_reward=self._least_reward,
        )
        experience = self._knowledge.make(self._known)
        walkers = Walkers(experience, [self._walk_rng])
        with walkers.changing() as (walker,):
            self._enter(walker, obs)
        self._walkers = walkers
        return walkers

    def _begin_episode(self, walker: AnyWalker) -> None:
        """Reset the environment, in the layout of the seed."""
        if walker.experience.about.layout is not None:
            obs, _ = reset_env(self.env, seed=self._seed)
        else:
            obs, _ = reset_env(self.env)
        self._enter(walker, obs)

    def _enter(self, walker: AnyWalker, obs: Any) -> None:
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
    until: str | float | Callable[[Found], bool] | None = None,
    key: str | Key | None = None,
    seed: int | None = None,
    rng: Randomness | None = None,
    known: Found | None = None,
    columns: Sequence[int] | None = None,
    progress: ProgressArgument = None,
) -> Found:
    """Explore an environment of which nothing is known, and return what was found.

    The walk always takes the option to the unknown: an untried action promises a new
    state, as often as first tries of this action have shown one. It needs no reward.

    Where observations are real numbers that hardly ever repeat, it learns a model of
    one step, and goes where this promises places far from all that were seen. Actions
    may then be a ``Box``.

    Parameters
    ----------
    env : str, gymnasium.Env, callable or MDP
        The environment, its id, a function that makes it, or an `MDP`.
    steps : int
        Most steps of the walk. Every one counts; resets do not.
    until : str, float or callable, default=None
        When to stop before. ``"reward"``: when a reward above the most frequent one was
        received, or, where every step costs the same, when an episode ended; of vectors
        a reward counts that is above the most frequent one of its action. A number:
        when a reward of at least this was received.
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
    columns : sequence of int, default=None
        The columns of vectors in which places are new. None: all that move, at most
        six, without clocks, batteries and noise, which are named in a warning. Sine and
        cosine of an angle are one.
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
        If states hardly repeat, and are no vectors, within the first 2,000 steps. If
        more than six columns of vectors move. If ``until="reward"``, and no reward
        repeats.

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

    States that never repeat:

    >>> found = explore("MountainCar-v0", 2000, until="reward")
    >>> found.n_steps < 1000
    True
    """
    progress = check_progress(progress)
    steps = check_int("steps", steps)
    least_reward = None
    if isinstance(until, int | float) and not isinstance(until, bool):
        least_reward = check_float("until", until)
    elif until is not None and not callable(until):
        check_choice("until", until, ("reward", "known"))
    explorer = Explorer(
        env,
        key=key,
        seed=seed,
        rng=rng,
        known=known,
        columns=columns,
        least_reward=least_reward,
    )
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


def _is_enough(
    explorer: Explorer, until: str | float | Callable[[Found], bool] | None
) -> bool:
    """Return whether the walk may stop."""
    experience = explorer.experience
    if until is None:
        return False
    # Of a few rewards none is the most frequent, and a few tries do not show that an
    # environment is random.
    has_begun = experience.n_steps >= 20
    if until == "reward":
        _check_rewards(experience)
        return has_begun and experience.rewards.stands_out
    if isinstance(until, int | float):
        return bool(experience.rewards.highest >= until)
    if until == "known":
        return has_begun and explorer.is_known
    assert callable(until)
    return experience.n_steps % 100 == 0 and bool(until(explorer.found))


def _check_rewards(experience: Experience | VectorExperience) -> None:
    """Raise ValueError where no reward repeats, so that none can stand out."""
    if not isinstance(experience, VectorExperience) or experience.n_steps < 100:
        return
    if not experience.rewards.repeat:
        raise ValueError(
            f"no reward of {experience.about.name} repeats, so that none stands out: "
            "give until=, the least reward that counts or a function of what was found"
        )


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
