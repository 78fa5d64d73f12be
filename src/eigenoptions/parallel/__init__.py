"""Parallel work: one ordered map over jobs, in this process, in several, or on a Ray cluster.

A job is plain data (settings and a seed), so its result does not depend on where it ran: all engines give the same
bytes. Each worker computes with one BLAS thread, and results arrive as they are finished.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from eigenoptions._checks import one_of, whole
from eigenoptions.parallel.jobs import Failure, in_turn

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
    run = _run(chosen, len(work))
    with closing(run(function, work, dict(shared or {}), chosen.workers)) as arriving:
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


class _Run(Protocol):
    """The work of an engine: numbers of jobs with their results, or a `Failure`, as they arrive."""

    def __call__(
        self, function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
    ) -> Generator[tuple[int, Any], None, None]: ...


ENGINES = ("serial", "processes", "ray")


def _run(chosen: Engine, n_jobs: int) -> _Run:
    if chosen.name == "ray" and n_jobs:
        from eigenoptions.parallel.cluster import on_ray

        return on_ray
    if chosen.name == "processes" and n_jobs > 1 and chosen.workers != 1:
        from eigenoptions.parallel.processes import on_processes

        return on_processes
    return in_turn
