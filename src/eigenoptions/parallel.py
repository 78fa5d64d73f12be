"""Workers: one ordered map over jobs, on this process or on several; the only file that knows about them.

A job is plain data (settings and a seed), so what comes out does not depend on where it ran: all engines give
the same bytes. Workers compute on one BLAS thread each, and results arrive as they are done.
"""

from __future__ import annotations

import copy
import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

J = TypeVar("J")
R = TypeVar("R")

ENGINES = ("serial", "processes")
LIVES = 3  # times that jobs are handed out again after a worker was killed

log = logging.getLogger("eigenoptions")


@dataclass(frozen=True)
class Progress:
    """How far a map over jobs has come.

    Attributes
    ----------
    done, total
        Jobs.
    seconds
        Since the start.

    Examples
    --------
    >>> p = Progress(done=5, total=20, seconds=2.0)
    >>> p.rate, p.remaining
    (2.5, 6.0)
    """

    done: int
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float:
        """Seconds still to go at this rate; infinite before the first job is done."""
        return (self.total - self.done) / self.rate if self.rate else float("inf")


def pmap(
    function: Callable[..., R],
    jobs: Sequence[J],
    engine: str = "serial",
    *,
    shared: Mapping[str, Any] | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    arrived: Callable[[int, R], object] | None = None,
) -> list[R]:
    """``[function(job, **shared) for job in jobs]``, in order, by an engine of choice.

    If jobs raise, the others still finish; then the first error is raised, with its job as a note. A worker
    that is killed costs only time: its job is handed out again.

    Parameters
    ----------
    function
        Of a job; for other engines than ``"serial"`` best a function of a module.
    jobs
        Plain data, each a second of work or longer if several workers are to pay off.
    engine
        ``"serial"`` (this process) or ``"processes"`` (as many as there are cores).
    shared
        Arguments that are alike for all jobs. Large arrays travel once and are read-only in workers.
    workers
        How many processes; by default as many as this process has cores.
    progress
        Called with a `Progress` at the start and after each job.
    arrived
        Called with the number of a job and its result as soon as it is there, to keep it.

    Examples
    --------
    >>> pmap(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers must be a whole number from 1, got {workers!r}")
    work, given, start = list(jobs), dict(shared or {}), time.perf_counter()
    run = _serial if engine == "serial" or len(work) < 2 or workers == 1 else _processes
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}

    def tell() -> None:
        if progress is not None:
            progress(Progress(len(results) + len(errors), len(work), time.perf_counter() - start))

    tell()
    for i, outcome in run(function, work, given, workers):
        if isinstance(outcome, _Failure):
            errors[i] = outcome.error
            errors[i].add_note(f"in job {i + 1} of {len(work)}: {work[i]!r}")
            errors[i].__cause__ = errors[i].__cause__ or outcome.cause
        else:
            results[i] = outcome
            if arrived is not None:
                arrived(i, outcome)
        tell()
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(work))]


class _RemoteError(Exception):
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


@dataclass(frozen=True)
class _Failure:
    error: BaseException
    cause: BaseException | None = None


def _serial(
    function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Iterator[tuple[int, Any]]:
    for i, job in enumerate(jobs):
        outcome: Any
        try:
            outcome = function(job, **shared)
        except Exception as error:
            outcome = _Failure(error)
        yield i, outcome


def _processes(
    function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Iterator[tuple[int, Any]]:
    """Results of worker processes as they come; jobs of a killed worker are handed out again."""
    from joblib import Parallel, cpu_count, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    many = workers or cpu_count()
    if many > cpu_count():
        log.warning("%d workers share %d cores: more than one a core only takes memory", many, cpu_count())
    left = list(range(len(jobs)))
    for lives in reversed(range(LIVES)):
        with parallel_config("loky", n_jobs=many, inner_max_num_threads=1):
            arriving = Parallel(return_as="generator_unordered")(
                delayed(_apart)(os.getpid(), function, i, jobs[i], shared) for i in list(left)
            )
        try:
            for i, outcome in arriving:
                left.remove(i)
                yield i, outcome
            return
        except BrokenProcessPool as error:
            if not lives:
                raise RuntimeError(
                    f"worker processes were killed {LIVES} times, {len(left)} of {len(jobs)} jobs are missing: "
                    "if memory ran out, give fewer workers, or engine='serial'"
                ) from error
            log.warning("a worker process was killed: %d jobs are handed out again", len(left))
        finally:
            arriving.close()


def _apart(
    parent: int, function: Callable[..., Any], i: int, job: Any, shared: dict[str, Any]
) -> tuple[int, Any]:
    """Do a job in a worker."""
    import numpy as np

    _follow(parent)
    shared = {k: v.view(np.ndarray) if isinstance(v, np.memmap) else v for k, v in shared.items()}
    try:
        return i, function(job, **shared)
    except Exception as error:
        where = _RemoteError(traceback.format_exc())
        try:
            copy.copy(error)  # an error that cannot be made again from its arguments would not travel
        except Exception:
            return i, _Failure(RuntimeError(f"{type(error).__name__}: {error}"), where)
        return i, _Failure(error, where)


@cache
def _follow(parent: int) -> None:
    """Make a worker leave Ctrl-C to its parent, and end when its parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
