"""The command line on environments: read exactly where they are finite, sampled where they are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eigenoptions as eo
from eigenoptions.cli import main
from eigenoptions.envs import run_options
from eigenoptions.options.storage import load_options


def said(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main(["discover", *args, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_table_is_read_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    answer = said(capsys, "FrozenLake-v1", "-n", "4")
    options = eo.discover(eo.from_env("FrozenLake-v1"), n_options=4)
    assert [row["label"] for row in answer["options"]] == ["e2+", "e2-", "e3+", "e3-"]
    assert [row["stop_states"] for row in answer["options"]] == [s.tolist() for s in options.stops]


def test_a_minigrid_is_explored(capsys: pytest.CaptureFixture[str]) -> None:
    answer = said(capsys, "minigrid:MiniGrid-Empty-5x5-v0", "-n", "2")
    assert answer["states"] == 34


def test_a_maze_can_be_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    answer = said(capsys, "i-maze", "-n", "2", "--steps", "3000")
    assert (answer["states"], answer["settings"]["steps"]) == (19, 3000)


def test_a_table_can_be_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    answer = said(capsys, "eigenoptions/FourRooms-v0", "-n", "2", "--steps", "3000")
    assert answer["states"] == 104
    assert answer["settings"]["steps"] == 3000


def test_continuous_observations_are_sampled_drawn_and_saved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = (
        "MountainCar-v0",
        "-n",
        "2",
        "--steps",
        "3000",
        "--features",
        "fourier",
        "--out",
        str(tmp_path / "out"),
    )
    answer = said(capsys, *asked)
    assert [row["label"] for row in answer["options"]] == ["e2+", "e2-"]
    assert all(len(row["ends"]) == 2 for row in answer["options"])
    assert (tmp_path / "out" / "options.svg").read_text().startswith("<?xml")
    assert len(load_options(tmp_path / "out" / "options.safetensors")) == 2
    assert main(["show", str(tmp_path / "out" / "options.safetensors"), "--only", "1"]) == 0
    assert "LinearOptionSet(1 learned option" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "out" / "options.safetensors"), "--only", "2"]) == 2
    assert "holds 2 items: index 2 is out of range" in capsys.readouterr().err
    assert said(capsys, *asked) == answer
    assert main(["discover", *asked]) == 0
    assert "ends at (mean observation)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["NoSuch-v1"], "no environment 'NoSuch-v1'"),
        (["Pendulum-v1"], "only Discrete(n) is supported"),
        (["CartPole-v1", "--steps", "0"], "steps must be a whole number from 1, got 0"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    args: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["discover", *args]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert complaint in lines[0]


def test_all_options_run_from_the_same_states() -> None:
    options = eo.discover(eo.maze("four-rooms"), n_options=4)
    paths = run_options("eigenoptions/FourRooms-v0", options, runs=5, rng=3)
    assert len({tuple(int(path[0]) for path in of_one) for of_one in paths}) == 1
    for option, of_one in zip(options, paths, strict=True):
        for path in of_one:
            assert all(option.act(s) >= 0 for s in path[:-1])
            # The goal ends the episode.
            assert option.act(path[-1]) == eo.TERMINATE or path[-1] == 9
