"""Bad input to the commands is one line, and exit code 1 or 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eigenoptions.cli import main
from eigenoptions.discovery.methods import methods
from tests.test_cli import refused, run


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ("discover", "for-rooms"),
            "no maze called 'for-rooms', and no such file: did you mean 'four-rooms'?",
        ),
        (("discover", "i-maze", "--gamma", "1"), "gamma must be in [0, 1), got 1.0"),
        (("discover", "i-maze", "--gamma", "nan"), "gamma must be in [0, 1), got nan"),
        (
            ("discover", "i-maze", "--method", "magic"),
            f"method must be one of {', '.join(methods())}, got 'magic'",
        ),
        (
            ("discover", "i-maze", "--operator", "magic"),
            "operator must be one of normalized, combinatorial, ",
        ),
        (("discover", "CartPole-v1", "--features", "magic"), "features must be one of "),
        (("discover", "i-maze", "-n", "999"), "n_options must be in 1..36 for 19 states, got 999"),
        (("discover", "i-maze", "-n", "0"), "n_options must be a whole number from 1, got 0"),
        (("discover", "open-room", "--method", "bottleneck"), "this state space has no bottleneck"),
        (("show", "nowhere.safetensors"), "no file nowhere.safetensors"),
        (("reproduce", "--only", "figure9"), "no experiment called 'figure9': there are figure1, figure2"),
        (("diffusion", "i-maze", "-n", "0"), "n_options must be a whole number from 1, got 0"),
        (("diffusion", "i-maze", "-n", "99"), "n_options must be in 1..36 for 19 states, got 99"),
        (("diffusion", "open-room", "--method", "bottleneck"), "this state space has no bottleneck"),
        (("learn", "i-maze", "--runs", "0"), "runs must be a whole number in 1.."),
        (("learn", "i-maze", "--episodes", "0"), "episodes must be a whole number in 1..2147483647, got 0"),
        (("learn", "i-maze", "--alpha", "0"), "alpha must be in (0, 1], got 0.0"),
        (("learn", "i-maze", "-n", "many"), "-n takes whole numbers like 8 or 8,64, got 'many'"),
        (("learn", "i-maze", "-n", "-2"), "-n takes numbers from 0, got '-2'"),
        (("learn", "i-maze", "--start", "1,3"), "start and goal are both state 2: choose two"),
        (
            ("learn", "i-maze", "--goal", "0,0"),
            "goal 0,0 is no free cell: rows and columns are counted from 0",
        ),
        (("learn", "i-maze", "--goal", "here"), "goal must be a cell like 1,11 or the number of a state"),
        (("learn", "i-maze", "--goal", "19"), "goal must be a state in 0..18, got 19"),
        (("discover", "i-maze", "--method", "diffusion", "--set", "t"), "--set takes NAME=VALUE, got 't'"),
        (
            ("discover", "i-maze", "--method", "diffusion", "--set", "t=few"),
            "t must be a whole number, got 'few'",
        ),
        (
            ("discover", "i-maze", "--method", "diffusion", "--set", "speed=2"),
            "method 'diffusion' has no setting 'speed': it has t",
        ),
        (("discover", "i-maze", "--set", "both_signs=no"), "both_signs must be true or false, got 'no'"),
        (("discover", "i-maze", "--method", "reward-aware", "--set", "rewards=no.txt"), "no file no.txt"),
        (("discover", "i-maze", "--method", "reward-aware"), "needs rewards"),
    ],
)
def test_bad_input_is_one_line(args, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert line in refused(capsys, *args)
    assert list(tmp_path.iterdir()) == []


def test_settings_of_methods_are_flags(capsys, tmp_path):
    """``--set`` takes values of the type of the default, and files of numbers; only eigenoptions have PVFs."""

    def run(*args):
        assert main(["discover", "i-maze", *args, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    (tmp_path / "cost.txt").write_text("\n".join(["-1"] * 19))
    flags = ("--set", f"rewards={tmp_path / 'cost.txt'}", "temperature=2")
    found = run("--method", "reward-aware", "-n", "2", *flags, "--out", str(tmp_path / "out"))
    assert found["settings"]["rewards"] == "array (19,)"
    assert found["settings"]["temperature"] == 2.0
    assert [Path(file).name for file in found["files"]] == ["options.safetensors", "options.svg"]
    assert len(run("--set", "both_signs=false", "-n", "3")["options"]) == 3
    assert len(run("--method", "covering", "--steps", "2000", "-n", "2")["options"]) == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the map is empty"),
        ("###\n###\n", "the map has no free cell"),
        ("..\n.?\n", "unknown character '?' at line 2 column 2"),
        ("S.\n.S\n", "the map has 2 starts (S)"),
    ],
)
def test_bad_maps_are_one_line(text, line, capsys, tmp_path):
    path = tmp_path / "map.txt"
    path.write_text(text)
    assert line in refused(capsys, "discover", str(path), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_goals_out_of_reach_are_one_line(capsys, tmp_path):
    path = tmp_path / "split.txt"
    path.write_text("S.#.G\n")
    assert "goal 3 cannot be reached from start 0" in refused(capsys, "learn", str(path))
    path.write_text("...\n")
    assert "has no start and no goal: give --start ROW,COL and --goal" in refused(capsys, "learn", str(path))
    path.write_text("..#..\n")
    code, out, err = run(capsys, "diffusion", str(path), "-n", "1", "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert "the diffusion time is infinite: 2 states (2, 3) cannot be reached from state 0" in err
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_written_are_one_line(capsys, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert "it is a file; give a folder" in refused(capsys, "discover", "i-maze", "--out", str(file))
    assert "is a file; give another" in refused(capsys, "discover", "i-maze", "--out", str(file / "out"))
    assert "other content than a report" in refused(capsys, "reproduce", "--out", str(tmp_path))
    assert "cannot create the folder /proc/report" in refused(capsys, "reproduce", "--out", "/proc/report")
    for command in ("diffusion", "learn"):
        assert "it is a file; give a folder" in refused(capsys, command, "i-maze", "--out", str(file))
    (tmp_path / "out" / "options.svg").mkdir(parents=True)
    assert "options.svg: it is a folder; give a file name" in refused(
        capsys, "discover", "i-maze", "-n", "2", "--out", str(tmp_path / "out")
    )
    assert not [p for p in tmp_path.rglob("*") if p.name.endswith(".tmp")]


def test_damaged_files_are_one_line(capsys, tmp_path):
    run(capsys, "discover", "i-maze", "-n", "2", "--out", str(tmp_path))
    file = tmp_path / "options.safetensors"
    assert "holds 2 items: index 7 is out of range" in refused(capsys, "show", str(file), "--only", "7")
    file.write_bytes(file.read_bytes()[:-3])
    assert "is damaged or no eigenoptions file" in refused(capsys, "show", str(file))


@pytest.mark.parametrize(
    "args", [("dance",), ("discover",), ("discover", "i-maze", "-n", "x"), ("mazes", "--x")]
)
def test_arguments_that_make_no_sense_exit_with_2(args, capsys):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
