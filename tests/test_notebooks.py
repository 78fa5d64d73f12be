"""The notebooks run, say what they say on the page, and are small."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from docs import notebooks

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))
MAX_BYTES = 150_000


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_true(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert path.stat().st_size < MAX_BYTES
    notebook = notebooks.read(path)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    with caplog.at_level(logging.WARNING):
        found = notebooks.run(notebook)
    assert caplog.messages == []
    for cell, outputs in zip(cells, found, strict=True):
        stored = cell["outputs"]
        # A figure is there or not; its pixels depend on the version of matplotlib.
        assert [sorted(out.get("data", ())) for out in outputs] == [
            sorted(out.get("data", ())) for out in stored
        ]
        if "varies" not in cell["metadata"].get("tags", ()):
            assert notebooks.plain(outputs) == notebooks.plain(stored), "".join(cell["source"])


def test_a_page_shows_text_pictures_and_tables(tmp_path: Path) -> None:
    code = {"cell_type": "code", "metadata": {}, "execution_count": 1}
    source = "import eigenoptions as eo\nprint(1 + 1)\neo.plots.plot_options(eo.discover('S.G', 1))"
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# Title"]}, {**code, "source": [source]}]}
    notebook["cells"].append({**code, "source": ["eo.maze('S.G')"]})
    notebook["cells"].append({**code, "source": ["_ = 3"]})
    outputs = notebooks.run(notebook)
    for cell, shown in zip(notebook["cells"][1:], outputs, strict=True):
        cell["outputs"] = shown
    assert [notebooks.plain(shown) for shown in outputs[1:]] == [
        ["MDP(3 states, 4 actions, deterministic, start 0, goal 2)"],
        [],
    ]
    text = notebooks.page(notebook, "name", tmp_path)
    assert text.startswith(
        f"# Title\n\n```python\n{source}\n```\n\n```text\n2\n```\n\n![Output](name-1.png)\n"
    )
    assert (tmp_path / "name-1.png").read_bytes()[:4] == b"\x89PNG"
    assert '<div class="notebook-output"><' in text
