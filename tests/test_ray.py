"""Ray clusters: what joins, what is refused and in which words, and that a cluster is never flooded."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.clusters import Cluster, free_port

from eigenoptions import __version__
from eigenoptions.parallel import cluster, pmap


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """A head without CPUs, and the words of one who wanted to run jobs on it; then a node."""
    with Cluster(cpus=0) as nodes, pytest.MonkeyPatch.context() as patch:
        nodes.enter(patch)
        with pytest.raises(ValueError, match="no CPU to run jobs on: add a node"):
            pmap(abs, [1], "ray")
        cluster.left()
        nodes.cpus = 1
        nodes.node()
        yield nodes


@pytest.fixture
def joined(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    nodes.enter(monkeypatch)
    yield nodes
    cluster.left()


def where(seconds: float) -> int:
    """The node that did this job."""
    time.sleep(seconds)
    return os.getppid()


def weigh(job: int, table: np.ndarray) -> tuple[float, bool]:
    return float(table[job]), table.flags.writeable


def test_a_cluster_is_joined_and_left_running(joined):
    head, node = joined.raylets
    assert pmap(where, [0.0] * 3, "ray") == [node] * 3
    cluster.left()
    assert pmap(where, [0.0], "ray") == [node]
    assert Path(f"/proc/{head}").exists()
    assert pmap(weigh, [1, 2], "ray", shared={"table": np.arange(200_000.0)}) == [(1.0, False), (2.0, False)]


def test_a_token_alone_is_enough(joined, monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE")
    assert pmap(abs, [-1], "ray") == [1]


def test_only_as_many_tasks_as_keep_the_cluster_busy(joined, monkeypatch):
    begun, ended, most = 0, 0, 0

    def pack(function, job):
        nonlocal begun, most
        begun += 1
        most = max(most, begun - ended)
        return cluster.jobs_pack(function, job)

    def arrived(i, result):
        nonlocal ended
        ended += 1

    monkeypatch.setattr(cluster, "jobs_pack", cluster.pack, raising=False)
    monkeypatch.setattr(cluster, "pack", pack)
    assert pmap(abs, range(-200, 0), "ray", arrived=arrived) == list(range(200, 0, -1))
    assert begun == 200
    assert 2 <= most <= 4


def test_a_program_keeps_the_cluster_that_it_has_joined_itself(joined, monkeypatch):
    import ray

    cluster._read_again()
    ray.init(address=joined.address, log_to_driver=False, logging_level="ERROR")
    try:
        monkeypatch.setenv("RAY_ADDRESS", "elsewhere.invalid:1")
        assert pmap(abs, [-1], "ray") == [1]
        cluster.left()
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"RAY_AUTH_TOKEN_PATH": None, "RAY_AUTH_TOKEN": "0" * 64},
            "not take our token .from RAY_AUTH_TOKEN.: set",
        ),
        (
            {"RAY_AUTH_MODE": "disabled"},
            "RAY_AUTH_MODE is disabled, so none was sent.: set RAY_AUTH_MODE=token and",
        ),
        (
            {"RAY_AUTH_TOKEN_PATH": "/no/such/file"},
            "not take our token .from RAY_AUTH_TOKEN_PATH.: set RAY_AUTH",
        ),
    ],
)
def test_a_wrong_token_is_said_at_once(nodes, monkeypatch, change, message):
    nodes.enter(monkeypatch)
    for name, value in change.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(ValueError, match=message):
        pmap(abs, [1], "ray")


def test_a_node_with_other_code_is_named(joined, tmp_path):
    other = tmp_path / "eigenoptions"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '9.9'")
    joined.node({"PYTHONPATH": str(tmp_path)})
    message = rf"the Ray node .* has eigenoptions 9.9, but {__version__} hands out the jobs: pip install .*"
    with pytest.raises(ValueError, match=message):
        pmap(where, [0.3] * 40, "ray")
    cluster.left()
    (other / "__init__.py").write_text("raise ModuleNotFoundError('no module named eigenoptions')")
    with pytest.raises(ValueError, match=r"has no eigenoptions .no module named eigenoptions., and"):
        pmap(where, [0.3] * 40, "ray")


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
        start = time.monotonic()
        with pytest.raises(
            ValueError, match="did not let us in within 2 seconds: is it the port of a Ray head"
        ):
            pmap(abs, [1], "ray")
        assert time.monotonic() - start < 10
    monkeypatch.setenv("EIGENOPTIONS_RAY_TIMEOUT", "soon")
    with pytest.raises(
        ValueError, match="EIGENOPTIONS_RAY_TIMEOUT must be a number of seconds above 0, got 'soon'"
    ):
        pmap(abs, [1], "ray")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray .* pip install 'eigenoptions\[ray\]'"):
        pmap(abs, [1], "ray")
