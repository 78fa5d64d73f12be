"""Parallel work: one ordered map over jobs, in this process, in several (joblib), or on a Ray cluster.

A job is plain data (settings and a seed), so its result does not depend on where it ran: all engines return the same.

>>> with using("processes", workers=2):
...     run_jobs(abs, [-1, 2, -3])
[1, 2, 3]
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar
from warnings import catch_warnings

from eigenoptions._validation import check_choice, check_int

__all__ = ["using", "run_jobs"]

R = TypeVar("R")
# Numbers of jobs and their results, as they arrive.
Outcomes = Generator[tuple[int, Any], None, None]
_engine: ContextVar[tuple[str, int | None]] = ContextVar(
    "engine", default=("serial", None)
)


@contextmanager
def using(engine: str, workers: int | None = None) -> Iterator[None]:
    """Compute the jobs inside the block on this engine.

    Parameters
    ----------
    engine : {"serial", "processes", "ray"}
        This process; processes of this machine, by joblib; or Ray: the cluster that the program has joined by
        ``ray.init``, else the one that ``RAY_ADDRESS`` names, else one of this machine for the time of the block.
    workers : int, optional
        How many jobs run at a time; by default one per core of this machine or of the cluster.
    """
    check_choice("engine", engine, ENGINES)
    workers = None if workers is None else check_int("workers", workers)
    owns_ray = engine == "ray" and _join_ray(workers)
    token = _engine.set((engine, workers))
    try:
        yield
    finally:
        _engine.reset(token)
        if owns_ray:
            sys.modules["ray"].shutdown()


def run_jobs(
    function: Callable[..., R],
    jobs: Sequence[Any],
    *,
    shared: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[R]:
    """``[function(job, **shared) for job in jobs]``, in order, on the engine that `using` has set.

    The first error of a job ends the work; a note names the job. A job whose worker is killed is repeated by Ray (three
    times); joblib raises ChildProcessError.

    Parameters
    ----------
    function, jobs
        A function, best of a module, and plain data. Workers pay off for jobs of a second or longer.
    shared : mapping, optional
        Arguments that are the same for all jobs. Large arrays of these travel once and must not be written to.
    progress : callable, optional
        Called with jobs done and jobs in all, as each result arrives.
    """
    engine, workers = _engine.get()
    jobs, results, report = (
        list(jobs),
        dict[int, R](),
        progress or (lambda done, total: None),
    )
    report(0, len(jobs))
    with closing(
        ENGINES[engine](function, jobs, dict(shared or {}), workers)
    ) as outcomes:
        for i, result in outcomes:
            results[i] = result
            report(len(results), len(jobs))
    return [results[i] for i in range(len(jobs))]


def _call(
    function: Callable[..., Any], i: int, job: Any, shared: dict[str, Any]
) -> tuple[int, Any]:
    try:
        return i, function(job, **shared)
    except Exception as error:
        error.add_note(f"in job {i}: {job!r:.300}")
        raise


def _run_serial(
    function: Any, jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Outcomes:
    for i, job in enumerate(jobs):
        yield _call(function, i, job, shared)


def _run_joblib(
    function: Any, jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Outcomes:
    from joblib import Parallel, cpu_count, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    waiting, workers = dict(enumerate(jobs)), workers or cpu_count()
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        calls = (delayed(_call)(function, i, job, shared) for i, job in enumerate(jobs))
        outcomes = Parallel(return_as="generator_unordered", batch_size=1)(calls)
    try:
        for i, result in outcomes:
            del waiting[i]
            yield i, result
    except BrokenProcessPool as error:
        # Jobs are handed out in order, so the first ones without a result were running.
        running = "; ".join(
            f"job {i}: {job!r:.300}" for i, job in list(waiting.items())[:workers]
        )
        raise ChildProcessError(
            f"a worker was killed (out of memory?) while it ran {running}"
        ) from error
    finally:
        with catch_warnings(action="ignore", category=UserWarning):
            outcomes.close()


def _run_ray(
    function: Any, jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Outcomes:
    import ray

    def run_task(pickled_job: bytes, shared: list[Any], source: str) -> bytes:
        # Nested, so that it travels by value and can report that a node lacks this version of the library.
        try:
            from eigenoptions.parallel import _call, hash_source

            function, i, job = pickle.loads(pickled_job)
            problem = (
                ""
                if hash_source(function) == source
                else "has other code than this program"
            )
        except ImportError as error:
            problem = f"lacks this version of the library ({error})"
        if problem:
            raise RuntimeError(
                f"the Ray node {gethostname()} {problem}: install the same there"
            )
        return pickle.dumps(_call(function, i, job, ray.get(shared[0]))[1])

    # Shared in a list, so that nothing is unpickled before the code is checked. One CPU: one BLAS thread.
    task, shared_list, source = (
        ray.remote(num_cpus=1)(run_task),
        [ray.put(shared)],
        hash_source(function),
    )
    dumps: Any = ray.cloudpickle.dumps
    running, waiting = dict[Any, int](), list(enumerate(jobs))[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < (workers or len(jobs)):
                i, job = waiting.pop()
                running[task.remote(dumps((function, i, job)), shared_list, source)] = i
            (ready,), _ = ray.wait(list(running))
            i = running.pop(ready)
            try:
                yield i, pickle.loads(ray.get(ready))
            except ray.exceptions.RayTaskError as error:
                raise (
                    error.cause if isinstance(error.cause, Exception) else error
                ) from None
            except ray.exceptions.RayError as error:
                raise ChildProcessError(
                    f"job {i} ({jobs[i]!r:.300}) was lost with its Ray worker"
                ) from error
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _join_ray(workers: int | None) -> bool:
    """Connect this program to a Ray cluster; False if it already is."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            f"engine 'ray' needs Ray ({error}): pip install 'eigenoptions[ray]'"
        ) from None
    if ray.is_initialized():
        return False
    address = os.environ.get("RAY_ADDRESS") or "local"
    local: dict[str, Any] = (
        {"num_cpus": workers, "include_dashboard": False} if address == "local" else {}
    )
    ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **local)
    return True


def hash_source(function: Any = None) -> str:
    """Hash of the library's source, and of the module of a function: jobs run only where it is the same."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    module = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    if (
        module is not None
        and module.__name__ != "__main__"
        and getattr(module, "__file__", None)
    ):
        files.append(Path(str(module.__file__)))
    return hashlib.sha256(
        b"".join(path.name.encode() + path.read_bytes() for path in files)
    ).hexdigest()


ENGINES = {"serial": _run_serial, "processes": _run_joblib, "ray": _run_ray}
