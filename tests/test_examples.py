"""Each example is short, runs without a warning, prints something, writes a picture."""

from __future__ import annotations

import ast
import logging
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    tree = ast.parse(example.read_text(encoding="utf-8"))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    # The agent in a single file is complete: network, replay buffer and training.
    limit = 100 if example.stem == "pytorch_dqn" else 60
    assert len(statements) < limit

    title, underline = (ast.get_docstring(tree) or "").splitlines()[:2]
    assert set(underline) == {"="}
    assert len(underline) == len(title)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    with caplog.at_level("WARNING"):
        try:
            runpy.run_path(str(example), run_name="__main__")
        finally:
            # An example may silence the notes of the library.
            logging.getLogger("eigenoptions").setLevel(logging.NOTSET)
            plt.close("all")
    out, err = capfd.readouterr()
    assert err == ""
    assert caplog.messages == []
    assert out.strip()
    picture_name = example.stem.replace("_", "-")
    assert picture_name in {path.stem for path in tmp_path.iterdir()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_a_program_in_the_gallery(example: Path) -> None:
    """The gallery cuts examples at lines of many #, such as a wall of a map."""
    parser = pytest.importorskip("sphinx_gallery.py_source_parser")
    _, blocks = parser.split_code_and_text_blocks(str(example))
    for kind, text, line in blocks:
        if kind == "code":
            compile(text, f"{example.name}, line {line}", "exec")


def test_example_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    (example,) = [path for path in EXAMPLES if path.stem == "atari_options"]
    with pytest.raises(SystemExit, match="pip install"):
        runpy.run_path(str(example), run_name="__main__")
