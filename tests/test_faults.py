"""Faults for real: workers, nodes of a cluster and drivers are killed in mid-run, and the results do not care.

Disks that are full or read-only are in ``test_store_faults.py``. Only process ids that were written down are killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eigenoptions.parallel import cluster, pmap
from reproduction.store import Store
from tests.clusters import PATIENCE, Cluster, as_driver, end, members, wait_until

pytestmark = pytest.mark.faults
# Large enough for Ray's store, as are the results.
SHARED = {"scale": np.linspace(1.0, 2.0, 30_000)}


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Cluster]:
    with Cluster() as nodes:
        nodes.node()
        yield nodes


@pytest.fixture(params=["processes", "ray"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("joined")
    return str(request.param)


@pytest.fixture
def joined(two_nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """This process as a driver of the cluster."""
    two_nodes.enter(monkeypatch)
    yield two_nodes
    cluster.disconnect()


def draw(job: dict[str, Any], scale: np.ndarray | float = 1.0) -> np.ndarray:
    """Numbers of a seed, after some seconds; who begins it writes that down.

    A job with ``hold`` waits as long as there is a file of that name in its folder.
    """
    folder = Path(job["folder"])
    begun = list(folder.glob(f"{job['seed']}-*"))
    mark = folder / f"{job['seed']}-{len(begun)}"
    mark.with_suffix(".part").write_text(f"{os.getpid()} {os.getppid()}")
    mark.with_suffix(".part").rename(mark)
    while job.get("hold") and (folder / "hold").exists():
        time.sleep(0.05)
    time.sleep(job.get("seconds", 0.2))
    return np.random.default_rng(job["seed"]).normal(size=30_000) * scale


def die(job: dict[str, Any]) -> int:
    time.sleep(0.3)
    if job["x"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return int(job["x"])


def started(folder: Path) -> dict[str, tuple[int, int]]:
    """Each start of a job: the process ids of the worker and of its parent."""
    words = {mark.name: mark.read_text().split() for mark in folder.glob("*-*") if not mark.suffix}
    return {name: (int(pid), int(parent)) for name, (pid, parent) in words.items()}


def same(found: list[np.ndarray], jobs: list[dict[str, Any]], scale: Any = 1.0) -> bool:
    quiet = [np.random.default_rng(job["seed"]).normal(size=30_000) * scale for job in jobs]
    return [x.tobytes() for x in found] == [x.tobytes() for x in quiet]


@contextmanager
def killer(folder: Path, victim: Callable[[], int | None]) -> Iterator[list[int]]:
    """Kill the process that `victim` names as soon as it does; the list then holds its id, and jobs wait no more."""
    killed: list[int] = []
    (folder / "hold").touch()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            if pid := victim():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                (folder / "hold").unlink()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_a_killed_worker_costs_nothing_but_time(engine, tmp_path, caplog, capfd):
    jobs = [{"folder": str(tmp_path), "seed": i, "hold": i == 2} for i in range(8)]
    arrived: dict[int, np.ndarray] = {}
    with killer(tmp_path, lambda: started(tmp_path).get("2-0", (None,))[0]) as killed:
        found = pmap(draw, jobs, engine, arrived=arrived.__setitem__)
    assert killed == [started(tmp_path)["2-0"][0]]
    assert same(found, jobs)
    assert sorted(arrived) == list(range(8))
    assert "2-1" in started(tmp_path)  # it was begun again
    assert "handed out again" in caplog.text
    assert capfd.readouterr().out == ""  # Ray would print of it


def test_a_job_that_kills_its_workers_is_named_and_the_others_are_kept(engine):
    kept: dict[int, int] = {}
    with pytest.raises(ChildProcessError, match="its worker was killed 3 times: if memory ran out") as caught:
        pmap(die, [{"x": i} for i in range(6)], engine, arrived=kept.__setitem__)
    assert caught.value.__notes__ == ["in job 2 of 6: {'x': 1}"]
    assert kept == {0: 0, 2: 2, 3: 3, 4: 4, 5: 5}


DRIVER = """
import json, sys
from reproduction.store import Store
from tests.test_faults import SHARED, draw
folder, engine, jobs = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
with Store(folder) as store:
    store.pmap(draw, jobs, engine, shared=SHARED, progress=lambda done, total: print(done, flush=True))
"""


def test_a_killed_node_costs_nothing_but_time(joined, tmp_path):
    extra = joined.node()
    jobs = [{"folder": str(tmp_path), "seed": i, "hold": True} for i in range(16)]

    def all_busy() -> int | None:
        parents = {parent for _, parent in started(tmp_path).values()}
        return extra if parents == set(joined.raylets) else None

    with killer(tmp_path, all_busy) as killed:
        done = as_driver(DRIVER, str(tmp_path / "store"), "ray", json.dumps(jobs))
    assert (done.returncode, killed) == (0, [extra]), done.stderr
    assert len(started(tmp_path)) > len(jobs)  # what the node had begun was begun again
    assert "handed out again" in done.stderr
    # Ray's own thread may report the node after the last job.
    assert "handed out" not in done.stdout
    begun = len(started(tmp_path))
    with Store(tmp_path / "store") as store:
        assert same(store.pmap(draw, jobs, shared=SHARED), jobs, SHARED["scale"])
    assert len(started(tmp_path)) == begun  # all were stored


def test_the_loss_of_the_node_one_stands_on_is_said_in_one_line(tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    marks.mkdir()
    jobs = [{"folder": str(marks), "seed": i, "seconds": 0.5} for i in range(40)]
    with Cluster() as alone:
        alone.enter(monkeypatch)
        with killer(marks, lambda: alone.raylets[0] if "3-0" in started(marks) else None):
            done = as_driver(DRIVER, str(tmp_path / "store"), "ray", json.dumps(jobs))
        logs = alone.folder.glob("ray/session_*/logs/python-core-driver*.log")
        by_ray = any("connection to the plasma store is failed. Terminate" in log.read_text() for log in logs)
    assert done.returncode == 1
    assert by_ray or "the Ray node of this machine was killed: start it again" in done.stderr
    # Ray's own words at the end of a process are not ours.
    counts = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert 0 < counts[-1] < 40


def test_a_killed_driver_goes_on_with_what_is_missing(engine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    (marks / "hold").touch()
    # The driver is killed before these jobs end, however late it happens.
    jobs = [{"folder": str(marks), "seed": i, "hold": i >= 6} for i in range(12)]
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path / "store"), engine, json.dumps(jobs)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            while driver.stdout.readline().strip() != "4":
                assert driver.poll() is None
            driver.kill()
            driver.wait(PATIENCE)
            (marks / "hold").unlink()
            wait_until(lambda: not members(driver.pid))
        finally:
            end(driver.pid)
    workers = {pid for pid, _ in started(marks).values()}
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))  # nobody works for the dead
    before = len(started(marks))
    with Store(tmp_path / "store") as store:
        first: list[int] = []
        found = store.pmap(draw, jobs, engine, shared=SHARED, progress=lambda done, total: first.append(done))
    assert 4 <= first[0] <= 6
    assert same(found, jobs, SHARED["scale"])
    assert len(started(marks)) == before + len(jobs) - first[0]
