"""Worker processes of this machine (loky), which live as long as their parent.

Shared arguments lie in one file that every worker maps into its memory, so they are written once and held once.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from eigenoptions.parallel.jobs import LIVES, attempt, killed, pack, pickled, unpack

SHARED_MEMORY = "/dev/shm"
ALIGNED = 64  # bytes; arrays start where vector instructions like it

log = logging.getLogger("eigenoptions")


def on_processes(
    function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Generator[tuple[int, Any], None, None]:
    """Results of worker processes as they come; jobs of a killed worker are handed out again.

    Loky ends all its workers when one was killed, and cannot say which job it was. So the jobs that were under way go
    to the end of the queue; when a whole round has brought nothing, they are tried one by one.
    """
    from joblib import cpu_count

    many = workers or cpu_count()
    if many > cpu_count():
        log.warning("%d workers share %d cores: more than one a core only takes memory", many, cpu_count())
    with _laid_out(shared) as folder:

        def hand_out(numbers: list[int]) -> Generator[tuple[int, Any], None, None]:
            return _round(function, jobs, numbers, folder, many)

        left = dict.fromkeys(range(len(jobs)))
        while left:
            before = len(left)
            with closing(hand_out(list(left))) as arriving:
                for i, outcome in arriving:
                    if i < 0:
                        log.warning("a worker process was killed: %d jobs are handed out again", len(left))
                        break
                    del left[i]
                    yield i, outcome
            suspects = list(left)[: 2 * many]
            for i in suspects:
                del left[i]
            if len(left) + len(suspects) < before:
                left.update(dict.fromkeys(suspects))
            else:
                yield from ((i, _alone(hand_out, i)) for i in suspects)


def _round(
    function: Callable[..., Any], jobs: list[Any], numbers: list[int], folder: str, many: int
) -> Generator[tuple[int, Any], None, None]:
    """Hand jobs out once; the number -1, with the error, says that a worker was killed."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    parent = os.getpid()
    with parallel_config("loky", n_jobs=many, inner_max_num_threads=1):
        arriving = Parallel(return_as="generator_unordered")(
            delayed(_apart)(parent, i, pack(function, jobs[i]), folder) for i in numbers
        )
    try:
        for i, outcome in arriving:
            yield i, unpack(outcome)
    except BrokenProcessPool as error:
        yield -1, error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # that results of a run that was stopped are not used
            arriving.close()


def _alone(hand_out: Callable[[list[int]], Generator[tuple[int, Any], None, None]], i: int) -> Any:
    """The outcome of a job that may be what kills workers, with nobody beside it."""
    for _ in range(LIVES):
        ((number, outcome),) = hand_out([i])
        if number == i:
            return outcome
    return killed(outcome)


def _apart(parent: int, i: int, parcel: bytes, folder: str) -> tuple[int, bytes]:
    """Do a job in a worker."""
    _follow(parent)
    return i, attempt(parcel, lambda: _opened(folder) if folder else {})


@contextmanager
def _laid_out(shared: dict[str, Any]) -> Iterator[str]:
    """A folder with shared arguments, for as long as jobs need it: `index` is their pickle, `arrays` what it holds."""
    if not shared:
        yield ""
        return
    from joblib.externals.loky.backend import resource_tracker

    buffers: list[pickle.PickleBuffer] = []
    index = pickled(shared, aside=buffers)
    arrays = [buffer.raw() for buffer in buffers]
    folder = tempfile.mkdtemp(prefix="eigenoptions-", dir=_roomy(sum(a.nbytes for a in arrays) + len(index)))
    resource_tracker.register(folder, "folder")  # removed also when this process is killed
    try:
        spans = []
        with open(Path(folder, "arrays"), "wb") as file:
            for array in arrays:
                file.seek(-file.tell() % ALIGNED, os.SEEK_CUR)
                spans.append((file.tell(), array.nbytes))
                file.write(array)
        Path(folder, "index").write_bytes(pickle.dumps((index, spans)))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(folder, "folder")


def _roomy(size: int) -> str:
    """A folder for so many bytes: shared memory where there is room, else the folder of temporary files."""
    with suppress(OSError):
        if os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > 1.25 * size + 2**20:
            return SHARED_MEMORY
    return tempfile.gettempdir()


def _opened(folder: str) -> dict[str, Any]:
    """Shared arguments in a worker: their arrays are pages of the file, and read-only."""
    index, spans = pickle.loads(Path(folder, "index").read_bytes())
    pages = memoryview(b"")
    if any(size for _, size in spans):
        with open(Path(folder, "arrays"), "rb") as file:
            pages = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    shared: dict[str, Any] = pickle.loads(index, buffers=[pages[at : at + size] for at, size in spans])
    return shared


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
