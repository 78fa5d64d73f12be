"""Draw the gallery: run every example whose picture is missing or out of date (`make docs` calls it first).

An example writes one picture, named after it, into the folder that it is run in. Pictures are kept in
``docs/_build/gallery`` under the hash of the example. `write_pages` makes one page per example and a page of all of
them; ``conf.py`` calls it, and an example that was not drawn has a page without a picture.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
PICTURES = Path(__file__).parent / "_build" / "gallery"
SUFFIXES = (".svg", ".png", ".gif")
# Sections of the gallery and their examples; what is not named comes last.
SECTIONS = {
    "First steps": "four_rooms own_maze option_clip learning_curves saved_options compare_methods option_chance",
    "Your environment": (
        "own_environment frozen_lake taxi directed_graph minigrid_rooms mountain_car cartpole acrobot "
        "continuous_actions own_features pixels"
    ),
    "Your agent": "action_masks pytorch_dqn sb3_dqn sb3_ppo sb3_maskable_ppo vector_environments",
    "Your data": "recorded_data sampled_options exploration",
    "Ideas to build on": "own_method hierarchy reward_aware commute_time parallel_runs",
    "Atari games": "atari_options",
}
REST = "More"


def words(example: Path) -> tuple[str, str, str]:
    """Title, text, and what to see in the picture, from the docstring of an example."""
    doc = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    title, _, text = doc.partition("\n")
    text, _, see = text.partition("In the picture: ")
    return title.rstrip(".").replace("``", "`"), text.strip().replace("``", "`"), " ".join(see.split())


def written(example: Path, folder: Path) -> list[Path]:
    """The pictures in a folder that are named after an example."""
    name = example.stem.replace("_", "-")
    return [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]


def kept(example: Path, folder: Path) -> Path | None:
    """The picture of an example as it is now, if it was drawn."""
    name = hashlib.sha256(example.read_bytes()).hexdigest()[:12]
    return next((p for s in SUFFIXES if (p := folder / f"{example.stem}-{name}{s}").is_file()), None)


def draw(example: Path, folder: Path) -> str:
    """Run an example, and keep its picture in the place of older ones; a line for the terminal."""
    name = hashlib.sha256(example.read_bytes()).hexdigest()[:12]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            [sys.executable, str(example.resolve())], cwd=temporary, env=env, capture_output=True
        )
        found = written(example, Path(temporary))
        if done.returncode or not found:
            said = done.stderr.decode().strip().splitlines()[-1:] or ["it wrote no picture"]
            return f"{example.name} has no picture: {said[0]}"
        for old in folder.glob(f"{example.stem}-????????????.*"):
            old.unlink()
        shutil.copy(found[0], folder / f"{example.stem}-{name}{found[0].suffix}")
    return ""


def sections(examples: list[Path]) -> dict[str, list[Path]]:
    """Examples by section, in the order of the page."""
    by_stem = {example.stem: example for example in examples}
    found = {
        title: [by_stem.pop(stem) for stem in stems.split() if stem in by_stem]
        for title, stems in SECTIONS.items()
    }
    return {title: some for title, some in (found | {REST: list(by_stem.values())}).items() if some}


def write_pages(out: Path, examples: Path = EXAMPLES, pictures: Path = PICTURES) -> None:
    """Write ``index.md`` and one page per example into a folder below the documents, and remove other pages."""
    out.mkdir(exist_ok=True)
    for old in out.glob("*.md"):
        if not (examples / f"{old.stem}.py").is_file():
            old.unlink()
    cards = ["# Gallery", "", "Every example runs in seconds; its page has the whole code.", ""]
    names = []
    for title, some in sections(sorted(examples.glob("*.py"))).items():
        cards += [f"## {title}", "", "::::{container} gallery", ""]
        for example in some:
            head, text, see = words(example)
            short = head.split(":")[0]
            drawn = kept(example, pictures)
            image = "" if drawn is None else f"![{short}]({os.path.relpath(drawn, out)})"
            linked = f"[{image}]({example.stem}.md)\n\n" if image else ""
            cards += [":::{container} gallery-card", f"{linked}[{head}]({example.stem}.md)", ":::", ""]
            seen = f"\n{image}\n\n{see}\n" if image else f"\n{see}\n"
            path = os.path.relpath(example, out)
            code = f"```{{literalinclude}} {path}\n:language: python\n```"
            page = f"# {short}\n\n{head}.\n\n{text}\n{seen}\n`python examples/{example.name}`:\n\n{code}\n"
            _write(out / f"{example.stem}.md", page)
            names.append(example.stem)
        cards += ["::::", ""]
    cards += ["```{toctree}", ":hidden:", "", *names, "```", ""]
    _write(out / "index.md", "\n".join(cards))


def _write(path: Path, text: str) -> None:
    """Write a page if it has changed, so that Sphinx reads only what is new."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main() -> int:
    from rich.progress import track

    PICTURES.mkdir(parents=True, exist_ok=True)
    missing = [example for example in sorted(EXAMPLES.glob("*.py")) if kept(example, PICTURES) is None]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        drawing = pool.map(lambda example: draw(example, PICTURES), missing)
        said = [line for line in track(drawing, "Running examples", len(missing)) if line] if missing else []
    print(*said, sep="\n", end="\n" if said else "")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
