"""Ray clusters: what joins, what is refused and in which words, and that a cluster is never flooded."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from eigenoptions import __version__, parallel
from eigenoptions.parallel import cluster, packed, pmap
from tests.clusters import Cluster, as_driver, free_port


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """A head without CPUs, and the words of one who wanted to run jobs on it; then a node."""
    with Cluster(cpus=0) as nodes, pytest.MonkeyPatch.context() as patch:
        nodes.enter(patch)
        with pytest.raises(ValueError, match="no CPU to run jobs on: add a node"):
            pmap(abs, [1], "ray")
        cluster.disconnect()
        nodes.cpus = 1
        nodes.node()
        yield nodes


@pytest.fixture(autouse=True)
def no_other_cluster() -> None:
    cluster.disconnect()


@pytest.fixture
def joined(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    nodes.enter(monkeypatch)
    yield nodes
    cluster.disconnect()


def where(seconds: float) -> int:
    """The node that did this job."""
    time.sleep(seconds)
    return os.getppid()


def weigh(job: int, table: np.ndarray) -> tuple[float, bool]:
    return float(table[job]), table.flags.writeable


def test_a_cluster_is_joined_and_left_running(joined):
    head, node = joined.raylets
    assert pmap(where, [0.0] * 3, "ray") == [node] * 3
    cluster.disconnect()
    assert pmap(where, [0.0], "ray") == [node]
    assert Path(f"/proc/{head}").exists()
    assert pmap(weigh, [1, 2], "ray", shared={"table": np.arange(200_000.0)}) == [(1.0, False), (2.0, False)]


def test_a_token_alone_is_enough(joined, monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE")
    assert pmap(abs, [-1], "ray") == [1]


def test_only_as_many_tasks_as_keep_the_cluster_busy(joined, monkeypatch):
    begun, ended, most = 0, 0, 0

    def pack(work, i):
        nonlocal begun, most
        begun += 1
        most = max(most, begun - ended)
        return packed(work, i)

    def arrived(i, result):
        nonlocal ended
        ended += 1

    monkeypatch.setattr(parallel, "packed", pack)
    assert pmap(abs, range(-200, 0), "ray", arrived=arrived) == list(range(200, 0, -1))
    assert begun == 200
    assert 2 <= most <= 4


def test_a_program_keeps_the_cluster_that_it_has_joined_itself(joined, monkeypatch):
    import ray

    ray.init(address=joined.address, log_to_driver=False, logging_level="ERROR")
    try:
        monkeypatch.setenv("RAY_ADDRESS", "elsewhere.invalid:1")
        assert pmap(abs, [-1], "ray") == [1]
        cluster.disconnect()
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"RAY_AUTH_TOKEN_PATH": None, "RAY_AUTH_TOKEN": "0" * 64},
            r"cannot be joined: .* .our token is from RAY_AUTH_TOKEN.\. If the token is the reason, set",
        ),
        (
            {"RAY_AUTH_MODE": "disabled"},
            r"RAY_AUTH_MODE is disabled, so no token was sent.\. If .* set RAY_AUTH_MODE=token and",
        ),
        (
            {"RAY_AUTH_TOKEN_PATH": "/no/such/file"},
            r"cannot be opened or is empty: /no/such/file .our token is from RAY_AUTH_TOKEN_PATH.",
        ),
    ],
)
def test_a_wrong_token_is_one_line(nodes, monkeypatch, change, message):
    nodes.enter(monkeypatch)
    for name, value in change.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(ValueError, match=message):
        pmap(abs, [1], "ray")


MANY_JOBS = """
from eigenoptions.parallel import pmap
from tests.test_ray import where
pmap(where, [0.3] * 400, "ray")
"""


def test_a_node_with_other_code_is_named(joined, tmp_path):
    other = tmp_path / "eigenoptions" / "__init__.py"
    other.parent.mkdir()
    joined.node({"PYTHONPATH": str(tmp_path)})
    no_package = "no module named eigenoptions"
    for code, message in {
        "__version__ = '9.9'": f"eigenoptions 9.9, but {__version__} hands out the jobs: pip install",
        f"raise ModuleNotFoundError({no_package!r})": rf"no eigenoptions \({no_package}\), and",
    }.items():
        other.write_text(code)
        done = as_driver(MANY_JOBS)
        assert re.search(rf"^ValueError: the Ray node \S+ has {message} ", done.stderr, re.MULTILINE), done


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("here", "RAY_ADDRESS must be HOST:PORT of the head, 'auto' or 'local', got 'here'"),
        ("here:there", "RAY_ADDRESS must be HOST:PORT"),
        ("here:70000", "RAY_ADDRESS must be HOST:PORT"),
        ("ray://here:10001", "must be HOST:PORT .* start it on one of its nodes"),
        ("no-such-host.invalid:6379", "no Ray cluster answers at RAY_ADDRESS=no-such-host.invalid:6379"),
    ],
)
def test_an_address_that_is_none_is_named(monkeypatch, address, message):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ValueError, match=message):
        pmap(abs, [1], "ray")


def test_an_address_that_does_not_answer_has_a_time_limit(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    with pytest.raises(ValueError, match=r"no Ray cluster answers at .* is its head running"):
        pmap(abs, [1], "ray")
    monkeypatch.setenv("EIGENOPTIONS_RAY_TIMEOUT", "2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(
            ValueError, match="did not let us in within 2 seconds: is it the port of a Ray head"
        ):
            pmap(abs, [1], "ray")
    monkeypatch.setenv("EIGENOPTIONS_RAY_TIMEOUT", "soon")
    with pytest.raises(
        ValueError, match=r"EIGENOPTIONS_RAY_TIMEOUT .seconds. must be in .0, inf., got 'soon'"
    ):
        pmap(abs, [1], "ray")


ALONE = """
import os, socket, sys
from pathlib import Path
from eigenoptions.parallel import cluster, pmap
assert pmap(abs, [-1, -2], "ray") == [1, 2]
import ray
host, port = ray.get_runtime_context().gcs_address.split(":")
assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
lines = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
listening = [line.split()[1] for line in lines.splitlines() if " 0A " in line]
print(host, *{at.partition(":")[0][-8:] for at in listening if int(at.rpartition(":")[2], 16) == int(port)})
cluster.disconnect()
"""


def test_a_local_cluster_listens_on_this_machine_only_and_has_a_token():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    command = [sys.executable, "-c", ALONE]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["127.0.0.1", "0100007F"]
    late = "import ray; from eigenoptions.parallel import pmap; pmap(abs, [1], 'ray')"
    found = subprocess.run([sys.executable, "-c", late], env=environment, capture_output=True, text=True)
    assert "Ray was imported before its token could be set: set RAY_AUTH_MODE=token" in found.stderr


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray .* pip install 'eigenoptions\[ray\]'"):
        pmap(abs, [1], "ray")


@pytest.mark.parametrize("failures", [2, cluster.MAX_LOCAL_STARTS])
def test_a_local_cluster_that_is_too_slow_starts_again(monkeypatch, failures):
    """With a stand-in: a node of Ray's own is too slow only on a machine under heavy load."""
    starts, ends, nodes = [], [], []

    def init(address, **settings):
        starts.append(address)
        if len(starts) <= failures:
            sleep = [sys.executable, "-c", "import time; time.sleep(300)", settings["_temp_dir"]]
            nodes.append(subprocess.Popen(sleep))
            raise TimeoutError("The current node timed out during startup.\nMore words.")

    slow = SimpleNamespace(
        __version__="2.52.0", init=init, shutdown=lambda: ends.append(1), is_initialized=bool
    )
    monkeypatch.setitem(sys.modules, "ray", slow)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if failures < cluster.MAX_LOCAL_STARTS:
        assert cluster.connect() is slow
        cluster.disconnect()
    else:
        words = "a local Ray cluster did not start: The current node timed out during startup.$"
        with pytest.raises(ValueError, match=words):
            cluster.connect()
    assert starts == ["local"] * min(failures + 1, cluster.MAX_LOCAL_STARTS)
    assert len(ends) == failures + 1
    assert [node.wait() for node in nodes] == [-signal.SIGKILL] * failures
