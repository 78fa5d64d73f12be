"""Files of options: round trips, same bytes, damaged and forged files, safe writes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

import eigenoptions as eo
from eigenoptions.options import OptionSet, Purpose, files
from eigenoptions.options.files import read_arrays, write_arrays
from eigenoptions.samples.features import Raw
from tests.tables import make_slippery


@pytest.fixture(scope="module")
def options() -> OptionSet:
    return eo.discover(eo.maze("i-maze"), n_options=4)


@pytest.fixture
def file(options, tmp_path):
    path = tmp_path / "skills.safetensors"
    options.save(path)
    return path


def contents(options):
    """All that a set holds, as bytes and plain values."""
    mdp = options.mdp
    found = {}
    for name in ("policy", "value", "eigenvalues"):
        array = getattr(options, name)
        found[name] = (array.dtype.str, array.shape, array.tobytes())
    for name in ("labels", "indices", "signs", "goals", "provenance"):
        found[name] = getattr(options, name)
    for name in ("fingerprint", "start", "goal", "name", "legend"):
        found[f"mdp.{name}"] = getattr(mdp, name)
    if mdp.coords is not None:
        found["mdp.coords"] = mdp.coords.tobytes()
    return found


# Round trips


def test_loaded_options_are_the_saved_ones(options, file):
    loaded = eo.load_options(file)
    checked = eo.load_options(str(file), mdp=eo.maze("i-maze"))
    assert contents(loaded) == contents(options)
    assert contents(checked) == contents(options)
    assert loaded.purposes[0].potential is None
    time = eo.diffusion_time(loaded.mdp, loaded)
    assert time == pytest.approx(eo.diffusion_time(options.mdp, options), rel=1e-12)
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize(
    "options",
    [
        eo.solve(eo.maze("S.G"), []),
        OptionSet(
            eo.MDP(np.ones((3, 130, 3)) / 3),
            np.array([[0, 129, -1]], dtype=">i4"),
            [[1, 2, 0]],
        ),
        OptionSet(
            eo.maze(".."),
            [[1, 0]],
            purposes=[Purpose([0, 1], "ü→\n'\"<b>", goal=np.int8(1))],
        ),
        OptionSet(
            eo.maze("S.G"),
            [[1, 1, -1]],
            provenance={"deep": {"list": [1, None, "x", np.int64(3)]}},
        ),
        OptionSet(
            eo.MDP(np.eye(2)[:, None], reward=[1.0, 2.0], legend="stay"), [[0, -1]]
        ),
        eo.discover(make_slippery(eo.maze("i-maze")), 2),
    ],
    ids=repr,
)
def test_unusual_options_survive_a_round_trip(options, tmp_path):
    options.save(tmp_path / "a")
    loaded = eo.load_options(tmp_path / "a")
    # The byte order of the policy is that of the machine now.
    np.testing.assert_array_equal(loaded.policy, options.policy)
    assert contents(loaded) | {"policy": None} == contents(options) | {"policy": None}
    np.testing.assert_array_equal(loaded.mean_length, options.mean_length)
    assert (loaded.mdp.reward is None) == (options.mdp.reward is None)

    # A file is written over itself.
    options.save(tmp_path / "a")
    assert len(eo.load_options(tmp_path / "a")) == len(options)


@pytest.mark.parametrize(
    "only", [0, -1, np.int64(2), slice(1, 3), slice(None, None, -2), [2, 0, 2], []]
)
def test_only_selects_as_an_index_does(options, file, only):
    index = [only] if isinstance(only, int | np.integer) else only
    assert contents(eo.load_options(file, only=only)) == contents(options[index])


def test_only_out_of_range_is_refused(file):
    with pytest.raises(IndexError):
        eo.load_options(file, only=4)


def test_file_of_another_state_space_is_refused(file):
    same_size = eo.maze("...\n" + ".##\n" * 13 + "...")
    assert same_size.n_states == 19
    for mdp in (eo.maze("four-rooms"), same_size):
        with pytest.raises(ValueError, match="another state space"):
            eo.load_options(file, mdp)


def test_two_processes_write_the_same_bytes(options, file, tmp_path):
    code = (
        "import sys, eigenoptions as eo; "
        "eo.discover(eo.maze('i-maze'), n_options=4).save(sys.argv[1])"
    )
    other = tmp_path / "other"
    command = [sys.executable, "-c", code, str(other)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert other.read_bytes() == file.read_bytes()


# Damaged and forged files


def test_flipped_bit_never_gets_through(tmp_path):
    """Every byte of a small file, one bit at a time.

    Either an error in one line, or the same options (padding).
    """
    path = tmp_path / "small"
    options = OptionSet(eo.maze(".."), np.array([[1, -1]], dtype=np.int8), [[0.5, 0]])
    options.save(path)
    raw = path.read_bytes()
    messages = []
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 32]) + raw[at + 1 :])
        try:
            assert contents(eo.load_options(path)) == contents(options)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 0.9 * len(raw)
    assert not any("\n" in message for message in messages)


def test_shorter_and_longer_files_are_refused(file):
    raw = file.read_bytes()
    for data in (
        raw[:0],
        raw[:7],
        raw[:60],
        raw[: len(raw) // 2],
        raw[:-1],
        raw + b"\0",
        b"PK\x03\x04",
    ):
        file.write_bytes(data)
        with pytest.raises(ValueError, match="damaged"):
            eo.load_options(file)


def test_files_of_other_programs_kinds_and_versions_are_refused(
    options, tmp_path, monkeypatch
):
    path = tmp_path / "other"
    path.write_bytes(save({"policy": options.policy}))
    with pytest.raises(ValueError, match="not a file of eigenoptions"):
        eo.load_options(path)
    write_arrays(path, "results", {}, {"policy": options.policy})
    with pytest.raises(ValueError, match="results"):
        eo.load_options(path)
    monkeypatch.setattr("eigenoptions.options.files._FORMAT", 99)
    options.save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 99"):
        eo.load_options(path)
    with pytest.raises(FileNotFoundError):
        eo.load_options(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "header",
    [
        *({name: None} for name in ("purposes", "provenance", "mdp", "state_space")),
        *({"purposes": bad} for bad in (5, [{}] * 3, "text")),
        *({"provenance": bad} for bad in (3, "text", [1])),
        *(
            {"mdp": bad}
            for bad in (
                [],
                {"start": 99, "goal": None, "name": "", "legend": ""},
                {"legend": 5},
            )
        ),
        {"state_space": "0" * 32},
    ],
    ids=lambda header: repr(header)[:30],
)
def test_forged_header_gives_one_value_error(file, header):
    honest, arrays = read_arrays(file)
    write_arrays(file, "options", {**honest, **header}, arrays)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        eo.load_options(file)


@pytest.mark.parametrize(
    "forged",
    [
        {"policy": np.full((4, 19), 9, dtype=np.int8)},
        {"policy": np.zeros((4, 19))},
        {"policy": np.zeros(4, dtype=np.int8)},
        {"policy": np.zeros((0, 10**9), dtype=np.int8)},
        {"value": np.zeros((4, 20))},
        {"mdp.coords": np.zeros((2, 9))},
        {"mdp.coords": np.full((19, 2), np.iinfo(np.int64).min)},
        {"transition.indices": np.full(76, 10**6, dtype=np.int32)},
        {"transition.indices": np.full(76, -1, dtype=np.int32)},
        {"transition.indptr": np.arange(77, dtype=np.int32)[::-1]},
        {"transition.data": np.full(76, np.nan)},
        {"transition.data": np.full(76, 0.5)},
        {"transition.data": np.ones(3)},
    ],
    ids=lambda arrays: next(iter(arrays)),
)
def test_forged_arrays_give_one_value_error(file, forged):
    header, arrays = read_arrays(file)
    write_arrays(file, "options", header, {**arrays, **forged})
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        eo.load_options(file)


def test_file_of_a_table_takes_no_features(file):
    with pytest.raises(ValueError, match="leave out features"):
        eo.load_options(file, features=Raw())


def test_linear_file_takes_no_mdp(tmp_path, i_maze):
    eo.LinearOptionSet([Purpose([1.0])], Raw(), 3).save(tmp_path / "linear")
    with pytest.raises(ValueError, match="feature space"):
        eo.load_options(tmp_path / "linear", i_maze)


# Writing


def test_write_to_an_impossible_place_leaves_nothing(options, tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing/a", "file/a", "folder", "pipe", "n" * 300):
        with pytest.raises(OSError, match="cannot write"):
            options.save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "kept"


def test_write_on_a_full_disk_leaves_the_old_file(options, file):
    """A limit on file sizes stands for a full disk."""
    code = (
        "import resource, signal, sys\n"
        "from eigenoptions.options.files import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    write_atomically(sys.argv[1], b'x' * 10_000)\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-B", "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cannot write")
    assert contents(eo.load_options(file)) == contents(options)
    assert os.listdir(file.parent) == [file.name]


def test_write_follows_links_and_keeps_permissions(options, tmp_path):
    link = tmp_path / "link"
    target = tmp_path / "target"
    link.symlink_to("target")
    options.save(link)
    assert link.is_symlink()
    target.chmod(0o600)
    options.save(link)
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(eo.load_options(link)) == 4


def test_write_of_what_json_cannot_hold_is_refused(options, tmp_path):
    for value in ({1, 2}, float("nan")):
        with pytest.raises((TypeError, ValueError)):
            replace(options, provenance={"a": value}).save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_arrays_of_a_file_are_plain_safetensors(options, file):
    arrays = load(file.read_bytes())
    np.testing.assert_array_equal(arrays["policy"], options.policy)
    np.testing.assert_array_equal(
        arrays["transition.indices"], options.mdp.transition.indices
    )


def test_weights_and_states_are_saved_and_tell_tables_apart(tmp_path):
    edges = [("a", "b", 5.0), ("b", "c", 1.0), ("c", "d", 9.0), ("d", "a", 0.1)]
    mdp = eo.from_graph(edges)
    options = eo.discover(mdp, 2)
    path = tmp_path / "graph.safetensors"
    options.save(path)

    loaded = eo.load_options(path, mdp)
    assert loaded.mdp.states == ("a", "b", "c", "d")
    assert (loaded.mdp.weights != mdp.weights).nnz == 0
    again = eo.discover(loaded.mdp, 2)
    np.testing.assert_allclose(again.eigenvalues, options.eigenvalues)
    assert (again.policy == options.policy).all()

    # The same edges with other weights, and with other names.
    for other in (
        [("a", "b", 5.0), ("b", "c", 2.0), ("c", "d", 9.0), ("d", "a", 0.1)],
        [("e", "b", 5.0), ("b", "c", 1.0), ("c", "d", 9.0), ("d", "e", 0.1)],
    ):
        with pytest.raises(ValueError, match="another state space"):
            options.check(eo.from_graph(other))


def test_states_that_json_cannot_hold_are_left_out_with_a_warning(options, tmp_path):
    mdp = eo.from_graph([(frozenset("a"), frozenset("b"))])
    path = tmp_path / "sets.safetensors"
    with pytest.warns(UserWarning, match="frozenset"):
        eo.discover(mdp, 2).save(path)
    loaded = eo.load_options(path, mdp)
    assert loaded.mdp.states is None


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_next_save_removes_what_a_killed_process_left(options, tmp_path):
    program = """
import os, sys
from eigenoptions.options import files

def die(*paths):
    os._exit(9)

os.replace = die
files.write_atomically(sys.argv[1], b"half")
"""
    path = tmp_path / "skills.safetensors"
    killed = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert killed.returncode == 9
    assert len(list(tmp_path.glob(".*.tmp"))) == 1

    # Files of others stay, and so does one that somebody is writing.
    own = tmp_path / ".mine.tmp"
    own.write_text("notes")
    written = tmp_path / f".other.{'0' * 32}.tmp"
    with open(written, "xb") as writer:
        assert files._try_lock(writer)
        options.save(path)
        assert sorted(tmp_path.iterdir()) == sorted([own, written, path])

    options.save(path)
    assert sorted(tmp_path.iterdir()) == sorted([own, path])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_refused_instead_of_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        eo.load_options(tmp_path / "pipe")


def make_csr_arrays(matrix):
    return {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}


def test_text_of_a_forged_file_does_not_control_the_terminal(options, tmp_path):
    path = tmp_path / "forged.safetensors"
    write_arrays(path, "\x1b[31moptions", {}, {"a": np.zeros(1)})
    with pytest.raises(ValueError, match="holds") as caught:
        eo.load_options(path)
    assert "\x1b" not in str(caught.value)

    # Names of its description.
    arrays = {"policy": options.policy}
    for part, array in make_csr_arrays(options.mdp.transition).items():
        arrays[f"transition.{part}"] = array
    write_arrays(path, "options", {"mdp": {"\x1b[31m": 1}}, arrays)
    with pytest.raises(ValueError, match="cannot be read") as caught:
        eo.load_options(path)
    assert "\x1b" not in str(caught.value)


def test_array_in_the_provenance_is_refused_with_its_type(tmp_path):
    mdp = eo.maze("S..G")
    goal = Purpose([0, 0, 0, 1], "goal")
    options = eo.solve(mdp, goal, provenance={"seeds": np.arange(3)})
    with pytest.raises(TypeError, match="ndarray"):
        options.save(tmp_path / "skills.safetensors")
    assert not list(tmp_path.iterdir())
