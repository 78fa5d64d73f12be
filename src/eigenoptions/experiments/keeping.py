"""Kept results: a map over jobs that can be killed, and goes on with what is missing when it is started again.

A `Shelf` is a folder with one journal for each function and version of its code (see `Journal`). A finished job is
added as it arrives, whole or not at all, under a key of its settings; the code is that of the function's module, of
all modules of the library which that one imports, and the maps. One process at a time may write (`Lock`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeVar

from eigenoptions.experiments.journal import Journal, Place, check_format
from eigenoptions.experiments.lock import Lock
from eigenoptions.experiments.plain import decode, encode
from eigenoptions.parallel import Progress, pmap

J = TypeVar("J")
R = TypeVar("R")

LEFT_OUT = (
    "eigenoptions.plots",
    "eigenoptions.experiments.keeping",
)  # they show and keep results, and make none
SPARE = 1 << 20  # bytes of jobs made again that a journal may carry along before it is written anew

log = logging.getLogger("eigenoptions")


class Shelf:
    """A folder of finished jobs: what is there is not done again.

    Parameters
    ----------
    folder
        Made if it is not there. Another run on it is refused while this one lasts. One that cannot be written
        serves what it holds.
    note
        Plain data about the run, for people who read the folder.
    fresh
        Throw away everything in it, also jobs of other code and of other formats.

    Attributes
    ----------
    spared
        Seconds that the jobs found here took when they were made.

    Examples
    --------
    >>> import tempfile
    >>> from eigenoptions.files import pick
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):  # the second time nothing is left to do
    ...         with Shelf(folder) as shelf:
    ...             print(shelf.pmap(pick, [3, 2], shared={"index": -1}, progress=lambda p: print(p.done)))
    0
    1
    2
    [array([2]), array([1])]
    2
    [array([2]), array([1])]
    """

    def __init__(
        self, folder: str | Path, note: Mapping[str, Any] | None = None, *, fresh: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.spared = 0.0
        self._note = encode(dict(note or {}))[0]
        self._drawers: dict[Path, _Drawer] = {}
        self._told = self._closed = False
        self._lock: Lock | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if self.folder.exists() else error.strerror or str(error)
            raise type(error)(f"cannot make the folder {self.folder}: {why}; give another folder") from None
        try:
            self._lock = Lock(self.folder)
        except PermissionError as error:
            if fresh:
                raise
            log.warning("%s; what it holds is used, and nothing can be added", error)
        try:
            if self._lock is not None:
                for leftover in (*self.folder.glob(".*.tmp"), *(self.folder.glob("*.jobs") if fresh else ())):
                    leftover.unlink()
            for path in self.folder.glob("*.jobs"):
                check_format(path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        for drawer in self._drawers.values():
            drawer.journal.close()
        self._drawers, self._closed = {}, True
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def pmap(
        self,
        function: Callable[..., R],
        jobs: Sequence[J],
        engine: str = "serial",
        *,
        shared: Mapping[str, Any] | None = None,
        workers: int | None = None,
        progress: Callable[[Progress], object] | None = None,
        arrived: Callable[[int, R], object] | None = None,
        fresh: bool = False,
    ) -> list[R]:
        """``[function(job, **shared) for job in jobs]`` by `parallel.pmap`, without the jobs that are here.

        Parameters
        ----------
        function
            Of a module, so that its code can be told; when other code than its module and this library changes, say
            `fresh`. Its result is plain: arrays, numbers, text, None, and dicts, lists and tuples of these.
        jobs
            Plain data: all that a result depends on, its seed too.
        engine, workers, progress, arrived
            As in `parallel.pmap`; jobs that are here count as done, and do not arrive.
        shared
            As in `parallel.pmap`; part of the key, so plain data, arrays, or dataclasses of these.
        fresh
            Forget these jobs first.
        """
        work, about = list(jobs), _fingerprint(shared)
        keys = [_key(job, about) for job in work]
        drawer = self._drawer(function)
        if fresh:
            self._refuse_read_only(len(work), len(work))
            drawer.forget(set(keys))
        here = {key for key in keys if key in drawer}
        missing = sorted({key: i for i, key in enumerate(keys) if key not in here}.values())
        if missing:
            self._refuse_read_only(len(missing), len(work))
        ready, last = len(work) - len(missing), time.perf_counter()

        def came(i: int, result: R) -> None:
            nonlocal last
            now = time.perf_counter()
            drawer.add(keys[missing[i]], work[missing[i]], result, now - last)
            last = now
            if arrived is not None:
                arrived(missing[i], result)

        def tell(p: Progress) -> None:
            if progress is not None:
                progress(_Resumed(ready + p.done, len(work), p.seconds, ready))

        left = [work[i] for i in missing]
        pmap(function, left, engine, shared=shared, workers=workers, progress=tell, arrived=came)
        self.spared += sum(drawer.seconds(key) for key in here)
        # New results are read back too: a run that went on and one that did not then hold the same bytes.
        return [drawer.result(key) for key in keys]

    def kept(self, function: Callable[..., R], job: Any) -> R | None:
        """Find the result of one job, or None if it is not here."""
        drawer, key = self._drawer(function), _key(job, _fingerprint(None))
        return drawer.result(key) if key in drawer else None

    def keep(self, function: Callable[..., R], job: Any, result: R) -> None:
        """Add the result of one job that was done elsewhere."""
        self._refuse_read_only(1, 1)
        self._drawer(function).add(_key(job, _fingerprint(None)), job, result, 0.0)

    def forget(self, function: Callable[..., Any], job: Any) -> None:
        """Make sure that a job is done again."""
        self._refuse_read_only(1, 1)
        self._drawer(function).forget({_key(job, _fingerprint(None))})

    def _drawer(self, function: Callable[..., Any]) -> _Drawer:
        name, module = _name(function)
        path = self.folder / f"{name}-{code(module)}.jobs"
        if path not in self._drawers:
            if self._closed:
                raise ValueError(f"the shelf {self.folder} is closed: use it inside its with block")
            self._drawers[path] = _Drawer(
                path, {"function": name, "note": self._note}, self._lock is not None
            )
            others = [p for p in self.folder.glob(f"{name}-*.jobs") if p != path]
            if others and not self._told:
                self._told = True
                log.warning(
                    "%s also holds jobs made by other code (of %s, for one): they are not used; "
                    "starting over (--fresh) removes them",
                    self.folder,
                    name,
                )
        return self._drawers[path]

    def _refuse_read_only(self, missing: int, total: int) -> None:
        if self._lock is None:
            raise PermissionError(
                f"cannot keep results in {self.folder}: it cannot be written, and {missing} of {total} jobs are "
                "missing; make it writable, or copy it to another folder and go on there"
            )


@dataclass(frozen=True)
class _Resumed(Progress):
    """Progress of a map that found jobs done; they do not count for the rate."""

    ready: int = 0

    @property
    def rate(self) -> float:
        return (self.done - self.ready) / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float:
        return super().remaining if self.done < self.total else 0.0


class _Drawer:
    """Jobs of one function and one version of its code."""

    def __init__(self, path: Path, about: dict[str, Any], writable: bool) -> None:
        self.journal = Journal(path)
        self._about = about
        self._places: dict[str, Place] = {}
        latest = None
        for place in self.journal.places:
            head = self.journal.head(place)
            if "key" in head:
                self._places[head["key"]] = place
            latest = head.get("about", latest)
            for key in head.get("forget", ()):
                self._places.pop(key, None)
        self._introduced = latest == about
        if self.journal.lost:
            log.warning(
                "%d bytes of %s are torn or damaged: the jobs they held are done again",
                self.journal.lost,
                path,
            )
        if writable:
            self._tidy()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def result(self, key: str) -> Any:
        head, data = self.journal.read(self._places[key])
        return decode(head["result"], data)

    def seconds(self, key: str) -> float:
        return float(self.journal.head(self._places[key])["seconds"])

    def add(self, key: str, job: Any, result: Any, seconds: float) -> None:
        try:
            tree, parts = encode(result)
        except ValueError as error:
            error.add_note(f"in the result of job {job!r}")
            raise
        head = {"key": key, "job": encode(job)[0], "seconds": round(seconds, 6), "result": tree}
        self._places[key] = self._append(head, parts)

    def forget(self, keys: set[str]) -> None:
        gone = sorted(keys & self._places.keys())
        if gone:
            self._append({"forget": gone}, [])
            for key in gone:
                del self._places[key]

    def _append(self, head: dict[str, Any], parts: list[bytes]) -> Place:
        try:
            if not self._introduced:
                self.journal.append({"about": self._about})
                self._introduced = True
            return self.journal.append(head, parts)
        except OSError as error:
            raise type(error)(
                f"{error}; the {len(self._places)} jobs finished before are kept there: "
                "make room or make it writable, and start again"
            ) from None

    def _tidy(self) -> None:
        """Write the journal anew when some of it is damaged, or most of it of no use."""
        live = sum(place[3] - place[0] for place in self._places.values())
        whole = sum(place[3] - place[0] for place in self.journal.places) + self.journal.lost
        if self.journal.lost or whole > 2 * live + SPARE:
            keys = sorted(self._places, key=self._places.__getitem__)
            with suppress(OSError):  # no room: it stays as it is
                self.journal.shorten([self._places[key] for key in keys])
                self._places = dict(zip(keys, self.journal.places, strict=True))
                self._introduced = False


def _key(job: Any, shared: str) -> str:
    """What tells a job from others of its function."""
    try:
        return _digest([job, shared])
    except ValueError as error:
        error.add_note(f"in job {job!r}")
        raise


def _fingerprint(shared: Mapping[str, Any] | None) -> str:
    """What tells arguments that are alike for all jobs from others."""
    try:
        return _digest(_open({k: shared[k] for k in sorted(shared)})) if shared else ""
    except ValueError as error:
        error.add_note("among what is shared, which is part of the key of kept results")
        raise


def _digest(value: Any) -> str:
    tree, parts = encode(value)
    digest = hashlib.blake2b(json.dumps(tree, sort_keys=not parts).encode(), digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _open(value: Any) -> Any:
    """Plain data of dataclasses and sparse arrays, also inside others."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(_open(v) for v in value)
    if kind is dict:
        return {k: _open(v) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return [kind.__qualname__, *(_open(getattr(value, f.name)) for f in fields(value))]
    if hasattr(value, "tocsr"):
        csr = value.tocsr()
        return [kind.__qualname__, list(csr.shape), csr.data, csr.indices, csr.indptr]
    return value


def _name(function: Callable[..., Any]) -> tuple[str, str]:
    """Qualified name and module of a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    if not module or "<" in name or not str(file).endswith(".py"):
        raise ValueError(
            f"results of {function!r} cannot be kept: give a function of a module, so that its code can be told, and "
            "put what it depends on into the jobs"
        )
    return f"{module}.{name}", module


@cache
def code(module: str) -> str:
    """Hash of the code that makes what functions of a module give: its own, the library's it needs, the maps.

    >>> code("eigenoptions.mdp") == code("eigenoptions.spectra")
    False
    """
    root = Path(str(files("eigenoptions")))
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(makers(module)):
        digest.update(f"{name}\0".encode() + _file(name).read_bytes() + b"\0")
    for path in sorted((root / "mazes").glob("*.txt")):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def makers(module: str) -> set[str]:
    """Modules of the library that a module needs, itself among them; those that only show are left out.

    >>> sorted(makers("eigenoptions.experiments.rules"))
    ['eigenoptions.experiments.rules']
    """
    todo, seen = [module], set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and not name.startswith(LEFT_OUT) and _file(name).exists():
            seen.add(name)
            todo += _imports(_file(name))
    return seen


def _imports(path: Path) -> Iterator[str]:
    """Modules of the library that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "eigenoptions":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _file(inner).exists() else str(node.module)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "eigenoptions")


def _file(module: str) -> Path:
    """Where a module is, or would be."""
    top, *rest = module.split(".")
    if top != "eigenoptions":
        return Path(str(sys.modules[module].__file__))
    path = Path(str(files("eigenoptions"))).joinpath(*rest)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
