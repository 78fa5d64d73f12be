"""From logged vectors to cells, and from cells to a table.

`make_cells` is the whole way: it reads the columns, fits a model of what actions move,
chooses the size of the cells, and counts where steps led. Everything that works on
tables works on ``cells.mdp``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from eigenoptions._text import count_noun
from eigenoptions._types import BoolArray, FloatArray, IndexArray, Progress
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import stay_at_end, uniform_walk
from eigenoptions.mdp.spaces import read_spaces
from eigenoptions.samples import ColumnReport, Transitions, check_columns
from eigenoptions.samples.changes import measure_unit
from eigenoptions.vectors.coordinates import Coordinates
from eigenoptions.vectors.displacement import (
    ActionEffects,
    Displacement,
    Fit,
    find_directions,
    measure_fit,
    measure_progress,
)
from eigenoptions.vectors.failures import Failures
from eigenoptions.vectors.grid import Grid, check_vectors, mean_rows
from eigenoptions.vectors.moves import count_actions, count_moves
from eigenoptions.vectors.sizes import (
    Outcomes,
    choose_common_multiple,
    choose_multiples,
)

# Numbers of actions above it are names, or come from a broken log: each of them would
# have a model of its own.
_MOST_ACTIONS = 10**6


class Cells:
    """A table of the cells of logged vectors; `make_cells` makes one.

    Attributes
    ----------
    mdp : MDP
        One state per cell. Numbered actions are those of the data. Where actions are
        vectors, the table's actions are the neighbouring cells to aim at.
    size : ndarray of shape (d,)
        Sides of the cells, one per coordinate: an angle in radians is two, its sine
        and its cosine.
    step : ndarray of shape (d,)
        A large step in each coordinate.
    centers : ndarray of shape (S, columns)
        Mean observation in each cell, of the columns that are used.
    examples : ndarray of shape (S, width)
        An observation in each cell, of all columns: that nearest to the centre.
    coordinates : Coordinates
        How observations are read.
    fit : Fit
        How well the model of actions explains the data.
    is_continuous : bool
        Whether actions are vectors.
    model : Displacement or ActionEffects
        The model of actions.
    targets : ndarray of shape (S, A, 2, d) or None
        Where to aim for each move, and a place on the border to pass; only where
        actions are vectors.
    failures : Failures
        Places where actions fail.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> obs = rng.uniform(0, 10, (20_000, 2))
    >>> action = rng.integers(4, size=20_000)
    >>> moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    >>> cells = make_cells((obs, action, np.clip(obs + moves[action], 0, 10)))
    >>> cells.mdp
    MDP(196 states, 4 actions, stochastic)
    >>> cells.state([0.5, 0.5])
    0
    """

    mdp: MDP
    size: FloatArray
    centers: FloatArray
    examples: FloatArray
    coordinates: Coordinates
    fit: Fit
    is_continuous: bool
    model: Displacement | ActionEffects
    targets: FloatArray | None = None

    def __init__(
        self,
        coordinates: Coordinates,
        grid: Grid,
        step: FloatArray,
        mdp: MDP,
        near: float = 3.0,
    ) -> None:
        self.coordinates = coordinates
        self.grid = grid
        self.size = grid.size
        self.step = step
        self.step_list: list[float] = step.tolist()
        self.mdp = mdp
        nothing = np.zeros((0, len(step)))
        self.failures = Failures(nothing, nothing, np.zeros(0, dtype=np.bool_))
        self._near = near

    def state(self, obs: Any) -> int:
        """The number of the cell that an observation belongs to."""
        return self.locate(self.coordinates.read(obs), obs)

    def locate(self, point: FloatArray, obs: Any) -> int:
        """As `state`, of an observation that was read."""
        state = self.find(point)
        if state < 0:
            distance, home = self._tree.query(point / self.grid.size)
            nearest = self._tree.data[home] * self.grid.size
            length = float(np.linalg.norm(nearest - point))
            raise ValueError(
                f"{np.round(obs, 3)} is {distance:.1f} cells away from the data, a "
                f"distance of {length:.3g}: choose a place in them, or give a larger "
                "cell_size"
            )
        return state

    def find(self, point: FloatArray) -> int:
        """The cell of a point, or one that is near; -1 if it is far from the data."""
        state = self.grid.number.get(self.grid.corner(point.tolist()), -1)
        if state < 0:
            distance, home = self._tree.query(point / self.grid.size)
            if distance <= self._near:
                state = int(self._homes[home])
        return state

    def find_homes(self, centers: FloatArray) -> None:
        """Replace cells that no way leads to and from by the nearest other ones.

        The grid then finds the other cell, the home, by the corner of the first.
        """
        # Cells that a way leads to and from have others in their component.
        walk = uniform_walk(stay_at_end(self.mdp))
        component = connected_components(walk, connection="strong")[1]
        is_joined = np.bincount(component)[component] > 1
        self._homes = np.arange(len(is_joined))
        if is_joined.any():
            self._homes = np.flatnonzero(is_joined)

        self._tree = cKDTree(centers[self._homes] / self.grid.size)
        for state in np.flatnonzero(~is_joined):
            distance, home = self._tree.query(centers[state] / self.grid.size)
            if distance <= self._near:
                corner = tuple(self.grid.corners[state].tolist())
                self.grid.number[corner] = int(self._homes[home])

    def expect(self, point: FloatArray, action: Any) -> FloatArray:
        """The change ``(d,)`` that the model expects of an action at a point."""
        if isinstance(self.model, Displacement):
            return self.model.predict(np.asarray(action))
        if action < 0:
            return np.zeros_like(point)
        changes = self.model.predict(point[None], np.array([action]))
        return np.asarray(changes[0])

    def measure_failures(self, point: FloatArray, actions: list[Any]) -> list[float]:
        """How often some actions failed at this very place, by the data."""
        taken = np.array(actions)
        if isinstance(self.model, Displacement):
            aims = self.model.predict(taken) / self.step
        else:
            aims = self._find_aims(taken[:, None], taken)
        return self.failures.measure(point / self.step, aims)

    def record_failures(
        self,
        points: FloatArray,
        expected: FloatArray,
        change: FloatArray,
        action: NDArray[Any],
    ) -> None:
        """Keep which steps did not go as the model expects."""
        progress, is_aimed = measure_progress(expected, change, self.step)
        # A jump did lead somewhere.
        is_jump = (np.abs(change) > 2.0 * self.step).any(axis=1)
        has_failed = (progress < 0.5) & ~is_jump
        aims = self._find_aims(expected / self.step, action)
        self.failures = Failures(
            points[is_aimed] / self.step, aims[is_aimed], has_failed[is_aimed]
        )

    def _find_aims(self, expected: FloatArray, action: NDArray[Any]) -> FloatArray:
        """What steps aim at: where they should lead, or which action they take."""
        if self.is_continuous:
            return expected
        # Another action is nothing to compare with.
        return 10.0 * np.asarray(action, dtype=np.float64)[:, None]


def make_cells(
    data: Any,
    cell_size: ArrayLike | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    reversible: bool = True,
    progress: Progress | None = None,
) -> Cells:
    """Sort logged vectors into cells, and count where steps lead.

    Parameters
    ----------
    data : object
        Whatever `Transitions.of` accepts, with vectors as observations; actions may be
        vectors, too.
    cell_size : float or array of shape (columns,), default=None
        Sides of the cells, in the units of the observation. None: the largest size at
        which a cell's steps predict each other no worse than at the best size.
    columns : sequence of int or str, default=None
        The columns of the observation to use. None: all that ever change
        (`check_columns` looks at them).
    reversible : bool, default=True
        Where actions are vectors: whether a move that was seen in one direction counts
        in the other, too.
    progress : callable, default=None
        As in `check_columns`.

    Returns
    -------
    Cells
        The table is its ``mdp``.
    """
    batch = Transitions.of(data, continuous=True)
    if len(batch) < 2:
        raise ValueError(
            f"data must have at least 2 transitions, got {len(batch)}: record more "
            "steps"
        )
    _warn_of_poor_data(batch)
    obs = check_vectors("obs", batch.obs)
    next_obs = check_vectors("next_obs", batch.next_obs, obs.shape[1])
    is_continuous = batch.action.ndim > 1 or batch.action.dtype.kind == "f"

    # From columns of observations to coordinates.
    report = check_columns(batch, columns, progress=progress)
    if (obs == next_obs).all():
        raise ValueError(
            f"none of {count_noun(len(batch), 'step')} changes the observation: record "
            "steps that change something"
        )
    coordinates = Coordinates(obs, next_obs, report.used, has_angles=not is_continuous)
    before = coordinates.apply(obs)
    after = coordinates.apply(next_obs)
    sides = None
    if cell_size is not None:
        sides = coordinates.spread(cell_size)

    if is_continuous:
        action = batch.action
        if action.ndim == 1:
            action = action[:, None]
        action = check_vectors("action", action)
        cells = _make_from_vectors(
            coordinates, before, action, after, batch.terminated, sides, reversible
        )
    else:
        n_actions = read_spaces(data)[1]
        if n_actions is None:
            n_actions = int(batch.action.max()) + 1
        if n_actions > _MOST_ACTIONS:
            raise ValueError(
                f"at most {_MOST_ACTIONS:,} actions, got numbers up to "
                f"{n_actions - 1:,}: number them without gaps, "
                "np.unique(action, return_inverse=True)[1]"
            )
        suspects = [column.number for column in report.suspects]
        is_steered = coordinates.repeat(~np.isin(report.used, suspects))
        cells = _make_from_numbers(
            coordinates,
            before,
            batch.action,
            after,
            batch.terminated,
            sides,
            n_actions,
            is_steered,
        )

    # What each cell looks like, by the points in it.
    points = np.concatenate([before, after])
    number = cells.grid.find(cells.grid.cell(points))
    centers = mean_rows(points, number, cells.grid.n_states)
    cells.find_homes(centers)
    cells.centers = coordinates.invert(centers)
    nearest = _find_nearest(points, number, centers, cells.size)
    cells.examples = np.concatenate([obs, next_obs])[nearest]

    _warn_of_poor_fit(cells)
    _warn_of_columns(report, cells)
    return cells


def _warn_of_poor_data(batch: Transitions, min_steps: int = 100) -> None:
    """Warn of too few steps for a table, and of a single action in all of them."""
    if len(batch) < min_steps:
        warnings.warn(
            f"{len(batch)} steps show hardly any way: record some thousand, in which "
            "places are visited more than once",
            # Past make_cells, Planner and its bar, to the line that makes the planner.
            stacklevel=5,
        )
    if (batch.action == batch.action[0]).all():
        shown = np.array2string(np.asarray(batch.action[0]), threshold=6)
        warnings.warn(
            f"all {len(batch)} steps have the same action {shown}: nothing can be "
            "chosen; record steps of different actions",
            stacklevel=5,
        )


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


def _make_from_vectors(
    coordinates: Coordinates,
    before: FloatArray,
    action: FloatArray,
    after: FloatArray,
    ended: BoolArray,
    sides: FloatArray | None,
    reversible: bool,
) -> Cells:
    """The cells of steps whose actions are vectors."""
    change = after - before
    step = measure_unit(before, after)
    model = Displacement(action, change, step)
    expected = model.predict(action)
    if sides is None:
        outcomes = _read_progress(before, after, expected, step, reversible)
        sides = choose_common_multiple(outcomes)

    grid = Grid(np.concatenate([before, after]), sides)
    mdp, targets = count_moves(
        grid, before, before + expected, after, ended, step, reversible
    )
    cells = Cells(coordinates, grid, step, mdp)
    cells.is_continuous = True
    cells.model = model
    cells.targets = targets
    cells.fit = measure_fit(expected, change, step)

    cells.record_failures(before, expected, change, action)
    return cells


def _make_from_numbers(
    coordinates: Coordinates,
    before: FloatArray,
    action: IndexArray,
    after: FloatArray,
    ended: BoolArray,
    sides: FloatArray | None,
    n_actions: int,
    is_steered: BoolArray,
    min_explained: float = 0.5,
) -> Cells:
    """The cells of steps whose actions are numbered.

    Only coordinates that `is_steered` ``(d,)`` count as progress.
    """
    change = after - before
    finite_step = measure_unit(before, after)
    # Beside an infinite step, no change is progress.
    step = np.where(is_steered, finite_step, np.inf)
    model = ActionEffects(before, action, change, step, n_actions)
    expected = model.predict(before, action)
    fit = measure_fit(expected, change, step)
    trusted = None
    if fit.explained > min_explained:
        trusted = model

    if sides is None:
        # Where the table has seen nothing, it believes a model that is trusted.
        prior = np.zeros_like(expected)
        if trusted is not None:
            prior = expected
        outcomes = _read_changes(before, action, change, finite_step, is_steered, prior)
        sides = choose_multiples(outcomes)

    grid = Grid(np.concatenate([before, after]), sides)
    mdp = count_actions(grid, before, action, after, ended, n_actions, trusted)
    cells = Cells(coordinates, grid, step, mdp)
    cells.is_continuous = False
    cells.model = model
    cells.fit = fit

    # A model that explains little does not know what a failure is.
    if trusted is not None:
        cells.record_failures(before, expected, change, action)
    return cells


def _read_progress(
    before: FloatArray,
    after: FloatArray,
    expected: FloatArray,
    step: FloatArray,
    reversible: bool,
    most: int = 200_000,
) -> Outcomes:
    """Which part of what steps aimed at they reached, of at most so many steps."""
    rows = _sample_rows(len(before), most)
    before = before[rows]
    after = after[rows]
    expected = expected[rows]
    progress, is_aimed = measure_progress(expected, after - before, step)
    direction = find_directions(expected, step)

    points = [before[is_aimed]]
    label = [direction[is_aimed]]
    outcome = [progress[is_aimed]]
    if reversible:
        # A step that succeeded counts as one back, too, as it does in the table. The
        # number of the opposite direction is the same, counted from the end.
        goes_back = is_aimed & (progress >= 0.5)
        points.append(after[goes_back])
        label.append(3 ** len(step) - 1 - direction[goes_back])
        outcome.append(np.ones(np.count_nonzero(goes_back)))
    return Outcomes(
        points=np.concatenate(points),
        label=np.concatenate(label),
        outcome=np.concatenate(outcome)[:, None],
        step=step,
        is_steered=np.ones(len(step), dtype=np.bool_),
        # A move that was never tried fails, as in the table.
        prior=np.zeros((sum(map(len, points)), 1)),
        prior_weight=0.25,
        n_asked=len(points[0]),
    )


def _read_changes(
    points: FloatArray,
    action: IndexArray,
    change: FloatArray,
    step: FloatArray,
    is_steered: BoolArray,
    prior: FloatArray,
    most: int = 50_000,
) -> Outcomes:
    """What numbered actions changed, of at most so many steps."""
    rows = _sample_rows(len(points), most)
    return Outcomes(
        points=points[rows],
        label=action[rows],
        outcome=change[rows] / step,
        step=step,
        is_steered=is_steered,
        prior=np.clip(prior[rows] / step, -1.0, 1.0),
        prior_weight=1.0,
        n_asked=len(rows),
    )


def _sample_rows(n_rows: int, most: int) -> IndexArray:
    """At most so many rows, at even distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


def _warn_of_columns(report: ColumnReport, cells: Cells) -> None:
    """Warn of columns that were left out, or that nobody steers."""
    shares = {}
    for place, column in enumerate(report.used):
        coordinate = int(place + np.count_nonzero(cells.coordinates.is_angle[:place]))
        n_slices = len(np.unique(cells.grid.corners[:, coordinate]))
        shares[column] = f"cut into {n_slices} by the cells"
    report.warn(shares)


def _warn_of_poor_fit(cells: Cells, min_explained: float = 0.5) -> None:
    """Warn where actions are vectors and the model of them explains little."""
    if cells.is_continuous and cells.fit.explained < min_explained:
        warnings.warn(
            f"the model of actions explains {cells.fit.explained:.0%} of the movement "
            "(planner.fit): plans may not hold; keep the columns that actions move "
            "(columns=[...]), or number the actions",
            # Past make_cells, Planner and its bar, to the line that makes the planner.
            stacklevel=5,
        )
