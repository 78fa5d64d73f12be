"""A job on its way: packed where it is handed out, attempted in a worker, unpacked where its result arrives.

What travels is bytes that this module pickles, so what cannot be pickled is the failure of one job, not of a worker.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

# A job that was being done when its worker was killed is handed out again, up to this many times in all.
MAX_ATTEMPTS = 3

Outcomes = Generator[tuple[int, Any], None, None]


class Work(NamedTuple):
    """What an engine takes; it yields the number of each job with its result, or a `Failure`, as they arrive."""

    function: Callable[..., Any]
    jobs: list[Any]
    shared: dict[str, Any]
    workers: int | None


@dataclass(frozen=True)
class Failure:
    """The error of a job, and the traceback of the worker as its cause."""

    error: BaseException
    cause: BaseException | None = None


class RemoteError(Exception):
    """The traceback of an error in another process, as text."""


def killed(cause: BaseException) -> Failure:
    """The failure of a job whose workers were killed each time."""
    remedy = "if memory ran out, give fewer workers, or engine='serial'"
    return Failure(ChildProcessError(f"its worker was killed {MAX_ATTEMPTS} times: {remedy}"), cause)


def pickled(value: Any) -> bytes:
    """Anything as bytes, also functions of a script or a notebook."""
    import cloudpickle

    data: bytes = cloudpickle.dumps(value)
    return data


def packed(work: Work, i: int) -> bytes:
    """The function and job number i as bytes."""
    try:
        return pickled((work.function, work.jobs[i]))
    except Exception as error:
        return pickled((_refuse, f"a job that cannot travel to a worker: {error}"))


def _refuse(reason: str) -> None:
    raise TypeError(reason)


def attempt(parcel: bytes, shared: Callable[[], dict[str, Any]]) -> bytes:
    """Do a job in a worker: its result or its `Failure` as bytes."""
    try:
        function, job = pickle.loads(parcel)
        return pickled(function(job, **shared()))
    except Exception as error:
        cause = RemoteError(f'\n"""\n{traceback.format_exc()}"""')
        try:
            failure = pickle.dumps(Failure(error, cause))
            # An error that cannot be built from its arguments would fail when it arrives.
            pickle.loads(failure)
        except Exception:
            failure = pickle.dumps(Failure(RuntimeError(f"{type(error).__name__}: {error}"), cause))
        return failure
