"""`KnownSpace`: what is known of a space of vectors, and where it ends.

All steps so far become points in large steps (`axes`), a model of one step
(`step_model`), and maps of how far each place is from what was seen, one for each pair
of coordinates. A search in this model finds the way with the most novelty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eigenoptions._kernels.model_arrays import (
    OFFSET,
    Limits,
    Model,
    Novelty,
    SearchTree,
    Table,
)
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.explore.axes import Axes, choose_axes
from eigenoptions.explore.step_model import (
    fit_smooth,
    make_frame,
    make_novelty,
    make_table,
    make_walls,
)

# How far a search goes: nodes, steps ahead, and steps that one action is held.
BUDGET = 600
HORIZON = 150
HORIZON_BACK = 100
HOLD = 6
# How much a step where nothing was seen is trusted, and how large holes count.
TRUST = 0.95
POWER = 6.0
# Steps that a search may predict, for each step that was taken.
EFFORT = 2500
LEAST_EFFORT = 6000
MOST_EFFORT = 30000
# A search is so many times as wide at most, and takes so much more than was saved.
WIDEST = 16
DEBT = 100_000
# Cells around what was seen that a map shows, and rows of a map at most.
MARGIN = 12
MOST_ROWS = 96
# Searches in a row that show nothing new until all is known.
IDLE = 10
# Targets that were given up and count as known.
MOST_VAIN = 20
# The same for walls, in parts of a cell.
FINE = 8
MOST_WALL_ROWS = 320
WALL_MARGIN = 4


class Leg(NamedTuple):
    """A part of a way: an action, how often, and the point where it leads."""

    action: int
    n_steps: int
    point: FloatArray


class Vain(NamedTuple):
    """What a walk aimed at and did not reach: an observation's axes, and a pair."""

    place: FloatArray
    pair: int


class KnownSpace:
    """What is known so far of a space of vectors.

    Parameters
    ----------
    vectors : ndarray of shape (A, k)
        What the model reads of each action.
    columns : sequence of int, default=None
        The columns of observations to use. None: all that move.
    """

    def __init__(
        self, vectors: FloatArray, columns: Sequence[int] | None = None
    ) -> None:
        self.vectors = vectors
        self.columns = columns
        self.axes: Axes | None = None
        self.model: Model | None = None
        self._vain: list[Vain] = []
        self._effort = 0
        # Places of pairs when all targets were tried, and how often nothing was new.
        self._n_known = 0
        self._n_idle = 0

    @property
    def is_ready(self) -> bool:
        """Whether there is a model."""
        return self.model is not None

    @property
    def is_known(self) -> bool:
        """Whether a second round of all targets has shown next to nothing new."""
        return self._n_idle >= IDLE

    def fit(
        self,
        obs: FloatArray,
        controls: FloatArray,
        codes: IndexArray,
        next_obs: FloatArray,
        n_next: int,
    ) -> bool:
        """Fit everything to all steps; return whether cells were cut anew.

        Parameters
        ----------
        obs, next_obs : ndarray of shape (N, D)
            Observations before and after each step.
        controls : ndarray of shape (N, k)
            What the model reads of the actions.
        codes : ndarray of int of shape (N,)
            Numbers of the actions; -1 where an action is not one of the numbered ones.
        n_next : int
            The number of steps at the next fit.
        """
        from eigenoptions._kernels import looking_ahead as kernels

        axes = choose_axes(obs, next_obs, controls, self.columns)
        if self.axes is not None and axes.is_like(self.axes):
            axes = self.axes
        is_cut = axes is not self.axes
        if is_cut:
            self.axes = axes
            self._families = np.zeros(axes.d, dtype=np.int64)
            self._vain = []
        self.space = axes.space
        before = axes.read(obs)
        after = axes.read(next_obs)
        change = axes.subtract(after, before)

        # The model draws its hinges from numbers of its own: the same steps, the same
        # model.
        rng = np.random.default_rng(len(obs))
        smooth, limits = fit_smooth(
            self.space, before, controls, change, self.vectors, rng, self._families
        )
        points = np.concatenate([before, after])
        n_slots = 1 << int(np.ceil(np.log2(8 * n_next)))
        self._seen = np.zeros(n_slots, dtype=np.uint64)
        self._cells = np.zeros((0, axes.d), dtype=np.int64)
        self._draw(np.floor(points).astype(np.int64))
        self._note_points(points)

        fine_cells = np.floor(points * FINE).astype(np.int64)
        frame = make_frame(
            self.space, fine_cells, FINE, WALL_MARGIN * FINE, MOST_WALL_ROWS
        )
        self.model = Model(
            self.space,
            smooth,
            make_table(3 * n_next, axes.d),
            make_walls(self.space, frame, limits),
        )
        numbered = codes >= 0
        steps = before[numbered], codes[numbered], change[numbered]
        kernels.learn_steps(self.model, *steps, True, False)
        kernels.learn_steps(self.model, *steps, False, True)
        return is_cut

    def learn(self, before: FloatArray, code: int, after: FloatArray) -> None:
        """Learn from a step between two points."""
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.axes is not None
        assert self.model is not None
        self._effort = min(self._effort + EFFORT, MOST_EFFORT)
        points = np.stack([before, after])
        if code >= 0:
            change = self.axes.subtract(points[1:], points[:1])
            codes = np.array([code])
            kernels.learn_steps(self.model, points[:1], codes, change, True, True)
        is_new = self._note_points(points)
        if is_new.any() and self._is_near_edge(points):
            self._redraw()

    def expect(self, point: FloatArray, code: int) -> FloatArray:
        """The point where an action is expected to lead."""
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.model is not None
        after = kernels.expect_points(self.model, point[None], np.array([code]))
        return np.asarray(after[0])

    # Where the unknown is

    def find_path(self, point: FloatArray, rng: np.random.Generator) -> list[Leg]:
        """The way from a point with the most novelty; empty where there is none."""
        legs = self._search(point, rng, 1)
        scale = 1
        # Where next to nothing is new near by, look farther, as far as was saved.
        while not self._is_new(legs) and scale < WIDEST and self._effort > -DEBT:
            scale *= 4
            legs = self._search(point, rng, scale)
        if not self._is_new(legs):
            self._try_again()
        return legs

    def _search(
        self, point: FloatArray, rng: np.random.Generator, scale: int
    ) -> list[Leg]:
        """The best way of a search, which is so many times as wide as usual."""
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.model is not None
        limits = Limits(
            level=int(len(self._cells) > BUDGET / 2),
            budget=BUDGET * scale,
            effort=max(self._effort, LEAST_EFFORT)
            if scale == 1
            else MOST_EFFORT * scale,
            horizon=HORIZON * min(scale, 4),
            hold=HOLD,
            trust=TRUST,
            power=POWER,
        )
        seed = int(rng.integers(2**62))
        nowhere = make_table(1, 1)
        tree = kernels.search(
            self.model, self._novelty, self._seen, nowhere, point, limits, seed
        )
        self._effort -= tree.effort
        return _trace_path(tree)

    def _is_new(self, legs: list[Leg]) -> bool:
        """Whether a way ends far from all that was seen."""
        return bool(legs) and self._measure(legs[-1].point)[0] > 1.5

    def find_path_to_reward(self, point: FloatArray, times: Table) -> list[Leg]:
        """The way from a point after which the least time to go is known.

        Parameters
        ----------
        times : Table
            The steps to the goal from cells, as `kernels.search` takes them.
        """
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.model is not None
        limits = Limits(
            level=0,
            budget=BUDGET,
            effort=MOST_EFFORT,
            horizon=HORIZON_BACK,
            hold=HOLD,
            trust=TRUST,
            power=0.0,
        )
        tree = kernels.search(
            self.model, self._novelty, self._seen, times, point, limits, 0
        )
        return _trace_path(tree)

    def give_up(self, point: FloatArray) -> None:
        """Note a target as known in its farthest pair, until nothing else is new."""
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.axes is not None
        _, pair = self._measure(point)
        self._vain.append(Vain(point * self.axes.size, pair))
        kernels.know_points(self.space, self._novelty, point[None], np.array([pair]))
        # The oldest are tried again: by now there may be a way.
        if len(self._vain) >= 2 * MOST_VAIN:
            self._vain = self._vain[MOST_VAIN:]
            self._redraw()

    def _try_again(self) -> None:
        """Where nothing is new but what was given up: forget that it was."""
        n_known = int(self._novelty.is_known.sum())
        if self._vain:
            self._vain = []
            self._redraw()
            n_known = int(self._novelty.is_known.sum())
        has_grown = n_known > 1.01 * self._n_known
        self._n_idle = 0 if has_grown else self._n_idle + 1
        self._n_known = n_known

    def _measure(self, point: FloatArray) -> tuple[float, int]:
        """The novelty of a point, and the pair in which it is largest."""
        from eigenoptions._kernels import looking_ahead as kernels

        far, pair = kernels.measure_points(self.space, self._novelty, point[None])
        return float(far[0]), int(pair[0])

    def _note_points(self, points: FloatArray) -> BoolArray:
        """Note points as seen; return which of them are in new cells."""
        from eigenoptions._kernels import looking_ahead as kernels

        cells = np.empty(points.shape, dtype=np.int64)
        is_new = np.empty(len(points), dtype=np.bool_)
        kernels.see_points(self.space, self._novelty, self._seen, points, cells, is_new)
        if is_new.any():
            self._cells = np.concatenate([self._cells, cells[is_new]])
        return is_new

    def _draw(self, cells: IndexArray) -> None:
        """Make maps of pairs with room for cells."""
        frame = make_frame(self.space, cells, 1, MARGIN, MOST_ROWS)
        self._novelty: Novelty = make_novelty(self.space, frame)

    def _is_near_edge(self, points: FloatArray) -> bool:
        """Whether points are where the maps soon end."""
        frame = self._novelty.frame
        place = (np.floor(points).astype(np.int64) - frame.low) >> frame.shift
        edge = (MARGIN // 2) >> frame.shift
        is_near = (place < edge) | (place >= frame.width - edge)
        return bool(is_near[:, self.space.turns == 0].any())

    def _redraw(self) -> None:
        """Draw the maps anew, with room for all that was seen."""
        from eigenoptions._kernels import looking_ahead as kernels

        assert self.axes is not None
        self._draw(self._cells)
        # The centres of cells stand for their points.
        centers: FloatArray = self._cells + np.float64(0.5 - OFFSET)
        for pair in range(len(self.space.pairs)):
            pairs = np.full(len(centers), pair)
            kernels.know_points(self.space, self._novelty, centers, pairs)
        if self._vain:
            places = np.array([v.place for v in self._vain], dtype=np.float64)
            places = np.asarray(places / self.axes.size, dtype=np.float64)
            pairs = np.array([vain.pair for vain in self._vain])
            kernels.know_points(self.space, self._novelty, places, pairs)


def _trace_path(tree: SearchTree) -> list[Leg]:
    """The legs to the best node of a search."""
    legs = []
    node = tree.best
    while node > 0:
        leg = Leg(int(tree.action[node]), int(tree.steps[node]), tree.points[node])
        legs.append(leg)
        node = tree.parent[node]
    legs.reverse()
    return legs
