"""How large cells should be: as large as they may be without predicting worse.

A table of cells says what each action does in each cell. Large cells mix free places
with those at a wall; small ones have seen few steps, and a move that was never tried
counts as one that fails. Both predict steps that they have not seen worse. So each step
is predicted by all others in its cell, and the size whose errors are smallest is the
right one. Where the data do not tell two sizes apart, the larger one has fewer states.
With more data smaller cells predict better, and are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.vectors.displacement import find_directions, measure_progress
from eigenoptions.vectors.grid import number_rows

# Sides are at least so many large steps, so that a step stays in its cell about as
# often as it leaves it.
_FEWEST_STEPS = 1.5

# So many logged steps begin in a cell, on average.
_VISITS = 4.0

# The sizes that are compared, as multiples of the smallest.
_FACTORS = (1.0, 1.41, 2.0, 2.83, 4.0)

# Most steps that are predicted, of numbered actions and of vectors.
_MOST_CHANGES = 50_000
_MOST_PARTS = 200_000


@dataclass(frozen=True, eq=False)
class PredictionTargets:
    """What a table of cells has to predict.

    Attributes
    ----------
    points : ndarray of shape (N, d)
        Points before each step.
    label : ndarray of int of shape (N,)
        The action of each step, or the direction that it aimed at.
    outcome : ndarray of shape (N, m)
        What came of the step; 0 for nothing, 1 for a large step as it was meant.
    prior : ndarray of shape (N, m)
        What the table predicts where nothing else was seen.
    prior_weight : float
        How many steps the prior counts for.
    n_asked : int
        How many of the steps, from the first, are to be predicted. The others help to.
    """

    points: FloatArray
    label: IndexArray
    outcome: FloatArray
    prior: FloatArray
    prior_weight: float
    n_asked: int


def choose_size(
    before: FloatArray,
    after: FloatArray,
    step: FloatArray,
    is_steered: BoolArray,
    outcomes: PredictionTargets,
) -> FloatArray:
    """Sides ``(d,)`` of cells: one multiple of a large step in every coordinate.

    The multiple is at least 1.5, and so large that four steps begin in a cell on
    average. Of that size and some larger ones, the largest is chosen whose cells
    predict no worse than those of the best. There are at least four cells along each
    coordinate. A wall that is thinner than a cell may look open: give a smaller
    `cell_size` there.

    Parameters
    ----------
    before, after : ndarray of shape (N, d)
        Points before and after each step.
    step : ndarray of shape (d,)
        A large step.
    is_steered : ndarray of bool of shape (d,)
        Whether a coordinate neither drifts nor is exogenous. One that nobody steers,
        such as a battery, is cut in two or three.
    outcomes : PredictionTargets
        What cells have to predict.
    """
    extent = np.ptp(np.concatenate([before, after]), axis=0)
    # A constant column that was asked for is one cell wide.
    extent = np.where(extent > 0.0, extent, step)
    widest = np.where(is_steered, extent / 4.0, extent / 2.0)
    unit = np.where(is_steered, step, np.inf)

    multiple = _FEWEST_STEPS
    while True:
        size = np.minimum(multiple * unit, widest)
        n_cells = len(np.unique(number_cells(before, size)))
        if len(before) >= _VISITS * n_cells or (size >= widest).all():
            break
        multiple *= 1.25

    sizes = [np.minimum(multiple * factor * unit, widest) for factor in _FACTORS]
    return sizes[_choose_largest(outcomes, sizes)]


def read_changes(
    points: FloatArray,
    action: IndexArray,
    change: FloatArray,
    step: FloatArray,
    prior: FloatArray,
) -> PredictionTargets:
    """What numbered actions changed, beside what the prior ``(N, d)`` expects."""
    rows = _sample_rows(len(points), _MOST_CHANGES)
    return PredictionTargets(
        points=points[rows],
        label=action[rows],
        outcome=change[rows] / step,
        prior=np.clip(prior[rows] / step, -1.0, 1.0),
        prior_weight=1.0,
        n_asked=len(rows),
    )


def read_progress(
    before: FloatArray,
    after: FloatArray,
    expected: FloatArray,
    step: FloatArray,
    reversible: bool,
) -> PredictionTargets:
    """Which part of the change that steps aimed at they made."""
    rows = _sample_rows(len(before), _MOST_PARTS)
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
    return PredictionTargets(
        points=np.concatenate(points),
        label=np.concatenate(label),
        outcome=np.concatenate(outcome)[:, None],
        # A move that was never tried fails, as in the table.
        prior=np.zeros((sum(map(len, points)), 1)),
        prior_weight=0.25,
        n_asked=len(points[0]),
    )


def _sample_rows(n_rows: int, most: int) -> IndexArray:
    """At most so many rows, at even distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


def _choose_largest(steps: PredictionTargets, sizes: list[FloatArray]) -> int:
    """The largest of some rising sizes that predicts no worse than the best one.

    That is, worse by no more than one standard error of the difference.
    """
    if steps.n_asked == 0:
        return len(sizes) - 1
    errors = [_predict_others(steps, size) for size in sizes]
    means = [float(error.mean()) for error in errors]
    best = means.index(min(means))
    for i in reversed(range(best, len(sizes))):
        difference = errors[i] - errors[best]
        standard_error = float(difference.std()) / np.sqrt(len(difference))
        if float(difference.mean()) <= standard_error:
            return i
    return best


def _predict_others(steps: PredictionTargets, size: FloatArray) -> FloatArray:
    """Squared error ``(N,)`` of predicting each step by all others in its cell.

    The prediction is the mean of what came of them and of the prior.
    """
    cell = number_cells(steps.points, size)
    pairs = cell * (int(steps.label.max()) + 1) + steps.label
    group = np.unique(pairs, return_inverse=True)[1]

    # Some steps only help to predict others.
    is_asked = slice(0, steps.n_asked)
    count = np.bincount(group)[group[is_asked]]
    errors = np.zeros(len(count))
    weight = steps.prior_weight
    outcome = np.clip(steps.outcome, -1.0, 1.0)
    for column, prior in zip(outcome.T, weight * steps.prior.T, strict=True):
        own = column[is_asked]
        sums = np.bincount(group, column)[group[is_asked]]
        of_others = (sums - own + prior[is_asked]) / (count - 1.0 + weight)
        errors += (own - of_others) ** 2
    return errors


def number_cells(points: FloatArray, size: FloatArray) -> IndexArray:
    """``(N,)`` a number for the cell of each point.

    Points are in the same cell if and only if they have the same number.
    """
    columns = np.floor((points - points.min(axis=0)) / size + 1e-6)
    return number_rows(columns.astype(np.int64))
