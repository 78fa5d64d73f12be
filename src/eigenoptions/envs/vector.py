"""`OptionsVectorWrapper`: options as extra actions in a vector environment (paper, Section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from eigenoptions.envs.spaces import OptionsSpace, OptionsVectorSpace
from eigenoptions.envs.wrapper import Decision, DecisionMaker
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.linear import LinearOptionSet


class OptionsVectorWrapper(DecisionMaker, gym.vector.VectorWrapper):
    """Options as extra actions in every environment of a `gymnasium.vector` environment, in one batch call per step.

    Every call of `step` takes one primitive step in each environment. Options have different lengths, so decisions end
    at different steps: ``infos["complete"]`` marks the environments where one has just ended. Its result is the one of
    `OptionsWrapper`, and until then the reward is 0. While an option runs, the mask allows nothing else, and whatever
    action is given, the option continues. For the mode "step", make a vector of `OptionsWrapper`.

    All three autoreset modes of Gymnasium work. Under ``NEXT_STEP`` the row after an end is a reset: its duration is 0
    and ``complete`` is False. Under ``SAME_STEP`` the last observation of an episode is in ``infos["final_obs"]``.

    Parameters
    ----------
    env
        The vector environment. Apply a time limit to its environments first if you want one: it counts primitive steps.
    options, gamma, max_duration, option_chance, stop_chance
        As in `OptionsWrapper`; options may not look ahead.
    state
        Function from a *batch* of observations to the options' inputs; None: as in `OptionsWrapper`. Options that
        recognise states by more than the observation (MiniGrid's) need a `SyncVectorEnv`.

    Notes
    -----
    Entries of the infos, one per environment: ``complete``, ``choice`` and ``begin_obs`` (the action of the decision
    and the observation it was made at; ``begin_obs`` only where observations are arrays), ``primitive_action`` (the
    action of this step), ``option`` (-1 for a primitive action), ``duration``, ``discount``, ``primitive_return``,
    ``unavailable``, ``option_truncated`` and ``action_mask``. A replay buffer takes the rows ``infos["complete"]`` of
    ``begin_obs, choice, reward, obs, discount``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> envs = OptionsVectorWrapper(gym.make_vec("eigenoptions/FourRooms-v0", num_envs=3), options)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs, reward, terminated, truncated, infos = envs.step(np.array([0, 1, 4]))
    >>> infos["complete"].tolist(), infos["option"].tolist(), infos["duration"].tolist()
    ([True, True, False], [-1, -1, 0], [1, 1, 1])
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        options: OptionSet | Sequence[Any],
        gamma: float = 0.99,
        *,
        state: Callable[[Any], Any] | None = None,
        max_duration: int = 10_000,
        option_chance: float | str | None = "auto",
        stop_chance: float = 0.0,
    ) -> None:
        super().__init__(env)
        self.autoreset = env.metadata.get("autoreset_mode")
        if not isinstance(self.autoreset, AutoresetMode):
            raise ValueError(
                f"the vector environment must have an autoreset_mode, got {self.autoreset!r}"
            )
        if getattr(options, "model", None) is not None:
            raise ValueError(
                "options that look ahead act in one environment: use OptionsWrapper, or fit them"
            )
        self._set_options(
            env, options, gamma, state, max_duration, option_chance, stop_chance
        )
        n, n_options = self.num_envs, len(options)
        sizes = self.n_primitive, n_options
        self.single_action_space = OptionsSpace(*sizes, self.option_chance)
        self.action_space: OptionsVectorSpace = OptionsVectorSpace(
            *sizes, n, self.option_chance
        )
        bases = [single.unwrapped for single in getattr(env.unwrapped, "envs", ())]
        self._bases: list[Any] = bases or [env] * n
        if not bases and self._reader.looks_inside:
            where = "inside its environment, which another process holds"
            raise ValueError(
                f"these options recognise a state {where}: use SyncVectorEnv or pass state="
            )
        # The action of every option at the last observations.
        self._option_actions: NDArray[Any] = np.empty((n, n_options), dtype=np.int64)
        self._decisions = [Decision() for _ in range(n)]
        self._begin_obs: Any = None
        self._episode_over = np.zeros(n, dtype=np.bool_)

    def reset(
        self, *, seed: Any = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment, or in those of ``options["reset_mask"]`` (bool, ``(n_envs,)``)."""
        # Gymnasium checks the mask, and removes it from the options.
        reset_mask = (options or {}).get(
            "reset_mask", np.ones(self.num_envs, dtype=np.bool_)
        )
        if self._mask is None and not np.all(reset_mask):
            raise gym.error.ResetNeeded(
                "the first reset must be one of all environments, without reset_mask"
            )
        if seed is not None:
            seeds: Any = (
                [seed]
                if isinstance(seed, int | np.integer)
                else [s for s in seed if s is not None]
            )
            # A generator of its own: the environment draws the same numbers as without options.
            self._rng = np.random.default_rng(seeds or None)
        obs, infos = self.env.reset(seed=seed, options=options)
        for i in np.flatnonzero(reset_mask):
            self._decisions[i] = Decision()
        self._episode_over[reset_mask] = False
        self.action_space.last_sample = None
        self._update_options(obs, reset_mask)
        if self._begin_obs is None and isinstance(obs, np.ndarray):
            self._begin_obs = obs.copy()
        infos["action_mask"] = self._update_mask(infos)
        return obs, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take one primitive step in each environment: that of the option that runs, or of the action given."""
        if self._mask is None:
            raise gym.error.ResetNeeded("call reset before step")
        primitive = self._start(np.asarray(actions))
        # After an exception in the environment only a reset helps.
        self._mask = None
        obs, rewards, terminated, truncated, infos = self.env.step(primitive)
        for name, part in (
            ("rewards", rewards),
            ("terminated", terminated),
            ("truncated", truncated),
        ):
            if np.shape(part) != (self.num_envs,):
                raise ValueError(
                    f"{name} must have shape ({self.num_envs},), got {np.shape(part)}"
                )

        # Under NEXT_STEP the step after the end of an episode is a reset, which belongs to no decision.
        live = (
            ~self._episode_over
            if self.autoreset == AutoresetMode.NEXT_STEP
            else np.ones_like(terminated)
        )
        ended = live & (terminated | truncated)
        self._update_options(
            obs, ended if self.autoreset == AutoresetMode.SAME_STEP else ~live
        )
        self._episode_over = ended
        steps = zip(
            self._decisions,
            live.tolist(),
            np.asarray(rewards).tolist(),
            ended.tolist(),
            strict=True,
        )
        for i, (decision, is_live, reward, is_last) in enumerate(steps):
            if not is_live:
                decision.action = -1
            elif decision.execution is None:
                self._advance(decision, reward, is_last, None)
            else:
                option_action = int(self._option_actions[i, decision.option])
                self._advance(
                    decision, reward, is_last, index_obs(self._input, i), option_action
                )

        option, duration = self._gather("option"), self._gather("duration")
        complete = live & (self._gather("action") < 0)
        infos |= {
            "complete": complete,
            "choice": self._gather("choice"),
            "primitive_action": primitive,
            "option": np.where(duration > 0, option, -1),
            "duration": duration,
            "discount": self._gather("discount"),
            "primitive_return": self._gather("undiscounted"),
            "unavailable": (option >= 0)
            & [decision.execution is None for decision in self._decisions],
            "option_truncated": self._gather("option_truncated"),
            "action_mask": self._update_mask(infos),
        }
        if self._begin_obs is not None:
            infos["begin_obs"] = self._begin_obs.copy()
        return (
            obs,
            np.where(complete, self._gather("discounted"), 0.0),
            terminated,
            truncated,
            infos,
        )

    def _gather(self, name: str) -> NDArray[Any]:
        """``(n_envs,)`` a field of every decision."""
        return np.array([getattr(decision, name) for decision in self._decisions])

    def _start(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        """Begin decisions where no option runs; ``(n_envs,)`` the primitive action of every environment."""
        n, n_choices = self.num_envs, self.n_primitive + len(self._policies)
        if actions.shape != (n,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be {n} integers, got {actions.dtype} of shape {actions.shape}"
            )
        begins = self._gather("action") < 0
        if not ((actions >= 0) & (actions < n_choices))[begins].all():
            raise ValueError(f"actions must be in 0..{n_choices - 1}, got {actions}")
        last_sample, self.action_space.last_sample = self.action_space.last_sample, None
        is_sampled = (
            np.zeros(n, dtype=np.bool_)
            if last_sample is None
            else actions == last_sample
        )
        for i in np.flatnonzero(begins).tolist():
            option, value, option_action = (
                int(actions[i]) - self.n_primitive,
                None,
                None,
            )
            if option >= 0:
                value, option_action = (
                    index_obs(self._input, i),
                    int(self._option_actions[i, option]),
                )
            self._decisions[i] = self._begin(
                int(actions[i]), is_sampled[i], value, option_action
            )
        if self._begin_obs is not None:
            self._begin_obs[begins] = self._obs[begins]
        return self._gather("action")

    def _update_options(self, obs: Any, is_first: NDArray[np.bool_]) -> None:
        """Note new observations, those of a reset marked, and the action of every option at them."""
        n, before = self.num_envs, self._input
        self._obs = obs
        self._input = obs if self.state is None else self.state(obs)
        if isinstance(self.options, LinearOptionSet):
            self._option_actions = self.options.actions(self._input, n).T
            return
        if not isinstance(self.options, OptionSet):
            rows = (index_obs(self._input, i) for i in range(n))
            self._option_actions = np.array(
                [[policy.act(row) for policy in self._policies] for row in rows]
            )
            return
        if self._reader.recognition:
            read = self._reader.read
            self._input = [
                read(self._bases[i], index_obs(obs, i), is_first[i]) for i in range(n)
            ]
        states = self._input = np.array(self._input)
        last = self.options.n_states - 1
        is_number = states.shape == (n,) and states.dtype.kind in "iu"
        if (
            not is_number
            or not (
                (states >= -bool(self._reader.recognition)) & (states <= last)
            ).all()
        ):
            source = "observations" if self.state is None else "state="
            raise ValueError(f"{source} must be {n} states in 0..{last}, got {states}")
        if self._reader.checks_moves and before is not None:
            for state, successor in zip(
                before[~is_first], states[~is_first], strict=True
            ):
                self._reader.check_move(state, successor)
            self._reader.checks_moves = not is_first.any()
        self._option_actions = np.where(
            states >= 0, self.options.policy[:, states], TERMINATE
        ).T

    def _update_mask(self, infos: dict[str, Any]) -> NDArray[np.int8]:
        """Find the masks of the present choices; a copy for the caller, who may change it."""
        n, free = self.n_primitive, self._gather("action") < 0
        mask = np.empty((self.num_envs, n + len(self._policies)), dtype=np.int8)
        mask[:, :n] = free[:, None]
        mask[:, n:] = free[:, None] & (self._option_actions >= 0)
        # The environment's mask of its own actions.
        own_mask = infos.get("action_mask")
        if own_mask is not None and np.shape(own_mask) == (self.num_envs, n):
            known = free & infos.get("_action_mask", True)
            mask[known, :n] = own_mask[known]
        running = np.flatnonzero(~free)
        mask[running, self._gather("choice")[running]] = 1
        self._mask = self.action_space.mask = mask
        return mask.copy()


def index_obs(obs: Any, i: Any) -> Any:
    """Observation i of a batch."""
    if isinstance(obs, dict):
        return {name: index_obs(part, i) for name, part in obs.items()}
    return (
        tuple(index_obs(part, i) for part in obs) if isinstance(obs, tuple) else obs[i]
    )
