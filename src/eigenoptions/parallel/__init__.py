"""Parallel work: one ordered map over jobs, in this process, in several, or on a Ray cluster.

A job is plain data (settings and a seed), so its result does not depend on where it ran: all engines give the same
bytes. Each worker computes with one BLAS thread, and results arrive as they are finished. Jobs and results travel as
bytes pickled here, so what cannot be pickled is the failure of one job, not of a worker.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from eigenoptions._validation import check_choice, check_int, suggest_name

log = logging.getLogger("eigenoptions")

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

# Work that this process does in less time is not handed out: starting workers would take longer.
PARALLEL_FROM_SECONDS = 2.0
# A job that was being done when its worker was killed is handed out again, up to this many times in all.
MAX_ATTEMPTS = 3

# Seconds between two looks at how many CPUs the cluster has.
RAY_POLL_SECONDS = 5.0
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}


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
    >>> with using("processes", workers=2):
    ...     pmap(abs, [-1, 2, -3])
    [1, 2, 3]
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
    return Engine(
        check_choice("engine", engine, ENGINES), None if workers is None else check_int("workers", workers)
    )


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
        known = signature(function).parameters
        any_name = any(p.kind is p.VAR_KEYWORD for p in known.values())

        @wraps(function)
        def call(*args: Any, engine: str | None = None, workers: int | None = None, **kwargs: Any) -> R:
            if not any_name and not kwargs.keys() <= known.keys():
                name = next(name for name in kwargs if name not in known)
                hint = suggest_name(name, [*known, "engine", "workers"])
                said = f"{function.__name__}() got an unexpected keyword argument {name!r}"
                raise TypeError(f"{said}{hint}")
            if engine is None and _current.get() is None:
                engine = default
            with using(engine, workers):
                return function(*args, **kwargs)

        return cast("OnEngine[P, R]", call)

    return decorate


def pmap(
    function: Callable[..., R],
    jobs: Sequence[Any],
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
    function, jobs, shared
        A function, best of a module; plain data, of which jobs of a second or longer make several workers pay off; and
        arguments that are the same for all jobs. Large arrays of these travel once, and must not be written to.
    engine, workers
        As in `using`, for this call only.
    progress, arrived
        Called with jobs done and jobs in all, and with the number of a job and its result, as each is finished.

    Examples
    --------
    >>> pmap(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    name, limit = _chosen(engine, workers)
    work = Work(function, list(jobs), dict(shared or {}), limit)
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    if progress is not None:
        progress(0, len(jobs))
    with closing(ENGINES[name](work)) as arriving:
        for i, outcome in arriving:
            if isinstance(outcome, Failure):
                errors[i] = outcome.error
                errors[i].add_note(f"in job {i + 1} of {len(jobs)}: {work.jobs[i]!r}")
                errors[i].__cause__ = errors[i].__cause__ or outcome.cause
            else:
                results[i] = outcome
                if arrived is not None:
                    arrived(i, outcome)
            if progress is not None:
                progress(len(results) + len(errors), len(jobs))
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(jobs))]


class Work(NamedTuple):
    """What an engine takes; it yields the number of each job with its result, or a `Failure`, as they arrive."""

    function: Callable[..., Any]
    jobs: list[Any]
    shared: dict[str, Any]
    workers: int | None


Outcomes = Generator[tuple[int, Any], None, None]


@dataclass(frozen=True)
class Failure:
    """The error of a job, and the traceback of the worker as its cause."""

    error: BaseException
    cause: BaseException | None = None


class RemoteError(Exception):
    """The traceback of an error in another process, as text."""


def killed(cause: BaseException) -> Failure:
    """The failure of a job whose workers were killed each time."""
    message = f"its worker was killed {MAX_ATTEMPTS} times: if memory ran out, give fewer workers, or engine='serial'"
    return Failure(ChildProcessError(message), cause)


def packed(work: Work, i: int) -> bytes:
    """The function and job number i as bytes, also functions of a script or a notebook."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps((work.function, work.jobs[i])))
    except Exception as error:
        return pickle.dumps((_refuse, f"a job that cannot travel to a worker: {error}"))


def _refuse(reason: str) -> None:
    raise TypeError(reason)


def as_error(raised: BaseException) -> Exception:
    """The error of a job; one that calls ``sys.exit`` must not end the whole run."""
    if isinstance(raised, Exception):
        return raised
    return ChildProcessError(
        f"the job ended its process by {type(raised).__name__}({raised}): let it raise an error"
    )


def attempt(parcel: bytes, shared: Callable[[], dict[str, Any]]) -> bytes:
    """Do a job in a worker: its result or its `Failure` as bytes."""
    import cloudpickle

    try:
        function, job = pickle.loads(parcel)
        return bytes(cloudpickle.dumps(function(job, **shared())))
    except (Exception, SystemExit) as raised:
        error = as_error(raised)
        cause = RemoteError(f'\n"""\n{traceback.format_exc()}"""')
        try:
            failure = pickle.dumps(Failure(error, cause))
            # An error that cannot be built from its arguments would fail when it arrives.
            pickle.loads(failure)
        except Exception:
            failure = pickle.dumps(Failure(RuntimeError(f"{type(error).__name__}: {error}"), cause))
        return failure


def _serial(work: Work) -> Outcomes:
    """One job after the other, in this process."""
    for i, job in enumerate(work.jobs):
        try:
            yield i, work.function(job, **work.shared)
        except (Exception, SystemExit) as raised:
            yield i, Failure(as_error(raised))


def _processes(work: Work) -> Outcomes:
    """Worker processes of this machine; joblib maps large shared arrays into their memory.

    Joblib ends all workers when one was killed, and does not report which job it was. So the jobs in progress go to
    the end of the queue; when a whole round has finished no job, they are tried one by one.
    """
    from joblib import cpu_count

    if len(work.jobs) < 2 or work.workers == 1:
        yield from _serial(work)
        return
    n_workers, cores = work.workers or cpu_count(), cpu_count()
    if n_workers > cores:
        log.warning("%d workers share %d cores: more than one per core only takes memory", n_workers, cores)
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
        finished = len(left) < before
        for i in suspects:
            del left[i]
        if finished:
            left.update(dict.fromkeys(suspects))
        else:
            yield from ((i, _alone(work, i, n_workers)) for i in suspects)


def _round(work: Work, numbers: list[int], n_workers: int) -> Outcomes:
    """Hand jobs out once; the number -1, with the error, reports that a worker was killed."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    parcels = (delayed(_in_process)(os.getpid(), i, packed(work, i), work.shared) for i in numbers)
    with _without_interrupts(), parallel_config("loky", n_jobs=n_workers, inner_max_num_threads=1):
        arriving = Parallel(return_as="generator_unordered")(parcels)
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


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that do not receive Ctrl-C, also before their first job; here it arrives after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


class _WithoutRay:
    """Standard output of the program; what a thread of Ray prints about killed workers goes to standard error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        ours = not threading.current_thread().name.startswith("ray_")
        return int((self._stream if ours else sys.stderr).write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _ray(work: Work) -> Outcomes:
    """Jobs on a Ray cluster, with its messages on standard error."""
    with redirect_stdout(cast("Any", _WithoutRay(sys.stdout))):
        yield from _tasks(work)


def _tasks(work: Work) -> Outcomes:
    """Tasks of a Ray cluster, only as many at a time as keep it busy; those in progress at the end are cancelled."""
    from eigenoptions import __version__
    from eigenoptions.parallel import cluster

    if not work.jobs:
        return
    ray = cluster.connect()
    from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError

    task = ray.remote(num_cpus=1, max_retries=0)(_task())
    # In a list, so that a worker opens it after its threads are set.
    box = [ray.put(work.shared)] if work.shared else []
    running: dict[Any, int] = {}
    waiting, attempts = deque(range(len(work.jobs))), Counter[int]()
    cpus, looked = _cpus(ray, None, work.workers), time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < (work.workers or max(2 * cpus, 2)):
                i = waiting.popleft()
                running[task.remote(packed(work, i), box, __version__, ONE_THREAD)] = i
            done, _ = ray.wait(list(running), timeout=RAY_POLL_SECONDS)
            for ref in done:
                i = running.pop(ref)
                try:
                    outcome = ray.get(ref)
                except LocalRayletDiedError as error:
                    message = (
                        "the Ray node of this machine was killed: start it again (ray start), and then this"
                    )
                    raise ConnectionError(
                        f"{message}; finished jobs are kept where they are stored"
                    ) from error
                except RayTaskError as error:
                    yield i, Failure(error)
                except RayError as error:
                    attempts[i] += 1
                    if attempts[i] == MAX_ATTEMPTS:
                        yield i, killed(error)
                    else:
                        log.warning("a Ray worker or node was lost: job %d is handed out again", i + 1)
                        waiting.append(i)
                else:
                    if isinstance(outcome, str):
                        raise ValueError(outcome)
                    yield i, pickle.loads(outcome)
            if time.monotonic() - looked >= RAY_POLL_SECONDS or not (waiting or running):
                cpus, looked = _cpus(ray, cpus, work.workers), time.monotonic()
    except ConnectionError:
        # The next run connects again.
        cluster.disconnect()
        raise
    finally:
        for ref in running if ray.is_initialized() else ():
            ray.cancel(ref, force=True)


def _task() -> Callable[..., bytes | str]:
    """The Ray task. A function inside a function travels by value, so it can report that a node lacks the package."""

    def task(parcel: bytes, box: list[Any], version: str, one_thread: dict[str, str]) -> bytes | str:
        import os
        import socket

        # Before NumPy is loaded, by the import below.
        os.environ.update(one_thread)
        here = f"the Ray node {socket.gethostname()} has"
        cure = f"{version} hands out the jobs: pip install 'eigenoptions[ray]=={version}' for the Python of that node"
        try:
            from eigenoptions import __version__ as found
        except ImportError as error:
            return f"{here} no eigenoptions ({error}), and {cure}"
        if found != version:
            return f"{here} eigenoptions {found}, but {cure}"
        import ray

        from eigenoptions.parallel import attempt

        return attempt(parcel, lambda: ray.get(box[0]) if box else {})

    return task


def _cpus(ray: Any, before: int | None, workers: int | None) -> int:
    """Number of CPUs of the cluster; changes are logged."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if before is None and cpus == 0:
        remedy = "add a node (ray start --address=... --num-cpus=N)"
        raise ValueError(f"the Ray cluster has no CPU to run jobs on: {remedy}")
    if before is None and workers is not None and workers > cpus:
        log.warning("%d workers on a Ray cluster of %d CPUs: only %d jobs run at a time", workers, cpus, cpus)
    if before is not None and cpus < before:
        log.warning("the Ray cluster has lost a node: %d of %d CPUs are left", cpus, before)
    return cpus


ENGINES: dict[str, Callable[[Work], Outcomes]] = {"serial": _serial, "processes": _processes, "ray": _ray}
