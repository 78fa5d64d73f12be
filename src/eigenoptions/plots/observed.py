"""Options that act on observations, drawn over frames or two columns of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from numpy.typing import ArrayLike, NDArray

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray
from eigenoptions._validation import check_int
from eigenoptions.options.pictures import make_caption
from eigenoptions.plots.style import read_colormap
from eigenoptions.samples.linear import LinearOptionSet


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
    points = np.asarray(observations)
    right, up = (check_int("over", column, 0, points.shape[1] - 1) for column in over)
    potentials = options.potential(points)
    ends = options.actions(points) < 0
    colors = read_colormap(cmap, signed=True)
    # Few points are drawn large enough to fill a small map, many as dots.
    area = float(np.clip(6_000 / len(points), 4, 60))
    for ax, option, potential, is_end in zip(
        axes, options, potentials, ends, strict=True
    ):
        x = points[:, right]
        y = points[:, up]
        ax.scatter(x, y, c=potential, cmap=colors, s=area, linewidths=0)
        ax.scatter(
            x[is_end],
            y[is_end],
            facecolors="none",
            edgecolors="black",
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


def _choose_rows(potential: FloatArray, is_end: Any, n_frames: int) -> list[int]:
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
