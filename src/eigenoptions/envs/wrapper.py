"""`OptionsWrapper`: options as extra actions, so that any agent can choose skills.

The wrapper returns the discounted reward R of an option of k steps, and gamma**k as
``info["discount"]`` (paper, Section 2.2). `eigenoptions.agents` passes the discount to
agents that would use a constant gamma.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import BoolArray
from eigenoptions._validation import check_choice, check_int
from eigenoptions.envs.decisions import (
    Decision,
    DecisionMaker,
    Usage,
    warn_of_constant_discount,
)
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognition import Options
from eigenoptions.envs.sources import reset_env, step_env
from eigenoptions.envs.spaces import GuidedSamples, OptionsSpace
from eigenoptions.options import Option, OptionSet
from eigenoptions.options.execution import is_end


class PrimitiveStep(NamedTuple):
    """One primitive step inside an option, as an agent without options sees it.

    Parameters
    ----------
    obs, next_obs : object
        Observations before and after the step.
    action : int
        The primitive action.
    reward : float
        Reward of the step.
    discount : float
        Discount of the step, gamma.
    action_mask : ndarray of shape (n_primitive + n_options,)
        What is available after the step.
    """

    obs: Any
    action: int
    reward: float
    next_obs: Any
    discount: float
    action_mask: NDArray[np.int8]


class OptionsWrapper(
    DecisionMaker, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs
):
    """Options as extra actions: an action space of ``n_primitive + n_options`` choices.

    Action ``a < n_primitive`` is the environment's own, action ``n_primitive + i`` is
    option i. There are two modes:

    * ``"call-and-return"``: one step runs an option until it terminates, the episode
      ends, or `max_duration` is reached. The reward is discounted along the way.
    * ``"step"``: one step is one primitive step. The observation is
      ``{"observation": obs, "option": j}`` with j = 0, or i + 1 while option i runs;
      then the mask allows nothing else, and the option continues whatever action is
      given. Exact for agents with a constant discount; values propagate back one step
      at a time.

    An option that is not available is still a legal action, since most agents do not
    use masks: one uniformly random primitive action is taken, and
    ``info["unavailable"]`` is True. The constructor compares the spaces of the
    environment with the options; ``options.check(env)`` compares the dynamics.

    Parameters
    ----------
    env : gymnasium.Env
        The environment. `TimeLimit` and `Monitor` go inside, where they see primitive
        steps, and so does `Exploring`, from which primitive actions are then sampled.
    options : OptionSet, LinearOptionSet, Option or sequence
        The options, or a single one, such as ``found.option()`` of `explore`; also a
        list of objects whose ``act(obs)`` returns an action or TERMINATE (-1). Those
        with ``begin(obs)`` choose a goal when they begin: it returns what then acts.
    gamma : float, default=0.99
        Discount per primitive step, in (0, 1].
    mode : str, default="call-and-return"
        ``"call-and-return"`` or ``"step"``.
    state : callable, default=None
        Function from an observation to the options' input (the state's number for an
        `OptionSet`). None: as the options were discovered. Those of an environment that
        was searched recognise its states (``options.mdp.states``), others act on the
        observation itself. A step to a state that no action leads to raises ValueError
        in the first episode.
    key : str or callable, default=None
        The key that the options were discovered with, ``discover(env, key=...)``. It is
        needed only where it is a function of yours and the options come from a file.
        Where the present key was never seen, no option is available.
    max_duration : int, default=10000
        Steps after which an option that does not terminate is stopped.
        ``info["option_truncated"]`` is then True.
    option_chance : float, "auto" or None, default="auto"
        Probability that ``action_space.sample()``, which most agents explore with, is
        an option, where one is available. ``"auto"``: a short simulation in the table
        of the options chooses it (`tune_exploration`), so that random actions find
        states sooner than without options; where they would not, none is sampled, and
        a warning says so. Options of recorded vectors and of frames bring what was
        tuned when they were discovered; other ones without a table take 0.01. None:
        uniform over actions and available options, which can hinder the search.
    stop_chance : float, default=0.0
        Probability that an option also terminates after each of its steps, in [0, 1),
        whether it was sampled or is an agent's best choice: its value is then that of
        the option that runs. An agent that wants to go on chooses it again.
    record_steps : bool, default=False
        Whether to return the primitive steps inside an option too, as a list of
        `PrimitiveStep` in ``info["steps"]``: data for intra-option learning.
    directions : array of shape (n_primitive, ...), default=None
        Where actions are vectors (`Box`): some of them, which are the primitive
        actions. None: the options are the only choices, and where one is not available
        a random vector takes its place. ``planner.places(n)`` of a `Planner` gives
        options that act by vectors.
    primitives : bool, default=True
        Whether primitive actions are choices, too. False: options are the only ones.

    Notes
    -----
    ``info`` is that of the last primitive step, with ``option`` (-1 for a primitive
    action), ``duration``, ``discount`` (gamma to the duration), ``primitive_return``
    (rewards without discount) and ``action_mask`` (int8, also after `reset`). After
    `reset` the duration is 0: in vector environments such rows are no decisions. An
    ``action_mask`` of the environment's own (Taxi) is the first part of it. At the end
    of an episode ``option_usage`` has its ``decisions``, ``option_decisions``,
    ``steps`` and ``option_steps``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> env = OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), options)
    >>> state, info = env.reset(seed=0)
    >>> info["action_mask"].shape
    (8,)
    >>> state, reward, terminated, truncated, info = env.step(1)
    >>> info["option"], info["duration"], info["discount"]
    (-1, 1, 0.99)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        options: Options | Option,
        gamma: float = 0.99,
        mode: str = "call-and-return",
        *,
        state: Callable[[Any], Any] | None = None,
        key: str | Key | None = None,
        max_duration: int = 10_000,
        option_chance: float | str | None = "auto",
        stop_chance: float = 0.0,
        record_steps: bool = False,
        directions: ArrayLike | None = None,
        primitives: bool = True,
    ) -> None:
        # Gymnasium rebuilds the wrapper from these.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            options=options,
            gamma=gamma,
            mode=mode,
            state=state,
            key=key,
            max_duration=max_duration,
            option_chance=option_chance,
            stop_chance=stop_chance,
            record_steps=record_steps,
            directions=directions,
            primitives=primitives,
        )
        gym.Wrapper.__init__(self, env)
        self._set_options(
            env,
            options,
            gamma,
            state,
            key,
            max_duration,
            option_chance,
            stop_chance,
            directions,
            primitives,
        )
        options = self.options
        self.mode = check_choice("mode", mode, ("call-and-return", "step"))
        self.record_steps = record_steps

        n_options = len(options)
        self._space = OptionsSpace(self.n_primitive, n_options, self.option_chance)
        if isinstance(env.action_space, GuidedSamples):
            self._space.primitive_space = env.action_space
        self.action_space = self._space
        if mode == "step":
            self.observation_space = Dict(
                observation=env.observation_space, option=Discrete(n_options + 1)
            )
        else:
            self._space.gamma = self.gamma
            self._space.step_space = env.observation_space

        # The mask of each state of a table. The last row is that of states that the
        # options do not know, whose number is -1.
        n_states = options.n_states if isinstance(options, OptionSet) else 0
        self._masks = np.zeros((n_states + 1, self._space.n), dtype=np.int8)
        self._masks[:, : self.n_primitive] = 1
        if isinstance(options, OptionSet):
            self._masks[:-1, self.n_primitive :] = options.initiation.T
        self._decision = Decision()
        self._usage = Usage()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; no option is running."""
        if seed is not None:
            # A generator of its own: the environment draws the same numbers as without
            # options.
            self._rng = np.random.default_rng(seed)
        self._obs, info = reset_env(self.env, seed=seed, options=options)
        self._input = self._reader.read(self.env, self._obs, is_first=True)
        self._decision = Decision()
        self._usage = Usage()
        # Where vector environments begin episodes by themselves, this takes the place
        # of a decision: one of no steps.
        info["option"] = -1
        info["duration"] = 0
        info["discount"] = 1.0
        self._update_mask(info)
        return self._observe(), info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a primitive action or an option; the class describes the result."""
        if self._mask is None:
            raise gym.error.ResetNeeded("call reset before step")
        is_new = self._decision.is_complete
        decision = self._begin_or_continue(action)
        # After an exception in the middle of an option only a reset helps.
        self._mask = None

        steps: list[PrimitiveStep] = []
        while True:
            terminated, truncated, info = self._take_primitive_step(decision, steps)
            if decision.is_complete or self.mode == "step":
                break
        self._decision = decision
        self._usage.count(decision, is_new=is_new)
        if decision.duration > 1 and self.gamma < 1:
            warn_of_constant_discount()

        info["option"] = decision.option
        info["duration"] = decision.duration
        info["discount"] = decision.discount
        info["primitive_return"] = decision.undiscounted
        if decision.option_truncated:
            info["option_truncated"] = True
        if decision.is_unavailable:
            info["unavailable"] = True
        if steps:
            info["steps"] = steps
        if terminated or truncated:
            info["option_usage"] = asdict(self._usage)
        self._update_mask(info)
        return self._observe(), decision.discounted, terminated, truncated, info

    def _begin_or_continue(self, action: int) -> Decision:
        """Return the decision of an action, or the one that runs on in mode "step"."""
        if not self._decision.is_complete:
            # What comes of an option is told step by step.
            return replace(
                self._decision,
                duration=0,
                discount=1.0,
                discounted=0.0,
                undiscounted=0.0,
            )
        if not isinstance(action, int):
            # Agents also give arrays of one number.
            action = np.asarray(action)[()]
        choice = check_int("action", action, 0, int(self._space.n) - 1)
        return self._begin_decision(choice, self._input)

    def _take_primitive_step(
        self, decision: Decision, steps: list[PrimitiveStep]
    ) -> tuple[bool, bool, dict[str, Any]]:
        """Take the next action of a decision, and add it to the recorded steps."""
        input_before = self._input
        action = decision.action
        # The environment may change its observation in place.
        obs_before = copy.deepcopy(self._obs) if self.record_steps else None

        self._obs, reward, terminated, truncated, info = step_env(self.env, action)
        self._input = self._reader.read(self.env, self._obs, action=action)
        is_last = terminated or truncated

        # A wrong numbering of states shows in the first episode.
        if self._reader.checks_moves:
            self._reader.check_move(input_before, self._input)
            self._reader.checks_moves = not is_last

        reward = float(reward)
        self._advance_decision(decision, reward, is_last, self._input)
        if self.record_steps and decision.execution is not None:
            recorded = PrimitiveStep(
                obs=obs_before,
                action=action,
                reward=reward,
                next_obs=copy.deepcopy(self._obs),
                discount=self.gamma,
                action_mask=self._make_mask(info),
            )
            steps.append(recorded)
        return terminated, truncated, info

    def _observe(self) -> Any:
        """Return the observation of the mode."""
        if self.mode != "step":
            return self._obs
        running_option = 0
        if not self._decision.is_complete:
            running_option = self._decision.option + 1
        return {"observation": self._obs, "option": running_option}

    def _update_mask(self, info: dict[str, Any]) -> None:
        """Find the mask of the present choices, and add it to an info."""
        if self._decision.is_complete:
            self._mask = self._make_mask(info)
        else:
            self._mask = np.zeros(self._space.n, dtype=np.int8)
            self._mask[self._decision.choice] = 1
        self._space.mask = self._mask
        # A copy, which the caller may change.
        info["action_mask"] = self._mask.copy()

    def _make_mask(self, info: dict[str, Any]) -> NDArray[np.int8]:
        """Return a new mask of the present choices if no option runs."""
        mask: NDArray[np.int8]
        if isinstance(self.options, OptionSet):
            mask = self._masks[self._input].copy()
        else:
            mask = self._masks[-1].copy()
            mask[self.n_primitive :] = self._find_available()

        own_mask = info.get("action_mask")
        if own_mask is not None and len(own_mask) == self.n_primitive:
            mask[: self.n_primitive] = own_mask
        return mask

    def _find_available(self) -> BoolArray:
        """Return which options are available, of those that are not of a table."""
        if hasattr(self.options, "choices"):
            # All at once: they share the features, or the look-ahead.
            return np.asarray(self.options.choices(self._input) >= 0)
        actions = [policy.act(self._input) for policy in self._policies]
        return np.array([not is_end(action) for action in actions])
