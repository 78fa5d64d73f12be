"""Locks: a folder is used by one run at a time, and a second one is told by whom."""

from __future__ import annotations

import errno
import json
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class Lock:
    """A folder is used by one run at a time; a run that is killed leaves no lock behind.

    The lock is the operating system's (``flock``) on the file ``.lock``, which also says who holds it. Where there is
    none (not POSIX, some network file systems), a file ``.held`` stands for it: one that a killed run left behind is
    taken over on the same machine, and is to be deleted by hand elsewhere.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(folder)
    ...     try:
    ...         Lock(folder)
    ...     except OSError as error:
    ...         print(str(error).replace(folder, "FOLDER"))  # doctest: +ELLIPSIS
    ...     lock.release()
    FOLDER is used by process ... on ... since ...: wait for it, stop it, or give another folder
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._held: Path | None = None
        try:
            self._fd = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            kind = PermissionError if error.errno in READ_ONLY else type(error)
            raise kind(f"cannot write into {self.folder}: {error.strerror or error}") from None
        try:
            self._take()
        except BaseException:
            os.close(self._fd)
            raise
        who = {"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.ftruncate(self._fd, os.write(self._fd, json.dumps(who).encode()))

    def release(self) -> None:
        """Let others have the folder."""
        if self._fd >= 0:
            if self._held is not None:
                self._held.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def _take(self) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                raise BlockingIOError(self._used()) from None
            except OSError:  # a file system without locks
                pass
        held = self.folder / ".held"
        if held.exists() and _dead(self._holder()):
            held.unlink(missing_ok=True)
        try:
            os.close(os.open(held, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise BlockingIOError(f"{self._used()}; if that run is gone, delete {held}") from None
        self._held = held

    def _holder(self) -> dict[str, Any]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        try:
            return dict(json.loads(os.read(self._fd, 4096)))
        except ValueError:  # empty, or just being written
            return {}

    def _used(self) -> str:
        who = self._holder()
        by = "process {pid} on {host} since {since}".format(**who) if who else "another process"
        return f"{self.folder} is used by {by}: wait for it, stop it, or give another folder"


def _dead(who: dict[str, Any]) -> bool:
    """Whether a process of this machine is known to be gone."""
    if (
        not who or who["host"] != platform.node() or not hasattr(os, "killpg")
    ):  # on Windows, asking would end it
        return False
    try:
        os.kill(who["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
