"""Compiled loops over plain arrays: no classes, no random generators made, no fastmath.

The only door to numba. Every kernel has a slow, readable twin in ``tests/reference.py``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def _find_cache() -> None:
    """Give numba a folder for compiled code where neither this one nor the user's can be written (a container, say)."""
    own = Path(__file__).parent / "__pycache__"
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for folder in (own, users / "numba"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return
        except (OSError, RuntimeError):
            continue
    last = Path(tempfile.gettempdir()) / f"eigenoptions-{os.getuid() if hasattr(os, 'getuid') else 0}"
    last.mkdir(mode=0o700, exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(last)


if "NUMBA_CACHE_DIR" not in os.environ:
    _find_cache()
