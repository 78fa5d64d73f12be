"""The examples are short, write one picture each, and do the same twice; the gallery shows them all."""

from __future__ import annotations

import ast
import logging
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from docs import gallery

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
MAX_PICTURE_BYTES = 400_000


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_describes_its_picture(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text)) or ""
    # The agent in a single file is complete: network, replay buffer and training.
    assert len(text.splitlines()) - len(doc.splitlines()) < (150 if example.stem == "pytorch_dqn" else 40)
    title, _, see = gallery.words(example)
    assert title
    assert see, "write a paragraph 'In the picture: ...' into the docstring"


# Examples that learn for seconds: whether they do the same twice is seen with fewer steps, after a run as they are.
FEWER_STEPS = {
    "acrobot": {'"Acrobot-v1", 4_000': '"Acrobot-v1", 500'},
    "cartpole": {"steps=8_000": "steps=1_000"},
    "exploration": {"else 4)": "else 1)"},
    "mountain_car": {"steps=2000, rounds=4": "steps=500, rounds=2"},
    "own_features": {"steps=6000": "steps=1000", "runs=8": "runs=2"},
    "pixels": {"steps=20_000, training_steps=150": "steps=1000, training_steps=5", "< 2000": "< 200"},
    "pytorch_dqn": {"train(env, 3000)": "train(env, 300)"},
    "sampled_options": {"1000, 2000, 4000, 10_000], 8, 3": "1000], 8, 1"},
    "sb3_dqn": {"learn(2500": "learn(400"},
    "sb3_maskable_ppo": {"learn(2500": "learn(256"},
    "sb3_ppo": {"learn(2500": "learn(256"},
}


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[[Path, str], tuple[str, bytes]]:
    """A function that runs an example in a new folder; what it printed and drew. Warnings are errors."""
    logger = logging.getLogger("eigenoptions")

    def run(example: Path, folder: str) -> tuple[str, bytes]:
        monkeypatch.setattr(sys, "argv", [str(example)])
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        with caplog.at_level("WARNING"):
            runpy.run_path(str(example), run_name="__main__")
            # An example may silence it.
            logger.setLevel(logging.NOTSET)
        out, err = capfd.readouterr()
        assert (err, caplog.messages) == ("", [])
        assert out.strip()
        (picture,) = gallery.written(example, tmp_path / folder)
        return out, picture.read_bytes()

    return run


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_does_the_same_twice(
    example: Path, run: Callable[[Path, str], tuple[str, bytes]], tmp_path: Path
) -> None:
    """In this process, where modules are loaded and random generators in use already."""
    first = run(example, "first")
    assert len(first[1]) < MAX_PICTURE_BYTES
    if fewer := FEWER_STEPS.get(example.stem):
        text = example.read_text(encoding="utf-8")
        for call, shorter in fewer.items():
            assert text.count(call) == 1
            text = text.replace(call, shorter)
        example = tmp_path / example.name
        example.write_text(text, encoding="utf-8")
        first = run(example, "first, fewer steps")
    assert run(example, "second") == first


def test_an_example_runs_from_anywhere_and_writes_nothing_to_stderr(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(gallery.EXAMPLES / "four_rooms.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "e2+" in done.stdout
    assert "e5-" in done.stdout
    assert (tmp_path / "four-rooms.safetensors").is_file()


def test_the_gallery_has_a_page_per_example_and_draws_again_what_has_changed(tmp_path: Path) -> None:
    examples, pictures, pages = tmp_path / "examples", tmp_path / "pictures", tmp_path / "docs" / "gallery"
    for folder in (examples, pictures, pages.parent):
        folder.mkdir()
    code = '"""A dot: nothing else.\n\nText.\n\nIn the picture: a\ndot.\n"""\n'
    code += 'open("one-dot.svg", "w").write("<svg/>")\n'
    (examples / "one_dot.py").write_text(code)
    (examples / "blank.py").write_text('"""No picture."""\n')
    gallery.write_pages(pages, examples, pictures)
    assert "![" not in (pages / "one_dot.md").read_text()
    assert gallery.draw(examples / "one_dot.py", pictures) == ""
    assert gallery.draw(examples / "blank.py", pictures) == "blank.py has no picture: it wrote no picture"
    first = gallery.kept(examples / "one_dot.py", pictures)
    assert first is not None
    gallery.write_pages(pages, examples, pictures)
    page = (pages / "one_dot.md").read_text()
    assert page.startswith("# A dot\n\nA dot: nothing else.\n\nText.\n")
    assert f"![A dot](../../pictures/{first.name})\n\na dot.\n" in page
    assert "[A dot: nothing else](one_dot.md)" in (pages / "index.md").read_text()
    (examples / "one_dot.py").write_text(code + "\n")
    assert gallery.kept(examples / "one_dot.py", pictures) is None
    gallery.draw(examples / "one_dot.py", pictures)
    assert not first.exists()
    (examples / "blank.py").unlink()
    gallery.write_pages(pages, examples, pictures)
    assert not (pages / "blank.md").exists()


def test_every_example_is_in_one_section() -> None:
    named = " ".join(gallery.SECTIONS.values()).split()
    assert len(set(named)) == len(named)
    assert [stem for stem in named if not (gallery.EXAMPLES / f"{stem}.py").is_file()] == []
    shown = [example for some in gallery.sections(EXAMPLES).values() for example in some]
    assert sorted(shown) == EXAMPLES
