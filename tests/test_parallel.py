"""Workers: the same answers in the same order on every engine, and nothing lost when one is killed."""

from __future__ import annotations

import ctypes
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from eigenoptions.parallel import ENGINES, _WithoutRay, cluster, current, on_engine, pays, pmap, using
from tests.clusters import end, members, wait_until

WORKERS = [engine for engine in ENGINES if engine != "serial"]


@pytest.fixture(scope="module", autouse=True)
def no_cluster_is_left() -> Iterator[None]:
    yield
    cluster.disconnect()


def parent(job: int) -> int:
    return os.getppid()


def draw(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=100)


def total(rows: range, table: np.ndarray) -> tuple[float, bool]:
    return float(table[rows].sum()), table.flags.writeable


def picky(job: dict[str, int]) -> int:
    if job["x"] < 0:
        raise ValueError(f"x must be at least 0, got {job['x']}")
    return job["x"]


class FussyError(Exception):
    """Cannot be rebuilt from its arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def fuss(job: int) -> None:
    raise FussyError("so ", "fussy")


def threads(job: int) -> tuple[set[str | None], int, int]:
    """What a worker may use: by its environment, by numba, and by the BLAS that NumPy has loaded."""
    import numba

    said = {os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with open("/proc/self/maps") as maps:
        (blas,) = {line.split()[-1] for line in maps if "openblas" in line and "numpy" in line}
    return said, numba.get_num_threads(), int(ctypes.CDLL(blas).scipy_openblas_get_num_threads64_())


def keep(job: int, table: dict[str, np.ndarray]) -> tuple[float, set[str], bool]:
    """A sum over nested arrays, which of them may not be written, and whether a file of joblib is mapped."""
    fixed = {name for name, array in table.items() if not array.flags.writeable}
    maps = Path("/proc/self/maps").read_text()
    return float(sum(a.sum() for a in table.values())), fixed, "joblib_memmapping_folder" in maps


class Stubborn:
    """Does not travel."""

    def __reduce__(self):
        raise TypeError("stays at home")


def give_stubborn(job: int) -> object:
    return Stubborn() if job else 0


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


@pytest.mark.parametrize("engine", WORKERS)
def test_what_does_not_travel_is_told_in_words(engine):
    with pytest.raises(RuntimeError, match="FussyError: so fussy"):
        pmap(fuss, [1, 2], engine)
    with pytest.raises(TypeError, match="cannot travel to a worker: stays at home"):
        pmap(str, [Stubborn(), 1], engine)
    kept: dict[int, object] = {}
    with pytest.raises(TypeError, match="stays at home"):
        pmap(give_stubborn, [0, 1, 0], engine, arrived=kept.__setitem__)
    assert kept == {0: 0, 2: 0}


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_counts_jobs(engine):
    seen: list[tuple[int, int]] = []
    pmap(draw, [1, 2, 3], engine, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("engine", WORKERS)
def test_functions_without_a_module_travel(engine):
    four = 4
    assert pmap(lambda job: job + four, [1, 2], engine) == [5, 6]


@pytest.mark.parametrize("engine", WORKERS)
def test_results_are_ours_to_write_in(engine):
    first, _ = pmap(draw, [1, 2], engine)
    first[0] = 3.0  # not a view of a store that would have to be kept


def test_large_shared_arrays_are_mapped_and_their_files_are_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    table = {
        "large": np.ones(300_000),
        "small": np.ones(10),
        "none": np.zeros(0),
        "strided": np.arange(9)[::2],
    }
    for found in pmap(keep, range(3), "processes", shared={"table": table}):
        assert found == (300_030.0, {"large"}, True)
    wait_until(lambda: not [path for path in tmp_path.rglob("*") if path.is_file()])


@pytest.mark.parametrize("engine", WORKERS)
def test_workers_have_one_thread(engine, monkeypatch):
    assert pmap(threads, [1, 2], engine) == [({"1"}, 1, 1)] * 2


@pytest.mark.parametrize("engine", WORKERS)
def test_more_workers_than_cores_are_noted(engine, caplog):
    assert pmap(abs, [-1, -2], engine, workers=os.cpu_count() + 1) == [1, 2]
    assert "only takes memory" in caplog.text or "only 2 jobs run at a time" in caplog.text


@pytest.mark.parametrize("engine", ENGINES)
def test_who_keeps_results_may_stop_the_run(engine):
    def full(i, result):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        pmap(abs, range(50), engine, arrived=full)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"engine": "cloud"}, "engine must be one of serial, processes, ray, got 'cloud'"),
        ({"workers": 0}, "workers must be a whole number from 1, got 0"),
        ({"workers": True}, "workers must be a whole number from 1, got True"),
    ],
)
def test_bad_input_is_named(how, message):
    with pytest.raises(ValueError, match=message):
        pmap(abs, [1], **how)


def test_using_sets_the_engine_of_everything_inside():
    def where() -> list[int]:
        return pmap(parent, [1, 2])

    here = os.getpid()
    assert where() == [os.getppid()] * 2
    with using("processes", workers=2):
        assert where() == [here] * 2
        with using(workers=1):
            assert current() == ("processes", 1)
            assert where() == [os.getppid()] * 2
        assert pmap(parent, [1, 2], "serial") == [os.getppid()] * 2
        assert current() == ("processes", 2)
    assert current() == ("serial", None)
    with pytest.raises(ValueError, match="engine must be one of"), using("cloud"):
        pass


def test_functions_accept_an_engine_for_one_call():
    @on_engine()
    def near(x: int) -> tuple[int, str]:
        return x, current().name

    @on_engine("processes")
    def far(x: int) -> tuple[int, str]:
        """Say where."""
        return x, current().name

    assert (near(1), far(2), near(3, engine="ray")) == ((1, "serial"), (2, "processes"), (3, "ray"))
    assert near(4, engine="processes", workers=3) == (4, "processes")
    with using("ray", workers=2):
        assert (near(1), far(2), far(3, engine="serial")) == ((1, "ray"), (2, "ray"), (3, "serial"))
    assert (str(inspect.signature(far)), far.__doc__) == ("(x: 'int') -> 'tuple[int, str]'", "Say where.")
    with pytest.raises(ValueError, match="engine must be one of serial, processes, ray, got 'cloud'"):
        near(1, engine="cloud")
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        near(1, speed=3)


def test_short_work_is_not_handed_out():
    assert not pays(1e9)
    with using("processes"):
        assert pays(3.0)
        assert not pays(0.5)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


SCRIPT = """
import sys
from tests.test_parallel import nap
from eigenoptions.parallel import pmap
try:
    pmap(nap, [0.5] * 400, sys.argv[1], progress=lambda done, total: print(done, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("engine", WORKERS)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(sign, engine):
    # Other tests may run clusters of their own meanwhile. Sockets need a short path, so it is no folder of pytest.
    place = Path(tempfile.mkdtemp(prefix="eo-", dir="/tmp"))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(place)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, engine],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        while process.stdout.readline().strip() != "2":
            assert process.poll() is None
        if sign == signal.SIGINT:
            os.killpg(process.pid, sign)  # as a terminal does: everybody hears it
        else:
            process.kill()
        assert process.wait(timeout=300) == (130 if sign == signal.SIGINT else -signal.SIGKILL)
    # Two agents of a Ray cluster whose head is gone, which run no jobs, take a minute to notice.
    wait_until(lambda: not [words for words in members(process.pid).values() if "Agent" not in words])
    end(process.pid)
    # At most what an agent still wrote is left.
    assert not list(place.glob("eo-ray-*/session_latest/sockets"))
    shutil.rmtree(place, ignore_errors=True)


def test_what_a_thread_of_ray_prints_goes_to_standard_error(capsys):
    with redirect_stdout(_WithoutRay(sys.stdout)):
        thread = threading.Thread(target=print, args=("of Ray",), name="ray_print_logs")
        thread.start()
        thread.join()
        print("ours")
    assert capsys.readouterr() == ("ours\n", "of Ray\n")
