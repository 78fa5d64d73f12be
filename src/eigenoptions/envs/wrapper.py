"""`OptionsWrapper`: options as extra actions, so that any agent can choose skills (paper, Section 2.2).

An option takes several steps, so the agent is in a semi-Markov decision process: after k steps its target is
``R + gamma**k max_a Q(s', a)`` with ``R = sum_i gamma**i r_i``. The wrapper returns R, and gamma**k as
``info["discount"]``; `eigenoptions.agents.sb3` passes it to agents that would use a constant gamma.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.envs.checks import check_spaces
from eigenoptions.envs.recognition import StateReader
from eigenoptions.envs.spaces import OptionsSpace
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.execution import RunningOption
from eigenoptions.options.tuning import resolve_exploration


class PrimitiveStep(NamedTuple):
    """One primitive step inside an option: what an agent that takes actions only would have seen."""

    obs: Any
    action: int
    reward: float
    next_obs: Any
    discount: float
    action_mask: NDArray[np.int8]


@dataclass
class Decision:
    """What an agent chose, a primitive action or an option, and what came of it so far."""

    choice: int = 0
    # The number of the option, -1 for a primitive action; and its execution, None where it is not available, so that a
    # random action takes its place.
    option: int = -1
    execution: RunningOption | None = None
    # The next primitive action; -1: the decision is complete.
    action: int = -1
    duration: int = 0
    # gamma to the duration. NumPy's power of an array rounds otherwise than Python's, so
    # both wrappers compute it here, one decision at a time.
    discount: float = 1.0
    discounted: float = 0.0
    undiscounted: float = 0.0
    option_truncated: bool = False


class DecisionMaker:
    """What `OptionsWrapper` and `OptionsVectorWrapper` share: their settings, and the course of a decision."""

    def _set_options(
        self,
        env: Any,
        options: Any,
        gamma: float,
        state: Any,
        max_duration: int,
        option_chance: float | str | None,
        stop_chance: float,
    ) -> None:
        self.gamma = check_float("gamma", gamma, above=0, maximum=1)
        self.max_duration = check_int("max_duration", max_duration)
        self.n_primitive = check_spaces(env, options, mapped=state is not None)
        stop_chance = check_float("stop_chance", stop_chance, minimum=0, below=1)
        exploration = resolve_exploration(options, option_chance, stop_chance)
        self.stop_chance = exploration.stop_chance
        self.option_chance = exploration.option_chance
        if self.option_chance is not None:
            self.option_chance = check_float(
                "option_chance", self.option_chance, minimum=0, maximum=1
            )
        self.options, self.state = options, state
        self._policies = list(options)
        self._reader = StateReader(options, state)
        self._rng = np.random.default_rng()
        # The last observation, what the options act on there, and the mask of the present choices (None: an episode
        # has to begin).
        self._obs: Any = None
        self._input: Any = None
        self._mask: NDArray[np.int8] | None = None

    def _begin(
        self,
        choice: int,
        is_sampled: bool,
        value: Any,
        option_action: int | None = None,
    ) -> Decision:
        """A new decision; `option_action` is the action of its option at the options' input `value`, where known."""
        option = choice - self.n_primitive
        if option < 0:
            return Decision(choice, action=choice)
        stop_chance = self.stop_chance if is_sampled else 0.0
        execution = RunningOption(self._policies[option], self._rng, stop_chance)
        action = self._act(execution, value, option_action)
        if action < 0:
            return Decision(
                choice, option, action=int(self._rng.integers(self.n_primitive))
            )
        return Decision(choice, option, execution, action)

    def _advance(
        self,
        decision: Decision,
        reward: float,
        ended: bool,
        value: Any,
        option_action: int | None = None,
    ) -> None:
        """Add a primitive step to a decision, and find its next action."""
        decision.discounted += decision.discount * reward
        decision.undiscounted += reward
        decision.duration += 1
        decision.discount = self.gamma**decision.duration
        execution, decision.action = decision.execution, -1
        if execution is not None and not ended:
            action = self._act(execution, value, option_action)
            # The action that was just chosen has not been taken yet.
            decision.option_truncated = (
                action >= 0 and execution.steps > self.max_duration
            )
            decision.action = -1 if decision.option_truncated else action

    def _act(
        self, execution: RunningOption, value: Any, option_action: int | None
    ) -> int:
        # A table of part of an environment has no options in the other states.
        is_outside = self._reader.mdp is not None and value < 0
        return TERMINATE if is_outside else execution.act(value, option_action)

    def action_masks(self) -> NDArray[np.bool_]:
        """``(n_primitive + n_options,)`` which actions are available now, one row per environment of a vector."""
        return np.asarray(self._mask, dtype=np.bool_)


class OptionsWrapper(
    DecisionMaker, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs
):
    """Options as extra actions: an action space of ``n_primitive + n_options`` choices.

    Action ``a < n_primitive`` is the environment's own, action ``n_primitive + i`` is option i. Two modes:

    * ``"call-and-return"``: one step runs an option until it terminates, the episode ends, or `max_duration` is
      reached. The reward is discounted along the way.
    * ``"step"``: one step is one primitive step. The observation is ``{"observation": obs, "option": j}`` with
      j = 0, or i + 1 while option i runs; then the mask allows nothing else, and the option continues whatever
      action is given. Exact for agents with a constant discount; values propagate back one step at a time.

    An option that is not available is still a legal action, since most agents do not use masks: one uniformly random
    primitive action is taken, and ``info["unavailable"]`` is True. The constructor compares the spaces of the
    environment with the options; ``options.check(env)`` compares the dynamics.

    Parameters
    ----------
    env
        The environment; `TimeLimit` and `Monitor` go inside, where they see primitive steps.
    options
        An `OptionSet`, a `LinearOptionSet`, or objects whose ``act(obs)`` returns an action or TERMINATE (-1).
    gamma
        Discount per primitive step, in (0, 1].
    mode
        ``"call-and-return"`` or ``"step"``.
    state
        Function from an observation to the options' input (the state number for an `OptionSet`); None: as the options
        were discovered. Those of an explored environment recognise its states (``options.mdp.states``), others act on
        the observation itself. A step to a state that no action leads to raises ValueError in the first episode.
    max_duration
        Steps after which an option that does not terminate is stopped; ``info["option_truncated"]`` is then True.
    option_chance
        Probability that ``action_space.sample()``, by which most agents explore, is an option, where one is available.
        ``"auto"``: this and `stop_chance` by a short simulation in the table of the options (`tune_exploration`), so
        that random actions find states sooner than without options; 0.01 and 0.05 where there is no table. None:
        uniform over actions and available options, which can hinder the search.
    stop_chance
        Probability that an option chosen by ``action_space.sample()`` terminates after each of its steps, in [0, 1).
        Options that an agent chooses otherwise run to their end.
    record_steps
        Also return the primitive steps inside an option, as a list of `PrimitiveStep` in ``info["steps"]``: data for
        intra-option learning.

    Notes
    -----
    ``info`` is that of the last primitive step, with ``option`` (-1 for a primitive action), ``duration``,
    ``discount`` (gamma to the duration), ``primitive_return`` (rewards without discount) and ``action_mask`` (int8,
    also after `reset`). An ``action_mask`` of the environment's own (Taxi) is the first part of it.

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
        options: OptionSet | Sequence[Any],
        gamma: float = 0.99,
        mode: str = "call-and-return",
        *,
        state: Callable[[Any], Any] | None = None,
        max_duration: int = 10_000,
        option_chance: float | str | None = "auto",
        stop_chance: float = 0.0,
        record_steps: bool = False,
    ) -> None:
        settings: Any = {
            "options": options,
            "gamma": gamma,
            "state": state,
            "max_duration": max_duration,
        }
        settings |= {"option_chance": option_chance, "stop_chance": stop_chance}
        # Gymnasium rebuilds the wrapper from these.
        others = {"mode": mode, "record_steps": record_steps}
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, **settings, **others
        )
        gym.Wrapper.__init__(self, env)
        self._set_options(env, **settings)
        self.mode, self.record_steps = (
            check_choice("mode", mode, ("call-and-return", "step")),
            record_steps,
        )
        self.action_space = self._space = OptionsSpace(
            self.n_primitive, len(options), self.option_chance
        )
        if mode == "step":
            self.observation_space = Dict(
                observation=env.observation_space, option=Discrete(len(options) + 1)
            )
        # The mask of each state of a table; the last row is that of states that the options do not know.
        n_states = options.n_states if isinstance(options, OptionSet) else 0
        self._masks = np.zeros((n_states + 1, self._space.n), dtype=np.int8)
        self._masks[:, : self.n_primitive] = 1
        if isinstance(options, OptionSet):
            self._masks[:-1, self.n_primitive :] = options.initiation.T
        self._decision = Decision()

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; no option is running."""
        if seed is not None:
            # A generator of its own: the environment draws the same numbers as without options.
            self._rng = np.random.default_rng(seed)
        self._obs, info = self.env.reset(seed=seed, options=options)
        self._input = self._reader.read(self.env, self._obs, is_first=True)
        self._decision, self._space.last_sample = Decision(), None
        return self._observe(), self._add_mask(info)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a primitive action or an option; the class describes the result."""
        if self._mask is None:
            raise gym.error.ResetNeeded("call reset before step")
        if self._decision.action < 0:
            if not isinstance(action, int):
                action = np.asarray(action)[()]
            choice = check_int("action", action, 0, int(self._space.n) - 1)
            decision = self._begin(
                choice, choice == self._space.last_sample, self._input
            )
        else:
            # In mode "step" an option continues, and what came of it is told step by step.
            decision = replace(
                self._decision,
                duration=0,
                discount=1.0,
                discounted=0.0,
                undiscounted=0.0,
            )
        self._space.last_sample = None
        # After an exception in the middle of an option only a reset helps.
        self._mask = None
        path = []
        # Take primitive steps until the decision is complete.
        while True:
            before, taken = self._input, decision.action
            obs = copy.deepcopy(self._obs) if self.record_steps else None
            self._obs, reward, terminated, truncated, info = self.env.step(taken)
            self._input = self._reader.read(self.env, self._obs)
            if self._reader.checks_moves:
                # In the first episode: a wrong numbering of states shows there.
                self._reader.check_move(before, self._input)
                self._reader.checks_moves = not (terminated or truncated)
            reward = float(reward)
            self._advance(decision, reward, terminated or truncated, self._input)
            if self.record_steps and decision.execution is not None:
                mask, next_obs = self._make_mask(info), copy.deepcopy(self._obs)
                path.append(
                    PrimitiveStep(obs, taken, reward, next_obs, self.gamma, mask)
                )
            if decision.action < 0 or self.mode == "step":
                break
        self._decision = decision
        info |= {"option": decision.option, "duration": decision.duration}
        info |= {
            "discount": decision.discount,
            "primitive_return": decision.undiscounted,
        }
        if decision.option_truncated:
            info["option_truncated"] = True
        if decision.option >= 0 and decision.execution is None:
            info["unavailable"] = True
        if path:
            info["steps"] = path
        return (
            self._observe(),
            decision.discounted,
            terminated,
            truncated,
            self._add_mask(info),
        )

    def _observe(self) -> Any:
        if self.mode != "step":
            return self._obs
        option = self._decision.option + 1 if self._decision.action >= 0 else 0
        return {"observation": self._obs, "option": option}

    def _add_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        """The info with the mask of the present choices: a copy, which the caller may change."""
        if self._decision.action < 0:
            self._mask = self._make_mask(info)
        else:
            self._mask = np.zeros(self._space.n, dtype=np.int8)
            self._mask[self._decision.choice] = 1
        self._space.mask = self._mask
        info["action_mask"] = self._mask.copy()
        return info

    def _make_mask(self, info: dict[str, Any]) -> NDArray[np.int8]:
        """A new mask of the present choices if no option runs."""
        n, is_table = self.n_primitive, isinstance(self.options, OptionSet)
        mask: NDArray[np.int8] = self._masks[self._input if is_table else -1].copy()
        if not is_table:
            # All options at once: they share the features, or the look-ahead, of an observation.
            choose = getattr(
                self.options,
                "choices",
                lambda x: np.array([p.act(x) for p in self._policies]),
            )
            mask[n:] = choose(self._input) >= 0
        own_mask = info.get("action_mask")
        if own_mask is not None and len(own_mask) == n:
            mask[:n] = own_mask
        return mask
