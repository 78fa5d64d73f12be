"""Workers: the same answers in the same order on every engine, and nothing lost when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from eigenoptions.parallel import ENGINES, Progress, pmap


def draw(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=100)


def total(rows: range, table: np.ndarray) -> tuple[float, bool]:
    return float(table[rows].sum()), table.flags.writeable


def picky(job: dict[str, int]) -> int:
    if job["x"] < 0:
        raise ValueError(f"x must be at least 0, got {job['x']}")
    return job["x"]


def mortal(job: tuple[str, int]) -> int:
    """Die the first time that number 2 is asked for."""
    flag, number = Path(job[0]), job[1]
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * number


def doomed(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class FussyError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def fuss(job: int) -> None:
    raise FussyError("so ", "fussy")


def threads(job: int) -> list[str | None]:
    return [os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]


@pytest.mark.parametrize("engine", ENGINES)
def test_results_are_in_order_and_the_same_bytes(engine):
    jobs = list(range(12))
    assert [r.tobytes() for r in pmap(draw, jobs, engine)] == [draw(job).tobytes() for job in jobs]
    assert pmap(draw, [], engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_shared_arrays_reach_every_job(engine):
    table = np.arange(400_000.0)  # large enough to travel as a mapped file
    found = pmap(total, [range(0, 10), range(10, 30)], engine, shared={"table": table})
    assert [x for x, _ in found] == [45.0, sum(range(10, 30))]
    assert found[0][1] == (engine == "serial")  # workers may only read


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_names_its_job_and_the_others_still_finish(engine):
    jobs = [{"x": 1}, {"x": -2}, {"x": 3}, {"x": -4}]
    kept: dict[int, int] = {}
    with pytest.raises(ValueError, match="x must be at least 0, got -2") as caught:
        pmap(picky, jobs, engine, arrived=kept.__setitem__)
    assert caught.value.__notes__ == ["in job 2 of 4: {'x': -2}"]
    assert kept == {0: 1, 2: 3}
    if engine != "serial":
        assert "in picky" in str(caught.value.__cause__)  # the traceback of the worker


def test_errors_that_do_not_travel_come_as_words():
    with pytest.raises(RuntimeError, match="FussyError: so fussy"):
        pmap(fuss, [1, 2], "processes")


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_counts_jobs(engine):
    seen: list[Progress] = []
    pmap(draw, [1, 2, 3], engine, progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert seen[0].remaining == float("inf")
    assert seen[-1].remaining == 0
    assert seen[-1].rate > 0
    assert sorted(p.seconds for p in seen) == [p.seconds for p in seen]


def test_a_killed_worker_costs_nothing_but_time(tmp_path, caplog):
    jobs = [(str(tmp_path / "flag"), i) for i in range(6)]
    assert pmap(mortal, jobs, "processes") == [10 * i for i in range(6)]
    assert "a worker process was killed" in caplog.text


def test_workers_that_keep_dying_are_not_waited_for():
    with pytest.raises(RuntimeError, match="killed 3 times, 2 of 2 jobs are missing: if memory ran out"):
        pmap(doomed, [1, 2], "processes")


def test_workers_have_one_blas_thread():
    assert pmap(threads, [1, 2], "processes") == [["1", "1", "1"]] * 2


def test_more_workers_than_cores_are_noted(caplog):
    assert pmap(abs, [-1, -2], "processes", workers=os.cpu_count() + 1) == [1, 2]
    assert "only takes memory" in caplog.text


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"engine": "cloud"}, "engine must be one of serial, processes, got 'cloud'"),
        ({"workers": 0}, "workers must be a whole number from 1, got 0"),
        ({"workers": True}, "workers must be a whole number from 1, got True"),
    ],
)
def test_bad_input_is_named(how, message):
    with pytest.raises(ValueError, match=message):
        pmap(abs, [1], **how)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


SCRIPT = """
import sys
from tests.test_parallel import nap
from eigenoptions.parallel import pmap
try:
    pmap(nap, [0.5] * 400, "processes", progress=lambda p: print(p.done, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(sign):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        while process.stdout.readline().strip() != "2":
            pass
        process.send_signal(sign)
        assert process.wait(timeout=30) == (130 if sign == signal.SIGINT else -signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (left := alive(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def alive(session: int) -> list[str]:
    """Processes of a session that still run; one that waits to be buried does not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(of) == session and state != "Z":
            found.append((entry / "cmdline").read_text())
    return found
