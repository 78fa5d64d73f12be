"""Run the notebooks and store their outputs: `python docs/notebooks.py`; `write_pages` shows them in the documents.

Cells run in one Python process without Jupyter, which the tests then do not need: what a cell prints, and the text and
the picture of its last expression, are what Jupyter would show. A cell with the tag "varies" prints what may differ
on another machine; tests do not compare it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
# Resolution of stored pictures.
DOTS_PER_INCH = 110

Output = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    """A notebook as JSON."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run(notebook: dict[str, Any]) -> list[list[Output]]:
    """Outputs of every code cell, run in order with the same names, in an empty folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                found.append(_run_cell("".join(cell["source"]), names))
    return found


def _run_cell(source: str, names: dict[str, Any]) -> list[Output]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[Output] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "savefig"):
            # Smaller than the SVG of a figure, and shown by every viewer of notebooks.
            pixels = io.BytesIO()
            value.savefig(pixels, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
            data["image/png"] = [base64.b64encode(pixels.getvalue()).decode()]
        elif hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return outputs


def plain(outputs: list[Output]) -> list[str]:
    """What outputs say as text, without pictures and their text."""
    return [
        "".join(out.get("text") or out["data"]["text/plain"])
        for out in outputs
        if "image/png" not in out.get("data", {})
    ]


def page(notebook: dict[str, Any], name: str, folder: Path) -> str:
    """Markdown of a notebook; pictures are written into a folder beside it."""
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for out in cell.get("outputs", ()):
            data = out.get("data", {})
            if "image/png" in data:
                (folder / f"{name}-{number}.png").write_bytes(base64.b64decode("".join(data["image/png"])))
                parts.append(f"![Output]({name}-{number}.png)")
            elif "text/html" in data:
                html = "".join(data["text/html"]).replace("\n\n", "\n")
                parts.append(f'<div class="notebook-output">{html}</div>')
            else:
                text = "".join(out.get("text") or data["text/plain"]).rstrip()
                parts.append(f"```text\n{text}\n```")
    parts.append(f"This page is the notebook `docs/notebooks/{name}.ipynb`.")
    return "\n\n".join(parts) + "\n"


def write_pages(out: Path, notebooks: Path = FOLDER) -> None:
    """Write one page per notebook into a folder of the documents."""
    out.mkdir(exist_ok=True)
    for path in sorted(notebooks.glob("*.ipynb")):
        text, target = page(read(path), path.stem, out), out / f"{path.stem}.md"
        # Sphinx reads again what has a new date.
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def main(names: list[str]) -> None:
    from rich.progress import track

    for path in track(sorted(FOLDER.glob("*.ipynb")), "Running notebooks"):
        if names and path.stem not in names:
            continue
        notebook = read(path)
        outputs = iter(run(notebook))
        for count, cell in enumerate((c for c in notebook["cells"] if c["cell_type"] == "code"), 1):
            cell |= {"outputs": next(outputs), "execution_count": count}
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
        print(f"{os.path.relpath(path)}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
