"""Options that act on observations, drawn over frames or two columns of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from eigenoptions._colors import INK
from eigenoptions._ties import find_first_maximum
from eigenoptions._types import BoolArray, FloatArray
from eigenoptions._validation import check_int
from eigenoptions.options.maps import make_caption
from eigenoptions.plots.style import read_colormap
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.vectors.cells import Cells

# Points to the right, and up, between the bounds of features of two numbers.
_N_SPREAD = 25


class Points(NamedTuple):
    """Places in the plane, and what each option does there.

    Parameters
    ----------
    places : (N, 2) array
        To the right and up.
    potentials : (n, N) array
        Potential of each option.
    is_end : (n, N) array of bool
        Whether it ends there.
    axes : str
        What the two axes are.
    """

    places: FloatArray
    potentials: FloatArray
    is_end: BoolArray
    axes: str


def draw_strips(
    axes: Sequence[Axes], options: LinearOptionSet, frames: ArrayLike, n_frames: int = 4
) -> None:
    """Draw where each option leads, as a strip of frames: from its start to its end.

    The first frame is the one with the lowest potential, the last one that with the
    highest potential of those where the option terminates. Between them the potential
    rises evenly.

    Parameters
    ----------
    axes : sequence of Axes
        One per option.
    options : LinearOptionSet
        Options of frames.
    frames : array (N, height, width) or (N, height, width, channels)
        Frames to choose from, some hundred.
    n_frames : int, default=4
        Frames of a strip, at least 2.
    """
    images = _read_frames(frames)
    n_frames = check_int("n_frames", n_frames, 2)
    potentials = options.potential(frames)
    ends = options.actions(frames) < 0
    for ax, option, potential, is_end in zip(
        axes, options, potentials, ends, strict=True
    ):
        rows = _choose_rows(potential, is_end, n_frames)
        # A white line between two frames.
        gap = np.full((images.shape[1], 2, 3), 255, dtype=np.uint8)
        parts = [images[rows[0]]]
        for row in rows[1:]:
            parts += [gap, images[row]]
        ax.imshow(np.concatenate(parts, axis=1), interpolation="nearest")
        ax.set_axis_off()
        ax.set_title(make_caption(option.label, option.eigenvalue))


def draw_points(
    axes: Sequence[Axes],
    options: LinearOptionSet,
    observations: ArrayLike,
    over: tuple[int, int] = (0, 1),
    cmap: str | Colormap | None = None,
) -> None:
    """Draw each option over two columns of vectors: colours rise to where it ends.

    Parameters
    ----------
    axes : sequence of Axes
        One per option.
    options : LinearOptionSet
        Options of vectors.
    observations : array (N, D)
        Points to be drawn, some thousand. Where an option terminates they have a ring.
    over : tuple of int, default=(0, 1)
        The columns to the right and up.
    cmap : str or Colormap, optional
        Colour map of the potential.
    """
    draw_places(axes, options, observe(options, observations, over), cmap)


def observe(
    options: LinearOptionSet, observations: ArrayLike, over: tuple[int, int]
) -> Points:
    """What options do at observations, over two of their columns."""
    points = np.asarray(observations)
    right, up = (check_int("over", column, 0, points.shape[1] - 1) for column in over)
    return Points(
        points[:, [right, up]],
        options.potential(points),
        options.actions(points) < 0,
        f"column {right} to the right, column {up} up",
    )


def place_options(
    options: LinearOptionSet, over: tuple[int, int] = (0, 1)
) -> Points | None:
    """What options do where their features themselves say what can be observed.

    Those of cells are shown in the middles of the cells, those of clusters on the
    clusters, and those of two numbers with bounds at points that are spread evenly.
    Others are None: they need observations.
    """
    features = options.features
    if isinstance(features, Cells) and len(features.columns) > 1:
        return _place_cells(options, features, over)

    # Features may be functions of a user, which have none of these.
    places = getattr(features, "places", None)
    if places is not None and options.cell_actions is not None:
        is_end = options.cell_actions < 0
        axes = "a point is a cluster, placed by the functions e2 and e3"
        return Points(places, options.directions, is_end, axes)

    spread = spread_observations(features)
    if spread is None:
        return None
    if options.weights is not None:
        return observe(options, spread, (0, 1))
    # Options that look ahead end where no action leads higher, which only the
    # environment tells.
    potentials = options.potential(spread)
    nowhere = np.zeros(potentials.shape, dtype=np.bool_)
    return Points(spread, potentials, nowhere, "column 0 to the right, column 1 up")


def _place_cells(
    options: LinearOptionSet, cells: Cells, over: tuple[int, int]
) -> Points:
    """Means over the cells that share a place in two columns."""
    if not set(over) <= set(cells.columns):
        over = (cells.columns[0], cells.columns[1])
    middles = np.zeros((cells.n_features, max(cells.columns) + 1))
    middles[:, cells.columns] = cells.centers
    all_cells = observe(options, middles, over)

    places, place_of_cell = np.unique(all_cells.places, axis=0, return_inverse=True)
    # NumPy 2.0.0 returns a column.
    place_of_cell = place_of_cell.ravel()
    weights = 1.0 / np.bincount(place_of_cell)[place_of_cell]
    cell = np.arange(cells.n_features)
    mean_of_place = csr_array((weights, (place_of_cell, cell)))

    axes = all_cells.axes
    if len(cells.columns) > 2:
        axes += ", means over the other columns"
    potentials = (mean_of_place @ all_cells.potentials.T).T
    is_mostly_end = (mean_of_place @ all_cells.is_end.T).T > 0.5
    return Points(places, potentials, is_mostly_end, axes)


def spread_observations(features: object) -> FloatArray | None:
    """Spread observations between the bounds of a feature map of two numbers.

    None for maps without bounds, of more or fewer numbers, or of chosen columns.

    Examples
    --------
    >>> from eigenoptions.samples.features import Fourier
    >>> spread = spread_observations(Fourier((0, 0), (1, 2)))
    >>> spread.min(axis=0), spread.max(axis=0)
    (array([0.02, 0.04]), array([0.98, 1.96]))
    """
    low = getattr(features, "low", None)
    high = getattr(features, "high", None)
    columns = getattr(features, "columns", None)
    if low is None or high is None or columns is not None or len(low) != 2:
        return None
    numbers = np.indices((_N_SPREAD, _N_SPREAD)).reshape(2, -1).T
    shares: FloatArray = (numbers + 0.5) / _N_SPREAD
    spread: FloatArray = low + shares * np.subtract(high, low)
    return spread


def draw_places(
    axes: Sequence[Axes],
    options: LinearOptionSet,
    points: Points,
    cmap: str | Colormap | None,
) -> None:
    """Draw each option at some places: colours rise to where it ends, in a ring."""
    x, y = points.places.T
    colors = read_colormap(cmap, signed=True)
    # Few points are drawn large enough to fill a small map, many as dots.
    area = float(np.clip(6_000 / len(x), 4, 60))
    for ax, option, potential, is_end in zip(
        axes, options, points.potentials, points.is_end, strict=True
    ):
        ax.scatter(x, y, c=potential, cmap=colors, s=area, linewidths=0)
        ax.scatter(
            x[is_end],
            y[is_end],
            facecolors="none",
            edgecolors=INK,
            s=area + 5,
            lw=0.4 if area < 10 else 1.0,
        )
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(make_caption(option.label, option.eigenvalue))


def _read_frames(frames: ArrayLike) -> NDArray[np.uint8]:
    """Frames as colours ``(N, height, width, 3)`` of bytes."""
    images = np.asarray(frames)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise ValueError(
            "observations must be frames (N, height, width) or (N, height, width, 3), "
            f"got {np.shape(frames)}: take the last of stacked frames"
        )
    if images.dtype != np.uint8:
        low = images.min()
        extent = max(float(images.max() - low), 1e-12)
        images = (255 * (images - low) / extent).astype(np.uint8)
    return np.broadcast_to(images, (*images.shape[:3], 3))


def _choose_rows(potential: FloatArray, is_end: BoolArray, n_frames: int) -> list[int]:
    """Numbers of frames from the lowest potential to the end, in even steps."""
    first = int(find_first_maximum(-potential))
    # An option that ends nowhere here leads to the highest potential.
    reachable = potential
    if is_end.any():
        reachable = np.where(is_end, potential, potential.min())
    last = int(find_first_maximum(reachable))

    rows = [first]
    levels = np.linspace(potential[first], potential[last], n_frames)
    for level in levels[1:-1]:
        rows.append(int(find_first_maximum(-np.abs(potential - level))))
    return [*rows, last]
