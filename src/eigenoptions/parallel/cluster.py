"""Ray: jobs as tasks of a cluster, the one that ``RAY_ADDRESS`` names or a local one with a token of its own.

Only Ray's public functions are used. What may be wrong with an address or a token is found by a separate process.
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
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from eigenoptions import __version__
from eigenoptions._checks import number
from eigenoptions.parallel.jobs import MAX_ATTEMPTS, Failure, Outcomes, Work, killed, packed

log = logging.getLogger("eigenoptions")

ADDRESS, MODE, TOKEN, TOKEN_PATH = "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
# Environment variable with the seconds that a cluster has to answer.
TIME_LIMIT = "EIGENOPTIONS_RAY_TIMEOUT"
# Seconds between two looks at how many CPUs the cluster has.
RAY_POLL_SECONDS = 5.0
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")
} | {"VECLIB_MAXIMUM_THREADS": "1"}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def run(work: Work) -> Outcomes:
    """Tasks of a Ray cluster, only as many at a time as keep it busy; those in progress at the end are cancelled."""
    if not work.jobs:
        return
    ray = connect()
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
            # Ray prints about killed workers, and standard output belongs to the program.
            with redirect_stdout(sys.stderr):
                done, _ = ray.wait(list(running), timeout=RAY_POLL_SECONDS)
            for ref in done:
                i = running.pop(ref)
                try:
                    outcome = ray.get(ref)
                except LocalRayletDiedError as error:
                    raise ConnectionError(
                        "the Ray node of this machine was killed: start it again (ray start), and then this; "
                        "finished jobs are kept where they are stored"
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
        disconnect()
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
        from eigenoptions.parallel.jobs import attempt

        def opened() -> dict[str, Any]:
            import ray

            return ray.get(box[0]) if box else {}

        return attempt(parcel, opened)

    return task


def _cpus(ray: Any, before: int | None, workers: int | None) -> int:
    """Number of CPUs of the cluster; changes are logged."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if before is None and cpus == 0:
        raise ValueError(
            "the Ray cluster has no CPU to run jobs on: add a node (ray start --address=... --num-cpus=N)"
        )
    if before is None and workers is not None and workers > cpus:
        log.warning("%d workers on a Ray cluster of %d CPUs: only %d jobs run at a time", workers, cpus, cpus)
    if before is not None and cpus < before:
        log.warning("the Ray cluster has lost a node: %d of %d CPUs are left", cpus, before)
    return cpus


_session: tuple[str, ExitStack] | None = None


def connect() -> Any:
    """Ray, connected to the cluster of ``RAY_ADDRESS``, else to a local cluster with a token, bound to 127.0.0.1.

    A program that has called ``ray.init`` itself keeps its cluster.
    """
    global _session
    address = os.environ.get(ADDRESS, "").strip()
    address = "" if address == "local" else address
    ray: Any = sys.modules.get("ray")
    if ray and ray.is_initialized() and (_session is None or _session[0] == address):
        return ray
    disconnect()
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as stack:
        if address:
            _check(address)
        # Ray reads its variables once, when it is imported, so they stay set.
        os.environ.update(QUIET | (_mode() if address else _local()))
        try:
            import ray
        except ImportError as error:
            raise ValueError(f"engine 'ray' needs Ray ({error}): pip install 'eigenoptions[ray]'") from None
        if not address:
            from joblib import cpu_count

            folder = _temporary_folder(stack)
            settings |= {"num_cpus": cpu_count(), "include_dashboard": False, "_temp_dir": folder}
        stack.callback(ray.shutdown)
        try:
            ray.init(address or "local", **settings)
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            what = f"{ADDRESS}={address}" if address else "a local Ray cluster did not start"
            raise ValueError(f"{what}: {reason}") from error
        _session = address, stack.pop_all()
    return ray


@atexit.register
def disconnect() -> None:
    """End our connection to Ray, and the local cluster if we started one."""
    global _session
    if _session is not None:
        (_, stack), _session = _session, None
        stack.close()


def _temporary_folder(stack: ExitStack) -> str:
    """A folder with a short name, as sockets need it, until the stack closes or this process is killed."""
    from joblib.externals.loky.backend import resource_tracker

    folder = tempfile.mkdtemp(prefix="eo-ray-", dir=None if len(tempfile.gettempdir()) < 24 else "/tmp")
    resource_tracker.register(folder, "folder")
    stack.callback(resource_tracker.unregister, folder, "folder")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _mode() -> dict[str, str]:
    """Authentication on, if it is not set and there is a token: then the address is all that one has to set."""
    given = {TOKEN, TOKEN_PATH} & set(os.environ) or Path("~/.ray/auth_token").expanduser().exists()
    return {MODE: "token"} if MODE not in os.environ and given else {}


def _local() -> dict[str, str]:
    """Settings of a local cluster: listen at 127.0.0.1 only, with a token of this process if there is no other."""
    loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    if {MODE, TOKEN, TOKEN_PATH} & set(os.environ):
        return loopback | _mode()
    if sys.modules.get("ray"):
        raise ValueError(
            f"Ray was imported before its token could be set: set {MODE}=token and {TOKEN} before Python starts, "
            "or connect with ray.init"
        )
    return loopback | {MODE: "token", TOKEN: secrets.token_hex(32)}


# Connecting with a wrong token or port can take Ray minutes, so another process tries it first.
PROBE = """
import logging, sys, ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
except Exception as error:
    sys.exit(str(error))
"""


def _check(address: str) -> None:
    """Raise ValueError, one line, if the cluster at this address cannot be used."""
    text = os.environ.get(TIME_LIMIT, "20")
    seconds: object = float(text) if text.replace(".", "", 1).isdecimal() else text
    limit = number(f"{TIME_LIMIT} (seconds)", seconds, "(0, inf)")
    host, _, port = address.rpartition(":")
    if address != "auto":
        if "://" in address or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(
                f"{ADDRESS} must be HOST:PORT of the head, 'auto' or 'local', got {address!r}: this program becomes a "
                "part of the cluster, so start it on one of its nodes (Ray Client is not used)"
            )
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=limit).close()
        except OSError as error:
            raise ValueError(
                f"no Ray cluster answers at {ADDRESS}={address} ({error}): is its head running, and is this its port? "
                f"({TIME_LIMIT}={limit:g} seconds is how long it may take)"
            ) from None
    try:
        tried = subprocess.run(
            [sys.executable, "-c", PROBE, address],
            env=os.environ | _mode() | {"RAY_NUM_REDIS_GET_RETRIES": "2"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"what answers at {ADDRESS}={address} did not let us in within {limit:g} seconds: is it the port of a Ray "
            f"head? ({TIME_LIMIT} sets another limit)"
        ) from None
    if tried.returncode:
        reason = (tried.stderr.strip() or f"exit code {tried.returncode}").splitlines()[-1].partition(". ")[0]
        mode = os.environ.get(MODE, "token" if _mode() else "not set")
        source = next((name for name in (TOKEN, TOKEN_PATH) if os.environ.get(name)), "~/.ray/auth_token")
        sent = f"our token is from {source}" if mode == "token" else f"{MODE} is {mode}, so no token was sent"
        raise ValueError(
            f"the Ray cluster at {address} cannot be joined: {reason} ({sent}). If the token is the reason, set "
            f"{MODE}=token and {TOKEN_PATH}=FILE, with the file that the head was started with"
        )
