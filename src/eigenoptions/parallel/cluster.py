"""Ray: jobs as tasks of a cluster, the one that ``RAY_ADDRESS`` names or one of this machine alone.

Only so many tasks are under way as keep the cluster busy. Ray hands those of a killed worker or node out again.
What may be wrong with an address or a token is found out by a process of its own, as Ray would try for minutes.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from eigenoptions import __version__
from eigenoptions.parallel.jobs import LIVES, Failure, killed, pack, pickled, unpack

ADDRESS, MODE, TOKEN, TOKEN_PATH = "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
TIME_LIMIT = "EIGENOPTIONS_RAY_TIMEOUT"  # seconds that a cluster has to answer
STORE = 200 * 2**20  # bytes of a local object store, if shared arrays need no more
LOOK = 5.0  # seconds between two looks at how many CPUs the cluster has
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)

LOST = "the Ray node of this machine was killed: start it again (ray start), and then this; what is finished is kept"

log = logging.getLogger("eigenoptions")


def on_ray(
    function: Callable[..., Any], jobs: list[Any], shared: dict[str, Any], workers: int | None
) -> Generator[tuple[int, Any], None, None]:
    """Results of Ray tasks as they come; what is still under way when nobody waits any more is cancelled."""
    ray = joined(_size(shared))
    from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError

    task = ray.remote(num_cpus=1, max_retries=LIVES - 1)(_travelling())
    box = [ray.put(shared)] if shared else []  # in a list: workers open it when their threads are set
    flying: dict[Any, int] = {}
    waiting = iter(range(len(jobs)))
    looked, cpus = -LOOK, 0
    try:
        while True:
            if time.monotonic() - looked >= LOOK:
                cpus, looked = _cpus(ray, cpus, workers, first=looked < 0), time.monotonic()
            room = (workers or max(2 * cpus, 2)) - len(flying)
            for i in islice(waiting, max(room, 0)):
                flying[task.remote(pack(function, jobs[i]), box, __version__, ONE_THREAD)] = i
            if not flying:
                _cpus(ray, cpus, workers, first=False)
                return
            done, _ = ray.wait(list(flying), timeout=LOOK)
            if done and len(flying) > 1:
                done, _ = ray.wait(list(flying), num_returns=len(flying), timeout=0)
            for ref in done:
                i = flying.pop(ref)
                try:
                    outcome = ray.get(ref)
                except LocalRayletDiedError as error:
                    raise ConnectionError(LOST) from error
                except RayError as error:
                    yield i, Failure(error) if isinstance(error, RayTaskError) else killed(error)
                    continue
                if isinstance(outcome, str):
                    raise ValueError(outcome)
                yield i, unpack(outcome)
    except ConnectionError:
        left()  # so that the next run joins again
        raise
    finally:
        for ref in flying if ray.is_initialized() else ():
            ray.cancel(ref, force=True)


def _travelling() -> Callable[..., bytes | str]:
    """The task. A function inside a function travels by value, so it can say that a node lacks the package."""

    def task(parcel: bytes, box: list[Any], version: str, one_thread: dict[str, str]) -> bytes | str:
        import os
        import socket

        os.environ.update(one_thread)  # in time: NumPy is loaded below
        here = f"the Ray node {socket.gethostname()} has"
        cure = f"{version} hands out the jobs: pip install 'eigenoptions[ray]=={version}' for the Python of that node"
        try:
            from eigenoptions import __version__ as found
        except ImportError as error:
            return f"{here} no eigenoptions ({error}), and {cure}"
        if found != version:
            return f"{here} eigenoptions {found}, but {cure}"
        from eigenoptions.parallel.jobs import attempt

        def opened() -> dict[str, Any]:
            import ray

            return ray.get(box[0]) if box else {}

        return attempt(parcel, opened)

    return task


def _cpus(ray: Any, before: int, workers: int | None, *, first: bool) -> int:
    """How many CPUs the cluster has now."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if first and cpus == 0:
        raise ValueError(
            "the Ray cluster has no CPU to run jobs on: add a node (ray start --address=... --num-cpus=N)"
        )
    if first and workers is not None and workers > cpus:
        log.warning("%d workers on a Ray cluster of %d CPUs: only %d jobs run at a time", workers, cpus, cpus)
    if not first and cpus < before:
        log.warning("the Ray cluster has lost a node: %d of %d CPUs are left", cpus, before)
    if not first and cpus > before:
        log.info("the Ray cluster has grown to %d CPUs", cpus)
    return cpus


@dataclass
class _Session:
    """Our connection: the address that was asked for ("" for a cluster of our own), its folder and its store."""

    address: str
    folder: str = ""
    store: int = 0
    environment: dict[str, str | None] = field(default_factory=dict)  # as it was before


_session: _Session | None = None


def joined(size: int = 0) -> Any:
    """Ray, connected to the cluster of ``RAY_ADDRESS``, else to a local one with room for `size` bytes that are shared.

    A program that has called ``ray.init`` itself keeps its cluster.
    """
    global _session
    try:
        import ray
    except ImportError as error:
        raise ValueError(f"engine 'ray' needs Ray ({error}): pip install 'eigenoptions[ray]'") from None
    address = os.environ.get(ADDRESS, "").strip()
    address = "" if address == "local" else address
    if ray.is_initialized() and (
        _session is None or (_session.address == address and (address or size <= _session.store // 2))
    ):
        return ray
    left()
    if address:
        _check(address)
        _session = _join(ray, address)
    else:
        _session = _start(ray, size)
    _quiet(True)
    return ray


def left() -> None:
    """End our connection, and with it the local cluster if we started one."""
    global _session
    if _session is None:
        return
    ended, _session = _session, None
    import ray

    ray.shutdown()
    _restore(ended.environment)
    _quiet(False)
    if ended.folder:
        _remove(ended.folder)


atexit.register(left)


def _start(ray: Any, size: int) -> _Session:
    """A quiet cluster of this machine; its token is made for it alone, and is nowhere on the disk."""
    from joblib import cpu_count
    from joblib.externals.loky.backend import resource_tracker

    before = _set(
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",  # else some releases warn of a default that will change
    )
    if MODE not in os.environ and not {TOKEN, TOKEN_PATH} & set(os.environ):
        before |= _set(**{MODE: "token", TOKEN: secrets.token_hex(32)})
        _read_again()
    store = max(STORE, 2 * size + STORE // 2)
    folder = tempfile.mkdtemp(prefix="eo-ray-", dir=None if len(tempfile.gettempdir()) < 24 else "/tmp")
    resource_tracker.register(folder, "folder")  # removed also when this process is killed
    roomy = _free("/dev/shm") > 1.1 * store
    try:
        ray.init(
            address="local",
            num_cpus=cpu_count(),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=store,
            _temp_dir=folder,  # sockets have short names, so it is not under a deep folder
            _plasma_directory=None if roomy else folder,
        )
    except Exception as error:
        _restore(before)
        _remove(folder)
        raise ValueError(f"a local Ray cluster did not start: {_line(error)}") from error
    return _Session("", folder, store, before)


def _remove(folder: str) -> None:
    from joblib.externals.loky.backend import resource_tracker

    shutil.rmtree(folder, ignore_errors=True)
    resource_tracker.unregister(folder, "folder")


def _join(ray: Any, address: str) -> _Session:
    before = _set(RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", **_mode())
    _read_again()
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        _restore(before)
        raise ValueError(f"{ADDRESS}={address}: {_line(error)}") from error
    return _Session(address, environment=before)


PROBE = """
import logging, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
ray.shutdown()
"""


def _check(address: str) -> None:
    """Say in one line what keeps us from a cluster, within the time limit."""
    limit = _time_limit()
    end = time.monotonic() + limit
    if "://" in address:
        raise ValueError(
            f"{ADDRESS} must be HOST:PORT of the head, 'auto' or 'local', got {address!r}: this program becomes a "
            "part of the cluster, so start it on one of its nodes (Ray Client is not used)"
        )
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"{ADDRESS} must be HOST:PORT of the head, 'auto' or 'local', got {address!r}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=limit).close()
        except OSError as error:
            raise ValueError(
                f"no Ray cluster answers at {ADDRESS}={address} ({error}): is its head running, and is this its port? "
                f"({TIME_LIMIT}={limit:g} seconds is how long it may take)"
            ) from None
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-c", PROBE, address],
            env=os.environ | _mode(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            while child.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
                if b"InvalidAuthToken" in _read(said):
                    break
        finally:
            late = child.poll() is None
            child.kill()
            code = child.wait()
        words = _read(said).decode(errors="replace")
    if "InvalidAuthToken" in words or "AuthenticationError" in words:
        raise ValueError(
            f"the Ray cluster at {address} does not take our token ({_token()}): set {MODE}=token and "
            f"{TOKEN_PATH}=FILE, with the file that the head was started with"
        )
    if late:
        raise ValueError(
            f"what answers at {ADDRESS}={address} did not let us in within {limit:g} seconds: is it the port of a Ray "
            f"head? ({TIME_LIMIT} sets another limit)"
        )
    if code:
        why = words.strip().splitlines()[-1] if words.strip() else f"exit code {code}"
        raise ValueError(f"the Ray cluster at {address} cannot be joined: {why}")


def _read(file: Any) -> bytes:
    """What a child has written so far, without moving its place in the file."""
    words: bytes = os.pread(file.fileno(), 2**20, 0)
    return words


def _time_limit() -> float:
    text = os.environ.get(TIME_LIMIT, "20")
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise ValueError(f"{TIME_LIMIT} must be a number of seconds above 0, got {text!r}")
    return limit


def _mode() -> dict[str, str]:
    """Authentication on, if nothing is said about it and a token is at hand: then the address is all one has to set."""
    at_hand = {TOKEN, TOKEN_PATH} & set(os.environ) or Path("~/.ray/auth_token").expanduser().exists()
    return {MODE: "token"} if MODE not in os.environ and at_hand else {}


def _token() -> str:
    """Where our token comes from, not what it is."""
    if os.environ.get(MODE, "token" if _mode() else "").lower() != "token":
        return f"{MODE} is {os.environ.get(MODE, 'not set')}, so none was sent"
    for variable in (TOKEN, TOKEN_PATH):
        if os.environ.get(variable):
            return f"from {variable}"
    return "from ~/.ray/auth_token"


def _read_again() -> None:
    """Make Ray forget the token and the mode that it read when it was imported."""
    with suppress(ImportError, AttributeError):  # other releases have other names, or read it each time
        inside = import_module("ray._raylet")
        inside.Config.initialize("")
        inside.AuthenticationTokenLoader.instance().reset_cache()


def _quiet(on: bool) -> None:
    """Take what Ray says of lost workers as notes: it would print pages of its logs among our output."""
    with suppress(ImportError, AttributeError):  # other releases have other names, and stay loud
        inside: Any = import_module("ray._private.worker")
        loud = getattr(inside.print_to_stdstream, "__wrapped__", inside.print_to_stdstream)

        @wraps(loud)
        def note(data: dict[str, Any], *_: object, **__: object) -> None:
            words = " ".join(map(str, data.get("lines", ())))
            log.debug("Ray: %s", words)
            if "will be retried" in words or "Raylet is terminated" in words:
                log.warning("a Ray worker or node was lost: its jobs are handed out again")

        inside.print_to_stdstream = note if on else loud


def _set(**variables: str) -> dict[str, str | None]:
    """Set variables of the environment; what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    return before


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _free(folder: str) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _size(shared: dict[str, Any]) -> int:
    """Bytes of the arrays in shared arguments."""
    if not shared:
        return 0
    buffers: list[pickle.PickleBuffer] = []
    index = pickled(shared, aside=buffers)
    return len(index) + sum(buffer.raw().nbytes for buffer in buffers)


def _line(error: BaseException) -> str:
    """The first line of an error, or its kind."""
    words = str(error).strip().splitlines()
    return words[0] if words else type(error).__name__
