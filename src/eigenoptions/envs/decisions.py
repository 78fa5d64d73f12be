"""The course of a decision: what both wrappers do with an agent's choice.

An option takes several steps, so the agent is in a semi-Markov decision process: after
k steps its target is ``R + gamma**k max_a Q(s', a)`` with ``R = sum_i gamma**i r_i``
(paper, Section 2.2). A decision adds up R and gamma**k while it runs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from eigenoptions._notes import show_note
from eigenoptions._progress import is_main_process
from eigenoptions._types import BoolArray
from eigenoptions._validation import check_float, check_int
from eigenoptions.envs.checks import check_spaces
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognition import Options, StateReader
from eigenoptions.envs.sources import env_name
from eigenoptions.options import TERMINATE, Option, OptionSet
from eigenoptions.options.execution import RunningOption, is_end
from eigenoptions.options.tuning import Exploration, resolve_option_chance

logger = logging.getLogger("eigenoptions")


@dataclass
class Decision:
    """What an agent chose, a primitive action or an option, and what came of it so far.

    Parameters
    ----------
    choice : int, default=0
        The agent's choice, as a number of its action space.
    option : int, default=-1
        Number of the option; -1 for a primitive action.
    execution : RunningOption, default=None
        The option that runs. None for a primitive action, and for an option that is not
        available, so that a random action takes its place.
    action : int or ndarray, default=-1
        The next primitive action; -1: the decision is complete.
    duration : int, default=0
        Number of primitive steps so far.
    discount : float, default=1.0
        gamma to the duration. NumPy's power of an array rounds otherwise than Python's,
        so both wrappers compute it here, one decision at a time.
    discounted, undiscounted : float, default=0.0
        Sum of the rewards, with and without discount.
    option_truncated : bool, default=False
        Whether the option was stopped since it took too long.
    """

    choice: int = 0
    option: int = -1
    execution: RunningOption | None = None
    action: Any = -1
    duration: int = 0
    discount: float = 1.0
    discounted: float = 0.0
    undiscounted: float = 0.0
    option_truncated: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the agent decides next."""
        return is_end(self.action)

    @property
    def is_unavailable(self) -> bool:
        """Whether a random action takes the place of an option."""
        return self.option >= 0 and self.execution is None


@dataclass
class Usage:
    """How much options were used in an episode.

    Parameters
    ----------
    decisions, option_decisions : int, default=0
        Number of decisions, and of those for an option that ran.
    steps, option_steps : int, default=0
        Number of primitive steps, and of those inside options.
    """

    decisions: int = 0
    option_decisions: int = 0
    steps: int = 0
    option_steps: int = 0

    def count(self, decision: Decision, *, is_new: bool) -> None:
        """Count the steps of a decision, and the decision itself where it is new."""
        runs_option = decision.execution is not None
        self.decisions += is_new
        self.steps += decision.duration
        if runs_option:
            self.option_decisions += is_new
            self.option_steps += decision.duration


def read_directions(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    directions: ArrayLike | None,
) -> NDArray[Any] | None:
    """Vectors ``(n, ...)`` that are the primitive actions; None if they are numbered.

    Where actions are vectors and there are no directions, n is 0.
    """
    space = env.action_space
    is_box = isinstance(env, gym.Env) and isinstance(space, Box)
    if not is_box:
        if directions is not None:
            raise ValueError(
                f"directions are vectors, but actions of this environment are {space}: "
                "leave them out"
            )
        return None
    shape: tuple[int, ...] = space.shape or ()
    if directions is None:
        return np.zeros((0, *shape), dtype=space.dtype)
    vectors = np.asarray(directions, dtype=space.dtype)
    is_inside = vectors.shape[1:] == shape and all(map(space.contains, vectors))
    if not is_inside:
        raise ValueError(
            f"directions must be rows of actions in {space}, got shape "
            f"{vectors.shape}: clip them to its bounds"
        )
    return vectors


class DecisionMaker:
    """What `OptionsWrapper` and `OptionsVectorWrapper` share.

    That is their settings, and the beginning and course of a decision.
    """

    def _set_options(
        self,
        env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
        options: Options | Option,
        gamma: float,
        state: Callable[[Any], Any] | None,
        key: str | Key | None,
        max_duration: int,
        option_chance: float | str | None,
        stop_chance: float,
        directions: ArrayLike | None = None,
        primitives: bool = True,
    ) -> None:
        """Check and keep the settings, which are those of `OptionsWrapper`."""
        options = gather_options(options)
        self._vectors: Any = env.action_space
        self._directions = read_directions(env, directions)
        n_directions = None
        if self._directions is not None:
            n_directions = len(self._directions)
        if option_chance == "auto" and (n_directions == 0 or not primitives):
            # There is nothing else to sample.
            option_chance = None
        self.gamma = check_float("gamma", gamma, above=0, maximum=1)
        self.max_duration = check_int("max_duration", max_duration)
        self.n_primitive = check_spaces(
            env, options, mapped=state is not None, n_directions=n_directions
        )
        # What takes the place of an option that is not available.
        self._n_drawn = self.n_primitive
        if not primitives:
            self.n_primitive = 0
        self.options = options
        self.state = state

        stop_chance = check_float("stop_chance", stop_chance, minimum=0, below=1)
        self.stop_chance = stop_chance
        self.option_chance = resolve_option_chance(options, option_chance, stop_chance)
        if isinstance(option_chance, str):
            exploration = Exploration(self.option_chance, stop_chance)
            tell_exploration(env, len(options), exploration)
        if self.option_chance is not None:
            self.option_chance = check_float(
                "option_chance", self.option_chance, minimum=0, maximum=1
            )

        self._policies = list(options)
        self._reader = StateReader(options, state, key)
        self._rng = np.random.default_rng()
        # The last observation, and what the options act on there.
        self._obs: Any = None
        self._input: Any = None
        # The mask of the present choices; None: an episode has to begin.
        self._mask: NDArray[np.int8] | None = None

    def _begin_decision(
        self,
        choice: int,
        option_input: Any,
        option_action: int | None = None,
    ) -> Decision:
        """Begin what the agent chose.

        Parameters
        ----------
        choice : int
            The agent's choice.
        option_input : object
            What options act on now.
        option_action : int, default=None
            The action of the chosen option, where it is known.
        """
        option = choice - self.n_primitive
        if option < 0:
            return Decision(choice, action=self._find_primitive(choice))

        policy = self._policies[option]
        if hasattr(policy, "begin"):
            # It chooses its goal now, and keeps it until it ends.
            policy = policy.begin(option_input)
        execution = RunningOption(policy, self._rng, self.stop_chance)
        action = self._act(execution, option_input, option_action)
        if is_end(action):
            return Decision(choice, option, action=self._draw_primitive())
        return Decision(choice, option, execution, action)

    def _find_primitive(self, choice: int) -> Any:
        """The environment's action of a primitive choice."""
        if self._directions is None:
            return choice
        return self._directions[choice]

    def _draw_primitive(self) -> Any:
        """A random primitive action, in place of an option that is not available."""
        if self._n_drawn > 0:
            return self._find_primitive(int(self._rng.integers(self._n_drawn)))
        space = self._vectors
        drawn = self._rng.uniform(space.low, space.high)
        return drawn.astype(space.dtype)

    def _advance_decision(
        self,
        decision: Decision,
        reward: float,
        is_last: bool,
        option_input: Any,
        option_action: int | None = None,
    ) -> None:
        """Add a primitive step to a decision, and find its next action.

        Parameters
        ----------
        decision : Decision
            The decision, which changes.
        reward : float
            Reward of the step.
        is_last : bool
            Whether the step ended the episode.
        option_input, option_action
            As in `_begin_decision`, after the step.
        """
        decision.discounted += decision.discount * reward
        decision.undiscounted += reward
        decision.duration += 1
        decision.discount = self.gamma**decision.duration

        decision.action = -1
        execution = decision.execution
        if execution is None or is_last:
            return
        action = self._act(execution, option_input, option_action)
        # The option has counted the action that it has just chosen.
        is_too_long = execution.steps > self.max_duration
        if is_too_long and not is_end(action):
            decision.option_truncated = True
        else:
            decision.action = action

    def _act(
        self, execution: RunningOption, option_input: Any, option_action: int | None
    ) -> Any:
        """Return the next action of an option, or TERMINATE."""
        # A table of part of an environment has no options in the other states.
        if self._reader.mdp is not None and option_input < 0:
            return TERMINATE
        return execution.act(option_input, option_action)

    def action_masks(self) -> BoolArray:
        """Return which choices are available now, for MaskablePPO.

        Returns
        -------
        ndarray of shape (n_primitive + n_options,) or (n_envs, n_primitive + n_options)
            One row per environment of a vector environment.
        """
        return np.asarray(self._mask, dtype=np.bool_)


def gather_options(options: Options | Option) -> Options:
    """Return options of one table as an `OptionSet`, others as they are.

    A single option of a table, such as ``found.option()``, or a list of them then
    recognises the states of the table.
    """
    members: Sequence[Any] = ()
    if isinstance(options, Option):
        members = [options]
    elif hasattr(options, "act") and not hasattr(options, "__len__"):
        # A single option that acts on observations.
        return [options]
    elif isinstance(options, list | tuple):
        members = options
    if not members or not all(isinstance(member, Option) for member in members):
        return options  # type: ignore[return-value]

    mdp = members[0].mdp
    if any(member.mdp is not mdp for member in members):
        # Each acts on the numbers of its own table.
        return options  # type: ignore[return-value]
    return OptionSet(
        mdp,
        np.stack([member.policy for member in members]),
        np.stack([member.value for member in members]),
        [member.purpose for member in members],
    )


def warn_of_constant_discount() -> None:
    """Warn where an agent of Stable-Baselines3 may discount options as one step.

    The environment does not see the agent. What can be known is that the library is
    loaded, and our adapters for it are not.
    """
    has_agents = "stable_baselines3" in sys.modules
    has_adapters = "eigenoptions.agents.sb3" in sys.modules
    if has_agents and not has_adapters and is_main_process():
        _warn_once_of_constant_discount()


@cache
def _warn_once_of_constant_discount() -> None:
    logger.warning(
        "an option took several steps: agents of Stable-Baselines3 discount it as one, "
        "and overrate long options, unless they use eigenoptions.agents.sb3 "
        "(OptionsDQN; SMDPReplayBuffer or SMDPRolloutBuffer), or mode='step'"
    )


def tell_exploration(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    n_options: int,
    exploration: Exploration,
) -> None:
    """Say which settings "auto" led to; warn where no option is sampled."""
    if exploration.option_chance != 0:
        show_note(
            f"{env_name(env)}: action_space.sample() picks options by option_chance="
            f"{exploration.option_chance}, stop_chance={exploration.stop_chance} "
            '(chosen by "auto")'
        )
        return
    logger.warning(
        '%s: option_chance="auto" samples none of the %d options, because in simulated '
        "walks they found states no sooner than primitive actions; set option_chance "
        "(0.01, say) to sample them all the same, or explore with Exploring(env)",
        env_name(env),
        n_options,
    )
