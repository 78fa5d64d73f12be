"""What is published: metadata, versions, and (slow) the wheel, freshly installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.matrix import OLDEST_TORCH

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
    # It has an environment of its own.
    tested |= dict(r.split("==") for r in OLDEST_TORCH if r.startswith("torch=="))
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


def read_yaml(path: str) -> dict[str, Any]:
    # Environments without Sphinx and Ray have no parser.
    yaml = pytest.importorskip("yaml")
    contents: dict[str, Any] = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return contents


def read_workflow(name: str) -> dict[str, Any]:
    return read_yaml(f".github/workflows/{name}.yml")


def list_commands(workflow: dict[str, Any]) -> list[str]:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def test_workflow_tests_the_declared_pythons() -> None:
    matrix = read_workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    declared = [c for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert matrix["python"] == [c.rpartition(" ")[2] for c in declared]


@pytest.mark.parametrize("name", ["tests", "docs", "wheel"])
def test_workflow_runs_targets_and_files_that_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, flags=re.MULTILINE))
    commands = list_commands(read_workflow(name))
    assert commands
    for command in commands:
        program, *words = command.split()
        if program == "make":
            assert set(words) <= targets, command
        for word in words:
            if word.endswith(".py"):
                assert (ROOT / word).exists(), command


def test_project_has_one_address() -> None:
    """Another owner is set by one command, which CONTRIBUTING.md names."""
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    owners = set()
    for name in names:
        if (ROOT / name).suffix in {".md", ".toml", ".yml", ".yaml", ".cff", ".py"}:
            text = (ROOT / name).read_text(encoding="utf-8")
            owners |= set(re.findall(r"github\.com/([\w-]+)/eigenoptions\b", text))
    assert len(owners) == 1
    homepage = f"https://github.com/{owners.pop()}/eigenoptions"
    assert PROJECT["urls"]["Homepage"] == homepage
    assert read_yaml("CITATION.cff")["repository-code"] == homepage


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

    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, archive)

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
