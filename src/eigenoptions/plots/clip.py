"""Clips: the frames of an episode as an animated GIF."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from eigenoptions._validation import check_float
from eigenoptions.options.storage import write_atomically


def save_clip(frames: Sequence[ArrayLike], path: str | Path, *, fps: float = 5.0) -> None:
    """Write frames as an animated GIF that repeats.

    Parameters
    ----------
    frames
        Pictures ``(H, W, 3)`` of type uint8, as ``env.render()`` of an environment with ``render_mode="rgb_array"``
        returns them.
    path
        File name.
    fps
        Frames per second, at most 50: browsers show faster clips at 10.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_clip(np.zeros((2, 4, 4, 3), dtype=np.uint8), f"{folder}/clip.gif")
    """
    check_float("fps", fps, above=0, maximum=50)
    pictures = np.asarray(frames)
    if pictures.ndim != 4 or pictures.shape[3] != 3 or pictures.dtype != np.uint8 or not len(pictures):
        raise ValueError(f"frames must be uint8 of shape (N, H, W, 3), got {pictures.dtype} {pictures.shape}")
    first, *others = [Image.fromarray(picture) for picture in pictures]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    write_atomically(path, buffer.getvalue())
