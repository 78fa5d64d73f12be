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
