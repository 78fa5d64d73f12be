"""Light checks of what is published; `make package` builds and installs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.package import NEEDED, PROGRAM, SMOKE

import eigenoptions as eo

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_files_that_the_wheel_needs_are_there():
    for name in NEEDED:
        assert (ROOT / "src" / name).is_file()


def test_metadata_is_complete():
    assert {
        "name",
        "description",
        "readme",
        "requires-python",
        "license",
        "keywords",
        "urls",
    } <= PROJECT.keys()
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert PROJECT["classifiers"] == sorted(PROJECT["classifiers"])
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {least}" in PROJECT["classifiers"]
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
    assert len(PROJECT["description"]) < 100


def test_every_extra_of_users_is_tried():
    for_developers = {"bench", "docs", "dev", "mutants"}
    assert set(SMOKE) - {""} == PROJECT["optional-dependencies"].keys() - for_developers


def test_the_citation_has_what_its_format_requires():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()


def test_the_users_program_runs(tmp_path):
    done = subprocess.run([sys.executable, PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "620.769\n"


def test_no_machine_is_named():
    """Tracked files hold no paths of a developer's machine."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / "Makefile", *(ROOT / "docs").glob("*.md")]
    for path in texts:
        assert not re.search(r"/(home|Users|work)/|file://", path.read_text(encoding="utf-8")), path.name


def test_the_program_imports_public_names_only():
    used = set(re.findall(r"\beo\.(\w+)", PROGRAM.read_text(encoding="utf-8")))
    assert used <= set(dir(eo))
