"""Store of finished jobs: an interrupted run is started again and computes only what is missing.

A `Store` is a folder with one SQLite database. Each finished job is committed as it arrives, under a key of its
function, its settings and the version of the code. Each record has a checksum. Results are stored as JSON and raw array
bytes, never as pickles. One process at a time may use a folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from eigenoptions.options.storage import write_atomically
from eigenoptions.parallel import run_jobs

J = TypeVar("J")
R = TypeVar("R")

FORMAT = 1
# Parts of the library that present results and compute none: their code does not invalidate a stored job.
ARENA_PAGES = ("__init__", "agents_page", "page", "pictures", "ranking")
PRESENTATION = (
    *("cli/", "studio/", "plots/"),
    *(f"experiments/{name}.py" for name in ("claims", "page", "report")),
    *(f"experiments/arena/{name}.py" for name in ARENA_PAGES),
)
# Codes of SQLite for a file that is not what this module wrote; SQLITE_ERROR is a missing table or column.
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
REMEDY = "start over (--fresh), give another folder, or install the version that wrote it"
SCHEMA = (
    "CREATE TABLE jobs (key TEXT PRIMARY KEY, function TEXT, code TEXT, job TEXT, seconds REAL, checksum "
    "BLOB, result BLOB)"
)

log = logging.getLogger("eigenoptions")


class Store:
    """A folder of finished jobs, which are not computed again.

    Parameters
    ----------
    folder
        Created if it does not exist. A second process is refused while this one uses it. A folder that cannot be
        written provides the results it has.
    fresh
        Delete everything in it first, including jobs of other versions of the code.

    Examples
    --------
    `seconds_saved` is the time that the jobs found here took when they were computed.

    >>> import tempfile
    >>> from eigenoptions._text import draw_spark
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):  # the second time nothing is missing
    ...         with Store(folder) as store:
    ...             print(store.pmap(draw_spark, [[0, 1], [1, 0]], progress=lambda done, _: print(done)))
    0
    1
    2
    ['▁█', '█▁']
    2
    ['▁█', '█▁']
    """

    def __init__(self, folder: str | Path, *, fresh: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "jobs.sqlite"
        self.seconds_saved = 0.0
        self._owner = self.folder / ".owner"
        self._warned = False
        make_folder(self.folder, "; give another folder")
        places = (self.folder, self.path) if self.path.exists() else (self.folder,)
        self.writable = all(os.access(place, os.W_OK) for place in places)
        if fresh and not self.writable:
            raise PermissionError(
                f"cannot write into {self.folder}: make it writable, or give another folder"
            )
        with self._errors():
            self._database = self._opened(fresh) if self.writable else self._opened_read_only()
        if self.writable:
            with suppress(OSError):
                since = time.strftime("%Y-%m-%d %H:%M:%S")
                self._owner.write_text(f"process {os.getpid()} on {platform.node()} since {since}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        if self.writable:
            with suppress(OSError):
                self._owner.unlink()
        self._database.close()

    def pmap(
        self,
        function: Callable[..., R],
        jobs: Sequence[J],
        *,
        shared: Mapping[str, Any] | None = None,
        progress: Callable[[int, int], object] | None = None,
        arrived: Callable[[int, R], object] | None = None,
        fresh: bool = False,
    ) -> list[R]:
        """``[function(job, **shared) for job in jobs]`` by `parallel.run_jobs`, without the jobs that are stored.

        Parameters
        ----------
        function
            A function of a module, so that its code has a version: a hash of this library and of that module. If it
            depends on other code that changed, pass `fresh`. Its result is plain data: arrays, numbers, text, None, and
            dicts, lists and tuples of these.
        jobs
            Plain data that determine the result, including its seed.
        progress, arrived
            As in `parallel.run_jobs`. Stored jobs count as done, and `arrived` is not called for them.
        shared
            As in `parallel.run_jobs`. Part of the key, therefore plain data, sparse arrays, or dataclasses of these.
        fresh
            Delete these jobs first.
        """
        work, (name, code) = list(jobs), self._identity(function)
        common = _digest(dict(shared)) if shared else ""
        keys = [_key(name, code, job, common) for job in work]
        if fresh:
            self._delete(keys)
        stored = self._read(keys)
        missing = sorted({key: i for i, key in enumerate(keys) if key not in stored}.values())
        self._require_writable(len(missing), len(work))
        ready, last = len(work) - len(missing), time.perf_counter()

        def keep(i: int, result: R) -> None:
            nonlocal last
            now = time.perf_counter()
            at = missing[i]
            stored[keys[at]] = self._write(keys[at], name, code, work[at], result, now - last)
            last = now
            if arrived is not None:
                arrived(at, result)

        def report(done: int, _: int) -> None:
            if progress is not None:
                progress(ready + done, len(work))

        self.seconds_saved += sum(seconds for seconds, _ in stored.values())
        left = [work[i] for i in missing]
        run_jobs(function, left, shared=shared, progress=report, on_result=keep)
        # New results are decoded too: an interrupted run and an uninterrupted one then return the same bytes.
        return [decode(stored[key][1]) for key in keys]

    def get(self, function: Callable[..., R], job: Any) -> R | None:
        """Return the result of one job, or None if it is not stored."""
        key = _key(*self._identity(function), job)
        found = self._read([key])
        return decode(found[key][1]) if found else None

    def put(self, function: Callable[..., R], job: Any, result: R) -> None:
        """Store the result of one job that was computed elsewhere."""
        self._require_writable(1, 1)
        name, code = self._identity(function)
        self._write(_key(name, code, job), name, code, job, result, 0.0)

    def delete(self, function: Callable[..., Any], job: Any) -> None:
        """Delete the result of one job, so that it is computed again."""
        self._delete([_key(*self._identity(function), job)])

    def _opened(self, fresh: bool) -> sqlite3.Connection:
        """Open and lock the database; create it if it does not exist."""
        database = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        try:
            # In exclusive mode the write-ahead log needs no shared memory, so it works on network file systems too.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("BEGIN EXCLUSIVE")
            if fresh:
                database.execute("DROP TABLE IF EXISTS jobs")
            if fresh or not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                database.execute(SCHEMA)
                database.execute(f"PRAGMA user_version = {FORMAT}")
            database.execute("COMMIT")
            if fresh:
                database.execute("VACUUM")
            self._check_format(database)
        except BaseException as error:
            database.close()
            if fresh and isinstance(error, sqlite3.DatabaseError) and _error_code(error) in DAMAGED:
                for path in self.folder.glob(f"{self.path.name}*"):
                    path.unlink()
                return self._opened(fresh=False)
            raise
        return database

    def _opened_read_only(self) -> sqlite3.Connection:
        log.warning("cannot write into %s: its results are used, and none can be added", self.folder)
        log_file = self.path.with_name(f"{self.path.name}-wal")
        if log_file.exists() and log_file.stat().st_size:
            raise PermissionError(
                f"cannot read {self.path}: an interrupted run left {log_file.name}, and {self.folder} cannot "
                "be written; make it writable, or copy it to another folder and continue there"
            )
        if not self.path.exists():
            database = sqlite3.connect(":memory:")
            database.execute(SCHEMA)
            return database
        database = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        self._check_format(database)
        return database

    def _check_format(self, database: sqlite3.Connection) -> None:
        (found,) = database.execute("PRAGMA user_version").fetchone()
        if found != FORMAT:
            raise ValueError(f"{self.path} has format {found}, this version reads {FORMAT}: {REMEDY}")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its first row, or None."""
        with self._errors():
            return self._database.execute(statement, values).fetchone()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite into ones that name the file and the remedy."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise ValueError(f"the store {self.folder} is closed: use it inside its with block") from None
        except sqlite3.DatabaseError as error:
            if _error_code(error) == sqlite3.SQLITE_BUSY:
                owner = self._owner.read_text() if self._owner.exists() else "another process"
                message = f"{self.folder} is used by {owner}: wait for it, stop it, or give another folder"
                raise BlockingIOError(message) from None
            if _error_code(error) in DAMAGED:
                raise ValueError(f"{self.path} is damaged ({error}): {REMEDY}") from None
            raise OSError(
                f"cannot read or write {self.path}: {error}; the jobs finished before are kept there: make room "
                "or make it writable, and start again"
            ) from None

    def _read(self, keys: Iterable[str]) -> dict[str, tuple[float, bytes]]:
        """Seconds and encoded result of the jobs that are stored and undamaged."""
        found, damaged = {}, 0
        for key in keys:
            row = self._execute("SELECT seconds, checksum, result FROM jobs WHERE key = ?", (key,))
            if row is not None:
                seconds, checksum, result = row
                if isinstance(result, bytes) and _checksum(key, seconds, result) == checksum:
                    found[key] = seconds, result
                else:
                    damaged += 1
        if damaged:
            log.warning("%d jobs in %s are damaged and are computed again", damaged, self.path)
        return found

    def _write(
        self, key: str, function: str, code: str, job: Any, result: Any, seconds: float
    ) -> tuple[float, bytes]:
        data = encode(result, f"in the result of job {job!r}")
        seconds = round(seconds, 6)
        row = (key, function, code, repr(job), seconds, _checksum(key, seconds, data), data)
        self._execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return seconds, data

    def _delete(self, keys: Sequence[str]) -> None:
        self._require_writable(len(keys), len(keys))
        self._execute("BEGIN")
        for key in keys:
            self._execute("DELETE FROM jobs WHERE key = ?", (key,))
        self._execute("COMMIT")

    def _identity(self, function: Callable[..., Any]) -> tuple[str, str]:
        """Name and version of the code of a function; warns once of results of other versions."""
        name, code = _name(function), _code(function.__module__)
        other = "SELECT 1 FROM jobs WHERE function = ? AND code != ? LIMIT 1"
        if not self._warned and self._execute(other, (name, code)):
            self._warned = True
            log.warning(
                "%s also holds jobs of another version of the code (of %s, for one), which are not used: "
                "starting over (--fresh) removes them",
                self.folder,
                name,
            )
        return name, code

    def _require_writable(self, missing: int, total: int) -> None:
        if missing and not self.writable:
            raise PermissionError(
                f"cannot keep results in {self.folder}: it cannot be written, and {missing} of {total} jobs "
                "are missing; make it writable, or copy it to another folder and continue there"
            )


def claim_folder(folder: Path, what: str, command: str) -> None:
    """Create a folder for what a command writes ("a report") and mark it, or raise OSError if it has other content."""
    mark = folder / f".eigenoptions-{what.split()[-1]}"
    refuse_other_content(folder, what, mark.name)
    make_folder(folder)
    if not mark.exists():
        text = f"This folder was created by `eigenoptions {command}`, which may write it again.\n"
        write_atomically(mark, text.encode())


def make_folder(folder: Path, remedy: str = "") -> None:
    """Create a folder and those it is in, unless it exists; an OSError names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.exists() else error.strerror or str(error)
        raise type(error)(f"cannot create the folder {folder}: {reason}{remedy}") from None


def refuse_other_content(folder: Path, what: str, *marks: str) -> None:
    """Raise OSError if a folder is a file, or has content but none of the files by which `what` is known."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write {what} into {folder}: it is a file; give a folder (--out)")
    # An interrupted run may have left a mark half written.
    names = [p.name for p in folder.iterdir() if not p.name.endswith(".tmp")] if folder.is_dir() else []
    if names and not set(marks) & set(names):
        raise FileExistsError(f"{folder} has other content than {what}: give a new or empty folder (--out)")


def count_jobs(folder: str | Path) -> int:
    """Number of results in the folder of a `Store` that no process uses; 0 where there is none."""
    path = Path(folder) / "jobs.sqlite"
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM jobs").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0


def _error_code(error: sqlite3.DatabaseError) -> int:
    """Primary code of an error; Python raises some errors itself, about text that cannot be decoded."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _name(function: Callable[..., Any]) -> str:
    """Qualified name of a function of a module."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    if not module or "<" in name or not str(file).endswith(".py"):
        raise ValueError(
            f"results of {function!r} cannot be kept: give a function of a module, so that its code has a "
            "version, and put what it depends on into the jobs"
        )
    return f"{module}.{name}"


@cache
def _code(module: str) -> str:
    """Version of the code behind a module's functions: a hash of this library, without its faces, and of the module."""
    root = Path(str(files("eigenoptions")))
    paths = [path for path in root.rglob("*") if path.suffix in (".py", ".txt")]
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(path.relative_to(root).as_posix() for path in paths):
        if not name.startswith(PRESENTATION):
            digest.update(f"{name}\0".encode() + (root / name).read_bytes() + b"\0")
    if module.partition(".")[0] != "eigenoptions":
        digest.update(Path(str(sys.modules[module].__file__)).read_bytes())
    return digest.hexdigest()


def _key(function: str, code: str, job: Any, shared: str = "") -> str:
    return _digest([function, code, job, shared], f"in job {job!r}")


def _digest(value: Any, place: str = "") -> str:
    """Hash of plain data, sparse arrays and dataclasses of these; the order of settings does not matter."""
    return hashlib.blake2b(encode(_sorted(value), place), digest_size=16).hexdigest()


def _checksum(key: str, seconds: float, data: bytes) -> bytes:
    digest = hashlib.blake2b(f"{key} {seconds!r} ".encode(), digest_size=16)
    digest.update(data)
    return digest.digest()


def _sorted(value: Any) -> Any:
    """Plain data of dataclasses and sparse arrays, also nested, with the keys of dicts in order."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(_sorted, value))
    if kind is dict:
        return {k: _sorted(value[k]) for k in sorted(value, key=repr)}
    if is_dataclass(value) and not isinstance(value, type):
        return [kind.__qualname__, *(_sorted(getattr(value, f.name)) for f in fields(value))]
    if hasattr(value, "tocsr"):
        csr = value.tocsr()
        return [kind.__qualname__, list(csr.shape), csr.data, csr.indices, csr.indptr]
    return value


def encode(value: Any, place: str = "") -> bytes:
    r"""Encode plain data as one line of JSON followed by the bytes of its arrays.

    Raises ValueError for anything else, with the `place` where it stands as a note.

    >>> encode({"lengths": (1, 2.5), "stops": np.array([3], dtype=np.int8)})
    b'{"lengths": {"~tuple": [1, 2.5]}, "stops": {"~array": ["|i1", [1], "C"]}}\n\x03'
    """
    parts: list[bytes] = []
    try:
        return b"".join([json.dumps(_encoded(value, parts)).encode(), b"\n", *parts])
    except ValueError as error:
        if place:
            error.add_note(place)
        raise


def decode(data: bytes) -> Any:
    r"""Decode what `encode` returned: the same types and the same bytes.

    >>> decode(b'{"~tuple": [1, {"~array": ["|i1", [1], "C"]}]}\n\x03')
    (1, array([3], dtype=int8))
    """
    at = data.find(b"\n") + 1

    def restore(tree: dict[str, Any]) -> Any:
        # Called for objects in the order in which they end, which for arrays is the order of their bytes.
        nonlocal at
        tag, *more = tree or ("",)
        if more or not tag.startswith("~"):
            return tree
        content = tree[tag]
        if tag in ("~tuple", "~dict"):
            return (tuple if tag == "~tuple" else dict)(content)
        text, shape, order = content
        dtype = np.dtype(text)
        # Bytes of a file are never taken for objects or for a negative length.
        if dtype.hasobject or dtype.str != text or order not in ("C", "F") or not all(n >= 0 for n in shape):
            raise ValueError(
                f"no array of numbers or text has dtype {text!r}, shape {shape} and order {order!r}"
            )
        array = np.ndarray(shape, dtype, data, at, order=order)
        at += array.nbytes
        return array[()] if tag == "~scalar" else array.copy("K")

    try:
        return json.loads(data[: at - 1], object_hook=restore)
    except (TypeError, LookupError, AttributeError, RecursionError, OverflowError, ValueError) as error:
        raise ValueError(f"a stored result is damaged ({error}): {REMEDY}") from None


def _encoded(value: Any, parts: list[bytes]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_encoded(v, parts) for v in value]
    if kind is tuple:
        return {"~tuple": [_encoded(v, parts) for v in value]}
    if kind is dict:
        if all(type(k) is str and not k.startswith("~") for k in value):
            return {k: _encoded(v, parts) for k, v in value.items()}
        return {"~dict": [[_encoded(k, parts), _encoded(v, parts)] for k, v in value.items()]}
    scalar = isinstance(value, np.generic)
    if scalar or kind in (np.ndarray, np.memmap):
        dtype = value.dtype
        if dtype.hasobject or dtype != np.dtype(dtype.str):
            raise ValueError(f"an array of dtype {dtype} cannot be kept: give arrays of numbers or text")
        # The memory order is kept because sums depend on it in their last bits.
        order = "F" if value.flags.fnc else "C"
        parts.append(value.tobytes(order))
        return {"~scalar" if scalar else "~array": [dtype.str, list(value.shape), order]}
    raise ValueError(
        f"{kind.__module__}.{kind.__qualname__} cannot be kept: give arrays, numbers, text, None, and dicts, "
        "lists and tuples of these"
    )
