"""A job on its way: packed where it is handed out, attempted where it runs, opened where its result arrives.

What travels is bytes that we made ourselves. So an argument, a result or an error that does not travel is the
failure of one job, told as such, and never the end of a worker.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

LIVES = 3  # times that a job may cost a worker its life
REMEDY = "if memory ran out, give fewer workers, or engine='serial'"


@dataclass(frozen=True)
class Failure:
    """The error of a job, and the traceback of the worker as its cause."""

    error: BaseException
    cause: BaseException | None = None


class RemoteError(Exception):
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def in_turn(
    function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Generator[tuple[int, Any], None, None]:
    """One job after the other, in this process."""
    for i, job in enumerate(jobs):
        outcome: Any
        try:
            outcome = function(job, **shared)
        except Exception as error:
            outcome = Failure(error)
        yield i, outcome


def pickled(value: Any, aside: list[pickle.PickleBuffer] | None = None) -> bytes:
    """Anything as bytes, also functions of a script or a notebook; arrays are not copied but put aside if asked."""
    import cloudpickle

    text: bytes = cloudpickle.dumps(
        value, protocol=5, buffer_callback=None if aside is None else aside.append
    )
    return text


def pack(function: Callable[..., Any], job: Any) -> bytes:
    """A function and its job as bytes."""
    try:
        return pickled((function, job))
    except Exception as error:  # told where all failures are told: when the job is attempted
        return pickled((_refuse, f"a job that cannot travel to a worker: {error}"))


def _refuse(why: str) -> None:
    raise TypeError(why)


def attempt(parcel: bytes, shared: Callable[[], dict[str, Any]]) -> bytes:
    """Do a job in a worker, and give its result or its `Failure` as bytes."""
    try:
        function, job = pickle.loads(parcel)
        return pickled(function(job, **shared()))
    except Exception as error:
        where = RemoteError(traceback.format_exc())
        try:
            told = pickle.dumps(Failure(error, where))
            pickle.loads(told)  # an error that cannot be made again from its arguments would not arrive
        except Exception:
            told = pickle.dumps(Failure(RuntimeError(f"{type(error).__name__}: {error}"), where))
        return told


def unpack(outcome: bytes) -> Any:
    """The result of a job, or its `Failure`."""
    return pickle.loads(outcome)


def killed(cause: BaseException) -> Failure:
    """What is said of a job that has cost its workers their lives."""
    return Failure(ChildProcessError(f"its worker was killed {LIVES} times: {REMEDY}"), cause)
