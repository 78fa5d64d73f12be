"""Axes: the columns of observations that move, in large steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions._kernels.model_arrays import Space
from eigenoptions._types import FloatArray
from eigenoptions.samples.changes import measure_step


class Axes:
    """How observations become points: one coordinate per axis, in large steps.

    Parameters
    ----------
    columns : list of int
        The columns that are coordinates as they are.
    circles : list of (int, int)
        Pairs of columns that are the cosine and sine of an angle.
    angles : list of int
        Columns that are angles in radians and jump.
    left_out : dict, default=None
        Columns that move and are left out, with the reason.
    """

    def __init__(
        self,
        columns: list[int],
        circles: list[tuple[int, int]],
        angles: list[int],
        left_out: dict[int, str] | None = None,
    ) -> None:
        self.columns = columns
        self.circles = circles
        self.angles = angles
        self.left_out = left_out or {}
        n_angles = len(circles) + len(angles)
        self.d = len(columns) + n_angles
        self.is_angle = np.arange(self.d) >= len(columns)
        self.step = np.ones(self.d)
        self.size = np.ones(self.d)
        self.turns = np.zeros(self.d, dtype=np.int64)

    def measure(self, obs: FloatArray, next_obs: FloatArray) -> None:
        """Measure a large step; an angle has four quarters of whole cells."""
        self.size = np.ones(self.d)
        self.turns = np.zeros(self.d, dtype=np.int64)
        change = self.read(next_obs) - self.read(obs)
        turned = change[:, self.is_angle]
        change[:, self.is_angle] = (turned + np.pi) % (2 * np.pi) - np.pi
        self.step = measure_step(change)
        self.scale()

    def scale(self) -> None:
        """Derive sides of cells from the large step."""
        quarters = np.maximum(1, np.round(np.pi / 2 / self.step)).astype(np.int64)
        self.turns = np.where(self.is_angle, 4 * quarters, 0)
        self.size = np.where(self.is_angle, np.pi / 2 / quarters, self.step)

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain lists, for a file."""
        return {
            "columns": self.columns,
            "circles": [list(circle) for circle in self.circles],
            "angles": self.angles,
            "left_out": [[j, kind] for j, kind in self.left_out.items()],
            "step": self.step.tolist(),
        }

    @classmethod
    def from_dict(cls, held: dict[str, Any]) -> Axes:
        """What `to_dict` returned."""
        axes = cls(
            [int(j) for j in held["columns"]],
            [(int(i), int(j)) for i, j in held["circles"]],
            [int(j) for j in held["angles"]],
            {int(j): str(kind) for j, kind in held["left_out"]},
        )
        axes.step = np.array(held["step"], dtype=np.float64)
        if axes.step.shape != (axes.d,) or not (axes.step > 0).all():
            raise ValueError("each coordinate needs a step above 0")
        axes.scale()
        return axes

    def describe_left_out(self) -> str:
        """Name the columns that move and are left out, with the reason."""
        return _describe(self.left_out)

    def __repr__(self) -> str:
        return f"{self.d} coordinates" if self.d > 1 else "1 coordinate"

    def is_like(self, other: Axes) -> bool:
        """Whether cells would hardly differ from those of others."""
        mine = (self.columns, self.circles, self.angles)
        if mine != (other.columns, other.circles, other.angles):
            return False
        ratio = np.log(self.step / other.step)
        return bool((np.abs(ratio) < np.log(1.5)).all())

    def read(self, obs: FloatArray) -> FloatArray:
        """Points ``(N, d)`` of observations."""
        angles = [np.arctan2(obs[:, j], obs[:, i]) for i, j in self.circles]
        angles += [obs[:, column] for column in self.angles]
        return np.column_stack([obs[:, self.columns], *angles]) / self.size

    def write(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        """Observations of points; columns that are no axes keep those of rows."""
        rows = rows.copy()
        values = points * self.size
        n_plain = len(self.columns)
        rows[:, self.columns] = values[:, :n_plain]
        for (i, j), angle in zip(self.circles, values[:, n_plain:].T, strict=False):
            rows[:, i] = np.cos(angle)
            rows[:, j] = np.sin(angle)
        jumping = values[:, n_plain + len(self.circles) :]
        # From -pi to pi, as `read` has it where an angle jumps there.
        rows[:, self.angles] = (jumping + np.pi) % (2 * np.pi) - np.pi
        return rows

    def subtract(self, after: FloatArray, before: FloatArray) -> FloatArray:
        """Changes from one point to another, the shorter way round for angles."""
        change = after - before
        turns = self.turns[self.is_angle]
        turned = change[:, self.is_angle]
        change[:, self.is_angle] = (turned + turns / 2) % turns - turns / 2
        return change

    @property
    def space(self) -> Space:
        """What the kernels need to know."""
        pairs = [(i, j) for i in range(self.d) for j in range(i + 1, self.d)]
        return Space(
            turns=self.turns,
            radians=np.where(self.is_angle, self.size, 0.0),
            pairs=np.array(pairs or [(0, 0)], dtype=np.int64),
        )


def choose_axes(
    obs: FloatArray,
    next_obs: FloatArray,
    controls: FloatArray,
    columns: Sequence[int] | None = None,
    most: int = 6,
) -> Axes:
    """Return the axes in which observations move.

    Constant columns are left out, and so are clocks, which are always new, and columns
    that only noise moves, unless `columns` names them.

    Parameters
    ----------
    obs, next_obs : ndarray of shape (N, D)
        Observations before and after each step.
    controls : ndarray of shape (N, k)
        What a model reads of the actions.
    columns : sequence of int, default=None
        The columns to use. None: all that move.
    most : int, default=6
        Most coordinates.
    """
    moves = (next_obs != obs).any(axis=0)
    kinds = dict.fromkeys(np.flatnonzero(moves).tolist(), "")
    if columns is None:
        kinds = {j: find_kind(j, obs, next_obs, controls) for j in kinds}
        candidates = [j for j, kind in kinds.items() if not kind]
    else:
        candidates = [j for j in columns if moves[j]]
    left_out = {j: kind for j, kind in kinds.items() if kind}

    circles = _find_circles(obs, candidates)
    paired = {j for circle in circles for j in circle}
    others = [j for j in candidates if j not in paired]
    angles = [j for j in others if is_angle(obs[:, j], next_obs[:, j])]
    plain = [j for j in others if j not in angles]
    axes = Axes(plain, circles, angles, left_out)
    if axes.d > most:
        raise ValueError(
            f"{axes.d} coordinates move ({_list_columns(candidates)}), at most {most} "
            f"can be explored: give some of them, columns={candidates[:most]} say"
        )
    if axes.d == 0 and left_out:
        raise ValueError(
            f"nothing moves but {_describe(left_out)}: give columns= to use them, or "
            "key=, a function key(env, obs) to something coarser"
        )
    if axes.d == 0:
        raise ValueError(
            "no action changes the observation: give an environment that moves, or "
            "more columns="
        )
    axes.measure(obs, next_obs)
    return axes


def find_kind(
    column: int, obs: FloatArray, next_obs: FloatArray, controls: FloatArray
) -> str:
    """What keeps a column from being explored: "clock", "drift", "noise", or nothing.

    A clock goes on at its own pace, a battery drains in one direction: they are new for
    ever. A column is noise if neither the observation before nor the action says what
    it is next.
    """
    change = next_obs[:, column] - obs[:, column]
    largest = np.abs(change).max()
    if np.ptp(change) <= 1e-3 * largest and np.ptp(controls, axis=0).any():
        return "clock"
    if _drifts(change, controls):
        return "drift"
    n_rows = len(obs)
    scale = np.abs(obs).max(axis=0) + 1e-12
    inputs = np.column_stack([np.ones(n_rows), obs / scale, controls])
    if n_rows < 2 * inputs.shape[1]:
        return ""
    target = next_obs[:, column]
    weights = np.linalg.lstsq(inputs, target, rcond=None)[0]
    error = ((target - inputs @ weights) ** 2).mean()
    n_free = max(n_rows - inputs.shape[1], 1)
    explained = 1.0 - error / max(target.var(), 1e-300) * n_rows / n_free
    return "noise" if explained < 0.2 else ""


def _drifts(change: FloatArray, controls: FloatArray) -> bool:
    """Whether a column goes one way, whatever the action."""
    share = max(float((change > 0).mean()), float((change < 0).mean()))
    if share < 0.95:
        return False
    _, number, counts = np.unique(
        controls.round(3), axis=0, return_inverse=True, return_counts=True
    )
    tried = np.flatnonzero(counts >= 3)
    signs = {np.sign(np.median(change[number.ravel() == a])) for a in tried.tolist()}
    return len(tried) > 1 and len(signs) == 1


def _find_circles(obs: FloatArray, candidates: list[int]) -> list[tuple[int, int]]:
    """Pairs of columns that are the cosine and sine of an angle."""
    circles: list[tuple[int, int]] = []
    free = list(candidates)
    for i in candidates:
        for j in candidates:
            if not (i < j and i in free and j in free):
                continue
            radius = obs[:, i] ** 2 + obs[:, j] ** 2
            if np.abs(radius - 1.0).max() < 1e-3:
                circles.append((i, j))
                free.remove(i)
                free.remove(j)
    return circles


def _list_columns(columns: Sequence[int]) -> str:
    return "columns " + ", ".join(map(str, columns))


def _describe(left_out: dict[int, str]) -> str:
    """Name columns that are left out, with the reason."""
    words = {
        "clock": "goes like a clock",
        "drift": "goes one way only",
        "noise": "is noise",
    }
    return ", ".join(f"column {j} ({words[kind]})" for j, kind in left_out.items())


def is_angle(before: FloatArray, after: FloatArray) -> bool:
    """Whether a column is an angle in radians that jumps by a turn."""
    low = min(before.min(), after.min())
    high = max(before.max(), after.max())
    fits = (low >= -3.15 and high <= 3.15) or (low >= -0.01 and high <= 6.29)
    return bool(fits and (np.abs(after - before) > np.pi).any())
