"""Ray clusters on this machine for tests: real heads and nodes by ``ray start``, with a token, ended by process id."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Ray reads its token once per process, so all clusters of a test run have the same.
TOKEN = os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32))
if "RAY_AUTH_TOKEN_PATH" not in os.environ:
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN)

RAY = str(Path(sys.executable).with_name("ray"))
PATIENCE = 120.0  # seconds; a busy machine takes its time
SOON = {  # a node whose port is closed is dead after three seconds, not fifteen; one that is slow has as long as ever
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}


def free_port() -> int:
    """A port that nobody listens at, outside the range that Ray gives to its workers."""
    while True:
        with socket.socket() as s:
            s.bind(("", 0))
            port = int(s.getsockname()[1])
        if not 10002 <= port <= 19999:
            return port


def members(session: int) -> dict[int, str]:
    """Processes of a session that still run, and their commands; one that waits to be buried does not count."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):  # it has just ended
            continue
    return found


def wait_until(true, seconds: float = PATIENCE, every: float = 0.1):
    """The first value of a function that counts as true; an error when the time is over."""
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, f"not so after {seconds} seconds"
        time.sleep(every)
    return value


class Cluster:
    """A head and nodes, each a session of processes of its own; all end with the ``with`` block.

    Attributes
    ----------
    address, environment
        What a program needs to join.
    raylets
        Process ids of the nodes' daemons, the head first.
    """

    def __init__(self, *, cpus: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eo-", dir="/tmp"))  # names of sockets must be short
        self.token = self.folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(TOKEN)
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}
        self.sessions: list[int] = []
        self.raylets: list[int] = []
        self.cpus = cpus

    def __enter__(self) -> Cluster:
        try:
            port = self.address.rpartition(":")[2]
            self._start(
                *("--head", f"--port={port}", "--include-dashboard=false", "--no-monitor"),
                f"--temp-dir={self.folder}/ray",
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def node(self, environment: dict[str, str] | None = None) -> int:
        """Start another node; the process id of its daemon."""
        return self._start(f"--address={self.address}", environment=environment or {})

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        """Give this process what a driver needs."""
        patch.setenv("RAY_ADDRESS", self.address)
        patch.setenv("EIGENOPTIONS_RAY_TIMEOUT", str(PATIENCE))
        patch.delenv("RAY_AUTH_TOKEN", raising=False)
        for name, value in self.environment.items():
            patch.setenv(name, value)

    def _start(self, *how: str, environment: dict[str, str] | None = None) -> int:
        words = [*how, f"--num-cpus={self.cpus}", "--object-store-memory=100000000", "--disable-usage-stats"]
        # A process less per node; Ray's logs are read from their files.
        words += ["--include-log-monitor=false"]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        for last in (False, False, True):
            said = self.folder / f"start{len(self.sessions)}.txt"
            with said.open("w") as file:
                process = subprocess.Popen(
                    [RAY, "start", *words],
                    env=inherited | SOON | self.environment | (environment or {}),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
                self.sessions.append(process.pid)
                status = process.wait(PATIENCE)
            # Ray gives a node 30 seconds, which are too few on a machine under heavy load.
            if status == 0 or last or "timed out during startup" not in said.read_text():
                break
            wait_until(lambda session=process.pid: not end(session))
        assert status == 0, said.read_text()
        (raylet,) = (
            pid for pid, words in members(process.pid).items() if "/raylet " in words.split("--")[0] + " "
        )
        self.raylets.append(raylet)
        return raylet

    def __exit__(self, *_: object) -> None:
        for session in self.sessions:
            wait_until(lambda session=session: not end(session))
        shutil.rmtree(self.folder, ignore_errors=True)


def as_driver(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own: Ray ends a driver that loses its node, and says so only in its log."""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )


def end(session: int) -> dict[int, str]:
    """Kill what still runs of a session that we started; what that was."""
    left = members(session)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return left
