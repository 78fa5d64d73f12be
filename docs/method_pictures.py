"""Draw the first options of every method for docs/methods.md: `python docs/method_pictures.py`.

Most are shown on four rooms; methods that need rewards on the domain with a costly room, and `neo`, which follows the
direction of moves, on the one with one-way doors.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

import eigenoptions as eo
from eigenoptions.discovery.methods import method
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from reproduction.arena.domains import build
from reproduction.arena.pictures import option_map

FOLDER = Path(__file__).parent / "images" / "methods"
DOMAINS = {"neo": "one-way"}


def picture(name: str) -> str:
    """SVG of the first four options of a method."""
    mdp = build(DOMAINS.get(name, "costly" if method(name).needs_rewards else "four-rooms"))
    return option_strip(mdp, eo.discover(mdp, 4, name))


def option_strip(mdp: MDP, options: OptionSet, n: int = 4, size: int = 150) -> str:
    """The first maps of a set side by side, with their labels, as one SVG file."""
    shown, gap, line = options[:n], 10, 18
    assert mdp.coords is not None
    rows, cols = (np.ptp(mdp.coords, axis=0) + 3).tolist()
    high, wide = round(size * rows / cols), len(shown) * (size + gap) - gap
    parts = []
    for i, (row, label) in enumerate(zip(shown.policy, shown.labels, strict=True)):
        x = i * (size + gap)
        place = f' x="{x}" width="{size}" height="{high}"'
        parts.append(option_map(mdp, row, label, place))
        parts.append(
            f'<text x="{x}" y="{high + 14}" font-family="sans-serif" font-size="12" fill="#777">{escape(label)}</text>'
        )
    size_of = f'viewBox="0 0 {wide} {high + line}" width="{wide}" height="{high + line}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size_of}>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in eo.methods():
        (FOLDER / f"{name}.svg").write_text(picture(name), encoding="utf-8")
