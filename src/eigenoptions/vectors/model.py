"""Recorded vectors as a table of cells: the one cut that all that use vectors share.

`VectorModel.of` reads the columns, fits a model of what actions move, chooses the size
of the cells, and counts where steps led. Everything that works on tables works on its
``mdp``; `discover`, `Planner` and `explore` stand on it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from eigenoptions._text import count_noun
from eigenoptions._types import BoolArray, FloatArray, IndexArray, Progress
from eigenoptions._validation import show_value
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import stay_at_end, uniform_walk
from eigenoptions.mdp.spaces import read_spaces
from eigenoptions.samples import ColumnReport, Transitions, check_columns
from eigenoptions.samples.changes import measure_unit
from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.coordinates import Coordinates, find_angles
from eigenoptions.vectors.displacement import (
    ActionEffects,
    Displacement,
    Fit,
    drop_small_parts,
    measure_fit,
    measure_progress,
)
from eigenoptions.vectors.failures import Failures
from eigenoptions.vectors.grid import Grid, check_vectors, mean_rows
from eigenoptions.vectors.imputation import count_actions
from eigenoptions.vectors.moves import count_moves
from eigenoptions.vectors.sizes import choose_size, read_changes, read_progress

logger = logging.getLogger("eigenoptions")

# Numbers of actions above it are names, or come from a broken log: each of them would
# have a model of its own.
_MOST_ACTIONS = 10_000

# A model of actions that explains less of the movement is not trusted.
_TRUSTED = 0.5

# An observation at most so many cells away from the data belongs to the nearest cell.
_NEAR = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class VectorModel:
    """A table of the cells of recorded vectors; `of` makes one.

    Attributes
    ----------
    cells : Cells
        The map from observations to cells. A file of options holds it.
    mdp : MDP
        One state per cell. Numbered actions are those of the data. Where actions are
        vectors, the table's actions are the neighbouring cells to aim at.
    visits : ndarray of int of shape (S,)
        How many steps began in each cell.
    points : ndarray of shape (S, d)
        Mean coordinates of the data in each cell.
    step : ndarray of shape (d,)
        A large step in each coordinate; infinite in one that nobody steers.
    effects : Displacement or ActionEffects
        The model of what actions change.
    fit : Fit
        How well it explains the data.
    failures : Failures
        Places where actions fail.
    targets : ndarray of shape (S, A, 2, d) or None
        Where to aim for each move, and a place on the border to pass; only where
        actions are vectors.
    report : ColumnReport
        What the columns are, and which are used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> obs = rng.uniform(0, 10, (20_000, 2))
    >>> action = rng.integers(4, size=20_000)
    >>> moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    >>> model = VectorModel.of((obs, action, np.clip(obs + moves[action], 0, 10)))
    >>> model.mdp
    MDP(49 states, 4 actions, stochastic)
    >>> model.find_states([[0.5, 0.5], [0.5, 2.0]]).tolist()
    [0, 1]
    >>> model.examples[0].round(1)
    array([0.7, 0.7])
    """

    cells: Cells
    mdp: MDP
    visits: IndexArray
    points: FloatArray
    step: FloatArray
    effects: Displacement | ActionEffects
    fit: Fit
    failures: Failures
    targets: FloatArray | None
    report: ColumnReport

    @classmethod
    def of(
        cls,
        data: Any,
        cell_size: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] | None = None,
        n_actions: int | None = None,
        reversible: bool = True,
        progress: Progress | None = None,
    ) -> Self:
        """Sort recorded vectors into cells, and count where steps lead.

        Parameters
        ----------
        data : object
            Whatever `Transitions.of` accepts, with vectors as observations; actions may
            be vectors, too.
        cell_size : float or array of shape (columns,), default=None
            Sides of the cells, in the units of the observation. None: the largest size
            at which a cell's steps predict each other no worse than at the best size.
        columns : sequence of int or str, default=None
            The columns of the observation to use. None: all that ever change
            (`check_columns` looks at them).
        n_actions : int, default=None
            Number of actions. None: what the data declare, or show.
        reversible : bool, default=True
            Where actions are vectors: whether a move that was seen in one direction
            counts in the other, too.
        progress : callable, default=None
            As in `check_columns`.
        """
        steps = Transitions.of(data, continuous=True)
        if len(steps) < 2:
            raise ValueError(
                f"data must have at least 2 transitions, got {len(steps)}: record more "
                "steps"
            )
        warn_of_few_steps(len(steps))
        _warn_of_one_action(steps)
        if n_actions is None:
            n_actions = read_spaces(data)[1]

        obs = check_vectors("obs", steps.obs)
        check_vectors("next_obs", steps.next_obs, obs.shape[1])
        report = check_columns(steps, columns, progress=progress)
        if (steps.obs == steps.next_obs).all():
            raise ValueError(
                f"none of {count_noun(len(steps), 'step')} changes the observation: "
                "record steps that change something"
            )
        model = cls.from_steps(
            steps, report, cell_size, n_actions=n_actions, reversible=reversible
        )
        model._warn_of_columns()
        model._warn_of_poor_fit()
        return model

    @classmethod
    def from_steps(
        cls,
        steps: Transitions,
        report: ColumnReport,
        cell_size: ArrayLike | None = None,
        *,
        n_actions: int | None = None,
        reversible: bool = True,
    ) -> Self:
        """As `of`, of steps whose columns were looked at. Nothing is warned of."""
        obs = check_vectors("obs", steps.obs)
        next_obs = check_vectors("next_obs", steps.next_obs, obs.shape[1])
        has_vectors = steps.action.ndim > 1 or steps.action.dtype.kind == "f"

        # From columns of observations to coordinates.
        angles = (False,) * len(report.used)
        if not has_vectors:
            angles = find_angles(obs, next_obs, report.used)
        coordinates = Coordinates(report.used, angles)
        before = coordinates.apply(obs)
        after = coordinates.apply(next_obs)
        unit = measure_unit(before, after)
        sides = None
        if cell_size is not None:
            sides = coordinates.spread(cell_size, obs.shape[1])

        if has_vectors:
            table = _count_vectors(
                before, steps.action, after, steps.terminated, unit, sides, reversible
            )
        else:
            suspects = [column.number for column in report.suspects]
            is_steered = coordinates.repeat(~np.isin(report.used, suspects))
            table = _count_numbers(
                before,
                steps.action,
                after,
                steps.terminated,
                unit,
                sides,
                _check_actions(steps.action, n_actions),
                is_steered,
            )

        # What each cell looks like, by the points in it.
        grid = table.grid
        points = np.concatenate([before, after])
        number = grid.find(grid.cell(points))
        centers = mean_rows(points, number, grid.n_states)
        nearest = _find_nearest(points, number, centers, grid.size)
        arrays = {
            "corners": grid.corners,
            "examples": np.concatenate([obs, next_obs])[nearest],
        }
        cells = Cells(
            tuple(grid.low.tolist()),
            tuple(grid.size.tolist()),
            report.used,
            arrays,
            angles,
            tuple(unit.tolist()),
        )
        return cls(
            cells=cells,
            mdp=_place_on_map(table.mdp, cells),
            visits=np.bincount(number[: len(before)], minlength=grid.n_states),
            points=centers,
            step=table.step,
            effects=table.effects,
            fit=table.fit,
            failures=table.failures,
            targets=table.targets,
            report=report,
        )

    # What the cells are

    @property
    def examples(self) -> FloatArray:
        """``(S, D)`` an observation in each cell: that nearest to the mean."""
        return self.cells.examples

    @cached_property
    def centers(self) -> FloatArray:
        """``(S, columns)`` mean observation in each cell, of the columns in use."""
        return self.cells.coordinates.invert(self.points)

    @property
    def has_vector_actions(self) -> bool:
        """Whether actions are vectors."""
        return self.targets is not None

    def restrict(self, states: IndexArray) -> Self:
        """The same model of some cells, which no move leaves."""
        cells = self.cells.take(states)
        targets = None
        if self.targets is not None:
            additional = np.arange(self.mdp.n_listed, self.mdp.n_states)
            targets = self.targets[np.append(states, additional)]
        return replace(
            self,
            cells=cells,
            mdp=_place_on_map(self.mdp.restrict(states), cells),
            visits=self.visits[states],
            points=self.points[states],
            targets=targets,
        )

    # Where observations belong

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the cell of each observation, or the nearest one."""
        return self.cells.find_states(obs)

    def read(self, obs: Any) -> FloatArray:
        """The coordinates ``(d,)`` of one observation."""
        try:
            row = np.asarray(obs, dtype=np.float64)
        except (TypeError, ValueError):
            # The shape is refused below.
            row = np.empty(0)
        width = self.examples.shape[1]
        if row.shape != (width,) or not all(map(isfinite, row.tolist())):
            raise ValueError(
                f"an observation must be {width} finite numbers, got {show_value(obs)}"
            )
        point: FloatArray = self.cells.coordinates.apply(row[None])[0]
        return point

    def state(self, obs: Any) -> int:
        """The number of the cell of one observation that is near the data.

        It is a cell that ways lead to and from, if one is near.
        """
        return self.locate(self.read(obs), obs)

    def locate(self, point: FloatArray, obs: Any) -> int:
        """As `state`, of an observation that was read."""
        state = self.find(point)
        if state < 0:
            _, distance = self._find_joined(point)
            middles = self.cells.grid.middles[self._joined]
            length = float(np.linalg.norm(middles - point, axis=1).min())
            raise ValueError(
                f"{np.round(obs, 3)} is {distance:.1f} cells away from the data, a "
                f"distance of {length:.3g}: choose a place in them, or give a larger "
                "cell_size"
            )
        return state

    def find(self, point: FloatArray) -> int:
        """As `locate`; -1 if the point is far from the data."""
        state = self._numbers.get(self.cells.grid.corner(point.tolist()), -1)
        if state < 0:
            nearest, distance = self._find_joined(point)
            if distance <= _NEAR:
                state = nearest
        return state

    def _find_joined(self, point: FloatArray) -> tuple[int, float]:
        """The joined cell that is nearest to a point, and its distance in cells."""
        cells = self._joined_cells
        nearest = cells.find_nearest(point)
        offset = (cells.grid.middles[nearest] - point) / cells.grid.size
        return int(self._joined[nearest]), float(np.linalg.norm(offset))

    @cached_property
    def _joined(self) -> IndexArray:
        """Numbers of the cells that a way leads to and from; all if there is none."""
        walk = uniform_walk(stay_at_end(self.mdp))
        component = connected_components(walk, connection="strong")[1]
        is_joined = np.bincount(component)[component] > 1
        if not is_joined.any():
            return np.arange(self.mdp.n_listed)
        return np.flatnonzero(is_joined)

    @cached_property
    def _joined_cells(self) -> Cells:
        return self.cells.take(self._joined)

    @cached_property
    def _numbers(self) -> dict[tuple[int, ...], int]:
        """The number of each cell by its place; of one not joined, the nearest's."""
        numbers = dict(self.cells.grid.number)
        middles = self.cells.grid.middles
        is_joined = np.isin(np.arange(len(middles)), self._joined)
        for state in np.flatnonzero(~is_joined).tolist():
            nearest, distance = self._find_joined(middles[state])
            if distance <= _NEAR:
                numbers[tuple(self.cells.grid.corners[state].tolist())] = nearest
        return numbers

    # What actions do

    def expect(self, point: FloatArray, action: Any) -> FloatArray:
        """The change ``(d,)`` that the model expects of an action at a point."""
        if isinstance(self.effects, Displacement):
            return self.effects.predict(np.asarray(action))
        if action < 0:
            return np.zeros_like(point)
        changes = self.effects.predict(point[None], np.array([action]))
        return np.asarray(changes[0])

    def measure_failures(self, point: FloatArray, actions: list[Any]) -> list[float]:
        """How often some actions failed at this very place, by the data."""
        taken = np.array(actions)
        if isinstance(self.effects, Displacement):
            aims = self.effects.predict(taken) / self.step
        else:
            # Nearness counts only between steps with the same action.
            aims = _show_numbers(taken)
        return self.failures.measure(point / self.step, aims)

    # Warnings

    def _warn_of_columns(self) -> None:
        """Warn of columns that were left out, or that nobody steers."""
        angles = self.cells.angles
        shares = {}
        for place, column in enumerate(self.cells.columns):
            coordinate = place + sum(angles[:place])
            n_slices = len(np.unique(self.cells.grid.corners[:, coordinate]))
            shares[column] = f"cut into {n_slices} by the cells"
        self.report.warn(shares)

    def _warn_of_poor_fit(self) -> None:
        """Warn where actions are vectors and the model of them explains little."""
        if self.has_vector_actions and self.fit.explained < _TRUSTED:
            warnings.warn(
                f"the model of actions explains {self.fit.explained:.0%} of the "
                "movement (planner.fit): plans may not hold; keep the columns that "
                "actions move (columns=[...]), or number the actions",
                # Past VectorModel.of, Planner and its bar, to the line that makes it.
                stacklevel=5,
            )

    def __repr__(self) -> str:
        return f"VectorModel({self.cells.n_features} cells, {self.fit.explained:.0%})"


def warn_of_few_steps(n_steps: int, least: int = 100) -> None:
    """Warn of too few steps for a table."""
    if n_steps < least:
        logger.warning(
            "%s hardly any way: record some thousand, in which places are visited more "
            "than once",
            "1 step shows" if n_steps == 1 else f"{n_steps} steps show",
        )


def _warn_of_one_action(steps: Transitions) -> None:
    """Warn of a single action in all steps."""
    if (steps.action == steps.action[0]).all():
        shown = np.array2string(np.asarray(steps.action[0]), threshold=6)
        warnings.warn(
            f"all {len(steps)} steps have the same action {shown}: nothing can be "
            "chosen; record steps of different actions",
            # Past VectorModel.of, Planner and its bar, to the line that makes it.
            stacklevel=5,
        )


def _check_actions(action: IndexArray, n_actions: int | None) -> int:
    """The number of actions."""
    if n_actions is None:
        n_actions = int(action.max()) + 1
    if n_actions > _MOST_ACTIONS:
        raise ValueError(
            f"at most {_MOST_ACTIONS:,} actions, got numbers up to {n_actions - 1:,}: "
            "number them without gaps, np.unique(action, return_inverse=True)[1]"
        )
    return n_actions


def _place_on_map(mdp: MDP, cells: Cells) -> MDP:
    """The table with rows and columns of cells, where these have two coordinates."""
    coords = cells.coords
    if coords is None or len(cells.low) != 2:
        return replace(mdp, coords=None)
    return replace(mdp, coords=coords - coords.min(axis=0))


def _find_nearest(
    points: FloatArray, number: IndexArray, centers: FloatArray, size: FloatArray
) -> IndexArray:
    """``(S,)`` the first of the points that are nearest to the centre of each cell.

    `number` ``(N,)`` is the cell of each point.
    """
    offsets = (points - centers[number]) / size
    distance = (offsets**2).sum(axis=1)
    # By cell, and in each cell by distance. Near ties are ties, as everywhere.
    order = np.lexsort((distance.round(9), number))
    _, first_in_cell = np.unique(number[order], return_index=True)
    return order[first_in_cell]


@dataclass(frozen=True, eq=False)
class _Table:
    """What is counted in cells; the fields are those of `VectorModel`."""

    grid: Grid
    mdp: MDP
    step: FloatArray
    effects: Displacement | ActionEffects
    fit: Fit
    failures: Failures
    targets: FloatArray | None = None


def _count_vectors(
    before: FloatArray,
    action: NDArray[Any],
    after: FloatArray,
    ended: BoolArray,
    step: FloatArray,
    sides: FloatArray | None,
    reversible: bool,
) -> _Table:
    """The table of steps whose actions are vectors."""
    if action.ndim == 1:
        action = action[:, None]
    action = check_vectors("action", action)
    change = after - before
    effects = Displacement(action, change, step)
    expected = effects.predict(action)
    if sides is None:
        outcomes = read_progress(before, after, expected, step, reversible)
        is_steered = np.ones(len(step), dtype=np.bool_)
        sides = choose_size(before, after, step, is_steered, outcomes)

    if effects.has_one_axis:
        expected = drop_small_parts(expected, step)
    grid = Grid.over(np.concatenate([before, after]), sides)
    mdp, targets = count_moves(
        grid, before, before + expected, after, ended, step, reversible
    )
    failures = _find_failures(before, expected, change, step, expected / step)
    fit = measure_fit(expected, change, step)
    return _Table(grid, mdp, step, effects, fit, failures, targets)


def _count_numbers(
    before: FloatArray,
    action: IndexArray,
    after: FloatArray,
    ended: BoolArray,
    unit: FloatArray,
    sides: FloatArray | None,
    n_actions: int,
    is_steered: BoolArray,
) -> _Table:
    """The table of steps whose actions are numbered.

    Only coordinates that `is_steered` ``(d,)`` count as progress.
    """
    change = after - before
    # Beside an infinite step, no change is progress.
    step = np.where(is_steered, unit, np.inf)
    effects = ActionEffects(before, action, change, step, n_actions)
    expected = effects.predict(before, action)
    fit = measure_fit(expected, change, step)
    is_trusted = fit.explained > _TRUSTED

    if sides is None:
        # Where a cell has seen nothing, it believes a model that is trusted. Without,
        # cells become so wide that an agent has no use for their options.
        prior = expected if is_trusted else np.zeros_like(expected)
        outcomes = read_changes(before, action, change, unit, prior)
        sides = choose_size(before, after, unit, is_steered, outcomes)

    grid = Grid.over(np.concatenate([before, after]), sides)
    mdp = count_actions(grid, before, action, after, ended, n_actions)
    # A model that explains little does not know what a failure is.
    kept = slice(None) if is_trusted else slice(0)
    failures = _find_failures(
        before[kept], expected[kept], change[kept], step, _show_numbers(action[kept])
    )
    return _Table(grid, mdp, step, effects, fit, failures)


def _find_failures(
    points: FloatArray,
    expected: FloatArray,
    change: FloatArray,
    step: FloatArray,
    aims: FloatArray,
) -> Failures:
    """Which steps did not go as the model expects, by what they aimed at."""
    progress, is_aimed = measure_progress(expected, change, step)
    # A jump did lead somewhere.
    is_jump = (np.abs(change) > 2.0 * step).any(axis=1)
    has_failed = (progress < 0.5) & ~is_jump
    return Failures(points[is_aimed] / step, aims[is_aimed], has_failed[is_aimed])


def _show_numbers(action: IndexArray) -> FloatArray:
    """Numbered actions as aims: another action is nothing to compare with."""
    # So far apart, in large steps, that the search for near steps never mixes them.
    return 10.0 * np.asarray(action, dtype=np.float64)[:, None]
