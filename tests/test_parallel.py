"""Engines: the same results in the same order; errors and dead workers name the job."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import eigenoptions
from eigenoptions.parallel import ENGINES, hash_source, run_jobs, using

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """One local cluster for this file; `using` finds it and leaves it running."""
    import ray

    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each engine with two workers."""
    if request.param == "ray":
        request.getfixturevalue("ray_cluster")
    with using(request.param, workers=2):
        yield request.param


def draw(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=100)


def add(job: int, table: np.ndarray) -> float:
    return float(table[job])


def fail_if_negative(job: int) -> int:
    if job < 0:
        raise ValueError(f"got {job}")
    return job


def read_thread_limit(job: int) -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def kill_once(job: int, folder: Path) -> int:
    """Kill the worker that runs job 2 for the first time."""
    if job == 2 and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def kill_always(job: int) -> int:
    if job == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def touch_and_sleep(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(0.2)


def test_run_jobs_returns_the_same_bytes_in_order_on_every_engine(engine):
    results = run_jobs(draw, range(12))
    assert len(results) == 12
    for job, result in enumerate(results):
        assert result.tobytes() == draw(job).tobytes()
    assert run_jobs(draw, []) == []


def test_run_jobs_shared_array_reaches_every_job(engine):
    table = np.arange(400_000.0)
    assert run_jobs(add, [3, 399_999], shared={"table": table}) == [3.0, 399_999.0]


def test_run_jobs_results_are_writable(engine):
    first, _ = run_jobs(draw, [1, 2])
    first[0] = 3.0


def test_run_jobs_accepts_functions_without_a_module(engine):
    four = 4
    assert run_jobs(lambda job: job + four, [1, 2]) == [5, 6]


def test_run_jobs_reports_progress(engine):
    seen: list[tuple[int, int]] = []
    run_jobs(abs, [-1, -2, -3], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_run_jobs_error_keeps_its_type_and_names_the_job(engine):
    with pytest.raises(ValueError, match="got -2") as caught:
        run_jobs(fail_if_negative, [1, -2, 3])
    assert caught.value.__notes__ == ["in job 1: -2"]


def test_run_jobs_error_of_a_callback_ends_the_work(engine):
    def fail(done: int, total: int) -> None:
        if done == 3:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        run_jobs(abs, range(20), progress=fail)
    assert run_jobs(abs, [-5]) == [5]


def test_workers_use_one_blas_thread(engine):
    limit = "1"
    if engine == "ray":
        # Ray sets it where nobody has.
        limit = os.environ.get("OMP_NUM_THREADS", "1")
    if engine != "serial":
        assert run_jobs(read_thread_limit, [0, 1]) == [limit, limit]


def test_using_is_nested_and_restored():
    with using("processes", workers=2):
        with using("serial"):
            assert set(run_jobs(sleep, [0.0, 0.0])) == {os.getpid()}
        assert os.getpid() not in run_jobs(sleep, [0.0, 0.0])
    assert set(run_jobs(sleep, [0.0, 0.0])) == {os.getpid()}


@pytest.mark.parametrize(
    ("arguments", "word"), [(("cloud",), "engine"), (("serial", 0), "workers")]
)
def test_using_bad_argument_is_named(arguments, word):
    with pytest.raises(ValueError, match=word), using(*arguments):
        pass


def test_using_ray_without_ray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"eigenoptions\[ray\]"), using("ray"):
        pass


@pytest.mark.parametrize("address", [None, "10.0.0.1:6379"])
def test_using_ray_joins_the_address_or_starts_a_local_cluster(address, monkeypatch):
    calls: list[object] = []
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda where, **settings: calls.append((where, settings.get("num_cpus"))),
        shutdown=lambda: calls.append("shutdown"),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address:
        monkeypatch.setenv("RAY_ADDRESS", address)
    with using("ray", workers=3):
        pass
    assert calls == [(address or "local", None if address else 3), "shutdown"]


def test_killed_worker_process_raises_and_names_the_running_jobs():
    with using("processes", workers=2):
        with pytest.raises(ChildProcessError, match="job 2: 2"):
            run_jobs(kill_always, range(6))
        assert run_jobs(abs, [-1, -2]) == [1, 2]


@pytest.mark.slow
def test_killed_ray_worker_is_retried(ray_cluster, tmp_path):
    with using("ray", workers=2):
        assert run_jobs(kill_once, range(5), shared={"folder": tmp_path}) == list(
            range(5)
        )
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_job_that_kills_every_ray_worker_is_named(ray_cluster):
    with using("ray", workers=2), pytest.raises(ChildProcessError, match="job 2"):
        run_jobs(kill_always, range(4))


def test_hash_source_depends_on_the_module_of_the_function():
    assert hash_source() == hash_source(abs)
    assert hash_source(draw) == hash_source(add) != hash_source()


OTHER_CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from eigenoptions.parallel import run_jobs, using
import ray
ray.init(
    "local",
    num_cpus=1,
    include_dashboard=False,
    log_to_driver=False,
    logging_level="ERROR",
    runtime_env={"env_vars": {"PYTHONPATH": sys.argv[2]}},
)
with using("ray"):
    print(run_jobs(abs, [-1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("change", ["none", "code", "removed"])
def test_ray_worker_with_other_code_of_the_same_version_is_refused(change, tmp_path):
    """The driver and its workers import two copies of the library, of one version."""
    driver = tmp_path / "driver"
    worker = tmp_path / "worker"
    source = Path(eigenoptions.__file__).parent
    for folder in (driver, worker):
        shutil.copytree(source, folder / "eigenoptions")

    expected = ""
    if change == "code":
        changed = worker / "eigenoptions" / "mdp" / "__init__.py"
        changed.write_text(changed.read_text() + "\nEXTRA_STEPS = 1000\n")
        expected = "other code"
    if change == "removed":
        (worker / "eigenoptions" / "parallel.py").unlink()
        expected = "lacks this version"

    run = subprocess.run(
        [sys.executable, "-c", OTHER_CODE, str(driver), str(worker)],
        env={**os.environ, "PYTHONPATH": str(driver)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if change == "none":
        assert run.stdout.strip() == "[1]", run.stderr
    else:
        assert run.returncode == 1
        assert "RuntimeError: the Ray node" in run.stderr
        assert expected in run.stderr


INTERRUPTED = """
import sys
from tests.test_parallel import touch_and_sleep
from eigenoptions.parallel import run_jobs, using
with using(sys.argv[1], workers=2):
    run_jobs(touch_and_sleep, [sys.argv[2]] * 500)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_interrupted_program_leaves_no_worker(engine, tmp_path):
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, engine, str(tmp_path)],
        env=environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        # Each worker leaves a file with its number.
        deadline = time.monotonic() + 60
        pids = []
        while len(pids) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
            pids = [path.name for path in tmp_path.iterdir()]
        assert len(pids) == 2
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=120) != 0
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.2)
