"""Panels of Atari games: where the player spends its time, drawn over the screen (Figures 8 to 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from eigenoptions._validation import check_type
from reproduction.panels import KIND_COLORS, Panel, line_style

HEAT = matplotlib.colormaps["inferno"]
# How far a screen under a heat map is faded, 1 being white.
FADING = 0.65
# The player is about as large as twice this.
BLUR_PIXELS = 3.0


def screen_panel(screen: NDArray[np.uint8], places: ArrayLike | None = None, title: str = "") -> Panel:
    """A screen ``(H, W, 3)`` of a game with a heat map of the share of time that the player was at each place.

    `places` ``(N, 2)`` are pixels (x, y) of the player in each frame; None draws the bare screen.

    >>> screen_panel(np.zeros((210, 160, 3), dtype=np.uint8), [[80, 100]]).aspect
    1.3125
    """
    screen = _checked("screen", screen, 3)
    high, wide = screen.shape[:2]
    at = np.empty((0, 2)) if places is None else np.asarray(places, dtype=float).reshape(-1, 2)
    at = at[np.isfinite(at).all(axis=1)]
    ground = screen.astype(float) / 255
    if places is not None:
        grey = ground @ [0.3, 0.59, 0.11]
        ground = np.repeat((FADING + (1 - FADING) * grey)[:, :, None], 3, axis=2)

    def draw(ax: Axes) -> None:
        picture = ground
        if len(at):
            x, y = (np.clip(at[:, i].astype(int), 0, side - 1) for i, side in ((0, wide), (1, high)))
            time = np.bincount(y * wide + x, minlength=high * wide).reshape(high, wide) / len(at)
            time = gaussian_filter(time, BLUR_PIXELS)
            # The square root makes rare places visible too.
            strength = np.sqrt(time / time.max())
            cover = np.clip(1.6 * strength, 0, 1)[:, :, None]
            picture = (1 - cover) * ground + cover * HEAT(1 - 0.85 * strength)[:, :, :3]
        ax.imshow(picture, interpolation="nearest", aspect="equal")
        ax.set_axis_off()

    return Panel(draw, title, high / wide)


def time_panel(
    samples: Mapping[str, ArrayLike], title: str = "", *, bins: Sequence[float], label: str = ""
) -> Panel:
    """Share of the time that a number (the chicken's height) had each value, one line per sample (Figure 8, right).

    >>> time_panel({"rand": [1, 2, 2]}, bins=[0, 2, 4]).aspect
    1.0
    """
    check_type("samples", samples, Mapping, "give the values by name")
    edges = np.asarray(bins, dtype=float)
    shares = {}
    for name, values in samples.items():
        count = np.histogram(np.asarray(values, dtype=float), edges)[0]
        shares[name] = count / max(count.sum(), 1)

    def draw(ax: Axes) -> None:
        for i, (name, share) in enumerate(shares.items()):
            style = line_style(i) | {"color": KIND_COLORS.get(name, line_style(i)["color"])}
            ax.stairs(share, edges, orientation="horizontal", label=name, linewidth=1.1, **style)
        ax.set(xlabel="share of the time", ylabel=label, xlim=(0, 1))
        ax.legend()

    return Panel(draw, title, 1.0)


def _checked(name: str, screens: ArrayLike, dimensions: int) -> NDArray[np.uint8]:
    """Pixels with three colours of one byte each."""
    given = np.asarray(screens)
    if given.ndim != dimensions or given.shape[-1] != 3 or given.dtype != np.uint8:
        shape = "(N, H, W, 3)" if dimensions == 4 else "(H, W, 3)"
        raise ValueError(f"{name} must have shape {shape} and dtype uint8, got {given.shape} {given.dtype}")
    return given
