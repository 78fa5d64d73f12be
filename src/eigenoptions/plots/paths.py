"""Paths of options of vectors, made of recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from scipy.spatial import cKDTree

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_int
from eigenoptions.options.execution import RunningOption, is_end
from eigenoptions.samples import Transitions
from eigenoptions.samples.changes import measure_unit
from eigenoptions.samples.linear import LinearOption, LinearOptionSet

# A path breaks off where no step is so near, in large steps of the data.
_REACH = 1.5

# One of so many nearest steps is drawn: their ends differ.
_N_NEAREST = 4


class DrawnPath(NamedTuple):
    """Observations ``(n, D)`` on the way of an option, and whether it terminated."""

    obs: FloatArray
    has_ended: bool


class RecordedSteps:
    """Steps that can be put together to a path that nobody recorded.

    The next step is one of the nearest with the action that the option takes.

    Parameters
    ----------
    steps : Transitions
        Steps between vectors.
    columns : sequence of int or None
        The columns in which steps are near; None for all.
    """

    def __init__(self, steps: Transitions, columns: Sequence[int] | None) -> None:
        self.steps = steps
        self._columns = slice(None) if columns is None else list(columns)
        obs = self._select(steps.obs)
        self._scale = measure_unit(obs, self._select(steps.next_obs))
        self._trees: dict[int, cKDTree] = {}
        self._rows: dict[int, IndexArray] = {}
        for action in np.unique(steps.action).tolist():
            rows = np.flatnonzero(steps.action == action)
            self._rows[action] = rows
            self._trees[action] = cKDTree(obs[rows] / self._scale)

    def _select(self, obs: FloatArray) -> FloatArray:
        """The columns in which steps are near, of observations ``(..., D)``."""
        return np.asarray(obs, dtype=np.float64)[..., self._columns]

    def follow(
        self,
        option: LinearOption,
        row: int,
        rng: np.random.Generator,
        max_steps: int = 300,
    ) -> DrawnPath:
        """Where an option leads from the observation in a row.

        Parameters
        ----------
        option : LinearOption
            The option. It ends as it does in an environment; see `RunningOption`.
        row : int
            Number of the step before which the path begins.
        rng : Generator
            Draws one of the nearest steps, whose ends differ.
        max_steps : int, default=300
            Longest path.
        """
        running = RunningOption(option, rng)
        obs = self.steps.obs[row]
        path = [obs]
        while len(path) <= max_steps:
            action = running.act(obs)
            if is_end(action):
                return DrawnPath(np.array(path), True)
            near = self._find_steps(obs, action)
            if not len(near):
                break
            obs = self.steps.next_obs[rng.choice(near)]
            path.append(obs)
        return DrawnPath(np.array(path), False)

    def _find_steps(self, obs: FloatArray, action: int) -> IndexArray:
        """Rows of the nearest steps with an action, of those within reach."""
        if action not in self._trees:
            return np.empty(0, dtype=np.intp)
        place = self._select(obs) / self._scale
        distances, nearest = self._trees[action].query(
            place, k=range(1, _N_NEAREST + 1), distance_upper_bound=_REACH
        )
        # Where fewer are within reach, distances are infinite.
        is_near = np.isfinite(distances)
        rows: IndexArray = self._rows[action][nearest[is_near]]
        return rows


def draw_paths(
    axes: Sequence[Axes],
    options: LinearOptionSet,
    steps: Transitions,
    over: tuple[int, int] = (0, 1),
    n_paths: int = 6,
) -> None:
    """Draw where each option leads: lines from circles to dots, over two columns.

    A path is made of recorded steps: each is near the end of the one before, and has
    the action that the option takes. One without a dot breaks off, since no step is
    near.

    Parameters
    ----------
    axes : sequence of Axes
        One per option.
    options : LinearOptionSet
        Options of vectors.
    steps : Transitions
        Recorded steps.
    over : tuple of int, default=(0, 1)
        The columns to the right and up.
    n_paths : int, default=6
        Paths of each option. They begin where its potential is low.
    """
    n_paths = check_int("n_paths", n_paths)
    right, up = (check_int("over", c, 0, steps.obs.shape[1] - 1) for c in over)
    recorded = RecordedSteps(steps, getattr(options.features, "columns", None))
    potentials = options.potential(steps.obs)
    rng = np.random.default_rng(0)
    for ax, option, potential in zip(axes, options, potentials, strict=True):
        # Spread over the third of the data where the potential is lowest.
        lowest = np.argsort(potential, kind="stable")[: max(1, len(potential) // 3)]
        starts = lowest[:: max(1, len(lowest) // n_paths)][:n_paths]
        for row in starts.tolist():
            path = recorded.follow(option, row, rng)
            x = path.obs[:, right]
            y = path.obs[:, up]
            ax.plot(x, y, color="black", lw=0.7)
            ax.plot(x[:1], y[:1], "o", mfc="white", mec="black", mew=0.7, ms=3)
            if path.has_ended:
                ax.plot(x[-1:], y[-1:], "o", color="black", ms=3)
