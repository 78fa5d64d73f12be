"""`check_columns`: what the columns of recorded observations are, before they are used.

A battery that falls through every episode separates its first from its last step better
than any wall, so it takes over the first eigenvectors. A column in millimetres beside
one in metres, or a sensor that never changes, does harm, too. Here they are found.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._text import count_noun, printable
from eigenoptions._types import BoolArray, FloatArray, IndexArray, Progress
from eigenoptions._validation import check_int, suggest_name
from eigenoptions.samples.changes import measure_step
from eigenoptions.samples.drift import find_drift, pair_angles
from eigenoptions.samples.influence import find_exogenous
from eigenoptions.samples.trajectories import Trajectories, find_trajectories
from eigenoptions.samples.transitions import Transitions

logger = logging.getLogger("eigenoptions")

# Which columns to use: their numbers or names; None for all that vary.
ColumnChoice = Sequence[int | str] | None


@dataclass(frozen=True)
class Column:
    """One column of recorded observations.

    Attributes
    ----------
    number : int
        Its place in the observation.
    name : str
        Its name in a data frame, else ``"column 3"``.
    low, high : float
        Smallest and largest value.
    step : float
        Median size of its changes, of those that are not zero.
    kind : str
        ``"constant"``, ``"drifting"``, ``"exogenous"``, ``"angle"``, or empty for an
        ordinary column.
    reason : str
        What was seen, in a few words.
    partner : int, default=None
        Of an angle: the column that holds its cosine, or its sine.
    """

    number: int
    name: str
    low: float
    high: float
    step: float
    kind: str = ""
    reason: str = ""
    partner: int | None = None

    @property
    def is_suspect(self) -> bool:
        """Whether the column may take over eigenvectors: it drifts or is exogenous."""
        return self.kind in ("drifting", "exogenous")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnReport:
    """What `check_columns` found. Shown as a table in a terminal and in a notebook.

    Attributes
    ----------
    columns : tuple of Column
        All columns of the observations.
    used : tuple of int
        Numbers of the columns to use: those that were asked for, else all that vary.
    was_asked : bool
        Whether `used` was asked for.
    n_steps, n_trajectories : int
        Size of the data. A trajectory is an episode, as far as the data show it.
    """

    columns: tuple[Column, ...]
    used: tuple[int, ...]
    was_asked: bool
    n_steps: int
    n_trajectories: int

    @property
    def suspects(self) -> tuple[Column, ...]:
        """Columns in use that drift or are exogenous."""
        return tuple(self.columns[i] for i in self.used if self.columns[i].is_suspect)

    @property
    def left_out(self) -> tuple[Column, ...]:
        """Columns that are not used."""
        return tuple(c for c in self.columns if c.number not in self.used)

    @property
    def low(self) -> FloatArray:
        """``(d,)`` lower ends of the columns in use; an angle is centred at 0."""
        return self._find_bounds()[0]

    @property
    def high(self) -> FloatArray:
        """``(d,)`` upper ends of the columns in use, always above the lower ends."""
        return self._find_bounds()[1]

    @property
    def scale_ratio(self) -> float:
        """Largest extent of a column in use, divided by the smallest."""
        extents = self.high - self.low
        return float(extents.max() / extents.min())

    def _find_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the columns in use."""
        low = np.array([self.columns[i].low for i in self.used])
        high = np.array([self.columns[i].high for i in self.used])

        # Sine and cosine keep their common scale, so that a circle stays one.
        for place, number in enumerate(self.used):
            partner = self.columns[number].partner
            if partner is not None:
                ends = [self.columns[number], self.columns[partner]]
                radius = max(max(abs(c.low), abs(c.high)) for c in ends)
                low[place] = -radius
                high[place] = radius

        # A constant column that was asked for has no extent, and cannot be scaled.
        return low, np.where(high > low, high, low + 1.0)

    def select(self, obs: Any) -> NDArray[Any]:
        """The columns in use of one observation ``(D,)`` or of a batch ``(N, D)``."""
        return np.asarray(obs)[..., list(self.used)]

    def explain(
        self, obs: ArrayLike, values: ArrayLike, labels: Sequence[str]
    ) -> dict[int, str]:
        """What share of some functions each suspect explains, for `warn`.

        Parameters
        ----------
        obs : array of shape (N, D)
            Observations, with all columns.
        values : array of shape (N, k)
            The functions there, the first eigenvectors say.
        labels : sequence of str
            Names of the functions.

        Returns
        -------
        dict
            By the number of a suspect, the function that it explains best, and the
            share of its variance that the column alone explains: ``"98% of e2"``.
        """
        rows = np.asarray(obs)
        functions = np.asarray(values, dtype=np.float64).reshape(len(rows), -1)
        shares = {}
        for column in self.suspects:
            explained = [
                _explain_share(rows[:, column.number], function)
                for function in functions.T
            ]
            best = int(np.argmax(np.round(explained, 6)))
            shares[column.number] = f"{explained[best]:.0%} of {labels[best]}"
        return shares

    def warn(
        self,
        shares: Mapping[int, str] | None = None,
        remedy: str = "columns={} leaves it out",
    ) -> None:
        """Log one warning for columns that were left out, and one for the suspects.

        Nothing is logged for columns that were asked for.

        Parameters
        ----------
        shares : mapping of int to str, default=None
            By the number of a suspect, how much of the result it makes up, as `explain`
            says it: ``{4: "98% of e2"}``.
        remedy : str, default="columns={} leaves it out"
            What to do about a suspect; the braces hold the other columns.
        """
        if self.was_asked:
            return
        if self.left_out:
            everything = [column.number for column in self.columns]
            pronoun = "it" if len(self.left_out) == 1 else "them"
            logger.warning(
                "%s left out, being constant: columns=%s keeps %s",
                _list_names(self.left_out),
                _shorten(everything),
                pronoun,
            )

        if self.suspects:
            parts = []
            for column in self.suspects:
                reasons = column.reason
                if shares and shares.get(column.number):
                    reasons = f"{reasons}, {shares[column.number]}"
                parts.append(f"{column.name} is {column.kind} ({reasons})")
            others = [i for i in self.used if not self.columns[i].is_suspect]
            if others:
                advice = remedy.format(_shorten(others))
            else:
                advice = "record what the actions change"
            logger.warning("%s: %s", "; ".join(parts), advice)

    def __repr__(self) -> str:
        rows = [("column", "from", "to", "step", "what it is")]
        rows += [self._describe_column(column) for column in self.columns]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]

        lines = [self._title]
        for name, low, high, step, what in rows:
            cells = [
                name.ljust(widths[0]),
                low.rjust(widths[1]),
                high.rjust(widths[2]),
                step.rjust(widths[3]),
                what,
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *self._notes])

    @property
    def _title(self) -> str:
        """The first line: how much was looked at."""
        steps = count_noun(self.n_steps, "step")
        episodes = "1 trajectory"
        if self.n_trajectories != 1:
            episodes = f"{self.n_trajectories} trajectories"
        return f"{count_noun(len(self.columns), 'column')} of {steps}, {episodes}"

    @property
    def _notes(self) -> list[str]:
        """Lines below the table."""
        notes = []
        if self.scale_ratio >= 100:
            notes.append(
                f"extents differ by a factor of {self.scale_ratio:.2g}: scales are set"
            )
        if not self.was_asked and self.left_out:
            notes.append(f"used: columns={_shorten(self.used)}")
        if self.suspects and not self.was_asked:
            others = [i for i in self.used if not self.columns[i].is_suspect]
            notes.append(f"without what drifts or is exogenous: columns={others}")
        return notes

    def _describe_column(self, column: Column) -> tuple[str, str, str, str, str]:
        """One row of the table."""
        name = f"{column.number} {column.name}"
        if column.name == f"column {column.number}":
            name = str(column.number)
        what = column.kind
        if column.reason:
            what = f"{column.kind}: {column.reason}"
        if self.was_asked and column.number not in self.used:
            what = f"{what} (not used)".strip()
        return (
            printable(name),
            f"{column.low:.4g}",
            f"{column.high:.4g}",
            f"{column.step:.4g}",
            what,
        )


# A column drifts if it rises (or falls) steadily in this share of the trajectories:
# the means of their parts form a monotone sequence.
_MONOTONE = 0.9

# It drifts, too, if this share of its changes are upwards (or downwards), like those of
# a battery that is charged now and then.
_ONE_SIGN = 0.95

# With fewer steps no column is called exogenous: they could not show it. Nor is one
# that changed less often, since it may depend on an action that was rare.
_MIN_STEPS = 1_000
_MIN_CHANGES = 20

# Rows in a run of those that are looked at: enough to show a trend.
_RUN = 500

# Bins of a column, by which its share of a function is estimated.
_N_BINS = 16


@shows_progress
def check_columns(
    data: Any,
    columns: ColumnChoice = None,
    *,
    max_steps: int = 20_000,
    max_columns: int = 256,
    progress: ProgressArgument = None,
) -> ColumnReport:
    """Look at the columns of recorded observations before they are used.

    A constant column is left out. One that drifts (a battery, a clock), or that is
    exogenous (the weather, noise: nothing that you do has an influence on it), stays,
    since it can matter, but is named in a warning. An angle given as sine and cosine is
    recognised, and each column gets a scale of its own.

    Parameters
    ----------
    data : object
        Whatever `Transitions.of` accepts, with vectors ``(N, D)`` as observations.
    columns : sequence of int or str, default=None
        The columns to use, by number or name. None: all that vary.
    max_steps : int, default=20000
        Most steps that are looked at.
    max_columns : int, default=256
        Of observations with more columns, such as images, only those that are constant
        are found, and a warning says so first.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of columns looked at and of all.

    Returns
    -------
    ColumnReport
        Print it for a table.

    Notes
    -----
    Callers take two lines: ``report = check_columns(transitions, columns)``, then
    ``report.select(obs)`` wherever observations come in (bounds: `report.low`,
    `report.high`). Once there are eigenvectors or cells, ``report.warn(shares)``, where
    ``report.explain(obs, values, labels)`` gives the shares of eigenvectors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> x = np.append(0, np.cumsum(2 * action - 1))
    >>> obs = np.stack([x, np.arange(2001) * 0.1, np.full(2001, 7.0)], axis=1)
    >>> check_columns((obs[:-1], action, obs[1:]))
    3 columns of 2000 steps, 1 trajectory
    column  from   to  step  what it is
    0         -3   93     1
    1          0  200   0.1  drifting: rises in 100% of the trajectories
    2          7    7     0  constant
    used: columns=[0, 1]
    without what drifts or is exogenous: columns=[0]
    """
    progress = check_progress(progress)
    max_steps = check_int("max_steps", max_steps)
    max_columns = check_int("max_columns", max_columns)

    transitions = Transitions.of(data, continuous=True)
    if not len(transitions):
        raise ValueError("there are no transitions: record some")
    obs, next_obs = _flatten_columns(transitions)
    names = _name_columns(transitions, obs.shape[1])
    low = np.minimum(obs.min(axis=0), next_obs.min(axis=0)).astype(np.float64)
    high = np.maximum(obs.max(axis=0), next_obs.max(axis=0)).astype(np.float64)
    is_constant = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))

    # Which columns to use.
    if columns is None:
        used = tuple(np.flatnonzero(~is_constant).tolist())
    else:
        used = _choose_columns(columns, names)
    if not used:
        raise ValueError(
            f"all {len(names)} columns of the observations are constant: record steps "
            "that change something"
        )

    # What they are.
    if len(names) > max_columns:
        logger.warning(
            "of %d columns only those that are constant are looked for, and none that "
            "drifts, is exogenous or an angle: give columns=, or max_columns=%d (the "
            "time grows with its square)",
            len(names),
            len(names),
        )
    rows = _thin_rows(len(obs), max_steps)
    looked_at = _SampledRows.take(transitions, obs, next_obs, rows)
    partners: dict[int, int] = {}
    drift = [""] * len(names)
    is_exogenous = np.zeros(len(names), dtype=np.bool_)
    if len(names) <= max_columns:
        partners = pair_angles(looked_at.obs, is_constant)
        drift = find_drift(
            looked_at.obs,
            looked_at.next_obs,
            looked_at.trajectories,
            _MONOTONE,
            _ONE_SIGN,
        )
        is_exogenous = _find_exogenous(looked_at, is_constant, progress)

    change = looked_at.next_obs - looked_at.obs
    typical_steps = measure_step(change, quantile=0.5)
    found = []
    for i, name in enumerate(names):
        column = Column(i, name, float(low[i]), float(high[i]), float(typical_steps[i]))
        if is_constant[i]:
            column = replace(column, kind="constant")
        elif drift[i]:
            column = replace(column, kind="drifting", reason=drift[i])
        elif is_exogenous[i]:
            reason = "no action has an influence on it"
            if column.step == 0:
                reason = "it never changes within a trajectory"
            column = replace(column, kind="exogenous", reason=reason)
        elif i in partners:
            reason = f"sine and cosine, with {names[partners[i]]}"
            column = replace(column, kind="angle", reason=reason)
        found.append(replace(column, partner=partners.get(i)))
    return ColumnReport(
        columns=tuple(found),
        used=used,
        was_asked=columns is not None,
        n_steps=len(transitions),
        n_trajectories=len(looked_at.trajectories.n_steps),
    )


@dataclass(frozen=True, eq=False)
class _SampledRows:
    """The steps that are looked at."""

    obs: FloatArray
    action: NDArray[Any]
    next_obs: FloatArray
    trajectories: Trajectories

    @classmethod
    def take(
        cls,
        transitions: Transitions,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        rows: IndexArray,
    ) -> _SampledRows:
        """The steps in some rows of the data, with observations as floats."""
        before = obs[rows].astype(np.float64)
        after = next_obs[rows].astype(np.float64)

        # Rows that were left out cut a trajectory, too: it goes on only where an
        # observation is the one that the row before ended with.
        is_end = transitions.terminated
        if transitions.truncated is not None:
            is_end = is_end | transitions.truncated
        trajectories = find_trajectories(before, after, is_end[rows])
        return cls(
            obs=before,
            action=transitions.action[rows],
            next_obs=after,
            trajectories=trajectories,
        )


def _thin_rows(n_rows: int, max_rows: int) -> IndexArray:
    """Numbers of the rows that are looked at: runs of consecutive ones, if too many."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    n_runs = max(max_rows // _RUN, 1)
    run = min(_RUN, max_rows)
    begins = np.linspace(0, n_rows - run, n_runs).astype(np.intp)
    rows: IndexArray = (begins[:, None] + np.arange(run)).ravel()
    return rows


def _flatten_columns(transitions: Transitions) -> tuple[NDArray[Any], NDArray[Any]]:
    """Observations before and after each step as rows of numbers."""
    obs = transitions.obs
    next_obs = transitions.next_obs
    if obs.ndim < 2 or obs.dtype.kind not in "biuf":
        raise ValueError(
            f"columns are those of vectors (N, D), got states {obs.dtype} {obs.shape}: "
            "there is nothing to check"
        )
    if obs.shape != next_obs.shape:
        raise ValueError(
            f"next_obs must have the shape of obs, {obs.shape}, got {next_obs.shape}"
        )
    n_rows = len(obs)
    return obs.reshape(n_rows, -1), next_obs.reshape(n_rows, -1)


def _name_columns(transitions: Transitions, n_columns: int) -> list[str]:
    """Names of the columns, where the data have some, else their numbers."""
    if transitions.names is not None:
        return list(transitions.names)
    return [f"column {number}" for number in range(n_columns)]


def _choose_columns(columns: Sequence[int | str], names: list[str]) -> tuple[int, ...]:
    """Numbers of the columns that are asked for by number or name."""
    if isinstance(columns, str | int):
        raise ValueError(f"columns must be a list, got {columns!r}: try [{columns!r}]")
    chosen = []
    for column in columns:
        if isinstance(column, str):
            if column not in names:
                hint = suggest_name(column, names)
                raise ValueError(
                    f"there is no column {column!r} among {', '.join(names)}{hint}"
                )
            chosen.append(names.index(column))
        else:
            chosen.append(check_int("a column", column, 0, len(names) - 1))
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"columns must be different numbers or names, got {list(columns)!r}"
        )
    return tuple(chosen)


def _find_exogenous(
    steps: _SampledRows,
    is_constant: BoolArray,
    progress: Progress | None,
) -> BoolArray:
    """``(D,)`` which columns are exogenous; none where the data cannot show it."""
    is_exogenous = np.zeros(len(is_constant), dtype=np.bool_)
    action = steps.action
    if len(action) < _MIN_STEPS or (action == action[0]).all():
        return is_exogenous

    n_changes = (steps.next_obs != steps.obs).sum(axis=0)
    is_told = (n_changes == 0) | (n_changes >= _MIN_CHANGES)
    candidates = np.flatnonzero(is_told & ~is_constant)
    return find_exogenous(
        steps.obs,
        action,
        steps.next_obs,
        steps.trajectories,
        candidates,
        progress=progress,
    )


def _explain_share(column: NDArray[Any], function: FloatArray) -> float:
    """Share of a function's variance that a column alone explains, by bins of it."""
    edges = np.quantile(column, np.arange(1, _N_BINS) / _N_BINS)
    number = np.searchsorted(edges, column, side="right")
    count = np.bincount(number, minlength=_N_BINS)
    deviation = function - function.mean()
    sums = np.bincount(number, deviation, minlength=_N_BINS)

    variance = float(deviation @ deviation)
    if variance == 0:
        return 0.0
    between = float((sums**2 / np.maximum(count, 1)).sum())
    return between / variance


def _list_names(columns: Sequence[Column]) -> str:
    """Names in a sentence, and the verb: ``"column 3 is"``."""
    names = [column.name for column in columns]
    if len(names) > 8:
        return f"{', '.join(names[:8])} and {len(names) - 8} more are"
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb}"


def _shorten(numbers: Sequence[int]) -> str:
    """Numbers of columns as Python would write them, shortened in the middle."""
    if len(numbers) <= 16:
        return str(list(numbers))
    return f"[{numbers[0]}, {numbers[1]}, ..., {numbers[-1]}]"
