"""Files that commands write into the folder ``--out``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def check_writable(folder: Path | None) -> None:
    """Raise an error if a folder cannot be written into, before any work is done.

    A folder that does not exist yet can be made where its parent can be written.
    None, for no folder, is fine.
    """
    if folder is None:
        return

    # Folders that do not exist yet will be made inside the first that does.
    existing = folder
    for parent in folder.absolute().parents:
        if existing.exists():
            break
        existing = parent
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise PermissionError(
            f"cannot write into {folder}: "
            f"{existing} is not a folder that can be written"
        )


def save_answer(
    folder: Path | None,
    name: str,
    answer: dict[str, Any],
    draw_figure: Callable[[], Any],
) -> list[Path]:
    """Write an answer as JSON and its Matplotlib figure as SVG; return their paths.

    Without a folder nothing is written, and nothing is drawn.
    """
    if folder is None:
        return []
    from eigenoptions.plots import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    json_file = folder / f"{name}.json"
    json_file.write_text(json.dumps(answer), encoding="utf-8")
    figure_file = folder / f"{name}.svg"
    save_figure(draw_figure(), figure_file)
    return [json_file, figure_file]
