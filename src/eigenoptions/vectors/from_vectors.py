"""Options of a table of cells: for recorded vectors without a feature map.

Vectors are sorted into the cells of a grid. Each cell is a state of a table, so options
are those of a table, computed and not fitted. They act on observations: the cell is a
feature of them (`vectors.cell_map.Cells`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_settings
from eigenoptions.discovery.method import NoOptionsError
from eigenoptions.discovery.tables import Request, discover_table
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import compute_outcomes
from eigenoptions.options.tuning import Exploration
from eigenoptions.samples import Transitions, check_columns
from eigenoptions.samples.columns import ColumnReport
from eigenoptions.samples.features import FeatureMap, flatten_observations
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import Samples
from eigenoptions.samples.tuning import tune_at_examples, tune_on_cells
from eigenoptions.vectors.cell_map import Cells
from eigenoptions.vectors.grid import Grid
from eigenoptions.vectors.sizes import number_cells

logger = logging.getLogger("eigenoptions")


def discover_cells(samples: Samples, request: Request) -> LinearOptionSet:
    """Options of recorded vectors, on a table of their cells.

    The settings of `request` are those of the method, and these.

    columns : sequence of int or str, default=None
        The columns to use, by number or name. None: all that vary. A column that drifts
        is named in a warning; see `check_columns`.
    cell_size : float or sequence of float, default=None
        Sides of the cells, one for all columns or one for each that is used. None: one
        and a half large steps, more where there would be few steps in a cell.

    The discount of the options' purposes is 0.97 by default. It counts for a step, and
    it takes three steps or so to cross a cell, so this is some 0.9 for each cell.
    """
    settings = dict(request.settings)
    columns = settings.pop("columns", None)
    cell_size = settings.pop("cell_size", None)
    settings.pop("features", None)
    own_names = [n for n in request.method.settings if n not in ("gamma", "progress")]
    check_settings(
        "discovery in cells", settings, [*own_names, "columns", "cell_size"], ()
    )
    gamma = 0.97 if request.gamma is None else request.gamma
    request = replace(request, settings=settings, gamma=gamma)

    report = check_columns(samples.transitions, columns, progress=request.progress)
    _warn_of_few_steps(len(samples.transitions))
    cells, mdp = make_cells(samples, report, cell_size)
    provenance = {"source": "samples", "dynamics": "estimated", **samples.provenance}
    options = discover_table(mdp, request, provenance, is_environment=True)
    _warn_of_columns(report, samples.transitions, cells, options)
    return act_on_cells(options, cells, gamma, tune_on_cells(options))


def tune_fitted(
    options: LinearOptionSet, samples: Samples, report: ColumnReport | None = None
) -> Exploration:
    """How random decisions should use options that were fitted to features.

    They are looked at in a table of cells: in each cell an option does what it does at
    one of the observations there.

    Parameters
    ----------
    options : LinearOptionSet
        The options.
    samples : Samples
        The samples, whose observations are vectors.
    report : ColumnReport, optional
        Which columns are used. By default all that vary.
    """
    if report is None:
        report = check_columns(samples.transitions, progress=False)
    cells, mdp = make_cells(samples, report)
    obs = np.concatenate([samples.transitions.obs, samples.transitions.next_obs])
    states, rows = np.unique(cells.find_states(obs), return_index=True)
    return tune_at_examples(mdp, states, options.actions(obs[rows]))


def _warn_of_few_steps(n_steps: int, least: int = 100) -> None:
    """Warn of too few steps for a table."""
    if n_steps < least:
        logger.warning(
            "%s hardly any way: record some thousand, in which places are visited more "
            "than once",
            "1 step shows" if n_steps == 1 else f"{n_steps} steps show",
        )


def _warn_of_columns(
    report: ColumnReport, steps: Transitions, cells: Cells, options: OptionSet
) -> None:
    """Name columns that drift, with their share of the first potentials."""
    rows = slice(None, None, max(1, len(steps) // 5_000))
    states = cells.find_states(steps.obs[rows])
    firsts = options.purposes[:6:2]
    potentials = np.stack([np.asarray(p.potential)[states] for p in firsts], axis=1)
    labels = [purpose.label for purpose in firsts]
    report.warn(report.explain(steps.obs[rows], potentials, labels))


def act_on_cells(
    options: OptionSet, cells: FeatureMap, gamma: float, exploration: Exploration
) -> LinearOptionSet:
    """Options of a table of cells as options that act on observations.

    Parameters
    ----------
    options : OptionSet
        Options of the table.
    cells : Cells or Clusters
        The map from observations to its states.
    gamma : float
        Discount of the options' values.
    exploration : Exploration
        How random decisions use them.
    """
    mdp = options.mdp
    potentials = np.stack([np.asarray(p.potential) for p in options.purposes])
    # q(s, a) = E[f(s') - f(s) + gamma v(s')], one table for each option.
    arrival = potentials + gamma * options.value
    outcomes = compute_outcomes(mdp, arrival.T, potentials.T)
    q = np.moveaxis(outcomes, 2, 0) - potentials[:, :, None]
    # No observation belongs to an additional state.
    q = q[:, : mdp.n_listed]
    states = np.arange(mdp.n_listed)
    purposes = [p.extend(states, mdp.n_listed) for p in options.purposes]
    return LinearOptionSet(
        purposes,
        cells,
        mdp.n_actions,
        weights=np.moveaxis(q, 1, 2),
        provenance=options.provenance,
        gamma=gamma,
        exploration=exploration,
    )


def make_cells(
    samples: Samples,
    report: ColumnReport,
    cell_size: float | FloatArray | None = None,
) -> tuple[Cells, MDP]:
    """Sort recorded vectors into cells, and count where steps lead from each.

    Parameters
    ----------
    samples : Samples
        Recorded steps.
    report : ColumnReport
        Which columns are used.
    cell_size : float or array, default=None
        Sides of the cells. None: chosen by `choose_cell_size`.

    Returns
    -------
    cells : Cells
        The map from observations to cells.
    mdp : MDP
        The table.
    """
    steps = samples.transitions
    obs = report.select(flatten_observations(steps.obs))
    next_obs = report.select(flatten_observations(steps.next_obs))
    if cell_size is None:
        size = choose_cell_size(obs, next_obs)
    else:
        size = _check_cell_size(cell_size, obs.shape[1])

    grid = Grid(np.concatenate([obs, next_obs]), size)
    numbered = _number_steps(grid, obs, next_obs, steps, samples.n_actions)
    mdp = MDP.from_transitions(numbered, grid.n_states, samples.n_actions)

    # What the data do not connect with the rest has no part in the eigenvectors.
    component = connected_components(graph(mdp), directed=False)[1]
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    if len(kept) < 2:
        raise NoOptionsError(
            "no step leads from one cell to another: record more steps, or give a "
            "smaller cell_size"
        )

    coords = grid.coords
    if coords is not None:
        coords = coords[kept] - coords[kept].min(axis=0)
    cells = Cells(
        tuple(grid.low.tolist()),
        tuple(grid.size.tolist()),
        report.used,
        {"corners": grid.corners[kept]},
    )
    return cells, replace(mdp.restrict(kept), coords=coords)


def _number_steps(
    grid: Grid,
    obs: FloatArray,
    next_obs: FloatArray,
    steps: Transitions,
    n_actions: int,
) -> Transitions:
    """The steps between numbers of cells, and after them those that are borrowed."""
    before = grid.find(grid.cell(obs))
    after = grid.find(grid.cell(next_obs))

    # Steps of one length lead to many equal distances: rounding errors must not decide.
    points = (obs / grid.size).round(9)
    borrowed = borrow_steps(points, before, steps.action, n_actions)
    change = next_obs - obs
    expected = obs[borrowed.point] + change[borrowed.step]
    borrowed_after = grid.find(grid.cell(expected))
    # Where there are no data, nothing says that one gets there: it may be a wall.
    stays = borrowed_after < 0
    borrowed_after[stays] = before[borrowed.point[stays]]

    return Transitions(
        np.concatenate([before, before[borrowed.point]]),
        np.concatenate([steps.action, steps.action[borrowed.step]]),
        np.concatenate([after, borrowed_after]),
        np.concatenate([steps.terminated, steps.terminated[borrowed.step]]),
    )


def choose_cell_size(
    obs: FloatArray,
    next_obs: FloatArray,
    *,
    n_steps: float = 1.5,
    visits: float = 4.0,
) -> FloatArray:
    """Sides ``(d,)`` of cells: as small as the data allow.

    Parameters
    ----------
    obs, next_obs : array of shape (N, d)
        Recorded vectors before and after each step.
    n_steps : float, default=1.5
        Sides are at least so many large steps (the 0.9 quantile of the changes of a
        column), so that a step stays in its cell about as often as it leaves it. But
        there are at least four cells along each column. A wall that is thinner than a
        cell may look open: give a smaller `cell_size` there.
    visits : float, default=4.0
        Cells are larger where there would be fewer steps in each of them on average.
    """
    change = np.quantile(np.abs(next_obs - obs), 0.9, axis=0)
    extent = np.ptp(np.concatenate([obs, next_obs]), axis=0)
    # A column that changes seldom, such as a door, has two values or so.
    step = np.where(change > 0, change, extent)
    while True:
        size: FloatArray = np.minimum(n_steps * step, extent / 4)
        n_cells = len(np.unique(number_cells(obs, size)))
        is_coarse = bool((n_steps * step >= extent / 4).all())
        if len(obs) >= visits * n_cells or is_coarse:
            return size
        n_steps *= 1.25


def _check_cell_size(cell_size: Any, n_columns: int) -> FloatArray:
    """One positive side per column."""
    size = np.asarray(cell_size, dtype=np.float64)
    is_positive = bool((np.isfinite(size) & (size > 0)).all())
    if not is_positive or size.shape not in ((), (n_columns,)):
        raise ValueError(
            f"cell_size must be > 0, one number or {n_columns}, got {cell_size!r}"
        )
    return np.broadcast_to(size, (n_columns,))


@dataclass(frozen=True, eq=False)
class BorrowedSteps:
    """Actions at points where others were taken.

    Attributes
    ----------
    point : array of shape (M,)
        Row of the point.
    step : array of shape (M,)
        Row of the step whose action and change are borrowed.
    """

    point: IndexArray
    step: IndexArray


def borrow_steps(
    points: FloatArray,
    states: IndexArray,
    action: IndexArray,
    n_actions: int,
    *,
    enough: int = 8,
    reach: float = 1.0,
) -> BorrowedSteps:
    """What the other actions would have done, by the nearest step with each of them.

    In several dimensions most cells have seen most actions once or twice, or never. But
    a step nearby with the same action tells what it changes.

    Parameters
    ----------
    points : array of shape (N, d)
        Points before each step, in sides of cells.
    states : array of shape (N,)
        Their cells.
    action : array of shape (N,)
        The action of each step.
    n_actions : int
        Number of actions.
    enough : int, default=8
        An action that was taken so often in a cell is not borrowed there.
    reach : float, default=1.0
        Steps farther away, in sides of cells, are not borrowed.

    Returns
    -------
    BorrowedSteps
        At each point, at most one step for each action that is rare in its cell.
    """
    # Imported here: the first `discover` of a table does not need it.
    from scipy.spatial import cKDTree

    # Which actions were rare in which cells.
    n_states = int(states.max()) + 1
    pairs = states * n_actions + action
    n_taken = np.bincount(pairs, minlength=n_states * n_actions)
    is_rare = (n_taken < enough).reshape(n_states, n_actions)

    # The empty arrays stand for nothing borrowed.
    borrowers = [np.empty(0, dtype=np.intp)]
    lenders = [np.empty(0, dtype=np.intp)]
    for lent_action in range(n_actions):
        has_taken = action == lent_action
        has_it = np.flatnonzero(has_taken)
        needs_it = np.flatnonzero(is_rare[states, lent_action] & ~has_taken)
        if not len(has_it) or not len(needs_it):
            continue
        tree = cKDTree(points[has_it])
        distance, nearest = tree.query(points[needs_it], distance_upper_bound=reach)
        # The distance is infinite where none is within reach.
        is_near = np.isfinite(distance)
        borrowers.append(needs_it[is_near])
        lenders.append(has_it[nearest[is_near]])
    return BorrowedSteps(point=np.concatenate(borrowers), step=np.concatenate(lenders))
