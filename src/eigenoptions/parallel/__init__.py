"""Workers: one ordered map over jobs, on this process, on several, or on a Ray cluster; nobody else knows of them.

A job is plain data (settings and a seed), so what comes out does not depend on where it ran: all engines give
the same bytes. Workers compute on one BLAS thread each, and results arrive as they are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from eigenoptions.parallel.jobs import Failure, in_turn

J = TypeVar("J")
R = TypeVar("R")

ENGINES = ("serial", "processes", "ray")


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

    If jobs raise, the others still finish; then the first error is raised, with its job as a note. A worker or a
    node of a cluster that is killed costs only time: its jobs are handed out again.

    Parameters
    ----------
    function
        Of a job; for other engines than ``"serial"`` best a function of a module.
    jobs
        Plain data, each a second of work or longer if several workers are to pay off.
    engine
        ``"serial"`` (this process), ``"processes"`` (on this machine) or ``"ray"``: the cluster that the environment
        variable ``RAY_ADDRESS`` names, else a cluster of this machine alone. See the page on clusters.
    shared
        Arguments that are alike for all jobs. They travel once, and their arrays are read-only in workers.
    workers
        How many jobs at a time; by default as many as there are cores, of this machine or of the cluster.
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
    work, start = list(jobs), time.perf_counter()
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}

    def tell() -> None:
        if progress is not None:
            progress(Progress(len(results) + len(errors), len(work), time.perf_counter() - start))

    tell()
    run = _engine(engine, len(work), workers)
    with closing(run(function, work, dict(shared or {}), workers)) as arriving:
        for i, outcome in arriving:
            if isinstance(outcome, Failure):
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


class _Run(Protocol):
    """An engine: numbers of jobs with their results, or a `Failure`, as they come."""

    def __call__(
        self, function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
    ) -> Generator[tuple[int, Any], None, None]: ...


def _engine(name: str, n_jobs: int, workers: int | None) -> _Run:
    if name == "ray" and n_jobs:
        from eigenoptions.parallel.cluster import on_ray

        return on_ray
    if name == "processes" and n_jobs > 1 and workers != 1:
        from eigenoptions.parallel.processes import on_processes

        return on_processes
    return in_turn
