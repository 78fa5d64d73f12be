"""What is published: metadata, versions, and (slow) the wheel, freshly installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
FOR_DEVELOPERS = {"bench", "dev", "docs"}


def test_oldest_versions_are_the_declared_lower_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    requirements = [
        *PROJECT["dependencies"],
        *(r for e in extras if e not in FOR_DEVELOPERS for r in extras[e]),
    ]
    declared = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", r).groups() for r in requirements
    )  # type: ignore[union-attr]
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if line and line[0] != "#")
    # The only build of torch at hand is newer than the lower bound.
    assert tested.pop("torch") == "2.13.0"
    declared.pop("torch")
    assert {name: (v + ".0.0").split(".")[:3] for name, v in declared.items()} == {
        name: (v + ".0.0").split(".")[:3] for name, v in tested.items()
    }


def test_no_file_names_a_machine() -> None:
    names = subprocess.check_output(
        ["git", "ls-files", "*.md", "*.toml", "*.txt", "*.py"], cwd=ROOT, text=True
    )
    for name in names.split():
        assert not re.search(
            r"[\"' (](/home|/Users|/work|/root)/",
            (ROOT / name).read_text(encoding="utf-8"),
        ), name


def test_user_program_runs(tmp_path: Path) -> None:
    program = ROOT / "tests" / "user_program.py"
    assert (
        subprocess.check_output([sys.executable, program], cwd=tmp_path, text=True)
        == "620.769\n"
    )


@pytest.mark.slow
def test_wheel_holds_the_library_only_and_works_in_a_fresh_environment(
    tmp_path: Path,
) -> None:
    def run(*command: object) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        tmp_path,
        ROOT,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith("eigenoptions") for name in names)
    assert {"eigenoptions/py.typed", "eigenoptions/mdp/mazes/four-rooms.txt"} <= set(
        names
    )
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    run(programs / "pip", "install", "--quiet", wheel)
    assert run(programs / "python", ROOT / "tests" / "user_program.py") == "620.769\n"
    run(programs / "eigenoptions", "discover", "i-maze", "-n", "2", "--out", "out")
    run(programs / "eigenoptions", "studio", "--out", "page")
