"""The examples are short, run from anywhere, and say nothing on stderr."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def run(example: Path, folder: Path) -> str:
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_are_examples() -> None:
    assert "four_rooms.py" in [path.name for path in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_says_what_it_shows(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    # The agent in a single file is complete: network, replay buffer and training.
    assert len(text.splitlines()) < (150 if example.stem == "pytorch_dqn" else 40)
    assert text.startswith('"""')


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_the_same_twice(example: Path, tmp_path: Path) -> None:
    said = run(example, tmp_path)
    assert said.strip()
    assert run(example, tmp_path) == said


def test_four_rooms_finds_the_far_rooms(tmp_path: Path) -> None:
    said = run(EXAMPLES[[path.name for path in EXAMPLES].index("four_rooms.py")], tmp_path)
    assert "e2+" in said
    assert "e5-" in said
    assert (tmp_path / "four-rooms.safetensors").is_file()
