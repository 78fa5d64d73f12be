"""Pictures on pages are made by commands, and show what these make now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is needed")
def test_picture_of_the_readme_shows_what_the_program_prints() -> None:
    command = [sys.executable, str(ROOT / "docs" / "draw_demo.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_picture_has_a_command_and_is_shown() -> None:
    command = [sys.executable, str(ROOT / "docs" / "draw_pictures.py")]
    listed = subprocess.check_output(command, encoding="utf-8", timeout=300)
    named = {line.split()[0] for line in listed.splitlines()}
    images = ROOT / "docs" / "images"
    files = [path for path in images.rglob("*") if path.is_file()]
    stored = {path.relative_to(images).as_posix() for path in files}
    assert sorted(stored - named) == []

    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in stored if f"images/{name})" not in texts] == []
