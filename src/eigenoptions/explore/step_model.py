"""What a step does, as far as known: hinges, corrections near by, and walls."""

from __future__ import annotations

import numpy as np

from eigenoptions._kernels.model_arrays import (
    Frame,
    Novelty,
    Smooth,
    Space,
    Table,
    Walls,
)
from eigenoptions._types import FloatArray, IndexArray

N_HINGES = 60
MOST_ROWS = 2000
FINE = 8
MOST_WALLS = 320
LIMIT = 0.2
N_FITS = 8
LEAST_ERROR = 0.02
CHOOSE_UNTIL = 2000


def make_inputs(space: Space, points: FloatArray) -> FloatArray:
    """What the smooth model reads of points: an angle as its cosine and sine."""
    parts = []
    for i, turns in enumerate(space.turns):
        if turns:
            angle = points[:, i] * space.radians[i]
            parts += [np.cos(angle), np.sin(angle)]
        else:
            parts.append(points[:, i])
    return np.stack(parts, axis=1)


def fit_smooth(
    space: Space,
    points: FloatArray,
    controls: FloatArray,
    change: FloatArray,
    vectors: FloatArray,
    rng: np.random.Generator,
    choice: IndexArray,
) -> tuple[Smooth, FloatArray]:
    """Fit the smooth model to the steps that it explains; return it and its limits.

    Parameters
    ----------
    vectors : ndarray of shape (A, k)
        What the linear part reads of each action.
    """
    inputs = make_inputs(space, points)
    mean = inputs.mean(axis=0)
    spread = inputs.std(axis=0) + 1e-9
    z = (inputs - mean) / spread
    m = z.shape[1]
    # Each hinge goes through a point that was seen, in a random direction.
    directions = rng.normal(size=(m, N_HINGES))
    directions /= np.sqrt((directions**2).sum(axis=0))
    offsets = (z[rng.integers(len(z), size=N_HINGES)] * directions.T).sum(axis=1)

    rows = np.sort(rng.permutation(len(z))[:MOST_ROWS])
    acts = controls[rows]
    both = (acts[:, :, None] * z[rows][:, None]).reshape(len(rows), -1)
    bent = np.maximum(z[rows] @ directions - offsets, 0.0)
    parts = [np.ones((len(rows), 1)), z[rows], acts, both, bent]
    x = np.concatenate(parts, axis=1)
    ends = np.cumsum([part.shape[1] for part in parts])
    penalty = np.ones(x.shape[1])
    penalty[ends[3] :] = 100.0
    y = np.clip(change[rows], -4, 4)

    # Steps that repeat one another count once, and those that went nowhere less.
    tries = np.column_stack([np.floor(points[rows] + 0.37), acts])
    _, number, n_same = np.unique(
        tries, axis=0, return_inverse=True, return_counts=True
    )
    share = 1.0 / n_same[number.ravel()]
    d = change.shape[1]
    weights = np.zeros((x.shape[1], d))
    limits = np.zeros(d)
    for i in range(d):
        trust = share * np.where(np.abs(y[:, i]) < 0.02, 0.3, 1.0)
        if len(z) <= CHOOSE_UNTIL:
            choice[i] = choose_family(x, y[:, i], trust, penalty, ends)
        n = ends[2 + choice[i]]
        weights[:n, i] = fit_weights(x[:, :n], y[:, i], trust, penalty[:n], N_FITS)
        errors = np.abs(y[:, i] - x @ weights[:, i])
        limits[i] = max(LIMIT, 4 * np.median(errors))

    if not choice.any() or choice.max() < 2:
        # No coordinate bends.
        directions, offsets = directions[:, :0], offsets[:0]
        weights = weights[: ends[3]]
    base, shared, by_action, slopes, bends = np.split(weights, ends[:-1])
    base = base + vectors @ by_action
    slope = shared + np.einsum("ak,kmd->amd", vectors, slopes.reshape(-1, m, d))
    low, high = find_bounds(space, points + change)
    smooth = Smooth(
        mean=mean,
        spread=spread,
        directions=np.ascontiguousarray(directions),
        offsets=offsets,
        bends=np.ascontiguousarray(bends),
        base=np.ascontiguousarray(base),
        slope=np.ascontiguousarray(slope),
        least=1.5 * change.min(axis=0),
        most=1.5 * change.max(axis=0),
        low=low,
        high=high,
    )
    return smooth, limits


def find_bounds(space: Space, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of coordinates: extreme values that occur again and again."""
    lowest, highest = after.min(axis=0), after.max(axis=0)
    slack = 1e-6 * (highest - lowest)
    is_angle = space.turns > 0
    is_low = ((after <= lowest + slack).sum(axis=0) >= 5) & ~is_angle
    is_high = ((after >= highest - slack).sum(axis=0) >= 5) & ~is_angle
    return np.where(is_low, lowest, -np.inf), np.where(is_high, highest, np.inf)


def choose_family(
    x: FloatArray,
    y: FloatArray,
    trust: FloatArray,
    penalty: FloatArray,
    ends: IndexArray,
) -> int:
    """The simplest family that predicts the newest steps nearly as well as the best."""
    n_old = int(0.8 * len(x))
    scores = []
    for n in ends[2:]:
        weights = fit_weights(x[:n_old, :n], y[:n_old], trust[:n_old], penalty[:n], 5)
        errors = np.abs(y[n_old:] - x[n_old:, :n] @ weights)
        scores.append(np.average(errors < 0.15, weights=trust[n_old:]))
        if scores[-1] > 0.96:
            break
    return int(np.argmax(np.array(scores) >= max(scores) - 0.03))


def fit_weights(
    x: FloatArray,
    y: FloatArray,
    trust: FloatArray,
    penalty: FloatArray,
    n_rounds: int,
) -> FloatArray:
    """Weights of the least sum of absolute errors: a wall explains itself."""
    weight = trust
    weights: FloatArray = np.zeros(x.shape[1])
    for _ in range(n_rounds):
        weighted = x * weight[:, None]
        gram = x.T @ weighted + np.diag(penalty * (1e-6 * weight.sum()))
        weights = np.asarray(np.linalg.solve(gram, weighted.T @ y), np.float64)
        weight = trust / np.maximum(np.abs(y - x @ weights), LEAST_ERROR)
    return weights


def make_table(n: int, d: int) -> Table:
    """An empty hash table with room for n keys."""
    capacity = 1 << max(int(np.ceil(np.log2(2 * n + 16))), 8)
    return Table(
        np.zeros(capacity, np.uint64), np.zeros(capacity), np.zeros((capacity, d))
    )


def make_frame(
    space: Space, cells: IndexArray, fine: int, margin: int, most: int
) -> Frame:
    """Lay cells into maps of at most `most` rows, with a margin around them."""
    is_angle = space.turns > 0
    low = np.where(is_angle, 0, cells.min(axis=0) - margin)
    high = np.where(is_angle, space.turns * fine, cells.max(axis=0) + margin + 1)
    n_cells = high - low
    shift = np.maximum(0, np.ceil(np.log2(n_cells / most))).astype(np.int64)
    width = -(-n_cells >> shift)
    return Frame(low, shift, np.maximum(width, 1), fine)


def make_novelty(space: Space, frame: Frame) -> Novelty:
    """Maps where nothing was seen."""
    n_pairs, most = len(space.pairs), int(frame.width.max())
    shape = (n_pairs, most, most)
    return Novelty(frame, np.zeros(shape, np.bool_), np.full(shape, 16.0))


def make_walls(space: Space, frame: Frame, limit: FloatArray) -> Walls:
    """Maps without walls."""
    n_pairs, most, d = len(space.pairs), int(frame.width.max()), len(space.turns)
    shape = (d, n_pairs, most, most)
    return Walls(
        frame=frame,
        limit=limit,
        held=np.full(shape[1:], 1e6, np.float32),
        failed=np.full(shape, 1e6, np.float32),
        outcome=np.zeros(shape),
        hits=np.zeros((d, n_pairs)),
        failures=np.zeros(d),
        explains=np.zeros((d, n_pairs), np.bool_),
    )
