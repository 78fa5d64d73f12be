"""Which actions turn the agent or move it, learned by comparing successive windows.

A motion is a number of right turns and a step in the agent's own frame. Under the right
one, two successive windows show the same cells at the same places. So each action gets
the motion that the windows contradict least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, FloatArray, IndexArray

# A window on a grid: rows, columns and channels; channel 0 is -1 where nothing is seen.
Window = NDArray[np.int64]

# Steps after which every action must have a clear motion, or the windows are refused.
_MAX_STEPS = 1_000
# Windows that differ are compared until an action has this many.
_MAX_PAIRS = 200
# How often an action must have been tried, and changed the window, before its motion
# counts.
_MIN_TRIES = 4
_MIN_PAIRS = 3
# Where a motion leaves fewer cells to compare, as turning around may, the pair of
# windows says nothing about it: as if half of the cells differed.
_MIN_CELLS = 4
# How much less the best motion must be contradicted than the next, and how much at
# most.
_MARGIN = 0.05
_MAX_CONTRADICTED = 0.3


class Motion(NamedTuple):
    """What an action does to the agent.

    Parameters
    ----------
    turns : int
        Number of quarter turns to the right.
    step : tuple of int
        Rows and columns, in the agent's frame: ahead is (-1, 0).
    """

    turns: int
    step: tuple[int, int]


class Pose(NamedTuple):
    """Where the agent is: row, column, and heading in quarter turns to the right."""

    row: int
    column: int
    heading: int


STAY = Motion(0, (0, 0))
SIDES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_CANDIDATES = (
    STAY,
    *(Motion(turns, (0, 0)) for turns in (1, 2, 3)),
    *(Motion(0, step) for step in SIDES),
)


def rotate(offset: tuple[int, int], turns: int) -> tuple[int, int]:
    """Turn an offset to the right.

    >>> rotate((-1, 0), 1)
    (0, 1)
    """
    row, column = offset
    for _ in range(turns % 4):
        row, column = column, -row
    return row, column


def move(pose: Pose, motion: Motion) -> Pose:
    """Return the pose after a motion."""
    row, column = rotate(motion.step, pose.heading)
    heading = (pose.heading + motion.turns) % 4
    return Pose(pose.row + row, pose.column + column, heading)


@dataclass
class _Evidence:
    """How much successive windows contradict each motion of an action."""

    # The sum, over pairs of windows, of the share of cells that differ.
    contradicted: FloatArray = field(default_factory=lambda: np.zeros(len(_CANDIDATES)))
    n_pairs: int = 0
    n_tries: int = 0

    @property
    def shares(self) -> FloatArray:
        """The mean share of cells that differ under each motion."""
        return np.asarray(self.contradicted / max(self.n_pairs, 1), dtype=np.float64)

    @property
    def best(self) -> Motion:
        """The motion that is contradicted least."""
        return _CANDIDATES[int(self.contradicted.argmin())]

    @property
    def margin(self) -> float:
        """How much less it is contradicted than the next."""
        first, second = np.sort(self.shares)[:2]
        return float(second - first)

    @property
    def is_clear(self) -> bool:
        """Whether one motion fits the windows, and no other does as well."""
        fits = self.shares.min() <= _MAX_CONTRADICTED
        return bool(fits and self.margin >= _MARGIN)


class Motions:
    """The motion of each action, so far.

    Parameters
    ----------
    n_actions : int
        Number of actions.
    """

    def __init__(self, n_actions: int) -> None:
        self.evidence = [_Evidence() for _ in range(n_actions)]
        self.motions = [STAY] * n_actions
        self.is_ready = False
        self._n_steps = 0
        self._overlaps: dict[tuple[int, ...], list[tuple[IndexArray, ...]]] = {}

    @property
    def turns(self) -> bool:
        """Whether the agent has a heading: some action turns it."""
        return any(motion.turns for motion in self.motions)

    def compare(
        self, before: Window, action: int, after: Window, at: tuple[int, int]
    ) -> bool:
        """Compare successive windows; return whether a motion is another than before.

        Raises
        ------
        ValueError
            If no motion is clear after many steps.
        """
        evidence = self.evidence[action]
        evidence.n_tries += 1
        self._n_steps += 1
        # Where nothing changes, nothing happened, or nothing that can be seen.
        if evidence.n_pairs < _MAX_PAIRS and not np.array_equal(before, after):
            self._add_pair(evidence, before, after, at)
        is_changed = self._update(action)
        if not self.is_ready:
            self.is_ready = self._is_clear()
            if not self.is_ready and self._n_steps >= _MAX_STEPS:
                self._refuse()
        return is_changed and self.is_ready

    def _add_pair(
        self, evidence: _Evidence, before: Window, after: Window, at: tuple[int, int]
    ) -> None:
        """Count how much two windows contradict each motion."""
        evidence.n_pairs += 1
        overlaps = self._find_overlaps(before.shape, at)
        for number, overlap in enumerate(overlaps):
            old_rows, old_columns, rows, columns = overlap
            old = before[old_rows, old_columns]
            new = after[rows, columns]
            is_seen: BoolArray = (old[:, 0] >= 0) & (new[:, 0] >= 0)
            is_wrong = (old != new).any(axis=1) & is_seen
            share = 0.5
            if is_seen.sum() >= _MIN_CELLS:
                # A cell that agrees says less in a small overlap.
                share = (is_wrong.sum() + 0.5) / (is_seen.sum() + 1.0)
            evidence.contradicted[number] += share

    def _find_overlaps(
        self, shape: tuple[int, ...], at: tuple[int, int]
    ) -> list[tuple[IndexArray, ...]]:
        """Return, for each motion, which cells of two windows are the same places."""
        if shape not in self._overlaps:
            self._overlaps[shape] = [
                _overlap_windows(shape, at, motion) for motion in _CANDIDATES
            ]
        return self._overlaps[shape]

    def _update(self, action: int) -> bool:
        """Take the best motion of an action; return whether it is another."""
        evidence = self.evidence[action]
        if evidence.n_pairs < _MIN_PAIRS or not evidence.is_clear:
            return False
        is_other = evidence.best != self.motions[action]
        self.motions[action] = evidence.best
        return is_other

    def _is_clear(self) -> bool:
        """Whether all actions were tried, and some are known to step."""
        if any(evidence.n_tries < _MIN_TRIES for evidence in self.evidence):
            return False
        often = [e for e in self.evidence if e.n_pairs >= _MIN_PAIRS]
        steps = any(motion.step != (0, 0) for motion in self.motions)
        return steps and all(evidence.is_clear for evidence in often)

    def _refuse(self) -> None:
        """Say which action has no clear motion."""
        unclear = [
            (evidence.margin, action)
            for action, evidence in enumerate(self.evidence)
            if evidence.n_pairs and not evidence.is_clear
        ]
        assumption = (
            "MapWrapper assumes a window on a grid with steps of one cell: correct "
            "view= and at=, or use explore(env, steps)"
        )
        if not unclear:
            raise ValueError(
                f"no action was seen to step in {self._n_steps:,} steps; {assumption}"
            )
        margin, action = min(unclear)
        share = self.evidence[action].shares.min()
        raise ValueError(
            f"after {self._n_steps:,} steps it is not clear how action {action} moves "
            f"the agent: the windows contradict the best motion in {share:.0%} of the "
            f"cells, and the next in {share + margin:.0%} (at most "
            f"{_MAX_CONTRADICTED:.0%}, and {_MARGIN:.0%} apart, are needed); "
            f"{assumption}"
        )


def _overlap_windows(
    shape: tuple[int, ...], at: tuple[int, int], motion: Motion
) -> tuple[IndexArray, ...]:
    """Return rows and columns in the old window, and of the same places in the new."""
    pairs = []
    for row, column in product(range(shape[0]), range(shape[1])):
        offset = rotate((row - at[0], column - at[1]), motion.turns)
        old_row = offset[0] + motion.step[0] + at[0]
        old_column = offset[1] + motion.step[1] + at[1]
        if 0 <= old_row < shape[0] and 0 <= old_column < shape[1]:
            pairs.append((old_row, old_column, row, column))
    return tuple(np.array(pairs, dtype=np.intp).reshape(-1, 4).T)
