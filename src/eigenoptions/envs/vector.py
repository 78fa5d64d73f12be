"""`OptionsVectorWrapper`: options as extra actions in every copy of a vector environment (paper, Section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.envs.batch import OptionBatch
from eigenoptions.envs.fit import check_fit
from eigenoptions.envs.mazes import MAX_STEPS, MazeVectorEnv, fresh_copies
from eigenoptions.envs.spaces import OptionsSpace, OptionsVectorSpace
from eigenoptions.envs.wrapper import MODES, OPTION_CHANCE
from eigenoptions.options import OptionSet

INT64, INT8, BOOL = np.dtype(np.int64), np.dtype(np.int8), np.dtype(np.bool_)
# Powers of the discount that are computed beforehand.
KNOWN_POWERS = 1024


# Not generic in Gymnasium 1.1.
if TYPE_CHECKING:
    _VectorWrapper = gym.vector.VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorWrapper = gym.vector.VectorWrapper


class OptionsVectorWrapper(_VectorWrapper):
    """Options as extra actions in every copy of a `gymnasium.vector` environment, in one batch call per step.

    Every call of `step` takes one primitive step in each copy. Options have different lengths, so decisions end at
    different steps: ``infos["complete"]`` marks the copies where one has just ended. While an option runs in a copy,
    its mask allows nothing else, and whatever action is given, the option continues. The result of a complete decision
    is the one of `OptionsWrapper`.

    * ``"call-and-return"``: the reward is 0 while an option runs; with its last step come the discounted reward,
      duration and discount of the whole decision.
    * ``"step"``: rewards and discounts are those of primitive steps, and the observation is
      ``{"observation": obs, "option": j}`` with j = 0, or i + 1 while option i runs.

    All three autoreset modes of Gymnasium work. Under ``NEXT_STEP`` the row after an end is a reset: its duration is 0
    and ``complete`` is False. Under ``SAME_STEP`` the last observation of an episode is in ``infos["final_obs"]``.

    Parameters
    ----------
    env
        The vector environment, with a time limit of its own if there shall be one: it counts primitive steps.
    options
        An `OptionSet`, a `LinearOptionSet`, or objects with ``act(obs)``, which act one copy at a time.
    gamma, mode, max_duration, option_chance
        As in `OptionsWrapper`.
    state
        Function from a *batch* of observations to the options' inputs; None: options act on the observations.

    Notes
    -----
    Entries of the infos, one per copy: ``complete``, ``choice`` and ``begin_obs`` (the action of the decision and the
    observation it was made at; ``begin_obs`` only where observations are arrays), ``option`` (-1 for a primitive
    action), ``duration``, ``discount``, ``primitive_return``, ``unavailable``, ``cut`` and ``action_mask``. A replay
    buffer takes the rows ``infos["complete"]`` of ``begin_obs, choice, reward, obs, discount``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> envs = OptionsVectorWrapper(gym.make_vec("eigenoptions/FourRooms-v0", num_envs=3), options)
    >>> obs, infos = envs.reset(seed=0)
    >>> infos["action_mask"].shape
    (3, 8)
    >>> obs, reward, terminated, truncated, infos = envs.step(np.array([0, 1, 4]))
    >>> infos["complete"].tolist(), infos["option"].tolist(), infos["duration"].tolist()
    ([True, True, False], [-1, -1, 0], [1, 1, 1])
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        options: OptionSet | Sequence[Any],
        gamma: float = 0.99,
        mode: str = "call-and-return",
        *,
        state: Callable[[Any], Any] | None = None,
        max_duration: int = 10_000,
        option_chance: float | None = OPTION_CHANCE,
    ) -> None:
        super().__init__(env)
        self.gamma = check_float("gamma", gamma, above=0, maximum=1)
        self.mode = check_choice("mode", mode, MODES)
        self.max_duration = check_int("max_duration", max_duration)
        reset_mode = env.metadata.get("autoreset_mode")
        if not isinstance(reset_mode, AutoresetMode):
            raise ValueError(
                f"the vector environment must name its autoreset mode in metadata, got {reset_mode!r}"
            )
        if getattr(options, "model", None) is not None:
            raise ValueError(
                "options that look ahead are bound to one environment: wrap it in OptionsWrapper, or learn them"
            )
        self.n_primitive = check_fit(env, options, mapped=state is not None)
        self.options = options
        self._batch, self._state = OptionBatch(options, self.num_envs), state
        self._single = mode == "step"
        self._spaces(option_chance)
        self._rng = np.random.default_rng()
        self._prepare(reset_mode == AutoresetMode.NEXT_STEP)
        self._numbers = np.arange(self.num_envs)
        # No option of a table has a guard.
        self._unhalted = np.zeros(self.num_envs, dtype=np.bool_)
        # The last observations, as the options read them, and those at which the decisions began.
        self._obs: Any = None
        self._inputs: Any = None
        self._begin_obs: Any = None
        self._offers: Any = None
        self._mask: Any = None

    def _prepare(self, resets: bool) -> None:
        """The kernels of a step, with the arrays that they keep between steps; see `_kernels.decisions`."""
        from eigenoptions._kernels.decisions import begin, decide, finish

        env: Any = self.env
        n, table = self.num_envs, self._batch.table
        # A maze of ours is stepped together with its options in one call, unless a subclass has another `step`.
        ours = getattr(env.step, "__func__", None) is MazeVectorEnv.step
        self._maze: Any = env if ours and table is not None and self._state is None else None
        self._decisions, sums = np.zeros((6, n), dtype=np.int64), np.zeros((2, n))
        self._counter = self._rng.integers(2**64, size=1, dtype=np.uint64)
        most = min(self.max_duration, MAX_STEPS)
        rules = np.array([self.n_primitive, most, self._single, resets, *(env.rules if ours else ())])
        powers = np.array([self.gamma**k for k in range(KNOWN_POWERS)])
        self._begin: Any = partial(begin, self._decisions, sums, rules, self._counter)
        self._finish: Any = partial(finish, self._decisions, sums, rules, powers)
        if self._maze is not None:
            kernel: Any = decide
            state = env.copies, self._decisions, sums, rules, self._counter
            self._decide = partial(kernel, *env.table, *state, powers, table)

    def _spaces(self, option_chance: float | None) -> None:
        n, m = self.num_envs, len(self.options)
        # Of a mask; the properties of a wrapper take time.
        self._shape = n, self.n_primitive + m
        self.single_action_space = OptionsSpace(self.n_primitive, m, option_chance)
        self.action_space: OptionsVectorSpace = OptionsVectorSpace(self.n_primitive, m, n, option_chance)
        self.action_space.source = self._known_mask
        if self._single:
            seen = {"observation": self.env.single_observation_space, "option": Discrete(m + 1)}
            self.single_observation_space = Dict(seen)
            self.observation_space = batch_space(self.single_observation_space, n)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every copy, or in those of ``options["reset_mask"]`` (bool, ``(B,)``)."""
        # Before the environment, which removes the mask from its options.
        fresh = fresh_copies(options, self.num_envs)
        if seed is not None:
            given = [seed] if isinstance(seed, int | np.integer) else [s for s in seed if s is not None]
            # A generator of its own: the environment draws the same numbers as without options.
            self._rng = np.random.default_rng(given or None)
            self._counter[0] = self._rng.integers(2**64, dtype=np.uint64)
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        choice, going, _, _, over, _ = self._decisions
        going[fresh] = -1
        over[fresh] = False
        self._observe(obs)
        if self._begin_obs is None and isinstance(obs, np.ndarray):
            self._begin_obs = obs.copy()
        runs = np.flatnonzero(going >= 0)
        mask = np.ones(self._shape, dtype=np.int8)
        mask[:, self.n_primitive :] = self._offers >= 0
        mask[runs] = 0
        mask[runs, choice[runs]] = 1
        infos["action_mask"] = self._kept(mask, infos)
        return self._seen(obs), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take one primitive step in each copy: that of the option that runs, or of the action given."""
        actions = np.asarray(actions)
        if actions.shape != self._shape[:1] or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be {self.num_envs} whole numbers, got {actions.dtype} of shape {actions.shape}"
            )
        if actions.dtype is not INT64:
            actions = actions.astype(INT64)
        if self._obs is None:
            raise gym.error.ResetNeeded("call reset before step")
        if self._maze is not None:
            return self._step_maze(actions)
        self._hold(actions)
        moves = np.empty_like(actions)
        wrong = self._begin(self._offers, self._numbers, actions, moves)
        if wrong >= 0:
            raise self._refusal(actions, wrong)
        obs, rewards, terminated, truncated, infos = self.env.step(moves)
        ends = np.array([terminated, truncated])
        self._observe(obs)
        halted = self._halted(ends[0] | ends[1])
        found = reals, wholes, marks, masks = self._results(3)
        self._finish(self._offers, self._numbers, rewards, ends, halted, *found)
        reward, infos["discount"], infos["primitive_return"] = reals
        infos["option"], infos["duration"], infos["choice"] = wholes
        infos["complete"], infos["cut"], infos["unavailable"] = marks
        infos["action_mask"] = self._kept(masks, infos)
        if self._begin_obs is not None:
            infos["begin_obs"] = self._begin_obs.copy()
        return self._seen(obs), reward, terminated, truncated, infos

    def _step_maze(self, actions: NDArray[np.int64]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """`step` in copies of a maze: one kernel does it all."""
        maze = self._maze
        found = reals, wholes, marks, masks = self._results(5)
        over = self._decide(maze.draws(), actions, *found)
        if over < 0:
            raise self._refusal(actions, -1 - over)
        maze.n_over = over
        self._mask = masks
        # Subscripts, since unpacking an array takes twice the time.
        infos = {
            "option": wholes[0],
            "duration": wholes[1],
            "choice": wholes[2],
            "begin_obs": wholes[4],
            "discount": reals[1],
            "primitive_return": reals[2],
            "complete": marks[0],
            "cut": marks[1],
            "unavailable": marks[2],
            "action_mask": masks.copy(),
        }
        return self._seen(wholes[3]), reals[0], marks[3], marks[4], infos

    def _results(self, rows: int) -> tuple[NDArray[Any], ...]:
        """Arrays for the results of a kernel."""
        n = self._shape[0]
        return (
            np.empty((3, n)),
            np.empty((rows, n), INT64),
            np.empty((rows, n), BOOL),
            np.empty(self._shape, INT8),
        )

    def _refusal(self, actions: NDArray[np.int64], copy: int) -> ValueError:
        last = self.n_primitive + len(self.options) - 1
        return ValueError(f"actions must be in 0..{last}, got {actions[copy]} for copy {copy}")

    def action_masks(self) -> NDArray[np.bool_]:
        """``(B, n_primitive + n_options)`` which actions may be chosen now."""
        return np.asarray(self._mask, dtype=np.bool_)

    def _observe(self, obs: Any) -> None:
        """Note new observations, and what every option would do at them."""
        self._obs = self._inputs = obs
        if self._state is not None:
            self._inputs = given = self._state(obs)
            if self._batch.table is not None:
                # A wrong number must not read another entry.
                n, states = len(self._batch.table), np.asarray(given)
                low, high = int(states.min()), int(states.max())
                if states.shape != self._shape[:1] or low < 0 or high >= n:
                    raise ValueError(
                        f"state= must give {self.num_envs} numbers in 0..{n - 1}, got {states.shape} in {low}..{high}"
                    )
        self._offers = self._batch.offers(self._inputs)

    def _hold(self, actions: NDArray[Any]) -> None:
        """Keep the observations of the decisions that begin now, and begin the executions of options with a guard."""
        begins = self._decisions[1] < 0
        if self._begin_obs is not None:
            where = begins.reshape((-1,) + (1,) * (self._obs.ndim - 1))
            np.copyto(self._begin_obs, self._obs, where=where)
        if self._batch.guarded:
            option = np.clip(actions - self.n_primitive, -1, len(self.options) - 1)
            offered = self._offers[np.arange(self.num_envs), option] >= 0
            self._batch.begin(np.where(begins & offered & (option >= 0), option, -1), self._inputs, self._rng)

    def _halted(self, ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where a guard ends an option; `finish` has not noted the step yet."""
        if not self._batch.guarded:
            return self._unhalted
        choice, _, _, unavailable, _, _ = self._decisions
        runs = (choice >= self.n_primitive) & (unavailable == 0) & ~ended
        return self._batch.halted(np.where(runs, choice - self.n_primitive, -1), self._inputs, self._rng)

    def _kept(self, mask: NDArray[np.int8], infos: dict[str, Any]) -> NDArray[np.int8]:
        """A copy for the caller of the mask, in which the environment's mask of its own actions is the first part."""
        own = infos.get("action_mask")
        if own is not None and np.shape(own) == (self.num_envs, self.n_primitive):
            known = infos.get("_action_mask", True) & (self._decisions[1] < 0)
            mask[known, : self.n_primitive] = own[known]
        self._mask = mask
        return mask.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and pickles: the action space of a copy asks the copy for its masks."""
        self.__dict__.update(state)
        self.action_space.source = self._known_mask

    def _known_mask(self) -> Any:
        """The current masks; None before the first reset."""
        return self._mask

    def _seen(self, obs: Any) -> Any:
        """Observations as the agent gets them."""
        if not self._single:
            return obs
        choice, going, *_ = self._decisions
        option = np.where(going >= 0, choice - self.n_primitive + 1, 0)
        return {"observation": obs, "option": option}
