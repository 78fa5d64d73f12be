"""`OptionsWrapper`: options as extra actions, so that any agent can choose skills (paper, Section 2.2).

An option takes several steps, so the agent is in a semi-Markov decision process: after k steps its target is
``R + gamma**k max_a Q(s', a)`` with ``R = sum_i gamma**i r_i``. The wrapper returns R, and gamma**k as
``info["discount"]``; `eigenoptions.envs.sb3` passes it to agents that would use a constant gamma.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.envs.fit import check_fit
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs.spaces import OptionsSpace
from eigenoptions.options import OptionSet
from eigenoptions.options.stopping import begun

MODES = ("call-and-return", "step")
# Chance that a random action is an option: its exact diffusion time is within 1.8 times the best possible for 4 to 64
# eigenoptions of the three domains of the paper, while larger chances fail on large maps (docs/agents.md).
OPTION_CHANCE = 0.05
# Most entries of a table of masks; larger ones are computed per state when they are needed.
LARGEST_TABLE = 1 << 24
# Random actions drawn at a time, and copies of a mask made at a time: a single one takes a third of the time of a step.
DRAWS = 64
COPIES = 32


class PrimitiveStep(NamedTuple):
    """One primitive step inside an option: what an agent that takes actions only would have seen.

    Examples
    --------
    >>> PrimitiveStep(0, 1, 0.0, 1, 0.99, np.ones(2, dtype=np.int8)).next_obs
    1
    """

    obs: Any
    action: int
    reward: float
    next_obs: Any
    discount: float
    action_mask: NDArray[np.int8]


class OptionsWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Options as extra actions: an action space of ``n_primitive + n_options`` choices.

    Action ``a < n_primitive`` is the environment's own, action ``n_primitive + i`` is option i. Two modes:

    * ``"call-and-return"``: one step runs an option until it stops, the episode ends, or `max_duration` is
      reached. The reward is discounted along the way.
    * ``"step"``: one step is one primitive step. The observation is ``{"observation": obs, "option": j}`` with
      j = 0, or i + 1 while option i runs; then the mask allows nothing else, and the option continues whatever
      action is given. Exact for agents with a constant discount; values propagate back one step at a time.

    Every primitive step counts against a time limit inside: wrap the environment that has the limit, and
    truncation cuts a running option. An option that may not start here is still a legal action, since most agents
    do not use masks: one uniformly random primitive action is taken, and ``info["unavailable"]`` is True.

    Agents that explore by ``action_space.sample()`` draw an option with probability `option_chance` only, and one that
    may start (see `OptionsSpace`). Chosen uniformly, options take most of the steps and can hinder the search (see
    `best_option_chance`).

    Parameters
    ----------
    env
        The environment; `TimeLimit` and `Monitor` go inside, where they see primitive steps.
    options
        An `OptionSet`, or a sequence of objects whose ``act(obs)`` gives an action or TERMINATE (-1).
    gamma
        Discount per primitive step, in (0, 1].
    mode
        ``"call-and-return"`` or ``"step"``.
    state
        Function from an observation to the options' input (the state number for an `OptionSet`); None: options act
        on the observation itself.
    max_duration
        Steps after which an option is cut, in case it never stops; ``info["cut"]`` is then True.
    option_chance
        Probability that ``action_space.sample()`` is an option, where one may start. None: uniform over actions and
        options that may start.
    record_steps
        Also return the primitive steps inside an option, as a list of `PrimitiveStep` in ``info["steps"]``: data for
        intra-option learning.

    Notes
    -----
    ``info`` is that of the last primitive step, with ``option`` (-1 for a primitive action), ``duration``,
    ``discount`` (gamma to the duration), ``primitive_return`` (rewards without discount) and ``action_mask`` (int8,
    also after `reset`). Where the environment has an ``action_mask`` of its
    own (Taxi), it is the first part.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> env = OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), options)
    >>> env.action_space
    OptionsSpace(4, 4, option_chance=0.05)
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
        option_chance: float | None = OPTION_CHANCE,
        record_steps: bool = False,
    ) -> None:
        # Gymnasium rebuilds the wrapper from these.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            options=options,
            gamma=gamma,
            mode=mode,
            state=state,
            max_duration=max_duration,
            option_chance=option_chance,
            record_steps=record_steps,
        )
        gym.Wrapper.__init__(self, env)
        self.gamma = check_float("gamma", gamma, above=0, maximum=1)
        self.mode = check_choice("mode", mode, MODES)
        self.max_duration = check_int("max_duration", max_duration)
        self.n_primitive = check_fit(env, options, mapped=state is not None)
        self.options = options
        self.action_space = self._space = OptionsSpace(self.n_primitive, len(options), option_chance)
        self._space.source = self._known_mask
        self._single = mode == "step"
        self._record = record_steps
        if self._single:
            self.observation_space = Dict(
                {"observation": env.observation_space, "option": Discrete(len(options) + 1)}
            )
        self._rows = _rows(options, self.n_primitive, state)
        self._state = state
        self._masks = _masks(options, self.n_primitive) if state is None else None
        # Copies of the mask of each state for the caller, who may change them; states of the same mask share a list.
        lists: dict[bytes, list[NDArray[np.int8]]] = {}
        self._copies = [lists.setdefault(mask.tobytes(), []) for mask in self._masks or ()]
        # The first step goes through Gymnasium's checkers, later ones around them: see `_go_around`.
        self._step: Callable[[Any], Any] = env.step
        self._limit: Any = None
        self._passed = self._fast = False
        # A maze of ours, which takes steps without the tuples and checks of Gymnasium, and its table; or None.
        self._maze: Any = None
        self._table: Any = None
        # Entries of the info of every primitive action; `_describe` writes the same for options.
        self._entries = {"option": -1, "duration": 1, "discount": self.gamma, "primitive_return": 0.0}
        self._obs: Any = None
        # The current mask, the environment's own of its actions, and whether masks are rows of the table as they are.
        self._mask: Any = None
        self._own_mask: Any = None
        self._plain = False
        # In mode "step": the option that continues, and the number of its steps so far.
        self._running = -1
        self._since = 0
        # The object that chooses its actions, and the one it has chosen.
        self._continued: tuple[Any, int] = (None, 0)
        self._rng = np.random.default_rng()
        self._draws: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; no option is running."""
        if seed is not None:
            # A generator of its own: the environment draws the same numbers as without options.
            self._rng = np.random.default_rng(seed)
            self._draws = []
        obs, info = self.env.reset(seed=seed, options=options)
        self._running = -1
        self._obs, self._own_mask = obs, info.get("action_mask")
        self._plain = self._masks is not None and self._own_mask is None and not self._single
        self._fast = self._plain and self._passed
        info["action_mask"] = self._current_mask()
        return ({"observation": obs, "option": 0} if self._single else obs), info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a primitive action or an option; the class describes the result."""
        if not (self._fast and 0 <= action < self.n_primitive):
            return self._decide(int(action))
        # The common case in as few operations as possible: the time of an environment may be below a microsecond.
        table, maze = self._table, self._maze
        if table is None:
            obs, reward, terminated, truncated, info = self._step(action)
            if reward.__class__ is not float:
                reward = float(reward)
            info |= self._entries
            info["primitive_return"] = reward
        else:
            # The line of `MazeEnv.move`, without a call.
            if action.__class__ is not int:
                action = int(action)
            obs = maze.state = table[maze.state * self.n_primitive + action]
            info = self._entries.copy()
            reward, terminated, truncated = 0.0, False, False
            if obs == maze.goal:
                info["primitive_return"] = reward = 1.0
                terminated = True
        limit = self._limit
        if limit is not None:
            limit._elapsed_steps = elapsed = limit._elapsed_steps + 1
            if elapsed >= limit._max_episode_steps:
                truncated = True
        self._obs = obs
        copies = self._copies[obs]
        info["action_mask"] = copies.pop() if copies else self._new_copy(obs)
        return obs, reward, terminated, truncated, info

    def _decide(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step of any kind, also the first one."""
        stop = self.n_primitive
        option, row, choice = self._resolve(action)
        step, limit, most = self._step, self._limit, 1 if row is None or self._single else self.max_duration
        gain, total, duration = 0.0, 0.0, 0
        path: list[PrimitiveStep] | None = [] if self._record and row is not None else None
        if self._maze is not None and self._fast and row is not None and path is None:
            return self._through_maze(option, row, choice)
        # This loop is the whole overhead per primitive step.
        while True:
            obs, reward, terminated, truncated, info = step(choice)
            duration += 1
            if limit is not None:
                limit._elapsed_steps += 1
                truncated = truncated or limit._elapsed_steps >= limit._max_episode_steps
            if reward:
                total += float(reward)
                gain += self.gamma ** (duration - 1) * float(reward)
            if path is not None:
                mask = self._mask_at(obs, info.get("action_mask"))
                before = path[-1].next_obs if path else self._obs
                path.append(PrimitiveStep(before, choice, float(reward), obs, self.gamma, mask))
            if terminated or truncated or row is None:
                break
            choice = row[obs]
            if choice == stop:
                break
            if duration >= most:
                if not self._single:
                    info["cut"] = True
                break
        if path is not None:
            info["steps"] = path
        self._obs = obs
        info["primitive_return"] = total
        self._describe(info, option, row, choice, duration, terminated or truncated)
        if self._single:
            obs = {"observation": obs, "option": self._running + 1}
        return obs, gain, terminated, truncated, info

    def _through_maze(
        self, option: int, row: Any, choice: int
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The loop of `_decide` on the table of a maze, whose only reward is 1 at the goal."""
        maze, limit, left = self._maze, self._limit, self.max_duration
        if limit is not None:
            left = min(left, limit._max_episode_steps - limit._elapsed_steps)
        duration, choice = maze.follow(choice, row, left)
        truncated = False
        if limit is not None:
            limit._elapsed_steps += duration
            truncated = limit._elapsed_steps >= limit._max_episode_steps
        self._obs = state = maze.state
        terminated = state == maze.goal
        info: dict[str, Any] = {"primitive_return": float(terminated)}
        if not (terminated or truncated or choice == self.n_primitive):
            info["cut"] = True
        self._describe(info, option, row, choice, duration, terminated or truncated)
        return state, self.gamma ** (duration - 1) if terminated else 0.0, terminated, truncated, info

    def _describe(
        self, info: dict[str, Any], option: int, row: Any, choice: int, duration: int, ended: bool
    ) -> None:
        """Add what a decision was to `info`, and remember what the next one needs."""
        if not self._passed:
            self._go_around()
        if row is None:
            if option >= 0:
                info["unavailable"] = True
        elif self._single:
            # The option goes on with the next step, unless it has reached `max_duration`.
            self._since = self._since + 1 if option == self._running else 1
            going = not ended and choice != self.n_primitive
            self._running = option if going and self._since < self.max_duration else -1
            self._continued = row, choice
            if going and self._running < 0:
                info["cut"] = True
        if not self._plain:
            self._own_mask = info.get("action_mask")
        info["option"] = option
        info["duration"] = duration
        info["discount"] = self.gamma if duration == 1 else self.gamma**duration
        info["action_mask"] = self._current_mask()

    def action_masks(self) -> NDArray[np.bool_]:
        """``(n_primitive + n_options,)`` which actions may be chosen now; MaskablePPO calls this."""
        return np.asarray(self._known_mask(), dtype=np.bool_)

    def _resolve(self, action: int) -> tuple[int, Any, int]:
        """The option (-1: none), the object that chooses its actions (None: one primitive action), and the action."""
        stop = self.n_primitive
        option = action - stop if self._running < 0 else self._running
        if option < 0:
            if action < 0:
                raise self._refusal(action)
            return -1, None, action
        if self._running >= 0:
            return option, *self._continued
        row = self._rows[option] if option < len(self._rows) else None
        if type(row) is _Acting:
            row = row.begin(self._rng)
        choice = stop if row is None else row[self._obs]
        return (option, None, self._draw(option)) if choice == stop else (option, row, choice)

    def _go_around(self) -> None:
        """After the first step, step around Gymnasium's checkers and its time limit, which counts here instead.

        That saves two or three calls per step; the checkers look at the first step only.
        """
        self._passed, self._fast = True, self._plain
        inner: Any = self.env
        if type(inner) is TimeLimit:
            self._limit, inner = inner, inner.env
        while type(inner) is OrderEnforcing or type(inner) is PassiveEnvChecker:
            inner = inner.env
        self._step = inner.step
        # Not where a subclass or a user has another `step`.
        if getattr(inner.step, "__func__", None) is MazeEnv.step:
            self._maze, self._table = inner, inner.following

    def _draw(self, option: int) -> int:
        """Random primitive action in place of an option that may not start."""
        if option >= len(self._rows):
            raise self._refusal(option + self.n_primitive)
        if not self._draws:
            self._draws = self._rng.integers(self.n_primitive, size=DRAWS).tolist()
        return self._draws.pop()

    def _refusal(self, action: int) -> ValueError:
        return ValueError(f"action must be in 0..{self.n_primitive + len(self._rows) - 1}, got {action}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and pickles: the action space of a copy asks the copy for its mask."""
        self.__dict__.update(state)
        self._space.source = self._known_mask

    def _known_mask(self) -> Any:
        """The current mask; None before the first reset."""
        return self._masks[self._obs] if self._plain else self._mask  # type: ignore[index]

    def _current_mask(self) -> NDArray[np.int8]:
        """Find the mask of the current observation; a copy for the caller, who may change it."""
        if self._running >= 0:
            self._mask = np.zeros(self.n_primitive + len(self._rows), dtype=np.int8)
            self._mask[self.n_primitive + self._running] = 1
        elif not self._plain:
            self._mask = self._mask_at(self._obs, self._own_mask)
        mask: NDArray[np.int8] = self._known_mask().copy()
        return mask

    def _new_copy(self, obs: int) -> NDArray[np.int8]:
        """A copy of the mask of a state, with others for later steps: rows of a new array."""
        copies, mask = self._copies[obs], self._masks[obs]  # type: ignore[index]
        copies.extend(mask[None].repeat(COPIES, axis=0))
        return copies.pop()

    def _mask_at(self, obs: Any, own: Any) -> NDArray[np.int8]:
        """A new array with the mask of an observation where no option runs; `own` is the environment's mask."""
        n = self.n_primitive
        if self._masks is not None:
            mask: NDArray[np.int8] = self._masks[obs].copy()
        elif hasattr(self.options, "choices") and not isinstance(self.options, OptionSet):
            # All options at once: they share the features, or the look ahead, of an observation.
            mask = np.ones(n + len(self._rows), dtype=np.int8)
            mask[n:] = self.options.choices(obs if self._state is None else self._state(obs)) >= 0
        else:
            mask = np.array([1] * n + [row[obs] != n for row in self._rows], dtype=np.int8)
        if own is not None and len(own) == n:
            mask[:n] = own
        return mask


class _Acting:
    """Actions of an object with `act`, by subscript of the observation."""

    def __init__(self, option: Any, state: Callable[[Any], Any] | None, stop: int) -> None:
        self.option = option
        self.state = state
        self.stop = stop

    def begin(self, rng: np.random.Generator) -> _Acting:
        """The same for one execution of an option, which may remember its steps."""
        started = begun(self.option, rng)
        return self if started is self.option else _Acting(started, self.state, self.stop)

    def __getitem__(self, obs: Any) -> int:
        choice = int(self.option.act(obs if self.state is None else self.state(obs)))
        return choice if choice >= 0 else self.stop


class _Mapped:
    """A row of a table, by subscript of the observation; a wrong state number must not read another entry."""

    def __init__(self, row: Any, state: Callable[[Any], Any]) -> None:
        self.row = row
        self.state = state

    def __getitem__(self, obs: Any) -> int:
        number = int(self.state(obs))
        if not 0 <= number < len(self.row):
            raise ValueError(f"state= gave {number}, but the options know the states 0..{len(self.row) - 1}")
        return int(self.row[number])


def _rows(options: OptionSet | Sequence[Any], stop: int, state: Callable[[Any], Any] | None) -> list[Any]:
    """One object per option to subscript by the observation: it gives an action, or `stop` where the option ends."""
    if isinstance(options, OptionSet):
        table = np.where(options.policy < 0, stop, options.policy)
        # Bytes are read as fast as a list and take an eighth of its memory.
        rows = [row.astype(np.uint8).tobytes() for row in table] if stop < 256 else table.tolist()
        return rows if state is None else [_Mapped(row, state) for row in rows]
    return [_Acting(option, state, stop) for option in options]


def _masks(options: OptionSet | Sequence[Any], n_primitive: int) -> list[NDArray[np.int8]] | None:
    """Mask of each state, or None if the table would be too large."""
    if not isinstance(options, OptionSet) or options.n_states * (n_primitive + len(options)) > LARGEST_TABLE:
        return None
    masks = np.ones((options.n_states, n_primitive + len(options)), dtype=np.int8)
    masks[:, n_primitive:] = options.initiation.T
    # A list of views is subscripted faster than an array.
    return list(masks)
