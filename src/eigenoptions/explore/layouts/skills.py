"""Skills of events: walk on the map to where a rule applies, and take the action.

Each rule that changes something is a skill: "open a closed door", "pick up a key". Its
number is given when it is first met, and travels with the rules. What the rules call
impossible here is not available. Two kinds of skills are there from the start: "to the
unknown", and for each action "try it where it was never tried". One search over the map
finds the nearest end of all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigenoptions._types import IndexArray
from eigenoptions.envs.families.windows import Code, Task
from eigenoptions.explore.layouts.maps import LayoutMap, Spot
from eigenoptions.explore.layouts.motions import Pose, move, rotate
from eigenoptions.explore.layouts.rules import (
    ARRIVE,
    ENDS,
    GOES_ON,
    PAYS,
    Effect,
    Event,
    Outlook,
    Rules,
    Scene,
)
from eigenoptions.options import TERMINATE

logger = logging.getLogger("eigenoptions")

# The first skill leads to the unknown; then there is one for each action, which tries
# it where it was never tried; then come events.
TO_UNKNOWN = 0
FIRST_TRIAL = 1
# What is no skill, but found by the same search: a step that pays, and any action that
# was never tried.
REWARD = -1
UNTRIED = -2

NO_ACTION = -1
_AHEAD = (-1, 0)


def count_fixed(n_actions: int) -> int:
    """Return how many skills are there from the start; events come after them."""
    return FIRST_TRIAL + n_actions


class Affordances(NamedTuple):
    """What can be done to a cell.

    Parameters
    ----------
    enters : int
        The action that only steps there; -1: none.
    skills : list of (int, int)
        Skills that end here, and the action that each of them ends with.
    """

    enters: int
    skills: list[tuple[int, int]]


class Step(NamedTuple):
    """An action of a walk, and the pose that it leads to."""

    action: int
    pose: Pose


class Affording:
    """What can be done to the cells of a layout by the rules, remembered.

    Parameters
    ----------
    rules : Rules
        What actions do.
    n_skills : int
        How many skills there are room for.
    """

    def __init__(self, rules: Rules, n_skills: int) -> None:
        self.rules = rules
        self.n_skills = n_skills
        self.offsets: dict[Spot, list[int]] = {}
        self.turns: list[int] = []
        self._known: dict[tuple[Spot, Scene], Affordances] = {}
        self._outlooks: dict[tuple[int, Scene], Outlook] = {}
        self._stamp: tuple[object, ...] = ()
        self._floor = -1
        self._was_told = False

    def refresh(self, layout: LayoutMap) -> None:
        """Forget what was remembered, if the rules, the episode or the task changed."""
        rules = self.rules
        stamp = (rules.version, rules.episode, layout.task)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._known.clear()
        self._outlooks.clear()
        self._floor = rules.find_floor()
        self.offsets = rules.list_offsets()
        motions = rules.motions.motions
        self.turns = [a for a, motion in enumerate(motions) if motion.turns]

    def foresee(self, task: Task, action: int, scene: Scene) -> Outlook:
        """Return all that is expected of an action in a scene, remembered."""
        key = (action, scene)
        outlook = self._outlooks.get(key)
        if outlook is None:
            outlook = self.rules.foresee_all(task, action, scene)
            self._outlooks[key] = outlook
        return outlook

    def find(self, layout: LayoutMap, offset: Spot, scene: Scene) -> Affordances:
        """Return what can be done to a cell at an offset from the agent."""
        key = (offset, scene)
        affordances = self._known.get(key)
        if affordances is None:
            affordances = self._find(layout, offset, scene)
            self._known[key] = affordances
        return affordances

    def _find(self, layout: LayoutMap, offset: Spot, scene: Scene) -> Affordances:
        rules = self.rules
        enters = NO_ACTION
        skills = []
        for action in self.offsets[offset]:
            number = self._find_skill(layout, action, scene)
            if number is not None and number < self.n_skills:
                skills.append((number, action))
            if number == FIRST_TRIAL + action:
                skills.append((UNTRIED, action))
            if rules.predict_end(layout.task, action, scene) == PAYS:
                skills.append((REWARD, action))
            if self._only_steps(layout, action, scene):
                enters = action
        if offset == _AHEAD:
            skills += self._find_arrivals(layout, scene)
        return Affordances(enters, skills)

    def _find_arrivals(self, layout: LayoutMap, scene: Scene) -> list[tuple[int, int]]:
        """Return the skill of standing before a cell, where that pays or ends."""
        task = layout.task
        end = self.rules.predict_arrival(task, scene)
        if end == GOES_ON:
            return []
        is_named = task.names_cell(scene.cell)
        event = Event(ARRIVE, scene.cell[0], (ENDS,), is_named)
        number = count_fixed(self.rules.n_actions) + self.rules.number_event(event)
        self._check_room(number)
        skills = []
        if number < self.n_skills:
            skills.append((number, NO_ACTION))
        if end == PAYS:
            skills.append((REWARD, NO_ACTION))
        return skills

    def _find_skill(self, layout: LayoutMap, action: int, scene: Scene) -> int | None:
        """Return the number of the skill that ends with an action; None: no skill."""
        rules = self.rules
        task = layout.task
        if rules.is_untried(task, action, scene):
            return FIRST_TRIAL + action

        if rules.is_deadly(task, action, scene):
            return None

        changes = rules.foresee(action, scene).changes
        effect = rules.predict(action, scene)
        end = rules.predict_end(task, action, scene)
        is_step = effect is not None and effect.moved and scene.cell[0] == self._floor
        if effect is None or not _is_change(effect, scene):
            changes = None
        if is_step and end == GOES_ON:
            return None
        if changes is None:
            if end != GOES_ON:
                changes = (ENDS,)
            elif rules.is_due(task, action, scene):
                return FIRST_TRIAL + action
            else:
                return None

        if effect is not None and effect.moved and changes != (ENDS,):
            # What the agent stands on may be hidden, or not.
            changes = (changes[0], None, *changes[2:])
        is_named = task.names_cell(scene.cell)
        event = Event(action, scene.cell[0], changes, is_named)
        number = count_fixed(rules.n_actions) + rules.number_event(event)
        self._check_room(number)
        return number

    def _check_room(self, number: int) -> None:
        """Warn once where there are more events than skills."""
        if number >= self.n_skills and not self._was_told:
            self._was_told = True
            logger.warning(
                "more than %d skills were met, and the others are left out: ask for "
                "more, env.skills(%d)",
                self.n_skills,
                2 * self.n_skills,
            )

    def _only_steps(self, layout: LayoutMap, action: int, scene: Scene) -> bool:
        """Whether an action enters a cell, changes nothing else, and goes on."""
        rules = self.rules
        if rules.motions.motions[action].step == (0, 0):
            return False
        effect = rules.predict(action, scene)
        if effect is None or not effect.moved:
            return False
        changes_things = effect.hand != scene.hand or effect.beyond != scene.beyond
        ends = rules.predict_end(layout.task, action, scene) == ENDS
        return not changes_things and not ends


def _is_change(effect: Effect, scene: Scene) -> bool:
    """Whether something happens."""
    return effect.moved or (effect.cell, effect.hand) != (scene.cell, scene.hand)


class Search:
    """The nearest end of every skill, by one breadth-first search from the agent.

    Parameters
    ----------
    layout : LayoutMap
        The map so far.
    affording : Affording
        What can be done to its cells.
    near : list of tuple of int
        Offsets at which a pose looks at cells from near by.
    """

    def __init__(
        self, layout: LayoutMap, affording: Affording, near: list[Spot]
    ) -> None:
        affording.refresh(layout)
        self.ends: dict[int, tuple[Pose, int]] = {}
        self._back: dict[Pose, tuple[Pose, int] | None] = {layout.pose: None}
        self._layout = layout
        self._affording = affording
        self._near = [[rotate(offset, h) for offset in near] for h in range(4)]
        self._run()

    def _run(self) -> None:
        layout = self._layout
        affording = self._affording
        motions = affording.rules.motions.motions
        looks_behind = affording.rules.reach > 1
        cells = layout.cells
        edge = layout.find_edge(self._find_free())
        places = [
            [(offset, rotate(offset, heading)) for offset in affording.offsets]
            for heading in range(4)
        ]
        queue = deque([layout.pose])
        while queue:
            pose = queue.popleft()
            if edge and TO_UNKNOWN not in self.ends and self._shows(pose, edge):
                self.ends[TO_UNKNOWN] = (pose, NO_ACTION)
            for action in affording.turns:
                self._push(queue, pose, action, move(pose, motions[action]))
            for offset, (row, column) in places[pose.heading]:
                cell = cells.get((pose.row + row, pose.column + column))
                if cell is None:
                    continue
                beyond = None
                if looks_behind:
                    beyond = cells.get((pose.row + 2 * row, pose.column + 2 * column))
                scene = Scene(cell, layout.hand, beyond)
                affordances = affording.find(layout, offset, scene)
                for skill, action in affordances.skills:
                    self.ends.setdefault(skill, (pose, action))
                action = affordances.enters
                if action != NO_ACTION:
                    self._push(queue, pose, action, move(pose, motions[action]))

    def _push(self, queue: deque[Pose], pose: Pose, action: int, target: Pose) -> None:
        if target not in self._back:
            self._back[target] = (pose, action)
            queue.append(target)

    def _find_free(self) -> set[Code]:
        """Return the codes of cells that can be entered."""
        layout = self._layout
        free = set()
        for code in set(layout.cells.values()):
            scene = Scene(code, layout.hand)
            for offset in self._affording.offsets:
                if self._affording.find(layout, offset, scene).enters != NO_ACTION:
                    free.add(code)
        return free

    def _shows(self, pose: Pose, edge: set[Spot]) -> bool:
        """Whether a pose is new, and looks at the edge of the map from near by."""
        if pose in self._layout.stood:
            return False
        row, column, heading = pose
        return any((row + r, column + c) in edge for r, c in self._near[heading])

    def list_available(self) -> list[int]:
        """Return the skills that lead somewhere from here."""
        return [
            skill
            for skill, (pose, action) in self.ends.items()
            if skill >= 0 and (action != NO_ACTION or self._back[pose] is not None)
        ]

    def find_path(self, skill: int) -> list[Step]:
        """Return the steps to the nearest end of a skill; empty: not available."""
        if skill not in self.ends:
            return []
        pose, action = self.ends[skill]
        motions = self._affording.rules.motions.motions
        steps = []
        if action != NO_ACTION:
            # Where the last action leads does not matter.
            steps.append(Step(action, move(pose, motions[action])))
        link = self._back[pose]
        while link is not None:
            before, action = link
            steps.append(Step(action, pose))
            pose = before
            link = self._back[pose]
        return steps[::-1]


class Walk:
    """One execution of a skill: the path that it chose when it began.

    It ends where the path ends, and where the agent is not where it should be.
    """

    def __init__(self, steps: list[Step], find_pose: Callable[[], Pose | None]) -> None:
        self._steps = steps
        self._find_pose = find_pose
        self._n_taken = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, or something came otherwise."""
        if self._n_taken >= len(self._steps):
            return True
        if self._n_taken == 0:
            return False
        return self._find_pose() != self._steps[self._n_taken - 1].pose

    def act(self, obs: Any) -> int:
        """Return the next action, or TERMINATE; call it once per step."""
        if self.is_over:
            return TERMINATE
        action = self._steps[self._n_taken].action
        self._n_taken += 1
        return action


class Skill:
    """One skill of `MapWrapper`: it begins where it is available, and keeps its goal.

    Parameters
    ----------
    skills : Skills
        All skills.
    number : int
        Its number.
    """

    def __init__(self, skills: Skills, number: int) -> None:
        self._skills = skills
        self.number = number

    @property
    def label(self) -> str:
        """What the skill brings about, such as "toggle door"; empty: nothing yet."""
        return self._skills.name_skill(self.number)

    def begin(self, obs: Any) -> Walk:
        """Return the walk to the nearest end of the skill."""
        return self._skills.begin_walk(self.number)

    def act(self, obs: Any) -> int:
        """Return the first action, or TERMINATE where the skill is not available."""
        steps = self._skills.find_path(self.number)
        return steps[0].action if steps else TERMINATE

    def __repr__(self) -> str:
        return f"Skill({self.number}: {self.label or 'not met yet'})"


class SkillSource:
    """What the skills ask of `MapWrapper`."""

    rules: Rules

    def find_path(self, skill: int) -> list[Step]:
        """Return the steps of a skill from here."""
        raise NotImplementedError

    def begin_walk(self, skill: int) -> Walk:
        """Begin a skill."""
        raise NotImplementedError


class Skills(Sequence[Skill]):
    """The skills of a `MapWrapper`, for `OptionsWrapper`: options that share a map.

    Parameters
    ----------
    source : SkillSource
        The wrapper that has the map.
    n_skills : int
        How many skills there are room for.
    """

    def __init__(self, source: SkillSource, n_skills: int) -> None:
        self._source = source
        self._members = [Skill(self, number) for number in range(n_skills)]
        self.n_actions = source.rules.n_actions

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, number: Any) -> Any:
        return self._members[number]

    def choices(self, obs: Any) -> IndexArray:
        """Return the first action of each skill, -1 where it is not available."""
        return np.array([member.act(obs) for member in self._members], dtype=np.intp)

    def find_path(self, skill: int) -> list[Step]:
        """Return the steps of a skill from here; empty: not available."""
        return self._source.find_path(skill)

    def begin_walk(self, skill: int) -> Walk:
        """Begin a skill here."""
        return self._source.begin_walk(skill)

    def name_skill(self, number: int) -> str:
        """Return what a skill brings about; empty: nothing yet."""
        if number == TO_UNKNOWN:
            return "to the unknown"
        rules = self._source.rules
        first_event = count_fixed(rules.n_actions)
        if number < first_event:
            action = rules.names.name_action(number - FIRST_TRIAL)
            return f"try {action} where it was never tried"
        return rules.name_event(number - first_event)
