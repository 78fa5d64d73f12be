"""The map of one episode, from the windows seen and the agent's own actions."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from eigenoptions.envs.families.windows import Code, Task
from eigenoptions.explore.layouts.changes import MOVED, STAYED, Change, describe_change
from eigenoptions.explore.layouts.counts import Parts
from eigenoptions.explore.layouts.motions import SIDES, STAY, Pose, move, rotate
from eigenoptions.explore.layouts.rules import Rules, Scene
from eigenoptions.explore.layouts.windows import Seen

# A place on the map: row and column, counted from where the episode began.
Spot: TypeAlias = tuple[int, int]

# Cells that an action changes, by which the right pose may contradict the map.
_N_CHANGED = 1
# If even the best pose contradicts more than this share of the cells seen before, the
# agent was carried elsewhere: a new map begins.
_IS_LOST = 0.5
# Unknown cells count as in view from so many cells away.
_NEAR = 2


class Sight(NamedTuple):
    """A cell that is seen: its offset from the agent, and its code."""

    offset: Spot
    code: Code


class LayoutMap:
    """What is known of the layout of this episode, and where the agent is in it.

    Parameters
    ----------
    rules : Rules
        What actions do, which the map adds to.
    at : tuple of int
        Row and column of the agent in its window.
    seen : Seen
        The first window and hand.
    task : Task
        What the episode is about.

    Attributes
    ----------
    pose : Pose
        Where the agent is, counted from where it began.
    cells : dict
        The code of each place that was seen.
    hand : tuple of int
        What the agent holds.
    stood : set of Pose
        Where it was.
    version : int
        Grows with every change of `cells`.
    """

    def __init__(
        self,
        rules: Rules,
        at: tuple[int, int],
        seen: Seen,
        task: Task,
    ) -> None:
        self.rules = rules
        self.at = at
        self.task = task
        self.hand = seen.hand
        self.pose = Pose(0, 0, 0)
        self.version = 0
        self._sights = self._list_sights(seen)
        self._begin()

    def copy(self) -> LayoutMap:
        """Return the map as it is now; it does not go on with the episode."""
        twin = copy.copy(self)
        twin.cells = dict(self.cells)
        twin.stood = set(self.stood)
        return twin

    def _begin(self) -> None:
        """Begin a map here."""
        self.pose = Pose(0, 0, 0)
        self.cells: dict[Spot, Code] = {}
        self.stood: set[Pose] = set()
        # Where an action left the view as it was: it counts as blocked if this happens
        # twice, since in an empty hall a step leaves the view as it was, too.
        self._doubts: set[tuple[Pose, int]] = set()
        self._draw()

    def _list_sights(self, seen: Seen) -> list[Sight]:
        row0, column0 = self.at
        sights = []
        for row, codes in enumerate(seen.window.tolist()):
            for column, code in enumerate(codes):
                if code[0] >= 0:
                    sights.append(Sight((row - row0, column - column0), tuple(code)))
        return sights

    def _draw(self, expected: Iterable[Spot] = ()) -> bool:
        """Draw what is seen; return whether cells changed that were not expected to."""
        is_surprise = False
        for (row, column), code in self._place_sights(self.pose):
            known = self.cells.get((row, column))
            if known == code:
                continue
            self.cells[row, column] = code
            self.version += 1
            if known is not None and (row, column) not in expected:
                is_surprise = True
        self.stood.add(self.pose)
        return is_surprise

    def _place_sights(self, pose: Pose) -> Iterable[tuple[Spot, Code]]:
        """Yield where on the map each seen cell lies, if the agent is at a pose."""
        row0, column0, heading = pose
        for offset, code in self._sights:
            row, column = rotate(offset, heading)
            yield (row0 + row, column0 + column), code

    def _count_contradictions(self, pose: Pose) -> int:
        """Count the seen cells that differ from the map, if the agent is at a pose."""
        cells = self.cells
        return sum(
            cells.get(spot, code) != code for spot, code in self._place_sights(pose)
        )

    def look_at(self, pose: Pose, offset: Spot) -> Scene | None:
        """Return what an action at an offset acts on; None where it was never seen."""
        here, beyond = self.rules.find_targets(pose, offset)
        cell = self.cells.get(here)
        if cell is None:
            return None
        return Scene(cell, self.hand, self.cells.get(beyond))

    def follow(self, seen: Seen, action: int) -> None:
        """Note where an action led and what it did, by the window after it."""
        rules = self.rules
        motion = rules.motions.motions[action]
        offset = rules.find_offset(action)
        scene = self.look_at(self.pose, offset)
        here, beyond = rules.find_targets(self.pose, offset)

        before = self.pose
        sights_before = self._sights
        self._sights = self._list_sights(seen)
        pose, is_sure = self._find_pose(action, scene, sights_before)
        if pose is None:
            self.hand = seen.hand
            self._begin()
            rules.surprises["changes"].add(True)
            return

        self.pose = pose
        is_surprise = self._draw((here, beyond, (before.row, before.column)))
        rules.surprises["changes"].add(is_surprise)
        hand_before = self.hand
        self.hand = seen.hand

        has_slipped = pose not in (before, move(before, motion))
        if scene is None or motion.turns or has_slipped:
            return
        if is_sure:
            parts = self._describe(scene, hand_before, pose != before, here, beyond)
            rules.learn_effect(action, scene, parts)

    def _find_pose(
        self, action: int, scene: Scene | None, sights_before: list[Sight]
    ) -> tuple[Pose | None, bool]:
        """Return where the agent is now, and whether that is sure.

        The pose is None where no pose that an action can lead to fits the map.
        """
        motions = self.rules.motions.motions
        motion = motions[action]
        effect = None if scene is None else self.rules.predict(action, scene)
        moves = motion != STAY and (effect is None or effect.moved)
        moved = move(self.pose, motion)
        expected, other = (moved, self.pose) if moves else (self.pose, moved)
        n_expected = self._count_contradictions(expected)
        n_other = self._count_contradictions(other)
        if n_expected > _N_CHANGED:
            # The agent may have slipped: it did what another action does.
            slips = [move(self.pose, slip) for slip in motions]
            poses = [expected, other, *slips]
            contradictions = [self._count_contradictions(pose) for pose in poses]
            fewest = min(contradictions)
            if fewest > _IS_LOST * max(len(self._sights), 1):
                return None, False
            if n_expected > fewest + _N_CHANGED:
                return poses[contradictions.index(fewest)], True

        # Nothing stops an agent from turning, or from staying.
        is_certain = effect is not None or motion.turns > 0 or motion == STAY
        if n_expected < n_other or is_certain:
            return expected, True
        if self._sights != sights_before:
            return expected, False
        doubt = (self.pose, action)
        was_blocked = doubt in self._doubts
        self._doubts.add(doubt)
        return self.pose, was_blocked

    def _describe(
        self, scene: Scene, hand: Code, moved: bool, here: Spot, beyond: Spot
    ) -> Parts:
        """Return the descriptions of what an action did."""
        cell_after = self.cells.get(here)
        sees_itself = any(offset == (0, 0) for offset, _ in self._sights)
        if moved and not sees_itself:
            cell_after = None
        parts = [[MOVED if moved else STAYED]]
        parts.append(_describe_known(cell_after, scene.cell, hand))
        parts.append(describe_change(self.hand, hand, scene.cell))
        if self.rules.reach > 1:
            behind = self.cells.get(beyond)
            known = None if scene.beyond is None else behind
            parts.append(_describe_known(known, scene.beyond or (), scene.cell))
        return parts

    def find_edge(self, free: set[Code]) -> set[Spot]:
        """Return the places that were never seen, beside cells that one can enter."""
        edge = set()
        open_spots = {spot for spot, code in self.cells.items() if code in free}
        # The agent stands on a cell that it may not have seen.
        open_spots.update((row, column) for row, column, _ in self.stood)
        for row, column in open_spots:
            for step_row, step_column in SIDES:
                spot = (row + step_row, column + step_column)
                if spot not in self.cells:
                    edge.add(spot)
        return edge

    def list_near_offsets(self, shape: tuple[int, ...]) -> list[Spot]:
        """Return the offsets of the window that are near the agent."""
        offsets = []
        for row in range(shape[0]):
            for column in range(shape[1]):
                offset = (row - self.at[0], column - self.at[1])
                if abs(offset[0]) + abs(offset[1]) <= _NEAR:
                    offsets.append(offset)
        return offsets


def _describe_known(new: Code | None, old: Code, other: Code) -> list[Change]:
    """Return the descriptions of a change; none where it is not seen."""
    return [] if new is None else describe_change(new, old, other)
