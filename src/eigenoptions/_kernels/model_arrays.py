"""What a search in a learned model of one step reads and returns.

It is apart from `looking_ahead`, which compiles: whoever only holds these arrays needs
no compiler.
"""

from __future__ import annotations

from typing import NamedTuple

from eigenoptions._types import BoolArray, FloatArray, IntegerArray

# Where cells begin: values that repeat, such as 0, do not lie on a border, where
# rounding would decide about their cell.
OFFSET = 0.37


class Space(NamedTuple):
    """What coordinates are: which are angles, and how many cells a turn has."""

    turns: IntegerArray  # (d,) cells of a full turn; 0: no angle
    radians: FloatArray  # (d,) of one cell
    pairs: IntegerArray  # (P, 2) the pairs of coordinates


class Smooth(NamedTuple):
    """Change of a step: hinges of the place, and a linear part of each action."""

    mean: FloatArray  # (m,) of inputs
    spread: FloatArray  # (m,)
    directions: FloatArray  # (m, H)
    offsets: FloatArray  # (H,)
    bends: FloatArray  # (H, d)
    base: FloatArray  # (A, d)
    slope: FloatArray  # (A, m, d)
    least: FloatArray  # (d,) least change
    most: FloatArray  # (d,)
    low: FloatArray  # (d,) least value, where there is a bound
    high: FloatArray  # (d,)


class Table(NamedTuple):
    """A hash table with open addresses; key 0 is free."""

    keys: IntegerArray  # (C,) uint64, C a power of two
    counts: FloatArray  # (C,)
    sums: FloatArray  # (C, d)


class Frame(NamedTuple):
    """How cells lie in the maps of pairs."""

    low: IntegerArray  # (d,) the cell in the first row
    shift: IntegerArray  # (d,) halvings, where there are many cells
    width: IntegerArray  # (d,) rows
    fine: int  # cells of the map per large step


class Novelty(NamedTuple):
    """For each pair of coordinates, how far each place is from what was seen."""

    frame: Frame
    is_known: BoolArray  # (P, W, W)
    distance: FloatArray  # (P, W, W)


class Walls(NamedTuple):
    """For each coordinate and pair, where steps failed, by where they aimed.

    What fails is nearer to a step that failed than to one that held.
    """

    frame: Frame
    limit: FloatArray  # (d,) errors above it are failures
    held: FloatArray  # (P, W, W) squared distance to the nearest step that held
    failed: FloatArray  # (d, P, W, W) to the nearest one that failed
    outcome: FloatArray  # (d, P, W, W) where that one ended
    hits: FloatArray  # (d, P) recent failures that were foreseen, minus false alarms
    failures: FloatArray  # (d,) recent failures
    explains: BoolArray  # (d, P)


class Model(NamedTuple):
    """All that is known of one step."""

    space: Space
    smooth: Smooth
    errors: Table
    walls: Walls


class Limits(NamedTuple):
    """How far a search goes."""

    level: int  # doublings of the cells in which nodes differ
    budget: int  # nodes
    effort: int  # steps that are predicted
    horizon: int  # steps
    hold: int  # longest time that an action is held
    trust: float  # in each step where nothing was seen
    power: float  # of the novelty; 0: look for the least time to go


class SearchTree(NamedTuple):
    """What a search returns: nodes, and which of them is the best; -1: none."""

    points: FloatArray  # (n, d)
    parent: IntegerArray  # (n,)
    action: IntegerArray  # (n,)
    steps: IntegerArray  # (n,)
    best: int
    effort: int  # steps that were predicted
