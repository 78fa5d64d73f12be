"""The documentation builds without a warning, and its code and commands run."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import eigenoptions
from eigenoptions._registry import discovery_methods
from eigenoptions.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/reference/*.md"),
    ]
)
# Commands that run for minutes or until they are stopped, which have tests of their
# own.
LONG = ("studio",)
NOT_RUN = (
    "pip install",
    "git clone",
    "cd ",
    "ray start",
    "export RAY_",
    "python -m reproduction",
    "python -m studies",
    "python -m benchmarks",
)


def find_blocks(page: str, language: str) -> list[str]:
    """The blocks of a language on a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(
        rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL
    )


def find_commands(page: str, program: str) -> list[list[str]]:
    """Words that the page says to type after a program, without comments."""
    lines = re.findall(
        rf"^\$ {program}\b(.*)$",
        "".join(find_blocks(page, "console")),
        flags=re.MULTILINE,
    )
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.slow
def test_site_builds_without_warnings_and_needs_no_other_host(tmp_path: Path) -> None:
    flags = [
        "-W",
        "--keep-going",
        "-q",
        "-D",
        "plot_gallery=0",
        "-d",
        str(tmp_path / "doctrees"),
    ]
    command = [
        sys.executable,
        "-m",
        "sphinx",
        *flags,
        str(ROOT / "docs"),
        str(tmp_path / "html"),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    # A warning is an error. Kernels of notebooks write to stderr, too.
    assert done.returncode == 0, done.stderr
    assert 'id="eigenoptions.discover"' in (tmp_path / "html" / "api.html").read_text(
        encoding="utf-8"
    )
    for page in (tmp_path / "html").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:\w+:)?//[^>]*>", text
        ), page.name


@pytest.mark.parametrize(
    "page", [page for page in PAGES if find_blocks(page, "python")]
)
def test_python_on_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What a page registers, such as a method of its own, ends with the page.
    eigenoptions.methods()
    entries = dict(discovery_methods._entries)
    monkeypatch.setattr(discovery_methods, "_entries", entries)
    names: dict[str, object] = {}
    for block in find_blocks(page, "python"):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
            report: list[str] = []
            assert (
                doctest.DocTestRunner()
                .run(test, out=report.append, clear_globs=False)
                .failed
                == 0
            ), "".join(report)
            names = test.globs
        else:
            exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if find_blocks(page, "console")]
)
def test_commands_on_page_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = re.findall(
        r"^([\w-]+):.*##",
        (ROOT / "Makefile").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    for line in "".join(find_blocks(page, "console")).splitlines():
        assert line.startswith(
            ("$ eigenoptions ", "$ make", *(f"$ {command}" for command in NOT_RUN))
        ), line
    assert all(words[0] in targets for words in find_commands(page, "make") if words)
    monkeypatch.chdir(tmp_path)
    for words in find_commands(page, "eigenoptions"):
        if words[0] not in LONG:
            assert main(words) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES)
def test_page_has_no_broken_link_and_no_untested_block(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!\w+:|(?:\.\./)?gallery/)([^)#\s]+)", text)
    assert [
        target for target in targets if not ((ROOT / page).parent / target).exists()
    ] == []
    kinds = re.findall(r"^ *```+(.*)$", text, flags=re.MULTILINE)[::2]
    assert [
        kind
        for kind in kinds
        if not re.fullmatch(r"python|console|text|\{[\w-]+\}.*", kind)
    ] == []


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")),
    ids=lambda path: path.stem,
)
def test_notebook_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), names)


def test_map_of_the_library_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "docs" / "draw_map.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stdout


def test_numbers_on_pages_are_as_computed() -> None:
    command = [sys.executable, str(ROOT / "docs" / "page_numbers.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {eigenoptions.__version__}\n" in citation
