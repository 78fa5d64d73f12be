"""Compiled loops over plain arrays: no classes, no random generators made, no fastmath.

The only door to numba. Every kernel has a slow, readable twin in ``tests/reference.py``.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def _find_cache() -> None:
    """Give numba a folder for compiled code where neither this one nor the user's can be written (a container, say)."""
    own = Path(__file__).parent / "__pycache__"
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"
    for folder in (own, users):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            continue
        # Python runs what is in the first folder in any case.
        if os.access(folder, os.W_OK) and (folder == own or ours(folder)):
            return
    last = Path(tempfile.gettempdir()) / f"eigenoptions-{os.getuid() if hasattr(os, 'getuid') else 0}"
    with suppress(FileExistsError):
        last.mkdir(mode=0o700)
    os.environ["NUMBA_CACHE_DIR"] = str(last) if ours(last) else tempfile.mkdtemp(prefix="eigenoptions-")


def ours(folder: Path) -> bool:
    """Whether only this user can write into a folder: numba's cache is a pickle, which can run any code."""
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


if "NUMBA_CACHE_DIR" not in os.environ:
    _find_cache()
