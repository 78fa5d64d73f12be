"""The Ray cluster that jobs run on: the one that ``RAY_ADDRESS`` names, or a local one with a token of its own.

Only Ray's public functions are used. What may be wrong with an address or a token is found by a separate process.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from traceback import clear_frames
from typing import Any

from eigenoptions._validation import check_float

ADDRESS, MODE, TOKEN, TOKEN_PATH = "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
# Environment variable with the seconds that a cluster has to answer.
TIME_LIMIT = "EIGENOPTIONS_RAY_TIMEOUT"
FIRST_WITH_TOKENS = (2, 52)
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# Ray gives a local node 30 seconds to start; with 20 programs on 2 cores it missed them three times in a row.
MAX_LOCAL_STARTS = 6
# Connecting with a wrong token or port can take Ray minutes, so another process tries it first.
PROBE = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')"

# The address that we have connected Ray to, and what ends the connection.
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
        _check_version(ray.__version__)
        if not address:
            # Sockets need a short path. The tracker removes the folder if this process is killed.
            from joblib import cpu_count
            from joblib.externals.loky.backend import resource_tracker

            place = None if len(tempfile.gettempdir()) < 24 else "/tmp"
            folder = tempfile.mkdtemp(prefix="eo-ray-", dir=place)
            resource_tracker.register(folder, "folder")
            stack.callback(resource_tracker.unregister, folder, "folder")
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            settings |= {"num_cpus": cpu_count(), "include_dashboard": False, "_temp_dir": folder}
        stack.callback(ray.shutdown)
        for start in range(MAX_LOCAL_STARTS):
            try:
                ray.init(address or "local", **settings)
                break
            except Exception as error:
                ray.shutdown()
                if not address:
                    _end_failed_start(settings["_temp_dir"], error)
                if address or start == MAX_LOCAL_STARTS - 1:
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


def _end_failed_start(folder: str, error: Exception) -> None:
    """End the processes that Ray leaves behind when its node is too slow; all of them name the folder."""
    with suppress(FileNotFoundError):
        subprocess.run(["pkill", "-KILL", "-f", folder], check=False)
    # Ray has not waited for them, of which Python would warn when it deletes them some time later.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        clear_frames(error.__traceback__)
        gc.collect()


def _check_version(version: str) -> None:
    """Refuse a Ray that ignores tokens: whoever reaches its port can run code in it.

    >>> _check_version("2.49.0")
    Traceback (most recent call last):
    ValueError: engine 'ray' needs Ray 2.52 or newer, which knows tokens, got 2.49.0: pip install -U ray
    """
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < FIRST_WITH_TOKENS:
        first = ".".join(map(str, FIRST_WITH_TOKENS))
        raise ValueError(
            f"engine 'ray' needs Ray {first} or newer, which knows tokens, got {version}: pip install -U ray"
        )


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
        remedy = f"set {MODE}=token and {TOKEN} before Python starts, or connect with ray.init"
        raise ValueError(f"Ray was imported before its token could be set: {remedy}")
    return loopback | {MODE: "token", TOKEN: secrets.token_hex(32)}


def _check(address: str) -> None:
    """Raise ValueError, one line, if the cluster at this address cannot be used."""
    text = os.environ.get(TIME_LIMIT, "20")
    seconds: object = float(text) if text.replace(".", "", 1).isdecimal() else text
    limit = check_float(f"{TIME_LIMIT} (seconds)", seconds, above=0)
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
            hint = f"is its head running, and is this its port? ({TIME_LIMIT}={limit:g} seconds is the limit)"
            raise ValueError(f"no Ray cluster answers at {ADDRESS}={address} ({error}): {hint}") from None
    env = os.environ | _mode() | {"RAY_NUM_REDIS_GET_RETRIES": "2"}
    command = [sys.executable, "-c", PROBE, address]
    try:
        tried = subprocess.run(command, env=env, input="", capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        hint = f"is it the port of a Ray head? ({TIME_LIMIT} sets another limit)"
        what = f"what answers at {ADDRESS}={address} did not let us in within {limit:g} seconds"
        raise ValueError(f"{what}: {hint}") from None
    if tried.returncode:
        reason = (tried.stderr.strip() or f"exit code {tried.returncode}").splitlines()[-1].partition(". ")[0]
        mode = os.environ.get(MODE, "token" if _mode() else "not set")
        source = next((name for name in (TOKEN, TOKEN_PATH) if os.environ.get(name)), "~/.ray/auth_token")
        sent = f"our token is from {source}" if mode == "token" else f"{MODE} is {mode}, so no token was sent"
        raise ValueError(
            f"the Ray cluster at {address} cannot be joined: {reason} ({sent}). If the token is the reason, set "
            f"{MODE}=token and {TOKEN_PATH}=FILE, with the file that the head was started with"
        )
