"""The way to what pays, by the rules: a search over poses, the hand and changed cells.

A plan may open doors, carry keys and put them down. Without bounds such a search
explodes, so a change is planned only where it lets the agent do something more, and
things are put down only where something has just changed.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from eigenoptions.envs.families.windows import Code
from eigenoptions.explore.layouts.maps import LayoutMap, Spot
from eigenoptions.explore.layouts.motions import SIDES, Pose, move, rotate
from eigenoptions.explore.layouts.rules import ENDS, PAYS, Effect, Rules, Scene
from eigenoptions.explore.layouts.skills import (
    REWARD,
    TO_UNKNOWN,
    UNTRIED,
    Affording,
    Search,
    Step,
    count_fixed,
)

# Situations that one search looks at, before it gives up.
_MAX_SITUATIONS = 2_000
# Changes of the world in one plan: few at first, then more.
_CHANGES = (1, 6)

Changes = tuple[tuple[Spot, Code], ...]


class Situation(NamedTuple):
    """What a plan has come to.

    Parameters
    ----------
    pose : Pose
        Where the agent is.
    hand : tuple of int
        What it holds.
    changes : tuple
        Cells that the plan has changed, and their codes.
    is_fresh : bool
        Whether nothing was stepped since something changed.
    """

    pose: Pose
    hand: Code
    changes: Changes
    is_fresh: bool


class Plan(NamedTuple):
    """Steps to a target, and what the target is.

    Parameters
    ----------
    steps : list of Step
        The steps; empty: no target was found.
    pays : bool
        Whether the last step pays.
    gave_up : bool
        Whether the search ended at its bound.
    """

    steps: list[Step]
    pays: bool
    gave_up: bool


class PlanSearch:
    """Searches plans on the map of an episode.

    The target is a step that pays. Where none is known on the way, it is a place that
    shows the unknown, or an action that was never tried; while it is not known what
    pays in this task, the nearer of both.

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
        self._layout = layout
        self._rules: Rules = layout.rules
        self._affording = affording
        affording.refresh(layout)
        self._near = [[rotate(offset, h) for offset in near] for h in range(4)]
        self._is_turn = [bool(motion.turns) for motion in layout.rules.motions.motions]
        self._offsets = [
            layout.rules.find_offset(action) for action in range(len(self._is_turn))
        ]
        self._free: dict[tuple[Code, Code], bool] = {}
        self._useful: dict[tuple[Code, Code], set[tuple[int, bool, Code]]] = {}

    def find(self, walks: Search) -> Plan:
        """Return the plan to the best target.

        Parameters
        ----------
        walks : Search
            What is reached by walking alone, which is found sooner.
        """
        to_reward = walks.find_path(REWARD)
        if to_reward:
            return Plan(to_reward, pays=True, gave_up=False)
        nearby = [target for target in walks.ends if target in self._list_targets()]
        first_event = count_fixed(self._rules.n_actions)
        can_change = any(skill >= first_event for skill in walks.ends)
        # What pays may be in sight, and out of reach without changes of the world.
        is_blocked = can_change and self._sees_reward()
        if nearby and not is_blocked:
            # The nearest comes first in the search.
            return Plan(walks.find_path(nearby[0]), pays=False, gave_up=False)

        plan = Plan([], False, False)
        for n_changes in _CHANGES:
            tried = self._search(n_changes)
            gave_up = plan.gave_up or tried.gave_up
            if tried.pays or not plan.steps:
                plan = tried
            plan = plan._replace(gave_up=gave_up)
            if plan.pays or (plan.steps and not self._sees_reward()):
                break
        return plan

    def _list_targets(self) -> tuple[int, ...]:
        """Return what is worth a walk: what is untried, too, until something paid."""
        if self._list_paying_kinds():
            return (TO_UNKNOWN,)
        return (TO_UNKNOWN, UNTRIED)

    def _sees_reward(self) -> bool:
        """Whether the map has a kind of cell that paid in this task."""
        kinds = self._list_paying_kinds()
        return any(code[0] in kinds for code in self._layout.cells.values())

    def _list_paying_kinds(self) -> set[int]:
        counts = self._rules.tasks.get(self._layout.task.name)
        if counts is None:
            return set()
        return {
            kind
            for (_, kind), tallies in counts.tallies.items()
            if any(tally.parts[0][PAYS] for tally in tallies.values())
        }

    def _search(self, most_changes: int) -> Plan:
        """Search breadth first, with a number of changes of the world at most."""
        layout = self._layout
        start = Situation(layout.pose, layout.hand, (), True)
        back: dict[Situation, tuple[Situation, int] | None] = {start: None}
        queue = deque([start])
        edge = layout.find_edge(self._list_free_codes())
        knows_reward = bool(self._list_paying_kinds())
        sees_reward = self._sees_reward()
        unknown: tuple[Situation, int | None] | None = None
        untried: tuple[Situation, int | None] | None = None
        n_seen = 0
        while queue and n_seen < _MAX_SITUATIONS:
            situation = queue.popleft()
            n_seen += 1
            if unknown is None and self._shows_unknown(situation, edge):
                unknown = (situation, None)
            for action in range(len(self._is_turn)):
                if self._is_turn[action]:
                    following = self._turn(situation, action)
                    scene = None
                else:
                    following = None
                    scene = self._look(situation, action)
                if scene is not None:
                    outlook = self._affording.foresee(layout.task, action, scene)
                    if outlook.end == PAYS:
                        steps = self._trace(back, (situation, action))
                        return Plan(steps, True, False)
                    if outlook.is_open and untried is None:
                        untried = (situation, action)
                    if outlook.end != ENDS and outlook.effect is not None:
                        following = self._follow(
                            situation, action, scene, outlook.effect, most_changes
                        )
                if following is not None and following not in back:
                    back[following] = (situation, action)
                    queue.append(following)
            # Nothing that paid is in sight: what is nearest will do.
            if not knows_reward and (unknown or untried):
                break
            if unknown and not sees_reward:
                break
        target = unknown or untried
        if not knows_reward and untried is not None:
            target = untried
        gave_up = n_seen >= _MAX_SITUATIONS
        if target is None:
            return Plan([], False, gave_up)
        return Plan(self._trace(back, target), False, gave_up)

    def _turn(self, situation: Situation, action: int) -> Situation | None:
        """Return the situation after a turn."""
        motion = self._rules.motions.motions[action]
        return situation._replace(pose=move(situation.pose, motion))

    def _look(self, situation: Situation, action: int) -> Scene | None:
        """Return what an action acts on, with the changes of the plan."""
        here, beyond = self._rules.find_targets(situation.pose, self._offsets[action])
        cell = self._layout.cells.get(here)
        behind = self._layout.cells.get(beyond)
        for spot, code in situation.changes:
            if spot == here:
                cell = code
            elif spot == beyond:
                behind = code
        if cell is None:
            return None
        return Scene(cell, situation.hand, behind)

    def _follow(
        self,
        situation: Situation,
        action: int,
        scene: Scene,
        effect: Effect,
        most_changes: int,
    ) -> Situation | None:
        """Return the situation after an effect; None where it is of no use."""
        pose = situation.pose
        if effect.moved:
            pose = move(pose, self._rules.motions.motions[action])
        if not self._changes_things(effect, scene):
            if not effect.moved:
                return None
            return situation._replace(pose=pose, is_fresh=False)
        if not self._is_useful(situation, effect, scene):
            return None

        offset = self._offsets[action]
        here, beyond = self._rules.find_targets(situation.pose, offset)
        changed = dict(situation.changes)
        if len(changed) >= most_changes or (here in changed and not effect.moved):
            return None
        changed[here] = effect.cell
        if effect.beyond is not None and effect.beyond != scene.beyond:
            changed[beyond] = effect.beyond
        return Situation(pose, effect.hand, tuple(sorted(changed.items())), True)

    def _changes_things(self, effect: Effect, scene: Scene) -> bool:
        """Whether a cell or the hand changes."""
        before = (scene.cell, scene.hand, scene.beyond)
        return (effect.cell, effect.hand, effect.beyond) != before

    def _is_useful(self, situation: Situation, effect: Effect, scene: Scene) -> bool:
        """Whether a change lets the agent do something that it could not do before."""
        if effect.moved:
            return True
        was_free = self._is_free(scene.cell, scene.hand)
        blocks = was_free and not self._is_free(effect.cell, effect.hand)
        if blocks and not situation.is_fresh:
            return False
        if effect.hand != scene.hand:
            return True
        gains = self._list_uses(effect.cell, effect.hand)
        return bool(gains - self._list_uses(scene.cell, effect.hand))

    def _is_free(self, cell: Code, hand: Code) -> bool:
        """Whether a cell can be entered."""
        key = (cell, hand)
        if key not in self._free:
            self._free[key] = any(moved for _, moved, _ in self._list_uses(cell, hand))
        return self._free[key]

    def _list_uses(self, cell: Code, hand: Code) -> set[tuple[int, bool, Code]]:
        """Return what a cell lets the agent do: enter it, or change what it holds."""
        key = (cell, hand)
        if key not in self._useful:
            task = self._layout.task
            uses = set()
            for actions in self._affording.offsets.values():
                for action in actions:
                    scene = Scene(cell, hand)
                    effect = self._affording.foresee(task, action, scene).effect
                    if effect and (effect.moved or effect.hand != hand):
                        uses.add((action, effect.moved, effect.hand))
            self._useful[key] = uses
        return self._useful[key]

    def _list_free_codes(self) -> set[Code]:
        hand = self._layout.hand
        codes = set(self._layout.cells.values())
        return {code for code in codes if self._is_free(code, hand)}

    def _shows_unknown(self, situation: Situation, edge: set[Spot]) -> bool:
        """Whether a pose is new and looks at the unknown, also behind opened cells."""
        pose = situation.pose
        if pose in self._layout.stood:
            return False
        row, column, heading = pose
        opened = edge
        if situation.changes:
            opened = edge | self._find_opened(situation)
        return any((row + r, column + c) in opened for r, c in self._near[heading])

    def _find_opened(self, situation: Situation) -> set[Spot]:
        """Return unseen places beside cells that the plan has made free."""
        spots: set[Spot] = set()
        for (row, column), code in situation.changes:
            if self._is_free(code, situation.hand):
                sides = ((row + r, column + c) for r, c in SIDES)
                spots.update(spot for spot in sides if spot not in self._layout.cells)
        return spots

    def _trace(
        self,
        back: dict[Situation, tuple[Situation, int] | None],
        target: tuple[Situation, int | None],
    ) -> list[Step]:
        """Return the steps to a target."""
        situation, action = target
        motions = self._rules.motions.motions
        steps = []
        if action is not None:
            steps.append(Step(action, move(situation.pose, motions[action])))
        link = back[situation]
        while link is not None:
            before, taken = link
            steps.append(Step(taken, situation.pose))
            situation = before
            link = back[situation]
        return steps[::-1]
