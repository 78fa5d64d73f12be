"""How large cells should be: as large as they may be without predicting worse.

A table of cells says what each action does in each cell. Large cells mix free places
with those at a wall; small ones have seen few steps, and a move that was never tried
counts as one that fails. Both predict steps that they have not seen worse. So each step
is predicted by all others in its cell, and the size whose errors are smallest is the
right one. Where the data do not tell two sizes apart, the larger one has fewer states.
With more data smaller cells predict better, and are taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eigenoptions._types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What a table of cells has to predict.

    Attributes
    ----------
    points : ndarray of shape (N, d)
        Points before each step.
    label : ndarray of int of shape (N,)
        The action of each step, or the direction that it aimed at.
    outcome : ndarray of shape (N, m)
        What came of the step; 0 for nothing, 1 for a large step as it was meant.
    step : ndarray of shape (d,)
        A large step.
    is_steered : ndarray of bool of shape (d,)
        Whether a column neither drifts nor is exogenous.
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
    step: FloatArray
    is_steered: BoolArray
    prior: FloatArray
    prior_weight: float
    n_asked: int


def choose_common_multiple(
    steps: Outcomes,
    multiples: Iterable[float] = (1.0, 1.25, 1.77, 2.5, 3.54, 5.0),
) -> FloatArray:
    """Sides ``(d,)`` of cells that are the same number of steps wide in each column."""
    sizes = [multiple * steps.step for multiple in multiples]
    return sizes[_choose_largest(steps, sizes)]


def choose_multiples(
    steps: Outcomes, n_rounds: int = 2, n_steps: float = 3.0, visits: float = 10.0
) -> FloatArray:
    """Sides ``(d,)`` of cells, chosen for one column after the other.

    Numbered actions move by steps of their own, so cells are at most `n_steps` wide,
    unless the data would have fewer than `visits` steps in a cell. A column that drifts
    or is exogenous, such as a battery, is nothing that one steers: its cells may be as
    wide as its range.
    """
    ranges = np.ptp(steps.points, axis=0)
    # A heading of few values has to be told apart, so cells begin below one step.
    finest = 0.75 * steps.step
    to_range = np.ceil(np.log2(np.maximum(ranges / finest, 1.0))).astype(int)
    most = np.minimum(to_range, round(np.log2(n_steps / 0.75)))
    while (most < to_range).any():
        n_cells = len(np.unique(number_cells(steps.points, finest * 2.0**most)))
        if n_cells * visits <= len(steps.points):
            break
        most = np.minimum(most + 1, to_range)
    most = np.where(steps.is_steered, most, to_range)

    size: FloatArray = finest * 2.0**most
    for _ in range(n_rounds):
        for j, n_doublings in enumerate(most):
            sizes = []
            for power in range(n_doublings + 1):
                candidate = size.copy()
                candidate[j] = finest[j] * 2.0**power
                sizes.append(candidate)
            size = sizes[_choose_largest(steps, sizes)]
    return size


def _choose_largest(steps: Outcomes, sizes: list[FloatArray]) -> int:
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


def _predict_others(steps: Outcomes, size: FloatArray) -> FloatArray:
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
    columns = np.floor((points - points.min(axis=0)) / size + 1e-6).astype(np.int64)
    numbers = np.zeros(len(points), dtype=np.int64)
    for column in columns.T:
        pairs = numbers * (int(column.max()) + 1) + column
        # As few numbers as possible, so that no product of them overflows.
        numbers = pairs
        if pairs.max() > 2**30:
            numbers = np.unique(pairs, return_inverse=True)[1]
    return numbers
