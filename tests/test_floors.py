"""The versions that pyproject.toml allows, against those that ``make test-oldest`` installs (tests/oldest.txt)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Tools of developers, and the rivals that benchmarks compare with: users do not install them.
TOOLS = {"bench", "dev", "docs", "mutants"}


def oldest() -> dict[str, str]:
    """Versions in tests/oldest.txt by name."""
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def declared() -> dict[str, str]:
    """Lowest versions in pyproject.toml by name: of the core, of every extra for users, and of MiniGrid."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(x for name in extras if name not in TOOLS for x in extras[name])]
    wanted += [x for x in extras["dev"] if x.startswith("minigrid")]
    return dict(re.fullmatch(r"([\w-]+)[>=]=([\d.]+)", line).groups() for line in wanted)  # type: ignore[union-attr]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, (version + ".0.0").split(".")))[:3]


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed():
    tested, allowed = oldest(), declared()
    assert sorted(tested) == sorted(allowed)
    assert {name: numbers(tested[name]) for name in tested} == {
        name: numbers(allowed[name]) for name in allowed
    }
