"""Files with valid checksums and any content: what is in them is checked before it is used (docs/reliability.md)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import files
from eigenoptions.cli import main
from eigenoptions.spectra.gram import load_gram
from reproduction.store import decode


def _forged(path, header, rows, whole=None):
    """A file with valid checksums and any content."""
    files.write(path, header, rows, whole)
    return path


def _gram_file(tmp_path, dedupe, **changes):
    """The file of a Gram of sparse features with other arrays or header entries than its own."""
    gram = eo.Gram(dedupe=dedupe)
    gram.add(csr_array(np.eye(4)), csr_array(np.roll(np.eye(4), 1, axis=1)))
    gram.save(tmp_path / "gram.safetensors")
    header, arrays = files.read(tmp_path / "gram.safetensors", "gram", 1)
    header.pop("rows")
    for name, change in changes.items():
        if name in header:
            header[name] = change
        else:
            arrays[name] = change(arrays[name][0].copy())[None]
    return _forged(tmp_path / "forged.safetensors", header, arrays)


def _put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


GRAM_CHANGES = {
    "far column": (True, {"words": _put(0, 10**9)}),
    "farther column": (True, {"words": _put(2, 2**40)}),
    "columns in no order": (True, {"words": lambda words: words[[2, 3, 0, 1, *range(4, len(words))]]}),
    "a difference that is no number": (True, {"words": _put(1, np.array(np.nan).view(np.uint64))}),
    "negative end": (True, {"indptr": _put(1, -4)}),
    "decreasing ends": (True, {"indptr": _put(1, 12)}),
    "last end": (True, {"indptr": _put(-1, 10**9)}),
    "ends of floats": (True, {"indptr": lambda ends: ends.astype(float)}),
    "words of bytes": (True, {"words": lambda words: words.view(np.uint8)}),
    "narrow": (True, {"n_features": 2}),
    "no width": (True, {"n_features": "four"}),
    "another kind": (True, {"made_of": "states"}),
    "unknown kind": (True, {"made_of": "object"}),
    "counts": (True, {"counts": lambda counts: np.ones(3, dtype=np.int64)}),
    "far bounds": (False, {"bounds": _put(-1, 10**9)}),
    "far sum": (False, {"columns": _put(0, 10**9)}),
    "shape of the sum": (False, {"shape": [4, 10**9]}),
    "sum of complex numbers": (False, {"data": lambda data: data.astype(np.complex64).view(np.uint64)}),
    "infinite sum": (False, {"data": _put(0, np.inf)}),
    "features": (True, {"features": {"map": ["one-hot"]}}),
}


@pytest.mark.parametrize("change", GRAM_CHANGES)
def test_gram_files_are_checked_inside(change, tmp_path):
    dedupe, changes = GRAM_CHANGES[change]
    with pytest.raises(ValueError, match="forged"):
        load_gram(_gram_file(tmp_path, dedupe, **changes))


@pytest.mark.parametrize("dedupe", [True, False])
def test_gram_files_without_changes_are_read(dedupe, tmp_path):
    found = load_gram(_gram_file(tmp_path, dedupe))
    assert found.spectrum(3).values == pytest.approx(
        eo.spectrum(eo.graph(_cycle()), 3, "combinatorial").values / 2
    )


def _cycle():
    return eo.MDP(np.roll(np.eye(4), 1, axis=1))


def _options_file(tmp_path, header=(), **arrays):
    header = dict(header)
    kind = header.get("kind", "options")
    stored = {"policy": np.zeros((2, 3), dtype=np.int8), "value": np.zeros((2, 3)), **arrays}
    if kind == "linear options":
        stored = {"direction": np.ones((2, 1)), "threshold": np.zeros(2), **arrays}
    right = {
        "kind": kind,
        "format": 1,
        "state_space": "",
        "n_actions": 2,
        "labels": ["a", "b"],
        "provenance": {},
    }
    right |= {"eigenvalues": [0.0, 1.0], "mean_length": [1, "inf"], "features": {"map": "raw"}, "basis": None}
    right |= {"indices": [2, None], "signs": [1, None], "goals": [None, 5]}
    made = {k: v for k, v in (right | header).items() if v != "absent"}
    whole = {name: stored.pop(name) for name in ("coords",) if name in stored}
    return _forged(tmp_path / "forged.safetensors", made, stored, whole)


NESTED = {"deep": [[[[]]]]}
BAD_HEADERS = [
    *(
        {name: "absent"}
        for name in ("labels", "n_actions", "eigenvalues", "provenance", "features", "format")
    ),
    *({"labels": bad} for bad in (5, ["a"], ["a", 5], [["a"], "b"], NESTED)),
    *({"n_actions": bad} for bad in (0, -1, "two", 1e300, NESTED, True)),
    *({"eigenvalues": bad} for bad in ("ab", [1], [NESTED, 0], ["x", "y"], 7)),
    *({"indices": bad} for bad in ([1], 4, ["x", 1], [NESTED, 1], [1.5, 2])),
    *({"provenance": bad} for bad in (3, "text", [1])),
    *({"format": bad} for bad in ("one", NESTED, 2)),
]


@pytest.mark.parametrize("kind", ["options", "linear options"])
@pytest.mark.parametrize("header", BAD_HEADERS, ids=repr)
def test_hostile_headers_give_one_value_error(header, kind, tmp_path, capsys):
    if kind == "options" and "features" in header:
        header = {"mean_length": "absent"}
    path = _options_file(tmp_path, {"kind": kind, **header})
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        eo.load_options(path)
    assert main(["show", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert "\x1b" not in printed.err + printed.out


@pytest.mark.parametrize("kind", ["options", "linear options"])
def test_the_same_file_without_changes_is_read(kind, tmp_path):
    assert eo.load_options(_options_file(tmp_path, {"kind": kind})).labels == ("a", "b")


@pytest.mark.parametrize(
    "arrays",
    [
        {"policy": np.full((2, 3), 2, dtype=np.int8)},
        {"policy": np.full((2, 3), -2, dtype=np.int8)},
        {"policy": np.zeros((2, 3))},
        {"policy": np.zeros(2, dtype=np.int8)},
        {"value": np.zeros((2, 4))},
        {"coords": np.zeros((2, 9))},
    ],
    ids=repr,
)
def test_arrays_of_option_files_are_checked(arrays, tmp_path):
    with pytest.raises(ValueError, match="must"):
        eo.load_options(_options_file(tmp_path, **arrays))


@pytest.mark.parametrize("kind", ["options", "linear options"])
def test_control_characters_of_a_label_do_not_reach_the_terminal(kind, tmp_path, capsys):
    labels = ["\x1b[31m[bold]red[/bold]", "\x9b2J\a"]
    path = _options_file(
        tmp_path,
        {"kind": kind, "labels": labels},
        **({"coords": np.eye(3, 2, dtype=int)} if kind == "options" else {}),
    )
    options = eo.load_options(path)
    assert options.labels == tuple(labels)
    for flags in ([], ["--json"]):
        assert main(["show", str(path), *flags]) == 0
    printed = capsys.readouterr().out + repr(options) + str(options) + repr(options[0])
    assert "[31m" in printed
    assert not set(printed) & {"\x1b", "\x9b", "\a"}


def test_a_number_is_not_taken_for_an_open_file():
    with pytest.raises(TypeError, match="path"):
        eo.load_options(0)


@pytest.mark.parametrize(
    "line",
    [
        '{"~array": ["|O", [1], "C"]}',
        '{"~scalar": ["|O", [], "C"]}',
        '{"~array": [[["a", "|O"]], [1], "C"]}',
        '{"~array": ["|u1", [-1], "C"]}',
        '{"~array": ["|u1", [1000000000000], "C"]}',
        '{"~array": ["|u1", ["x"], "C"]}',
        '{"~array": ["|u1", [1], "Z"]}',
        '{"~array": 5}',
        '{"~unknown": [1]}',
        '{"~dict": [[[], 1]]}',
        "[" * 100_000,
        "no json",
        "",
    ],
    ids=lambda line: line[:40],
)
def test_stored_results_are_never_taken_for_objects(line):
    with pytest.raises(ValueError, match="damaged"):
        decode(line.encode() + b"\nAAAAAAAA")
