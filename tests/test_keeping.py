"""Kept results: killed, torn, full, read-only or used twice, what is finished is there and nothing else is."""

from __future__ import annotations

import functools
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as npst
from scipy.sparse import csr_array

from eigenoptions.experiments import keeping
from eigenoptions.experiments import lock as locking
from eigenoptions.experiments.journal import Journal
from eigenoptions.experiments.keeping import Shelf, makers
from eigenoptions.experiments.lock import Lock
from eigenoptions.experiments.plain import decode, encode

ROOT = Path(__file__).parent.parent


def roll(job):
    """A job with all kinds of results; it notes that it ran."""
    with suppress(KeyError), open(os.environ["ROLLED"], "a") as file:
        file.write(f"{job['seed']}\n")
    time.sleep(job.get("sleep", 0))
    rng = np.random.default_rng(job["seed"])
    return {"curve": rng.random(job.get("size", 5)), "best": (rng.integers(9), float("nan")), "none": None}


def picky(job):
    if job % 2:
        raise ValueError(f"{job} is odd")
    return job


def scale(job, by, table=None):
    return job * by


def strange(job):
    return {"deep": [object()]} if job == 2 else job


def count(job):
    return [job, 0.5]


@pytest.fixture
def rolled(monkeypatch, tmp_path_factory):
    """Function that tells which seeds were rolled so far."""
    path = tmp_path_factory.mktemp("rolled") / "seeds"
    monkeypatch.setenv("ROLLED", str(path))
    return lambda: [int(line) for line in path.read_text().split()] if path.exists() else []


def flat(value):
    """Types and bytes of plain data."""
    if isinstance(value, dict):
        return [type(value), [(flat(k), flat(v)) for k, v in value.items()]]
    if isinstance(value, list | tuple):
        return [type(value), [flat(v) for v in value]]
    if isinstance(value, np.ndarray | np.generic):
        return [type(value), value.dtype.str, value.shape, value.flags.fnc, value.tobytes()]
    return [type(value), repr(value)]


def jobs(n, **more):
    return [{"seed": i, **more} for i in range(n)]


def journal_of(folder, name="roll"):
    (path,) = folder.glob(f"*.{name}-*.jobs")
    return path


# What comes back --------------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=9)
    | npst.arrays(
        st.one_of(
            npst.boolean_dtypes(),
            npst.integer_dtypes(endianness="?"),
            npst.floating_dtypes(),
            npst.complex_number_dtypes(),
            npst.unicode_string_dtypes(max_len=4),
            npst.datetime64_dtypes(),
        ),
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
plain = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=8) | st.integers() | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(plain)
def test_plain_data_come_back_as_they_were(value):
    tree, parts = encode(value)
    text = json.dumps(tree, allow_nan=False)
    assert flat(decode(json.loads(text), b"".join(parts))) == flat(value)


def test_numpy_scalars_orders_and_odd_keys_come_back_too():
    value = {
        "~tuple": np.float32(0.1),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "view": np.arange(10)[::3],
        "nan": np.array([np.nan, -np.inf, -0.0]),
        "zero": -0.0,
        "scalar": [np.int8(-3), np.bool_(True), np.str_("ü"), np.array(7, dtype=np.uint8)],
        3: {(1, 2): b"\0\xff"},
        "empty": [(), [], {}, np.zeros((0, 3), dtype=bool)],
    }
    tree, parts = encode(value)
    back = decode(json.loads(json.dumps(tree)), b"".join(parts))
    assert flat(back) == flat(value)
    back["f"][0, 0] = 5  # a copy, to do with as one likes


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        [np.array([None])],
        np.zeros(2, dtype=[("a", int)]),
        np.ma.masked_array([1], [True]),
        csr_array((2, 2)),
    ],
)
def test_what_is_not_plain_is_refused(value):
    with pytest.raises(ValueError, match="cannot be kept: give"):
        encode(value)


# What is done again, and what is not ------------------------------------------------------------------------


def test_what_is_finished_is_not_done_again(tmp_path, rolled):
    with Shelf(tmp_path / "new" / "shelf", note={"why": "test"}) as shelf:
        first = shelf.pmap(roll, jobs(3))
    with Shelf(tmp_path / "new" / "shelf") as shelf:
        assert rolled() == [0, 1, 2]
        more = shelf.pmap(roll, [*jobs(5)[::-1], {"seed": 9}, {"seed": 9}])
        assert rolled()[3:] == [4, 3, 9]
        assert shelf.spared > 0
    assert flat(more[2:5]) == flat(first[::-1])
    assert flat(first) == flat([roll(job) for job in jobs(3)])
    assert more[5] is not more[6]  # one may change a result without changing the other
    assert sorted(os.listdir(tmp_path / "new" / "shelf"))[0] == ".lock"
    assert b'{"about": {"function": "' in journal_of(tmp_path / "new" / "shelf").read_bytes()


def test_the_key_holds_settings_and_what_is_shared(tmp_path):
    @dataclass
    class Table:
        weights: object

    with Shelf(tmp_path) as shelf:
        assert shelf.pmap(scale, [1, 2], shared={"by": 10}) == [10, 20]
        assert shelf.pmap(scale, [1, 2], shared={"by": 7}) == [7, 14]
        a, b = np.eye(2), np.ones((2, 2))
        for table in (a, b, Table(a), Table(b), [csr_array(a)], [csr_array(b)]):
            before = journal_of(tmp_path, "scale").stat().st_size
            for grows in (True, False):
                assert shelf.pmap(scale, [3], shared={"by": 2, "table": table}) == [6]
                after = journal_of(tmp_path, "scale").stat().st_size
                assert (after > before) is grows
                before = after
        with pytest.raises(ValueError, match=r"builtins.object cannot be kept") as caught:
            shelf.pmap(scale, [1], shared={"by": 1, "table": object()})
        assert caught.value.__notes__[0].startswith("among what is shared")
        with pytest.raises(ValueError, match=r"builtins.set cannot be kept") as caught:
            shelf.pmap(scale, [1, {2}])
        assert caught.value.__notes__ == ["in job {2}"]


def test_jobs_may_be_told_apart_by_type(tmp_path):
    values = [1, 1.0, True, "1", [1], (1,), None, {"a": 1}, {"a": [1]}]
    with Shelf(tmp_path) as shelf:
        assert flat(shelf.pmap(count, values)) == flat([count(v) for v in values])
        assert flat(shelf.pmap(count, values[::-1])) == flat([count(v) for v in values[::-1]])
        shelf.pmap(count, [{"a": 1, "b": 2}])
        size = journal_of(tmp_path, "count").stat().st_size
        shelf.pmap(count, [{"b": 2, "a": 1}])  # the order of settings does not matter
        assert journal_of(tmp_path, "count").stat().st_size == size


def test_other_code_is_not_used_and_told_of(tmp_path, monkeypatch, caplog):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "users_module.py"
    found = []
    for factor in (2, 3, 2):
        module.write_text(f"from eigenoptions.mdp import maze\ndef times(job):\n    return job * {factor}\n")
        keeping.code.cache_clear()
        sys.modules.pop("users_module", None)
        import users_module

        with Shelf(tmp_path / "shelf") as shelf:
            found.append(shelf.pmap(users_module.times, [1, 2]))
    assert found == [[2, 4], [3, 6], [2, 4]]
    assert len(list((tmp_path / "shelf").glob("users_module.times-*.jobs"))) == 2
    notes = [r.getMessage() for r in caplog.records]
    assert len(notes) == 2
    assert "holds jobs made by other code (of users_module.times, for one): they are not used" in notes[0]
    assert "eigenoptions.mdp" in makers("users_module")
    sys.modules.pop("users_module")


def test_fresh_forgets_these_jobs_and_no_others(tmp_path, rolled):
    with Shelf(tmp_path) as shelf:
        first = shelf.pmap(roll, jobs(4))
        with pytest.raises(KeyboardInterrupt):
            shelf.pmap(roll, jobs(3), fresh=True, progress=interrupt_at(1))
    with Shelf(tmp_path) as shelf:  # what was forgotten stays so, what was done again is there
        again = shelf.pmap(roll, jobs(4))
    assert rolled() == [0, 1, 2, 3, 0, 1, 2]
    assert flat(again) == flat(first)
    with Shelf(tmp_path, fresh=True) as shelf:
        shelf.pmap(roll, jobs(1))
    assert rolled()[-1] == 0


def interrupt_at(n):
    def progress(p):
        if p.done == n:
            raise KeyboardInterrupt

    return progress


def test_a_journal_does_not_grow_for_ever(tmp_path):
    work = jobs(3, size=50_000)
    for _ in range(9):
        with Shelf(tmp_path) as shelf:
            shelf.pmap(roll, work, fresh=True)
    assert journal_of(tmp_path).stat().st_size < 4e6  # nine times 1.2 MB were written
    with Shelf(tmp_path) as shelf:
        assert flat(shelf.pmap(roll, work)) == flat([roll(job) for job in work])
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_jobs_that_raise_do_not_cost_the_others(tmp_path, engine):
    with Shelf(tmp_path) as shelf:
        with pytest.raises(ValueError, match="3 is odd") as caught:
            shelf.pmap(picky, [2, 3, 4, 6], engine)
        assert caught.value.__notes__ == ["in job 2 of 4: 3"]
        seen = []
        assert shelf.pmap(picky, [2, 4, 6], progress=seen.append) == [2, 4, 6]
        assert [(p.done, p.total, p.rate, p.remaining) for p in seen] == [(3, 3, 0.0, 0.0)]


def test_progress_counts_what_is_here_but_not_for_the_rate(tmp_path):
    seen = []
    with Shelf(tmp_path) as shelf:
        shelf.pmap(roll, jobs(3))
        shelf.pmap(roll, jobs(5), progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(3, 5), (4, 5), (5, 5)]
    assert seen[1].rate == pytest.approx(1 / seen[1].seconds)
    assert seen[1].remaining == pytest.approx(seen[1].seconds)


def test_functions_and_results_that_cannot_be_kept(tmp_path):
    with Shelf(tmp_path) as shelf:
        for function in (abs, lambda job: job, functools.partial(scale, by=2), math.sqrt):
            with pytest.raises(ValueError, match="cannot be kept: give a function of a module"):
                shelf.pmap(function, [1])
        with pytest.raises(ValueError, match=r"builtins.object cannot be kept: give arrays") as caught:
            shelf.pmap(strange, [1, 2, 3])
        assert caught.value.__notes__ == ["in the result of job 2"]
        assert shelf.kept(strange, 1) == 1
        assert shelf.kept(strange, 3) is None
        with pytest.raises(ValueError, match="engine must be one of"):
            shelf.pmap(strange, [1], "cloud")
    with pytest.raises(ValueError, match="is closed: use it inside its with block"):
        shelf.pmap(strange, [1])
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot make the folder .*: it is a file; give another folder"):
        Shelf(tmp_path / "file")


def test_ten_thousand_small_jobs_are_cheap(tmp_path):
    work = [{"seed": i, "maze": "four-rooms"} for i in range(10_000)]
    for _ in range(2):
        start = time.process_time()
        with Shelf(tmp_path) as shelf:
            found = shelf.pmap(count, work)
        assert time.process_time() - start < 8  # 0.8 s on an idle machine
    assert found == [count(job) for job in work]
    assert len(os.listdir(tmp_path)) == 2
    assert journal_of(tmp_path, "count").stat().st_size < 3e6


# Torn and damaged -------------------------------------------------------------------------------------------


def test_a_journal_cut_anywhere_gives_what_is_whole_and_goes_on(tmp_path, caplog):
    """Whatever a killed writer or a power cut left: the first records are there, the rest is done again."""
    whole = tmp_path / "whole"
    with Shelf(whole) as shelf:
        first = shelf.pmap(roll, jobs(3, size=2))
    raw, name = journal_of(whole).read_bytes(), journal_of(whole).name
    with Journal(journal_of(whole)) as journal:
        ends = [place[3] for place in journal.places]
    near = {end + i for end in ends[:-1] for i in (-1, 0, 1, 2, 9, 20)}
    for size in sorted(near | {*range(0, 40, 3), *range(40, len(raw), 17), len(raw) - 1}):
        folder = tmp_path / "cut"
        folder.mkdir()
        (folder / name).write_bytes(raw[:size])
        seen = []
        with Shelf(folder) as shelf:
            assert flat(shelf.pmap(roll, jobs(3, size=2), progress=seen.append)) == flat(first)
        assert seen[0].done == max(0, sum(end <= size for end in ends) - 1)  # the first record is no job
        with Journal(folder / name) as journal:
            assert journal.lost == 0
        shutil.rmtree(folder)
    assert "are torn or damaged: the jobs they held are done again" in caplog.text


def test_no_flipped_bit_gives_a_wrong_result(tmp_path):
    with Shelf(tmp_path) as shelf:
        first = flat(shelf.pmap(roll, jobs(2, size=2)))
    path = journal_of(tmp_path)
    raw = path.read_bytes()
    done_again = 0
    for at in range(len(b"eigenoptions journal 1"), len(raw), 3):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
        seen = []
        with Shelf(tmp_path) as shelf:
            assert flat(shelf.pmap(roll, jobs(2, size=2), progress=seen.append)) == first
        done_again += seen[-1].total - seen[0].done
        with Journal(path) as journal:
            assert journal.lost == 0  # told once, then taken away
        assert seen[0].done >= 1  # damage costs the record it is in
    assert done_again > 150


def test_data_that_look_like_records_are_no_records(tmp_path):
    with Journal(tmp_path / "a") as journal:
        journal.append({"inner": True}, [b"x"])
        inner = journal.path.read_bytes()[len(b"eigenoptions journal 1") :]
    with Journal(tmp_path / "b") as journal:
        journal.append({"outer": 1}, [inner, b"\nrecord 9999999 1 " + b"0" * 32 + b"\n"])
        journal.append({"outer": 2})
    with Journal(tmp_path / "b") as journal:
        assert [journal.head(place) for place in journal.places] == [{"outer": 1}, {"outer": 2}]
        assert journal.read(journal.places[0])[1].startswith(inner)


# The lock ---------------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from eigenoptions.experiments.keeping import Shelf
with Shelf(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
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


def test_a_second_run_is_told_who_uses_the_folder(tmp_path):
    with driver(HOLD, tmp_path) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError) as caught:
            Shelf(tmp_path)
        message = str(caught.value)
        assert message.startswith(
            f"{tmp_path} is used by process {process.pid} on {os.uname().nodename} since 20"
        )
        assert message.endswith(": wait for it, stop it, or give another folder")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with Shelf(tmp_path):  # a killed run leaves no lock
            pass
    with Shelf(tmp_path):
        pass


def test_without_locks_of_the_system_a_file_stands_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "fcntl", None)
    first = Lock(tmp_path)
    with pytest.raises(
        BlockingIOError, match=f"is used by process {os.getpid()} .*; if that run is gone, delete"
    ):
        Lock(tmp_path)
    first.release()
    assert not (tmp_path / ".held").exists()
    Lock(tmp_path).release()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for host, taken in ((os.uname().nodename, True), ("elsewhere", False)):
        (tmp_path / ".held").touch()
        who = {"pid": gone.pid, "host": host, "since": "yesterday"}
        (tmp_path / ".lock").write_text(json.dumps(who))
        if taken:
            Lock(tmp_path).release()
        else:
            with pytest.raises(BlockingIOError, match="on elsewhere since yesterday"):
                Lock(tmp_path)


# Faults -----------------------------------------------------------------------------------------------------

RUN = """
import sys
from tests.test_keeping import jobs, roll
from eigenoptions.experiments.keeping import Shelf
with Shelf(sys.argv[1]) as shelf:
    shelf.pmap(roll, jobs(12, sleep=0.1), "processes", workers=2, progress=lambda p: print(p.done, flush=True))
"""


def test_a_killed_driver_goes_on_with_what_is_missing(tmp_path, rolled):
    folder = tmp_path / "shelf"
    with driver(RUN, folder) as process:
        while process.stdout.readline() != "4\n":
            assert process.poll() is None, process.stderr.read()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    work = jobs(12, sleep=0.1)
    seen = []
    with Shelf(folder) as shelf:
        found = shelf.pmap(roll, work, progress=seen.append)
    assert 4 <= seen[0].done < 12
    assert flat(found) == flat([roll({"seed": i}) for i in range(12)])
    with Shelf(tmp_path / "undisturbed") as shelf:
        assert flat(shelf.pmap(roll, work)) == flat(found)


LIMITED = """
import resource, sys
from tests.test_keeping import jobs, roll
from eigenoptions.experiments.keeping import Shelf
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with Shelf(sys.argv[1]) as shelf:
    try:
        shelf.pmap(roll, jobs(9, size=2000))
    except OSError as error:
        print(error)
"""


def test_a_full_disk_leaves_what_is_finished(tmp_path, rolled):
    """A limit on file sizes stands for a full disk."""
    with driver(LIMITED, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert err == ""
    assert out == (
        f"cannot write {journal_of(tmp_path)}: File too large; the 6 jobs finished before are kept there: "
        "make room or make it writable, and start again\n"
    )
    assert rolled() == [*range(7)]
    with Shelf(tmp_path) as shelf:
        found = shelf.pmap(roll, jobs(9, size=2000))
    assert rolled() == [*range(7), 6, 7, 8]
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
            Shelf(disk / "shelf") as shelf,
            pytest.raises(OSError, match="No space left on device; the 6 jobs"),
        ):
            shelf.pmap(roll, jobs(9, size=10_000))
        with Shelf(disk / "shelf") as shelf:  # still full: what is there can be used
            assert flat(shelf.pmap(roll, jobs(6, size=10_000))) == flat(
                [roll(job) for job in jobs(6, size=10_000)]
            )
        subprocess.run(["mount", "-o", "remount,size=2m", str(disk)], check=True)
        with Shelf(disk / "shelf") as shelf:
            before = len(rolled())
            shelf.pmap(roll, jobs(9, size=10_000))
            assert rolled()[before:] == [6, 7, 8]


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
    folder = tmp_path / "shelf"
    with Shelf(folder) as shelf:
        first = shelf.pmap(roll, jobs(3))
    with read_only(folder):
        with Shelf(folder) as shelf:
            assert flat(shelf.pmap(roll, jobs(3))) == flat(first)
            with pytest.raises(
                PermissionError, match="it cannot be written, and 2 of 5 jobs are missing; make"
            ):
                shelf.pmap(roll, jobs(5))
            with pytest.raises(PermissionError, match="cannot be written"):
                shelf.pmap(roll, jobs(3), fresh=True)
        assert "what it holds is used, and nothing can be added" in caplog.text
        with pytest.raises(PermissionError, match="cannot write into"):
            Shelf(folder, fresh=True)
        with pytest.raises(OSError, match="cannot make the folder"):
            Shelf(folder / "deep")
    assert rolled() == [0, 1, 2]
    with Shelf(folder) as shelf:
        shelf.pmap(roll, jobs(5))
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
