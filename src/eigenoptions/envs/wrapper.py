"""`OptionsWrapper`: options as extra actions, so that any agent can choose skills (paper, Section 2.2).

An option takes several steps, so the agent is in a semi-Markov decision process: after k steps its target is
``R + gamma**k max_a Q(s', a)`` with ``R = sum_i gamma**i r_i``. The wrapper returns R and tells gamma**k as
``info["discount"]``; `eigenoptions.envs.sb3` hands it to agents that would use a constant gamma.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from eigenoptions.envs.tables import count_actions, known_mdp
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet

MODES = ("call-and-return", "step")
LARGEST_TABLE = 1 << 24  # entries: beyond it a mask is worked out when it is asked for


class OptionsWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Options as extra actions: ``Discrete(n_primitive + n_options)``.

    Action ``a < n_primitive`` is the environment's own, action ``n_primitive + i`` is option i. Two modes:

    * ``"call-and-return"``: one step runs an option until it stops, the episode ends, or `max_duration` is
      reached. The reward is discounted along the way.
    * ``"step"``: one step is one primitive step. The observation is ``{"observation": obs, "option": j}`` with
      j = 0, or i + 1 while option i runs; then the mask allows nothing else, and the option goes on whatever
      action is given. Exact for agents with a constant discount; values travel back one step at a time.

    Every primitive step counts against a time limit inside: wrap the environment that has the limit, and
    truncation cuts a running option. An option that may not start here is still legal, since most agents cannot
    be kept from choosing it: one uniformly random primitive action is taken, and ``info["unavailable"]`` is True.

    Parameters
    ----------
    env
        The environment; `TimeLimit` and `Monitor` go inside, where they see primitive steps.
    options
        An `OptionSet`, or a sequence of objects whose ``act(obs)`` gives an action or TERMINATE (-1).
    gamma
        Discount of a primitive step, in (0, 1].
    mode
        ``"call-and-return"`` or ``"step"``.
    state
        From an observation to what the options act on (the state's number for an `OptionSet`); None: the
        observation is that already.
    max_duration
        Steps after which an option is cut, so that one which never stops cannot hang; ``info["cut"]`` is then True.

    Notes
    -----
    ``info`` is that of the last primitive step, with ``option`` (-1 for a primitive action), ``duration``,
    ``discount`` (gamma to the duration), ``primitive_return`` (rewards without discount) and ``action_mask`` (int8,
    also after `reset`). Where the environment has an ``action_mask`` of its own (Taxi), it is the first part.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> env = OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), options)
    >>> env.action_space
    Discrete(8)
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
    ) -> None:
        given = {
            "options": options,
            "gamma": gamma,
            "mode": mode,
            "state": state,
            "max_duration": max_duration,
        }
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **given)  # Gymnasium can make it again
        gym.Wrapper.__init__(self, env)
        self.n_primitive = count_actions(env)
        if not (isinstance(gamma, int | float | np.floating) and 0 < gamma <= 1):
            raise ValueError(f"gamma must be in (0, 1], got {gamma!r}")
        if mode not in MODES:
            raise ValueError(f'mode must be "call-and-return" or "step", got {mode!r}')
        if not isinstance(max_duration, int | np.integer) or max_duration < 1:
            raise ValueError(f"max_duration must be at least 1, got {max_duration!r}")
        if not hasattr(options, "__len__"):
            raise ValueError(
                f"options must be an OptionSet or a list of options, got {type(options).__name__}"
            )
        if len(options) == 0:
            raise ValueError("there are no options: discover at least one")
        actions = getattr(options, "n_actions", self.n_primitive)
        if not isinstance(options, OptionSet) and actions != self.n_primitive:
            raise ValueError(
                f"options of another environment: they choose among {actions} actions, this one has "
                f"{self.n_primitive}; discover options here"
            )
        if hasattr(options, "potential") and state is None:
            try:  # do the features of these options fit the observations?
                options.potential(np.asarray(env.observation_space.sample())[None], 1)
            except (ValueError, TypeError) as error:
                raise ValueError(f"options of another environment: {error}; discover options here") from None
        if isinstance(options, OptionSet):
            space = env.observation_space if state is None else None
            check_options(options, self.n_primitive, space, known_mdp(env) if options.state_space else None)
        self.options = options
        self.gamma = float(gamma)
        self.mode = mode
        self.max_duration = int(max_duration)
        self.action_space = Discrete(self.n_primitive + len(options))
        self._single = mode == "step"
        if self._single:
            self.observation_space = Dict(
                {"observation": env.observation_space, "option": Discrete(len(options) + 1)}
            )
        self._rows = _rows(options, self.n_primitive, state)
        self._masks = _masks(options, self.n_primitive) if state is None else None
        self._durations = range(1, self.max_duration)
        self._limit = env if type(env) is TimeLimit else None
        self._checked = env.env if type(env) is TimeLimit else env
        self._unchecked = _unchecked(self._checked)
        self._obs: Any = None
        self._own_mask: Any = None  # the environment's, of its own actions
        self._plain = False  # whether a mask is just a row of the table
        self._running = -1  # in mode "step": the option that goes on, and for how long already
        self._since = 0
        self._dice = np.random.default_rng()
        self._lots: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; no option is running."""
        if seed is not None:  # dice of its own: the environment draws the same numbers as without options
            self._dice = np.random.default_rng(seed)
            self._lots = []
        obs, info = self.env.reset(seed=seed, options=options)
        self._running = -1
        self._obs, self._own_mask = obs, info.get("action_mask")
        self._plain = self._masks is not None and self._own_mask is None and not self._single
        info["action_mask"] = self._masks[obs].copy() if self._plain else self._mask()  # type: ignore[index]
        return ({"observation": obs, "option": 0} if self._single else obs), info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a primitive action or an option; see the class for what comes back."""
        stop = self.n_primitive
        option = int(action) - stop if self._running < 0 else self._running
        if option < 0:
            row, choice, option = None, option + stop, -1
        else:
            row = self._rows[option] if option < len(self._rows) else None
            choice = stop if row is None else row[self._obs]
            if choice == stop:
                row, choice = None, self._lot(option)
        if choice < 0:
            raise self._refusal(choice)
        obs, reward, terminated, truncated, info = self.env.step(choice)
        gain = total = float(reward)
        duration = 1
        if row is None:
            if option >= 0:
                info["unavailable"] = True
        elif self._single:
            self._carry_on(option, not (terminated or truncated) and row[obs] != stop, info)
        elif not (terminated or truncated):
            # From here on Gymnasium's checks are stepped around: they have let the first step through.
            limit, step = self._limit, self._unchecked.step
            if limit is not None:
                limit.env, step = self._unchecked, limit.step
            try:
                for (
                    duration
                ) in self._durations:  # the loop is all that is added to the time of a primitive step
                    choice = row[obs]
                    if choice == stop:
                        break
                    obs, reward, terminated, truncated, info = step(choice)
                    if reward:
                        gain += self.gamma**duration * float(reward)
                        total += float(reward)
                    if terminated or truncated:
                        duration += 1
                        break
                else:
                    duration = self.max_duration
                    if row[obs] != stop:
                        info["cut"] = True
            finally:
                if limit is not None:
                    limit.env = self._checked
        self._obs = obs
        if not self._plain:
            self._own_mask = info.get("action_mask")
        info["option"] = option
        info["duration"] = duration
        info["discount"] = self.gamma**duration
        info["primitive_return"] = total
        info["action_mask"] = self._masks[obs].copy() if self._plain else self._mask()  # type: ignore[index]
        if self._single:
            obs = {"observation": obs, "option": self._running + 1}
        return obs, gain, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """``(n_primitive + n_options,)`` which actions may be chosen now; what MaskablePPO asks for."""
        return self._mask().astype(np.bool_)

    def _carry_on(self, option: int, going: bool, info: dict[str, Any]) -> None:
        """Keep note of an option that goes on with the next step (mode "step"), unless it is too long already."""
        self._since = self._since + 1 if option == self._running else 1
        self._running = option if going and self._since < self.max_duration else -1
        if going and self._running < 0:
            info["cut"] = True

    def _lot(self, option: int) -> int:
        """Draw a primitive action in place of an option that may not start."""
        if option >= len(self._rows):
            raise self._refusal(option + self.n_primitive)
        if not self._lots:  # many at a time: one draw costs more than a step
            self._lots = self._dice.integers(self.n_primitive, size=64).tolist()
        return self._lots.pop()

    def _refusal(self, action: int) -> ValueError:
        return ValueError(f"action must be in 0..{self.n_primitive + len(self._rows) - 1}, got {action}")

    def _mask(self) -> NDArray[np.int8]:
        """Make a fresh mask each time: callers keep what they are given."""
        n = self.n_primitive
        if self._running >= 0:
            mask = np.zeros(n + len(self._rows), dtype=np.int8)
            mask[n + self._running] = 1
            return mask
        if self._masks is not None:
            mask = self._masks[self._obs].copy()
        else:
            mask = np.array([1] * n + [row[self._obs] != n for row in self._rows], dtype=np.int8)
        if self._own_mask is not None and len(self._own_mask) == n:
            mask[:n] = self._own_mask
        return mask


class _Acting:
    """The action of an option at an observation, by subscript: of an object with `act`."""

    def __init__(self, act: Callable[[Any], int], state: Callable[[Any], Any] | None, stop: int) -> None:
        self.act = act
        self.state = state
        self.stop = stop

    def __getitem__(self, obs: Any) -> int:
        choice = int(self.act(obs if self.state is None else self.state(obs)))
        return choice if choice >= 0 else self.stop


class _Mapped:
    """A row of a table behind a user's map from observations to states; a wrong one must not read another row."""

    def __init__(self, row: Any, state: Callable[[Any], Any]) -> None:
        self.row = row
        self.state = state

    def __getitem__(self, obs: Any) -> int:
        number = int(self.state(obs))
        if not 0 <= number < len(self.row):
            raise ValueError(f"state= gave {number}, but the options know the states 0..{len(self.row) - 1}")
        return int(self.row[number])


def _rows(options: OptionSet | Sequence[Any], stop: int, state: Callable[[Any], Any] | None) -> list[Any]:
    """For each option something to subscript by the observation: an action, or `stop` where it ends."""
    if isinstance(options, OptionSet):
        table = np.where(options.policy < 0, stop, options.policy)
        # Bytes are read as fast as a list and take an eighth of its memory.
        rows = [row.astype(np.uint8).tobytes() for row in table] if stop < 256 else table.tolist()
        return rows if state is None else [_Mapped(row, state) for row in rows]
    acts = [getattr(option, "act", None) for option in options]
    if not all(map(callable, acts)):
        raise ValueError("every option needs a method act(obs): give an OptionSet or objects like Option")
    return [_Acting(act, state, stop) for act in acts]  # type: ignore[arg-type]


def _masks(options: OptionSet | Sequence[Any], n_primitive: int) -> list[NDArray[np.int8]] | None:
    """For each state its mask, unless that is too much to keep."""
    if not isinstance(options, OptionSet) or options.n_states * (n_primitive + len(options)) > LARGEST_TABLE:
        return None
    masks = np.ones((options.n_states, n_primitive + len(options)), dtype=np.int8)
    masks[:, n_primitive:] = options.initiation.T
    return list(masks)  # views: a list is subscripted faster than an array


def _unchecked(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Look under Gymnasium's own checks."""
    while type(env) is OrderEnforcing or type(env) is PassiveEnvChecker:
        env = env.env
    return env


def check_options(options: OptionSet, n_actions: int, space: gym.Space[Any] | None, mdp: MDP | None) -> None:
    """Raise ValueError where it can be told that options were made for another environment.

    `space` is that of the observations they act on (None: of something else), `mdp` the environment's, if known.
    """
    if options.n_actions != n_actions:
        raise ValueError(
            f"options of another environment: they choose among {options.n_actions} actions, this one has "
            f"{n_actions}; discover options on it (from_env)"
        )
    if space is None:
        return
    if not isinstance(space, Discrete) or space.start != 0:
        raise ValueError(
            f"these options act on the numbers of {options.n_states} states, but observations are {space}: pass "
            "state=, a function from an observation to its state's number (or wrap the environment in Numbered)"
        )
    if space.n != options.n_states:
        raise ValueError(
            f"options of another environment: they have {options.n_states} states, this one has {space.n}; "
            "discover options on it (from_env)"
        )
    if mdp is not None:
        options.check(mdp)
