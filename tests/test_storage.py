"""Sealed files: the same bytes each time, one row without the rest, nothing damaged gets through."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import eigenoptions as eo
from eigenoptions import files
from eigenoptions.features import Raw
from eigenoptions.options import OptionSet
from tests.test_mdp import refused


@pytest.fixture(scope="module")
def options() -> OptionSet:
    return eo.discover(eo.maze("i-maze"), n_options=4)


@pytest.fixture
def file(options, tmp_path):
    path = tmp_path / "skills.safetensors"
    options.save(path)
    return path


def fields(options):
    """Everything a set holds, as bytes and plain values."""
    return (
        *((a.dtype.str, a.shape, a.tobytes()) for a in (options.policy, options.value, options.eigenvalues)),
        options.mean_length.tobytes(),
        None if options.coords is None else options.coords.tobytes(),
        (options.n_actions, options.labels, options.state_space, options.provenance),
    )


def data_of(path, name):
    """Where the bytes of an array begin and end in a file."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    low, high = json.loads(raw[8 : 8 + size])[name]["data_offsets"]
    return 8 + size + low, 8 + size + high


def flip(path, at, bits=1):
    raw = bytearray(path.read_bytes())
    raw[at] ^= bits
    path.write_bytes(raw)


# Round trip -------------------------------------------------------------------------------------------------


def test_a_round_trip_changes_nothing(options, file):
    assert fields(eo.load_options(file)) == fields(options)
    assert fields(eo.load_options(str(file), mdp=eo.maze("i-maze"))) == fields(options)
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize(
    "made",
    [
        OptionSet(np.zeros((0, 7), dtype=np.int8), 4),
        OptionSet(np.array([[0, 129, -1]], dtype=np.int16), 130, labels=("ü→\n'\"<b>",)),
        OptionSet(np.array([[0, -1]], dtype=">i4"), np.int64(3), value=[[1, 2]], mean_length=[np.inf]),
        OptionSet(
            np.array([[1, 0]], dtype=np.uint8), 2, eigenvalues=[-np.inf], coords=np.array([[0, 0], [0, 1]])
        ),
        OptionSet(
            np.arange(12).reshape(2, 6)[:, ::2] % 3, 3, provenance={"deep": {"list": [1, None, "x", 0.1]}}
        ),
    ],
)
def test_unusual_sets_survive(made, tmp_path):
    path = tmp_path / "a"
    made.save(path)
    read = eo.load_options(path)
    np.testing.assert_array_equal(read.policy, made.policy)
    np.testing.assert_array_equal(read.value, made.value)
    np.testing.assert_array_equal(read.eigenvalues, made.eigenvalues)
    np.testing.assert_array_equal(read.mean_length, made.mean_length)
    assert (read.labels, read.n_actions, read.provenance) == (made.labels, made.n_actions, made.provenance)
    made.save(path)  # over itself
    assert len(eo.load_options(path)) == len(made)


@pytest.mark.parametrize(
    "only", [0, 3, -1, np.int64(2), slice(1, 3), slice(None, None, -2), [2, 0, 2], [], (1,)]
)
def test_only_reads_what_the_same_index_gives(options, file, only):
    index = [only] if isinstance(only, int | np.integer) else list(only) if isinstance(only, tuple) else only
    assert fields(eo.load_options(file, only=only)) == fields(options[index])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("only", [[], slice(0), slice(None)])
def test_parts_of_files_with_one_option_or_none(options, tmp_path, n, only):
    options[:n].save(tmp_path / "few.safetensors")
    assert fields(eo.load_options(tmp_path / "few.safetensors", only=only)) == fields(options[:n][only])


def test_a_mask_works_too(options, file):
    mask = np.array([True, False, False, True])
    assert fields(eo.load_options(file, only=mask)) == fields(options[mask])


@pytest.mark.parametrize("only", [4, -5, [0, 9], "e2+", 1.5])
def test_only_out_of_range(file, only):
    refused(ValueError, lambda: eo.load_options(file, only=only), "holds 4 items", str(only), "out of range")


def test_a_file_for_another_state_space(file):
    refused(
        ValueError, lambda: eo.load_options(file, eo.maze("four-rooms")), "another state space", "19", "104"
    )
    mirrored = eo.maze(
        "\n".join(line[::-1] for line in str(eo.maze("i-maze")).replace("█", "#").split("\n")[:-1])
    )
    assert mirrored.n_states == 19
    eo.load_options(file, mirrored)  # the I is its own mirror image; only the task differs
    bent = eo.maze("...\n" + ".##\n" * 13 + "...")
    assert bent.n_states == 19
    refused(
        ValueError, lambda: eo.load_options(file, bent), "another state space: same size", "discover options"
    )


def test_two_processes_write_the_same_bytes(tmp_path):
    code = (
        "import sys, eigenoptions as eo\n"
        "mdp = eo.maze('four-rooms')\n"
        "eo.discover(mdp, n_options=20).save(sys.argv[1])\n"
        "eo.discover(mdp, 5, 'random', rng=3).save(sys.argv[2])\n"
    )
    seen = []
    for i in range(2):
        files = [str(tmp_path / f"{i}{j}") for j in range(2)]
        subprocess.run(
            [sys.executable, "-c", code, *files], check=True, env={**os.environ, "PYTHONHASHSEED": str(i)}
        )
        seen.append([hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in files])
    assert seen[0] == seen[1]


# One row without the rest -----------------------------------------------------------------------------------


def test_a_damaged_row_does_not_hurt_the_others(options, file):
    low, high = data_of(file, "policy")
    flip(file, low + (high - low) // 4 * 2 + 5)  # in row 2
    for i in (0, 1, 3):
        assert fields(eo.load_options(file, only=i)) == fields(options[[i]])
    assert fields(eo.load_options(file, only=[3, 1])) == fields(options[[3, 1]])
    for only in (2, slice(1, 3), None):
        refused(ValueError, lambda only=only: eo.load_options(file, only=only), "damaged: item 2")


def test_one_row_of_a_large_file_takes_the_memory_of_one_row(tmp_path):
    path, S, n = tmp_path / "large", 50_000, 40
    made = OptionSet(np.zeros((n, S), dtype=np.int8), 4, value=np.ones((n, S)))
    made.save(path)
    assert path.stat().st_size > 9 * S * n
    tracemalloc.start()
    one = eo.load_options(path, only=17)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one.policy.shape == (1, S)
    assert peak < 6 * 9 * S  # a few copies of one row, of forty


# Damage -----------------------------------------------------------------------------------------------------


def test_no_flipped_bit_gets_through(tmp_path):
    """Every byte of a small file, one bit at a time: an error in one line, or the very same options (padding)."""
    path = tmp_path / "small"
    made = OptionSet(
        np.array([[1, -1], [0, 1]], dtype=np.int8), 2, value=[[0.5, 0], [1, 2]], coords=np.eye(2, dtype=int)
    )
    made.save(path)
    raw = path.read_bytes()
    whole = fields(made)
    harmless, messages = 0, set()
    for at in range(len(raw)):
        for bits in (1, 32):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ bits]) + raw[at + 1 :])
            try:
                read = eo.load_options(path)
            except ValueError as error:
                messages.add(str(error))
                continue
            assert fields(read) == whole
            harmless += 1
    assert harmless < 60
    assert all(message.startswith(f"{path} is ") and "\n" not in message for message in messages)


def test_no_shorter_file_gets_through(file):
    raw = file.read_bytes()
    for size in [*range(0, 64), *range(64, len(raw), 37), len(raw) - 1]:
        file.write_bytes(raw[:size])
        refused(ValueError, lambda: eo.load_options(file), "is damaged or no eigenoptions file")
    file.write_bytes(raw + b"\0")
    refused(ValueError, lambda: eo.load_options(file), "damaged")


def test_arrays_renamed_swapped_or_reshaped_do_not_get_through(file):
    with safe_open(file, framework="np") as opened:
        meta = opened.metadata()
        arrays = {k: opened.get_tensor(k) for k in opened.keys()}  # noqa: SIM118
    policy, value, coords = arrays["policy"], arrays["value"], arrays["coords"]
    for changed in (
        {"aaa": policy, "value": value, "coords": coords},
        {"policy": policy, "value": value},
        {"policy": policy, "value": value, "coords": coords, "more": policy},
        {"policy": policy, "coords": coords},
        {"policy": policy.astype(np.int16), "value": value, "coords": coords},
        {"policy": policy[::-1].copy(), "value": value[::-1].copy(), "coords": coords},
        {"policy": policy[:3], "value": value[:3], "coords": coords},
        {"policy": policy, "value": value, "coords": coords + 1},
        {"policy": policy.T.copy(), "value": value.T.copy(), "coords": coords},
    ):
        save_file(changed, file, metadata=meta)
        refused(ValueError, lambda: eo.load_options(file), "is damaged")


def test_empty_sets_are_sealed_too(tmp_path):
    path = tmp_path / "none"
    OptionSet(np.zeros((0, 7), dtype=np.int8), 4).save(path)
    with safe_open(path, framework="np") as opened:
        meta = opened.metadata()
    save_file({"policy": np.zeros((0, 9), np.int8), "value": np.zeros((0, 9))}, path, metadata=meta)
    refused(ValueError, lambda: eo.load_options(path), "is damaged")


def test_other_kinds_versions_and_programs(options, tmp_path):
    path = tmp_path / "other"
    rows = {"policy": options.policy, "value": options.value}
    files.write(path, {"kind": "options", "format": 2}, rows)
    refused(
        ValueError,
        lambda: eo.load_options(path),
        "has format 2, this version reads 1",
        "make the file again, or install the version that wrote it",
    )
    files.write(path, {"kind": "results", "format": 1}, rows)
    refused(ValueError, lambda: eo.load_options(path), "holds 'results', not 'options'")
    save_file(rows, path)
    refused(ValueError, lambda: eo.load_options(path), "is a safetensors file, but not one of eigenoptions")
    save_file(rows, path, metadata={"format": "pt"})
    refused(ValueError, lambda: eo.load_options(path), "not one of eigenoptions")
    path.write_bytes(b"PK\x03\x04 not a safetensors file at all")
    refused(ValueError, lambda: eo.load_options(path), "is damaged or no eigenoptions file")
    path.write_text("#####\n#...#\n#####")
    refused(ValueError, lambda: eo.load_options(path), "is damaged or no eigenoptions file")


def test_no_file(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "a" / "b"):
        refused(FileNotFoundError, lambda path=path: eo.load_options(path), f"no file {path}")


# Writing ----------------------------------------------------------------------------------------------------


def test_where_nothing_can_be_written(options, tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    for path, kind, words in (
        (
            tmp_path / "missing" / "a",
            FileNotFoundError,
            "No such file or directory; choose a folder that exists",
        ),
        (tmp_path / "file" / "a", NotADirectoryError, "Not a directory; choose a folder that exists"),
        (tmp_path / "folder", IsADirectoryError, "it is a folder; give a file name"),
        (tmp_path / ("n" * 300), OSError, "File name too long"),
    ):
        refused(kind, lambda path=path: options.save(path), f"cannot write {path}", words)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"
    assert os.listdir(tmp_path / "folder") == []
    refused(OSError, lambda: options.save("/proc/nothing/here"), "cannot write /proc/nothing/here")


def test_a_full_disk_leaves_the_old_file(options, file):
    """A limit on file sizes stands for a full disk."""
    code = (
        "import resource, signal, sys, numpy as np\n"
        "from eigenoptions.options import OptionSet\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    OptionSet(np.zeros((50, 1000), dtype=np.int8), 2).save(sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"cannot write {file}: ")
    assert done.stdout.count("\n") == 1
    assert fields(eo.load_options(file)) == fields(options)
    assert os.listdir(file.parent) == [file.name]


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    bad = OptionSet(np.zeros((1, 2), dtype=np.int8), 2, provenance={"a": {1, 2}})
    with pytest.raises(TypeError):
        bad.save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_threads_may_save_to_one_path(options, tmp_path):
    """Each writes a file of its own and renames it: whoever is last wins, and nothing is left behind."""
    path, failures = tmp_path / "a", []

    def save():
        try:
            for _ in range(20):
                options.save(path)
                assert len(eo.load_options(path)) == 4
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_has_the_usual_permissions(options, tmp_path):
    (tmp_path / "usual").touch()
    options.save(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode
    link = tmp_path / "link"
    link.symlink_to("a")
    eo.load_options(link)


def test_only_regular_files_are_replaced_and_links_are_followed(options, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    refused(OSError, lambda: options.save(pipe), f"cannot write {pipe}: it is not a regular file")
    assert pipe.is_fifo()
    link.symlink_to("target")
    options.save(link)
    assert link.is_symlink()
    (tmp_path / "target").chmod(0o600)
    options.save(link)
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "target"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    files.write_bytes(path, b"old")
    with pytest.raises(TypeError), files.replacing(path) as temporary:
        temporary.write_bytes(None)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_kind_of_a_file_is_read_from_its_header(file, tmp_path):
    assert files.kind(file) == "options"
    eo.LinearOptionSet([[1.0]], Raw(), 3).save(tmp_path / "linear")
    assert files.kind(tmp_path / "linear") == "linear options"
    for header in ("[]", "{}", "[" * 100_000, '{"kind": "options"}', '{"kind": "options", "format": 1}'):
        save_file({"policy": np.zeros((1, 2))}, file, metadata={files.KEY: f"{files._seal(header)} {header}"})
        refused(ValueError, lambda: eo.load_options(file), "is damaged")


def test_a_header_is_plain_json(file):
    with safe_open(file, framework="np") as opened:
        text = opened.metadata()[files.KEY].split(" ", 1)[1]
    header = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert header["kind"] == "options"
    assert header["format"] == 1
    assert header["provenance"]["method"] == "eigen"
    assert header["state_space"] == eo.maze("i-maze").fingerprint
