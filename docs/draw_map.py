"""Draw the map of the library, docs/images/map.svg: folders and who imports whom.

    python docs/draw_map.py            # is the picture up to date?
    python docs/draw_map.py --write    # draw it anew

Rows are the layers of `tests/test_architecture.py`. Arrows are the imports that the
files make, without those that follow from others: where a folder imports two others,
and the upper of these imports the lower, only the arrow to the upper one is drawn.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "eigenoptions"
PICTURE = ROOT / "docs" / "images" / "map.svg"

# From top to bottom: folders, and where they stand in their row, from 0 to 1. The
# private modules at the bottom serve everybody, so they get no arrows.
LAYERS = [
    {"cli": 0.7},
    {"studio": 0.12},
    {"plots": 0.37},
    {"agents": 0.66},
    {"atari": 0.26, "deep": 0.86},
    {"explore": 0.6},
    {"vectors": 0.76},
    {"samples": 0.57},
    {"discovery": 0.53},
    {"evaluation": 0.18, "learning": 0.45, "envs": 0.75},
    {"options": 0.14},
    {"spectra": 0.59},
    {"mdp": 0.37},
]
FOUNDATION = (
    "_kernels  parallel  _text  _colors  _ties  _splitmix  "
    "_registry  _validation  _types"
)
BOX_WIDTH = 96
BOX_HEIGHT = 30
ROW_HEIGHT = 58
WIDTH = 720


def find_imports(folder: str) -> set[str]:
    """Folders that the files of a folder import."""
    path = PACKAGE / folder
    files = [PACKAGE / f"{folder}.py"]
    if path.is_dir():
        files = sorted(path.rglob("*.py"))
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                if parts[0] == "eigenoptions" and len(parts) > 1:
                    found.add(parts[1])
    return found - {folder}


def find_arrows() -> list[tuple[str, str]]:
    """Pairs of folders, the upper one first, without arrows that follow from others."""
    folders = [folder for layer in LAYERS for folder in layer]
    # Those that point up are for types only, of what `discover` returns: no arrow.
    imports = {}
    for number, folder in enumerate(folders):
        imports[folder] = find_imports(folder) & set(folders[number + 1 :])
    reach: dict[str, set[str]] = {}
    for folder in reversed(folders):
        reach[folder] = set(imports[folder])
        for lower in imports[folder]:
            reach[folder] |= reach[lower]
    arrows = []
    for folder in folders:
        for lower in sorted(imports[folder], key=folders.index):
            others = imports[folder] - {lower}
            if not any(lower in reach[other] for other in others):
                arrows.append((folder, lower))
    return arrows


def place_boxes() -> dict[str, tuple[float, float]]:
    """The centre of the box of each folder."""
    centres = {}
    for row, layer in enumerate(LAYERS):
        for folder, share in layer.items():
            centres[folder] = (WIDTH * share, 28 + row * ROW_HEIGHT)
    return centres


def draw_lines(centres: dict[str, tuple[float, float]]) -> Iterator[str]:
    """An arrow for each import, from the lower edge of a box to the upper edge."""
    for upper, lower in find_arrows():
        x1, y1 = centres[upper]
        x2, y2 = centres[lower]
        y1 += BOX_HEIGHT / 2
        y2 -= BOX_HEIGHT / 2 + 4
        middle = (y1 + y2) / 2
        yield (
            f'<path class="arrow" marker-end="url(#tip)" d="M{x1:.0f} {y1:.0f} '
            f'C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"/>'
        )


def draw_boxes(centres: dict[str, tuple[float, float]]) -> Iterator[str]:
    """A box with its name for each folder, and one for the foundation."""
    for folder, (x, y) in centres.items():
        left = x - BOX_WIDTH / 2
        top = y - BOX_HEIGHT / 2
        yield (
            f'<rect class="box" x="{left:.0f}" y="{top:.0f}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="6"/>'
        )
        yield f'<text x="{x:.0f}" y="{y + 5:.0f}">{folder}</text>'
    top = 28 + len(LAYERS) * ROW_HEIGHT - BOX_HEIGHT / 2
    yield (
        f'<rect class="ground" x="12" y="{top:.0f}" width="{WIDTH - 24}" '
        f'height="{BOX_HEIGHT}" rx="6"/>'
    )
    yield f'<text x="{WIDTH / 2:.0f}" y="{top + 20:.0f}">{FOUNDATION}</text>'


def draw_map() -> str:
    """The picture as SVG, readable on light and dark pages."""
    height = 28 + len(LAYERS) * ROW_HEIGHT + 28
    centres = place_boxes()
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'role="img" aria-label="Folders of the library and their imports">',
        "<style>",
        "  text { font: 14px sans-serif; text-anchor: middle; fill: #1f2933; }",
        "  .box { fill: #e8f0fb; stroke: #4a78b5; }",
        "  .ground { fill: #f1ece2; stroke: #a08b60; }",
        "  .arrow { fill: none; stroke: #7b8794; stroke-width: 1.4; }",
        "</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#7b8794"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff" rx="8"/>',
        *draw_lines(centres),
        *draw_boxes(centres),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw the picture, or say whether it is up to date."""
    picture = draw_map()
    if "--write" in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.read_text(encoding="utf-8") != picture:
        print(f"{PICTURE.name} is not up to date: python docs/draw_map.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
