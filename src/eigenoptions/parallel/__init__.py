"""Parallel work: one ordered map over jobs, in this process, in several, or on a Ray cluster.

A job is plain data (settings and a seed), so its result does not depend on where it ran: all engines give the same
bytes. Each worker computes with one BLAS thread, and results arrive as they are finished.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from eigenoptions._checks import one_of, whole
from eigenoptions.parallel.jobs import MAX_ATTEMPTS, Failure, Outcomes, Work, attempt, killed, packed

log = logging.getLogger("eigenoptions")

J = TypeVar("J")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

# Work that this process does in less time is not handed out: starting workers would take longer.
PARALLEL_FROM_SECONDS = 2.0


class Engine(NamedTuple):
    """Where `pmap` computes: the name of an engine, and how many jobs run at a time (None: one per core)."""

    name: str = "serial"
    workers: int | None = None


_current: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current() -> Engine:
    """The engine that `using` has set, else ``"serial"``."""
    return _current.get() or Engine()


@contextmanager
def using(engine: str | None = None, workers: int | None = None) -> Iterator[Engine]:
    """Compute on this engine everything inside the block that takes long.

    Results do not depend on it. What takes less than about two seconds is computed in this process in any case.

    Parameters
    ----------
    engine
        ``"serial"`` (this process), ``"processes"`` (on this machine) or ``"ray"``: the cluster that the environment
        variable ``RAY_ADDRESS`` names, else a cluster of this machine alone. None keeps the engine in use.
    workers
        How many jobs run at a time; by default one per core of this machine or of the cluster.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> with using("processes", workers=2):
    ...     options = eo.discover(mdp, n_options=8)
    >>> (options.policy == eo.discover(mdp, n_options=8).policy).all()
    np.True_
    """
    token = _current.set(_chosen(engine, workers))
    try:
        yield current()
    finally:
        _current.reset(token)


def _chosen(engine: str | None, workers: int | None) -> Engine:
    before = current()
    if engine is None:
        engine, workers = before.name, before.workers if workers is None else workers
    return Engine(one_of("engine", engine, ENGINES), None if workers is None else whole("workers", workers))


def pays(seconds: float) -> bool:
    """Whether work that takes this process so many seconds is to be handed out to workers."""
    return current().name != "serial" and seconds >= PARALLEL_FROM_SECONDS


class OnEngine(Protocol[P, R_co]):
    """A function that also accepts `engine` and `workers`, for this call only."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, engine: str, workers: int | None = None, **kwargs: Any) -> R_co: ...
    @overload
    def __call__(self, *args: Any, workers: int | None, **kwargs: Any) -> R_co: ...


def on_engine(default: str = "serial") -> Callable[[Callable[P, R]], OnEngine[P, R]]:
    """Decorate a function that calls `pmap`: it also accepts `engine=` and `workers=`, which set `using` for the call.

    `default` is the engine of calls outside of `using` that name none.
    """

    def decorate(function: Callable[P, R]) -> OnEngine[P, R]:
        @wraps(function)
        def call(*args: Any, engine: str | None = None, workers: int | None = None, **kwargs: Any) -> R:
            if engine is None and _current.get() is None:
                engine = default
            with using(engine, workers):
                return function(*args, **kwargs)

        return cast("OnEngine[P, R]", call)

    return decorate


def pmap(
    function: Callable[..., R],
    jobs: Sequence[J],
    engine: str | None = None,
    *,
    shared: Mapping[str, Any] | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    arrived: Callable[[int, R], object] | None = None,
) -> list[R]:
    """``[function(job, **shared) for job in jobs]``, in order, by an engine of choice.

    If jobs raise, the others still finish; then the first error is raised, with its job as a note. A worker or a
    node of a cluster that is killed costs only time: its jobs are handed out again.

    Parameters
    ----------
    function
        Called with each job; for other engines than ``"serial"`` best a function of a module.
    jobs
        Plain data, each a second of work or longer if several workers are to pay off.
    engine, workers
        As in `using`, for this call only.
    shared
        Arguments that are the same for all jobs. Large arrays travel once, and workers must not write to them.
    progress
        Called with jobs done and jobs in all, at the start and after each job.
    arrived
        Called with the number of a job and its result as soon as it is there, for example to store it.

    Examples
    --------
    >>> pmap(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    chosen = _chosen(engine, workers)
    work = list(jobs)
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    if progress is not None:
        progress(0, len(work))
    task = Work(function, work, dict(shared or {}), chosen.workers)
    with closing(ENGINES[chosen.name](task)) as arriving:
        for i, outcome in arriving:
            if isinstance(outcome, Failure):
                errors[i] = outcome.error
                errors[i].add_note(f"in job {i + 1} of {len(work)}: {work[i]!r}")
                errors[i].__cause__ = errors[i].__cause__ or outcome.cause
            else:
                results[i] = outcome
                if arrived is not None:
                    arrived(i, outcome)
            if progress is not None:
                progress(len(results) + len(errors), len(work))
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(work))]


def _serial(work: Work) -> Outcomes:
    """One job after the other, in this process."""
    for i, job in enumerate(work.jobs):
        try:
            yield i, work.function(job, **work.shared)
        except Exception as error:
            yield i, Failure(error)


def _processes(work: Work) -> Outcomes:
    """Worker processes of this machine; joblib maps large shared arrays into their memory.

    Joblib ends all workers when one was killed, and does not report which job it was. So the jobs in progress go to
    the end of the queue; when a whole round has finished no job, they are tried one by one.
    """
    from joblib import cpu_count

    if len(work.jobs) < 2 or work.workers == 1:
        yield from _serial(work)
        return
    n_workers = work.workers or cpu_count()
    if n_workers > cpu_count():
        log.warning(
            "%d workers share %d cores: more than one per core only takes memory", n_workers, cpu_count()
        )

    left = dict.fromkeys(range(len(work.jobs)))
    while left:
        before = len(left)
        with closing(_round(work, list(left), n_workers)) as arriving:
            for i, outcome in arriving:
                if i < 0:
                    log.warning("a worker process was killed: %d jobs are handed out again", len(left))
                    break
                del left[i]
                yield i, outcome
        suspects = list(left)[: 2 * n_workers]
        for i in suspects:
            del left[i]
        if len(left) + len(suspects) < before:
            left.update(dict.fromkeys(suspects))
        else:
            yield from ((i, _alone(work, i, n_workers)) for i in suspects)


def _round(work: Work, numbers: list[int], n_workers: int) -> Outcomes:
    """Hand jobs out once; the number -1, with the error, reports that a worker was killed."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with parallel_config("loky", n_jobs=n_workers, inner_max_num_threads=1):
        arriving = Parallel(return_as="generator_unordered")(
            delayed(_in_process)(os.getpid(), i, packed(work, i), work.shared) for i in numbers
        )
    try:
        for i, outcome in arriving:
            yield i, pickle.loads(outcome)
    except BrokenProcessPool as error:
        yield -1, error
    finally:
        with warnings.catch_warnings():
            # Joblib warns that results of an interrupted run are not used.
            warnings.simplefilter("ignore", UserWarning)
            arriving.close()


def _alone(work: Work, i: int, n_workers: int) -> Any:
    """The outcome of a job that may be what kills workers, with no other job in progress."""
    for _ in range(MAX_ATTEMPTS):
        ((found, outcome),) = _round(work, [i], n_workers)
        if found == i:
            return outcome
    return killed(outcome)


def _in_process(parent: int, i: int, parcel: bytes, shared: dict[str, Any]) -> tuple[int, bytes]:
    _follow(parent)
    return i, attempt(parcel, lambda: shared)


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


def _ray(work: Work) -> Outcomes:
    """Tasks of a Ray cluster."""
    from eigenoptions.parallel.cluster import run

    yield from run(work)


ENGINES: dict[str, Callable[[Work], Outcomes]] = {"serial": _serial, "processes": _processes, "ray": _ray}
