"""`MapWrapper`: a map of each episode, and skills that carry over to new layouts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs

from eigenoptions._types import Float32Array
from eigenoptions._validation import check_int
from eigenoptions.envs.families import find_family
from eigenoptions.envs.families.windows import Code, Surroundings, Task, View
from eigenoptions.envs.sources import count_actions, env_name, reset_env, step_env
from eigenoptions.explore.layouts.found import LayoutFound, WayOn
from eigenoptions.explore.layouts.maps import LayoutMap
from eigenoptions.explore.layouts.motions import Pose
from eigenoptions.explore.layouts.planning import Plan, PlanSearch
from eigenoptions.explore.layouts.rules import Rules
from eigenoptions.explore.layouts.skills import (
    REWARD,
    TO_UNKNOWN,
    Affording,
    Search,
    Skills,
    SkillSource,
    Step,
    Walk,
    count_fixed,
)
from eigenoptions.explore.layouts.windows import Seen, read_view

# Before `skills` is called, events get any number.
_ANY_NUMBER = 1_000_000
# Values of one channel that an observation tells apart, in the order they were met.
_N_VALUES = 16


class MapWrapper(gym.Wrapper[Any, Any, Any, Any], SkillSource, RecordConstructorArgs):
    """A map of each episode from windows on a grid, and rules that outlive episodes.

    For environments with a new layout in every episode, of which an agent sees a
    window: MiniGrid, BabyAI, and worlds of your own. Nothing is read inside the
    environment. The wrapper learns, from the agent's own steps and without a reward,
    which actions turn and move, and what actions do to the cell in front and to the
    hand (`rules`). It draws a map of the episode (`found`). Every rule that changes
    something is a skill (`skills`), which `OptionsWrapper` offers to any agent.

    An observation is a vector of zeros and ones: the cell in front (of an agent that
    never turns: the one above), the hand, and, once `skills` was called, which skills
    are available; while a skill runs, which were when it began.

    Parameters
    ----------
    env : gymnasium.Env
        The environment, with numbered actions.
    view : callable, default=None
        ``view(obs)`` returns ``(window, hand)``. The window has integer codes, of shape
        (rows, columns) or (rows, columns, channels), the agent looks up in it (or
        north, if it never turns), and channel 0 is the kind of thing, -1 where nothing
        is seen. The hand is an integer or a tuple. None: as the family of the
        environment says (MiniGrid, BabyAI).
    rules : Rules, default=None
        What was learned already, ``other.rules`` or `load_rules`. It is learned further
        and shared; ``copy.deepcopy(rules)`` leaves it as it is. None: nothing.
    at : tuple of int, default=None
        Row and column of the agent in the window; needed with `view`.
    reach : int, default=1
        How far effects reach: 1, the cell that is acted on; 2, the one behind, too, as
        of crates that are pushed.
    task : callable, default=None
        ``task(obs)`` returns a name, or a `Task` that also names a thing. Rewards are
        learned for each task, effects for all. None: BabyAI's mission, or one task.

    Attributes
    ----------
    rules : Rules
        What actions do. It outlives resets.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> import gymnasium as gym
    >>> env = MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-5x5-v0"))
    >>> env = eo.OptionsWrapper(env, env.skills(32), primitives=False)
    >>> obs, info = env.reset(seed=0)
    >>> n_steps = eo.draw_until_won(env, wins=3)
    >>> rules = env.get_wrapper_attr("rules")
    >>> rules.unexplained.effects, "forward, goal: pays" in str(rules)
    (0.0, True)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        view: View | None = None,
        rules: Rules | None = None,
        *,
        at: tuple[int, int] | None = None,
        reach: int = 1,
        task: Callable[[Any], str | Task] | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            view=view,
            rules=rules,
            at=at,
            reach=reach,
            task=task,
        )
        gym.Wrapper.__init__(self, env)
        surroundings = _find_surroundings(env, view, at)
        self._view = surroundings.view
        self._at = surroundings.at
        self._read_task = surroundings.read_task if task is None else task
        if not isinstance(env.action_space, Discrete):
            raise ValueError(
                f"MapWrapper needs numbered actions, got {env.action_space}: for "
                "vectors use explore(env, steps)"
            )
        n_actions = count_actions(env)
        if rules is None:
            reach = check_int("reach", reach, 1, 2)
            rules = Rules(n_actions, reach, surroundings.names)
        elif rules.n_actions != n_actions:
            raise ValueError(
                f"these rules are about {rules.n_actions} actions, {env_name(env)} has "
                f"{n_actions}: give rules of the same actions, or none"
            )
        self.rules = rules

        self._n_skills = 0
        self._layout: LayoutMap | None = None
        self._seen: Seen | None = None
        self._task = Task()
        # Numbers of events need no room until skills are asked for.
        self._affording = Affording(rules, _ANY_NUMBER)
        self._search: Search | None = None
        self._walk: Walk | None = None
        self._available: Float32Array = np.zeros(0, dtype=np.float32)
        self._near: list[tuple[int, int]] = []
        self._rng = np.random.default_rng()
        self._way = WayOn(self, env_name(env))
        self._set_space()

    def _set_space(self) -> None:
        """Set the space of observations: it depends on the window and the skills."""
        obs = self.env.observation_space.sample()
        seen = self._read(obs)
        self._n_channels = seen.window.shape[2], len(seen.hand)
        size = sum(self._n_channels) * _N_VALUES + self._n_skills
        self.observation_space = Box(0.0, 1.0, (size,), np.float32)

    def _read(self, obs: Any) -> Seen:
        return read_view(self._view, obs, self._at)

    def skills(self, n: int = 32) -> Skills:
        """Return the skills, which observations then tell the availability of.

        Parameters
        ----------
        n : int, default=32
            How many skills there are room for: "to the unknown", "try what was never
            tried", and events, which get the next free number when they are first met.

        Returns
        -------
        sequence of Skill
            For ``OptionsWrapper(env, env.skills(n), primitives=False)``.
        """
        self._n_skills = check_int("n", n, count_fixed(self.rules.n_actions))
        self._affording = Affording(self.rules, n)
        self._available = np.zeros(n, dtype=np.float32)
        self._set_space()
        return Skills(self, n)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Begin an episode: a new map, by the same rules."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        obs, info = reset_env(self.env, seed=seed, options=options)
        self.rules.episode += 1
        self.rules.warn(env_name(self.env))
        task = self._read_task(obs)
        self._task = task if isinstance(task, Task) else Task(str(task))
        self._seen = self._read(obs)
        self._begin_map(self._seen)
        return self._observe(self._seen), info

    def _begin_map(self, seen: Seen) -> None:
        """Begin a map, if it is known how actions move the agent."""
        self._layout = None
        self._walk = None
        self._search = None
        if self.rules.motions.is_ready:
            self._layout = LayoutMap(self.rules, self._at, seen, self._task)
            self._near = self._layout.list_near_offsets(seen.window.shape)

    def step(
        self, action: int
    ) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Take a step, learn from it, and draw what is seen then."""
        action = int(action)
        before = self._seen
        if before is None:
            raise gym.error.ResetNeeded("call reset before step")
        obs, reward, terminated, truncated, info = step_env(self.env, action)
        reward = float(reward)
        seen = self._read(obs)
        self._seen = seen
        self._search = None
        if self._layout is not None:
            self._learn_end(self._layout, action, reward, terminated)
        # What a step that ends an episode shows may be the next layout.
        if not terminated:
            self._follow(before, action, seen)
        return self._observe(seen), reward, terminated, truncated, info

    def _learn_end(
        self, layout: LayoutMap, action: int, reward: float, terminated: bool
    ) -> None:
        """Note what a step paid, by what the action acted on."""
        scene = layout.look_at(layout.pose, self.rules.find_offset(action))
        if scene is not None:
            self.rules.learn_end(self._task, action, scene, reward, terminated)

    def _follow(self, before: Seen, action: int, seen: Seen) -> None:
        """Learn from two windows, and draw the second on the map."""
        motions = self.rules.motions
        was_ready = motions.is_ready
        is_other = motions.compare(before.window, action, seen.window, self._at)
        if is_other and was_ready:
            # What was counted belongs to other places than it seemed.
            self.rules.forget()
        if is_other or self._layout is None:
            self._begin_map(seen)
        else:
            self._layout.follow(seen, action)

    def _observe(self, seen: Seen) -> Float32Array:
        """Return the cell in front, the hand, and which skills are available."""
        row, column = self._at
        front: Code = (-1,) * self._n_channels[0]
        if row > 0:
            front = tuple(seen.window[row - 1, column].tolist())
        features = self._encode(front + seen.hand)
        if self._n_skills == 0:
            return features
        if self._walk is None or self._walk.is_over:
            self._walk = None
            self._available = np.zeros(self._n_skills, dtype=np.float32)
            self._available[self._list_available()] = 1.0
        return np.concatenate([features, self._available])

    def _encode(self, values: Code) -> Float32Array:
        """Return one row per channel: a one at the number of its value."""
        codes = self.rules.codes
        while len(codes) < len(values):
            codes.append([])
        rows = np.zeros((len(values), _N_VALUES), dtype=np.float32)
        for channel, value in enumerate(values):
            known = codes[channel]
            if value not in known and len(known) < _N_VALUES:
                known.append(value)
            if value in known:
                rows[channel, known.index(value)] = 1.0
        return rows.ravel()

    # What is known of this episode.

    @property
    def found(self) -> LayoutFound:
        """The part of this episode's layout that is known: see `LayoutFound`."""
        if self._layout is None:
            raise ValueError(
                f"{env_name(self.env)} has no map yet: reset it, and act until it is "
                "known how actions move the agent (some 300 random steps)"
            )
        return LayoutFound(
            self._layout,
            env_name(self.env),
            self.rules.episode,
            self._identify_state,
            self._way,
            self,
        )

    def _identify_state(self, env: Any, obs: Any) -> Hashable:
        """Return the present state: the episode and the pose."""
        return (self.rules.episode, *(self._find_pose() or ()))

    def find_plan(self) -> Plan:
        """Return a plan from here to what pays, else to the unknown."""
        walks = self._find_search()
        if self._layout is None or walks is None:
            return Plan([], pays=False, gave_up=False)
        return PlanSearch(self._layout, self._affording, self._near).find(walks)

    def read_progress(self) -> tuple[Pose | None, object]:
        """Return the pose, and what changes with all that is seen and learned."""
        if self._layout is None:
            return None, None
        seen = (id(self._layout), self._layout.version, self.rules.version)
        return self._layout.pose, seen

    def count_steps_to_reward(self) -> int | None:
        """Return the steps of the shortest walk to what pays; None: no way is known."""
        search = self._find_search()
        steps = [] if search is None else search.find_path(REWARD)
        return len(steps) or None

    def draw_action(self) -> int:
        """Return a random action."""
        return int(self._rng.integers(self.rules.n_actions))

    # What the skills ask for.

    def _find_search(self) -> Search | None:
        """Return the search from here; None while motions are not known."""
        if self._search is None and self._layout is not None:
            self._search = Search(self._layout, self._affording, self._near)
        return self._search

    def _list_available(self) -> list[int]:
        """Return the numbers of the skills that are available here."""
        search = self._find_search()
        if search is None:
            return [TO_UNKNOWN]
        return search.list_available() or [TO_UNKNOWN]

    def find_path(self, skill: int) -> list[Step]:
        """Return the steps of a skill from here; empty: it is not available.

        Where nothing else is left, and while it is not known how actions move the
        agent, the way to the unknown is one random action.
        """
        search = self._find_search()
        if search is not None:
            steps = search.find_path(skill)
            if steps or skill != TO_UNKNOWN:
                return steps
        if skill == TO_UNKNOWN and self._list_available() == [TO_UNKNOWN]:
            return [Step(self.draw_action(), Pose(0, 0, 0))]
        return []

    def begin_walk(self, skill: int) -> Walk:
        """Begin a skill: its path is kept until it ends."""
        self._walk = Walk(self.find_path(skill), self._find_pose)
        return self._walk

    def _find_pose(self) -> Pose | None:
        return None if self._layout is None else self._layout.pose


def _find_surroundings(
    env: gym.Env[Any, Any], view: View | None, at: tuple[int, int] | None
) -> Surroundings:
    """Return how observations are windows: as the user says, or as the family does."""
    if view is not None:
        if at is None:
            raise ValueError(
                "view= needs at=, the row and column of the agent in its window"
            )
        return Surroundings(view, at)
    surroundings = find_family(env).find_surroundings(env)
    if surroundings is None:
        raise ValueError(
            f"{env_name(env)} shows no window on a grid that is known "
            f"({env.observation_space}): give view= and at=, or, for pictures and "
            "positions, use explore(env, steps) or eo.deep"
        )
    return surroundings
