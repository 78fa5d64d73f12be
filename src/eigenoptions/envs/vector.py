"""`OptionsVectorWrapper`: options as extra actions in a vector environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, IntegerArray
from eigenoptions._validation import check_type
from eigenoptions.envs.decisions import Decision, DecisionMaker
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognition import Options
from eigenoptions.envs.rows import find_autoreset, take_row
from eigenoptions.envs.spaces import (
    GuidedSamples,
    OptionsSpace,
    OptionsVectorSpace,
)
from eigenoptions.options import TERMINATE, Option, OptionSet
from eigenoptions.options.records import BatchOptions


class OptionsVectorWrapper(DecisionMaker, gym.vector.VectorWrapper):
    """Options as extra actions in each environment of a `gymnasium.vector` environment.

    Every call of `step` takes one primitive step in each environment. Options have
    different lengths, so decisions end at different steps: ``infos["complete"]`` marks
    the environments where one has just ended. Its result is the one of
    `OptionsWrapper`, and until then the reward is 0. While an option runs, the mask
    allows nothing else, and whatever action is given, the option continues. For the
    mode "step", make a vector of `OptionsWrapper`.

    All three autoreset modes of Gymnasium work. Under ``NEXT_STEP`` the row after an
    end is a reset: its duration is 0 and ``complete`` is False. Under ``SAME_STEP`` the
    last observation of an episode is in ``infos["final_obs"]``.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        The vector environment. Apply a time limit to its environments first if you want
        one: it counts primitive steps. So does `ExploringVector`, from which primitive
        actions are then sampled.
    options : OptionSet, LinearOptionSet, Option or sequence
        As in `OptionsWrapper`; options may not look ahead.
    gamma : float, default=0.99
        As in `OptionsWrapper`.
    state : callable, default=None
        Function from a *batch* of observations to the options' inputs. None: as in
        `OptionsWrapper`. Options that recognise states by more than the observation
        (MiniGrid's) need a `SyncVectorEnv`.
    key, max_duration, option_chance, stop_chance
        As in `OptionsWrapper`.

    Notes
    -----
    Entries of the infos, one per environment: ``complete``, ``choice`` and
    ``begin_obs`` (the action of the decision and the observation it was made at;
    ``begin_obs`` only where observations are arrays), ``primitive_action`` (the action
    of this step), ``option`` (-1 for a primitive action), ``duration``, ``discount``,
    ``primitive_return``, ``unavailable``, ``option_truncated`` and ``action_mask``. A
    replay buffer takes the rows ``infos["complete"]`` of ``begin_obs, choice, reward,
    obs, discount``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> envs = gym.make_vec("eigenoptions/FourRooms-v0", num_envs=3)
    >>> envs = OptionsVectorWrapper(envs, options)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs, reward, terminated, truncated, infos = envs.step(np.array([0, 1, 4]))
    >>> infos["complete"].tolist(), infos["option"].tolist(), infos["duration"].tolist()
    ([True, True, False], [-1, -1, 0], [1, 1, 1])
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        options: Options | Option,
        gamma: float = 0.99,
        *,
        state: Callable[[Any], Any] | None = None,
        key: str | Key | None = None,
        max_duration: int = 10_000,
        option_chance: float | str | None = "auto",
        stop_chance: float = 0.0,
    ) -> None:
        check_type("env", env, gym.vector.VectorEnv, "for one, take OptionsWrapper")
        super().__init__(env)
        self.autoreset = find_autoreset(env)
        if getattr(options, "model", None) is not None:
            raise ValueError(
                "options that look ahead act in one environment: use OptionsWrapper, "
                "or fit them"
            )
        members = options if isinstance(options, Sequence) else []
        if any(hasattr(member, "begin") for member in members):
            raise ValueError(
                "options that keep a goal belong to one environment: use "
                "OptionsWrapper in each, and an agent's vector environment around them"
            )
        self._set_options(
            env,
            options,
            gamma,
            state,
            key,
            max_duration,
            option_chance,
            stop_chance,
        )

        n_options = len(self.options)
        self.single_action_space = OptionsSpace(
            self.n_primitive, n_options, self.option_chance
        )
        self.action_space: OptionsVectorSpace = OptionsVectorSpace(
            self.n_primitive, n_options, self.num_envs, self.option_chance
        )
        if isinstance(env.action_space, GuidedSamples):
            self.action_space.primitive_space = env.action_space
        self._single_envs = self._find_single_envs()
        self._single_readers = [self._reader.make_twin() for _ in self._single_envs]

        # The action of every option at the last observations.
        self._option_actions: IntegerArray = np.empty(
            (self.num_envs, n_options), dtype=np.int64
        )
        self._decisions = [Decision() for _ in range(self.num_envs)]
        # The observations at which decisions began, where observations are arrays.
        self._begin_obs: NDArray[Any] | None = None
        self._episode_over = np.zeros(self.num_envs, dtype=np.bool_)

    def _find_single_envs(self) -> list[Any]:
        """Return the environments that states are recognised in."""
        envs = getattr(self.env.unwrapped, "envs", None)
        if envs:
            return [env.unwrapped for env in envs]
        if self._reader.looks_inside:
            raise ValueError(
                "these options recognise a state inside its environment, which another "
                "process holds: use SyncVectorEnv or pass state="
            )
        return [self.env] * self.num_envs

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment, or in some of them.

        Parameters
        ----------
        seed : int or sequence, default=None
            Seed of the first environment, or one seed for each.
        options : dict, default=None
            Passed to the environment. ``options["reset_mask"]``, a boolean array of
            shape ``(n_envs,)``, says which environments are reset.
        """
        # Gymnasium checks the mask, and removes it from the options.
        everywhere = np.ones(self.num_envs, dtype=np.bool_)
        if options is not None:
            check_type("options", options, dict, "it is that of reset(options={...})")
        reset_mask = (options or {}).get("reset_mask", everywhere)
        if self._mask is None and not np.all(reset_mask):
            raise gym.error.ResetNeeded(
                "the first reset must be one of all environments, without reset_mask"
            )
        if seed is not None:
            # A generator of its own: the environment draws the same numbers as without
            # options.
            self._rng = _make_generator(seed)

        # Gymnasium's annotation leaves out its own sequences of seeds.
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        for i in np.flatnonzero(reset_mask):
            self._decisions[i] = Decision()
        self._episode_over[reset_mask] = False
        self._update_options(obs, reset_mask)
        if self._begin_obs is None and isinstance(obs, np.ndarray):
            self._begin_obs = obs.copy()
        infos["action_mask"] = self._update_mask(infos)
        return obs, infos

    def step(
        self, actions: IntegerArray
    ) -> tuple[Any, NDArray[Any], BoolArray, BoolArray, dict[str, Any]]:
        """Take one primitive step in each environment.

        It is that of the option that runs, or of the action given.
        """
        if self._mask is None:
            raise gym.error.ResetNeeded("call reset before step")
        primitive_actions = self._begin_decisions(np.asarray(actions))
        # After an exception in the environment only a reset helps.
        self._mask = None
        obs, rewards, terminated, truncated, infos = self.env.step(primitive_actions)
        self._check_shape("rewards", rewards)
        self._check_shape("terminated", terminated)
        self._check_shape("truncated", truncated)

        is_live, is_last = self._find_ends(terminated, truncated)
        is_first = ~is_live
        if self.autoreset == AutoresetMode.SAME_STEP:
            is_first = is_last
        self._update_options(obs, is_first, primitive_actions)
        self._advance_decisions(rewards, is_live, is_last)

        is_complete = is_live & (self._gather("action") < 0)
        infos |= self._describe_decisions(is_complete, primitive_actions)
        infos["action_mask"] = self._update_mask(infos)
        if self._begin_obs is not None:
            infos["begin_obs"] = self._begin_obs.copy()
        returns = np.where(is_complete, self._gather("discounted"), 0.0)
        return obs, returns, terminated, truncated, infos

    def _check_shape(self, name: str, values: NDArray[Any]) -> None:
        shape = np.shape(values)
        if shape != (self.num_envs,):
            raise ValueError(f"{name} must have shape ({self.num_envs},), got {shape}")

    def _find_ends(
        self, terminated: BoolArray, truncated: BoolArray
    ) -> tuple[BoolArray, BoolArray]:
        """Return where a step belongs to an episode, and where it ends one.

        Under NEXT_STEP the step after the end of an episode is a reset, which belongs
        to no decision.
        """
        is_live = np.ones(self.num_envs, dtype=np.bool_)
        if self.autoreset == AutoresetMode.NEXT_STEP:
            is_live = ~self._episode_over
        is_last = is_live & (terminated | truncated)
        self._episode_over = is_last
        return is_live, is_last

    def _begin_decisions(self, actions: NDArray[Any]) -> IntegerArray:
        """Begin decisions where no option runs.

        Returns ``(n_envs,)`` the primitive action of every environment.
        """
        n_choices = self.n_primitive + len(self._policies)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be {self.num_envs} integers, got {actions.dtype} of "
                f"shape {actions.shape}"
            )
        begins = self._gather("action") < 0
        is_choice = (actions >= 0) & (actions < n_choices)
        if not is_choice[begins].all():
            raise ValueError(f"actions must be in 0..{n_choices - 1}, got {actions}")

        for i in np.flatnonzero(begins).tolist():
            choice = int(actions[i])
            option = choice - self.n_primitive
            if option < 0:
                decision = self._begin_decision(choice, None)
            else:
                option_input = index_obs(self._input, i)
                action = int(self._option_actions[i, option])
                decision = self._begin_decision(choice, option_input, action)
            self._decisions[i] = decision
        if self._begin_obs is not None:
            self._begin_obs[begins] = self._obs[begins]
        return self._gather("action")

    def _advance_decisions(
        self, rewards: NDArray[Any], is_live: BoolArray, is_last: BoolArray
    ) -> None:
        """Add a primitive step to every decision, but those of resets."""
        # Lists of Python's own numbers: elements of arrays are slow.
        steps = zip(
            self._decisions,
            np.asarray(rewards).tolist(),
            is_live.tolist(),
            is_last.tolist(),
            strict=True,
        )
        for i, (decision, reward, lives, ends) in enumerate(steps):
            if not lives:
                decision.action = -1
            elif decision.execution is None:
                self._advance_decision(decision, reward, ends, None)
            else:
                option_input = index_obs(self._input, i)
                action = int(self._option_actions[i, decision.option])
                self._advance_decision(decision, reward, ends, option_input, action)

    def _describe_decisions(
        self, is_complete: BoolArray, primitive_actions: IntegerArray
    ) -> dict[str, NDArray[Any]]:
        """Return the infos of a step, one entry per environment."""
        duration = self._gather("duration")
        return {
            "complete": is_complete,
            "choice": self._gather("choice"),
            "primitive_action": primitive_actions,
            "option": np.where(duration > 0, self._gather("option"), -1),
            "duration": duration,
            "discount": self._gather("discount"),
            "primitive_return": self._gather("undiscounted"),
            "unavailable": self._gather("is_unavailable"),
            "option_truncated": self._gather("option_truncated"),
        }

    def _gather(self, name: str) -> NDArray[Any]:
        """Return ``(n_envs,)`` an attribute of every decision."""
        return np.array([getattr(decision, name) for decision in self._decisions])

    def _update_options(
        self, obs: Any, is_first: BoolArray, actions: IntegerArray | None = None
    ) -> None:
        """Note new observations, and find the action of every option at them.

        `is_first` marks the first observations of episodes. The `actions` led to the
        others; None after a reset, where the others are unchanged.
        """
        input_before = self._input
        self._obs = obs
        self._input = obs if self.state is None else self.state(obs)

        if isinstance(self.options, OptionSet):
            if self._reader.recognition is not None:
                self._input = self._recognise_states(input_before, is_first, actions)
            else:
                self._input = self._read_states(self.options.n_states)
            self._check_moves(input_before, is_first)
            policy = self.options.policy[:, self._input]
            # States outside of the part that the options know have number -1.
            self._option_actions = np.where(self._input >= 0, policy, TERMINATE).T
        elif isinstance(self.options, BatchOptions):
            self._option_actions = self.options.actions(self._input, self.num_envs).T
        else:
            rows = []
            for i in range(self.num_envs):
                option_input = index_obs(self._input, i)
                rows.append([policy.act(option_input) for policy in self._policies])
            self._option_actions = np.array(rows)

    def _recognise_states(
        self,
        states_before: IntegerArray | None,
        is_first: BoolArray,
        actions: IntegerArray | None,
    ) -> IntegerArray:
        """Return ``(n_envs,)`` the present states by their keys."""
        states = np.zeros(self.num_envs, dtype=np.int64)
        for i, reader in enumerate(self._single_readers):
            env = self._single_envs[i]
            single_obs = take_row(self.env.single_observation_space, self._obs, i)
            if is_first[i]:
                states[i] = reader.read(env, single_obs, is_first=True)
            elif actions is not None:
                states[i] = reader.read(env, single_obs, action=int(actions[i]))
            elif states_before is not None:
                states[i] = states_before[i]
        return states

    def _read_states(self, n_states: int) -> IntegerArray:
        """Return ``(n_envs,)`` the numbers of states that the environments observe."""
        states = np.array(self._input)
        last = n_states - 1
        are_integers = states.shape == (self.num_envs,) and states.dtype.kind in "iu"
        if not are_integers or not ((states >= 0) & (states <= last)).all():
            source = "observations" if self.state is None else "state="
            raise ValueError(
                f"{source} must be {self.num_envs} states in 0..{last}, got {states}"
            )
        return states

    def _check_moves(
        self, states_before: IntegerArray | None, is_first: BoolArray
    ) -> None:
        """Compare moves with the options' table, until the first episode ends."""
        if not self._reader.checks_moves or states_before is None:
            return
        moves = zip(states_before[~is_first], self._input[~is_first], strict=True)
        for before, after in moves:
            self._reader.check_move(before, after)
        self._reader.checks_moves = not is_first.any()

    def _update_mask(self, infos: dict[str, Any]) -> NDArray[np.int8]:
        """Find the masks of the present choices; a copy for the caller to change."""
        n_primitive = self.n_primitive
        is_free = self._gather("action") < 0
        n_choices = n_primitive + len(self._policies)
        mask = np.empty((self.num_envs, n_choices), dtype=np.int8)
        mask[:, :n_primitive] = is_free[:, None]
        mask[:, n_primitive:] = is_free[:, None] & (self._option_actions >= 0)

        # The environment's mask of its own actions.
        own_mask = infos.get("action_mask")
        if own_mask is not None and np.shape(own_mask) == (self.num_envs, n_primitive):
            is_known = is_free & infos.get("_action_mask", True)
            mask[is_known, :n_primitive] = own_mask[is_known]

        # Where an option runs, only its choice is allowed.
        running = np.flatnonzero(~is_free)
        mask[running, self._gather("choice")[running]] = 1
        self._mask = mask
        self.action_space.mask = mask
        return mask.copy()


def _make_generator(seed: int | Sequence[int | None]) -> np.random.Generator:
    """Return a generator of all seeds that are given."""
    if isinstance(seed, int | np.integer):
        return np.random.default_rng([seed])
    given = [number for number in seed if number is not None]
    return np.random.default_rng(given or None)


def index_obs(obs: Any, i: int) -> Any:
    """Return observation i of a batch."""
    if isinstance(obs, dict):
        return {name: index_obs(part, i) for name, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(index_obs(part, i) for part in obs)
    return obs[i]
