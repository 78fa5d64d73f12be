"""Faults of a store: two processes, killed ones, disks that are full, and folders that cannot be written."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from reproduction.store import Store
from tests.test_store import ROOT, flat, jobs, roll


@pytest.fixture
def rolled(monkeypatch, tmp_path_factory):
    """Function that returns the seeds rolled so far."""
    path = tmp_path_factory.mktemp("rolled") / "seeds"
    monkeypatch.setenv("ROLLED", str(path))
    return lambda: [int(line) for line in path.read_text().split()] if path.exists() else []


HOLD = """
import sys, time
from reproduction.store import Store
with Store(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def driver(code, *args, **environment):
    """A process that runs some code, killed at the end if it still runs."""
    command = [sys.executable, "-B", "-c", code, *map(str, args)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **environment}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_second_run_is_refused_and_the_message_names_the_first(tmp_path):
    with driver(HOLD, tmp_path) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError) as caught:
            Store(tmp_path)
        message = str(caught.value)
        assert message.startswith(
            f"{tmp_path} is used by process {process.pid} on {os.uname().nodename} since 20"
        )
        assert message.endswith(": wait for it, stop it, or give another folder")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with Store(tmp_path):  # a killed run leaves no lock
            pass
    with Store(tmp_path):
        pass


# Faults -----------------------------------------------------------------------------------------------------

RUN = """
import sys
from tests.test_store import jobs, roll
from eigenoptions.parallel import using
from reproduction.store import Store
with Store(sys.argv[1]) as store, using("processes", workers=2):
    store.pmap(roll, jobs(12), progress=lambda done, total: print(done, flush=True))
"""


def test_a_killed_driver_goes_on_with_what_is_missing(tmp_path, rolled):
    folder = tmp_path / "jobs"
    # The driver is killed before the later jobs end, however late it happens.
    hold = tmp_path / "hold"
    hold.touch()
    with driver(RUN, folder, HOLD=str(hold)) as process:
        while process.stdout.readline() != "4\n":
            assert process.poll() is None, process.stderr.read()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    hold.unlink()
    work = jobs(12)
    seen = []
    with Store(folder) as store:
        found = store.pmap(roll, work, progress=lambda *p: seen.append(p))
    assert 4 <= seen[0][0] <= 6
    assert flat(found) == flat([roll({"seed": i}) for i in range(12)])
    with Store(tmp_path / "undisturbed") as store:
        assert flat(store.pmap(roll, work)) == flat(found)


LIMITED = """
import resource, sys
from tests.test_store import jobs, roll
from reproduction.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with Store(sys.argv[1]) as store:
    try:
        store.pmap(roll, jobs(9, size=2000))
    except OSError as error:
        print(error)
"""


def test_a_full_disk_leaves_what_is_finished(tmp_path, rolled):
    """A limit on file sizes stands for a full disk."""
    with driver(LIMITED, tmp_path) as process:
        out, err = process.communicate(timeout=300)
    assert err == ""
    assert out == (
        f"cannot read or write {tmp_path / 'jobs.sqlite'}: disk I/O error; the jobs finished before are kept there: "
        "make room or make it writable, and start again\n"
    )
    done = len(rolled()) - 1
    assert 2 < done < 7
    with Store(tmp_path) as store:
        found = store.pmap(roll, jobs(9, size=2000))
    assert rolled()[done + 1 :] == [*range(done, 9)]
    assert flat(found) == flat([roll(job) for job in jobs(9, size=2000)])


@contextmanager
def mounted(folder, *options):
    """A small file system in memory, where this user may mount one."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(["size=512k", *options]), "eigenoptions-test", str(folder)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("this user may not mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(not shutil.which("mount"), reason="no mount command")
def test_a_disk_that_is_really_full(tmp_path, rolled):
    disk = tmp_path / "disk"
    with mounted(disk):
        with (
            Store(disk / "jobs") as store,
            pytest.raises(OSError, match="database or disk is full; the jobs finished before are kept there"),
        ):
            store.pmap(roll, jobs(9, size=10_000))
        done = len(rolled()) - 1
        assert 2 < done < 7
        with Store(disk / "jobs") as store:  # still full: what is there can be used
            found = store.pmap(roll, jobs(done, size=10_000))
        assert len(rolled()) == done + 1
        assert flat(found) == flat([roll(job) for job in jobs(done, size=10_000)])
        subprocess.run(["mount", "-o", "remount,size=2m", str(disk)], check=True)
        with Store(disk / "jobs") as store:
            before = len(rolled())
            store.pmap(roll, jobs(9, size=10_000))
            assert rolled()[before:] == [*range(done, 9)]


@contextmanager
def read_only(folder):
    """Make a folder read-only: by its mode, or for root by the file system."""
    if os.geteuid():
        inside = [folder, *folder.rglob("*")]
        for path in inside:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            yield
        finally:
            for path in inside:
                path.chmod(0o755 if path.is_dir() else 0o644)
        return
    if subprocess.run(
        ["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False
    ).returncode:
        pytest.skip("root writes everywhere, and may not mount here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_folder_serves_what_it_holds(tmp_path, rolled, caplog):
    folder = tmp_path / "jobs"
    with Store(folder) as store:
        first = store.pmap(roll, jobs(3))
    with read_only(folder):
        with Store(folder) as store:
            assert flat(store.pmap(roll, jobs(3))) == flat(first)
            with pytest.raises(
                PermissionError, match="it cannot be written, and 2 of 5 jobs are missing; make"
            ):
                store.pmap(roll, jobs(5))
            with pytest.raises(PermissionError, match="cannot be written"):
                store.pmap(roll, jobs(3), fresh=True)
        assert "its results are used, and none can be added" in caplog.text
        with pytest.raises(PermissionError, match="cannot write into"):
            Store(folder, fresh=True)
        with pytest.raises(OSError, match="cannot create the folder"):
            Store(folder / "deep")
        with Store(folder.parent / "jobs") as store:
            assert store.get(roll, {"seed": 7}) is None
    assert rolled() == [0, 1, 2]
    with Store(folder) as store:
        store.pmap(roll, jobs(5))
    assert rolled() == [0, 1, 2, 3, 4]


def test_the_command_tells_of_a_full_or_read_only_folder_in_one_line(tmp_path, capsys):
    from eigenoptions.cli import main

    folder = tmp_path / "report"
    command = ["reproduce", "--settings", "quick", "--only", "figure1", "--engine", "serial"]
    assert main([*command, "--out", str(folder)]) == 0
    capsys.readouterr()
    with read_only(folder):
        assert main([*command, "--out", str(folder)]) == 2
        notes, error = capsys.readouterr().err.splitlines()
        assert notes.startswith(f"note: cannot write into {folder / 'jobs'}: ")
        assert error.startswith(f"error: cannot write {folder / 'data'}")
        assert f"; all results are kept in {folder / 'jobs'}: start again when" in error
        assert main([*command, "--fresh", "--out", str(folder)]) == 2
        assert "cannot keep results in" in capsys.readouterr().err.splitlines()[-1]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, hard))  # the journal fits, the page does not
    try:
        assert main([*command, "--out", str(folder)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (error,) = capsys.readouterr().err.splitlines()
    assert "File too large" in error
    assert f"; all results are kept in {folder / 'jobs'}: start again when" in error
    assert not list(folder.rglob(".*.tmp"))
    assert main([*command, "--out", str(folder)]) == 0
