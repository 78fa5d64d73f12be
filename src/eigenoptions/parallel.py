"""Parallel work: one ordered map over jobs, on the engine that you choose.

The engines are this process, several processes of this machine (joblib), and a Ray
cluster. A job is plain data, such as settings and a seed. Its result therefore does not
depend on where it ran, and all engines return the same.

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
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from socket import gethostname
from typing import Any, Protocol, TypeAlias, TypeVar
from warnings import catch_warnings

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._validation import check_choice, check_int, check_type, explain_extra

__all__ = ["using", "run_jobs", "use_one_blas_thread"]

_Result = TypeVar("_Result")

# Numbers of jobs and their results, in the order in which the results arrive.
_NumberedResults: TypeAlias = Generator[tuple[int, _Result], None, None]


class _Engine(Protocol):
    """A way to run jobs, `workers` at a time (None: as many as there are cores)."""

    def __call__(
        self,
        function: Callable[..., _Result],
        jobs: Sequence[object],
        shared: dict[str, object],
        workers: int | None,
    ) -> _NumberedResults[_Result]:
        """Yield the number and the result of each job, as it is done."""


# Engine and workers of the block that the program is in.
_chosen_engine: ContextVar[tuple[str, int | None]] = ContextVar(
    "chosen_engine", default=("serial", None)
)


@contextmanager
def using(engine: str, workers: int | None = None) -> Iterator[None]:
    """Compute the jobs inside the block on this engine.

    Parameters
    ----------
    engine : {"serial", "processes", "ray"}
        ``"serial"`` is this process. ``"processes"`` are processes of this machine, by
        joblib. ``"ray"`` is the cluster that your program has joined by ``ray.init``;
        otherwise the one that the variable ``RAY_ADDRESS`` names; otherwise a cluster
        on this machine, which ends with the block.
    workers : int, optional
        How many jobs run at a time; by default one per core of this machine or of the
        cluster.
    """
    check_choice("engine", engine, ENGINES)
    if workers is not None:
        workers = check_int("workers", workers)

    owns_ray = False
    if engine == "ray":
        owns_ray = _join_ray(workers)

    token = _chosen_engine.set((engine, workers))
    try:
        yield
    finally:
        _chosen_engine.reset(token)
        if owns_ray:
            sys.modules["ray"].shutdown()


@shows_progress
def run_jobs(
    function: Callable[..., _Result],
    jobs: Sequence[object],
    *,
    shared: Mapping[str, object] | None = None,
    progress: ProgressArgument = None,
) -> list[_Result]:
    """Compute ``[function(job, **shared) for job in jobs]`` on the engine of `using`.

    The first error of a job ends the work, and a note names the job. If a worker is
    killed, Ray repeats its job up to three times; joblib raises ChildProcessError.

    Parameters
    ----------
    function : callable
        Called with each job. A function of a module is best, because workers import it.
    jobs : sequence
        Plain data. Workers pay off for jobs that take a second or longer.
    shared : mapping, optional
        Arguments that are the same for all jobs. Their large arrays travel once, and
        must not be written to.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of jobs that are done, and of all jobs, as each result arrives.

    Returns
    -------
    list
        Results in the order of the jobs.
    """
    progress = check_progress(progress)
    if not callable(function):
        raise TypeError(
            f"function must be callable with a job, got {type(function).__name__}"
        )
    check_type("jobs", jobs, Iterable, "give a list of jobs")
    jobs = list(jobs)
    if shared is not None:
        check_type("shared", shared, Mapping, "give names and values of arguments")
    shared = dict(shared or {})
    if progress is not None:
        progress(0, len(jobs))

    engine, workers = _chosen_engine.get()
    results: dict[int, _Result] = {}
    with closing(ENGINES[engine](function, jobs, shared, workers)) as outcomes:
        for i, result in outcomes:
            results[i] = result
            if progress is not None:
                progress(len(results), len(jobs))
    return [results[i] for i in range(len(jobs))]


def _run_job(
    function: Callable[..., _Result], i: int, job: object, shared: dict[str, object]
) -> tuple[int, _Result]:
    """Number and result of a job; an error gets a note that names the job."""
    try:
        return i, function(job, **shared)
    except Exception as error:
        error.add_note(f"in job {i}: {_shorten(job)}")
        raise


def _shorten(job: object) -> str:
    """The first characters of a job, for messages."""
    return repr(job)[:300]


def _run_serially(
    function: Callable[..., _Result],
    jobs: Sequence[object],
    shared: dict[str, object],
    workers: int | None,
) -> _NumberedResults[_Result]:
    """Run the jobs one after the other in this process."""
    for i, job in enumerate(jobs):
        yield _run_job(function, i, job, shared)


def _run_in_processes(
    function: Callable[..., _Result],
    jobs: Sequence[object],
    shared: dict[str, object],
    workers: int | None,
) -> _NumberedResults[_Result]:
    """Run the jobs in processes of this machine, by joblib."""
    from joblib import Parallel, cpu_count, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    if workers is None:
        workers = cpu_count()

    # Each worker has one BLAS thread: there is one worker per core already.
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        run = Parallel(return_as="generator_unordered", batch_size=1)
        outcomes = run(
            delayed(_run_job)(function, i, job, shared) for i, job in enumerate(jobs)
        )

    waiting = dict(enumerate(jobs))
    try:
        for i, result in outcomes:
            del waiting[i]
            yield i, result
    except BrokenProcessPool as error:
        # Jobs are handed out in order, twice as many as there are workers. Results that
        # were on their way are lost with the worker, so it may have run any of these.
        candidates = list(waiting.items())[: 2 * workers]
        running = "; ".join(f"job {i}: {_shorten(job)}" for i, job in candidates)
        raise ChildProcessError(
            f"a worker was killed (out of memory?) while it ran one of {running}"
        ) from error
    finally:
        # Joblib warns if it is closed before all results were read, as after an error.
        with catch_warnings(action="ignore", category=UserWarning):
            outcomes.close()


def _run_on_ray(
    function: Callable[..., _Result],
    jobs: Sequence[object],
    shared: dict[str, object],
    workers: int | None,
) -> _NumberedResults[_Result]:
    """Run the jobs as tasks of a Ray cluster.

    A node of a cluster may lack this library, or have other code under the same version
    number. Its results would be wrong without a sign. So each task first compares the
    source there with the source here (`hash_source`), before it unpickles anything that
    belongs to the library. For this reason

    * the task is a nested function: Ray sends its code, instead of the name of a module
      that the node might not have;
    * jobs and results travel as bytes that we pickle ourselves;
    * shared arguments travel in a list, in which Ray leaves the reference alone.

    ``ray.util.joblib`` would be shorter, but its workers are actors of no CPU: what a
    killed one ran is not repeated and not named, BLAS takes all threads, and it changes
    the base class of joblib's pool for the whole process.
    """
    import ray

    def run_task(
        pickled_job: bytes, shared_reference: list[Any], expected_source: str
    ) -> bytes:
        try:
            from eigenoptions.parallel import _run_job, hash_source

            function, i, job = pickle.loads(pickled_job)
            source = hash_source(function)
        except ImportError as error:
            raise RuntimeError(
                f"the Ray node {gethostname()} lacks this version of the library "
                f"({error}): install the same there"
            ) from None
        if source != expected_source:
            raise RuntimeError(
                f"the Ray node {gethostname()} has other code than this program: "
                "install the same there"
            )
        shared = ray.get(shared_reference[0])
        _, result = _run_job(function, i, job, shared)
        return pickle.dumps(result)

    # A task of one CPU has one BLAS thread, unless OMP_NUM_THREADS says otherwise.
    task = ray.remote(num_cpus=1)(run_task)
    shared_reference = [ray.put(shared)]
    source = hash_source(function)
    # Plain pickle does not take functions of notebooks and scripts.
    cloudpickle: Any = ray.cloudpickle

    # At most `workers` tasks at a time; without a number, Ray queues what does not fit.
    most_running = workers or len(jobs)
    waiting = list(enumerate(jobs))
    waiting.reverse()
    running: dict[Any, int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < most_running:
                i, job = waiting.pop()
                pickled_job = cloudpickle.dumps((function, i, job))
                reference = task.remote(pickled_job, shared_reference, source)
                running[reference] = i

            ready_references, _ = ray.wait(list(running), num_returns=1)
            reference = ready_references[0]
            i = running.pop(reference)
            yield i, _fetch_result(reference, i, jobs[i])
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _fetch_result(reference: Any, i: int, job: object) -> Any:
    """Result of a Ray task; its error is raised here with its own type."""
    import ray

    try:
        return pickle.loads(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise ChildProcessError(
            f"job {i} ({_shorten(job)}) was lost with its Ray worker"
        ) from error


def _join_ray(workers: int | None) -> bool:
    """Connect this program to a Ray cluster; False if it is connected already."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            f"engine 'ray' needs Ray ({error}): {explain_extra('ray')}"
        ) from None
    if ray.is_initialized():
        return False

    address = os.environ.get("RAY_ADDRESS") or "local"
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        settings["num_cpus"] = workers
        settings["include_dashboard"] = False
    ray.init(address, **settings)
    return True


def hash_source(function: Callable[..., object] | None = None) -> str:
    """Hash of the library's source, and of the module of a function.

    Jobs of a Ray cluster run only where this hash is the same as here.
    """
    files = sorted(Path(__file__).parent.rglob("*.py"))

    # The code of a function in a notebook or a script travels with it, and so does that
    # of a lambda and of a function inside of another: nobody imports their module.
    module_name = getattr(function, "__module__", None) or "__main__"
    module_file = getattr(sys.modules.get(module_name), "__file__", None)
    is_imported = "<" not in getattr(function, "__qualname__", "")
    if module_name != "__main__" and module_file and is_imported:
        files.append(Path(module_file))

    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


ENGINES: dict[str, _Engine] = {
    "serial": _run_serially,
    "processes": _run_in_processes,
    "ray": _run_on_ray,
}


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Restrict the linear algebra of NumPy and SciPy to one thread, if possible.

    Small matrices gain nothing from several, and threads that wait for a core that
    other processes use wait for long. It is possible where threadpoolctl is installed;
    elsewhere the block only takes longer.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        yield
        return
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        yield
