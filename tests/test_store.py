"""The store of finished jobs: whether a run is killed, the disk full, the file damaged or the folder used twice."""

from __future__ import annotations

import functools
import math
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as npst
from scipy.sparse import csr_array

from reproduction import store as storing
from reproduction.store import Store, decode, encode

ROOT = Path(__file__).parent.parent


def roll(job):
    """A job with all kinds of results; it notes that it ran."""
    with suppress(KeyError), open(os.environ["ROLLED"], "a") as file:
        file.write(f"{job['seed']}\n")
    while job["seed"] >= 6 and os.path.exists(os.environ.get("HOLD", "")):
        time.sleep(0.1)
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
    """Function that returns the seeds rolled so far."""
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


def stored(folder):
    """Number of jobs in a store that nobody uses."""
    with closing(sqlite3.connect(folder / "jobs.sqlite")) as database:
        return database.execute("SELECT count(*) FROM jobs").fetchone()[0]


# What comes back --------------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
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
    assert flat(decode(encode(value))) == flat(value)


def test_numpy_scalars_orders_and_odd_keys_come_back_too():
    value = {
        "~tuple": np.float32(0.1),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "view": np.arange(10)[::3],
        "nan": np.array([np.nan, -np.inf, -0.0]),
        "zero": -0.0,
        "scalar": [np.int8(-3), np.bool_(True), np.str_("ü"), np.array(7, dtype=np.uint8)],
        3: {(1, 2): "line\nbreak"},
        "empty": [(), [], {}, np.zeros((0, 3), dtype=bool)],
    }
    back = decode(encode(value))
    assert flat(back) == flat(value)
    # A copy that the caller may change.
    back["f"][0, 0] = 5


@pytest.mark.parametrize(
    "value",
    [
        object(),
        b"bytes",
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
    with Store(tmp_path / "new" / "jobs") as store:
        first = store.pmap(roll, jobs(3))
    with Store(tmp_path / "new" / "jobs") as store:
        assert rolled() == [0, 1, 2]
        more = store.pmap(roll, [*jobs(5)[::-1], {"seed": 9}, {"seed": 9}])
        assert rolled()[3:] == [4, 3, 9]
        assert store.seconds_saved > 0
    assert flat(more[2:5]) == flat(first[::-1])
    assert flat(first) == flat([roll(job) for job in jobs(3)])
    assert more[5] is not more[6]  # one may change a result without changing the other
    assert os.listdir(tmp_path / "new" / "jobs") == ["jobs.sqlite"]


def test_the_key_holds_settings_and_what_is_shared(tmp_path):
    @dataclass
    class Table:
        weights: object

    with Store(tmp_path) as store:
        assert store.pmap(scale, [1, 2], shared={"by": 10}) == [10, 20]
        assert store.pmap(scale, [1, 2], shared={"by": 7}) == [7, 14]
        a, b = np.eye(2), np.ones((2, 2))
        computed = []
        for table in (a, b, Table(a), Table(b), [csr_array(a)], [csr_array(b)], (csr_array(b),)) * 2:
            given = {"by": 2, "table": table}
            assert store.pmap(scale, [3], shared=given, arrived=lambda i, r: computed.append(r)) == [6]
        assert len(computed) == 7
        with pytest.raises(ValueError, match=r"builtins.object cannot be kept"):
            store.pmap(scale, [1], shared={"by": 1, "table": object()})
        with pytest.raises(ValueError, match=r"builtins.set cannot be kept") as caught:
            store.pmap(scale, [1, {2}])
        assert caught.value.__notes__ == ["in job {2}"]


def test_jobs_may_be_told_apart_by_type(tmp_path):
    values = [1, 1.0, True, "1", [1], (1,), None, {"a": 1}, {"a": [1]}]
    with Store(tmp_path) as store:
        assert flat(store.pmap(count, values)) == flat([count(v) for v in values])
        assert flat(store.pmap(count, values[::-1])) == flat([count(v) for v in values[::-1]])
        store.pmap(count, [{"a": 1, "b": 2}])
        store.pmap(count, [{"b": 2, "a": 1}])  # the order of settings does not matter
    assert stored(tmp_path) == len(values) + 1


def test_results_of_other_code_are_not_used_and_a_note_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "users_module.py"
    found = []
    for factor in (2, 3, 2):
        module.write_text(f"def times(job):\n    return job * {factor}\n")
        storing._code.cache_clear()
        sys.modules.pop("users_module", None)
        import users_module

        with Store(tmp_path / "jobs") as store:
            found.append(store.pmap(users_module.times, [1, 2]))
    assert found == [[2, 4], [3, 6], [2, 4]]
    assert stored(tmp_path / "jobs") == 4
    notes = [r.getMessage() for r in caplog.records]
    assert len(notes) == 2
    assert (
        "jobs of another version of the code (of users_module.times, for one), which are not used" in notes[0]
    )
    sys.modules.pop("users_module")


def test_the_version_of_the_code_covers_the_library_but_not_its_faces(tmp_path, monkeypatch):
    def version():
        storing._code.cache_clear()
        return storing._code("eigenoptions.mdp")

    copy = tmp_path / "eigenoptions"
    shutil.copytree(Path(storing.__file__).parents[1], copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(storing, "files", lambda name: copy)
    before = version()
    for face in ("cli", "studio", "plots"):
        (copy / face / "__init__.py").write_text("# changed")
    assert version() == before
    for inner in ("_kernels/sweep.py", "mdp/mazes/i-maze.txt", "experiments/paper/jobs.py"):
        text = (copy / inner).read_text()
        (copy / inner).write_text(text + "\n")
        assert version() != before
        (copy / inner).write_text(text)
    assert version() == before
    storing._code.cache_clear()


def test_fresh_forgets_these_jobs_and_no_others(tmp_path, rolled):
    with Store(tmp_path) as store:
        first = store.pmap(roll, jobs(4))
        with pytest.raises(KeyboardInterrupt):
            store.pmap(roll, jobs(3), fresh=True, progress=interrupt_at(1))
    with Store(tmp_path) as store:  # what was forgotten stays so, what was done again is there
        again = store.pmap(roll, jobs(4))
    assert rolled() == [0, 1, 2, 3, 0, 1, 2]
    assert flat(again) == flat(first)
    with Store(tmp_path, fresh=True) as store:
        store.pmap(roll, jobs(1))
    assert rolled()[-1] == 0


def interrupt_at(n):
    def progress(done, total):
        if done == n:
            raise KeyboardInterrupt

    return progress


def test_the_file_does_not_grow_for_ever(tmp_path):
    work = jobs(3, size=50_000)
    for _ in range(9):
        with Store(tmp_path) as store:
            store.pmap(roll, work, fresh=True)
    assert (tmp_path / "jobs.sqlite").stat().st_size < 4e6  # nine times 1.2 MB were written
    with Store(tmp_path) as store:
        assert flat(store.pmap(roll, work)) == flat([roll(job) for job in work])


def test_a_job_that_raises_does_not_cost_those_before(tmp_path):
    with Store(tmp_path) as store:
        with pytest.raises(ValueError, match="3 is odd"):
            store.pmap(picky, [2, 4, 6, 3])
        seen = []
        assert store.pmap(picky, [2, 4, 6], progress=lambda *p: seen.append(p)) == [2, 4, 6]
        assert seen == [(3, 3)]


def test_progress_counts_what_is_here(tmp_path):
    seen = []
    with Store(tmp_path) as store:
        store.pmap(roll, jobs(3))
        store.pmap(roll, jobs(5), progress=lambda *p: seen.append(p))
    assert seen == [(3, 5), (4, 5), (5, 5)]


def test_functions_and_results_that_cannot_be_kept(tmp_path):
    with Store(tmp_path) as store:
        for function in (abs, lambda job: job, functools.partial(scale, by=2), math.sqrt):
            with pytest.raises(ValueError, match="cannot be kept: give a function of a module"):
                store.pmap(function, [1])
        with pytest.raises(ValueError, match=r"builtins.object cannot be kept: give arrays") as caught:
            store.pmap(strange, [1, 2, 3])
        assert caught.value.__notes__ == ["in the result of job 2"]
        assert store.get(strange, 1) == 1
        assert store.get(strange, 3) is None
    with pytest.raises(ValueError, match="is closed: use it inside its with block"):
        store.pmap(strange, [1])
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot create the folder .*: it is a file; give another folder"):
        Store(tmp_path / "file")


def test_many_small_jobs_are_one_small_file(tmp_path):
    work = [{"seed": i, "maze": "four-rooms"} for i in range(3_000)]
    for _ in range(2):
        with Store(tmp_path) as store:
            found = store.pmap(count, work)
    assert found == [count(job) for job in work]
    assert os.listdir(tmp_path) == ["jobs.sqlite"]
    assert (tmp_path / "jobs.sqlite").stat().st_size < 1.5e6


# Damage -----------------------------------------------------------------------------------------------------


def outcome_of(folder, work):
    """Results of a store and how many were computed again, or the message with which it is refused."""
    again = []
    try:
        with Store(folder) as store:
            return flat(store.pmap(roll, work, arrived=lambda i, result: again.append(i))), len(again)
    except (ValueError, OSError) as error:
        return str(error), -1


def test_no_damage_gives_a_wrong_result(tmp_path, caplog):
    """Flipped bits and files cut short: the right results, some computed again, or one clear message."""
    work = jobs(3, size=600)
    with Store(tmp_path) as store:
        first = flat(store.pmap(roll, work))
    path = tmp_path / "jobs.sqlite"
    raw = path.read_bytes()
    flipped = [raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :] for at in range(0, len(raw), 97)]
    cut = [raw[:size] for size in (1, 50, 100, 4096, 5000, len(raw) - 4096, len(raw) - 1)]
    computed, refused = 0, 0
    for bad in flipped + cut:
        path.write_bytes(bad)
        found, again = outcome_of(tmp_path, work)
        if again >= 0:
            assert found == first
            computed += again
        else:
            refused += 1
            assert f"{path} " in found
            assert found.endswith(("install the version that wrote it", "and start again"))
            with Store(tmp_path, fresh=True) as store:
                assert flat(store.pmap(roll, work)) == first
    assert computed > 50
    assert refused > 0
    assert "jobs in " in caplog.text


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "jobs.sqlite").write_text("the notes of somebody else, for whom they matter")
    with pytest.raises(ValueError, match=r"jobs.sqlite is damaged .*: start over \(--fresh\), give another"):
        Store(tmp_path)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE jobs (name TEXT)")
        database.execute("CREATE TABLE other (name TEXT)")
        database.execute("PRAGMA user_version = 7")
    (tmp_path / "other.sqlite").rename(tmp_path / "jobs.sqlite")
    with pytest.raises(ValueError, match="has format 7, this version reads 1: start over"):
        Store(tmp_path)
    with Store(tmp_path, fresh=True) as store:
        assert store.pmap(count, [1]) == [[1, 0.5]]
