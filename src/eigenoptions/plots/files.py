"""Files of figures and of clips."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from PIL import Image

from eigenoptions._validation import check_float, check_type
from eigenoptions.options.files import write_atomically

# Without its date, the same figure gives the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


def save_figure(figure: Figure, path: str | Path, *, dpi: int = 300) -> None:
    """Write a figure as .svg, .pdf or .png.

    If that fails, the file at this path is left as it was.

    Parameters
    ----------
    figure : Figure
        Any Matplotlib figure.
    path : str or Path
        File name. Its suffix is the format.
    dpi : int, default=300
        Resolution of .png files, and of images inside the others.
    """
    check_type("figure", figure, Figure, "make it with plot_options or plt.subplots")
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in _METADATA:
        raise ValueError(
            f"figures are written as .svg, .pdf or .png, got {str(path)!r}"
        )
    write_atomically(path, render_figure(figure, suffix, dpi))


def render_figure(figure: Figure, file_format: str, dpi: int) -> bytes:
    """Content of the file of a figure; the format is "svg", "pdf" or "png"."""
    buffer = io.BytesIO()
    settings: Any = {
        # The names of elements in SVG files are the same in each run.
        "svg.hashsalt": matplotlib.rcParams["svg.hashsalt"] or "eigenoptions",
        # TrueType, which conferences ask for.
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(settings):
        figure.savefig(
            buffer, format=file_format, dpi=dpi, metadata=_METADATA[file_format]
        )
    return buffer.getvalue()


def save_clip(
    frames: Sequence[ArrayLike], path: str | Path, *, fps: float = 5.0
) -> None:
    """Write frames as an animated GIF that repeats.

    Parameters
    ----------
    frames : (N, H, W, 3) array of uint8, or sequence of (H, W, 3) arrays
        Pictures, as ``env.render()`` returns them for an environment with
        ``render_mode="rgb_array"``.
    path : str or Path
        File name.
    fps : float, default=5
        Frames per second, at most 50. Browsers show faster clips at 10.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_clip(np.zeros((2, 4, 4, 3), dtype=np.uint8), f"{folder}/clip.gif")
    """
    fps = check_float("fps", fps, above=0, maximum=50)
    pictures = np.asarray(frames)
    has_shape = pictures.ndim == 4 and pictures.shape[3] == 3 and len(pictures) > 0
    if not has_shape or pictures.dtype != np.uint8:
        raise ValueError(
            "frames must be uint8 of shape (N, H, W, 3), "
            f"got {pictures.dtype} {pictures.shape}"
        )

    images = [Image.fromarray(picture) for picture in pictures]
    buffer = io.BytesIO()
    images[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / fps),
        loop=0,
    )
    write_atomically(path, buffer.getvalue())
